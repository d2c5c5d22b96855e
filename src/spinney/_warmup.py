"""Compile ahead of the first fit."""


def warmup() -> None:
    """Compile the kernels now and keep them on disk, so that no later fit or predict waits for the compiler.

    Useful when an image is built, or once before many worker processes start. Takes some twenty seconds
    the first time on a machine and about one second after that.

    Examples
    --------
    >>> import spinney
    >>> spinney.warmup()
    """
    import numpy as np

    from spinney import _jit
    from spinney.estimators.cart import CARTClassifier, CARTRegressor

    _jit.load_compiled()  # else a table this small would be interpreted
    X = np.arange(20.0).reshape(10, 2) % 7
    y = np.arange(10) % 3
    # A kernel is compiled per combination of argument types. Those of growing differ by the family of the
    # target and by whether there are categories, those of routing by the type of the values; binning has one.
    for categorical in (None, [0]):
        CARTClassifier(categorical_features=categorical).fit(X, y).predict(X)
        CARTRegressor(categorical_features=categorical).fit(X, y).predict(X)
    CARTRegressor(max_bins=2).fit(X, y).predict(X.astype(np.float32))
