"""Warm start: grow more trees of the same model, as many as turn out to be needed; nothing is grown twice."""

from spinney import GradientBoostingClassifier, RandomForestClassifier, datasets

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

# Boosting goes on from its last round in the same way.
boost = GradientBoostingClassifier(n_estimators=20, warm_start=True, random_state=0).fit(X, y)
boost.set_params(n_estimators=40).fit(X, y)
whole = GradientBoostingClassifier(n_estimators=40, random_state=0).fit(X, y)
print(f"boosting: {boost.n_estimators_} rounds in two fits")
assert (boost.predict_proba(X) == whole.predict_proba(X)).all()
