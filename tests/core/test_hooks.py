"""The places where core calls upward."""

import pytest

from fxarray.core.hooks import Execution, Operators, Printing


@pytest.mark.parametrize("cls", [Operators, Execution, Printing])
def test_hooks_start_empty_and_say_so(cls):
    empty = cls()
    name = next(iter(cls.__dataclass_fields__))
    with pytest.raises(RuntimeError, match="before `import fxarray`"):
        getattr(empty, name)()


def test_hooks_are_filled_by_name():
    operators = Operators()
    operators.fill(zeros=len)
    assert operators.zeros is len
    with pytest.raises(TypeError, match="no hook called 'zeroes'"):
        operators.fill(zeroes=len)
