"""In scikit-learn: choose columns and settings by cross-validation, all in one pipeline."""

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline

from spinney import GradientBoostingClassifier, OOBSelector, RandomForestClassifier, datasets

table = datasets.load("glass")
names = [name for name in table.column_names if name != "Type"]
X = np.column_stack([table[name].to_numpy() for name in names])
y = np.array([str(label) for label in table["Type"].to_pylist()])

select = OOBSelector(RandomForestClassifier(n_estimators=50, random_state=0))  # columns whose loss would be felt
steps = [("select", select), ("boost", GradientBoostingClassifier(n_estimators=20, random_state=0))]
grid = {"select__max_features": [2, 6], "boost__min_samples_leaf": [5, 20]}
folds = StratifiedKFold(3, shuffle=True, random_state=0)
search = GridSearchCV(Pipeline(steps), grid, cv=folds).fit(X, y)

kept = [name for name, is_kept in zip(names, search.best_estimator_["select"].get_support(), strict=True) if is_kept]
print(f"columns kept: {', '.join(kept)}")
print(f"best settings: {search.best_params_}; accuracy in cross-validation {search.best_score_:.3f}")
assert len(kept) == search.best_params_["select__max_features"] > 2
assert 0.65 < search.best_score_ < 0.9
