"""jit: trace a function once per types of its arguments, compile it, and call the result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import update_wrapper
from operator import attrgetter
from typing import Any, NamedTuple, overload
from weakref import WeakSet

from optree import _C as native

from fxarray.compile.backend import CompileOptions, Executable, NotConcreteError
from fxarray.compile.driver import compile_program
from fxarray.core import config
from fxarray.core.array import DeviceArray
from fxarray.core.caches import register_cache
from fxarray.core.context import context
from fxarray.core.errors import ArgumentError, StaticArgumentError
from fxarray.core.source import warn
from fxarray.core.tracebacks import shorten
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
from fxarray.transforms.dynamic_shapes import DynamicShapes
from fxarray.transforms.fast_calls import FastCall, FastCalls, NoKey, delete_donated, leaf_key
from fxarray.transforms.jit_options import as_tuple, positional_names, resolve, signature_of
from fxarray.transforms.shapes import abstract_arguments
from fxarray.transforms.stages import Traced
from fxarray.transforms.statics import Static
from fxarray.transforms.trace_cache import (
    FunctionTraces,
    Trace,
    remembered_trace,
    traces_of,
)
from fxarray.tree.operations import flatten
from fxarray.tree.registry import NAMESPACE

_type = attrgetter("type")
_flatten: Any = native.flatten  # as tree.flatten calls it, without the call between


# Those alive, so that `clear_caches` reaches what they remember.
_JITTED: WeakSet[JitFunction] = WeakSet()


@register_cache
def _forget_calls() -> None:
    for function in list(_JITTED):
        function.clear_cache()


def forget_short_ways() -> None:
    """Let each function's next calls take the long way, after what they depend on has changed."""
    for function in list(_JITTED):
        function._fast.clear()


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
        dynamic: DynamicShapes | None = None,
    ) -> None:
        if not callable(function):
            raise ArgumentError(f"jit takes a function, got {function!r}")
        update_wrapper(self, function)
        self._function = function
        self._inline = inline
        self._keep_unused = keep_unused
        self._backend = backend
        self._dynamic = dynamic
        self._signature = signature_of(function)
        self._static_numbers, self._static_names = resolve(
            function, self._signature, as_tuple(static_argnums), as_tuple(static_argnames), "static"
        )
        self._donated_numbers, self._donated_names = resolve(
            function, self._signature, as_tuple(donate_argnums), as_tuple(donate_argnames), "donate"
        )
        both = set(self._static_numbers) & set(self._donated_numbers)
        if both:
            raise ArgumentError(
                f"jit of {function_name(function)}: arguments {sorted(both)} are both static and "
                f"donated"
            )
        self._traces: FunctionTraces = traces_of(function)
        self._positional = positional_names(self._signature)
        self._static = frozenset((*self._static_numbers, *self._static_names))
        self._has_statics = bool(self._static)
        self._fast = FastCalls()
        _JITTED.add(self)
        self._hits = 0
        self._misses = 0

    # --- calling ----------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            state = context
            if state.staging is not None or state.axes or state.disable_jit:
                return self._call(args, kwargs)
            for match, settings, known in self._fast.recognised:
                if settings == state.settings:
                    found = match(args, kwargs)
                    if found is not None:
                        return self._run(known, found)
            if self._has_statics:
                return self._call_with_other_leaves(args, kwargs)
            leaves, treedef = _flatten((args, kwargs), None, False, NAMESPACE)
            fast: FastCall | None = None
            arrays = True
            try:
                fast = self._fast.by_key.get((treedef, state.settings, *map(_type, leaves)))
            except (AttributeError, TypeError):
                arrays = False
            if not arrays:
                return self._call_with_other_leaves(args, kwargs)
            if fast is None:
                return self._call(args, kwargs)
            result = None
            try:
                result = self._run(fast, leaves)
            except NotConcreteError:
                arrays = False
            if not arrays:
                return self._call_with_other_leaves(args, kwargs)
            self._fast.recognise(args, kwargs, self._static, fast)
            return result
        except Exception as error:
            shorten(error)
            raise

    def _run(self, fast: FastCall, leaves: list[Any]) -> Any:
        result = fast(leaves)
        self._hits += 1
        return result

    def _call_with_other_leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The short way where some leaves are numbers, NumPy arrays or static."""
        key: Hashable = None
        leaves: list[Any] = []
        with suppress(NoKey, StaticArgumentError):
            key, leaves = self._mixed_key(args, kwargs)
        if key is None:
            return self._call(args, kwargs)
        fast = self._fast.by_key.get(key)
        if fast is None:
            return self._call(args, kwargs, key)
        result = self._run(fast, leaves)
        self._fast.recognise(args, kwargs, self._static, fast)
        return result

    def _mixed_key(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Hashable, list[Any]]:
        """The key of a call with leaves of several kinds, and the leaves."""
        leaves, treedef = flatten(self._marked(args, kwargs))
        return ("mixed", treedef, context.settings, *map(leaf_key, leaves)), leaves

    def _marked(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call as written, with its static arguments wrapped."""
        if not self._has_statics:
            return args, kwargs
        names = self._static_names
        marked = tuple([Static(x) if i in self._static_numbers else x for i, x in enumerate(args)])
        return marked, {k: Static(v) if k in names else v for k, v in kwargs.items()}

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
        assumptions = nullcontext() if self._dynamic is None else self._dynamic.assuming()
        with assumptions:
            trace, remembered = remembered_trace(self._traces, self._function, structure, types)
        if remembered:
            self._hits += 1
        else:
            self._misses += 1
            if config.get("explain_retraces"):
                warn(self._traces.last_explanation)
        return trace

    def _call(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        key: Hashable = None,
    ) -> Any:
        """The long way; with a key, what it finds is remembered under it."""
        if context.disable_jit:
            return self._function(*args, **kwargs)
        flat = flatten_arguments(*self._prepared(args, kwargs), self._function)
        types = [array.type for array in flat.arrays]
        traced = context.staging is not None or any(isinstance(x, Tracer) for x in flat.arrays)
        sizes: Mapping[str, int] = {}
        if self._dynamic is not None and not traced:
            types, sizes = self._dynamic.bind(flat.structure, types)
        trace = self._trace(flat.structure, types)
        operands = [*trace.captured, *flat.arrays]
        if traced or any(isinstance(x, Tracer) for x in trace.captured):
            outputs: Sequence[Any]
            if self._inline:
                outputs = evaluate(trace.program, operands)
            else:
                outputs = JitCall(trace.program, trace.name).bind(*operands)
            return trace.output.unflatten(outputs)
        places = self._places(args, kwargs, flat.structure)
        donated = self._donated_leaves(args, kwargs)
        offset = len(trace.captured)
        donated_inputs = tuple([offset + i for i, place in enumerate(places) if place in donated])
        options = CompileOptions(donated=donated_inputs)
        executable = compile_program(trace.program, options, self._backend)
        if sizes:
            executable = executable.at_sizes(sizes)
        outputs = executable(operands)
        self._remember(args, kwargs, key, trace, executable, donated, places)
        if donated:
            leaves = flatten(self._marked(args, kwargs))[0]
            delete_donated([leaves[i] for i in donated], outputs)
        return trace.output.unflatten(outputs)

    def _places(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], structure: Structure
    ) -> list[int]:
        """For each array of the canonical form, its place among the leaves as written."""
        positional, named = self._canonical(args, kwargs)
        order: list[int] = []
        if len(positional) == len(args):
            order.extend(range(structure.treedef.num_leaves))
        else:
            # Keyword arguments were moved: the call as written has them sorted by name.
            position = sum(self._count(number, x) for number, x in enumerate(args))
            order.extend(range(position))
            ranges: dict[str, range] = {}
            for name in sorted(kwargs):
                count = self._count(name, kwargs[name])
                ranges[name] = range(position, position + count)
                position += count
            moved = self._positional[len(args) : len(positional)]
            for name in (*moved, *sorted(named)):
                order.extend(ranges[name])
        static = {place for place, _ in structure.static_leaves}
        return [place for number, place in enumerate(order) if number not in static]

    def _count(self, place: int | str, argument: Any) -> int:
        """How many leaves an argument has in the call as written."""
        static = place in self._static_numbers or place in self._static_names
        return 1 if static else len(flatten(argument)[0])

    def _remember(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        key: Hashable,
        trace: Trace,
        executable: Executable,
        donated: tuple[int, ...],
        places: list[int],
    ) -> None:
        """Let the next call of this kind take the short way."""
        run = executable.direct()
        if run is None or not trace.reusable:
            return
        types = trace.program.input_types[len(trace.captured) :]
        inputs: list[tuple[int, ArrayType]] | None = list(zip(places, types, strict=True))
        if key is None:
            leaves, treedef = flatten((args, kwargs))
            if not all(type(leaf) is DeviceArray for leaf in leaves):
                return
            key = (treedef, context.settings, *map(_type, leaves))
            if places == list(range(len(leaves))):
                inputs = None
        captured = list(trace.captured)
        self._fast.remember(key, FastCall(run, captured, trace.output, donated, inputs))

    def _donated_leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
        """Positions, among all leaves of the call as written, of donated arrays."""
        if not self._donated_numbers and not self._donated_names:
            return ()
        donated: list[int] = []
        position = 0
        for number, argument in enumerate(args):
            count = self._count(number, argument)
            if number in self._donated_numbers:
                donated.extend(range(position, position + count))
            position += count
        for name in sorted(kwargs):
            count = self._count(name, kwargs[name])
            if name in self._donated_names:
                donated.extend(range(position, position + count))
            position += count
        return tuple(donated)

    # --- looking inside ---------------------------------------------------------------------

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for these arguments (arrays, or `ShapeDtypeStruct`s) without running."""
        types, structure, _ = abstract_arguments(*self._prepared(args, kwargs), self._function)
        if self._dynamic is not None and all(type_.is_static for type_ in types):
            types, _ = self._dynamic.bind(structure, types)
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

    def with_dynamic_shapes(
        self, specification: Mapping[Any, Any], assumptions: Sequence[str] = ()
    ) -> JitFunction:
        """The same function and options, compiled once for all sizes of some dimensions.

        Args:
          specification: as of `dynamic_spec`.
          assumptions: as of `dynamic_spec`.
        """
        return JitFunction(
            self._function,
            self._static_numbers,
            self._static_names,
            self._donated_numbers,
            self._donated_names,
            self._keep_unused,
            self._inline,
            self._backend,
            DynamicShapes(self._function, specification, assumptions),
        )

    def clear_cache(self) -> None:
        """Forget the function's traces."""
        self._fast.clear()
        self._traces.clear()

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
    dynamic_shapes: Mapping[Any, Any] | None = None,
    assumptions: Sequence[str] = (),
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
      dynamic_shapes: which dimensions of which arguments may have any size, so that one trace and
        one compile serve all: see `dynamic_spec`.
      assumptions: what holds of these sizes in every call, such as "batch % 2 == 0".

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
        dynamic = None
        if dynamic_shapes is not None:
            dynamic = DynamicShapes(function, dynamic_shapes, assumptions)
        return JitFunction(
            function,
            static_argnums,
            static_argnames,
            donate_argnums,
            donate_argnames,
            keep_unused,
            inline,
            backend,
            dynamic,
        )

    return wrap if fun is None else wrap(fun)
