"""Matrices between products that are never stored: attention with its gradient.

The gradient of attention needs the weights again, a matrix of queries and keys. Where that matrix
is large, each kernel that needs elements of it computes them again from the operands of the
products that it comes from; what was reduced along its rows is stored, as it is small. So

    y, max, sum = rows(q, k, v);  dq, delta = rows(q, k, v, dy, max, sum)
    dk, dv = columns(q, k, v, dy, max, sum, delta)

take memory that grows with the length and not with its square. Nothing is known here of softmax or
masks: a *matrix* is what is made, element by element, of products that are much larger than their
operands; its *consumers* are reductions of it and products with it. All consumers get a kernel of
this kind, or none does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fxarray.compile.fuse.derived import RECOMPUTED
from fxarray.compile.fuse.group import Group
from fxarray.compile.fuse.joining import Joining, is_cheap
from fxarray.compile.fuse.kernels import Materialise, region_kernel
from fxarray.compile.fuse.parts import Part
from fxarray.compile.fuse.policy import Policy
from fxarray.compile.fuse.summary import Summary
from fxarray.core import dtypes
from fxarray.core.ir import Program, Var
from fxarray.kernel import sizes
from fxarray.kernel.ir import Affine, Contract

# How many times larger than an operand of a product, or a result of a consumer, a matrix is.
_RATIO = 8
# How many operations a kernel may have.
_MOST = 96


@dataclass
class _Matrix:
    """Products, what is made of them element by element, and what consumes that."""

    products: set[int] = field(default_factory=set[int])
    inside: set[int] = field(default_factory=set[int])
    reductions: list[int] = field(default_factory=list[int])
    consumers: list[int] = field(default_factory=list[int])
    possible: bool = True

    def add(self, other: _Matrix) -> None:
        self.products |= other.products
        self.inside |= other.inside
        self.reductions += other.reductions
        self.consumers += other.consumers
        self.possible = self.possible and other.possible


class Recomputing:
    """Finds the kernels; `groups` has them.

    Args:
      program: the Program.
      summaries: what the results of its operations need.
      producers: which operation makes a variable.
      users: which operations read a variable; -1 stands for the Program's outputs.
      policy: the device's.
    """

    def __init__(
        self,
        program: Program,
        summaries: Sequence[tuple[Summary, ...] | None],
        producers: Mapping[Var, int],
        users: Mapping[Var, Sequence[int]],
        policy: Policy,
    ) -> None:
        self.program, self.summaries, self.policy = program, summaries, policy
        self.producers, self.users = producers, users
        self.joining = Joining(policy)
        self.stored: set[Var] = set()
        self.groups: list[Group] = []
        for matrix in self._matrices():
            self.groups.extend(self._kernels(matrix))
        if not self._in_order():
            self.groups = []

    # --- finding matrices -------------------------------------------------------------------------

    def _matrices(self) -> list[_Matrix]:
        """The matrices that are worth it and have no other use."""
        of: dict[Var, _Matrix] = {}
        found: dict[int, _Matrix] = {}
        outputs = {atom for atom in self.program.outputs if isinstance(atom, Var)}
        for number, equation in enumerate(self.program.equations):
            read = {id(of[a]): of[a] for a in equation.inputs if isinstance(a, Var) and a in of}
            if not read:
                if self._is_product(number):
                    matrix = _Matrix(products={number})
                    found[id(matrix)] = matrix
                    of[equation.outputs[0]] = matrix
                    matrix.possible = equation.outputs[0] not in outputs
                continue
            matrix = next(iter(read.values()))
            if len(read) > 1:
                for other in list(read.values())[1:]:
                    matrix.add(other)
                    found.pop(id(other))
                    of.update({v: matrix for v, m in of.items() if m is other})
            self._add(number, matrix, of)
            matrix.possible = matrix.possible and outputs.isdisjoint(
                [v for v in equation.outputs if v in of]
            )
        return [m for m in found.values() if m.possible and m.reductions and len(m.consumers) > 1]

    def _is_product(self, number: int) -> bool:
        """Whether an operation is a product whose result is a large matrix."""
        known, equation = self.summaries[number], self.program.equations[number]
        if known is None or len(known) != 1 or not known[0].contract:
            return False
        item = dtypes.physical(equation.outputs[0].type.dtype).itemsize
        count = _elements(equation.outputs[0])
        if count is None or count * item < self.policy.recomputed_bytes:
            return False
        operands = [_elements(a) for a in equation.inputs if isinstance(a, Var)]
        return all(n is not None and n * _RATIO <= count for n in operands)

    def _add(self, number: int, matrix: _Matrix, of: dict[Var, _Matrix]) -> None:
        """Note what an operation that reads a matrix is to it."""
        known, equation = self.summaries[number], self.program.equations[number]
        size = _elements(self.program.equations[next(iter(matrix.products))].outputs[0])
        count = _elements(equation.outputs[0]) if equation.outputs else None
        if known is None or len(known) != 1 or known[0].scanned or count is None or size is None:
            matrix.possible = False
        elif known[0].reduced:
            matrix.possible = matrix.possible and count * _RATIO <= size
            kind = matrix.consumers if known[0].contract else matrix.reductions
            kind.append(number)
        else:
            matrix.possible = matrix.possible and count == size and not known[0].splits
            matrix.inside.add(number)
            of[equation.outputs[0]] = matrix

    # --- making kernels ---------------------------------------------------------------------------

    def _kernels(self, matrix: _Matrix) -> list[Group]:
        """Kernels of all consumers, in an order in which each finds what it reads; or none."""
        before = set(self.stored)
        found: list[tuple[list[int], Group]] = []
        waiting = list(matrix.consumers)
        progress = True
        while waiting and progress:
            progress = False
            for number in list(waiting):
                group = self._group([number], matrix)
                if group is None:
                    continue
                waiting.remove(number)
                found.append(([number], group))
                self.stored.update(group.roots)
                progress = True
        if waiting or not all(self._result(number) in self.stored for number in matrix.reductions):
            self.stored = before
            return []
        return self._paired(found, matrix)

    def _paired(self, found: list[tuple[list[int], Group]], matrix: _Matrix) -> list[Group]:
        """Those over the same rows become one, so that fewer elements are computed again."""
        alone = [pair for pair in found if len(pair[1].roots) == 1]
        rest = [group for _, group in found if len(group.roots) > 1]
        while alone:
            numbers, group = alone.pop()
            for other in alone:
                both = sorted([*numbers, *other[0]])
                union = self._group(both, matrix)
                if union is not None and not self._depends(union.reads, self._results(both)):
                    alone.remove(other)
                    group = union
                    break
            rest.append(group)
        return rest

    def _results(self, numbers: Iterable[int]) -> set[Var]:
        return {self._root(number) for number in numbers}

    def _depends(self, variables: Iterable[Var], others: set[Var]) -> bool:
        """Whether one of some variables is computed from others."""
        last = max([self.producers.get(v, -1) for v in variables], default=-1)
        made = set(others)
        for number in range(min(self.producers[v] for v in others), last + 1):
            equation = self.program.equations[number]
            if any(isinstance(a, Var) and a in made for a in equation.inputs):
                made.update(equation.outputs)
        return not made.isdisjoint(variables)

    def _result(self, number: int) -> Var:
        return self.program.equations[number].outputs[0]

    def _root(self, number: int) -> Var:
        """What is stored of a product: its result, or a transposition if only that is read."""
        return self._moved(number)[-1]

    def _moved(self, number: int) -> list[Var]:
        found = [self._result(number)]
        while True:
            users = self.users.get(found[-1], ())
            if len(users) != 1 or users[0] < 0:
                return found
            equation = self.program.equations[users[0]]
            if equation.op.name != "transpose":
                return found
            found.append(equation.outputs[0])

    def _group(self, numbers: list[int], matrix: _Matrix) -> Group | None:
        """The kernel of some consumers, or None if there is none."""
        members = self._members(numbers, matrix)
        roots = self._results(numbers)
        if len(members) > _MOST or len({root.type.shape for root in roots}) > 1:
            return None
        group = Group(numbers[0], numbers[0])
        shape = sizes.kernel_shape(next(iter(roots)).type.shape)
        place = tuple([Affine() if s == 1 else Affine.of(group.new_axis(s)) for s in shape])
        own = set(group.axes)
        for root in roots:
            group.reads[root] = {place: frozenset()}
        reductions = {self._result(number) for number in matrix.reductions}
        sums: set[str] = set()
        for number in sorted(members, reverse=True):
            equation, known = self.program.equations[number], self.summaries[number]
            assert known is not None
            if equation.outputs[0] not in group.reads:
                continue
            kept = [v for v in equation.outputs if v in reductions or v in roots]
            if not self.joining.absorb(number, equation, known, group, kept, alone=True):
                return None
            if number in numbers:
                sums |= set(group.axes) - own
        # Rows of the matrix are reduced along the axis that the products with it sum over.
        if len(sums) != 1 or any(axes != sums for axes in group.reduced):
            return None
        return group if self._is_rendered(group) else None

    def _is_rendered(self, group: Group) -> bool:
        try:
            found = region_kernel(Part.of_group(self.program, group).region())
        except Materialise:
            return False
        # A sum of few products may have been written out, which makes it another kind of kernel.
        known = [self.summaries[number] for number in group.members]
        products = sum(s is not None and s[0].contract for s in known)
        if sum(isinstance(node, Contract) for node in found.kernel.body) != products:
            return False
        return self.policy.can_render is None or self.policy.can_render(found.kernel)

    def _members(self, numbers: Iterable[int], matrix: _Matrix) -> set[int]:
        """The operations of a kernel: back to the products, and to what is stored."""
        members: set[int] = set()
        size = max(_elements(self._result(n)) or 0 for n in matrix.products)
        stack: list[int] = []
        for number in numbers:
            members.add(number)
            members.update(self.producers[v] for v in self._moved(number)[1:])
            stack.append(number)
        ours = matrix.products | matrix.inside | set(matrix.reductions)
        while stack and len(members) <= _MOST:
            number = stack.pop()
            known = self.summaries[number]
            for atom in self.program.equations[number].inputs:
                if not isinstance(atom, Var) or atom in self.stored:
                    continue
                place = self.producers.get(atom)
                if place is None or place in members:
                    continue
                factor = known is not None and known[0].contract
                if place in ours or self._is_recomputed(place, atom, size, factor, ours):
                    members.add(place)
                    stack.append(place)
        return members

    def _is_recomputed(
        self, place: int, variable: Var, size: int, factor: bool, ours: set[int]
    ) -> bool:
        """Whether to compute a value that is no matrix of products in each kernel."""
        known = self.summaries[place]
        if known is None or len(known) != 1 or known[0].splits:
            return False
        if known[0].reduced or known[0].scanned or known[0].contract:
            return False
        if known[0].cost > RECOMPUTED:
            return False
        if known[0].is_view or is_cheap(self.program.equations[place], known[0]):
            return True
        if factor:
            return False
        follows, item = self._sources(place, size, ours)
        if follows:
            return True
        # Masks, unless they are smaller than what they would be made of.
        count = _elements(variable)
        own = dtypes.physical(variable.type.dtype).itemsize
        return count is not None and count * _RATIO > size and own >= item

    def _sources(self, place: int, size: int, ours: set[int]) -> tuple[bool, int]:
        """Whether a value is made of what was reduced, and the widest large array it is made of."""
        stack, seen, widest = [place], {place}, 0
        while stack and len(seen) < _MOST:
            for atom in self.program.equations[stack.pop()].inputs:
                if not isinstance(atom, Var):
                    continue
                producer = self.producers.get(atom)
                if producer in ours:
                    return True, widest
                known = None if producer is None else self.summaries[producer]
                plain = known is not None and not any(
                    s.reduced or s.scanned or s.contract or s.cost > RECOMPUTED for s in known
                )
                if plain and producer is not None:
                    if producer not in seen:
                        seen.add(producer)
                        stack.append(producer)
                elif producer is not None and (_elements(atom) or 0) * _RATIO > size:
                    widest = max(widest, dtypes.physical(atom.type.dtype).itemsize)
        return False, widest

    # --- order ------------------------------------------------------------------------------------

    def _in_order(self) -> bool:
        """Whether the kernels can be run one after the other."""
        homes = {v: number for number, group in enumerate(self.groups) for v in group.roots}
        if not homes:
            return True
        # The kernels that a variable needs, as bits.
        needs: dict[Var, int] = {}
        for equation in self.program.equations:
            bits = 0
            for atom in equation.inputs:
                if isinstance(atom, Var):
                    bits |= needs.get(atom, 0)
            for variable in equation.outputs:
                home = homes.get(variable)
                own = bits if home is None else bits | 1 << home
                if own:
                    needs[variable] = own
        before: list[int] = []
        for group in self.groups:
            bits = 0
            for variable in group.reads:
                bits |= needs.get(variable, 0)
            before.append(bits)
        done = 0
        waiting = list(range(len(before)))
        while waiting:
            ready = [number for number in waiting if not before[number] & ~done]
            if not ready:
                return False
            for number in ready:
                done |= 1 << number
            waiting = [number for number in waiting if not done >> number & 1]
        return True


def _elements(variable: Var) -> int | None:
    """The number of elements, if it is known."""
    count = sizes.product(sizes.kernel_shape(variable.type.shape))
    return count if isinstance(count, int) else None
