"""The table of primitives and rules, made from the registry: `docs/reference/coverage.md`."""

from __future__ import annotations

from fxarray.core.primitive import REGISTRY, RULES, Primitive
from fxarray.primitives.coverage import defines
from fxarray.tools.generated import run_generator

PATH = "docs/reference/coverage.md"
_COLUMNS = (*RULES, "linearize", "eager", "transpose_into")
_HEAD = """\
# Primitives and their rules

Made by `python -m fxarray.tools.coverage_table`; do not edit.

A tick is a rule that the primitive has or derives. A number is a rule that it lacks on purpose; the
sentence with that number says why. The last three columns are rules that only some need.
"""


def _has_optional(cls: type[Primitive], rule: str) -> bool:
    if rule == "transpose_into":
        return cls.accumulates
    if rule == "eager" and getattr(cls, "fast", None) is not None:
        return True
    own = getattr(cls, rule)
    generic = [base for base in cls.__mro__ if base.__module__ != cls.__module__]
    return rule in {name for base in cls.__mro__ if base not in generic for name in vars(base)} or (
        own is not getattr(Primitive, rule) and rule != "eager"
    )


def coverage_page() -> str:
    """The page's text."""
    reasons: dict[str, int] = {}
    families: dict[str, list[str]] = {}
    for name in sorted(REGISTRY):
        cls = REGISTRY[name]
        if not cls.__module__.startswith("fxarray."):
            continue
        cells: list[str] = []
        for rule in _COLUMNS:
            excuse = cls.EXCUSED.get(rule)
            if excuse is not None:
                cells.append(str(reasons.setdefault(excuse, len(reasons) + 1)))
            elif rule in RULES:
                cells.append("✓" if defines(cls, rule) else "**missing**")
            else:
                cells.append("✓" if _has_optional(cls, rule) else "")
        family = cls.__module__.removeprefix("fxarray.primitives.").replace("_", " ")
        families.setdefault(family, []).append(f"| `{name}` | {' | '.join(cells)} |")
    lines = [_HEAD]
    for family in sorted(families):
        lines += [
            f"## {family}",
            "",
            f"| primitive | {' | '.join(_COLUMNS)} |",
            f"|---|{'---|' * len(_COLUMNS)}",
            *families[family],
            "",
        ]
    lines += ["## Why rules are missing", ""]
    lines += [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(run_generator(coverage_page, PATH, __doc__ or ""))
