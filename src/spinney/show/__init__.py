"""What a study found, to be seen: charts, and one page that holds them all. Plain data comes in, text goes out.

| file | holds |
|---|---|
| `report.py` | the page of a study: what stands where |
| `page.py` | one HTML page that needs nothing else |
| `data_page.py` | the part on the columns |
| `score_table.py` | the part on the methods |
| `tree_page.py` | the part on the tree |
| `path_chart.py` | its pruning path, with a slider |
| `charts.py` | the pictures of a study, a function each |
| `shap_charts.py` | pictures of SHAP values |
| `reason_charts.py` | those that a study has kept |
| `chart_model.py` | `Chart`: axes, marks and words, before anything is drawn |
| `marks.py` | what stands in a chart |
| `scale.py` | from numbers to places |
| `svg.py` | a chart as SVG |
| `matplotlib.py` | a chart on axes of matplotlib |
| `theme.py` | how series look |
| `style.py` | sizes and colours as CSS |
| `markup.py` | HTML and SVG as escaped text |
| `numbers.py` | numbers as people read them |
| `names.py` | names as pages show them |
"""
