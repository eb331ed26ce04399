"""Regions of groups: numbers instead of variables, and what to do where one kernel cannot be."""

from __future__ import annotations

from typing import Any

from fxarray.compile.fuse.group import Group
from fxarray.compile.fuse.kernels import External, Operand, Region, Result
from fxarray.compile.fuse.summary import Summary, summaries
from fxarray.core.ir import Literal, Program, Var
from fxarray.kernel import sizes
from fxarray.kernel.build import Index, kernel_dtype
from fxarray.kernel.ir import Affine, Const
from fxarray.kernel.sizes import Size


class Part:
    """Some operations of a group, to be one kernel.

    Args:
      program: the Program.
      members: places of the operations, in order.
      roots: what is stored, and its index.
      axes: the axes of the indices.
      spans: axes that were split, in terms of their parts.
    """

    def __init__(
        self,
        program: Program,
        members: list[int],
        roots: dict[Var, Index],
        axes: dict[str, Size],
        spans: tuple[tuple[Affine, Size], ...] = (),
    ) -> None:
        self.program = program
        self.members = members
        self.roots = roots
        self.axes = axes
        self.spans = spans
        self.externals: list[Var] = []

    @staticmethod
    def of_group(program: Program, group: Group) -> Part:
        # Axes are numbered anew, so that equal groups make equal regions.
        names = {name: f"i{number}" for number, name in enumerate(group.axes)}
        changes: Any = {name: Affine.of(new) for name, new in names.items()}
        used = {axis for index in group.roots.values() for p in index for axis in p.axes}
        # Largest first: its axes are those of the loops, and reductions find theirs among them.
        places = {v: n for m in group.members for n, v in _outputs(program, m)}
        largest = sorted(group.roots.items(), key=lambda item: (-len(item[1]), places[item[0]]))
        return Part(
            program,
            sorted(group.members),
            {v: tuple([p.replace(changes) for p in index]) for v, index in largest},
            {names[name]: size for name, size in group.axes.items() if name in used},
            tuple(
                [
                    (span.replace(changes), size)
                    for span, size in group.spans
                    if used.issuperset(span.axes)
                ]
            ),
        )

    def region(self) -> Region:
        """The operations with numbers for variables; notes which variables are external."""
        numbers: dict[Var, Operand] = {}
        operations: list[Any] = []
        self.externals = []
        equations = self.program.equations
        for place, member in enumerate(self.members):
            equation = equations[member]
            operands: list[Operand] = []
            for atom in equation.inputs:
                if type(atom) is Literal:
                    operands.append(literal_constant(atom))
                    continue
                variable: Any = atom
                known = numbers.get(variable)
                if known is None:
                    known = numbers[variable] = External(len(self.externals))
                    self.externals.append(variable)
                operands.append(known)
            operations.append((equation.op, tuple(operands)))
            for output, variable in enumerate(equation.outputs):
                numbers[variable] = Result(place, output)
        roots: list[Any] = [(numbers[variable], index) for variable, index in self.roots.items()]
        return Region(
            tuple(self.axes.items()),
            tuple(operations),
            tuple([_type(variable) for variable in self.externals]),
            tuple(roots),
            tuple([_type(variable) for variable in self.roots]),
            self.spans,
        )

    def cut_product(self) -> list[Part] | None:
        """Parts with less around a product of matrices; None if there is nothing around it."""
        place = self._product()
        equation = self.program.equations[self.members[place]]
        made = {v: n for n, m in enumerate(self.members) for _, v in _outputs(self.program, m)}
        before = [made[a] for a in equation.inputs if type(a) is Var and a in made]  # type: ignore[index]
        computed = [number for number in before if not self._is_view(number)]
        if computed:
            return self.cut(computed[0])
        # What is only moved is best read by the product itself.
        after = any(m > self.members[place] for m in self.members)
        if after:
            return self.cut(place)
        return self.cut(before[0]) if before else None

    def _summaries(self, number: int) -> tuple[Summary, ...]:
        equation = self.program.equations[self.members[number]]
        inputs = [atom.type for atom in equation.inputs]
        found = summaries(equation.op, inputs, [v.type for v in equation.outputs])
        return tuple([summary for summary in found if summary is not None])

    def _is_view(self, number: int) -> bool:
        return all(summary.is_view for summary in self._summaries(number))

    def _product(self) -> int:
        """The number of the last operation that is a product."""
        for place in range(len(self.members) - 1, -1, -1):
            if any(summary.contract for summary in self._summaries(place)):
                return place
        raise AssertionError("a kernel has a Contract that no operation made")

    def cut(self, operation: int) -> list[Part]:
        """Two parts: what remains when the results of an operation are in memory, and that."""
        member = self.members[operation]
        wanted = self.program.equations[member].outputs
        below = self._needed(wanted, frozenset())
        own = _own_axes(self.program, self._used(wanted), below)
        rest = {v: index for v, index in self.roots.items() if v not in wanted}
        parts = list(own)
        if rest:
            above = self._needed(rest, frozenset(wanted))
            parts.append(Part(self.program, above, rest, self.axes, self.spans))
        if any(part.members == self.members and part.roots == self.roots for part in parts):
            raise AssertionError(f"{self.program.equations[member]} has no kernel")
        return parts

    def _used(self, wanted: Any) -> list[Var]:
        """The results of an operation that something else reads."""
        others = [self.program.equations[m] for m in self.members]
        read = {a for equation in others for a in equation.inputs if type(a) is Var}
        return [v for v in wanted if v in read or v in self.roots]

    def _needed(self, wanted: Any, without: frozenset[Var]) -> list[int]:
        """The members that some variables need, if others are in memory."""
        live = set(wanted)
        found: list[int] = []
        for member in reversed(self.members):
            equation = self.program.equations[member]
            if any(v in live and v not in without for v in equation.outputs):
                found.append(member)
                live.update(a for a in equation.inputs if type(a) is Var)
        found.reverse()
        return found


def _outputs(program: Program, member: int) -> list[tuple[tuple[int, int], Var]]:
    outputs = program.equations[member].outputs
    return [((member, number), variable) for number, variable in enumerate(outputs)]


def _own_axes(program: Program, roots: list[Var], members: list[int]) -> list[Part]:
    """Parts that store results of one operation, each over the axes of its own shape."""
    shapes: dict[Any, list[Var]] = {}
    for variable in roots:
        shapes.setdefault(sizes.kernel_shape(variable.type.shape), []).append(variable)
    parts: list[Part] = []
    for shape, variables in shapes.items():
        axes = {f"i{d}": size for d, size in enumerate(shape) if size != 1}
        index = tuple([Affine() if s == 1 else Affine.of(f"i{d}") for d, s in enumerate(shape)])
        parts.append(Part(program, members, dict.fromkeys(variables, index), axes))
    return parts


def _type(variable: Var) -> tuple[tuple[Size, ...], str]:
    type = variable.type
    return sizes.kernel_shape(type.shape), kernel_dtype(type.dtype)


def literal_constant(literal: Literal) -> Const:
    """The number of a literal, as kernels write it."""
    return Const(literal.value.numpy_view().item(), kernel_dtype(literal.type.dtype))
