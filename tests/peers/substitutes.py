"""Our classes under the names and with the defaults of scikit-learn's, for its own tests.

Single trees, forests, bagging and AdaBoost have scikit-learn's parameters, and stand in as they are. Gradient boosting
is one pair of classes here and two there, which differ in defaults and some names: classes made for each at run time,
from the signatures of the installed scikit-learn, translate.
"""

import inspect

import sklearn.ensemble
import sklearn.tree

import spinney

ALIKE = {
    sklearn.tree: {"DecisionTreeClassifier": "CARTClassifier", "DecisionTreeRegressor": "CARTRegressor"},
    sklearn.ensemble: {
        name: name
        for name in (
            *("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"),
            *("BaggingClassifier", "BaggingRegressor", "AdaBoostClassifier", "AdaBoostRegressor"),
        )
    },
}
EXACT = {"newton": False, "max_bins": None, "min_child_weight": 0.0, "reg_lambda": 0.0, "cat_penalty": 0.0}
BINNED = {"subsample": 1.0, "cat_penalty": 0.0, "newton": True}
RENAMED = {"max_iter": "n_estimators", "l2_regularization": "reg_lambda"}


def take_params(theirs, changed):
    """The parameters of one of scikit-learn's classes, some with other defaults."""
    found = inspect.signature(theirs).parameters.values()
    return [each.replace(default=changed.get(each.name, each.default)) for each in found]


def make_class(ours, theirs, fixed, renamed=(), changed=(), extra=(), name=None):
    """A class of ours with the parameters of `theirs`.

    fixed: values of parameters that only ours has; renamed: our names for some of theirs; changed: other defaults;
    extra: attributes of the class; name: by default that of `theirs`.
    """
    own = {name: each.default for name, each in inspect.signature(ours).parameters.items()}
    params = take_params(theirs, dict(changed))
    renamed = {name: other for name, other in dict(renamed).items() if name in {each.name for each in params}}
    signature = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *params])

    def __init__(self, *given, **named):  # noqa: N807
        bound = signature.bind(self, *given, **named)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature
    names = {each.name for each in params}
    body = {name: value for name, value in (own | fixed).items() if name not in names}
    body |= {other: property(lambda self, name=name: getattr(self, name)) for name, other in renamed.items()}
    body |= {"__init__": __init__, "__module__": __name__, "__doc__": ours.__doc__, **dict(extra)}
    rules = dict(ours._parameter_constraints)
    body["_parameter_constraints"] = rules | {name: rules[other] for name, other in renamed.items() if other in rules}
    name = name or theirs.__name__
    made = globals()[name] = type(name, (ours,), body)  # where pickles find it
    return made


def read_level(model):
    """HGB has no level unless the loss wants one."""
    return 0.9 if model.quantile is None else model.quantile


def read_scoring(model):
    """HGB takes None for the score of the estimator."""
    given = model.__dict__["scoring"]
    return given if given is not None else "accuracy" if hasattr(model, "predict_proba") else "r2"


def write_scoring(model, value):
    """Keep what was given."""
    model.__dict__["scoring"] = value


def read_patience(model):
    """HGB stops early only if `early_stopping` says so."""
    return model.__dict__["n_iter_no_change"] if model.early_stopping is True else None


def write_patience(model, value):
    """Keep what was given."""
    model.__dict__["n_iter_no_change"] = value


def list_substitutes():
    """What stands in for what: (module, name, class)."""
    found = [(module, name, getattr(spinney, own)) for module, names in ALIKE.items() for name, own in names.items()]
    for kind in ("Classifier", "Regressor"):
        single, cart = getattr(sklearn.tree, f"ExtraTree{kind}"), getattr(spinney, f"CART{kind}")
        drawn = {name: inspect.signature(single).parameters[name].default for name in ("splitter", "max_features")}
        found.append((sklearn.tree, single.__name__, make_class(cart, cart, {}, changed=drawn, name=single.__name__)))
        ours = getattr(spinney, f"GradientBoosting{kind}")
        exact = getattr(sklearn.ensemble, f"GradientBoosting{kind}")
        binned = getattr(sklearn.ensemble, f"HistGradientBoosting{kind}")
        more = {
            "n_iter_no_change": property(read_patience, write_patience),
            "scoring": property(read_scoring, write_scoring),
            "alpha": property(read_level),
        }
        found += [
            (sklearn.ensemble, exact.__name__, make_class(ours, exact, EXACT)),
            (sklearn.ensemble, binned.__name__, make_class(ours, binned, BINNED, RENAMED, extra=more)),
        ]
    return found
