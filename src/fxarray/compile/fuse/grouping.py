"""Which operations of a Program become one kernel.

Operations are visited from the last to the first, so that all that read a result are known. An
operation joins the group that reads it, if the rules allow it: it is then never stored, or stored
beside the group's other results. Where several groups read it, they are merged if they go through
the same elements; else it is computed again in each if that costs less than memory traffic, or
stored. The rules are in `joining`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fxarray.compile.fuse.attention import rows_between
from fxarray.compile.fuse.derived import Origins
from fxarray.compile.fuse.group import FACTOR, Group, Node, StepNode
from fxarray.compile.fuse.joining import Joining, is_cheap
from fxarray.compile.fuse.merging import may_merge, merged
from fxarray.compile.fuse.order import in_order
from fxarray.compile.fuse.policy import Policy
from fxarray.compile.fuse.recomputing import Recomputing
from fxarray.compile.fuse.summary import Summary, summaries
from fxarray.core.ir import Equation, Program, Var
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.kernel import sizes
from fxarray.kernel.ir import Affine

# How many nodes a search for a dependency visits before it takes one for granted.
_SEARCH = 200
# In Programs of at most so many kernels (bodies of loops) the tiny ones are merged.
_FEW_GROUPS = 24
# With how many of the groups that read a value another one is tried to be merged.
_TRIED = 6
# Operations that keep the elements in their order, though their indices may not be affine.
_SAME_MEMORY = frozenset(["reshape", "copy", "stop_gradient", "checkpoint_name"])


class Grouping:
    """The nodes of a Program; `order` gives them in an order to run them in.

    Args:
      program: simplified, so without calls.
      policy: the device's.
      regions: a number for each equation; those of different numbers stay apart.
    """

    def __init__(
        self, program: Program, policy: Policy, regions: Sequence[int] | None = None
    ) -> None:
        self.program = program
        self.regions = regions
        self.policy = policy
        self.joining = Joining(policy)
        self.producers: dict[Var, int] = {}
        self.users: dict[Var, list[int]] = {}
        for number, equation in enumerate(program.equations):
            for variable in equation.outputs:
                self.producers[variable] = number
            for atom in equation.inputs:
                if type(atom) is Var:
                    self.users.setdefault(atom, []).append(number)
        # Operations of attention, and the group of their second product.
        self.attention: dict[int, Group] = {}
        # Groups that read a variable, and steps that do; None stands for the Program's outputs.
        self.readers: dict[Var, dict[Group, None]] = {}
        self.outside: dict[Var, list[Node | None]] = {}
        # The nodes that make what is in memory.
        self.homes: dict[Var, Node] = {}
        # Variables that are the memory of another one, and the reverse.
        self.views: dict[Var, Var] = {}
        self.viewers: dict[Var, list[Var]] = {}
        self.empty: set[Var] = set()
        self.steps: list[StepNode] = []
        self.groups: dict[Group, None] = {}
        for atom in program.outputs:
            if type(atom) is Var:
                self.outside.setdefault(atom, []).append(None)
                self.users.setdefault(atom, []).append(-1)
        self.origins = Origins()
        self.summaries = [self._summaries(equation) for equation in program.equations]
        # Operations whose results are stored by kernels that compute large matrices again.
        self.placed: set[int] = set()
        found = Recomputing(program, self.summaries, self.producers, self.users, policy)
        for group in found.groups:
            self._place_whole(group)
        for number in range(len(program.equations) - 1, -1, -1):
            self._visit(number, program.equations[number])
        for variable in program.inputs:
            self._merge_readers(variable)
        if len(self.groups) <= _FEW_GROUPS:
            self._merge_tiny()

    # --- one operation ----------------------------------------------------------------------------

    def _summaries(self, equation: Equation) -> tuple[Summary, ...] | None:
        """What the results of an operation need; None for one that is run whole."""
        op = equation.op
        types = [atom.type for atom in equation.inputs]
        if op.effects or type(op).lower is Primitive.lower or self.policy.runs_whole(op, types):
            return None
        found = summaries(op, types, [v.type for v in equation.outputs])
        known = tuple([summary for summary in found if summary is not None])
        if len(known) < len(found):
            return None
        self.origins.add(equation, known)
        return known

    def _place_whole(self, group: Group) -> None:
        """Take a group as it is: nothing else joins it."""
        self.groups[group] = None
        for variable in group.reads:
            self.outside.setdefault(variable, []).append(group)
        for variable in group.roots:
            self.homes[variable] = group
            self.placed.add(self.producers[variable])

    def _visit(self, number: int, equation: Equation) -> None:
        outputs = equation.outputs
        known = self.summaries[number]
        if number in self.placed:
            for variable in outputs:
                self._merge_readers(variable)
            return
        if known is None:
            if not self._view(equation):
                self._step(number, equation)
            return
        if all(_is_empty(variable.type) for variable in outputs):
            self.empty.update(outputs)
            return
        groups = self._groups_reading(outputs)
        outside = [v for v in outputs if self._is_needed_in_memory(v)]
        if not groups and not outside:
            return
        if self._between_products(number, equation, known, groups, bool(outside)):
            return
        same = known[0].same_memory
        if same is not None and type(equation.inputs[same]) is Var:
            self._place_view(number, equation, known, groups, bool(outside))
        elif all(is_cheap(equation, summary) for summary in known):
            self._place_cheap(number, equation, known, groups, outside)
        else:
            self._place(number, equation, known, groups, outside)

    def _view(self, equation: Equation) -> bool:
        """Whether an operation's result is its operand's memory; if so, note it."""
        if equation.op.name not in _SAME_MEMORY or type(equation.inputs[0]) is not Var:
            return False
        self._note_view(equation.outputs[0], equation.inputs[0])
        return True

    def _note_view(self, variable: Var, operand: Var) -> None:
        self.views[variable] = operand
        self.viewers.setdefault(operand, []).append(variable)

    def _step(self, number: int, equation: Equation) -> None:
        node = StepNode(number, number)
        self.steps.append(node)
        for variable in equation.outputs:
            self.homes[variable] = node
            self._merge_readers(variable)
        for atom in equation.inputs:
            if type(atom) is Var:
                self.outside.setdefault(atom, []).append(node)

    def _between_products(
        self,
        number: int,
        equation: Equation,
        known: tuple[Summary, ...],
        groups: list[Group],
        outside: bool,
    ) -> bool:
        """Take an operation of attention into the kernel of its second product."""
        if number not in self.attention:
            if outside or len(groups) != 1 or len(equation.outputs) != 1:
                return False
            group = groups[0]
            places = group.reads[equation.outputs[0]]
            if group.reduced or not all(FACTOR in below for below in places.values()):
                return False
            users = self.users.get(equation.outputs[0], ())
            if len(users) != 1 or known[0].contract:
                return False
            rows = rows_between(
                self.program, self.summaries, self.producers, self.users, number, users[0]
            )
            self.attention.update(dict.fromkeys(rows, group))
            if number not in self.attention:
                return False
        group = self.attention[number]
        for variable in equation.outputs:
            # Not a factor to be packed, but computed row by row.
            places = group.reads[variable]
            group.reads[variable] = {p: below - {FACTOR} for p, below in places.items()}
        accepted = self._absorb(number, equation, known, group, (), alone=True)
        assert accepted, equation
        return True

    def _place_view(
        self,
        number: int,
        equation: Equation,
        known: tuple[Summary, ...],
        groups: list[Group],
        outside: bool,
    ) -> None:
        operand: Any = equation.inputs[known[0].same_memory or 0]
        producer = self.producers.get(operand)
        made = None if producer is None else self.summaries[producer]
        if not known[0].splits and (made is not None or _same_dimensions(equation, operand)):
            # It changes nothing but how an index is written.
            groups = [g for g in groups if not self._absorb(number, equation, known, g, ())]
            if groups or outside:
                self._note_view(equation.outputs[0], operand)
            return
        alone = made is not None and not outside and len(groups) == 1
        if not (alone and self._absorb(number, equation, known, groups[0], ())):
            self._note_view(equation.outputs[0], operand)

    def _place_cheap(
        self,
        number: int,
        equation: Equation,
        known: tuple[Summary, ...],
        groups: list[Group],
        outside: list[Var],
    ) -> None:
        failed = [g for g in groups if not self._absorb(number, equation, known, g, ())]
        for variable in equation.outputs:
            if variable in outside or any(variable in group.reads for group in failed):
                self._root(number, equation, known, [variable])

    def _place(
        self,
        number: int,
        equation: Equation,
        known: tuple[Summary, ...],
        groups: list[Group],
        outside: list[Var],
    ) -> None:
        groups = self._merge_all(equation.outputs, groups)
        if len(groups) > 1 and not outside and self._recomputed(equation, groups):
            self._place_cheap(number, equation, known, groups, outside)
            return
        for group in sorted(groups, key=lambda g: g.first):
            kept = [
                v
                for v in equation.outputs
                if v in outside or any(g is not group for g in self._groups_reading([v]))
            ]
            if kept and group.reduced and self._follows_product(equation, known):
                continue
            if kept and not self._comes_before_users(group, equation.outputs):
                continue
            if self._absorb(number, equation, known, group, kept):
                return
        shapes: dict[Any, list[Var]] = {}
        for variable in equation.outputs:
            if variable in outside or self.readers.get(variable):
                shape = sizes.kernel_shape(variable.type.shape)
                shapes.setdefault(shape, []).append(variable)
        for variables in shapes.values():
            self._root(number, equation, known, variables)

    def _recomputed(self, equation: Equation, groups: list[Group]) -> bool:
        """Whether all groups should compute the results again, so that they are never stored."""
        if not all(self.origins.is_recomputed(variable) for variable in equation.outputs):
            return False
        return not any(
            FACTOR in below
            for group in groups
            for variable in equation.outputs
            for below in group.reads.get(variable, {}).values()
        )

    def _follows_product(self, equation: Equation, known: tuple[Summary, ...]) -> bool:
        """Whether the result had better be stored by the product of matrices that it comes from."""
        elementwise = not any(s.reduced or s.scanned for s in known)
        return elementwise and self.origins.of(equation.outputs[0]).after_product

    def _root(
        self, number: int, equation: Equation, known: tuple[Summary, ...], variables: list[Var]
    ) -> None:
        group = Group(number, number, region=self._region(number))
        shape = sizes.kernel_shape(variables[0].type.shape)
        place = [Affine() if s == 1 else Affine.of(group.new_axis(s)) for s in shape]
        self.groups[group] = None
        for variable in variables:
            group.reads[variable] = {tuple(place): frozenset()}
        accepted = self._absorb(number, equation, known, group, variables, alone=True)
        assert accepted, equation

    def _region(self, number: int) -> int:
        return 0 if self.regions is None else self.regions[number]

    def _absorb(
        self,
        number: int,
        equation: Equation,
        known: tuple[Summary, ...],
        group: Group,
        kept: Iterable[Var],
        alone: bool = False,
    ) -> bool:
        if group.region != self._region(number) and not all(s.is_view for s in known):
            return False
        before = set(group.reads)
        if not self.joining.absorb(number, equation, known, group, kept, alone):
            return False
        for variable in before - set(group.reads):
            self.readers.get(variable, {}).pop(group, None)
        for variable in set(group.reads) - before:
            self.readers.setdefault(variable, {})[group] = None
        for variable in kept:
            self.homes[variable] = group
        return True

    # --- who reads what ---------------------------------------------------------------------------

    def _groups_reading(self, variables: Iterable[Var]) -> list[Group]:
        found: dict[Group, None] = {}
        for variable in variables:
            found.update(self.readers.get(variable, {}))
        return list(found)

    def _is_needed_in_memory(self, variable: Var) -> bool:
        """Whether a step, the caller or what reads a view of it needs a variable."""
        stack = [variable]
        while stack:
            current = stack.pop()
            if self.outside.get(current):
                return True
            if current is not variable and self.readers.get(current):
                return True
            stack.extend(self.viewers.get(current, ()))
        return False

    def _users(self, variable: Var) -> tuple[list[Node], list[Node]]:
        """All nodes that read a variable, and all that read what is a view of it."""
        direct: list[Node] = []
        through_views: list[Node] = []
        stack = [variable]
        while stack:
            current = stack.pop()
            found = direct if current is variable else through_views
            found.extend(self.readers.get(current, {}))
            found.extend(node for node in self.outside.get(current, ()) if node is not None)
            stack.extend(self.viewers.get(current, ()))
        return direct, through_views

    def _comes_before_users(self, group: Group, variables: Iterable[Var]) -> bool:
        """Whether a group can store variables for all others that read them."""
        for variable in variables:
            direct, through_views = self._users(variable)
            if group in through_views:  # it would need in memory what it computes
                return False
            others = [user for user in (*direct, *through_views) if user is not group]
            if any(self._depends(group, user) for user in others):
                return False
        return True

    def _depends(self, node: Node, other: Node) -> bool:
        """Whether a node needs, through any others, what another one makes."""
        seen = {node}
        stack = [node]
        while stack:
            for variable in self._needs(stack.pop()):
                while variable in self.views:
                    variable = self.views[variable]
                home = self.homes.get(variable)
                if home is None or home in seen or home.last < other.first:
                    continue
                if home is other or len(seen) > _SEARCH:
                    return True
                seen.add(home)
                stack.append(home)
        return False

    def _needs(self, node: Node) -> Iterable[Var]:
        if isinstance(node, Group):
            return node.reads
        inputs = self.program.equations[node.first].inputs
        return [atom for atom in inputs if type(atom) is Var]

    # --- merging ----------------------------------------------------------------------------------

    def _merge_readers(self, variable: Var) -> None:
        groups = self._groups_reading([variable])
        if len(groups) > 1:
            self._merge_all([variable], groups, whole=True)

    def _merge_all(
        self, variables: Iterable[Var], groups: list[Group], whole: bool = False
    ) -> list[Group]:
        """Merge those of the groups that may be; what remains."""
        remaining: list[Group] = []
        for group in groups:
            for place in range(len(remaining) - 1, max(len(remaining) - 1 - _TRIED, -1), -1):
                union = self._merge(variables, remaining[place], group, whole)
                if union is not None:
                    remaining[place] = union
                    break
            else:
                remaining.append(group)
        return remaining

    def _merge_tiny(self) -> None:
        """Make one kernel of those that go through few elements: their number is what costs."""
        remaining: list[Group] = []
        for group in sorted(self.groups, key=lambda g: g.last):
            for place, other in enumerate(remaining):
                union = self._merge((), other, group, whole=False)
                if union is not None:
                    remaining[place] = union
                    break
            else:
                remaining.append(group)

    def _merge(
        self, variables: Iterable[Var], first: Group, second: Group, whole: bool
    ) -> Group | None:
        if first.region != second.region:
            return None
        renaming = may_merge(self.policy, variables, first, second, whole)
        if renaming is None:
            return None
        if self._depends(first, second) or self._depends(second, first):
            return None
        for variable in second.reads:
            readers = self.readers[variable]
            readers.pop(second, None)
            readers[first] = None
        for variable in second.roots:
            self.homes[variable] = first
        self.groups.pop(second)
        merged(first, second, renaming)
        return first

    # --- order ------------------------------------------------------------------------------------

    def order(self) -> list[Node]:
        """The nodes, each after those whose results it reads, near their places in the Program."""
        equations = self.program.equations
        ordered = [n for n in self.steps if any(e.ordered for e in equations[n.first].effects)]
        ordered.sort(key=lambda n: n.first)
        return in_order([*self.steps, *self.groups], self._sources, ordered)

    def _sources(self, node: Node) -> set[Node]:
        found: set[Node] = set()
        for variable in self._needs(node):
            while variable in self.views:
                variable = self.views[variable]
            home = self.homes.get(variable)
            if home is not None and home is not node:
                found.add(home)
        return found


def _same_dimensions(equation: Equation, operand: Var) -> bool:
    """Whether the result's shape differs from the operand's in sizes of 1 only."""
    shapes = (operand.type.shape, equation.outputs[0].type.shape)
    first, second = [[s for s in sizes.kernel_shape(shape) if s != 1] for shape in shapes]
    return first == second


def _is_empty(type: ArrayType) -> bool:
    return any(isinstance(size, int) and size == 0 for size in type.shape)
