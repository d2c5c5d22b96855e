"""Prediction intervals: how far off a forest may be for a new row, and whether that is true."""

import numpy as np

from spinney import RandomForestRegressor, datasets

houses = datasets.load("california_housing")
order = np.random.default_rng(0).permutation(houses.num_rows)
train, test = houses.take(order[:4000]), houses.take(order[4000:6000])
X, y = train.drop_columns(["MedHouseVal"]), train["MedHouseVal"].to_numpy()
X_new, y_new = test.drop_columns(["MedHouseVal"]), test["MedHouseVal"].to_numpy()

forest = RandomForestRegressor(n_estimators=100, oob_score=True, random_state=0).fit(X, y)
interval = forest.predict_interval(X_new, coverage=0.9)  # from the errors of out-of-bag rows
held = (interval[:, 0] <= y_new) & (y_new <= interval[:, 1])
width = float(np.median(interval[:, 1] - interval[:, 0]))
print(f"intervals for 90 % hold {held.mean():.3f} of {len(y_new)} new values; median width {width:.2f}")
assert 0.87 < held.mean() < 0.96

# Quantiles of the target are narrow where the table is sure and wide where it is not; no model keeps its training rows.
quantiles = forest.predict_quantiles(X_new, [0.05, 0.5, 0.95], train=(X, y))
spread = quantiles[:, 2] - quantiles[:, 0]
print(f"from the 5 % to the 95 % quantile: {np.quantile(spread, 0.1):.2f} to {np.quantile(spread, 0.9):.2f}")
assert (np.diff(quantiles, axis=1) >= 0).all()
assert np.quantile(spread, 0.9) > 2 * np.quantile(spread, 0.1)
