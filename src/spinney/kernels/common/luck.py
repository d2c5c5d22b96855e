import numpy as np

from spinney._jit import inlined

TWO_LEVELS = 4.0 / np.pi  # luck of two levels of one size
DENSITY = 1.342  # see `normal_density_at`


@inlined
def luck(roots: float, all_roots: float, left: float, right: float, few: float) -> float:
    """What levels in order gain by chance beyond two levels, in units of the variance."""
    r = roots / all_roots
    if not 0.0 < r < 1.0:
        return 0.0
    x = r * (1.0 - r)
    root = np.sqrt(x)
    f = all_roots * ((1.0 - few) * DENSITY * x / np.sqrt(np.sqrt(root)) + few * root)
    return max(f * f * (1.0 / left + 1.0 / right) - TWO_LEVELS, 0.0)
