"""What the layers promise: interpreters name no operation, hooks are full, imports go downwards."""

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import fxarray
from fxarray.core import hooks
from fxarray.core.primitive import REGISTRY

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "fxarray"
ALLOWED = {"zeros", "add_cotangents", "move_axis", "broadcast_axis", "asarray"}
INTERPRETERS = sorted((SOURCE / "interpreters").glob("*.py"))


@pytest.mark.parametrize("path", INTERPRETERS, ids=lambda path: path.stem)
def test_interpreters_name_no_operation(path):
    """They may use the few hooks that are made for them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("fxarray.primitives")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert node.value not in REGISTRY or node.value in {"jit"}, node.value
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "operators":
            assert node.attr in ALLOWED


@pytest.mark.parametrize("hook", [hooks.operators, hooks.execution, hooks.printing])
def test_hooks_are_full(hook):
    for field in fields(hook):
        value = getattr(hook, field.name)
        assert value is not hooks._unfilled, field.name
        assert value is not None, field.name


def test_unknown_hook_is_refused():
    with pytest.raises(TypeError, match="no_such_hook"):
        hooks.operators.fill(no_such_hook=print)


def test_unfilled_hook_says_so():
    with pytest.raises(RuntimeError, match="import fxarray"):
        hooks.Execution().execute(None, ())


def test_imports_go_downwards():
    script = Path(sys.executable).parent / "lint-imports"
    if not script.exists():
        pytest.skip("import-linter is not installed")
    result = subprocess.run(
        [script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:]


def test_importing_fxarray_imports_no_test_library():
    code = (
        "import sys, fxarray\n"
        "print([m for m in ('jax', 'torch', 'pytest', 'hypothesis') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert result.stdout.strip() == "[]"


def test_every_primitive_is_called_by_its_name():
    for name, cls in REGISTRY.items():
        assert cls.name == name
    assert fxarray.__version__
