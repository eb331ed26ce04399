"""Neural networks: models as trees, and the functions that they are made of."""

from fxarray.nn.module import Module as Module
from fxarray.nn.module import field as field
from fxarray.nn.module import static_field as static_field
