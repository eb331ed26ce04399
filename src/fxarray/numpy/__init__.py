"""The NumPy interface: functions on immutable arrays, by NumPy's and JAX's names."""

from fxarray.numpy import operators as _operators  # fills the operators of Array
from fxarray.numpy.conversion import array as array
from fxarray.numpy.conversion import asarray as asarray
from fxarray.numpy.creation import arange as arange
from fxarray.numpy.creation import ones as ones
from fxarray.numpy.creation import zeros as zeros
