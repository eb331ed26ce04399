"""Native code for whole operations that are no kernels: sorting, scatters, random bits, LAPACK."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import features
from fxarray.devices.cpu.library.boxes import slice_routine, update_routine
from fxarray.devices.cpu.library.factors import (
    cholesky_routine,
    geqrf_routine,
    householder_routine,
    lu_routine,
    permutation_routine,
    qr_routine,
)
from fxarray.devices.cpu.library.fft import fft_routine
from fxarray.devices.cpu.library.random import bits_routine, fold_routine
from fxarray.devices.cpu.library.scatter import gather_routine, scatter_routine
from fxarray.devices.cpu.library.search import search_routine
from fxarray.devices.cpu.library.solves import factored_routine, triangular_routine
from fxarray.devices.cpu.library.sort import sort_routine
from fxarray.devices.cpu.library.spectral import eig_routine, eigh_routine, svd_routine
from fxarray.devices.cpu.library.top_k import top_k_routine
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.target import Target
from fxarray.primitives.bits import FoldIn, RandomBits, RandomSplit
from fxarray.primitives.dynamic_slicing import DynamicSlice, DynamicUpdateSlice
from fxarray.primitives.fft import Fft
from fxarray.primitives.gather import Gather, ScatterAdd
from fxarray.primitives.linalg_eigen import Eig, Eigh, Svd
from fxarray.primitives.linalg_lu import FactoredSolve, Lu, LuPivotsToPermutation
from fxarray.primitives.linalg_qr import Geqrf, HouseholderProduct, Qr
from fxarray.primitives.linalg_triangular import Cholesky, TriangularSolve
from fxarray.primitives.scatter import Scatter, ScatterMax, ScatterMin, ScatterMul
from fxarray.primitives.search import SearchSorted
from fxarray.primitives.sort import Sort, TopK

Maker: TypeAlias = Callable[
    [Any, Sequence[ArrayType], Sequence[ArrayType], Target], "Routine | None"
]

_MAKERS: dict[type[Primitive], Maker] = {
    DynamicSlice: slice_routine,
    DynamicUpdateSlice: update_routine,
    Fft: fft_routine,
    FoldIn: fold_routine,
    Cholesky: cholesky_routine,
    Eig: eig_routine,
    Eigh: eigh_routine,
    FactoredSolve: factored_routine,
    Gather: gather_routine,
    Geqrf: geqrf_routine,
    HouseholderProduct: householder_routine,
    Lu: lu_routine,
    LuPivotsToPermutation: permutation_routine,
    Qr: qr_routine,
    Svd: svd_routine,
    TriangularSolve: triangular_routine,
    RandomBits: bits_routine,
    RandomSplit: bits_routine,
    Scatter: scatter_routine,
    ScatterAdd: scatter_routine,
    ScatterMul: scatter_routine,
    ScatterMin: scatter_routine,
    ScatterMax: scatter_routine,
    SearchSorted: search_routine,
    Sort: sort_routine,
    TopK: top_k_routine,
}


def routine(
    op: Primitive, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], target: Target
) -> Routine | None:
    """The native code of an operation; None where there is none, so that the host's rule is run.

    Outputs may share memory with an input of equal type only if the operation is a scatter or a
    `dynamic_update_slice`, whose output may be its first input.
    """
    maker = _MAKERS.get(type(op))
    if maker is None:
        return None
    with features.using(target):
        return maker(op, inputs, outputs, target)
