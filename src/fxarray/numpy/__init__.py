"""The NumPy interface: functions on immutable arrays, by NumPy's and JAX's names.

>>> import fxarray.numpy as fnp
>>> x = fnp.linspace(0, 1, 5)
>>> fnp.sum(x**2)
Array(1.875, dtype=float32)
"""

# Some imports are there for what they fill.
# pyright: reportUnusedImport=false

# fmt: off
from math import e, inf, nan, pi

import numpy as _np

from fxarray.numpy import fft, linalg
from fxarray.numpy import at as _at  # fills x[index] and x.at[index]
from fxarray.numpy import methods as _methods  # fills the methods of Array
from fxarray.numpy import operators as _operators  # fills the operators of Array
from fxarray.numpy.arithmetic import (
    abs, absolute, add, bitwise_count, cbrt, clip, divide, divmod, fabs, float_power, floor_divide,
    fmax, fmin, fmod, maximum, minimum, mod, multiply, negative, positive, pow, power, reciprocal,
    remainder, sign, sqrt, square, subtract, true_divide,
)
from fxarray.numpy.averages import (
    average, mean, std, var,
)
from fxarray.numpy.comparison import (
    allclose, array_equal, array_equiv, bitwise_and, bitwise_invert, bitwise_left_shift,
    bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, equal, greater, greater_equal,
    invert, isclose, iscomplex, isfinite, isinf, isnan, isneginf, isposinf, isreal, left_shift,
    less, less_equal, logical_and, logical_not, logical_or, logical_xor, not_equal, right_shift,
    signbit,
)
from fxarray.numpy.conversion import (
    array, asarray, copy,
)
from fxarray.numpy.convolution import (
    convolve, correlate,
)
from fxarray.numpy.creation import (
    empty, empty_like, eye, full, full_like, identity, ones, ones_like, tri, tril, triu, vander,
    zeros, zeros_like,
)
from fxarray.numpy.cumulative import (
    cumprod, cumsum, cumulative_prod, cumulative_sum, diff, ediff1d, gradient, nancumprod,
    nancumsum, trapezoid,
)
from fxarray.numpy.dtype_functions import (
    can_cast, finfo, iinfo, isdtype, isscalar, issubdtype, iterable, promote_types, result_type,
)
from fxarray.numpy.editing import (
    delete, fill_diagonal, insert, place, put, put_along_axis, resize, trim_zeros,
)
from fxarray.numpy.einsum import (
    einsum, einsum_path,
)
from fxarray.numpy.elementary import (
    acos, acosh, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, asin, asinh,
    atan, atan2, atanh, conj, conjugate, cos, cosh, deg2rad, degrees, exp, exp2, expm1, hypot, imag,
    iscomplexobj, isrealobj, log, log10, log1p, log2, logaddexp, logaddexp2, rad2deg, radians, real,
    sin, sinc, sinh, tan, tanh,
)
from fxarray.numpy.files import (
    array_repr, array_str, from_dlpack, frombuffer, fromfile, fromiter, fromstring,
    get_printoptions, load, printoptions, save, savez, set_printoptions,
)
from fxarray.numpy.floating import (
    copysign, frexp, gcd, heaviside, i0, lcm, ldexp, modf, nan_to_num, nextafter, spacing, unwrap,
)
from fxarray.numpy.grids import (
    c_, diag, diag_indices, diag_indices_from, diagflat, fromfunction, index_exp, indices, ix_,
    mask_indices, meshgrid, mgrid, ogrid, r_, ravel_multi_index, s_, tril_indices,
    tril_indices_from, triu_indices, triu_indices_from, unravel_index,
)
from fxarray.numpy.joining import (
    append, array_split, block, column_stack, concat, concatenate, dsplit, dstack, hsplit, hstack,
    repeat, roll, split, stack, tile, unstack, vsplit, vstack,
)
from fxarray.numpy.linear_algebra import (
    cross, diagonal, dot, inner, kron, matmul, matrix_transpose, matvec, outer, tensordot, trace,
    vdot, vecdot, vecmat,
)
from fxarray.numpy.nan_reductions import (
    nanargmax, nanargmin, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
)
from fxarray.numpy.numerical import (
    apply_along_axis, apply_over_axes, bartlett, blackman, hamming, hanning, interp, kaiser,
    packbits, unpackbits,
)
from fxarray.numpy.padding import (
    pad,
)
from fxarray.numpy.polynomials import (
    poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, polyval, roots,
)
from fxarray.numpy.quantiles import (
    median, nanmedian, nanpercentile, nanquantile, percentile, quantile,
)
from fxarray.numpy.ranges import (
    arange, geomspace, linspace, logspace,
)
from fxarray.numpy.reductions import (
    all, amax, amin, any, argmax, argmin, count_nonzero, max, min, prod, ptp, sum,
)
from fxarray.numpy.rounding import (
    around, ceil, fix, floor, rint, round, trunc,
)
from fxarray.numpy.scalar_types import (
    bfloat16, bool_, cdouble, character, complex128, complex64, complex_, complexfloating, csingle,
    double, flexible, float16, float32, float4_e2m1fn, float64, float6_e2m3fn, float6_e3m2fn,
    float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
    float8_e5m2fnuz, float8_e8m0fnu, float_, floating, generic, inexact, int16, int2, int32, int4,
    int64, int8, int_, integer, number, object_, signedinteger, single, uint, uint16, uint2, uint32,
    uint4, uint64, uint8, unsignedinteger,
)
from fxarray.numpy.selection import (
    argwhere, choose, compress, extract, flatnonzero, nonzero, piecewise, select, where,
)
from fxarray.numpy.sets import (
    intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts,
    unique_inverse, unique_values,
)
from fxarray.numpy.shapes import (
    astype, atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to,
    expand_dims, flip, fliplr, flipud, moveaxis, ndim, permute_dims, ravel, reshape, rollaxis,
    rot90, shape, size, squeeze, swapaxes, transpose,
)
from fxarray.numpy.sorting import (
    argpartition, argsort, digitize, lexsort, partition, searchsorted, sort, sort_complex,
)
from fxarray.numpy.statistics import (
    bincount, corrcoef, cov, histogram, histogram2d, histogram_bin_edges, histogramdd,
)
from fxarray.numpy.taking import (
    take, take_along_axis,
)
from fxarray.numpy.vectorization import (
    vectorize,
)

from fxarray.core.array import Array as ndarray
from fxarray.numpy.scalar_types import bool_ as bool

euler_gamma = 0.5772156649015329
newaxis = None
dtype = _np.dtype

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "angle", "any",
    "append", "apply_along_axis", "apply_over_axes", "arange", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort",
    "argwhere", "around", "array", "array_equal", "array_equiv", "array_repr", "array_split",
    "array_str", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d",
    "atleast_2d", "atleast_3d", "average", "bartlett", "bfloat16", "bincount", "bitwise_and",
    "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool", "bool_", "broadcast_arrays",
    "broadcast_shapes", "broadcast_to", "c_", "can_cast", "cbrt", "cdouble", "ceil", "character",
    "choose", "clip", "column_stack", "complex128", "complex64", "complex_", "complexfloating",
    "compress", "concat", "concatenate", "conj", "conjugate", "convolve", "copy", "copysign",
    "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "csingle", "cumprod",
    "cumsum", "cumulative_prod", "cumulative_sum", "deg2rad", "degrees", "delete", "diag",
    "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff", "digitize", "divide",
    "divmod", "dot", "double", "dsplit", "dstack", "dtype", "e", "ediff1d", "einsum", "einsum_path",
    "empty", "empty_like", "equal", "euler_gamma", "exp", "exp2", "expand_dims", "expm1", "extract",
    "eye", "fabs", "fft", "fill_diagonal", "finfo", "fix", "flatnonzero", "flexible", "flip",
    "fliplr", "flipud", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn",
    "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_", "float_power",
    "floating", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "from_dlpack",
    "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "full", "full_like", "gcd",
    "generic", "geomspace", "get_printoptions", "gradient", "greater", "greater_equal", "hamming",
    "hanning", "heaviside", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
    "hsplit", "hstack", "hypot", "i0", "identity", "iinfo", "imag", "index_exp", "indices",
    "inexact", "inf", "inner", "insert", "int16", "int2", "int32", "int4", "int64", "int8", "int_",
    "integer", "interp", "intersect1d", "invert", "isclose", "iscomplex", "iscomplexobj", "isdtype",
    "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar",
    "issubdtype", "iterable", "ix_", "kaiser", "kron", "lcm", "ldexp", "left_shift", "less",
    "less_equal", "lexsort", "linalg", "linspace", "load", "log", "log10", "log1p", "log2",
    "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor",
    "logspace", "mask_indices", "matmul", "matrix_transpose", "matvec", "max", "maximum", "mean",
    "median", "meshgrid", "mgrid", "min", "minimum", "mod", "modf", "moveaxis", "multiply", "nan",
    "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean",
    "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar",
    "ndarray", "ndim", "negative", "newaxis", "nextafter", "nonzero", "not_equal", "number",
    "object_", "ogrid", "ones", "ones_like", "outer", "packbits", "pad", "partition", "percentile",
    "permute_dims", "pi", "piecewise", "place", "poly", "polyadd", "polyder", "polydiv", "polyfit",
    "polyint", "polymul", "polysub", "polyval", "positive", "pow", "power", "printoptions", "prod",
    "promote_types", "ptp", "put", "put_along_axis", "quantile", "r_", "rad2deg", "radians",
    "ravel", "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "reshape", "resize",
    "result_type", "right_shift", "rint", "roll", "rollaxis", "roots", "rot90", "round", "s_",
    "save", "savez", "searchsorted", "select", "set_printoptions", "setdiff1d", "setxor1d", "shape",
    "sign", "signbit", "signedinteger", "sin", "sinc", "single", "sinh", "size", "sort",
    "sort_complex", "spacing", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract",
    "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "trace",
    "transpose", "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros",
    "triu", "triu_indices", "triu_indices_from", "true_divide", "trunc", "uint", "uint16", "uint2",
    "uint32", "uint4", "uint64", "uint8", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "unpackbits", "unravel_index", "unsignedinteger", "unstack",
    "unwrap", "vander", "var", "vdot", "vecdot", "vecmat", "vectorize", "vsplit", "vstack", "where",
    "zeros", "zeros_like",
]
# fmt: on
