"""Why one row got its answer: the parts are those of SHAP values, paths and counterfactuals."""

import numpy as np
import pandas as pd
import pytest

import export_cases
import spinney


@pytest.mark.parametrize("name", export_cases.NAMES)
def test_every_model_explains_a_row(name):
    model, cells = export_cases.fitted(name)
    row = cells[0]
    table = export_cases.table_of(model, [row])
    found = spinney.explain(model, row, wanted=None if hasattr(model, "classes_") else (None, 1e9))
    predicted = np.reshape(model.predict(table), -1)[0]
    assert found.answer == (predicted if hasattr(model, "classes_") else pytest.approx(predicted))
    assert (found.path is not None) == hasattr(model, "tree_")
    if name != "adaboost numbers":
        assert found.base + sum(one.added for one in found.contributions) == pytest.approx(found.score)
        one = model.shap_values(table).of(found.output)
        assert {part.column: part.added for part in found.contributions} == one.to_frame().iloc[0].to_dict()
    assert str(found).startswith("answer: ")


def test_rows_are_read_in_every_form():
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "b", "a", "b"]})
    model = spinney.CARTClassifier(categorical_features=["kind"]).fit(frame, ["no", "no", "yes", "yes"])
    rows = ({"size": 4.0, "kind": "b"}, [4.0, "b"], frame.iloc[3], frame.iloc[[3]])
    texts = {str(spinney.explain(model, row)) for row in rows}
    assert len(texts) == 1
    assert "to change it: size: 2.5 instead of 4 would make it no" in texts.pop()
    with pytest.raises(ValueError, match="row has 2 rows"):
        spinney.explain(model, frame.iloc[:2])


def test_a_model_file_explains_a_row(tmp_path):
    X = np.arange(20.0).reshape(10, 2)
    model = spinney.RandomForestRegressor(n_estimators=5, random_state=0).fit(X, X[:, 0])
    path = tmp_path / "model.spn"
    model.save_model(path)
    found = spinney.explain(path, X[3], wanted=(10.0, None), X=X)
    assert found.answer == model.predict(X[3:4])[0]
    change = found.counterfactual
    assert change.answer >= 10.0
    assert model.predict([change.values])[0] == change.answer  # noqa: PD011
    with pytest.raises(TypeError, match="no model of Spinney"):
        spinney.explain(3, X[0])


def test_a_change_that_cannot_be_found_is_told():
    X = np.arange(20.0).reshape(10, 2)
    tree = spinney.CARTRegressor().fit(X, X[:, 0])
    missed = spinney.explain(tree, X[0], wanted=(1e6, None))
    assert missed.counterfactual is None
    assert str(missed).endswith("to change it: no change of what may vary was found that does")
    assert "to change it" not in str(spinney.explain(tree, X[0]))  # none was looked for
    same = spinney.explain(tree, X[0], wanted=(None, 1e6))
    assert str(same.counterfactual) == "nothing has to change: the answer is 0"


def test_of_several_quantiles_the_answer_is_the_one_that_is_explained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    loss = {"loss": "quantile", "alpha": [0.1, 0.9], "n_estimators": 5, "random_state": 0}
    model = spinney.GradientBoostingRegressor(**loss).fit(X, X[:, 0])
    found = spinney.explain(model, X[:1])
    assert found.score == pytest.approx(found.answer)


X = np.random.default_rng(0).normal(size=(200, 3))
Y = np.exp(X[:, 0])


@pytest.mark.parametrize(
    ("model", "unit", "to_answer"),
    [
        (spinney.GradientBoostingClassifier(n_estimators=5), "log-odds", lambda raw: 1.0 / (1.0 + np.exp(-raw))),
        (
            spinney.GradientBoostingClassifier(n_estimators=5, loss="exponential"),
            "half the log-odds",
            lambda raw: 1.0 / (1.0 + np.exp(-2.0 * raw)),
        ),
        (spinney.GradientBoostingRegressor(n_estimators=5, loss="poisson"), "logarithm of the answer", np.exp),
        (spinney.GradientBoostingRegressor(n_estimators=5, loss="gamma"), "logarithm of the answer", np.exp),
        (spinney.GradientBoostingSurvival(n_estimators=5, loss="aft"), "logarithm of the answer", np.exp),
        (spinney.GradientBoostingRegressor(n_estimators=5), None, lambda raw: raw),
        (spinney.RandomForestClassifier(n_estimators=5, random_state=0), None, lambda raw: raw),
    ],
)
def test_scores_say_what_they_are(model, unit, to_answer):
    is_classes = hasattr(model, "predict_proba")
    model.fit(X, Y > 1.0 if is_classes else Y)
    row = X[np.argmax(Y)]
    found = spinney.explain(model, row)
    assert found.unit == unit
    expected = model.predict_proba([row])[0, 1] if is_classes else model.predict([row])[0]
    assert to_answer(found.score) == pytest.approx(expected)
    assert (f"({unit})" in str(found)) == (unit is not None)
    if is_classes:
        told = spinney.explain(model, row, background=X[:9])
        assert told.unit == unit


def test_differences_of_scores_of_several_classes_are_log_odds():
    model = spinney.GradientBoostingClassifier(n_estimators=5).fit(X, np.digitize(Y, [0.5, 1.0, 2.0]))
    found = spinney.explain(model, X[0])
    assert found.unit.startswith("log-odds, up to a constant")
    scores, shares = model.decision_function(X[:1])[0], model.predict_proba(X[:1])[0]
    assert found.score == pytest.approx(scores[found.answer])
    assert scores[1] - scores[0] == pytest.approx(np.log(shares[1] / shares[0]))


def test_a_median_tells_what_its_trees_say():
    model = spinney.AdaBoostRegressor(n_estimators=20, random_state=0).fit(X, Y)
    found = spinney.explain(model, X[0])
    said = model.predictor().predict_trees(X[:1])[:, 0]
    weights = model.predictor().weights
    votes = found.votes
    assert votes.n_trees == len(said) == len(weights)
    assert votes.share_below == pytest.approx(weights[said < found.answer].sum() / weights.sum())
    assert votes.share_above == pytest.approx(weights[said > found.answer].sum() / weights.sum())
    for quartile, share in ((votes.low, 0.25), (votes.high, 0.75)):
        assert weights[said < quartile].sum() / weights.sum() < share
        assert weights[said <= quartile].sum() / weights.sum() >= share * (1.0 - 1e-12)
    assert f"the weighted median of {len(said)} trees" in str(found)
    assert "give background= rows" in str(found)
    told = spinney.explain(model, X[0], background=X[:9])
    assert told.votes is None
    assert told.score == pytest.approx(found.answer)


def test_an_answer_that_is_as_wanted_needs_no_change():
    model = spinney.CARTClassifier().fit([[1.0], [2.0]], ["no", "yes"])
    last = str(spinney.explain(model, [2.0], wanted="yes")).splitlines()[-1]
    assert last == "nothing has to change: the answer is yes"
