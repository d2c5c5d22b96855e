"""Teaching: watch ID3 choose the first test of Quinlan's weather table, with the numbers of the blackboard."""

from math import log2

from spinney import ID3Classifier, datasets

table = datasets.load("play_tennis")
X, y = table.drop_columns(["play"]), table["play"].to_pylist()
tree = ID3Classifier(trace=True).fit(X, y)
print(tree.trace_.to_text(node=0))
print(tree.tree_.to_text())


def entropy(labels):
    """Bits of a list of classes."""
    shares = [labels.count(label) / len(labels) for label in set(labels)]
    return -sum(share * log2(share) for share in shares)


# By hand: the gain of a column is the entropy of all rows less the mean entropy of the rows of each of its levels.
gains = {}
for name in X.column_names:
    column = X[name].to_pylist()
    parts = [[label for label, value in zip(y, column, strict=True) if value == level] for level in set(column)]
    gains[name] = entropy(y) - sum(len(part) / len(y) * entropy(part) for part in parts)
print({name: round(gain, 6) for name, gain in gains.items()})
assert max(gains, key=gains.__getitem__) == "outlook"
assert f"{gains['outlook']:.6f}" == "0.246750"
assert "0.246750" in tree.trace_.to_text(node=0)
assert tree.score(X, y) == 1.0
