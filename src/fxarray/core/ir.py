"""Program, Equation, Var, Literal: typed, immutable, checked as they are built.

A Program is a list of equations over typed variables. It has no free variables and, inside other
Programs, no constants: arrays that a traced function closed over become its first inputs. Only what
`make_program` gives to a user keeps them, in `constants`.

    >>> import fxarray, fxarray.numpy as fnp
    >>> print(fxarray.make_program(lambda x: fnp.sin(x) * 2)(1.0))
    def program(a: f32[]~) -> f32[]~:
        b: f32[]~ = sin(a)
        c: f32[]~ = mul(b, 2.0)
        return c
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fxarray.core import hooks
from fxarray.core.canonical import canonical_key
from fxarray.core.effects import Effect
from fxarray.core.errors import ProgramError
from fxarray.core.primitive import NO_EFFECTS, Primitive
from fxarray.core.source import Location
from fxarray.core.types import ArrayType

if TYPE_CHECKING:
    from fxarray.core.array import Array, DeviceArray


class Var:
    """A variable: an identity and a type."""

    __slots__ = ("type",)

    def __init__(self, type: ArrayType) -> None:
        self.type = type

    def __repr__(self) -> str:
        return f"Var({self.type})"


class Literal:
    """A scalar constant written where it is used."""

    __slots__ = ("_key", "type", "value")

    def __init__(self, value: DeviceArray) -> None:
        self.value = value
        self.type: ArrayType = value.type

    @property
    def key(self) -> Any:
        return ("literal", self.type, canonical_key(self.value.numpy_view()))

    def __repr__(self) -> str:
        return f"Literal({self.value.numpy_view()}: {self.type})"


Atom: TypeAlias = "Var | Literal"


class Equation:
    """`outputs = op(inputs)`. Constructing one runs the type rule, so none is ill-typed."""

    __slots__ = ("inputs", "op", "outputs", "scopes", "source")

    def __init__(
        self,
        op: Primitive,
        inputs: Sequence[Atom],
        outputs: Sequence[Var] | None = None,
        source: Location | None = None,
        scopes: tuple[str, ...] = (),
    ) -> None:
        types = op.types(*[atom.type for atom in inputs])
        if outputs is None:
            outputs = tuple([Var(type) for type in types])
        elif len(types) != len(outputs) or any(
            not var.type.same_array(type) for var, type in zip(outputs, types, strict=True)
        ):
            raise ProgramError(
                f"{op}: outputs are declared as {[v.type for v in outputs]}, but the operation "
                f"gives {list(types)}"
            )
        self.op = op
        self.inputs: tuple[Atom, ...] = tuple(inputs)
        self.outputs: tuple[Var, ...] = tuple(outputs)
        self.source = source
        self.scopes = scopes

    @property
    def effects(self) -> frozenset[Effect]:
        return self.op.effects

    def replace(
        self,
        op: Primitive | None = None,
        inputs: Sequence[Atom] | None = None,
        outputs: Sequence[Var] | None = None,
    ) -> Equation:
        """A changed copy, checked again."""
        return Equation(
            self.op if op is None else op,
            self.inputs if inputs is None else inputs,
            self.outputs if outputs is None else outputs,
            self.source,
            self.scopes,
        )

    def __reduce__(self) -> Any:
        # Source locations hold code objects, which mean nothing in another process.
        return (Equation, (self.op, self.inputs, self.outputs, None, self.scopes))

    def __repr__(self) -> str:
        return f"Equation({self.op}, {len(self.inputs)} inputs, {[v.type for v in self.outputs]})"


class Program:
    """A typed function over arrays: inputs, equations, outputs.

    Args:
      inputs: the variables that arguments are bound to.
      equations: in an order in which every variable is defined before it is used.
      outputs: variables or literals.
      constants: pairs of a variable and its array, for Programs handed to users.
      name: what was traced, for printing.
    """

    __slots__ = (
        "__weakref__",
        "_effects",
        "_hash",
        "_key",
        "_places",
        "constants",
        "equations",
        "inputs",
        "name",
        "outputs",
    )

    def __init__(
        self,
        inputs: Sequence[Var],
        equations: Iterable[Equation],
        outputs: Sequence[Atom],
        constants: Sequence[tuple[Var, Array]] = (),
        name: str = "program",
    ) -> None:
        self.inputs = tuple(inputs)
        self.equations = tuple(equations)
        self.outputs = tuple(outputs)
        self.constants = tuple(constants)
        self.name = name
        self._key: Any = None
        self._hash: int | None = None
        self._effects: frozenset[Effect] | None = None
        self._places: tuple[Any, ...] | None = None
        self._check_scope()

    def _check_scope(self) -> None:
        defined: set[Var] = set(self.inputs)
        defined.update(var for var, _ in self.constants)
        if len(defined) != len(self.inputs) + len(self.constants):
            raise ProgramError(f"{self.name}: an input variable is listed twice")
        for number, equation in enumerate(self.equations):
            for atom in equation.inputs:
                if type(atom) is Var and atom not in defined:
                    raise ProgramError(
                        f"{self.name}: equation {number} ({equation.op}) uses a variable of type "
                        f"{atom.type} that is not defined before it"
                    )
            defined.update(equation.outputs)
        for atom in self.outputs:
            if type(atom) is Var and atom not in defined:
                raise ProgramError(f"{self.name}: an output of type {atom.type} is not defined")

    @property
    def input_types(self) -> tuple[ArrayType, ...]:
        return tuple([var.type for var in self.inputs])

    @property
    def output_types(self) -> tuple[ArrayType, ...]:
        return tuple([atom.type for atom in self.outputs])

    @property
    def effects(self) -> frozenset[Effect]:
        if self._effects is None:
            found = {equation.op.effects for equation in self.equations}
            self._effects = frozenset().union(*found) if found else NO_EFFECTS
        return self._effects

    @property
    def key(self) -> Any:
        """Structural identity up to the names of variables."""
        if self._key is None:
            numbers: dict[Any, int] = {}

            def name(atom: Atom) -> Any:
                if type(atom) is Literal:
                    return atom.key
                return numbers.setdefault(atom, len(numbers))

            head = (
                tuple((name(v), v.type) for v in self.inputs),
                tuple((name(v), id(value)) for v, value in self.constants),
            )
            body = tuple(
                (e.op, tuple(map(name, e.inputs)), tuple((name(v), v.type) for v in e.outputs))
                for e in self.equations
            )
            self._key = (head, body, tuple(map(name, self.outputs)))
        return self._key

    @property
    def places(self) -> tuple[Any, ...]:
        """Where the user wrote each equation, which is no part of `key`."""
        if self._places is None:
            places = [e.source for e in self.equations]
            self._places = tuple([None if p is None else (id(p.code), p.offset) for p in places])
        return self._places

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Program)
            and len(self.equations) == len(other.equations)
            and hash(self) == hash(other)
            and self.key == other.key
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.key)
        return self._hash

    def __reduce__(self) -> Any:
        # Without the hash: strings hash differently in another process.
        return (Program, (self.inputs, self.equations, self.outputs, self.constants, self.name))

    def replace(self, **changes: Any) -> Program:
        """A changed copy, checked again."""
        names = ("inputs", "equations", "outputs", "constants", "name")
        return Program(**{name: changes.get(name, getattr(self, name)) for name in names})

    def open(self) -> tuple[Program, tuple[Array, ...]]:
        """The Program with its constants as leading inputs, and their values."""
        if not self.constants:
            return self, ()
        variables = tuple(var for var, _ in self.constants)
        values = tuple(value for _, value in self.constants)
        return self.replace(inputs=variables + self.inputs, constants=()), values

    # Names that JAX's users know.
    @property
    def in_avals(self) -> tuple[ArrayType, ...]:
        return self.input_types

    @property
    def out_avals(self) -> tuple[ArrayType, ...]:
        return self.output_types

    @property
    def eqns(self) -> tuple[Equation, ...]:
        return self.equations

    @property
    def consts(self) -> tuple[Array, ...]:
        return tuple(value for _, value in self.constants)

    def to_string(self, source: bool = False, scopes: bool = False) -> str:
        """The Program as text for people.

        Args:
          source: whether each line ends with the user's file, line and function.
          scopes: whether each line ends with the names of the scopes that it was traced in.
        """
        return hooks.printing.program(self, source=source, scopes=scopes)

    def to_python(self, source: bool = False) -> str:
        """The Program as Python source; `core.python_source.program_from_source` runs it.

        Args:
          source: whether each line ends with the user's file, line and function.
        """
        return hooks.printing.python(self, source=source)

    def __str__(self) -> str:
        return hooks.printing.program(self)

    def __repr__(self) -> str:
        return hooks.printing.program(self)
