"""The checks of rules catch wrong rules: each fault here is planted in a right primitive."""

import dataclasses

import numpy as np
import pytest

from fxarray.core.array import DeviceArray
from fxarray.core.caches import clear_caches
from fxarray.core.errors import FxArrayError, ShapeError
from fxarray.core.factors import Factors
from fxarray.core.primitive import REGISTRY, Primitive, Zero
from fxarray.core.types import ArrayType
from fxarray.kernel.sizes import subtract
from fxarray.testing.rules import CHECKS, check_bad_sample, check_complete, samples_of


def caught(name, check):
    """Whether a check fails for a primitive."""
    good, bad = samples_of(REGISTRY[name])
    try:
        if check == "complete":
            check_complete(REGISTRY[name])
        elif check == "bad":
            for sample in bad:
                check_bad_sample(sample)
        else:
            for sample in good:
                CHECKS[check](sample)
    except (AssertionError, FxArrayError, ValueError, IndexError):
        return True
    return False


def changed(rule, change):
    """A fault that changes what a rule returns."""

    def plant(cls):
        original = getattr(cls, rule)
        return {rule: lambda self, *args: change(original(self, *args), *args)}

    return plant


def scaled(array, factor):
    buffer = array.numpy_view()
    return DeviceArray(np.asarray(buffer * np.asarray(factor, buffer.dtype)), array.type)


def off_by(factor):
    """Scales what is inexact in a sequence of results."""

    def change(results, *_):
        return [
            r
            if r is None or type(r) is Zero or r.type.dtype.kind not in "fc"
            else scaled(r, factor)
            for r in results
        ]

    return change


def tangents_off_by(factor):
    return lambda result, *_: (result[0], off_by(factor)(result[1]))


def widen(types, *_):
    return tuple(t.replace(dtype=np.dtype("float64")) for t in types)


def drop_size(types, *_):
    return tuple(t.replace(shape=t.shape[:-1]) for t in types)


def swapped_tangents(cls):
    original = cls.jvp
    return {"jvp": lambda self, primals, tangents: original(self, primals, tangents[::-1])}


def forgotten_tangent(cls):
    original = cls.jvp

    def jvp(self, primals, tangents):
        kept = [tangents[0], *[Zero(t.type) for t in tangents[1:]]]
        return original(self, primals, kept)

    return {"jvp": jvp}


def no_derivative(cls):
    def jvp(self, primals, tangents):
        outputs = self.bind(*primals)
        return outputs, tuple(Zero(output.type.tangent()) for output in outputs)

    return {"jvp": jvp}


def too_few_tangents(cls):
    original = cls.jvp

    def jvp(self, primals, tangents):
        outputs, found = original(self, primals, tangents)
        return outputs, tuple(found)[:-1]

    return {"jvp": jvp}


def wrong_values_in_jvp(cls):
    original = cls.jvp

    def jvp(self, primals, tangents):
        outputs, found = original(self, primals, tangents)
        return off_by(2.0)(outputs), found

    return {"jvp": jvp}


def linearize_scaled(cls):
    original = cls.jvp

    def linearize(self, primals, tangents):
        outputs, found = original(self, primals, tangents)
        two = np.asarray(2.0, outputs[0].type.dtype)
        return outputs, [t if type(t) is Zero else t * two for t in found]

    return {"linearize": linearize}


def reversed_cotangents(cls):
    original = cls.transpose
    return {
        "transpose": lambda self, cotangents, *operands: list(
            original(self, cotangents, *operands)
        )[::-1]
    }


def transpose_without_cut(cls):
    """Hands every operand the whole cotangent."""
    return {"transpose": lambda self, cotangents, *operands: [cotangents[0]] * len(operands)}


def wrong_batch_axis(cls):
    original = cls.batch

    def batch(self, size, name, operands, axes):
        outputs, out_axes = original(self, size, name, operands, axes)
        return outputs, [a if a is None else a + 1 if a == 0 else 0 for a in out_axes]

    return {"batch": batch}


def batch_ignores_axes(cls):
    return {
        "batch": lambda self, size, name, operands, axes: (
            self.bind(*operands),
            [next(a for a in axes if a is not None)] * len(self.bind(*operands)),
        )
    }


def batch_claims_unmapped(cls):
    original = cls.batch

    def batch(self, size, name, operands, axes):
        outputs, out_axes = original(self, size, name, operands, axes)
        return outputs, [None for _ in out_axes]

    return {"batch": batch}


def record(**changes):
    """A factor record with some fields replaced."""

    def plant(cls):
        original = cls.shard

        def shard(self, *types):
            found = original(self, *types)
            values = {k: v(found) if callable(v) else v for k, v in changes.items()}
            return dataclasses.replace(found, **values)

        return {"shard": shard}

    return plant


def reduction_by(kind):
    return record(vanished=lambda found: dict.fromkeys(found.vanished, kind))


def writes_to_operand(cls):
    original = cls.reference

    def eager(self, *arrays):
        np.multiply(arrays[0], 0, out=arrays[0])
        return original(self, *arrays)

    return {"eager": eager}


def constant_hash_key(cls):
    """Compares by identity."""
    return {"__eq__": object.__eq__}


def nameless_error(cls):
    original = cls.infer

    def infer(self, *types):
        try:
            return original(self, *types)
        except ShapeError:
            raise ShapeError("shapes do not fit") from None

    return {"infer": infer}


def accepts_anything(cls):
    return {"infer": lambda self, *types: (types[0],)}


def loses_parameter_in_repr(cls):
    return {"__repr__": lambda self: "operation"}


def no_symbolic_sizes(cls):
    original = cls.infer

    def infer(self, *types):
        return tuple(
            t.replace(shape=tuple(s if type(s) is int else 7 for s in t.shape))
            for t in original(self, *types)
        )

    return {"infer": infer}


def excused(rule, sentence="this is a test of the checks"):
    return lambda cls: {"EXCUSED": {**cls.EXCUSED, rule: sentence}}


def without_excuse(rule):
    return lambda cls: {"EXCUSED": {k: v for k, v in cls.EXCUSED.items() if k != rule}}


def wrong_running_total(cls):
    original = cls.transpose_into

    def transpose_into(self, running, cotangents, *operands):
        totals = original(self, running, cotangents, *operands)
        return [t if r is None else r for t, r in zip(totals, running, strict=True)]

    return {"transpose_into": transpose_into}


def lower_scaled(cls):
    original = cls.lower

    def lower(self, builder, *operands):
        (result,) = original(self, builder, *operands)

        def element(index):
            value = result.element(index)
            factor = builder.constant(1.001, builder.dtypes[value])
            return builder.op("mul", value, factor)

        return (builder.lowered(result.shape, result.dtype, element),)

    return {"lower": lower}


def lower_of(other):
    """The rule of another operation, or of other operands, as `other(op, operands)` gives them."""

    def plant(cls):
        original = cls.lower

        def lower(self, builder, *operands):
            op, changed_operands = other(self, operands)
            rule = original if type(op) is type(self) else type(op).lower
            return rule(op, builder, *changed_operands)

        return {"lower": lower}

    return plant


def at_known_sizes(operand):
    """An operand whose sizes are all said to be numbers."""
    shape = tuple(size if type(size) is int else 3 for size in operand.shape)
    return dataclasses.replace(operand, shape=shape)


def mirrored(operand):
    """An operand read from the other end of its last dimension."""
    last = subtract(operand.shape[-1], 1)

    def element(index):
        return operand.element((*index[:-1], index[-1] * -1 + last))

    return dataclasses.replace(operand, element=element)


FAULTS = {
    "infer gives a wrong dtype": ("sin", "infer", changed("infer", widen)),
    "infer gives a wrong shape": ("dot_general", "infer", changed("infer", drop_size)),
    "infer gives one result too many": ("exp", "infer", changed("infer", lambda r, *_: r * 2)),
    "infer returns a list": ("add", "infer", changed("infer", lambda r, *_: list(r))),
    "reference returns a scalar": (
        "sin",
        "infer",
        changed("reference", lambda r, *_: tuple(a[()] for a in r)),
    ),
    "reference gives a wrong dtype": (
        "cumsum",
        "infer",
        changed("reference", lambda r, *_: tuple(a.astype("complex64") for a in r)),
    ),
    "eager differs from reference": (
        "tanh",
        "eager",
        changed("eager", lambda r, *_: tuple((a * 1.001).astype(a.dtype) for a in r)),
    ),
    "eager differs at infinity": (
        "sort",
        "eager",
        changed("eager", lambda r, *_: tuple(a[..., ::-1] for a in r)),
    ),
    "eager writes to its operand": ("exp", "eager", writes_to_operand),
    "eager is wrong in a compiled Program": (
        "reduce_sum",
        "backend",
        changed("eager", lambda r, *_: tuple(a + 1 for a in r)),
    ),
    "lower off by 0.1 %": ("sin", "lower", lower_scaled),
    "lower exchanges its operands": ("sub", "lower", lower_of(lambda op, xs: (op, xs[::-1]))),
    "lower leaves elements in their place": (
        "rev",
        "lower",
        lower_of(lambda op, xs: (type(op)(()), xs)),
    ),
    "lower reads rows for columns": (
        "transpose",
        "lower",
        lower_of(lambda op, xs: (type(op)(tuple(np.argsort(op.permutation).tolist())), xs)),
    ),
    "lower reduces by another combination": (
        "reduce_max",
        "lower",
        lower_of(lambda op, xs: (REGISTRY["reduce_min"](op.axes), xs)),
    ),
    "lower runs the other way": (
        "cumsum",
        "lower",
        lower_of(lambda op, xs: (type(op)(op.axis, not op.reverse), xs)),
    ),
    "lower gives another dtype": (
        "argmax",
        "lower",
        lower_of(lambda op, xs: (type(op)(op.axis, np.dtype("int16")), xs)),
    ),
    "lower finds the other extremum": (
        "argmin",
        "lower",
        lower_of(lambda op, xs: (REGISTRY["argmax"](op.axis, op.index_dtype), xs)),
    ),
    "lower rounds ties the other way": (
        "round",
        "lower",
        lower_of(lambda op, xs: (type(op)(not op.to_even), xs)),
    ),
    "lower shifts what is padded": (
        "pad",
        "lower",
        lower_of(
            lambda op, xs: (
                type(op)(tuple((high, low, inner) for low, high, inner in op.padding_config)),
                xs,
            )
        ),
    ),
    "lower convolves with a reversed kernel": (
        "conv_general_dilated",
        "lower",
        lower_of(lambda op, xs: (op, (xs[0], mirrored(xs[1]) if len(xs[1].shape) > 3 else xs[1]))),
    ),
    "lower knows the sizes of one sample": (
        "reduce_sum",
        "lower",
        lower_of(lambda op, xs: (op, tuple(map(at_known_sizes, xs)))),
    ),
    "lower gathers from another end": (
        "gather",
        "lower",
        lower_of(lambda op, xs: (op, (mirrored(xs[0]) if xs[0].shape else xs[0], xs[1]))),
    ),
    "lower draws for another key": (
        "random_bits",
        "lower",
        lower_of(lambda op, xs: (op, (mirrored(xs[0]) if xs[0].shape else xs[0],))),
    ),
    "derivative off by 0.1 %": ("sin", "jvp", changed("jvp", tangents_off_by(1.001))),
    "derivative of wrong sign": ("cos", "jvp", changed("jvp", tangents_off_by(-1.0))),
    "derivative off in one of several results": (
        "linear_recurrence",
        "jvp",
        changed("jvp", tangents_off_by(1.001)),
    ),
    "tangents of two operands swapped": ("div", "jvp", swapped_tangents),
    "tangents of concatenated operands swapped": ("atan2", "jvp", swapped_tangents),
    "tangent of second operand forgotten": ("mul", "jvp", forgotten_tangent),
    "no derivative at all": ("reduce_max", "jvp", no_derivative),
    "a tangent is missing": ("split", "jvp", too_few_tangents),
    "jvp returns other values": ("exp", "jvp", wrong_values_in_jvp),
    "linearize is not jvp": ("sin", "linearize", linearize_scaled),
    "transpose off by 0.1 %": ("mul", "transpose", changed("transpose", off_by(1.001))),
    "transpose is wrong under grad": ("reshape", "linearize", changed("transpose", off_by(-1.0))),
    "cotangents in reversed order": ("concatenate", "transpose", reversed_cotangents),
    "cotangents are not cut": ("concatenate", "transpose", transpose_without_cut),
    "cotangent of a broadcast is not summed": (
        "broadcast_in_dim",
        "transpose",
        transpose_without_cut,
    ),
    "cotangent of a slice is not padded": ("slice", "transpose", transpose_without_cut),
    "cotangent of real part lacks its dtype": ("real", "transpose", transpose_without_cut),
    "transpose_into forgets to add": ("slice", "transpose", wrong_running_total),
    "batch gives a wrong axis": ("transpose", "batch", wrong_batch_axis),
    "batch ignores axes of other operands": ("sub", "batch", batch_ignores_axes),
    "batch does not shift an axis": ("cumsum", "batch", batch_ignores_axes),
    "batch claims that nothing is mapped": ("sin", "batch", batch_claims_unmapped),
    "batch mixes up lanes": (
        "exp",
        "batch",
        changed(
            "batch", lambda r, *_: ([DeviceArray(r[0][0].numpy_view()[::-1], r[0][0].type)], r[1])
        ),
    ),
    "batch is wrong under jvp": ("sin", "jvp_of_batch", wrong_batch_axis),
    "a factor vanishes by the wrong reduction": ("reduce_sum", "shard", reduction_by("max")),
    "a factor is said to be the same everywhere": ("dot_general", "shard", reduction_by("any")),
    "a product is combined by a sum": ("reduce_prod", "shard", reduction_by("sum")),
    "a factor that must be whole may be split": ("sort", "shard", record(whole=frozenset())),
    "a running sum may be split": ("cumsum", "shard", record(whole=frozenset())),
    "factors are in the wrong order": (
        "transpose",
        "shard",
        record(results=lambda found: tuple(names[::-1] for names in found.results)),
    ),
    "a vanished factor is not declared": ("reduce_sum", "shard", record(vanished={})),
    "a factor is missing": (
        "add",
        "shard",
        record(operands=lambda found: tuple(names[1:] for names in found.operands)),
    ),
    "infer invents a size": ("exp", "symbolic", no_symbolic_sizes),
    "a bad sample is accepted": ("concatenate", "bad", accepts_anything),
    "an error does not name the operation": ("add", "bad", nameless_error),
    "equality is identity": ("round", "identity", constant_hash_key),
    "repr does not name the operation": ("round", "identity", loses_parameter_in_repr),
    "a rule is missing without an excuse": ("sin", "complete", without_excuse("transpose")),
    "an excuse is no sentence": ("sin", "complete", excused("transpose", "no")),
    "an excuse for what is no rule": ("sin", "complete", excused("fly")),
    "an excuse for a rule that exists": ("concatenate", "complete", excused("batch")),
    "an excuse for a factor record that exists": ("add", "excuses", excused("shard")),
    "an excuse for a transpose that exists": ("mul", "excuses", excused("transpose")),
    "an excuse for a derivative that exists": ("mul", "excuses", excused("jvp")),
}


@pytest.fixture(autouse=True)
def forget_rules():
    """What rules gave is remembered; what a planted one gave must not be seen, or stay."""
    clear_caches()
    yield
    clear_caches()


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught(fault, monkeypatch):
    name, check, plant = FAULTS[fault]
    assert not caught(name, check), "the check fails without the fault"
    cls = REGISTRY[name]
    for attribute, value in plant(cls).items():
        monkeypatch.setattr(cls, attribute, value)
    clear_caches()
    assert caught(name, check)
    monkeypatch.undo()


def test_missing_samples_are_an_error():
    with pytest.raises(FxArrayError, match="no samples"):
        list(Primitive.samples(np.random.default_rng(0)))


def test_records_parse_as_written():
    record_of_product = Factors.of("bmk,bkn->bmn")
    assert record_of_product.vanished == {"k": "sum"}
    assert ArrayType((2,), np.dtype("float32")).shape == (2,)
