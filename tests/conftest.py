"""Settings for every test."""

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
