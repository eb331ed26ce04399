"""custom_vjp: give a function's reverse-mode derivative as a forward and a backward half."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, NamedTuple

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError, TreeStructureError
from fxarray.core.hooks import operators
from fxarray.core.primitive import Zero
from fxarray.core.types import ArrayType
from fxarray.primitives.control.custom_vjp import CustomVJP, VJPRule
from fxarray.transforms.arguments import Structure, flatten_tree, function_name
from fxarray.transforms.custom_rule import (
    Record,
    read_call,
    read_signature,
    resolve_nondiff,
    split_arguments,
)
from fxarray.transforms.statics import is_array_like
from fxarray.transforms.tangents import dense
from fxarray.tree.difference import explain_difference
from fxarray.tree.operations import leaves as tree_leaves
from fxarray.tree.operations import structure as tree_structure
from fxarray.tree.operations import unflatten


class CustomVJPPrimal(NamedTuple):
    """With symbolic_zeros=True, what the forward half gets for each array.

    Args:
      value: the array.
      perturbed: whether the function is being differentiated with respect to it.
    """

    value: Any
    perturbed: bool


class SymbolicZero:
    """With symbolic_zeros=True, what the backward half gets for a cotangent known to be zero."""

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type

    @property
    def shape(self) -> Any:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    def __repr__(self) -> str:
        return f"SymbolicZero({self.type})"


@dataclass(frozen=True)
class _Function:
    """The function, flat."""

    function: Callable[..., Any]
    structure: Structure
    record: Record = field(compare=False, repr=False, default_factory=Record)

    def __call__(self, *arrays: Any) -> list[Any]:
        args, _ = self.structure.unflatten(arrays)
        leaves, self.record.output = flatten_tree(self.function(*args))
        return leaves


@dataclass(frozen=True)
class _Forward:
    """The forward half, flat: outputs, then residuals."""

    forward: Callable[..., Any]
    label: str
    structure: Structure
    nondiff: tuple[int, ...]
    symbolic_zeros: bool
    record: Record = field(compare=False, repr=False, default_factory=Record)

    def __call__(self, perturbed: tuple[bool, ...], *arrays: Any) -> list[Any]:
        values: Sequence[Any] = arrays
        if self.symbolic_zeros:
            values = [_Boxed(x, p) for x, p in zip(arrays, perturbed, strict=True)]
        args, _ = self.structure.unflatten(values)
        if self.symbolic_zeros:
            args = tuple(
                _unbox(arg, plain=number in self.nondiff) for number, arg in enumerate(args)
            )
        result = self.forward(*args)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ArgumentError(
                f"the forward rule of {self.label} must return a pair (output, residuals), but "
                f"returned {type(result).__name__}"
            )
        outputs, self.record.output = flatten_tree(result[0], "output")
        residuals, self.record.residuals = flatten_tree(result[1], "residuals")
        self.record.count = len(outputs)
        return [*outputs, *residuals]


class _Boxed:
    """Carries a CustomVJPPrimal through unflattening as one leaf."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed


def _unbox(tree: Any, plain: bool) -> Any:
    leaves = [
        leaf
        if not isinstance(leaf, _Boxed)
        else leaf.value
        if plain
        else CustomVJPPrimal(leaf.value, leaf.perturbed)
        for leaf in tree_leaves(tree)
    ]
    return unflatten(tree_structure(tree), leaves)


class _Place:
    """Stands where the array of that number is among the arguments."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


@dataclass(frozen=True)
class _Backward:
    """The backward half, flat: cotangents and residuals to cotangents of all arrays."""

    backward: Callable[..., Any]
    label: str
    structure: Structure
    nondiff: tuple[int, ...]
    symbolic_zeros: bool
    types: tuple[ArrayType, ...]
    record: Record = field(compare=False, repr=False, default_factory=Record)

    def __call__(self, cotangents: Sequence[Any], *residuals: Any) -> list[Any]:
        record = self.record
        assert record.output is not None
        assert record.residuals is not None
        given = [
            SymbolicZero(c.type) if self.symbolic_zeros and type(c) is Zero else dense(c)
            for c in cotangents
        ]
        args, _ = self.structure.unflatten(list(map(_Place, range(self.structure.array_count))))
        without, _ = split_arguments(args, self.nondiff)
        for value in without:
            _refuse_arrays(value, self.label)
        result = self.backward(
            *without, record.residuals.unflatten(residuals), record.output.unflatten(given)
        )
        return self._read(result, args)

    def _read(self, result: Any, args: Sequence[Any]) -> list[Any]:
        """One cotangent per array of the arguments, checked; Zeros where the rule gives None."""
        _, differentiated = split_arguments(args, self.nondiff)
        names = [number for number in range(len(args)) if number not in self.nondiff]
        if not isinstance(result, (tuple, list)):
            raise TreeStructureError(
                f"the backward rule of {self.label} must return a tuple with one cotangent per "
                f"argument, but returned {type(result).__name__}"
            )
        if len(result) != len(differentiated):
            raise TreeStructureError(
                f"the backward rule of {self.label} must return a tuple of {len(differentiated)} "
                f"cotangents, one per differentiated argument, but returned {len(result)}"
            )
        found: list[Any] = [Zero(t.tangent()) for t in self.types]
        for number, wanted, part in zip(names, differentiated, result, strict=True):
            if part is None or isinstance(part, (Zero, SymbolicZero)):
                continue
            structure = tree_structure(wanted)
            try:
                pieces = structure.flatten_up_to(part)
            except ValueError:
                difference = explain_difference(structure, tree_structure(part), name="cotangent")
                raise TreeStructureError(
                    f"the backward rule of {self.label} returned a cotangent of another tree "
                    f"structure than argument {number}: {difference}"
                ) from None
            for place, piece in zip(tree_leaves(wanted), pieces, strict=True):
                if type(place) is _Place:
                    index = place.index
                    found[index] = self._check(piece, self.types[index], number)
        return found

    def _check(self, piece: Any, primal: ArrayType, number: int) -> Any:
        expected = primal.tangent()
        if piece is None or isinstance(piece, (Zero, SymbolicZero)):
            return Zero(expected)
        if not dtypes.is_inexact(expected.dtype):
            return Zero(expected)
        if not is_array_like(piece):
            raise TreeStructureError(
                f"the backward rule of {self.label} returned a {type(piece).__name__} as the "
                f"cotangent of an array in argument {number}, of type {primal}"
            )
        value = piece if isinstance(piece, Array) else operators.asarray(piece)
        if value.type.shape != expected.shape:
            raise ShapeError(
                f"the backward rule of {self.label} returned a cotangent of type {value.type} for "
                f"argument {number} of type {primal}; shapes must be equal"
            )
        if value.type.dtype != expected.dtype:
            if not value.type.weak:
                raise DTypeError(
                    f"the backward rule of {self.label} returned a cotangent of type "
                    f"{value.type} for argument {number} of type {primal}; dtypes must be equal"
                )
            value = operators.asarray(value, expected.dtype)
        return value


def _refuse_arrays(value: Any, label: str) -> None:
    """Arguments without derivative reach the backward rule only if they hold no arrays."""
    if any(type(leaf) is _Place for leaf in tree_leaves(value)):
        raise ArgumentError(
            f"custom_vjp of {label}: an argument in nondiff_argnums holds an array. Pass it as an "
            f"ordinary argument, and return None as its cotangent."
        )


class custom_vjp:  # noqa: N801, a decorator, under JAX's name
    """A function whose reverse-mode derivative is given by a rule in two halves.

    Args:
      fun: the function.
      nondiff_argnums: positions of arguments that are Python values, passed to the backward half
        first.
      nondiff_argnames: the same by name.

    `defvjp(forward, backward)` sets the rule: `forward` takes the function's arguments and returns
    its
    output and residuals; `backward(*nondiff_args, residuals, cotangent)` returns a tuple with one
    cotangent per differentiated argument, None standing for zero.

    >>> import fxarray, fxarray.numpy as fnp
    >>> @fxarray.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (fnp.clip(ct, -1, 1),))
    >>> float(fxarray.grad(lambda x: 10 * clipped(x))(2.0))
    1.0
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        update_wrapper(self, fun)
        self._function = fun
        self._label = function_name(fun)
        self._signature = read_signature(fun)
        self._nondiff = resolve_nondiff(
            self._signature, nondiff_argnums, nondiff_argnames, f"custom_vjp of {self._label}"
        )
        self._halves: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rule.

        Args:
          fwd: the forward half.
          bwd: the backward half.
          symbolic_zeros: give the forward half `CustomVJPPrimal`s and the backward half
            `SymbolicZero`s.
          optimize_remat: accepted for compatibility.
        """
        self._halves = (fwd, bwd)
        self._symbolic_zeros = symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._halves is None:
            raise AttributeError(
                f"no derivative is defined for the custom_vjp function {self._label}; give one "
                f"with {self._label}.defvjp"
            )
        call = read_call(self._function, self._signature, self._nondiff, args, kwargs)
        record = Record()
        forward, backward = self._halves
        common = (self._label, call.structure, self._nondiff, self._symbolic_zeros)
        types = tuple([array.type for array in call.arrays])
        rule = VJPRule(
            _Forward(forward, *common, record),
            _Backward(backward, *common, types, record),
            _OutputCount(record),
        )
        op = CustomVJP(_Function(self._function, call.structure, record), rule)
        results = op.bind(*call.arrays)
        assert record.output is not None
        return record.output.unflatten(results)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else lambda *args, **kwargs: self(instance, *args, **kwargs)


@dataclass(frozen=True)
class _OutputCount:
    record: Record = field(compare=False, repr=False, default_factory=Record)

    def __call__(self) -> int:
        return self.record.count
