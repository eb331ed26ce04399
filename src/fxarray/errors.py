"""All errors that fxarray raises on purpose."""

from fxarray.core.errors import *  # noqa: F403
