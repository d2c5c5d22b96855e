"""Callbacks and early stopping: watch the rounds, and stop when held-out rows are predicted no better."""

from spinney import GradientBoostingClassifier, datasets

table = datasets.load("german_credit")
X, y = table.drop_columns(["class"]), table["class"].to_pylist()
train, held_out = X.slice(0, 700), X.slice(700, 300)

# Stop after 15 rounds without a lower loss on the rows of X_val; `predict` uses the rounds up to the best one.
stopped = GradientBoostingClassifier(n_estimators=500, learning_rate=0.05, n_iter_no_change=15, random_state=0)
stopped.fit(train, y[:700], X_val=held_out, y_val=y[700:])
curve = stopped.validation_score_
print(f"best round {stopped.best_iteration_} of {stopped.n_estimators_}, loss {curve.min():.4f}")
assert stopped.best_iteration_ == curve.argmin() + 1
assert stopped.n_estimators_ == stopped.best_iteration_ + 15

# A callback sees the losses after each round, and stops the fit by returning True.
seen = []


def stop_below(iteration, results):
    """Stop when the training loss falls below 0.45."""
    seen.append(results["train"]["loss"])
    return iteration > 1 and seen[-1] < 0.45


watched = GradientBoostingClassifier(n_estimators=500, learning_rate=0.05, random_state=0)
watched.fit(train, y[:700], callbacks=[stop_below])
print(f"stopped by the callback after round {watched.n_estimators_}, training loss {seen[-1]:.4f}")
assert len(seen) == watched.n_estimators_ < 500
assert seen[-1] < 0.45 <= seen[-2]
