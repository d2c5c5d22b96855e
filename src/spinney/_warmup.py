"""Compile ahead of the first fit."""


def warmup() -> None:
    """Compile the kernels now and keep them on disk, so that no later fit waits for the compiler.

    Useful when an image is built, or once before many worker processes start. Takes a few seconds the first
    time on a machine and about one second after that.

    Examples
    --------
    >>> import spinney
    >>> spinney.warmup()
    """
    import numpy as np

    from spinney import _jit
    from spinney.estimators.cart import CARTClassifier, CARTRegressor

    _jit.load_compiled()  # else a table this small would be interpreted
    generator = np.random.default_rng(0)
    X = generator.integers(0, 5, size=(60, 3)).astype(np.float64)
    y = generator.integers(0, 3, size=60)
    # Between them these reach every kernel with every argument type: float32, missing values, categories, two
    # classes and more, best-first order, pruning.
    with_missing = X.copy()
    with_missing[::7, 0] = np.nan
    for table in (X, with_missing, X.astype(np.float32)):
        for labels in (y, y > 0):
            CARTClassifier(categorical_features=[1]).fit(table, labels).predict_proba(table)
            CARTClassifier(max_leaf_nodes=5, ccp_alpha=0.01).fit(table, labels).apply(table)
        CARTRegressor(categorical_features=[1]).fit(table, y).predict(table)
        CARTRegressor(max_leaf_nodes=5, ccp_alpha=0.01).fit(table, y).predict(table)
