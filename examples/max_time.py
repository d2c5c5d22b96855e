"""A limit of time: boosting begins no round after `max_time` seconds, and what is there is a whole model."""

from spinney import GradientBoostingRegressor, datasets

houses = datasets.load("california_housing")
X, y = houses.drop_columns(["MedHouseVal"]), houses["MedHouseVal"].to_numpy()

GradientBoostingRegressor(n_estimators=1).fit(X, y)  # the compiler's time, if it is needed, is not the model's
model = GradientBoostingRegressor(n_estimators=1_000_000, max_time=1.0, random_state=0).fit(X, y)
print(f"{model.n_estimators_} rounds of {model.n_estimators:,}, R2 of the training rows {model.score(X, y):.2f}")
assert 1 <= model.n_estimators_ < model.n_estimators

# Where time decides, a model depends on the machine. Its number of rounds makes it again.
again = GradientBoostingRegressor(n_estimators=model.n_estimators_, random_state=0).fit(X, y)
assert (again.predict(X) == model.predict(X)).all()
