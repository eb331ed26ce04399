"""Settings: one typed table, read from `FXARRAY_*` variables, changed by `update` or a `with`
block.

>>> from fxarray.core import config
>>> with config.using(explain_retraces=True):
...     config.get("explain_retraces")
True
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from fxarray.core.context import Context, context
from fxarray.core.errors import ArgumentError


@dataclass(frozen=True)
class Setting:
    """One setting: its type is that of its default.

    Args:
      default: the value when nothing sets it.
      doc: one sentence.
      traced: whether traces depend on it, so that changing it traces again.
      choices: the values that it can have, if they are few.
    """

    default: Any
    doc: str
    traced: bool = False
    choices: tuple[str, ...] = ()


SETTINGS: dict[str, Setting] = {
    "debug": Setting(
        0,
        "Above 0, a while_loop that its max_steps stops too early is an error; 2 prints the graph "
        "of kernels of each function that is compiled, 3 every stage from passes to assembly.",
    ),
    "explain_retraces": Setting(False, "Warn each time that jit traces, saying what differs."),
    "debug_nans": Setting(False, "Raise an error at the first operation that gives a NaN.", True),
    "debug_infs": Setting(False, "Raise an error at the first operation that gives an inf.", True),
    "traceback_filtering": Setting(True, "Leave fxarray's own frames out of tracebacks."),
    "numpy_rank_promotion": Setting(
        "allow", "What to do when ranks differ.", True, ("allow", "warn", "raise")
    ),
    "numpy_dtype_promotion": Setting(
        "standard", "Whether arrays of two dtypes meet.", True, ("standard", "strict")
    ),
    "default_matmul_precision": Setting(
        "default",
        "How exactly to multiply matrices, where a device offers a choice.",
        True,
        (
            *("default", "fastest", "bfloat16", "high", "tensorfloat32", "bfloat16_3x", "highest"),
            "float32",
        ),
    ),
}

# What stands in place of settings of JAX's that are not needed here.
_NOT_NEEDED = {
    "enable_x64": "64-bit dtypes need no flag: ask for them where you want them, as in "
    "zeros(3, float64) or x.astype(float64)",
}


def _parse(name: str, text: str) -> Any:
    default = SETTINGS[name].default
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "yes", "on")
    return type(default)(text)


_values: dict[str, Any] = {
    name: _parse(name, os.environ[variable]) if variable in os.environ else setting.default
    for name, setting in SETTINGS.items()
    for variable in [f"FXARRAY_{name.upper()}"]
}


def _check(name: str, value: Any) -> None:
    if name not in SETTINGS:
        remedy = _NOT_NEEDED.get(name, f"there are: {', '.join(SETTINGS)}")
        raise ArgumentError(f"there is no setting {name!r}; {remedy}")
    setting = SETTINGS[name]
    if type(value) is not type(setting.default):
        raise ArgumentError(f"setting {name} takes {type(setting.default).__name__}, got {value!r}")
    if setting.choices and value not in setting.choices:
        raise ArgumentError(f"setting {name} is one of {', '.join(setting.choices)}, got {value!r}")


for _name, _value in _values.items():
    _check(_name, _value)


def get(name: str) -> Any:
    """The value of a setting in this thread."""
    own = context.own_settings
    return own[name] if name in own else _values[name]


def _changed(values: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Those that traces depend on and that are not at their defaults, in one order."""
    return tuple(
        [
            (name, values[name])
            for name, setting in SETTINGS.items()
            if setting.traced and values[name] != setting.default
        ]
    )


def _enter(own: Mapping[str, Any]) -> None:
    """Make `own` the settings that this thread changes."""
    context.own_settings = own
    effective = _changed({**_values, **own})
    if effective != Context.settings:
        context.settings = effective
    elif "settings" in vars(context):
        del context.settings  # so that the process's are seen, also when they change


# The class attribute is what threads without settings of their own see.
Context.settings = _changed(_values)


def update(name: str, value: Any) -> None:
    """Change a setting for the whole process.

    A block that another thread is in keeps, until it ends, what it began with.

    Args:
      name: of the setting; JAX's prefix is left out.
      value: of the type of its default.

    Raises:
      ArgumentError: if there is no such setting, or it cannot have that value.
    """
    name = name.removeprefix("fxarray_").removeprefix("jax_")
    _check(name, value)
    _values[name] = value
    if SETTINGS[name].traced:
        Context.settings = _changed(_values)
        _enter(context.own_settings)


@contextmanager
def using(**values: Any) -> Generator[None]:
    """Change settings in this thread for the length of a `with` block (or a decorated call)."""
    for name, value in values.items():
        _check(name, value)
    previous = context.own_settings
    _enter({**previous, **values})
    try:
        yield
    finally:
        _enter(previous)


def debug_nans(value: bool = True) -> AbstractContextManager[None]:
    """In a `with` block: raise an error at the first operation that gives a NaN.

    >>> import fxarray, fxarray.numpy as fnp
    >>> with fxarray.debug_nans(True):
    ...     fnp.log(-1.0)
    Traceback (most recent call last):
    fxarray.core.errors.NonFiniteError: log: 1 of 1 elements of result 0 (f32[]) are NaN...
    """
    return using(debug_nans=value)


def debug_infs(value: bool = True) -> AbstractContextManager[None]:
    """In a `with` block: raise an error at the first operation that gives an infinity."""
    return using(debug_infs=value)


def default_matmul_precision(value: str) -> AbstractContextManager[None]:
    """In a `with` block: the precision of products that are not given one."""
    return using(default_matmul_precision=value)


def numpy_dtype_promotion(value: str) -> AbstractContextManager[None]:
    """In a `with` block: whether arrays of two dtypes meet ("standard") or are refused ("strict").

    >>> import fxarray, fxarray.numpy as fnp
    >>> with fxarray.numpy_dtype_promotion("strict"):
    ...     fnp.ones(2, "int32") + fnp.ones(2, "float32")
    Traceback (most recent call last):
    fxarray.core.errors.TypePromotionError: ...
    """
    return using(numpy_dtype_promotion=value)


def numpy_rank_promotion(value: str) -> AbstractContextManager[None]:
    """In a `with` block: what to do when ranks differ ("allow", "warn" or "raise")."""
    return using(numpy_rank_promotion=value)
