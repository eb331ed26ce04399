"""All operations, by family. Importing this package fills the registry."""

from fxarray.primitives import contract, create, elementwise, movement, reduce
from fxarray.primitives.control import program_call

__all__ = ["contract", "create", "elementwise", "movement", "program_call", "reduce"]
