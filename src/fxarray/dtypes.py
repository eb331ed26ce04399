"""Dtypes: their names, families and promotion."""

from fxarray.core.dtypes import bfloat16 as bfloat16
from fxarray.core.dtypes import canonical as canonicalize_dtype
from fxarray.core.dtypes import finfo as finfo
from fxarray.core.dtypes import float0 as float0
from fxarray.core.dtypes import iinfo as iinfo
from fxarray.core.dtypes import issubdtype as issubdtype
from fxarray.core.dtypes import prng_key as prng_key
from fxarray.core.dtypes import promote_types as promote_types
from fxarray.numpy import result_type as result_type

__all__ = [
    "bfloat16",
    "canonicalize_dtype",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "prng_key",
    "promote_types",
    "result_type",
]
