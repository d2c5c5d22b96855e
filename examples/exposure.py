"""Exposure: counts that were collected over unequal times or sizes, by a Poisson loss.

The count is the people of a district, the exposure its households; what is modelled is people per household.
`init_score=log(exposure)` does it; weighing the rates by the exposure gives the same model, as theory says.
"""

import numpy as np

from spinney import GradientBoostingRegressor, datasets

houses = datasets.load("california_housing").slice(0, 5000)
people = houses["Population"].to_numpy()
households = people / houses["AveOccup"].to_numpy()
X = houses.select(["MedInc", "HouseAge", "Latitude", "Longitude"])

settings = {
    "loss": "poisson",
    "n_estimators": 50,
    "max_bins": None,
    "random_state": 0,
}  # bins would depend on the weights
counts = GradientBoostingRegressor(**settings).fit(X, people, init_score=np.log(households))
rates = GradientBoostingRegressor(**settings).fit(X, people / households, sample_weight=households)

# The exposure is no part of the model: without it `predict` gives the rate, with it the count.
rate = counts.predict(X)
count = counts.predict(X, init_score=np.log(households))
apart = float(np.abs(rate / rates.predict(X) - 1).max())
print(f"people per household: {rate.min():.2f} to {rate.max():.2f}")
print(f"people in all: {people.sum():.0f}, predicted {count.sum():.0f}")
print(f"largest difference between the two ways: {apart:.1e}")
assert np.allclose(count, rate * households)
assert abs(count.sum() / people.sum() - 1) < 0.01
assert apart < 1e-3
