"""A first model: fit a tree, read it, see the path of one row, and score rows that it has not seen."""

from spinney import CARTClassifier, datasets

table = datasets.load("adult")  # a pyarrow table; pandas and polars frames and NumPy arrays do as well
X, y = table.drop_columns(["income"]), table["income"].to_pylist()
n_train = 32_561  # the published training rows come first

tree = CARTClassifier(max_depth=2).fit(X.slice(0, n_train), y[:n_train])  # text and missing values go in as they are
print(tree.tree_.to_text())
print(tree.explain(X.slice(n_train, 1)))  # the first held-out row

deeper = CARTClassifier(max_depth=6).fit(X.slice(0, n_train), y[:n_train])
accuracy = deeper.score(X.slice(n_train), y[n_train:])
commonest = y[n_train:].count("<=50K") / len(y[n_train:])
print(f"accuracy on held-out rows, six tests deep: {accuracy:.3f}; of the commonest class: {commonest:.3f}")
assert accuracy > 0.85
assert commonest < 0.77
