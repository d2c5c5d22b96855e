"""What all tests share: where the real tables are, and how hard hypothesis tries."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("SPINNEY_CHECK_TYPES", "1")  # see `_jit.same_types`; before the package is imported

# Real tables kept beside the repository, not in it; tests that need them are skipped where they are absent.
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"

# The oracle is slow on purpose, so neither a deadline nor the "too slow" check says anything. The same examples each
# time: who runs the tests of a change should meet its faults only. HYPOTHESIS_PROFILE=fresh and =thorough try others.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=50,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fresh", settings.get_profile("default"), derandomize=False)
settings.register_profile("thorough", settings.get_profile("fresh"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real tables."""
    if not SHARED.is_dir():
        pytest.skip(f"no tables in {SHARED}")
    return SHARED
