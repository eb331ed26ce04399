"""dtypes: names, families, promotion against JAX's over all pairs, casts against JAX's."""

from __future__ import annotations

import copy
import enum
import itertools
import pickle
import subprocess
import sys
import types

import ml_dtypes
import numpy as np
import pytest

from fxarray.core import dtype_table as table
from fxarray.core import dtypes
from fxarray.core.errors import DTypeError, TypePromotionError

ALL = (*table.NUMERIC, dtypes.float0, dtypes.key_dtype)
# ml_dtypes' 6-bit floats are not JAX's; fxarray treats them as it treats its float8 kinds.
IN_JAX = [d for d in table.NUMERIC if "float6" not in d.name]
WIDE = {"int64", "uint64", "float64", "complex128"}


@pytest.fixture(scope="module")
def jax():
    """JAX with 64-bit types on; the flag goes back afterwards, for other tests in this process."""
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


# --- names and canonical forms -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (bool, "bool"),
        (int, "int32"),
        (float, "float32"),
        (complex, "complex64"),
        ("int", "int32"),
        ("float", "float32"),
        (np.float64, "float64"),
        ("float64", "float64"),
        (np.dtype("int64"), "int64"),
        (np.complex128, "complex128"),
        ("bfloat16", "bfloat16"),
        (ml_dtypes.float8_e4m3fn, "float8_e4m3fn"),
        ("f4", "float32"),
        (">f4", "float32"),
        (np.longlong, "int64"),
        (np.dtype("q"), "int64"),
        (np.intc, "int32"),
        (ml_dtypes.int4, "int4"),
        ("key<fry>", "key<fry>"),
        ("float0", "float0"),
    ],
)
def test_canonical_accepts_what_users_write(given, expected):
    assert dtypes.name(dtypes.canonical(given)) == expected


@pytest.mark.parametrize("dtype", ALL, ids=dtypes.name)
def test_canonical_forms_are_fixed_points_with_unique_names(dtype):
    assert dtypes.canonical(dtype) == dtype
    assert dtypes.canonical(dtypes.name(dtype)) == dtype
    assert dtypes.from_short_name(dtypes.short_name(dtype)) == dtype


def test_canonical_reads_the_dtype_attribute_of_objects():
    class Scalar:
        dtype = np.dtype("int8")

    assert dtypes.canonical(Scalar()) == np.int8
    assert dtypes.canonical(np.zeros(3, ">i2")) == np.int16


@pytest.mark.parametrize(
    ("given", "help_text"),
    [
        (object, "Python objects"),
        (np.dtype("U3"), "static values"),
        (np.dtype("datetime64[s]"), "convert times"),
        (np.dtype([("a", "i4")]), "one array per field"),
        (np.longdouble, "widest are float64"),
        (np.floating, "abstract family"),
        ("float33", "float32"),
        ("i4,", "one array per field"),
        (None, "leave the argument out"),
        ([1, 2], "not a dtype"),
    ],
)
def test_unsupported_dtypes_are_refused_with_help(given, help_text):
    with pytest.raises(DTypeError, match=help_text):
        dtypes.canonical(given)


def test_short_names_are_those_of_printed_types():
    names = ["float32", "bfloat16", "int32", "uint8", "bool", "complex64", "key<fry>", "int4"]
    shorts = [dtypes.short_name(dtypes.canonical(name)) for name in names]
    assert shorts == ["f32", "bf16", "i32", "u8", "bool", "c64", "key", "i4"]


def test_the_key_dtype_is_one_value_through_copies_and_pickles():
    key = dtypes.key_dtype
    assert pickle.loads(pickle.dumps(key)) is key
    assert copy.deepcopy(key) is key
    assert {key: 1}[dtypes.canonical("key<fry>")] == 1
    assert key != np.dtype("uint64")
    assert np.dtype("uint64") != key
    assert (key.name, key.kind, key.itemsize) == ("key<fry>", "key", 8)
    assert dtypes.physical(key) == np.uint64
    assert dtypes.physical(dtypes.float32) is dtypes.float32


def test_every_dtype_has_exactly_one_family():
    for dtype in table.NUMERIC:
        families = [
            dtypes.is_bool(dtype),
            dtypes.is_signed(dtype),
            dtypes.is_unsigned(dtype),
            dtypes.is_float(dtype),
            dtypes.is_complex(dtype),
        ]
        assert sum(families) == 1, dtype
        assert dtypes.is_integer(dtype) == (dtypes.is_signed(dtype) or dtypes.is_unsigned(dtype))
        assert dtypes.is_inexact(dtype) == (dtypes.is_float(dtype) or dtypes.is_complex(dtype))
        assert dtypes.is_numeric(dtype)
    for dtype in (dtypes.float0, dtypes.key_dtype):
        assert not dtypes.is_numeric(dtype)
        assert not dtypes.is_inexact(dtype)
    assert dtypes.is_key(dtypes.key_dtype)
    assert not dtypes.is_key(dtypes.uint64)


def test_issubdtype_agrees_with_jax(jax):
    families = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger]
    families += [np.inexact, np.floating, np.complexfloating]
    for dtype, family in itertools.product(IN_JAX, families):
        expected = bool(jax.dtypes.issubdtype(dtype, family))
        assert dtypes.issubdtype(dtype, family) == expected, (dtype, family)
    for left, right in itertools.product(IN_JAX, IN_JAX):
        assert dtypes.issubdtype(left, right) == bool(jax.dtypes.issubdtype(left, right))


def test_issubdtype_knows_keys_and_abstract_types():
    assert dtypes.issubdtype(dtypes.key_dtype, dtypes.prng_key)
    assert dtypes.issubdtype(dtypes.key_dtype, dtypes.extended)
    assert not dtypes.issubdtype(dtypes.key_dtype, np.number)
    assert not dtypes.issubdtype(np.uint64, dtypes.extended)
    assert dtypes.issubdtype(np.floating, np.inexact)
    assert not dtypes.issubdtype(np.floating, np.float32)
    assert dtypes.issubdtype("float32", float)


def test_finfo_and_iinfo_know_the_narrow_types():
    assert float(dtypes.finfo("bfloat16").eps) == 2**-7
    assert float(dtypes.finfo("float8_e4m3fn").max) == 448
    assert dtypes.finfo(float).dtype == np.float32
    assert (dtypes.iinfo("int4").min, dtypes.iinfo("uint2").max) == (-8, 3)
    with pytest.raises(DTypeError, match="iinfo"):
        dtypes.finfo(int)
    with pytest.raises(DTypeError, match="finfo"):
        dtypes.iinfo(float)


# --- promotion -----------------------------------------------------------------------------------


def expected_promotion(jax, a, weak_a, b, weak_b):
    """JAX's answer, with fxarray's rule for defaults: 32 bits unless an operand has 64."""
    from jax._src.dtypes import lattice_result_type

    def operand(dtype, weak):
        return types.SimpleNamespace(dtype=dtype, aval=types.SimpleNamespace(weak_type=weak))

    try:
        dtype, weak = lattice_result_type(operand(a, weak_a), operand(b, weak_b))
    except jax.dtypes.TypePromotionError:
        return None
    narrow = {"int64": "int32", "float64": "float32", "complex128": "complex64"}
    is_default = weak and not (weak_a and weak_b)
    if is_default and dtype.name in narrow and not WIDE & {a.name, b.name}:
        dtype = np.dtype(narrow[dtype.name])
    return dtype, weak


def can_be_weak(dtype):
    return dtype.name in ("int32", "int64", "float32", "float64", "complex64", "complex128")


def operands():
    for dtype in IN_JAX:
        yield dtype, False
        if can_be_weak(dtype):
            yield dtype, True


def test_promotion_agrees_with_jax_over_all_pairs(jax):
    pairs = list(itertools.product(operands(), operands()))
    assert len(pairs) > 700
    differences = []
    for (a, weak_a), (b, weak_b) in pairs:
        expected = expected_promotion(jax, a, weak_a, b, weak_b)
        try:
            actual = dtypes.promote((a, b), (weak_a, weak_b))
        except TypePromotionError:
            actual = None
        if actual != expected:
            differences.append((a.name, weak_a, b.name, weak_b, actual, expected))
    assert not differences, differences[:20]


def test_promotion_of_two_dtypes_agrees_with_jax(jax):
    for a, b in itertools.product(IN_JAX, IN_JAX):
        try:
            expected = jax.numpy.promote_types(a, b)
        except jax.dtypes.TypePromotionError:
            with pytest.raises(TypePromotionError):
                dtypes.promote_types(a, b)
        else:
            assert dtypes.promote_types(a, b) == expected, (a, b)


def test_promotion_is_commutative_and_associative_for_strong_operands():
    strong = [d for d in IN_JAX if d not in table.SMALL_FLOATS and dtypes.bit_width(d) >= 8]
    for a, b in itertools.combinations(strong, 2):
        assert dtypes.promote((a, b), (False, False)) == dtypes.promote((b, a), (False, False))
    # u64 with i64 gives a weak float, as in JAX; without that pair the lattice is associative.
    strong.remove(dtypes.uint64)
    for a, b, c in itertools.combinations(strong, 3):
        whole = dtypes.promote_types(dtypes.promote_types(a, b), c)
        assert dtypes.promote((a, b, c), (False,) * 3)[0] == whole


@pytest.mark.parametrize(
    ("array", "scalar", "expected"),
    [
        ("float16", 1.0, ("float16", False)),
        ("int8", 1, ("int8", False)),
        ("int8", 1.0, ("float32", True)),
        ("int32", 2.0, ("float32", True)),
        ("int64", 2.0, ("float64", True)),
        ("bool", 1, ("int32", True)),
        ("bool", 1.0, ("float32", True)),
        ("float64", 1j, ("complex128", False)),
        ("bfloat16", 1j, ("complex64", False)),
        ("int4", 1, ("int4", False)),
        ("float8_e4m3fn", 1.0, ("float8_e4m3fn", False)),
        ("float32", np.sqrt(64), ("float32", False)),
        ("float32", np.float64(2), ("float32", False)),
        ("bfloat16", np.float32(2), ("float32", False)),
        ("int8", np.int64(2), ("int8", False)),
        ("float32", True, ("float32", False)),
    ],
)
def test_scalars_take_the_type_of_the_array_they_meet(array, scalar, expected):
    scalar_dtype, weak = dtypes.scalar_dtype(scalar)
    dtype, result_weak = dtypes.promote((dtypes.canonical(array), scalar_dtype), (False, weak))
    assert (dtype.name, result_weak) == expected


def test_python_types_promote_as_weak():
    assert dtypes.promote_types("int16", int) == np.int16
    assert dtypes.promote_types("float16", float) == np.float16
    assert dtypes.promote_types("int16", float) == np.float32
    assert dtypes.promote_types(int, float) == np.float32


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("float8_e4m3fn", "bfloat16", r"float8_e4m3fn and bfloat16.*astype\('bfloat16'\)"),
        ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fn and float8_e5m2.*explicit cast"),
        ("float6_e2m3fn", "float32", r"astype\('float32'\)"),
        ("int4", "int8", "int4 and int8.*explicit cast"),
        ("key<fry>", "uint32", "a random key is not a number"),
        ("float0", "float32", "float0 is the derivative type"),
    ],
)
def test_dtypes_without_promotion_are_named_with_the_remedy(a, b, message):
    with pytest.raises(TypePromotionError, match=message):
        dtypes.promote_types(a, b)


def test_equal_dtypes_promote_to_themselves_even_where_nothing_else_does():
    for dtype in ALL:
        assert dtypes.promote((dtype, dtype, dtype), (False,) * 3) == (dtype, False)


# --- derived dtypes ------------------------------------------------------------------------------


def test_derived_dtypes():
    def each(function, names):
        return [function(dtypes.canonical(name)).name for name in names]

    names = ["bool", "int8", "int32", "int64", "uint64", "bfloat16", "float64", "complex64"]
    assert each(dtypes.to_inexact, names) == [
        *("float32", "float32", "float32", "float64", "float64", "bfloat16", "float64", "complex64")
    ]
    assert each(dtypes.to_complex, names) == [
        *("complex64", "complex64", "complex64", "complex128", "complex128"),
        *("complex64", "complex128", "complex64"),
    ]
    assert each(dtypes.to_real, ["complex64", "complex128", "int8"]) == [
        *("float32", "float64", "int8")
    ]
    assert each(dtypes.accumulator, ["bfloat16", "float16", "float8_e5m2", "float64", "int8"]) == [
        *("float32", "float32", "float32", "float64", "int8")
    ]
    sums = ["bool", "int4", "int8", "int16", "int32", "uint8", "uint16", "uint64", "bfloat16"]
    assert each(dtypes.sum_result, sums) == [
        *("int32", "int32", "int32", "int32", "int32", "uint32", "uint32", "uint64", "bfloat16")
    ]


@pytest.mark.parametrize("function", [dtypes.to_inexact, dtypes.to_complex])
def test_keys_have_no_floating_counterpart(function):
    with pytest.raises(DTypeError, match="key<fry>"):
        function(dtypes.key_dtype)


# --- scalars -------------------------------------------------------------------------------------


class Colour(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("value", "expected", "weak"),
    [
        (True, "bool", False),
        (np.bool_(True), "bool", False),
        (3, "int32", True),
        (Colour.RED, "int32", True),
        (3.0, "float32", True),
        (3j, "complex64", True),
        (np.float64(3), "float32", True),
        (np.int64(3), "int32", True),
        (np.complex128(3), "complex64", True),
        (np.float32(3), "float32", False),
        (np.int32(3), "int32", False),
        (np.uint64(3), "uint64", False),
        (np.float16(3), "float16", False),
        (ml_dtypes.bfloat16(3), "bfloat16", False),
        (ml_dtypes.int4(3), "int4", False),
    ],
)
def test_scalars_have_a_dtype_and_weakness(value, expected, weak):
    dtype, is_weak = dtypes.scalar_dtype(value)
    assert (dtype.name, is_weak) == (expected, weak)
    array = dtypes.scalar_array(value)
    assert array.dtype == dtype
    assert array.shape == ()
    assert complex(array.astype(np.complex128)[()]) == complex(value)


@pytest.mark.parametrize("value", ["3", None, [3], np.zeros(2), np.datetime64("2020")])
def test_what_is_no_number_is_no_scalar(value):
    with pytest.raises(DTypeError):
        dtypes.scalar_dtype(value)


def test_integers_outside_their_dtype_overflow_with_the_remedy():
    with pytest.raises(OverflowError, match=r'int32, the default.*dtype="int64"'):
        dtypes.scalar_array(2**31)
    with pytest.raises(OverflowError, match=r'dtype="uint64"'):
        dtypes.scalar_array(2**63)
    with pytest.raises(OverflowError, match="use a float"):
        dtypes.scalar_array(2**64)
    with pytest.raises(OverflowError, match="uint8"):
        dtypes.scalar_array(-1, dtypes.uint8)
    with pytest.raises(OverflowError, match="int4"):
        dtypes.scalar_array(8, dtypes.int4)
    with pytest.raises(OverflowError, match="int32"):
        dtypes.scalar_array(np.int64(2**40))


def test_scalars_fill_the_range_of_the_dtype_they_get():
    assert int(dtypes.scalar_array(2**40, dtypes.int64)) == 2**40
    assert int(dtypes.scalar_array(2**64 - 1, dtypes.uint64)) == 2**64 - 1
    assert int(dtypes.scalar_array(-8, dtypes.int4)) == -8
    assert float(dtypes.scalar_array(2**40, dtypes.float32)) == 2.0**40
    assert float(dtypes.scalar_array(0.1, dtypes.float64)) == 0.1
    assert float(dtypes.scalar_array(np.float64(0.1), dtypes.float64)) == 0.1
    assert complex(dtypes.scalar_array(0.1 + 0.2j, dtypes.complex128)) == 0.1 + 0.2j
    assert float(dtypes.scalar_array(1e300)) == np.inf
    assert float(dtypes.scalar_array(-np.inf)) == -np.inf
    assert np.isnan(dtypes.scalar_array(np.nan))
    assert bool(dtypes.scalar_array(2, dtypes.bool_)) is True


def test_a_number_is_no_key():
    with pytest.raises(DTypeError, match=r"random\.key"):
        dtypes.scalar_array(3, dtypes.key_dtype)


# --- casts ---------------------------------------------------------------------------------------

EDGES = [
    0.0,
    -0.0,
    0.49,
    0.5,
    0.51,
    1.0,
    -1.0,
    1.5,
    2.5,
    -2.5,
    6.9,
    7.5,
    127.4,
    127.9,
    128.0,
    -128.6,
]
EDGES += [-129.0, 200.0, 255.9, 256.0, 300.0, 448.0, 465.0, 500.0, 32767.5, 65503.0, 65520.0, 7e4]
EDGES += [2.0**31 - 1, 2.0**31, -(2.0**31), -(2.0**31) - 1, 2.0**32, 2.0**63, -(2.0**63), 2.0**64]
EDGES += [1e-3, 1e-8, 6e-8, 1e-40, 1e30, 1e39, -1e39, 1e300, np.inf, -np.inf, np.nan]


def inputs(dtype):
    """Values of `dtype` at the edges of all dtypes, made without `cast`."""
    with np.errstate(all="ignore"):
        if dtype == np.bool_:
            return np.array([False, True])
        if dtypes.is_integer(dtype):
            info = ml_dtypes.iinfo(dtype)
            low, high = int(info.min), int(info.max)
            edges = [
                0,
                1,
                2,
                3,
                7,
                8,
                15,
                16,
                127,
                128,
                255,
                256,
                2**24 + 1,
                2**31,
                2**53 + 1,
                2**62,
            ]
            whole = {low, low + 1, high, high - 1, *edges, *(-edge for edge in edges)}
            carrier = np.uint64 if low == 0 else np.int64
            return np.array(sorted(v for v in whole if low <= v <= high), carrier).astype(dtype)
        if dtypes.is_complex(dtype):
            return np.array([complex(edge, 3) for edge in EDGES] + [0j, 1j]).astype(dtype)
        values = np.array(EDGES)
        if dtype == dtypes.float8_e8m0fnu:
            values = np.abs(values)
        return values.astype(np.float32).astype(dtype) if dtype != np.float64 else values


def bits_of(array):
    return np.ascontiguousarray(array).view(np.uint8)


def agree(actual, expected):
    """Bitwise equality, any NaN equal to any NaN."""
    if dtypes.is_inexact(actual.dtype) and actual.dtype.itemsize <= 2:
        actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    if not dtypes.is_inexact(actual.dtype):
        return bool((bits_of(actual) == bits_of(expected)).all())
    return np.array_equal(actual, expected, equal_nan=True) and np.array_equal(
        np.signbit(actual.real[~np.isnan(actual)]), np.signbit(expected.real[~np.isnan(expected)])
    )


PAIRS = list(itertools.product(table.NUMERIC, table.NUMERIC))


def test_every_pair_of_dtypes_casts_without_warnings():
    for source, target in PAIRS:
        x = inputs(source)
        y = dtypes.cast(x, target)
        assert isinstance(y, np.ndarray)
        assert y.dtype == target
        assert y.shape == x.shape
        scalar = dtypes.cast(x[:1].reshape(()), target)
        assert isinstance(scalar, np.ndarray)
        assert scalar.dtype == target
        assert scalar.shape == ()


def expected_element(value, target):
    """What one real element becomes in an integer or bool dtype, in Python's exact integers."""
    if target == np.bool_:
        return value != 0
    low, high = int(ml_dtypes.iinfo(target).min), int(ml_dtypes.iinfo(target).max)
    if isinstance(value, int):
        return (value - low) % (high - low + 1) + low
    if np.isnan(value):
        return 0
    if np.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, int(value)))


def test_casts_to_integers_follow_the_definition_exactly():
    for source, target in PAIRS:
        if not (dtypes.is_integer(target) or dtypes.is_bool(target)) or dtypes.is_complex(source):
            continue
        x = inputs(source)
        exact = int if dtypes.is_integer(source) or dtypes.is_bool(source) else float
        expected = [expected_element(exact(value), target) for value in x]
        actual = [int(value) for value in dtypes.cast(x, target)]
        assert actual == expected, (source, target)


# Where JAX 0.10 on a CPU differs: it takes the largest float4 for an infinity when it converts to
# integers, and flushes denormal numbers to zero, which fxarray keeps.
FLOAT4 = dtypes.float4_e2m1fn


def as_in_jax(x, source, target):
    """The elements of `x` in whose conversion fxarray means to agree with JAX."""
    if dtypes.is_float(source):
        wide = x.astype(np.float64)
        x = x[(wide == 0) | (np.abs(wide) >= np.finfo(np.float32).tiny) | np.isnan(wide)]
    if source == FLOAT4 and dtypes.is_integer(target):
        x = x[np.abs(x.astype(np.float32)) < 6]
    if target == FLOAT4 and not dtypes.is_complex(source):
        x = x[x == x]  # NaN becomes zero in a type without NaN; of which sign depends on its bits
    return x


# JAX warns when it drops imaginary parts, and to bool it looks at the real part alone.
SOURCES = [dtype for dtype in IN_JAX if not dtypes.is_complex(dtype)]


@pytest.mark.parametrize("source", SOURCES, ids=dtypes.name)
def test_casts_agree_with_jax(jax, source):
    xs = [as_in_jax(inputs(source), source, target) for target in IN_JAX]
    convert = jax.jit(
        lambda xs: [jax.lax.convert_element_type(x, t) for x, t in zip(xs, IN_JAX, strict=True)]
    )
    for x, target, expected in zip(xs, IN_JAX, convert(xs), strict=True):
        assert len(x) >= 2
        assert agree(dtypes.cast(x, target), np.asarray(expected)), target


def test_casting_to_the_same_dtype_is_free():
    x = np.arange(3)
    assert dtypes.cast(x, np.dtype("int64")) is x


def test_complex_casts_drop_the_imaginary_part_but_bool_looks_at_both():
    x = np.array([0j, 1j, 2 + 1j])
    assert dtypes.cast(x, dtypes.float32).tolist() == [0, 0, 2]
    assert dtypes.cast(x, dtypes.bool_).tolist() == [False, True, True]


@pytest.mark.parametrize("target", [dtypes.key_dtype, dtypes.float0])
def test_numbers_are_not_cast_to_keys_or_float0(target):
    with pytest.raises(DTypeError, match=r"key|float0"):
        dtypes.cast(np.zeros(2), target)
    with pytest.raises(DTypeError, match="float0"):
        dtypes.cast(np.zeros(2, dtypes.float0), dtypes.float32)


def test_importing_dtypes_does_not_import_jax():
    code = "import sys, fxarray.core.dtypes; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("source", [dtypes.float32, dtypes.bfloat16, dtypes.float16])
@pytest.mark.parametrize("target", [dtypes.float64, dtypes.complex128, dtypes.float32])
def test_widening_a_signalling_nan_does_not_warn(source, target):
    bits = {"float32": 0x7F800001, "bfloat16": 0x7F81, "float16": 0x7C01}[source.name]
    array = np.array([bits], f"uint{source.itemsize * 8}").view(source)
    assert np.isnan(dtypes.cast(array, target)).all()
