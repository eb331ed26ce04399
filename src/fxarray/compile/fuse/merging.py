"""When two groups become one kernel: if they go through the same elements of what both read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fxarray.compile.fuse.group import NO_AXES, Group, Place, plain_axis
from fxarray.compile.fuse.policy import Policy
from fxarray.core.ir import Var
from fxarray.kernel.ir import Affine

# The number of elements up to which kernels are merged though they share nothing.
_TINY = 32


def may_merge(
    policy: Policy, variables: Iterable[Var], first: Group, second: Group, whole: bool
) -> dict[str, str] | None:
    """How the second group's axes are called in the first one if both become one, or None.

    Args:
      policy: the device's.
      variables: what both read; they meet there.
      first: a group.
      second: another one.
      whole: whether both must read all that they go through.
    """
    if (
        first.contract
        or second.contract
        or first.operations + second.operations > (policy.kernel_operations)
    ):
        return None
    if (first.scanned or second.scanned) and (first.reduced or second.reduced):
        return None
    buffers = len(first.reads.keys() | second.reads.keys()) + len(first.roots) + len(second.roots)
    if buffers > policy.kernel_buffers:
        return None
    for variable in variables:
        renaming = _matching(first, second, variable, whole)
        if renaming is not None:
            reused = frozenset([renaming.get(name, name) for name in second.reused])
            if first.reused and reused and first.reused != reused:
                return None
            return renaming
    tiny = first.elements <= _TINY and second.elements <= _TINY
    return {} if tiny and not (first.reused and second.reused) else None


def _matching(first: Group, second: Group, variable: Var, whole: bool) -> dict[str, str] | None:
    for place in first.reads.get(variable, ()):
        for other in second.reads.get(variable, ()):
            renaming = _same_axes(place, other)
            if renaming is None or any(
                first.axes[name] != second.axes[its] for its, name in renaming.items()
            ):
                continue
            missing = [name for name in second.axes if name not in renaming]
            extra = [name for name in first.axes if name not in renaming.values()]
            if not missing and not extra:
                return renaming
            if whole or (missing and extra):
                continue
            if missing and list(renaming) == list(second.axes)[: len(renaming)]:
                return renaming
            if extra and list(renaming.values()) == list(first.axes)[: len(renaming)]:
                return renaming
    return None


def _same_axes(place: Place, other: Place) -> dict[str, str] | None:
    renaming: dict[str, str] = {}
    for mine, theirs in zip(place, other, strict=True):
        if isinstance(mine, Affine) and not mine.terms and mine == theirs:
            continue
        name, its = plain_axis(mine), plain_axis(theirs)
        if name is None or its is None or renaming.get(its, name) != name:
            return None
        renaming[its] = name
    return renaming if len(set(renaming.values())) == len(renaming) else None


def merged(first: Group, second: Group, renaming: Mapping[str, str]) -> None:
    """Take the second group into the first one."""
    changes: dict[str, Affine] = {}
    order = list(second.axes.items())
    if not renaming and first.axes:
        for name, size in order:
            changes[name] = Affine.of(first.new_axis(size))
    elif len(second.axes) > len(renaming):
        # The second one goes through more: its order of axes counts.
        axes: dict[str, Any] = {}
        for name, size in order:
            known = renaming.get(name)
            if known is None:
                known = f"a{first.count}"
                first.count += 1
            changes[name] = Affine(((known, 1),))
            axes[known] = size
        first.axes = axes
    else:
        changes = {name: Affine(((known, 1),)) for name, known in renaming.items()}
    second.rename(changes)
    for variable, places in second.reads.items():
        for place, below in places.items():
            first.read(variable, place, below)
    first.roots.update(second.roots)
    for variable, depth in second.depths.items():
        first.depths[variable] = max(depth, first.depths.get(variable, 0))
    first.members |= second.members
    first.operations += second.operations
    first.again += second.again
    first.reduced |= second.reduced
    first.reused = first.reused or second.reused or NO_AXES
    first.scanned |= second.scanned
    first.first = min(first.first, second.first)
    first.last = max(first.last, second.last)
