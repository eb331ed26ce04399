"""custom_jvp: give a function's derivative instead of having it derived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError, TreeStructureError
from fxarray.core.hooks import operators
from fxarray.core.primitive import Zero, add_tangents
from fxarray.core.types import ArrayType
from fxarray.primitives.control.custom import CustomJVP
from fxarray.transforms.arguments import Structure, flatten_tree, function_name
from fxarray.transforms.custom_rule import (
    Record,
    read_call,
    read_signature,
    resolve_nondiff,
    split_arguments,
)
from fxarray.transforms.custom_vjp import SymbolicZero
from fxarray.transforms.statics import is_array_like
from fxarray.transforms.tangents import dense
from fxarray.tree.difference import explain_difference


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
class _Rule:
    """The rule, flat: which tangents are zero, primals, tangents of the inexact ones."""

    rule: Callable[..., Any]
    label: str
    structure: Structure
    nondiff: tuple[int, ...]
    symbolic_zeros: bool
    record: Record = field(compare=False, repr=False, default_factory=Record)

    def __call__(self, zeros: tuple[bool, ...], *arrays: Any) -> list[Any]:
        count = self.structure.array_count
        primals, given = arrays[:count], iter(arrays[count:])
        known_zero = iter(zeros)
        zero = SymbolicZero if self.symbolic_zeros else _dense_zero
        tangents = [
            next(given)
            if dtypes.is_inexact(primal.type.dtype) and not next(known_zero)
            else zero(primal.type.tangent())
            for primal in primals
        ]
        args, _ = self.structure.unflatten(primals)
        holes = Structure(
            self.structure.treedef,
            tuple((place, None) for place, _ in self.structure.static_leaves),
        )
        tangent_args, _ = holes.unflatten(tangents)
        without, primal_args = split_arguments(args, self.nondiff)
        _, tangent_list = split_arguments(tangent_args, self.nondiff)
        result = self.rule(*without, tuple(primal_args), tuple(tangent_list))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ArgumentError(
                f"the jvp rule of {self.label} must return a pair (output, output tangent), but "
                f"returned {type(result).__name__}"
            )
        outputs, self.record.output = flatten_tree(result[0], "output")
        out_tangents = self._read_tangents(outputs, result[1])
        return [*outputs, *out_tangents]

    def _read_tangents(self, outputs: Sequence[Any], tree: Any) -> list[Any]:
        structure = self.record.output
        assert structure is not None
        try:
            parts = structure.select(structure.treedef.flatten_up_to(tree))
        except ValueError:
            given = flatten_tree(tree, "tangent")[1].treedef
            raise TreeStructureError(
                f"the jvp rule of {self.label} must return an output tangent of the output's "
                f"structure: {explain_difference(structure.treedef, given, name='tangent')}"
            ) from None
        results: list[Any] = []
        for path, output, part in zip(structure.paths(), outputs, parts, strict=True):
            expected = output.type.tangent()
            if not dtypes.is_inexact(expected.dtype):
                continue
            if part is None or isinstance(part, (Zero, SymbolicZero)):
                results.append(operators.zeros(expected.strong()))
                continue
            if not is_array_like(part):
                raise TreeStructureError(
                    f"the jvp rule of {self.label} returned output{path} of type {output.type} "
                    f"with a {type(part).__name__} as its tangent"
                )
            value = part if isinstance(part, Array) else operators.asarray(part)
            if value.type.shape != expected.shape:
                raise ShapeError(
                    f"the jvp rule of {self.label} returned output{path} of type {output.type} "
                    f"with a tangent of type {value.type}; shapes must be equal"
                )
            if value.type.dtype != expected.dtype:
                if not value.type.weak:
                    raise DTypeError(
                        f"the jvp rule of {self.label} returned output{path} of type "
                        f"{output.type} with a tangent of type {value.type}; dtypes must be equal"
                    )
                value = operators.asarray(value, expected.dtype)
            results.append(value)
        return results


def _dense_zero(type: ArrayType) -> Any:
    return dense(Zero(type))


class custom_jvp:  # noqa: N801, a decorator, under JAX's name
    """A function whose derivative is given by a rule, in forward and in reverse mode.

    Args:
      fun: the function.
      nondiff_argnums: positions of arguments that are passed to the rule first, and have no
        tangents.
      nondiff_argnames: the same by name.

    The rule, given by `defjvp`, is `rule(*nondiff_args, primals, tangents)` and returns the output
    and its tangent, which must be linear in the tangents.

    >>> import fxarray, fxarray.numpy as fnp
    >>> @fxarray.custom_jvp
    ... def f(x):
    ...     return x * x
    >>> @f.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return f(x), 100.0 * dx
    >>> float(fxarray.grad(f)(3.0))
    100.0
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
            self._signature, nondiff_argnums, nondiff_argnames, f"custom_jvp of {self._label}"
        )
        self._rule: Callable[..., Any] | None = None
        self._symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule; returns it, so that it can be used as a decorator.

        Args:
          jvp: `(*nondiff_args, primals, tangents) -> (output, output tangent)`.
          symbolic_zeros: give the rule a `SymbolicZero` for each tangent that is known to be zero,
            in place of an array of zeros.
        """
        self._rule = jvp
        self._symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule per argument: `(tangent, output, *primals) -> output tangent`, or None."""
        if self._nondiff:
            raise ArgumentError("defjvps does not go with nondiff_argnums; use defjvp")

        def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            output = self(*primals)
            total: Any = Zero(output.type.tangent())
            for part, tangent in zip(jvps, tangents, strict=True):
                if part is not None:
                    total = add_tangents(total, part(tangent, output, *primals))
            return output, dense(total)

        self._rule = rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._rule is None:
            raise AttributeError(
                f"no derivative is defined for the custom_jvp function {self._label}; give one "
                f"with {self._label}.defjvp"
            )
        call = read_call(self._function, self._signature, self._nondiff, args, kwargs)
        record = Record()
        op = CustomJVP(
            _Function(self._function, call.structure, record),
            _Rule(
                self._rule, self._label, call.structure, self._nondiff, self._symbolic_zeros, record
            ),
        )
        results = op.bind(*call.arrays)
        assert record.output is not None
        return record.output.unflatten(results)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else lambda *args, **kwargs: self(instance, *args, **kwargs)
