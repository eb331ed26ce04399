"""jit: trace a function once per types of its arguments, compile it, and call the result."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import update_wrapper
from operator import attrgetter
from typing import Any, NamedTuple, overload

import optree

from fxarray.compile.backend import CompileOptions, Executable
from fxarray.compile.driver import compile_program
from fxarray.core import config
from fxarray.core.array import Array, DeviceArray
from fxarray.core.context import context
from fxarray.core.errors import ArgumentError
from fxarray.core.tracer import Tracer
from fxarray.core.types import ArrayType
from fxarray.interpreters.evaluate import evaluate
from fxarray.primitives.control.program_call import JitCall
from fxarray.transforms.arguments import (
    Structure,
    flatten_arguments,
    function_name,
    mark_static,
)
from fxarray.transforms.shapes import abstract_arguments
from fxarray.transforms.stages import Traced
from fxarray.transforms.trace_cache import (
    FunctionTraces,
    Trace,
    remembered_trace,
    traces_of,
)
from fxarray.tree.registry import NAMESPACE

_type = attrgetter("type")
_buffer = attrgetter("_np")
_flatten = optree.tree_flatten
_FAST_LIMIT = 1024


class CacheInfo(NamedTuple):
    """How a jitted function's cache fared.

    Args:
      hits: calls that found their trace.
      misses: calls that traced.
      size: traces remembered for the function.
    """

    hits: int
    misses: int
    size: int


class _FastCall(NamedTuple):
    """All that a repeated call needs: the executable, hidden arguments and the result's tree."""

    run: Callable[[Sequence[Any]], list[DeviceArray]]
    captured: list[Any]
    output: Structure
    donated: tuple[int, ...]


def _tuple(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, (int, str)) else tuple(value)


class JitFunction:
    """A function under `jit`; call it like the function itself."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        donate_argnames: Any,
        keep_unused: bool,
        inline: bool,
        backend: str | None,
    ) -> None:
        if not callable(function):
            raise ArgumentError(f"jit takes a function, got {function!r}")
        update_wrapper(self, function)
        self._function = function
        self._inline = inline
        self._keep_unused = keep_unused
        self._backend = backend
        self._signature = _signature(function)
        self._static_numbers, self._static_names = self._resolve(
            _tuple(static_argnums), _tuple(static_argnames), "static"
        )
        self._donated_numbers, self._donated_names = self._resolve(
            _tuple(donate_argnums), _tuple(donate_argnames), "donate"
        )
        both = set(self._static_numbers) & set(self._donated_numbers)
        if both:
            raise ArgumentError(
                f"jit of {function_name(function)}: arguments {sorted(both)} are both static and donated"
            )
        self._traces: FunctionTraces = traces_of(function)
        self._fast: dict[Any, _FastCall] = {}
        self._hits = 0
        self._misses = 0

    def _resolve(
        self, numbers: tuple[int, ...], names: tuple[str, ...], what: str
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Complete positions by names and names by positions; check both."""
        label = function_name(self._function)
        if self._signature is None:
            return numbers, names
        parameters = list(self._signature.parameters.values())
        positional = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        catches_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        all_numbers = []
        for number in numbers:
            if not isinstance(number, int) or isinstance(number, bool):
                raise ArgumentError(f"jit of {label}: {what}_argnums must be ints, got {number!r}")
            if not variadic and not -len(positional) <= number < len(positional):
                raise ArgumentError(
                    f"jit of {label}: {what}_argnums has {number}, but {label} takes "
                    f"{len(positional)} positional arguments"
                )
            all_numbers.append(number % len(positional) if number < 0 else number)
        all_names = list(names)
        for name in names:
            if name not in self._signature.parameters and not catches_all:
                raise ArgumentError(
                    f"jit of {label}: {what}_argnames has {name!r}, but the arguments of {label} are: "
                    f"{', '.join(self._signature.parameters)}"
                )
            if name in positional and positional.index(name) not in all_numbers:
                all_numbers.append(positional.index(name))
        for number in all_numbers:
            if number < len(positional) and positional[number] not in all_names:
                all_names.append(positional[number])
        return tuple(all_numbers), tuple(all_names)

    # --- calling ----------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if context.staging is None and not context.axes and not context.disable_jit:
            leaves, treedef = _flatten((args, kwargs), namespace=NAMESPACE)
            fast = None
            buffers: list[Any] = []
            try:
                fast = self._fast.get((treedef, context.settings, tuple(map(_type, leaves))))
                buffers = list(map(_buffer, leaves))
            except (AttributeError, TypeError):  # a leaf that is not a concrete array
                fast = None
            if fast is not None:
                self._hits += 1
                outputs = fast.run(fast.captured + buffers if fast.captured else buffers)
                if fast.donated:
                    _delete_donated([leaves[i] for i in fast.donated], outputs)
                return fast.output.unflatten(outputs)
        return self._call(args, kwargs)

    def _canonical(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional form where possible, so that both ways of calling share a trace."""
        if not kwargs or self._signature is None:
            return args, kwargs
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            self._function(*args, **kwargs)  # raises Python's own error about the arguments
            raise
        return bound.args, bound.kwargs

    def _prepared(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = self._canonical(args, kwargs)
        if self._static_numbers or self._static_names:
            return mark_static(
                args, kwargs, self._static_numbers, self._static_names, self._function
            )
        return args, kwargs

    def _trace(self, structure: Structure, types: Sequence[ArrayType]) -> Trace:
        trace, remembered = remembered_trace(self._traces, self._function, structure, types)
        if remembered:
            self._hits += 1
        else:
            self._misses += 1
            if config.get("explain_retraces"):
                warnings.warn(self._traces.last_explanation, stacklevel=3)
        return trace

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if context.disable_jit:
            return self._function(*args, **kwargs)
        flat = flatten_arguments(*self._prepared(args, kwargs), self._function)
        trace = self._trace(flat.structure, [array.type for array in flat.arrays])
        operands = [*trace.captured, *flat.arrays]
        if context.staging is not None or any(isinstance(x, Tracer) for x in operands):
            outputs: Sequence[Any]
            if self._inline:
                outputs = evaluate(trace.program, operands)
            else:
                outputs = JitCall(trace.program, trace.name).bind(*operands)
            return trace.output.unflatten(outputs)
        donated = self._donated_leaves(args, kwargs)
        executable = self._compile(trace, donated)
        outputs = executable(operands)
        self._remember(args, kwargs, trace, executable, donated)
        if donated:
            _delete_donated(_leaves_at(args, kwargs, donated), outputs)
        return trace.output.unflatten(outputs)

    def _compile(self, trace: Trace, donated: tuple[int, ...]) -> Executable:
        offset = len(trace.captured)
        options = CompileOptions(donated=tuple(offset + i for i in donated))
        return compile_program(trace.program, options, self._backend)

    def _remember(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        trace: Trace,
        executable: Executable,
        donated: tuple[int, ...],
    ) -> None:
        """Let the next call with these types take the short way."""
        if not trace.reusable or self._static_numbers or self._static_names:
            return
        leaves, treedef = _flatten((args, kwargs), namespace=NAMESPACE)
        if not all(type(leaf) is DeviceArray for leaf in leaves):
            return
        run_buffers = getattr(executable, "run_buffers", None)
        if run_buffers is None:
            return
        if len(self._fast) >= _FAST_LIMIT:
            self._fast.clear()
        captured = [value.numpy_view() for value in trace.captured]
        key = (treedef, context.settings, tuple(map(_type, leaves)))
        self._fast[key] = _FastCall(run_buffers, captured, trace.output, donated)

    def _donated_leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
        """Positions, among all leaves of the call as written, of donated arrays."""
        if not self._donated_numbers and not self._donated_names:
            return ()
        donated: list[int] = []
        position = 0
        for number, argument in enumerate(args):
            count = len(_flatten(argument, namespace=NAMESPACE)[0])
            if number in self._donated_numbers:
                donated.extend(range(position, position + count))
            position += count
        for name in sorted(kwargs):
            count = len(_flatten(kwargs[name], namespace=NAMESPACE)[0])
            if name in self._donated_names:
                donated.extend(range(position, position + count))
            position += count
        return tuple(donated)

    # --- looking inside ---------------------------------------------------------------------

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for these arguments (arrays, or `ShapeDtypeStruct`s) without running."""
        types, structure, _ = abstract_arguments(*self._prepared(args, kwargs), self._function)
        return Traced(self._trace(structure, types), structure, self._backend)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Trace and lower for these arguments; `.compile()` gives what can be called."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, computed without running."""
        return self.trace(*args, **kwargs).out_info

    def cache_info(self) -> CacheInfo:
        """Hits, misses and the number of traces remembered for the function."""
        return CacheInfo(self._hits, self._misses, len(self._traces.traces))

    def _cache_size(self) -> int:
        return len(self._traces.traces)

    def explain_last_trace(self) -> str:
        """Why the function was last traced: which argument differs, and how, from a known trace."""
        return self._traces.last_explanation or "the function has not been traced yet"

    def clear_cache(self) -> None:
        """Forget the function's traces."""
        self._fast.clear()
        self._traces.traces.clear()

    @overload
    def __get__(self, instance: None, owner: Any = None) -> JitFunction: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[..., Any]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        # A jitted method: `self` is an argument like any other.
        return self if instance is None else _BoundJit(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {function_name(self._function)}>"


class _BoundJit:
    """A jitted method of an instance."""

    def __init__(self, function: JitFunction, instance: Any) -> None:
        self._jitted = function
        self._instance = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._jitted(self._instance, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        return self._jitted.lower(self._instance, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _leaves_at(args: Any, kwargs: Any, positions: Iterable[int]) -> list[Any]:
    leaves = _flatten((args, kwargs), namespace=NAMESPACE)[0]
    return [leaves[position] for position in positions]


def _delete_donated(donated: Sequence[Any], outputs: Sequence[DeviceArray]) -> None:
    """Delete donated arrays that an output can take the place of; warn about the others."""
    free: dict[Any, int] = {}
    for output in outputs:
        key = (output.type.shape, output.type.dtype)
        free[key] = free.get(key, 0) + 1
    unusable: list[str] = []
    for array in donated:
        if not isinstance(array, Array):
            continue
        key = (array.type.shape, array.type.dtype)
        if free.get(key, 0):
            free[key] -= 1
            array.delete()  # type: ignore[attr-defined]
        else:
            unusable.append(str(array.type))
    if unusable:
        warnings.warn(
            f"some donated arrays fit no result and were not used: {', '.join(unusable)}",
            stacklevel=3,
        )


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    backend: str | None = None,
) -> Any:
    """Compile a function: trace it once per types of its arguments, and call the result.

    Args:
      fun: a pure function of arrays and pytrees of arrays. Leaves that are not arrays (functions,
        strings, ...) are static by themselves. Without it, returns a decorator.
      static_argnums: positions of arguments that are Python values, known while tracing.
      static_argnames: the same by name.
      donate_argnums: positions of arguments whose memory the call may take; they are deleted.
      donate_argnames: the same by name.
      keep_unused: accepted for compatibility; unused arguments cost nothing.
      inline: whether calls from other traced functions are written out in them.
      backend: the name of the backend that compiles it.

    Returns:
      A `JitFunction`: call it, or look inside with `.lower()`, `.trace()`, `.cache_info()` and
      `.explain_last_trace()`.

    Raises:
      StaticArgumentError: if a static argument does not compare by value.
      ConcretizationError: if `fun` needs a traced value's concrete value.

    >>> import fxarray, fxarray.numpy as fnp
    >>> f = fxarray.jit(lambda x: fnp.sum(x * 2))
    >>> float(f(fnp.arange(4.0)))
    12.0
    """

    def wrap(function: Callable[..., Any]) -> JitFunction:
        return JitFunction(
            function,
            static_argnums,
            static_argnames,
            donate_argnums,
            donate_argnames,
            keep_unused,
            inline,
            backend,
        )

    return wrap if fun is None else wrap(fun)
