"""From LLVM text to an object or to assembly.

Of LLVM's passes only `sroa` runs, which turns counters and accumulators into registers: on what we
write, more passes cost several times the rest and gain nothing. Modules with functions to be
inlined are tiny and run for long (loops of scalars), so they get the few passes that tidy up after
that; the second `sroa` sees values whose addresses were in memory until the first. Objects use the
small code model and are position-independent, so constants are read relative to the instruction.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from fxarray.core.errors import CompilerError
from fxarray.devices.cpu.native.llvm import AVAILABLE, VERSION, Message, functions, new_context
from fxarray.devices.cpu.native.target import Target, host, processors

_LEVEL = 2

_machines: dict[Target, list[Any]] = {}
_initialized: list[bool] = []


@lru_cache(maxsize=16)
def header(target: Target) -> str:
    """The lines that a module starts with: they decide the alignment of what follows."""
    data = _public_machine(target).target_data
    return f'target datalayout = "{data}"\ntarget triple = "{target.triple}"\n'


def _public_machine(target: Target) -> Any:
    if target.triple != host().triple and not _initialized:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _initialized.append(True)
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.name, features=target.features, opt=_LEVEL, reloc="pic", codemodel="small"
    )


@contextmanager
def _machine(target: Target) -> Generator[int]:
    """A target machine that no other thread uses meanwhile."""
    free = _machines.setdefault(target, [])
    try:
        machine = free.pop()
    except IndexError:
        machine = _new_machine(target)
    try:
        yield machine
    finally:
        free.append(machine)


def _new_machine(target: Target) -> int:
    header(target)  # makes LLVM know the target
    message = Message()
    kind = functions["GetTargetFromTriple"](target.triple.encode(), message.pointer)
    machine = kind and functions["CreateTargetMachine"](
        *(kind, target.triple.encode(), target.name.encode(), target.features.encode(), _LEVEL),
        *(b"pic", b"small", 0, 0, b""),
    )
    if not machine:
        raise CompilerError(f"LLVM has no target {target.triple}: {message.take()}")
    return machine


# --- loop strength reduction --------------------------------------------------------------------
#
# LLVM's pass of this name rewrites the addresses of loops; it takes a third of the time of code
# generation, and our loops already advance one pointer per row. It can only be switched off for the
# whole process, so it is off while we compile and on again for others, such as Numba, after that.
# LLVM before 22 is not known to take the option twice.

_CAN_SWITCH = VERSION >= (22,)
_compiling = 0
_switch_lock = threading.Lock()


@contextmanager
def without_strength_reduction() -> Generator[None]:
    """Loop strength reduction is off inside."""
    global _compiling
    if not _CAN_SWITCH:
        yield
        return
    with _switch_lock:
        if not _compiling:
            llvm.set_option("", "-disable-lsr=true")
        _compiling += 1
    try:
        yield
    finally:
        with _switch_lock:
            _compiling -= 1
            if not _compiling:
                llvm.set_option("", "-disable-lsr=false")


# --- compiling ----------------------------------------------------------------------------------


def compile_object(text: str, target: Target | None = None) -> bytes:
    """The object code of a module.

    Args:
      text: LLVM text without data layout and triple.
      target: the processor; None is this one.

    Raises:
      CompilerError: if LLVM refuses the text; the message has its reason and the line.
    """
    with without_strength_reduction():
        return _emit(text, target or host(), True)


def compile_assembly(text: str, target: Target | None = None) -> str:
    """The assembly of a module, as `compile_object`."""
    with without_strength_reduction():
        return _emit(text, target or host(), False).decode()


def _emit(text: str, target: Target, as_object: bool) -> bytes:
    whole = header(target) + text
    return (_emit_directly if AVAILABLE else _emit_publicly)(whole, target, as_object)


def _emit_directly(text: str, target: Target, as_object: bool) -> bytes:
    call = functions
    message = Message()
    with new_context() as context, _machine(target) as machine:
        module = call["ParseAssembly"](context, text.encode(), ctypes.byref(message.pointer))
        if not module:
            raise CompilerError(_explain(message.take(), text))
        try:
            if call["VerifyModule"](module, ctypes.byref(message.pointer)):
                raise CompilerError(_explain(message.take(), text))
            message.take()
            _run_passes(module, machine, _INLINED if _has_inlined(text) else ("SROA",))
            buffer = call["TargetMachineEmitToMemory"](
                machine, module, int(as_object), ctypes.byref(message.pointer)
            )
            if not buffer:
                raise CompilerError(f"LLVM could not generate code: {message.take()}")
            try:
                return ctypes.string_at(
                    call["GetBufferStart"](buffer), call["GetBufferSize"](buffer)
                )
            finally:
                call["DisposeMemoryBuffer"](buffer)
        finally:
            call["DisposeModule"](module)


_INLINED = ("AlwaysInliner", "SROA", "SROA", "InstCombine", "SimplifyCFG")


def _has_inlined(text: str) -> bool:
    return " alwaysinline " in text


def _run_passes(module: int, machine: int, names: Sequence[str]) -> None:
    call = functions
    options = call["CreatePipelineTuningOptions"](1, 0)
    builder = call["CreatePassBuilder"](machine, options)
    passes = call["CreateNewModulePassManager"]()
    for name in names:
        call[f"module_Add{name}Pass"](passes)
    call["RunNewModulePassManager"](passes, module, builder)
    call["DisposeNewModulePassManger"](passes)
    call["DisposePassBuilder"](builder)
    call["DisposePipelineTuningOptions"](options)


def _emit_publicly(text: str, target: Target, as_object: bool) -> bytes:
    """The same through llvmlite's public functions."""
    machine = _public_machine(target)
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise CompilerError(_explain(str(error), text)) from None
    passes = llvm.create_new_module_pass_manager()
    if _has_inlined(text):
        passes.add_always_inliner_pass()
        passes.add_sroa_pass()
    passes.add_sroa_pass()
    if _has_inlined(text):
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(1))
    passes.run(module, builder)
    if as_object:
        return machine.emit_object(module)
    return machine.emit_assembly(module).encode()


def _explain(reason: str, text: str) -> str:
    """LLVM's complaint, with the line of the text that it names."""
    lines = text.splitlines()
    found = re.search(r"<string>:(\d+):", reason)
    number = int(found[1]) if found else 0
    line = f"\n    line {number}: {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""
    return f"LLVM refuses the code: {reason}{line}"


def compile_objects(texts: Sequence[str], threads: int | None = None) -> list[bytes]:
    """The objects of several modules, compiled in as many threads as there are processors.

    Args:
      texts: as for `compile_object`.
      threads: how many compile at once; None is one per processor.
    """
    count = min(len(texts), threads or processors())
    if count <= 1 or not AVAILABLE:
        return [compile_object(text) for text in texts]
    # Long texts first, so that no thread is left with the longest at the end.
    waiting = iter(sorted(range(len(texts)), key=lambda number: -len(texts[number])))
    objects: list[bytes] = [b""] * len(texts)
    errors: list[BaseException] = []

    def work(numbers: Iterable[int]) -> None:
        for number in numbers:
            if errors:
                return
            try:
                objects[number] = _emit(texts[number], host(), True)
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                errors.append(error)

    with without_strength_reduction():
        helpers = [threading.Thread(target=work, args=(waiting,)) for _ in range(count - 1)]
        for helper in helpers:
            helper.start()
        work(waiting)
        for helper in helpers:
            helper.join()
    if errors:
        raise errors[0]
    return objects
