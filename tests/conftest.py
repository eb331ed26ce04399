"""Settings for every test."""

import pytest
from hypothesis import HealthCheck, settings

# Times vary too much on a shared machine for a deadline to mean anything; examples do not depend
# on chance, so that a failure is the same everywhere.
settings.register_profile(
    "fxarray",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fxarray")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name parameters without addresses, so that every worker collects the same names."""
    if " at 0x" in repr(val):
        return f"{argname}-{getattr(val, '__name__', type(val).__name__)}"
    return None
