"""Operands that are read as they lie, and the packing functions that serve all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from fxarray.core.dims import ShapeVar
from fxarray.devices.cpu.contraction.evaluate import Piece
from fxarray.devices.cpu.contraction.forms import Form
from fxarray.devices.cpu.contraction.panels import Side, pack
from fxarray.devices.cpu.contraction.recognise import Run
from fxarray.devices.cpu.emit.features import using
from fxarray.devices.cpu.native.routine import InputPointer, OutputPointer, SizeWord, Word
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.kernel.ir import Affine, Buffer, Kernel, Load
from fxarray.kernel.sizes import Size

_STRIDES = ("start", "inner", "outer_stride", "inner_stride", "row_stride", "depth_stride", "depth")


@dataclass(frozen=True)
class Operand:
    """An operand that is read as it lies: where, and its strides in elements.

    Args:
      buffer: the number of the input.
      start: the first element.
      inner: the number of inner batches.
      strides: of outer batches, inner batches, rows, and the sum.
      dtype: of the buffer.
      output: whether it is an output instead.
    """

    buffer: int
    start: Size
    inner: Size
    strides: tuple[Size, Size, Size, Size]
    dtype: str
    output: bool = False

    @property
    def words(self) -> tuple[Word, ...]:
        numbers = (self.start, self.inner, *self.strides)
        pointer = OutputPointer if self.output else InputPointer
        return (pointer(self.buffer), *[SizeWord(number) for number in numbers])


def along_of(kernel: Kernel, side: Side, nodes: set[int]) -> str:
    """What the lanes of a packing function run along: where loads are contiguous."""
    if side.form.complex or not side.depth:
        return "rows"
    row = side.rows[-1].axis if side.rows else ""
    depth = side.depth[-1].axis
    # Neighbours along the window of a convolution are contiguous as well, but few.
    length, steps = (
        sizes.typical(group[-1].size) if group else 1 for group in (side.rows, side.depth)
    )
    short = length < min(side.form.lanes, steps)
    for number in sorted(nodes):
        node = kernel.body[number]
        if isinstance(node, Load):
            index = node.buffer.flat(node.index)
            step = index.coefficient(row)
            if index.coefficient(depth) == 1 and (step not in (0, 1) or (step == 1 and short)):
                return "depth"
    return "rows"


@dataclass(frozen=True)
class PlainPack:
    """A packing function for operands read as they lie, of any shape.

    Args:
      text: its module.
      template: its words, with names for the sizes.
    """

    text: str
    template: tuple[Word, ...]

    def words(self, operand: Operand, depth: Size) -> tuple[Word, ...]:
        numbers = (operand.start, operand.inner, *operand.strides, depth)
        named: Mapping[Word, Size] = {
            SizeWord(_variable(name)): number
            for name, number in zip(_STRIDES, numbers, strict=True)
        }
        return tuple(
            [
                InputPointer(operand.buffer)
                if isinstance(word, InputPointer)
                else SizeWord(named[word])
                for word in self.template
            ]
        )


def _variable(name: str) -> sizes.Polynomial:
    size = sizes.kernel_size(ShapeVar(f"packing_{name}", min=0))
    assert isinstance(size, sizes.Polynomial)
    return size


@lru_cache(maxsize=128)
def plain_pack(
    form: Form,
    first: bool,
    width: int,
    dtype: str,
    along: str,
    contiguous: bool,
    batched: bool,
    target: Target,
) -> PlainPack:
    """The packing function of a side.

    Args:
      form: the arithmetic.
      first: whether it is the first operand.
      width: rows of a panel.
      dtype: of the operand.
      along: what the lanes run along.
      contiguous: whether that is contiguous.
      batched: whether there are batches.
      target: the processor.
    """
    get = {name: _variable(name) for name in _STRIDES}
    row: Size = 1 if contiguous and along == "rows" else get["row_stride"]
    depth: Size = 1 if contiguous and along == "depth" else get["depth_stride"]
    terms: list[tuple[str, Size]] = [("row", row), ("depth", depth)]
    if batched:
        terms += [("outer", get["outer_stride"]), ("inner", get["inner_stride"])]
    index = Affine(tuple(terms), get["start"])
    buffer = Buffer("operand", (1,), dtype)
    kernel = Kernel("pack", (), (buffer,), (), (Load(buffer, (index,)),))
    batch = (Run("outer", 1), Run("inner", get["inner"])) if batched else ()
    depth_run = Run("depth", get["depth"])
    rows = (Run("row", 1),)
    packed = "u16" if dtype == "u16" else ""
    side = Side(form, first, width, 0, batch, rows, (depth_run,), along, packed)
    piece = Piece(kernel)
    with using(target):
        text = pack(piece, side)
    return PlainPack(text, tuple(piece.words))
