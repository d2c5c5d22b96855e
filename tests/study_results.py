"""Results of methods as a study gives them, made by hand."""

from spinney.study.result import MethodResult


def result(key, scores, *, seconds=1.0, folds=None, **more):
    folds = tuple(range(len(scores))) if folds is None else folds
    times = (seconds,) * len(scores)
    return MethodResult(key, key, "E", {}, folds, tuple(scores), times, times, **more)
