"""Effects: what an operation does besides computing its results.

An operation with an effect is never dropped, merged or computed twice. `Ordered` effects also keep
their order. A `Barrier` computes nothing, but keeps equal expressions on its two sides apart, which
is what makes recomputation (`checkpoint`) recompute.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True)
class Effect:
    """The base class of effects."""

    @property
    def ordered(self) -> bool:
        return False

    @property
    def removable(self) -> bool:
        """Whether an operation with no used result may be dropped all the same."""
        return False


@dataclass(frozen=True)
class Unordered(Effect):
    """Something visible happens, such as a print, each time, in any order."""

    kind: str = "callback"


@dataclass(frozen=True)
class Ordered(Effect):
    """Something visible happens, in program order with all others of the same kind."""

    kind: str = "callback"

    @property
    def ordered(self) -> bool:
        return True


@dataclass(frozen=True)
class Barrier(Effect):
    """Values on its two sides must not be merged as common subexpressions."""

    @property
    def removable(self) -> bool:
        return True


@dataclass(frozen=True)
class NamedAxis(Effect):
    """The operation communicates over a named axis, which must be bound where it runs."""

    axis: Hashable = None

    @property
    def removable(self) -> bool:
        return True


def must_keep(effects: frozenset[Effect]) -> bool:
    """Whether an equation with these effects stays although its results are unused."""
    return any(not effect.removable for effect in effects)


def named_axes(effects: frozenset[Effect]) -> tuple[Hashable, ...]:
    """The named axes that an operation with these effects communicates over."""
    return tuple([effect.axis for effect in effects if isinstance(effect, NamedAxis)])
