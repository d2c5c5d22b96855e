"""Files of single trees, damaged where they are not read by predicting: what opens works in every public method."""

import copy
import json

import numpy as np
import pytest

import saved_models
import spinney
from damaged_files import rewritten
from spinney.estimators.cart import cart_params
from spinney.model.container import BrokenFileError, read

TREES = [name for name in saved_models.MODELS if name.startswith(("cart", "id3", "c45"))]
OTHERS = [
    None, True, -1, 0, 2, 10**20, 0.5, {"is": "float", "value": "nan"}, "", "entropy", [], [[]], [1, "a"],
    {"is": "dict", "items": []}, {"is": "dict", "items": [["alpha", 1]]}, {"is": "tuple", "items": [1]},
]  # fmt: skip


def ask_everything(model, asked):
    """Call what a fitted tree offers, with rows that it can take."""
    X, y = saved_models.make_data(
        int(getattr(model, "n_classes_", 0)), is_named=hasattr(model, "feature_names_in_"), seed=2
    )
    row = {name: asked.column(name)[0].as_py() for name in asked.column_names} if hasattr(asked, "column") else asked[0]
    assert len(model.predict(asked)) == len(model.apply(asked)) == model.decision_path(asked).shape[0]
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(asked).sum(axis=1), 1.0)
        model.predict_log_proba(asked)
    assert len(model.feature_importances_) == model.n_features_in_
    assert str(model.explain(row))
    tree = model.tree_.arrays
    assert tree.to_text(numbers=True)
    assert str(tree.to_rules())
    assert tree.to_dot()
    assert tree.to_mermaid()
    assert tree.to_svg()
    assert repr(tree.surrogates)
    assert model.get_depth() >= 0 < model.get_n_leaves()
    if tree.surrogates is not None:
        assert np.isfinite(model.surrogate_importances_).all()
    report = getattr(model, "pruning_", None)
    if report is not None:
        assert str(report)
        assert report._repr_html_()
    if hasattr(model, "cv_results_"):
        assert len({len(column) for column in model.cv_results_.values()}) == 1
        assert (model.cv_results_["alpha"] == model.ccp_alpha_).any()
    assert getattr(model, "n_outputs_", 1) == 1
    assert getattr(model, "max_features_", 1) >= 1
    model.prune("merge").predict(asked)
    model.prune("min_gain", min_gain=0.1)
    model.prune("cost_complexity", ccp_alpha=0.1, ccp_risk="error")
    model.prune("reduced_error", X, y)
    if hasattr(model, "raising") and tree.surrogates is None:
        model.prune("pessimistic", X, y, raising=True, confidence=0.1)
    model.snip(0).predict(asked)
    model.predictor().predict(asked)


def opens(path, asked):
    """Whether a file opens; if it does, all of it must work."""
    try:
        model = spinney.load_model(path)
    except BrokenFileError:
        return False
    ask_everything(model, asked)
    return True


def places(content, path=()):
    """Every place below a JSON value that another value can be put at."""
    if path:
        yield path
    if isinstance(content, dict):
        for name, part in content.items():
            yield from places(part, (*path, name))
    elif isinstance(content, list):
        for number, part in enumerate(content[:6]):
            yield from places(part, (*path, number))


def follow(content, path):
    """The value at a place."""
    for step in path:
        content = content[step]
    return content


def put(path, value):
    """What puts a value at a place."""

    def change(content):
        follow(content, path[:-1])[path[-1]] = copy.deepcopy(value)

    return change


def cut(path):
    """What takes a value away."""

    def change(content):
        del follow(content, path[:-1])[path[-1]]

    return change


def damages(content, parts):
    """What changes one place below these parts of a model file, in every way."""
    for part in parts:
        for place in places(follow(content, part)):
            yield cut((*part, *place))
            for value in OTHERS:
                yield put((*part, *place), value)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What saves a model of a name once, and gives the path and rows to ask about."""
    found = {}

    def save(name):
        if name not in found:
            path = tmp_path_factory.mktemp("trees") / "model.spn"
            model, asked = saved_models.fit(name)
            model.save_model(path)
            found[name] = path, asked
        return found[name]

    return save


@pytest.mark.parametrize("name", TREES)
@pytest.mark.sampled(3)
def test_f14_fitted_attributes_and_names_that_open_work_in_every_method(name, saved):
    path, asked = saved(name)
    assert opens(path, asked)
    content = json.loads(read(path, is_mapped=False).text["model"])
    parts = [("estimator", "fitted"), ("predictor", "tree", "legend"), ("predictor", "classes")]
    for number, change in enumerate(damages(content, [part for part in parts if follow(content, part) is not None])):
        if number % 31 == TREES.index(name):
            opens(rewritten(path, None, change), asked)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.sampled(3)
def test_f14_each_fitted_attribute_is_needed_and_of_its_type(name, saved):
    path, asked = saved(name)
    items = json.loads(read(path, is_mapped=False).text["model"])["estimator"]["fitted"]["items"]
    for number, (attribute, value) in enumerate(items):
        place = ("estimator", "fitted", "items", number)
        is_spare = attribute in {"n_outputs_", "max_features_", "pruning_"}
        assert not opens(rewritten(path, None, cut(place)), asked) or is_spare
        for other in ({"is": "dict", "items": []}, "text", -1, [1]):
            assert not opens(rewritten(path, None, put((*place, 1), other)), asked)
        opens(rewritten(path, None, put((*place, 1), None)), asked)
        opens(rewritten(path, None, put((*place, 0), "trace_" if value is None else "n_outputs_")), asked)


LEGEND = ("predictor", "tree", "legend")
NESTED = {  # name: model, place, value: what opened, and then failed in methods other than predict
    "classes that are lists": ("cart classes", (*LEGEND, "classes"), [["ash"], ["birch"], ["cedar"]]),
    "other classes": ("id3", (*LEGEND, "classes"), [0, 1, 2]),
    "other levels": ("c45 named", (*LEGEND, "levels", 2), [0, 1, 2, 3]),
    "other names": ("cart named", (*LEGEND, "features"), ["a", "b", "c", "d"]),
    "no such criterion": ("cart numbers", (*LEGEND, "criterion"), "squares"),
}


def find_item(content, name):
    """The place of a fitted attribute's value."""
    items = content["estimator"]["fitted"]["items"]
    return ("estimator", "fitted", "items", next(i for i, (key, _) in enumerate(items) if key == name), 1)


@pytest.mark.parametrize("case", NESTED)
def test_f14_names_of_a_tree_are_those_of_its_columns_and_classes(case, saved):
    name, place, value = NESTED[case]
    path, _ = saved(name)
    with pytest.raises(BrokenFileError, match=r"names? other|a collection|the criterion"):
        spinney.load_model(rewritten(path, None, put(place, value)))


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        (("options",), {"is": "dict", "items": []}, "has the number ccp_alpha"),
        (("options",), {"is": "dict", "items": [["ccp_alpha", "much"]]}, "has the number ccp_alpha"),
        (("options",), {"is": "dict", "items": [[1, 2]]}, "options by name"),
        (("method",), "scissors", "names its method"),
        (("judged_on",), None, "names its method"),
        (("n_leaves",), {"is": "tuple", "items": [21]}, "n_leaves in a report"),
        (("depth", "items", 1), None, "depth in a report"),
        (("error", "items", 1), "0.1", "error in a report"),
    ],
)
def test_f14_reports_of_a_pruning_have_what_they_print(part, value, words, saved):
    path, _ = saved("cart pruned by cv")
    place = find_item(json.loads(read(path, is_mapped=False).text["model"]), "pruning_")
    with pytest.raises(BrokenFileError, match=words):
        spinney.load_model(rewritten(path, None, put((*place, *part), value)))


def lengthen(content):
    """An alpha more than there are errors."""
    columns = follow(content, find_item(content, "cv_results_"))["items"]
    columns[0][1]["shape"], columns[2][1]["shape"] = [13], [11]


def rename_column(content):
    follow(content, find_item(content, "cv_results_"))["items"][2][0] = "loss"


def stack_column(content):
    follow(content, find_item(content, "cv_results_"))["items"][1][1]["shape"] = [3, 4]


def choose_other(content):
    put(find_item(content, "ccp_alpha_"), 0.5)(content)


def lose_alpha(content):
    content["estimator"]["fitted"]["items"].pop(find_item(content, "ccp_alpha_")[3])


def forget_report(content):
    put(find_item(content, "pruning_"), None)(content)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lengthen, "differ in length"),
        (rename_column, "has the columns alpha, n_leaves, error, standard_error"),
        (stack_column, "n_leaves of cv_results_ must be a row"),
        (choose_other, "ccp_alpha_ is none of the alphas"),
        (lose_alpha, "come together"),
        (forget_report, "come with pruning_"),
    ],
)
def test_f14_a_cross_validation_is_there_as_a_whole(change, words, saved):
    path, _ = saved("cart pruned by cv")
    with pytest.raises(BrokenFileError, match=words):
        spinney.load_model(rewritten(path, None, change))


@pytest.mark.parametrize("name", ["n_outputs_", "max_features_"])
def test_f14_counts_of_a_tree_are_possible(name, saved):
    path, _ = saved("cart classes")
    place = find_item(json.loads(read(path, is_mapped=False).text["model"]), name)
    with pytest.raises(BrokenFileError, match=name):
        spinney.load_model(rewritten(path, None, put(place, 0)))


SIDES = {  # of arrays of a tree: model, array, number
    "surrogates that agree in more than all": ("cart surrogates", "tree.surrogates.agree", 1.5),
    "surrogates of no end": ("cart surrogates", "tree.surrogates.adjusted", np.inf),
    "improvements without bounds": ("cart surrogates", "tree.surrogates.improve", 1e300),
    "surrogates of another feature": ("cart surrogates", "tree.surrogates.test", 1 << 20),
    "slopes without end": ("cart linear", "tree.linear.coefficient", np.nan),
    "slopes of categories": ("cart linear", "tree.linear.feature", 2),
    "slopes of other features": ("cart linear", "tree.linear.feature", 4),
    "models that end before they begin": ("cart linear", "tree.linear.first", -1),
}


@pytest.mark.parametrize("case", SIDES)
def test_f14_surrogates_and_linear_leaves_are_sound(case, saved):
    name, array, number = SIDES[case]
    path, _ = saved(name)

    def change(arrays):
        arrays[array][len(arrays[array]) // 2] = number

    with pytest.raises(BrokenFileError):
        spinney.load_model(rewritten(path, change))


def test_a_tree_can_be_put_into_a_fitted_estimator_and_is_kept(saved, tmp_path):
    path, asked = saved("cart numbers")
    model = spinney.load_model(path)
    small = model.snip(0)
    model.tree_ = small.tree_.arrays
    assert model.get_n_leaves() == 1
    np.testing.assert_array_equal(model.predict(asked), small.predict(asked))
    model.save_model(tmp_path / "small.spn")
    assert spinney.load_model(tmp_path / "small.spn").get_n_leaves() == 1
    with pytest.raises(AttributeError, match="once this CARTRegressor has been fitted"):
        spinney.CARTRegressor().tree_ = small.tree_.arrays


def test_parameters_of_growing_are_a_function_of_a_tree_that_stays_as_it_is():
    tree = spinney.CARTClassifier(max_features="sqrt", min_samples_leaf=0.1, max_depth=99)
    before = dict(vars(tree))
    params = cart_params(tree, 40, 9)
    assert (params.max_features, params.min_samples_leaf, params.max_depth) == (3, 4, 40)
    assert cart_params(tree, 7, 9).min_samples_leaf == 1
    assert vars(tree) == before
