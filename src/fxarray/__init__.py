"""fxarray: a JAX-style functional array library in Python."""

from fxarray._version import __version__ as __version__

# Importing these fills the hooks through which arrays find their operators and devices.
from fxarray.core.array import Array as Array
from fxarray.devices.reference import eager as _eager

# The packages of the public interface.
from fxarray import numpy as numpy
