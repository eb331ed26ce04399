"""The page of errors, made from their docstrings: `docs/reference/errors.md`."""

from __future__ import annotations

import inspect

from fxarray.core import errors
from fxarray.core.errors import FxArrayError
from fxarray.tools.generated import run_generator

PATH = "docs/reference/errors.md"
_HEAD = """\
# Errors

Made by `python -m fxarray.tools.error_pages`; do not edit.

Every error that fxarray raises on purpose has a class of its own in `fxarray.errors`, derived from
`FxArrayError` and from the built-in exceptions that NumPy and JAX raise for the same mistake. The
message names the operation, the operand and the types, and ends with the line of your own code.
"""


def error_classes() -> list[type[FxArrayError]]:
    """The error classes, in the order in which they are written."""
    found = [
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, FxArrayError)
    ]
    return sorted(found, key=lambda cls: inspect.getsourcelines(cls)[1])


def errors_page() -> str:
    """The page's text."""
    lines = [_HEAD]
    for cls in error_classes():
        bases = [base.__name__ for base in cls.__bases__ if base is not object]
        text = inspect.cleandoc(cls.__doc__ or "").replace("``", "`")
        lines += [f"## {cls.__name__}", "", f"*Also a {', '.join(bases)}.*", "", text, ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    raise SystemExit(run_generator(errors_page, PATH, __doc__ or ""))
