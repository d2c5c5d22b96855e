"""Constraints: a prediction that may only rise with a feature, and features that may not interact."""

import numpy as np

from spinney import GradientBoostingRegressor, datasets

houses = datasets.load("california_housing")
X, y = houses.drop_columns(["MedHouseVal"]), houses["MedHouseVal"].to_numpy()
few = X.slice(0, 200)  # districts to look at


def change(table, name, values):
    """The table with other values in one column."""
    return table.set_column(table.column_names.index(name), name, [values])


settings = {"n_estimators": 60, "random_state": 0}
# Houses may not become cheaper with the income of a district.
free = GradientBoostingRegressor(**settings).fit(X, y)
rising = GradientBoostingRegressor(**settings, monotonic_cst={"MedInc": 1}).fit(X, y)


def count_falls(model):
    """How often the prediction for a district falls while its income rises in 50 steps."""
    steps = [model.predict(change(few, "MedInc", np.full(200, income))) for income in np.linspace(1, 12, 50)]
    return int((np.diff(steps, axis=0) < 0).sum())


# Latitude and longitude may stand on one path, and so may the other features, but not across.
place = {"Latitude", "Longitude"}
apart = GradientBoostingRegressor(**settings, interaction_cst=[place, set(X.column_names) - place]).fit(X, y)


def interaction(model):
    """How much a degree of latitude changes the worth of a step in income: 0 where the two do not interact."""
    north = change(few, "Latitude", few["Latitude"].to_numpy() + 1)
    rich, both = (change(table, "MedInc", few["MedInc"].to_numpy() + 1) for table in (few, north))
    difference = model.predict(both) - model.predict(north) - model.predict(rich) + model.predict(few)
    return float(np.abs(difference).max())


print(f"falls with income: free {count_falls(free)}, constrained {count_falls(rising)}")
print(f"interaction of latitude and income: free {interaction(free):.3f}, constrained {interaction(apart):.3f}")
assert count_falls(rising) == 0 < count_falls(free)
assert interaction(apart) < 1e-9
assert interaction(free) > 0.1
