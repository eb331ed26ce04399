"""Solutions with derivatives by the implicit function theorem: roots and linear systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core.errors import ArgumentError
from fxarray.core.tracebacks import boundary
from fxarray.core.types import ArrayType
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.staging import Staged, stage
from fxarray.lax.bodies import Carry, check_structure
from fxarray.primitives.control.implicit import CustomRoot, LinearSolve, transposed_matvec
from fxarray.transforms.arguments import Structure, flatten_tree, function_name
from fxarray.transforms.forward import linearize
from fxarray.transforms.trace_cache import trace_function
from fxarray.tree.operations import structure as tree_structure
from fxarray.tree.operations import treedef_tuple


@boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Find a root of a function, differentiable in whatever `f` closes over.

    Args:
      f: takes and returns a tree like `initial_guess`.
      initial_guess: where `solve` starts; the root does not depend on it.
      solve: `solve(f, initial_guess)` returns x with f(x) = 0, by any means, such as a while_loop.
      tangent_solve: `tangent_solve(g, y)` returns x with g(x) = y, where g is linear; for reverse
        mode it must be transposable (as `custom_linear_solve` is). For scalars:
        `lambda g, y: y / g(1.0)`.
      has_aux: whether `solve` returns a pair of the root and something that is not differentiated.

    Returns:
      The root, or the pair.

    >>> import fxarray
    >>> from fxarray import lax
    >>> def newton(f, x):
    ...     step = lambda x: x - f(x) / fxarray.grad(f)(x)
    ...     return lax.fori_loop(0, 20, lambda _, x: step(x), x)
    >>> def square_root(a):
    ...     return lax.custom_root(lambda x: x * x - a, a, newton, lambda g, y: y / g(1.0))
    >>> print(square_root(4.0), fxarray.grad(square_root)(4.0))
    2.0 0.25
    """
    guess = Carry("custom_root", initial_guess, "root")
    first, structure, types = _staged(f, guess)
    aux: list[Structure] = []

    def flat_solve(*arrays: Any) -> list[Any]:
        result = solve(f, structure.unflatten(arrays))
        return _with_aux("custom_root", solve, result, structure, has_aux, aux)

    def flat_tangent_solve(*arrays: Any) -> list[Any]:
        x = structure.unflatten(arrays[: len(types)])
        y = structure.unflatten(arrays[len(types) :])
        _, derivative = linearize(f, x)
        return _like("custom_root", tangent_solve, tangent_solve(derivative, y), structure)

    second = stage(flat_solve, types, function_name(solve))
    third = stage(flat_tangent_solve, [*types, *types], function_name(tangent_solve))
    staged = [first, second, third]
    op = CustomRoot(
        first.program,
        second.program,
        third.program,
        _counts(staged),  # type: ignore[arg-type]
    )
    results = op.bind(*[value for s in staged for value in s.captured], *guess.arrays)
    return _unflatten(results, structure, has_aux, aux)


@boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve `matvec(x) = b`, differentiable in b and in whatever `matvec` closes over.

    Args:
      matvec: a linear function of a tree like `b`.
      b: the right-hand side, a tree.
      solve: `solve(matvec, b)` returns x, by any means.
      transpose_solve: `transpose_solve(vecmat, b)` solves with the transpose of `matvec`; needed
        for reverse mode unless `symmetric`.
      symmetric: whether `matvec` is its own transpose.
      has_aux: whether `solve` (and `transpose_solve`) returns a pair of x and something that is not
        differentiated.

    >>> from fxarray import lax
    >>> print(lax.custom_linear_solve(lambda x: 4.0 * x, 2.0, lambda mv, b: b / mv(1.0)))
    0.5
    """
    if symmetric and transpose_solve is not None:
        raise ArgumentError("custom_linear_solve: give transpose_solve or symmetric=True, not both")
    right = Carry("custom_linear_solve", b, "vector")
    forward, structure, types = _staged(matvec, right)
    aux: list[Structure] = []

    def flat_solve(*values: Any) -> list[Any]:
        result = solve(matvec, structure.unflatten(values))
        return _with_aux("custom_linear_solve", solve, result, structure, has_aux, aux)

    solving = stage(flat_solve, types, function_name(solve))
    backward, back_solving = forward, solving if symmetric else None
    if not symmetric:
        count = len(forward.captured)
        backward = Staged(transposed_matvec(forward.program, count), forward.captured)
        if transpose_solve is not None:
            back_solving = _stage_transpose_solve(
                transpose_solve, backward, structure, has_aux, "custom_linear_solve"
            )
    last = Staged(None, ()) if back_solving is None else back_solving  # type: ignore[arg-type]
    staged = [forward, backward, solving, last]
    op = LinearSolve(
        forward.program,
        backward.program,
        solving.program,
        last.program,
        _counts(staged),  # type: ignore[arg-type]
        len(types),
    )
    results = op.bind(*[value for s in staged for value in s.captured], *right.arrays)
    return _unflatten(results, structure, has_aux, aux)


def _staged(
    function: Callable[[Any], Any], vector: Carry
) -> tuple[Staged, Structure, Sequence[ArrayType]]:
    """Trace a function that keeps the type of its argument."""
    nested = Structure(
        treedef_tuple([treedef_tuple([vector.structure.treedef]), tree_structure({})]),
        vector.structure.static_leaves,
    )
    trace = vector.settle(
        lambda: trace_function(function, nested, vector.types),
        lambda trace: (trace.output, trace.program.output_types),
    )
    return Staged(trace.program, trace.captured), vector.structure, vector.types


def _stage_transpose_solve(
    transpose_solve: Callable[..., Any],
    backward: Staged,
    structure: Structure,
    has_aux: bool,
    name: str,
) -> Staged:
    def vecmat(x: Any) -> Any:
        values, _ = flatten_tree(x)
        return structure.unflatten(evaluate(backward.program, [*backward.captured, *values]))

    def flat(*values: Any) -> list[Any]:
        result = transpose_solve(vecmat, structure.unflatten(values))
        return _with_aux(name, transpose_solve, result, structure, has_aux, [])

    types = backward.program.input_types[len(backward.captured) :]
    return stage(flat, types, function_name(transpose_solve))


def _counts(staged: Sequence[Staged]) -> tuple[int, ...]:
    return tuple([len(s.captured) for s in staged])


def _like(name: str, function: Callable[..., Any], result: Any, structure: Structure) -> list[Any]:
    arrays, actual = flatten_tree(result, f"{name}: the result")
    check_structure(
        f"{name}: {function_name(function)} must return a tree like the one it solves for",
        "Return the same containers and keys.",
        structure,
        actual,
        "result",
    )
    return arrays


def _with_aux(
    name: str,
    function: Callable[..., Any],
    result: Any,
    structure: Structure,
    has_aux: bool,
    aux: list[Structure],
) -> list[Any]:
    if not has_aux:
        return _like(name, function, result, structure)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise ArgumentError(
            f"{name}(has_aux=True): {function_name(function)} must return a pair (x, aux)"
        )
    extra, extra_structure = flatten_tree(result[1], "aux")
    aux.append(extra_structure)
    return [*_like(name, function, result[0], structure), *extra]


def _unflatten(
    results: Sequence[Any], structure: Structure, has_aux: bool, aux: Sequence[Structure]
) -> Any:
    count = structure.array_count
    solution = structure.unflatten(results[:count])
    return (solution, aux[-1].unflatten(results[count:])) if has_aux else solution
