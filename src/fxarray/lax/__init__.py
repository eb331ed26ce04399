"""Operations under JAX's names, without promotion or broadcasting."""

from __future__ import annotations

from fxarray.lax.conversion import bitcast_convert_type as bitcast_convert_type
from fxarray.lax.conversion import complex as complex
from fxarray.lax.conversion import conj as conj
from fxarray.lax.conversion import convert_element_type as convert_element_type
from fxarray.lax.conversion import imag as imag
from fxarray.lax.conversion import real as real
from fxarray.lax.conversion import reduce_precision as reduce_precision
from fxarray.lax.conversion import stop_gradient as stop_gradient
from fxarray.lax.elementwise import (
    RoundingMethod as RoundingMethod,
)
from fxarray.lax.elementwise import (
    abs as abs,
)
from fxarray.lax.elementwise import (
    acos as acos,
)
from fxarray.lax.elementwise import (
    acosh as acosh,
)
from fxarray.lax.elementwise import (
    add as add,
)
from fxarray.lax.elementwise import (
    asin as asin,
)
from fxarray.lax.elementwise import (
    asinh as asinh,
)
from fxarray.lax.elementwise import (
    atan as atan,
)
from fxarray.lax.elementwise import (
    atan2 as atan2,
)
from fxarray.lax.elementwise import (
    atanh as atanh,
)
from fxarray.lax.elementwise import (
    bessel_i0e as bessel_i0e,
)
from fxarray.lax.elementwise import (
    bessel_i1e as bessel_i1e,
)
from fxarray.lax.elementwise import (
    betainc as betainc,
)
from fxarray.lax.elementwise import (
    bitcast_convert_type as bitcast_convert_type,
)
from fxarray.lax.elementwise import (
    bitwise_and as bitwise_and,
)
from fxarray.lax.elementwise import (
    bitwise_not as bitwise_not,
)
from fxarray.lax.elementwise import (
    bitwise_or as bitwise_or,
)
from fxarray.lax.elementwise import (
    bitwise_xor as bitwise_xor,
)
from fxarray.lax.elementwise import (
    cbrt as cbrt,
)
from fxarray.lax.elementwise import (
    ceil as ceil,
)
from fxarray.lax.elementwise import (
    clamp as clamp,
)
from fxarray.lax.elementwise import (
    clz as clz,
)
from fxarray.lax.elementwise import (
    complex as complex,
)
from fxarray.lax.elementwise import (
    conj as conj,
)
from fxarray.lax.elementwise import (
    convert_element_type as convert_element_type,
)
from fxarray.lax.elementwise import (
    cos as cos,
)
from fxarray.lax.elementwise import (
    cosh as cosh,
)
from fxarray.lax.elementwise import (
    digamma as digamma,
)
from fxarray.lax.elementwise import (
    div as div,
)
from fxarray.lax.elementwise import (
    eq as eq,
)
from fxarray.lax.elementwise import (
    erf as erf,
)
from fxarray.lax.elementwise import (
    erf_inv as erf_inv,
)
from fxarray.lax.elementwise import (
    erfc as erfc,
)
from fxarray.lax.elementwise import (
    exp as exp,
)
from fxarray.lax.elementwise import (
    exp2 as exp2,
)
from fxarray.lax.elementwise import (
    expm1 as expm1,
)
from fxarray.lax.elementwise import (
    floor as floor,
)
from fxarray.lax.elementwise import (
    ge as ge,
)
from fxarray.lax.elementwise import (
    gt as gt,
)
from fxarray.lax.elementwise import (
    igamma as igamma,
)
from fxarray.lax.elementwise import (
    igamma_grad_a as igamma_grad_a,
)
from fxarray.lax.elementwise import (
    igammac as igammac,
)
from fxarray.lax.elementwise import (
    imag as imag,
)
from fxarray.lax.elementwise import (
    integer_pow as integer_pow,
)
from fxarray.lax.elementwise import (
    is_finite as is_finite,
)
from fxarray.lax.elementwise import (
    le as le,
)
from fxarray.lax.elementwise import (
    lgamma as lgamma,
)
from fxarray.lax.elementwise import (
    log as log,
)
from fxarray.lax.elementwise import (
    log1p as log1p,
)
from fxarray.lax.elementwise import (
    logistic as logistic,
)
from fxarray.lax.elementwise import (
    lt as lt,
)
from fxarray.lax.elementwise import (
    max as max,
)
from fxarray.lax.elementwise import (
    min as min,
)
from fxarray.lax.elementwise import (
    mul as mul,
)
from fxarray.lax.elementwise import (
    mulhi as mulhi,
)
from fxarray.lax.elementwise import (
    ne as ne,
)
from fxarray.lax.elementwise import (
    neg as neg,
)
from fxarray.lax.elementwise import (
    nextafter as nextafter,
)
from fxarray.lax.elementwise import (
    polygamma as polygamma,
)
from fxarray.lax.elementwise import (
    population_count as population_count,
)
from fxarray.lax.elementwise import (
    pow as pow,
)
from fxarray.lax.elementwise import (
    random_gamma_grad as random_gamma_grad,
)
from fxarray.lax.elementwise import (
    real as real,
)
from fxarray.lax.elementwise import (
    reciprocal as reciprocal,
)
from fxarray.lax.elementwise import (
    reduce_precision as reduce_precision,
)
from fxarray.lax.elementwise import (
    rem as rem,
)
from fxarray.lax.elementwise import (
    round as round,
)
from fxarray.lax.elementwise import (
    rsqrt as rsqrt,
)
from fxarray.lax.elementwise import (
    select as select,
)
from fxarray.lax.elementwise import (
    select_n as select_n,
)
from fxarray.lax.elementwise import (
    shift_left as shift_left,
)
from fxarray.lax.elementwise import (
    shift_right_arithmetic as shift_right_arithmetic,
)
from fxarray.lax.elementwise import (
    shift_right_logical as shift_right_logical,
)
from fxarray.lax.elementwise import (
    sign as sign,
)
from fxarray.lax.elementwise import (
    sin as sin,
)
from fxarray.lax.elementwise import (
    sinh as sinh,
)
from fxarray.lax.elementwise import (
    sqrt as sqrt,
)
from fxarray.lax.elementwise import (
    square as square,
)
from fxarray.lax.elementwise import (
    stop_gradient as stop_gradient,
)
from fxarray.lax.elementwise import (
    sub as sub,
)
from fxarray.lax.elementwise import (
    tan as tan,
)
from fxarray.lax.elementwise import (
    tanh as tanh,
)
from fxarray.lax.elementwise import (
    zeta as zeta,
)
from fxarray.lax.functions import acos as acos
from fxarray.lax.functions import acosh as acosh
from fxarray.lax.functions import asin as asin
from fxarray.lax.functions import asinh as asinh
from fxarray.lax.functions import atan as atan
from fxarray.lax.functions import atan2 as atan2
from fxarray.lax.functions import atanh as atanh
from fxarray.lax.functions import cbrt as cbrt
from fxarray.lax.functions import cos as cos
from fxarray.lax.functions import cosh as cosh
from fxarray.lax.functions import exp as exp
from fxarray.lax.functions import exp2 as exp2
from fxarray.lax.functions import expm1 as expm1
from fxarray.lax.functions import integer_pow as integer_pow
from fxarray.lax.functions import log as log
from fxarray.lax.functions import log1p as log1p
from fxarray.lax.functions import logistic as logistic
from fxarray.lax.functions import pow as pow
from fxarray.lax.functions import rsqrt as rsqrt
from fxarray.lax.functions import sin as sin
from fxarray.lax.functions import sinh as sinh
from fxarray.lax.functions import sqrt as sqrt
from fxarray.lax.functions import tan as tan
from fxarray.lax.functions import tanh as tanh
from fxarray.lax.logic import bitwise_and as bitwise_and
from fxarray.lax.logic import bitwise_not as bitwise_not
from fxarray.lax.logic import bitwise_or as bitwise_or
from fxarray.lax.logic import bitwise_xor as bitwise_xor
from fxarray.lax.logic import clz as clz
from fxarray.lax.logic import eq as eq
from fxarray.lax.logic import ge as ge
from fxarray.lax.logic import gt as gt
from fxarray.lax.logic import is_finite as is_finite
from fxarray.lax.logic import le as le
from fxarray.lax.logic import lt as lt
from fxarray.lax.logic import mulhi as mulhi
from fxarray.lax.logic import ne as ne
from fxarray.lax.logic import population_count as population_count
from fxarray.lax.logic import select as select
from fxarray.lax.logic import select_n as select_n
from fxarray.lax.logic import shift_left as shift_left
from fxarray.lax.logic import shift_right_arithmetic as shift_right_arithmetic
from fxarray.lax.logic import shift_right_logical as shift_right_logical
from fxarray.lax.special import bessel_i0e as bessel_i0e
from fxarray.lax.special import bessel_i1e as bessel_i1e
from fxarray.lax.special import betainc as betainc
from fxarray.lax.special import digamma as digamma
from fxarray.lax.special import erf as erf
from fxarray.lax.special import erf_inv as erf_inv
from fxarray.lax.special import erfc as erfc
from fxarray.lax.special import igamma as igamma
from fxarray.lax.special import igamma_grad_a as igamma_grad_a
from fxarray.lax.special import igammac as igammac
from fxarray.lax.special import lgamma as lgamma
from fxarray.lax.special import polygamma as polygamma
from fxarray.lax.special import random_gamma_grad as random_gamma_grad
from fxarray.lax.special import zeta as zeta
