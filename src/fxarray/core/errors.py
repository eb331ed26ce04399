"""Every error that fxarray raises on purpose, one class per kind.

A class's docstring is its page in the docs: cause, example, fix. A message names the operation,
the operand, shapes and dtypes; the place in the user's own code is appended when the error is made.
Each class also derives from the built-in exceptions that NumPy and JAX raise for the same mistake,
so that existing ``except`` clauses keep working.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

from fxarray.core import source
from fxarray.tree import StructureMismatch


class FxArrayError(Exception):
    """The base of all errors raised by fxarray."""

    location: source.Location | str | None

    def __init__(self, message: str = "") -> None:
        self.location = source.user_location()
        self.message = message
        text = message if self.location is None else f"{message}\n    at {self.location}"
        super().__init__(text)

    def __reduce__(self) -> tuple[Any, ...]:
        # A location holds a code object, which cannot be pickled; its text can.
        place = None if self.location is None else str(self.location)
        return (_unpickle, (type(self), self.message, self.args, place))


class ShapeError(FxArrayError, TypeError, ValueError):
    """Operand shapes do not fit together.

    ``fnp.ones(3) + fnp.ones(4)`` raises this: sizes must be equal or one. Reshape, slice or
    broadcast one of the operands named in the message.
    """


class DTypeError(FxArrayError, TypeError):
    """An operation does not accept an operand's dtype, or two dtypes have no common one.

    ``fnp.sin`` of integers given to ``lax.sin`` raises this; cast first: ``x.astype(float)``.
    """


class TypePromotionError(DTypeError, ValueError):
    """Two operands have no common dtype that an operation could silently convert them to.

    ``x_float8 * y_bfloat16`` raises this: the float8 kinds, int4 and int2 convert only when asked,
    and random keys never. Cast one operand: ``x_float8.astype(y_bfloat16.dtype) * y_bfloat16``.
    """


class AxisError(FxArrayError, ValueError, IndexError):
    """An axis is out of range for the array's number of dimensions, or is given twice."""


class ArgumentError(FxArrayError, ValueError, TypeError):
    """An argument has a value or type that the function cannot take."""


class UnboundAxisError(ArgumentError, NameError):
    """A collective names an axis that no enclosing ``vmap`` or ``shard_map`` has.

    ``lax.psum(x, "i")`` outside ``vmap(..., axis_name="i")`` raises this. Give the ``vmap`` that
    name, or correct the name.
    """


class TreeStructureError(FxArrayError, StructureMismatch):
    """Two pytrees that must have the same structure differ; the message names the first leaf.

    Typical cause: a loop body that returns its carry as a list where it was given a tuple.
    """


class CarryTypeError(FxArrayError, TypeError):
    """A loop's body or a branch changes the type of a value that must keep it.

    ``scan(lambda c, _: (c * 0.5, None), numpy.int32(1), None, length=3)`` starts with an integer
    and returns a float. Start with ``1.0``, or cast inside the body.
    """


class LoopBoundError(FxArrayError, RuntimeError):
    """A ``while_loop(max_steps=n)`` stopped after n steps although its condition still held.

    Raised under the ``debug`` setting only; otherwise the loop stops there silently. Raise
    ``max_steps``.
    """


class OutOfBoundsError(FxArrayError, IndexError):
    """A static index lies outside the axis that it indexes.

    Traced indices are clamped (reads) or dropped (writes) as in JAX; one that is known while
    tracing is a mistake, and is reported.
    """


class IndexingError(FxArrayError, IndexError, TypeError):
    """An index is of a kind, number or shape that the array cannot take.

    Indices are integers, slices with known bounds, ``None``, ``...``, and arrays of integers or
    bools;
    a bool array must have the sizes of the dimensions that it masks. ``x[i:i + 3]`` with a traced
    ``i`` raises this: use ``lax.dynamic_slice_in_dim(x, i, 3)``.
    """


class ConcretizationError(FxArrayError, TypeError):
    """A traced value was used where its concrete value is needed.

    Under ``jit`` a value stands for all values of its type, so ``if x > 0`` has no answer. Use
    ``lax.cond`` or ``numpy.where``, mark the argument static, or move the code out of ``jit``.
    """


ConcretizationTypeError = ConcretizationError  # JAX's name, which code that comes over catches


class InconclusiveDimension(FxArrayError, TypeError):
    """A comparison of symbolic sizes is true for some sizes and false for others.

    ``if batch == 1`` with ``batch = ShapeVar("batch")`` raises this, since one trace serves every
    size. Promise more of the variable (``ShapeVar("batch", min=2)``), state what always holds
    (``with assuming("batch % 2 == 0")``), or choose by values: ``lax.cond``, ``numpy.where``.
    """


class SymbolicSizeError(FxArrayError, TypeError):
    """A symbolic size was used where a Python number is needed: ``range(batch)``, ``int(batch)``.

    Loop with ``lax.fori_loop`` or ``lax.scan``, use the size as an array value, or do not make that
    dimension symbolic.
    """


class TracerBoolConversionError(ConcretizationError):
    """``bool()`` of a traced value: ``if``, ``while``, ``and``, ``or``, ``assert`` need one.

    Use ``lax.cond``, ``lax.while_loop`` or ``numpy.where``, or mark the argument static.
    """


class TracerIntegerConversionError(ConcretizationError):
    """A traced value was used as a Python integer: in ``range``, as a shape, as a list index.

    Shapes and Python loop bounds must be known while tracing; mark the argument static, or use
    ``lax.fori_loop``.
    """


class TracerArrayConversionError(ConcretizationError):
    """NumPy was asked to convert a traced value, as by ``np.sin(x)``.

    Use the function of the same name in ``fxarray.numpy``.
    """


class NonConcreteBooleanIndexError(FxArrayError, IndexError):
    """A traced boolean mask was used as an index, whose result's size would depend on values.

    Use ``numpy.where(mask, x, fill)``, ``x.at[mask].set(value)``, or ``numpy.nonzero(size=...)``.
    """


class UnexpectedTracerError(FxArrayError, TypeError):
    """A tracer outlived the transformation that made it (it leaked).

    Typical cause: a traced function stores an intermediate value in a global, a list or ``self``.
    Return the value from the function instead.
    """


class StaticArgumentError(FxArrayError, ValueError, TypeError):
    """A leaf that is not an array cannot be used as a static value.

    Static values must compare and hash by value (or be functions, classes, modules, strings...).
    Give the class ``__eq__`` and ``__hash__``, register it as a pytree, or pass arrays.
    """


class DeletedArrayError(FxArrayError, RuntimeError):
    """The array's memory was donated to a compiled call and is gone.

    Keep the result of the call instead of its donated argument, or do not donate it.
    """


class ImmutableArrayError(FxArrayError, TypeError):
    """An array was assigned to in place; arrays are immutable. Use ``x = x.at[i].set(value)``."""


class ImmutableModuleError(FxArrayError, FrozenInstanceError):
    """A field of a Module was assigned after its ``__init__`` had returned; Modules are immutable.

    Make a changed copy: ``model = model.replace(bias=bias)``.
    """


class MissingRuleError(FxArrayError, NotImplementedError):
    """A primitive has no rule for a transformation, on purpose; the message gives the reason."""


class NonDifferentiableError(FxArrayError, TypeError, ValueError):
    """A derivative was asked of something that has none: an integer input, a complex loss."""


class ProgramError(FxArrayError, TypeError):
    """A Program is ill-formed: an undefined variable, a wrong type, an effect not declared."""


class CallbackError(FxArrayError, RuntimeError):
    """A Python callback inside a compiled function raised, or returned values of another type."""


class NonFiniteError(FxArrayError, FloatingPointError):
    """An operation gave a NaN or an infinity while ``debug_nans`` or ``debug_infs`` was on.

    The message names the operation and your line. Look at its operands: a division by zero, a
    logarithm or root of a negative number, an overflow.
    """


class CompilerError(FxArrayError, RuntimeError):
    """LLVM refused the code that was generated for a Program, or could not link it.

    It is a fault of fxarray's, not of your code; the message holds LLVM's reason. Please report it.
    """


class OutOfMemoryError(FxArrayError, MemoryError):
    """There is not enough memory for an array; the message says how much was asked for.

    Use smaller batches, ``checkpoint`` to recompute instead of storing, or donate arguments that
    the call may overwrite.
    """


__all__ = [
    "ArgumentError",
    "AxisError",
    "CallbackError",
    "CarryTypeError",
    "CompilerError",
    "ConcretizationError",
    "ConcretizationTypeError",
    "DTypeError",
    "DeletedArrayError",
    "FxArrayError",
    "ImmutableArrayError",
    "ImmutableModuleError",
    "InconclusiveDimension",
    "IndexingError",
    "LoopBoundError",
    "MissingRuleError",
    "NonConcreteBooleanIndexError",
    "NonDifferentiableError",
    "NonFiniteError",
    "OutOfBoundsError",
    "OutOfMemoryError",
    "ProgramError",
    "ShapeError",
    "StaticArgumentError",
    "SymbolicSizeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TreeStructureError",
    "TypePromotionError",
    "UnboundAxisError",
    "UnexpectedTracerError",
]


def _unpickle(
    cls: type[FxArrayError], message: str, args: tuple[Any, ...], place: str | None
) -> FxArrayError:
    error = cls.__new__(cls, *args)
    error.args, error.message, error.location = args, message, place
    return error
