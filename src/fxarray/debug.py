"""Debugging of traced and compiled functions: print, callback, breakpoint."""

from fxarray.transforms.debugging import breakpoint as breakpoint
from fxarray.transforms.debugging import callback as callback
from fxarray.transforms.debugging import print as print
