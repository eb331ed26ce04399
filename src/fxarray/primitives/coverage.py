"""Which rules a primitive has, for the table in the docs and for the test of completeness."""

from __future__ import annotations

from fxarray.core.primitive import Primitive
from fxarray.primitives.elementwise_base import Elementwise


def defines(cls: type[Primitive], rule: str) -> bool:
    """Whether a class has a rule of its own or by derivation."""
    own = getattr(cls, rule)
    base = getattr(Primitive, rule)
    if getattr(own, "__func__", own) is not getattr(base, "__func__", base):
        if rule == "transpose" and own is Elementwise.transpose:
            overridden = cls.transposed is not Elementwise.transposed  # type: ignore[attr-defined]
            return overridden or cls.transposes is not None  # type: ignore[attr-defined]
        if rule == "lower" and own is Elementwise.lower:
            overridden = cls.scalar is not Elementwise.scalar  # type: ignore[attr-defined]
            return overridden or cls.lowering is not None  # type: ignore[attr-defined]
        return True
    return rule == "jvp" and (bool(cls.linear_operands) or not cls.differentiable)
