"""Trees for people: text, rules, pictures, and the path of a row in words. A tree is known here by its arrays alone.

| file | holds |
|---|---|
| `text.py` | a tree as lines of text |
| `rules.py` | a tree as if-then rules |
| `drawing.py` | a tree as an SVG picture |
| `layout.py` | where the boxes of a picture stand |
| `outline.py` | what a picture shows, and what it closes |
| `diagrams.py` | a tree for Graphviz and Mermaid |
| `explaining.py` | the path of one row in words |
| `conditions.py` | the condition of a branch |
| `several_outputs.py` | what is shown of one output alone, and says so |
| `wording.py` | names of features, levels, classes, rows |
| `colours.py` | colours that everyone tells apart |
"""
