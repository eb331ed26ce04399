"""eval_shape, make_program, typeof, ShapeDtypeStruct, and names and settings of tracing."""

import jax
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.context import context
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import ArgumentError, StaticArgumentError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


# --- shapes ---------------------------------------------------------------------------------------


def test_eval_shape_gives_types_and_runs_nothing():
    seen = []

    def f(p, scale):
        seen.append(p["w"])
        return {"y": p["w"] @ p["w"].T * scale}, "static"

    w = fxarray.ShapeDtypeStruct((1000, 1000), "float64")
    result, static = fxarray.eval_shape(f, {"w": w}, scale=2)
    assert result == {"y": fxarray.ShapeDtypeStruct((1000, 1000), "float64")}
    assert static == "static"
    assert isinstance(seen[0], fxarray.core.tracer.Tracer)


def test_eval_shape_agrees_with_jax():
    f = lambda x, n: (x[0] * n, x.T, x > 0)  # noqa: E731
    ours, theirs = fxarray.eval_shape(f, X, 2), jax.eval_shape(f, X, 2)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)


def test_sizes_may_be_symbolic():
    n = ShapeVar("n")
    x = fxarray.ShapeDtypeStruct((n, 3), "float32")
    assert fxarray.eval_shape(lambda x: x.T @ x, x).shape == (3, 3)
    transposed = fxarray.eval_shape(lambda x: x.T * 2, x)
    assert transposed.shape[0] == 3
    assert transposed.shape[1] is n or transposed.shape[1] == n


def test_symbolic_sizes_go_through_grad_and_vmap():
    x = fxarray.ShapeDtypeStruct((ShapeVar("n"), 3), "float32")
    f = lambda x: (fnp.sin(x) * x).sum()  # noqa: E731
    assert fxarray.eval_shape(fxarray.grad(f), x).shape == x.shape
    assert fxarray.eval_shape(fxarray.vmap(f), x).shape == x.shape[:1]


def test_anything_with_shape_and_dtype_stands_for_an_array():
    result = fxarray.eval_shape(lambda x: x * 2, jax.ShapeDtypeStruct((4,), np.float16))
    assert result == fxarray.ShapeDtypeStruct((4,), "float16")
    assert fxarray.eval_shape(lambda x: x, fxarray.typeof(X)).shape == (2, 3)


def test_shape_dtype_structs_compare_by_value_and_print():
    x = fxarray.ShapeDtypeStruct([2, 3], np.float32)
    assert x == fxarray.ShapeDtypeStruct((2, 3), "float32")
    assert hash(x) == hash(fxarray.ShapeDtypeStruct((2, 3), "float32"))
    assert x != fxarray.ShapeDtypeStruct((2, 3), "float32", weak_type=True)
    assert x != fxarray.ShapeDtypeStruct((2, 3), "float64")
    assert repr(x) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    assert (x.ndim, x.size, len(x)) == (2, 6, 2)
    assert x.update(dtype="int8").dtype == np.int8
    with pytest.raises(ArgumentError, match="no sizes to update"):
        x.update(sizes=3)
    with pytest.raises(ArgumentError, match="dtype must not be None"):
        fxarray.ShapeDtypeStruct((2,), None)


def test_typeof_gives_the_type_of_anything_array_like():
    assert str(fxarray.typeof(X)) == "f32[2,3]"
    assert fxarray.typeof(3).weak_type
    seen = []
    fxarray.vmap(lambda x: seen.append(fxarray.typeof(x)) or x)(X)
    assert str(seen[0]) == "f32[3]"
    with pytest.raises(ArgumentError, match="array or a number"):
        fxarray.typeof("text")


def test_mutable_arguments_are_refused_by_name():
    class Model:
        def __init__(self):
            self.size = 3

    def f(x, model):
        return x

    with pytest.raises(StaticArgumentError, match="argument model of f"):
        fxarray.eval_shape(f, X, Model())


# --- Programs -------------------------------------------------------------------------------------


def test_make_program_shows_operations_and_keeps_constants():
    table = fnp.asarray(X)
    program = fxarray.make_program(lambda x: fnp.sin(x) * table)(X)
    assert [equation.op.name for equation in program.equations] == ["sin", "mul"]
    assert len(program.consts) == 1
    np.testing.assert_array_equal(np.asarray(program.consts[0]), X)
    assert [str(type) for type in program.in_avals] == ["f32[2,3]"]


def test_make_program_takes_statics_and_gives_shapes():
    f = lambda x, n, mode: {mode: [x * i for i in range(n)]}  # noqa: E731
    program, shapes = fxarray.make_program(f, static_argnums=(1,), return_shape=True)(X, 2, "m")
    assert len(program.outputs) == 2
    assert shapes == {"m": [fxarray.ShapeDtypeStruct((2, 3), "float32")] * 2}
    assert fxarray.make_jaxpr is fxarray.make_program


def test_make_program_of_transforms_has_no_trace_of_them():
    program = fxarray.make_program(fxarray.vmap(fxarray.grad(lambda x: (x * x).sum())))(X)
    assert {equation.op.name for equation in program.equations} <= {
        "mul",
        "add",
        "reduce_sum",
        "broadcast_in_dim",
        "transpose",
        "reshape",
        "copy",
        "add_any",
    }


def test_axes_of_make_program_may_be_named():
    program = fxarray.make_program(lambda x: fxarray.lax.psum(x, "i"), axis_env=[("i", 4)])(X)
    (equation,) = program.equations
    assert equation.op.name == "psum"
    assert equation.op.axis_size == 4
    assert fxarray.core.effects.NamedAxis("i") in program.effects


def test_make_program_refuses_abstracted_axes():
    with pytest.raises(NotImplementedError, match="symbolic"):
        fxarray.make_program(lambda x: x, abstracted_axes=("n",))


# --- names and settings ---------------------------------------------------------------------------


def test_scopes_name_equations_and_nest():
    @fxarray.named_scope("decorated")
    def f(x):
        with fxarray.named_scope("inner"):
            y = x * 2
        return fxarray.named_call(lambda z: z + 1, name="called")(y)

    program = fxarray.make_program(lambda x: f(x) * 3)(1.0)
    assert [equation.scopes for equation in program.equations] == [
        ("decorated", "inner"),
        ("decorated", "called"),
        (),
    ]
    assert context.scopes == ()


def test_scopes_survive_transforms():
    def f(x):
        with fxarray.named_scope("layer"):
            return fnp.sin(x)

    program = fxarray.make_program(fxarray.jit(fxarray.grad(f)))(1.0)
    (call,) = program.equations
    scopes = {equation.scopes for equation in call.op.program.equations}
    assert ("layer",) in scopes


def test_scope_names_are_strings():
    with pytest.raises(ArgumentError, match="takes a string"), fxarray.named_scope(3):
        pass


def test_disable_jit_runs_python_on_values_and_is_undone():
    @fxarray.jit
    def f(x):
        return x * 2 if x > 0 else x

    with pytest.raises(fxarray.core.errors.TracerBoolConversionError):
        f(1.0)
    with fxarray.disable_jit():
        assert float(f(1.0)) == 2.0
        with fxarray.disable_jit(False), pytest.raises(TypeError):
            f(2.0)
    with pytest.raises(TypeError):
        f(1.0)


def test_ensure_compile_time_eval_computes_while_tracing():
    def f(x):
        with fxarray.ensure_compile_time_eval():
            n = int((fnp.arange(4) * 2)[3])
        return x * n

    assert float(fxarray.jit(f)(2.0)) == 12.0
    program = fxarray.make_program(f)(2.0)
    assert [equation.op.name for equation in program.equations] == ["mul"]
