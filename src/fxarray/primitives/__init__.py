"""All operations, by family. Importing this package fills the registry."""

from fxarray.primitives import bits, contract, create, elementwise, fused, movement, reduce
from fxarray.primitives.control import program_call

__all__ = ["bits", "contract", "create", "elementwise", "fused", "movement", "program_call", "reduce"]
