"""Parameters by scikit-learn's rules, and stricter: no misspelt names, no booleans for numbers."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

import numpy as np
from sklearn.utils._param_validation import Interval, InvalidParameterError

from spinney.estimators.hints import explain_arguments, hint_parameter

Class = TypeVar("Class", bound=type)


def strict(cls: Class) -> Class:
    """Make a class of estimators, and those that inherit from it, strict with their parameters.

    Names are checked before `__init__` sees them, booleans with the other values in `_validate_params`. This is a
    decorator because estimators and selectors have no base of ours in common.
    """
    made: Any = cls

    def new(owner: Any, *_: Any, **params: Any) -> Any:
        check_spelling(owner, params)
        return super(made, owner).__new__(owner)

    def validate(self: Any) -> None:
        super(made, self)._validate_params()
        refuse_booleans(self)

    begin_heir = vars(made).get("__init_subclass__")  # of the class itself, if it has one

    def finish_heir(owner: Any, /, **options: Any) -> None:
        if begin_heir is None:
            super(made, owner).__init_subclass__(**options)
        else:
            begin_heir.__func__(owner, **options)
        finish_class(owner)

    made.__new__, made._validate_params = new, validate  # noqa: SLF001
    made.__init_subclass__ = classmethod(finish_heir)
    finish_class(made)
    return cls


def finish_class(cls: Any) -> None:
    """Keep the signature of `__init__` visible, which `__new__` would hide; let `fit` explain unknown arguments."""
    if "fit" in vars(cls):
        cls.fit = explain_arguments(vars(cls)["fit"])
    signature = inspect.signature(cls.__init__)
    cls.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])


def check_spelling(cls: Any, params: dict[str, Any]) -> None:
    """Refuse the name of a parameter that the class does not have, and say which one was probably meant."""
    if not params:
        return
    known = inspect.signature(cls.__init__).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return  # a subclass that passes names on
    for name in params:
        if name not in known:
            hint = hint_parameter(cls, name, list(known)[1:])
            raise TypeError(f"{cls.__name__} has no parameter {name!r}. {hint}")


def parameter(estimator: Any, name: str, default: Any) -> Any:
    """The value of a parameter that some classes of a family have; of a class without it, the default.

    What a class declares decides, not which attributes an estimator happens to have.
    """
    return getattr(estimator, name) if name in estimator._parameter_constraints else default  # noqa: SLF001


def refuse_booleans(estimator: Any) -> None:
    """Refuse True and False where a number is wanted: True is 1 to Python, but `max_depth=True` is a mistake."""
    for name, rules in estimator._parameter_constraints.items():  # noqa: SLF001
        value = getattr(estimator, name)
        if isinstance(value, bool | np.bool_) and any(isinstance(rule, Interval) for rule in rules):
            raise InvalidParameterError(
                f"The {name!r} parameter of {type(estimator).__name__} must be a number. Got {value} instead."
            )
