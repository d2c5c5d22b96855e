"""Warm start: grow more trees of the same model, as many as turn out to be needed; nothing is grown twice."""

from spinney import RandomForestClassifier, datasets

table = datasets.load("german_credit")
X, y = table.drop_columns(["class"]), table["class"].to_pylist()

forest = RandomForestClassifier(warm_start=True, oob_score=True, random_state=0)
for n_estimators in (50, 100, 200):
    forest.set_params(n_estimators=n_estimators).fit(X, y)
    print(f"{n_estimators} trees: out-of-bag accuracy {forest.oob_score_:.3f}")

# The same model as one that was grown at once, to the last bit.
at_once = RandomForestClassifier(n_estimators=200, oob_score=True, random_state=0).fit(X, y)
assert forest.oob_score_ == at_once.oob_score_ > 0.74
assert (forest.predict_proba(X) == at_once.predict_proba(X)).all()
