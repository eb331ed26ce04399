"""Settings: one table, read from variables, changed for the process or for a block."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fxarray
from fxarray.core.config import SETTINGS
from fxarray.core.errors import ArgumentError

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "settings.md"


@pytest.mark.parametrize("name", SETTINGS)
def test_the_page_describes_every_setting(name: str) -> None:
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{name}` ")]
    setting = SETTINGS[name]
    assert f"`{setting.default!r}`" in row
    assert f"`FXARRAY_{name.upper()}`" in row
    assert row.endswith(f" {setting.doc} |")


def test_a_block_changes_a_setting_in_its_own_thread_only() -> None:
    seen: list[bool] = []
    with fxarray.config.using(debug_nans=True):
        thread = threading.Thread(target=lambda: seen.append(fxarray.config.get("debug_nans")))
        thread.start()
        thread.join()
        assert fxarray.config.get("debug_nans") is True
    assert seen == [False]
    assert fxarray.config.get("debug_nans") is False


def test_update_changes_a_setting_for_all_threads() -> None:
    seen: list[bool] = []
    fxarray.config.update("jax_debug_nans", True)
    try:
        thread = threading.Thread(target=lambda: seen.append(fxarray.config.get("debug_nans")))
        thread.start()
        thread.join()
    finally:
        fxarray.config.update("debug_nans", False)
    assert seen == [True]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("no_such", 1, "there is no setting 'no_such'"),
        ("debug_nans", 1, "takes bool"),
        ("numpy_rank_promotion", "never", "is one of allow, warn, raise"),
    ],
)
def test_wrong_settings_are_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        fxarray.config.update(name, value)


def test_an_environment_variable_sets_the_default() -> None:
    code = "import fxarray; print(fxarray.config.get('debug_nans'))"
    environment = {**os.environ, "FXARRAY_DEBUG_NANS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout == "True\n"


def test_update_after_a_block_reaches_the_thread_that_was_in_it() -> None:
    with fxarray.config.using(explain_retraces=True):
        fxarray.config.update("debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            fxarray.numpy.log(-1.0)
    finally:
        fxarray.config.update("debug_nans", False)
    assert fxarray.numpy.isnan(fxarray.numpy.log(-1.0))


def test_a_block_comes_before_an_update_within_it() -> None:
    with fxarray.config.using(debug_nans=False):
        fxarray.config.update("debug_nans", True)
        try:
            assert fxarray.config.get("debug_nans") is False
            assert fxarray.numpy.isnan(fxarray.numpy.log(-1.0))
        finally:
            fxarray.config.update("debug_nans", False)


def test_settings_that_traces_do_not_depend_on_do_not_trace_again() -> None:
    double = fxarray.jit(lambda x: 2 * x)
    double(1.0)
    with fxarray.config.using(explain_retraces=True, traceback_filtering=False, debug_nans=False):
        double(1.0)  # a warning here would be an error
    assert double.cache_info() == (1, 1, 1)
