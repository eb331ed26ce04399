"""Kernel IR as Triton text: one line per node.

A value is a tile whose dimensions are those of the value's axes that are more than a scalar in
their role, in the kernel's order of axes. So values keep their own rank, and get dimensions of size
1 where they meet others. A loop walks its axis once for each pass: a reduction over it is an
accumulator tile, folded when the loop has ended, and what reads it belongs to the next pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from fxarray.core.dims.polynomial import Operation
from fxarray.devices.cuda.tiles import Role, Unsupported, as_sums, check_supported, default_roles
from fxarray.devices.cuda.triton_operations import (
    DTYPES,
    helper,
    helper_name,
    is_integer,
    literal,
    operation,
)
from fxarray.kernel import sizes
from fxarray.kernel.combiners import COMBINERS
from fxarray.kernel.interpret import identity_value
from fxarray.kernel.ir import (
    Affine,
    Bound,
    Const,
    Contract,
    Iota,
    Kernel,
    Load,
    Op,
    Part,
    Reduce,
    Scan,
    Store,
    arguments,
)
from fxarray.kernel.sizes import Size


@dataclass(frozen=True)
class TritonText:
    """A kernel as text.

    Args:
      text: Python source with `triton` and `tl` in scope.
      name: of the function.
      buffers: names of the buffers, in the order of its first parameters.
      sizes: names of the sizes that follow.
      grid: how many programs there are along each axis of the grid, and positions in each: the
        number of programs is the product of `size` over `tile`, rounded up.
    """

    text: str
    name: str
    buffers: tuple[str, ...]
    sizes: tuple[str, ...]
    grid: tuple[tuple[Size, int], ...]

    def programs(self, values: Mapping[str, int]) -> int:
        """The number of programs to launch, for values of the sizes."""
        count = 1
        for size, tile in self.grid:
            count *= -(-sizes.evaluate(size, values) // tile)
        return count


def triton_text(kernel: Kernel, roles: Mapping[str, Role] | None = None) -> TritonText:
    """The text of a kernel.

    Args:
      kernel: the kernel.
      roles: of its axes; chosen where not given.

    Raises:
      Unsupported: for what has no text yet.
    """
    kernel = as_sums(kernel)
    roles = default_roles(kernel) if roles is None else roles
    check_supported(kernel, roles)
    return _Writer(kernel, roles).write()


def size_text(size: Size) -> str:
    """A size as an expression in parameters."""
    if isinstance(size, int):
        return str(size)
    if any(isinstance(atom, Operation) for atom in size.atoms):
        raise Unsupported(f"the size {size}")
    return f"({size.text})"


class _Writer:
    def __init__(self, kernel: Kernel, roles: Mapping[str, Role]) -> None:
        self.kernel = kernel
        self.roles = roles
        self.order = [axis for axis, _ in kernel.axes]
        self.loop = next((a for a in self.order if roles[a].kind == "loop"), None)
        self.passes = _passes(kernel, self.loop)
        self.lines: list[str] = []
        self.indent = 1
        self.scopes: list[dict[int, str]] = [{}]
        self.helpers: dict[str, str] = {}
        self.carries: dict[int, str] = {}

    def do(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    # --- tiles ------------------------------------------------------------------------------------

    def tile(self, axes: AbstractSet[str]) -> list[str]:
        """Those axes that are dimensions of a tile."""
        return [axis for axis in self.order if axis in axes and self.roles[axis].tile > 1]

    def own(self, number: int) -> list[str]:
        return self.tile(self.kernel.value_axes[number])

    def expanded(self, text: str, have: Sequence[str], wanted: Sequence[str]) -> str:
        """A tile with dimensions of size 1 for axes that it does not have."""
        if list(have) == list(wanted) or not have:
            return text
        return f"{text}[{', '.join([':' if axis in have else 'None' for axis in wanted])}]"

    def shape(self, axes: Sequence[str]) -> str:
        return f"[{', '.join([str(self.roles[axis].tile) for axis in axes])}]"

    def at(self, number: int, wanted: Sequence[str]) -> str:
        return self.expanded(self.value(number), self.own(number), wanted)

    def affine(self, index: Affine, wanted: Sequence[str], wide: bool = False) -> str:
        parts: list[str] = []
        for term, coefficient in index.terms:
            if isinstance(term, int):
                text = self.at(term, wanted)
            else:
                text = self.expanded(term, self.tile({term}), wanted)
            text = f"{text}.to(tl.int64)" if wide else text
            parts.append(text if coefficient == 1 else f"{text} * {size_text(coefficient)}")
        if index.constant != 0 or not parts:
            parts.append(size_text(index.constant))
        return " + ".join(parts)

    def mask(
        self, axes: AbstractSet[str], wanted: Sequence[str], bounds: Sequence[Bound] = ()
    ) -> str:
        """Where a tile lies inside its axes, and bounds hold; empty if that is everywhere."""
        tests: list[str] = []
        for axis in self.tile(axes):
            size, tile = self.kernel.sizes[axis], self.roles[axis].tile
            if not isinstance(size, int) or size % tile:
                place = self.expanded(axis, [axis], wanted)
                tests.append(f"({place} < {size_text(size)})")
        for affine, low, high in bounds:
            place = self.affine(affine, wanted)
            have = set(affine.axes).union(*[self.kernel.value_axes[v] for v in affine.values])
            if wanted and not self.tile(have):
                # The interpreter has no conjunction of a scalar and a tile.
                place += f" + 0 * {self.expanded(wanted[0], [wanted[0]], wanted)}"
            tests.append(f"(({place}) >= {size_text(low)}) & (({place}) < {size_text(high)})")
        return " & ".join(tests)

    # --- values -----------------------------------------------------------------------------------

    def value(self, number: int) -> str:
        """The name of a value, computed where it is first needed."""
        for scope in reversed(self.scopes):
            if number in scope:
                return scope[number]
        text = self.computed(number)
        name = f"v{number}"
        if text != name:
            self.do(f"{name} = {text}")
        self.scopes[-1][number] = name
        return name

    def computed(self, number: int) -> str:
        node, own = self.kernel.body[number], self.own(number)
        dtype = self.kernel.dtypes[number]
        match node:
            case Const():
                return f"tl.full([], {literal(node.value)}, {DTYPES[dtype]})"
            case Iota():
                return f"({self.affine(node.index, own)} + tl.full([], 0, {DTYPES[dtype]}))"
            case Load():
                return self.loaded(node, own)
            case Op():
                given = [self.at(argument, own) for argument in node.args]
                return operation(node.op, given, self.kernel.dtypes[node.args[-1]], dtype)
            case Reduce():
                tiles = [self.padded(node, place, node.axes) for place in range(len(node.args))]
                return self.folded(number, tiles)
            case Part():
                return self.value(node.arg) + f"_{node.which}"
            case Scan():
                return self.scanned(number, node)
            case Contract() | Store():
                raise Unsupported("a product outside its loop")

    def loaded(self, node: Load, own: Sequence[str]) -> str:
        axes = set(own)
        where = self.address(node, own)
        inside = self.mask(axes, own, node.bounds)
        if not inside:
            return f"tl.load({where})"
        return f"tl.load({where}, mask={inside}, other={literal(node.fill)})"

    def address(self, node: Load | Store, own: Sequence[str]) -> str:
        count = sizes.bounds(sizes.product(node.buffer.shape))[1]
        wide = count is None or count >= 2**31
        return f"{node.buffer.name}_ptr + {self.affine(node.buffer.flat(node.index), own, wide)}"

    # --- combinations -----------------------------------------------------------------------------

    def states(self, node: Reduce | Scan) -> list[str]:
        """The dtypes of what is combined."""
        return [self.kernel.dtypes[argument] for argument in node.args]

    def identity(self, node: Reduce | Scan, place: int) -> str:
        name = COMBINERS[node.combiner].identities[place]
        return literal(identity_value(name, self.states(node)[place]).item())

    def tile_of(self, node: Reduce | Scan) -> list[str]:
        """The dimensions of the tiles that are combined: those of all arguments together."""
        return self.tile(frozenset().union(*[self.kernel.value_axes[a] for a in node.args]))

    def padded(self, node: Reduce | Scan, place: int, axes: Sequence[str]) -> str:
        """An argument as a whole tile, the identity where it hangs over the end of an axis."""
        own = self.tile_of(node)
        text = self.at(node.args[place], own)
        inside = self.mask(set(axes), own)
        if inside:
            dtype = DTYPES[self.states(node)[place]]
            text = f"tl.where({inside}, {text}, {self.identity(node, place)}).to({dtype})"
        if len(own) != len(self.own(node.args[place])):
            text = f"tl.broadcast_to({text}, {self.shape(own)})"
        return text

    def combine(self, node: Reduce | Scan) -> str:
        names = self.states(node)
        name = helper_name(node.combiner, names)
        self.helpers[name] = helper(node.combiner, names)
        return name

    def folded(self, number: int, tiles: Sequence[str]) -> str:
        """Tiles reduced over the axes of a Reduce."""
        node: Any = self.kernel.body[number]
        own = self.tile_of(node)
        names = [f"v{number}_{place}" for place in range(len(tiles))]
        current = ", ".join(tiles)
        for axis in [a for a in node.axes if a in own]:
            current = self.reduced(node, current, own.index(axis))
            own.remove(axis)
            if len(tiles) > 1:
                self.do(f"{', '.join(names)} = {current}")
                current = ", ".join(names)
        if len(tiles) > 1:
            if current != ", ".join(names):
                self.do(f"{', '.join(names)} = {current}")
            return f"v{number}"
        return current

    def reduced(self, node: Reduce | Scan, tiles: str, dimension: int) -> str:
        """Tiles reduced over one dimension; by Triton's own function where that does the same."""
        dtype = self.states(node)[0]
        if len(node.args) > 1:
            return f"tl.reduce(({tiles}), {dimension}, {self.combine(node)})"
        if node.combiner == "sum" and dtype != "bool":
            return f"tl.sum({tiles}, {dimension}).to({DTYPES[dtype]})"
        if node.combiner in ("max", "min") and is_integer(dtype):
            return f"tl.{node.combiner}({tiles}, {dimension}).to({DTYPES[dtype]})"
        return f"tl.reduce({tiles}, {dimension}, {self.combine(node)})"

    def scanned(self, number: int, node: Scan) -> str:
        tiles = [self.padded(node, place, (node.axis,)) for place in range(len(node.args))]
        own = self.tile_of(node)
        given = f"({', '.join(tiles)})" if len(tiles) > 1 else tiles[0]
        text = f"tl.associative_scan({given}, {own.index(node.axis)}, {self.combine(node)}"
        text += ", reverse=True)" if node.reverse else ")"
        if len(tiles) > 1:
            names = ", ".join([f"v{number}_{place}" for place in range(len(tiles))])
            self.do(f"{names} = {text}")
            return f"v{number}"
        if node.axis != self.loop:
            return text
        carry, rest = self.carries[number], [axis for axis in own if axis != node.axis]
        before = self.expanded(carry, rest, own)
        self.do(f"v{number} = {self.combine(node)}({before}, {text})")
        total = self.reduced(node, tiles[0], own.index(node.axis))
        self.do(f"{carry} = {self.combine(node)}({carry}, {total})")
        return f"v{number}"

    # --- loops and stores -------------------------------------------------------------------------

    def store(self, node: Store) -> None:
        value_axes = self.kernel.value_axes
        axes = frozenset(axis for index in node.index for axis in index.axes)
        axes = axes.union(value_axes[node.value], *[value_axes[v] for v in arguments(node)])
        own = self.tile(axes)
        value = self.at(node.value, own)
        where = self.address(node, own)
        inside = self.mask(axes, own, node.bounds)
        self.do(f"tl.store({where}, {value}{f', mask={inside}' if inside else ''})")

    def run_pass(self, level: int) -> None:
        """One walk along the axis of the loop."""
        kernel, axis = self.kernel, self.loop
        assert axis is not None
        sums: list[int] = []
        stores: list[Store] = []
        for number, node in enumerate(kernel.body):
            if self.passes[number] != level:
                continue
            if isinstance(node, Reduce | Contract) and axis in node.axes:
                sums.append(number)
            elif isinstance(node, Scan) and node.axis == axis:
                self.carries[number] = f"carry{number}"
            elif isinstance(node, Store) and axis in kernel.value_axes[number]:
                stores.append(node)
        if not sums and not stores:
            return
        self.invariants(level)
        for number in sums:
            self.start(number)
        for number, carry in self.carries.items():
            node: Any = kernel.body[number]
            if self.passes[number] == level:
                rest = [a for a in self.tile_of(node) if a != axis]
                start, dtype = self.identity(node, 0), DTYPES[kernel.dtypes[number]]
                self.do(f"{carry} = tl.full({self.shape(rest)}, {start}, {dtype})")
        tile = self.roles[axis].tile
        self.do(f"for {axis}_start in range(0, {size_text(kernel.sizes[axis])}, {tile}):")
        self.indent += 1
        self.scopes.append({})
        self.do(f"{axis} = {axis}_start + tl.arange(0, {tile})")
        for number in sums:
            self.accumulate(number)
        for store in stores:
            self.store(store)
        self.scopes.pop()
        self.indent -= 1
        for number in sums:
            node = kernel.body[number]
            cells = self.cells(number)
            self.scopes[-1][number] = cells[0] if isinstance(node, Contract) else self.end(number)

    def invariants(self, level: int) -> None:
        """Compute before the loop what every turn of it would compute again."""
        for number, node in enumerate(self.kernel.body):
            known = self.passes[number] <= level and self.loop not in self.kernel.value_axes[number]
            if known and isinstance(node, Load | Const):
                self.value(number)

    def cells(self, number: int) -> list[str]:
        node = self.kernel.body[number]
        count = len(node.args) if isinstance(node, Reduce) else 1
        return [f"acc{number}_{place}" for place in range(count)]

    def start(self, number: int) -> None:
        node = self.kernel.body[number]
        if isinstance(node, Contract):
            shape = self.shape(self.own(number))
            self.do(f"{self.cells(number)[0]} = tl.zeros({shape}, {DTYPES[node.dtype]})")
        elif isinstance(node, Reduce):
            shape = self.shape(self.tile_of(node))
            for place, cell in enumerate(self.cells(number)):
                dtype = DTYPES[self.states(node)[place]]
                self.do(f"{cell} = tl.full({shape}, {self.identity(node, place)}, {dtype})")

    def accumulate(self, number: int) -> None:
        node, cells = self.kernel.body[number], self.cells(number)
        if isinstance(node, Contract):
            a, b = self.factor(node, node.a, last=True), self.factor(node, node.b, last=False)
            dot = f"tl.dot({a}, {b}, input_precision='ieee')"
            row, column = (self.own(operand) for operand in (node.a, node.b))
            rows = [axis for axis in row if axis not in node.axes]
            columns = [axis for axis in column if axis not in node.axes]
            dot = dot if self.own(number) == rows + columns else f"tl.trans({dot})"
            self.do(f"{cells[0]} += {dot}")
        elif isinstance(node, Reduce):
            tiles = [self.padded(node, place, node.axes) for place in range(len(node.args))]
            given = ", ".join([*cells, *tiles])
            self.do(f"{', '.join(cells)} = {self.combine(node)}({given})")

    def factor(self, node: Contract, operand: int, last: bool) -> str:
        """An operand of a product as a matrix, 0 beyond the end of the summed axis."""
        own = self.own(operand)
        (axis,) = node.axes
        if len(own) != 2:
            raise Unsupported("a product of tiles that are no matrices")
        text = self.value(operand)
        inside = self.mask({axis}, own)
        if inside and not isinstance(self.kernel.body[operand], Load):
            # exp(0) is not 0: what hangs over the end is computed too.
            dtype = DTYPES[self.kernel.dtypes[operand]]
            text = f"tl.where({inside}, {text}, 0.0).to({dtype})"
        return text if (own[-1] == axis) is last else f"tl.trans({text})"

    def end(self, number: int) -> str:
        text = self.folded(number, self.cells(number))
        name = f"v{number}"
        if text != name:
            self.do(f"{name} = {text}")
        return name

    # --- the function -----------------------------------------------------------------------------

    def write(self) -> TritonText:
        kernel = self.kernel
        grid = [axis for axis in self.order if self.roles[axis].kind == "grid"]
        if grid:
            self.do("program = tl.program_id(0)")
        for axis in reversed(grid):
            size, tile = kernel.sizes[axis], self.roles[axis].tile
            count = f"tl.cdiv({size_text(size)}, {tile})" if tile > 1 else size_text(size)
            place = f"(program % {count})"
            self.do(
                f"{axis} = {place} * {tile} + tl.arange(0, {tile})"
                if tile > 1
                else f"{axis} = {place}"
            )
            self.do(f"program = program // {count}")
        for axis in self.order:
            role = self.roles[axis]
            if role.kind == "block":
                one = "tl.full([], 0, tl.int32)"
                self.do(f"{axis} = {f'tl.arange(0, {role.tile})' if role.tile > 1 else one}")
        if self.loop is not None:
            for level in range(max(self.passes) + 1):
                self.run_pass(level)
        for number, node in enumerate(kernel.body):
            if isinstance(node, Store) and self.loop not in kernel.value_axes[number]:
                self.store(node)
        buffers = tuple([buffer.name for buffer in (*kernel.inputs, *kernel.outputs)])
        variables = kernel.size_variables
        parameters = ", ".join([*[f"{name}_ptr" for name in buffers], *variables])
        # A kernel may be called what Python calls something else, such as "and".
        name = f"{kernel.name}_kernel"
        head = f"@triton.jit\ndef {name}({parameters}):\n"
        text = "\n\n".join([*self.helpers.values(), head + "\n".join(self.lines) + "\n"])
        spans = tuple([(kernel.sizes[axis], self.roles[axis].tile) for axis in grid])
        return TritonText(text, name, buffers, variables, spans)


def _passes(kernel: Kernel, loop: str | None) -> list[int]:
    """The walk along the loop in which each value is first known."""
    found: list[int] = []
    for node in kernel.body:
        level = 0
        for argument in arguments(node):
            source = kernel.body[argument]
            ends = isinstance(source, Reduce | Contract) and loop in source.axes
            level = max(level, found[argument] + ends)
        found.append(level)
    return found
