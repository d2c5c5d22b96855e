"""F11: a name of another library gets the hint that is right for the estimator at hand, or none.

The table (`names_of_others.txt`) was written from the peers' own documentation, name by name: what the parameter is
there, and which of ours is that in each family of estimators. A dash: there is no such thing in that family, and no
guess is right. Where some estimators of a family lack our parameter (`alpha` is for regression), they give no hint.
"""

import inspect
import re
from pathlib import Path

import pytest

import spinney

FAMILIES = {
    "boosting": (spinney.GradientBoostingClassifier, spinney.GradientBoostingRegressor),
    "forests": (
        spinney.RandomForestClassifier,
        spinney.RandomForestRegressor,
        spinney.ExtraTreesClassifier,
        spinney.ExtraTreesRegressor,
    ),
    "bags": (spinney.BaggingClassifier, spinney.BaggingRegressor),
    "adaboost": (spinney.AdaBoostClassifier, spinney.AdaBoostRegressor),
    "trees": (
        spinney.CARTClassifier,
        spinney.CARTRegressor,
        spinney.ID3Classifier,
        spinney.ID3Regressor,
        spinney.C45Classifier,
    ),
}

TABLE = Path(__file__).parent / "names_of_others.txt"

SUGGESTED = re.compile(
    r"Did you mean '(\w+)'\?|fit\(\.\.\., (\w+)=\.\.\.\)|It is a parameter of the estimator: \w+\((\w+)="
)


def read_table():
    """Name and, for each family, ours or a dash."""
    lines = [line.split() for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    assert all(len(cells) == 6 for cells in lines), [cells for cells in lines if len(cells) != 6]
    return {name: dict(zip(FAMILIES, owns, strict=True)) for name, *owns in lines}


ROWS = read_table()


def names_of(kind):
    """Parameters, and arguments of fit."""
    return [*inspect.signature(kind).parameters], [*inspect.signature(kind.fit).parameters][1:]


def ask_parameter(kind, name):
    """What an estimator says of a parameter that it does not have."""
    with pytest.raises(TypeError, match=f"^{kind.__name__} has no parameter '{re.escape(name)}'") as caught:
        kind(**{name: 1})
    return str(caught.value).split("'. ", 1)[1]


def ask_argument(kind, name):
    """What `fit` says of an argument that it does not take."""
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.fit has no argument '{re.escape(name)}'") as caught:
        kind().fit([[0.0], [1.0]], [0, 1], **{name: 1})
    return str(caught.value).split("'. ", 1)[1]


def suggested(hint):
    """The name that a hint gives, or None."""
    found = SUGGESTED.match(hint) or SUGGESTED.search(hint.split(" It ")[0])
    found = found or re.match(r"It is an argument of fit: fit\(\.\.\., (\w+)=", hint)
    return None if found is None else next(name for name in found.groups() if name)


def test_the_table_is_long_and_gives_names_that_exist():
    assert len(ROWS) > 220
    for name, by_family in ROWS.items():
        for family, own in by_family.items():
            if own != "-":
                assert any(own in names for kind in FAMILIES[family] for names in names_of(kind)), (name, family, own)


@pytest.mark.parametrize(
    "kind", [kind for kinds in FAMILIES.values() for kind in kinds], ids=lambda kind: kind.__name__
)
def test_f11_each_name_of_another_library_gets_the_right_hint_or_none(kind):
    family = next(family for family, kinds in FAMILIES.items() if kind in kinds)
    parameters, arguments = names_of(kind)
    wrong = {}
    for name, by_family in ROWS.items():
        own = by_family[family]
        expected = own if own in {*parameters, *arguments} else None
        for ask, taken in ((ask_parameter, parameters), (ask_argument, arguments)):
            if name in taken:
                continue
            hint = ask(kind, name)
            found = suggested(hint)
            if found != (name if name in {*parameters, *arguments} else expected):
                wrong[name, ask.__name__] = hint
            elif found is None:
                assert hint.startswith(("It has ", "It takes "))
    assert not wrong


def test_f11_hints_say_what_differs():
    boosting, forest, bag, tree = (FAMILIES[name][0] for name in ("boosting", "forests", "bags", "trees"))
    for kind, name, words in [
        (boosting, "min_split_gain", "Theirs is twice ours."),
        (boosting, "bagging_freq", "Rows are drawn for every tree where it is below 1."),
        (boosting, "colsample_bylevel", "It is drawn for each node."),
        (boosting, "is_unbalance", "class_weight='balanced'"),
        (boosting, "use_best_model", "predict uses the best round"),
        (forest, "colsample_bytree", "BaggingClassifier and BaggingRegressor do that"),
        (forest, "min_child_weight", "a share of the weight of all rows"),
        (tree, "cp", "cp times the error of the root"),
        (tree, "unpruned", "pruning=None"),
    ]:
        assert words in ask_parameter(kind, name), (kind, name)
    assert ask_parameter(bag, "colsample_bytree") == "Did you mean 'max_features'?"


def test_slips_of_the_hand_are_still_found():
    for kinds in FAMILIES.values():
        for kind in kinds:
            for name in names_of(kind)[0]:
                if len(name) > 5:
                    slip = name[:-2] + name[-1]
                    if slip not in names_of(kind)[0] and slip not in ROWS:
                        assert suggested(ask_parameter(kind, slip)) == name, (kind, slip)
