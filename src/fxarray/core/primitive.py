"""Primitive: one frozen dataclass per operation, and everything that the operation means.

An instance carries its parameters. Its canonical typed `key` is its equality, its hash and its
common-subexpression key: 0. and -0. differ, NaN equals itself, 1, 1.0 and True differ, arrays
compare by content and Programs up to renaming.

Rules take and return tuples, always. The rules are:

========== =====================================================================================
infer      `(*types) -> types`: output types, or the error that a user reads
reference  `(*arrays) -> arrays`: the value, in NumPy/SciPy alone; slow and exact
eager      like reference, fast; tested against it
jvp        `(primals, tangents) -> (outputs, output_tangents)`; a tangent may be a `Zero`
linearize  like jvp, where tangents are recorded rather than computed; derived from jvp
transpose  `(cotangents, *operands) -> cotangents`; an operand that the operation is linear in
           and that is wanted is a `Linear`; others are values. None where nothing is wanted
batch      `(size, axis_name, operands, axes) -> (outputs, output_axes)`; an axis may be None
shard      `(*types) -> Factors`: how sizes of operands and results correspond
lower      `(builder, *operands) -> results`: one element of each, in kernel IR
samples    `(rng)`: instances and operands to try the operation on
========== =====================================================================================

A rule that is missing on purpose has a sentence in `EXCUSED`; a test reads the registry.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import numpy as np

from fxarray.core import hooks
from fxarray.core.array import DeviceArray
from fxarray.core.caches import register_cache
from fxarray.core.canonical import canonical_key
from fxarray.core.context import context, find_axis
from fxarray.core.errors import MissingRuleError
from fxarray.core.types import ArrayType

if TYPE_CHECKING:
    from fxarray.core.effects import Effect

RULES = ("infer", "reference", "jvp", "transpose", "batch", "shard", "lower", "samples")
NO_EFFECTS: frozenset[Any] = frozenset()

# name -> class (or, for operations without parameters made by a table, the class of the row)
REGISTRY: dict[str, type[Primitive]] = {}


class Zero:
    """A symbolic zero tangent or cotangent: it costs nothing and is never added."""

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
        return f"Zero({self.type})"


class Linear:
    """In a transpose rule, stands for an operand whose cotangent is wanted."""

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type

    @property
    def shape(self) -> Any:
        return self.type.shape

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def _trace(self) -> Any:
        # `bind` asks for it: a rule computes with an operand that it should be linear in.
        raise MissingRuleError(
            f"a function cannot be transposed, since it is not linear: it combines two values of "
            f"type {self.type} that both depend on its linear arguments, as x * x does"
        )

    def __repr__(self) -> str:
        return f"Linear({self.type})"


def instantiate(value: Any) -> Any:
    """`value`, or an array of zeros where it is a symbolic `Zero`."""
    return hooks.operators.zeros(value.type) if type(value) is Zero else value


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents, either of which may be a Zero."""
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    return hooks.operators.add_cotangents(x, y)


def _refuse_assignment(_self: Any, name: str, _value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _has_parameters_of_its_own(cls: type) -> bool:
    annotations = inspect.get_annotations(cls)
    return any("ClassVar" not in str(annotation) for annotation in annotations.values())


@dataclass_transform(frozen_default=True, eq_default=False)
@dataclass(frozen=True, eq=False, repr=False)
class Primitive:
    """An operation of fxarray; see the module's docstring for its rules.

    Subclass it with a name; fields become the operation's parameters, and the class is entered in
    `REGISTRY`:

        class Scale(Primitive, name="scale"):
            factor: float
    """

    name: ClassVar[str] = ""
    EXCUSED: ClassVar[dict[str, str]] = {}
    # Operands in which the operation is jointly linear; gives `jvp`.
    linear_operands: ClassVar[tuple[int, ...]] = ()
    # True where every derivative is zero (comparisons, integer results); gives `jvp`.
    differentiable: ClassVar[bool] = True
    # Whether `transpose_into` exists: the rule can add to a running cotangent without a dense zero.
    accumulates: ClassVar[bool] = False
    # Whether its rules are about types alone, and cheap: then derivatives are worked out per types.
    plain_rules: ClassVar[bool] = False
    # Whether `infer` may be remembered by (operation, types).
    memoise_infer: ClassVar[bool] = True

    _only: ClassVar[Primitive | None] = None
    # Whether the class has axis names at all, which `bind` would otherwise ask each time.
    _communicates: ClassVar[bool] = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__hash__ is not object.__hash__:
            return object.__new__(cls)
        if cls._only is None:
            cls._only = object.__new__(cls)
        return cls._only

    def __reduce__(self) -> Any:
        cls = type(self)
        # Classes made from rows of tables are found by name, since they are in no module.
        if REGISTRY.get(cls.name) is cls:
            return (unpickle, (cls.name, tuple(self.parameters().values())))
        return (cls, tuple(self.parameters().values()))

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._communicates = cls.axis_names is not Primitive.axis_names
        if _has_parameters_of_its_own(cls):
            dataclass(frozen=True, eq=False, repr=False)(cls)
        else:
            # Making a dataclass compiles source, which for hundreds of rows is felt at import.
            cls.__setattr__ = _refuse_assignment  # type: ignore[method-assign]
        if not fields(cls):  # type: ignore[arg-type]
            # Without parameters there is one instance, so identity is equality, at full speed.
            cls._only = None
            cls.__eq__ = object.__eq__  # type: ignore[method-assign]
            cls.__hash__ = object.__hash__  # type: ignore[method-assign]
        else:
            cls.__eq__ = Primitive.__eq__  # type: ignore[method-assign]
            cls.__hash__ = Primitive.__hash__  # type: ignore[method-assign]
        if name is not None:
            cls.name = name
            register(cls)

    @property
    def effects(self) -> frozenset[Effect]:
        """What the operation does besides computing its results."""
        return NO_EFFECTS

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        """The named axes that the operation communicates over."""
        return ()

    # --- identity ---------------------------------------------------------------------------

    @property
    def key(self) -> tuple[Any, ...]:
        cached = self.__dict__.get("_key")
        if cached is None:
            cached = (type(self), *map(canonical_key, self.parameters().values()))
            object.__setattr__(self, "_key", cached)
        return cached

    def parameters(self) -> dict[str, Any]:
        """The operation's parameters by name."""
        names = _FIELD_NAMES.get(type(self))
        if names is None:
            names = _FIELD_NAMES[type(self)] = tuple(field.name for field in fields(self))  # type: ignore[arg-type]
        values = self.__dict__
        return {name: values[name] for name in names}

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and self.key == other.key  # type: ignore[union-attr]

    def __hash__(self) -> int:
        cached = self.__dict__.get("_hash")
        if cached is None:
            cached = hash(self.key)
            object.__setattr__(self, "_hash", cached)
        return cached

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{self.name}[{parameters}]" if parameters else self.name

    # --- calling ----------------------------------------------------------------------------

    def bind(self, *operands: Any) -> tuple[Any, ...]:
        """Apply the operation; always returns a tuple."""
        trace: Any = context.staging
        if trace is None and not self._communicates:
            for operand in operands:
                if type(operand) is not DeviceArray:
                    break
            else:
                return hooks.execution.execute(self, operands)
        level = -1 if trace is None else trace.level
        try:
            for operand in operands:
                candidate = operand._trace
                if candidate is not None and candidate.level > level:
                    trace, level = candidate, candidate.level
        except AttributeError:
            return self.bind(*map(hooks.operators.asarray, operands))
        if self._communicates:
            for axis_name in self.axis_names:
                axis_trace = find_axis(axis_name).trace
                if axis_trace is not None and axis_trace.level > level:
                    trace, level = axis_trace, axis_trace.level
        if trace is None:
            return hooks.execution.execute(self, operands)
        return trace.process(self, operands)

    def __call__(self, *operands: Any) -> Any:
        """Apply the operation; a single result is returned bare."""
        results = self.bind(*operands)
        return results[0] if len(results) == 1 else results

    def types(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """`infer`, remembered."""
        if not self.memoise_infer:
            return self.infer(*types)
        memo_key = (self, types)
        known = _INFERRED.get(memo_key)
        if known is None:
            known = self.infer(*types)
            if len(_INFERRED) >= _INFERRED_LIMIT:
                _INFERRED.clear()
            _INFERRED[memo_key] = known
        return known

    # --- rules ------------------------------------------------------------------------------

    def missing(self, rule: str, hint: str = "") -> MissingRuleError:
        reason = self.EXCUSED.get(rule) or hint or f"{type(self).__name__}.{rule} is not defined"
        return MissingRuleError(f"{self.name} has no {rule} rule: {reason}")

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        raise self.missing("infer")

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        raise self.missing("reference")

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.reference(*arrays)

    def bare_function(self, dtype: Any) -> Callable[..., Any] | None:
        """NumPy's own function for operands of a dtype, if the operation is just that.

        It gives the one result as it is, maybe as a NumPy scalar.
        """
        return None

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if not self.differentiable:
            outputs = self.bind(*primals)
            return outputs, tuple(Zero(output.type.tangent()) for output in outputs)
        if not self.linear_operands:
            raise self.missing("jvp")
        outputs = self.bind(*primals)
        if all(type(tangents[i]) is Zero for i in self.linear_operands):
            return outputs, tuple(Zero(output.type.tangent()) for output in outputs)
        mixed = [
            instantiate(tangents[i]) if i in self.linear_operands else primals[i]
            for i in range(len(primals))
        ]
        return outputs, self.bind(*mixed)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self.jvp(primals, tangents)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        raise self.missing("transpose")

    def transpose_into(
        self, running: Sequence[Any], cotangents: Sequence[Any], *operands: Any
    ) -> Sequence[Any]:
        """Like transpose, returning running totals (None where there is none yet) with it added."""
        raise self.missing("transpose_into")

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        raise self.missing("batch")

    def shard(self, *types: ArrayType) -> Any:
        raise self.missing("shard")

    def lower(self, builder: Any, *operands: Any) -> Any:
        raise self.missing("lower")

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        """Instances and operands to test the operation on: edge sizes first, no two equal."""
        raise MissingRuleError(f"{cls.name} has no samples")

    # --- hooks of operations that carry functions or Programs -----------------------------------

    # True for an operation that carries a Python function, which `run_function` calls.
    runs_function: ClassVar[bool] = False

    def run_function(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Call the Python function that the operation carries on concrete arrays."""
        raise self.missing("run_function")

    def batch_function(
        self,
        outer: Any,
        size: Any,
        axis_name: Hashable,
        operands: Sequence[Any],
        axes: Sequence[int | None],
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        """`batch` of an operation that carries a function.

        Args:
          outer: the trace that maps it, over whose values the function may close.
          size: of the mapped axis.
          axis_name: its name, or None.
          operands: as for `batch`.
          axes: as for `batch`.
        """
        raise self.missing("batch_function")

    @property
    def compiled_program(self) -> Any:
        """The Program that a device compiles to run the operation, or None to use `eager`."""
        return None

    def staged(self, trace: Any, operands: Sequence[Any]) -> tuple[Primitive, Sequence[Any]]:
        """The form of the operation that a Program records, and its operands.

        Operations that carry a Python function override it to carry a Program instead.
        """
        return self, operands

    def kept_outputs(self, used_outputs: Sequence[bool]) -> Sequence[bool]:
        """For dead-code elimination: which outputs stay if these are used.

        More than the used ones in a loop, where a carry may be needed to compute another.
        """
        return used_outputs

    def used_operands(self, used_outputs: Sequence[bool]) -> tuple[Primitive, Sequence[bool]]:
        """For dead-code elimination: a smaller operation giving only the used outputs.

        Returns the operation and which operands it still needs. Its outputs are the used ones
        (`kept_outputs` has been applied). The default keeps everything.
        """
        return self, ()


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}
_INFERRED: dict[Any, tuple[ArrayType, ...]] = {}
_INFERRED_LIMIT = 100_000


# Operations that rules and wrappers make over and over, by class and parameters.
_REMEMBERED: dict[Any, Primitive] = {}
_REMEMBERED_LIMIT = 10_000


def remembered(cls: type[Primitive], *parameters: Any) -> Any:
    """`cls(*parameters)`, made once: its key and hash are then known.

    Args:
      cls: the operation's class.
      parameters: ints, bools, dtypes and tuples of these; each parameter always of one type. With
        symbolic sizes among them a new operation is made.
    """
    for parameter in parameters:
        if type(parameter) is tuple:
            for item in parameter:
                if type(item) is not int:
                    return cls(*parameters)
    key = (cls, parameters)
    known = _REMEMBERED.get(key)
    if known is None:
        if len(_REMEMBERED) >= _REMEMBERED_LIMIT:
            _REMEMBERED.clear()
        known = _REMEMBERED[key] = cls(*parameters)
    return known


register_cache(_REMEMBERED.clear)
register_cache(_INFERRED.clear)


def unpickle(name: str, parameters: tuple[Any, ...]) -> Primitive:
    """The operation of a registered name with these parameters."""
    return REGISTRY[name](*parameters)


def register(cls: type[Primitive]) -> None:
    """Enter a primitive class in the registry; names are unique."""
    known = REGISTRY.get(cls.name)
    if known is not None and (known.__module__, known.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        raise ValueError(
            f"a primitive called {cls.name!r} is already defined in {known.__module__}"
        )
    REGISTRY[cls.name] = cls


@dataclass(frozen=True)
class Sample:
    """One trial of a primitive: an instance, its operands, and how to check it.

    Args:
      op: the primitive.
      operands: NumPy arrays.
      tolerance: relative error allowed between devices and reference, in units of the dtype's
        epsilon times the number of added terms.
      differentiable: whether derivatives exist at these operands.
      error: for a bad sample, the class of the error that `infer` must raise.
    """

    op: Primitive
    operands: tuple[Any, ...]
    tolerance: float = 16.0
    differentiable: bool = True
    error: type[Exception] | None = None
