"""A loss of one's own: two functions give its first and second derivative by the raw score of each row.

Here an estimate that is too low costs four times as much as one that is too high by the same amount.
"""

import numpy as np

from spinney import GradientBoostingRegressor, datasets

TOO_LOW = 4.0


def loss(y, raw):
    """Squared error, dearer where the estimate is too low."""
    return 0.5 * np.where(y > raw, TOO_LOW, 1.0) * (raw - y) ** 2


def gradient(y, raw):
    """First derivative of the loss by raw."""
    return np.where(y > raw, TOO_LOW, 1.0) * (raw - y)


def hessian(y, raw):
    """Second derivative of the loss by raw."""
    return np.where(y > raw, TOO_LOW, 1.0)


# Check the derivatives before using them: they must be the slopes of the function above them.
y, raw, step = np.array([1.0, 2.0, 3.0]), np.array([2.5, 1.5, 3.25]), 1e-6
slope = (loss(y, raw + step) - loss(y, raw - step)) / (2 * step)
assert np.allclose(slope, gradient(y, raw))
slope = (gradient(y, raw + step) - gradient(y, raw - step)) / (2 * step)
assert np.allclose(slope, hessian(y, raw))

houses = datasets.load("california_housing")
X, y = houses.drop_columns(["MedHouseVal"]), houses["MedHouseVal"].to_numpy()
plain = GradientBoostingRegressor(n_estimators=50, random_state=0).fit(X, y)
careful = GradientBoostingRegressor(n_estimators=50, loss=(gradient, hessian), random_state=0).fit(X, y)

too_low = {name: float(np.mean(model.predict(X) < y)) for name, model in {"squared": plain, "own": careful}.items()}
cost = {name: float(loss(y, model.predict(X)).mean()) for name, model in {"squared": plain, "own": careful}.items()}
print(f"estimates that are too low: squared error {too_low['squared']:.2f}, own loss {too_low['own']:.2f}")
print(f"mean of the own loss:       squared error {cost['squared']:.3f}, own loss {cost['own']:.3f}")
assert too_low["own"] < 0.3 < too_low["squared"]
assert cost["own"] < 0.9 * cost["squared"]
