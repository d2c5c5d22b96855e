"""Study a table: which methods work on it, how sure that is, and what the differences are worth.

`spinney study glass` does the same and writes a report.
"""

from spinney import datasets, study

data = study.prepare(datasets.load("glass"), "Type", name="glass")
found = study.compare(data, methods=["cart", "forest", "boosting"], n_splits=5, n_repeats=1)
for method in found.ranked:
    print(f"{method.name:18} {method.mean:.3f} ± {found.standard_error(method):.3f}")
print(found.recommendation)

model = study.refit(found, data)  # the best method, fitted to all rows
scores = {method.name: method.mean for method in found.ranked}
assert found.ranked[0].name == "random forest"
assert 0.7 < scores["random forest"] < 0.9
assert scores["commonest class"] < 0.4
assert len(model.classes_) == 6
