"""Which intermediate values `checkpoint` stores: policies to pick from, and to combine.

A policy is called as `policy(op, *types, **parameters)` for each operation, and says whether its
results are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fxarray.primitives.contract import DotGeneral
from fxarray.primitives.control.remat import CheckpointName, Policy


def everything_saveable(op: Any, *types: Any, **parameters: Any) -> bool:
    """Store everything: as without `checkpoint`."""
    return True


def nothing_saveable(op: Any, *types: Any, **parameters: Any) -> bool:
    """Store nothing but the arguments."""
    return False


def dots_saveable(op: Any, *types: Any, **parameters: Any) -> bool:
    """Store the results of matrix products."""
    return isinstance(op, DotGeneral)


def dots_with_no_batch_dims_saveable(op: Any, *types: Any, **parameters: Any) -> bool:
    """Store the results of matrix products without batch dimensions: those with weights."""
    return isinstance(op, DotGeneral) and not op.batch_axes[0]


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


@dataclass(frozen=True)
class _Names:
    """Decides by the name given with `checkpoint_name`."""

    names: frozenset[str]
    listed: bool
    unnamed: bool

    def __call__(self, op: Any, *types: Any, **parameters: Any) -> bool:
        if isinstance(op, CheckpointName):
            return (op.label in self.names) == self.listed
        return self.unnamed


@dataclass(frozen=True)
class _Both:
    first: Policy
    second: Policy

    def __call__(self, op: Any, *types: Any, **parameters: Any) -> bool:
        return self.first(op, *types, **parameters) or self.second(op, *types, **parameters)


def save_only_these_names(*names: str) -> Policy:
    """Store only the values given one of these names."""
    return _Names(frozenset(names), listed=True, unnamed=False)


def save_any_names_but_these(*names: str) -> Policy:
    """Store the values that have a name, except these names."""
    return _Names(frozenset(names), listed=False, unnamed=False)


def save_anything_except_these_names(*names: str) -> Policy:
    """Store everything except the values given one of these names."""
    return _Names(frozenset(names), listed=False, unnamed=True)


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Store what either policy stores."""
    return _Both(first, second)


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Store the values of either list of names; on a device without other memory, in place."""
    return save_only_these_names(*names_which_can_be_saved, *names_which_can_be_offloaded)
