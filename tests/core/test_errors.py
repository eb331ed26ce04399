"""Errors: one class per kind, the built-in bases of NumPy's and JAX's, the user's line."""

import pickle

import pytest

import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import errors
from fxarray.core.errors import FxArrayError, ShapeError
from fxarray.tools.error_pages import error_classes

CLASSES = error_classes()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_error_is_explained_and_derives_from_a_builtin(cls):
    assert cls.__doc__
    assert cls.__doc__.strip().endswith((".", "``."))
    builtin = [base for base in cls.__mro__ if base.__module__ == "builtins"]
    assert Exception in builtin


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_error_shows_its_message_and_the_users_line(cls):
    error = cls("what is wrong")
    assert "what is wrong" in str(error)
    assert error.location is not None
    assert "test_errors.py" in str(error)


def test_message_ends_with_the_line_that_the_user_wrote():
    with pytest.raises(ShapeError) as caught:
        fnp.ones(3) + fnp.ones(4)
    assert str(caught.value).rstrip().endswith("fnp.ones(3) + fnp.ones(4)")


@pytest.mark.parametrize(
    ("call", "error", "builtin"),
    [
        (lambda: fnp.ones(3) + fnp.ones(4), errors.ShapeError, ValueError),
        (lambda: lax.sin(fnp.arange(3)), errors.DTypeError, TypeError),
        (lambda: fnp.ones(3).sum(axis=1), errors.AxisError, IndexError),
        (lambda: fnp.ones(3)[5], errors.OutOfBoundsError, IndexError),
        (lambda: fnp.ones(3)["x"], errors.IndexingError, TypeError),
        (lambda: lax.psum(1.0, "i"), errors.UnboundAxisError, NameError),
        (lambda: fnp.ones(3).__setitem__(0, 1), errors.ImmutableArrayError, TypeError),
    ],
)
def test_mistakes_raise_the_class_and_the_builtin(call, error, builtin):
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, builtin)
    assert isinstance(caught.value, FxArrayError)


def test_errors_survive_pickling():
    error = ShapeError("what is wrong")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ShapeError
    assert "what is wrong" in str(again)
