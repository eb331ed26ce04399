"""Kernels as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.kernel.ir import (
    Affine,
    Bound,
    Buffer,
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
)


def affine_text(index: Affine) -> str:
    """An index expression, as `2*i + v3 - 1`."""
    pieces: list[str] = []
    for term, coefficient in index.terms:
        name = f"v{term}" if isinstance(term, int) else term
        if coefficient == 1:
            pieces.append(name)
        elif coefficient == -1:
            pieces.append(f"-{name}")
        elif isinstance(coefficient, int):
            pieces.append(f"{coefficient}*{name}")
        else:
            pieces.append(f"({coefficient})*{name}")
    if index.constant != 0 or not pieces:
        pieces.append(str(index.constant))
    return " + ".join(pieces).replace("+ -", "- ")


def _indices(index: Sequence[Affine]) -> str:
    return ", ".join(map(affine_text, index))


def _bounds(bounds: Sequence[Bound]) -> str:
    if not bounds:
        return ""
    return " where " + ", ".join(f"{lo} <= {affine_text(a)} < {hi}" for a, lo, hi in bounds)


def _buffer(buffer: Buffer) -> str:
    shape = ", ".join(map(str, buffer.shape))
    alias = f" in {buffer.alias}" if buffer.alias else ""
    return f"{buffer.name}: {buffer.dtype}[{shape}]{alias}"


def text(kernel: Kernel) -> str:
    """The kernel, one node a line."""
    inputs = ", ".join(map(_buffer, kernel.inputs))
    outputs = ", ".join(map(_buffer, kernel.outputs))
    axes = ", ".join(f"{name}={size}" for name, size in kernel.axes)
    lines = [f"kernel {kernel.name}({inputs}) -> {outputs} over {axes or 'nothing'}:"]
    for number, node in enumerate(kernel.body):
        if isinstance(node, Store):
            mode = "=" if node.mode == "set" else f"{node.mode}="
            where = f"{node.buffer.name}[{_indices(node.index)}]"
            lines.append(f"  {where} {mode} v{node.value}{_bounds(node.bounds)}")
            continue
        axes = ",".join(a for a, _ in kernel.axes if a in kernel.value_axes[number])
        head = f"  v{number}: {kernel.dtypes[number]}{{{axes}}} = "
        match node:
            case Const():
                body = str(node.value)
            case Iota():
                body = f"iota {affine_text(node.index)}"
            case Load():
                fill = f" else {node.fill}" if node.bounds else ""
                body = (
                    f"load {node.buffer.name}[{_indices(node.index)}]{_bounds(node.bounds)}{fill}"
                )
            case Op():
                body = f"{node.op} {_values(node.args)}"
            case Reduce():
                body = f"reduce {node.combiner} over {','.join(node.axes)} of {_values(node.args)}"
            case Scan():
                how = (" reverse" if node.reverse else "") + (
                    " exclusive" if node.exclusive else ""
                )
                body = f"scan{how} {node.combiner} along {node.axis} of {_values(node.args)}"
            case Part():
                body = f"part {node.which} of v{node.arg}"
            case Contract():
                body = f"contract v{node.a}, v{node.b} over {','.join(node.axes)}"
        lines.append(head + body)
    return "\n".join(lines)


def _values(args: Sequence[int]) -> str:
    return ", ".join(f"v{a}" for a in args)
