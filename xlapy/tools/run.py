"""`xlapy run` and `xlapy eval`: what a program computes, how fast, and whether others compute the same."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xlapy
import xlapy_runtime
from xlapy.hlo.element_types import element_type_of
from xlapy.hlo.graph import HloModule
from xlapy.hlo.shape import Shape
from xlapy.support.errors import UnsupportedError
from xlapy.tools.commands import add_command
from xlapy.tools.console import GREEN, RED, painted, progress
from xlapy.tools.programs import (
    add_options,
    add_program,
    add_size,
    at_least,
    chosen_options,
    leaves,
    load_static,
    random_arguments,
    read_arguments,
)
from xlapy_runtime.executable import CallableProgram
from xlapy_runtime.program import TokenSpec, Tree
from xlapy_runtime.saved_file import MAGIC, is_saved

DIFFERENT = 3
"""The exit status when a comparison finds a difference."""


def add_to(commands: Any) -> None:
    """Adds the subcommands to the parser."""
    for name, text in (("run", "compile and run a program"), ("eval", "run a program by the reference evaluator")):
        command = add_command(
            commands,
            name,
            f"{text}, on random inputs or given arrays",
            more="FILE may also be what `xlapy compile` has saved." if name == "run" else "",
            epilog="Exit status: 0, 1 for a program that is wrong or fails, 2 for a wrong command line, "
            f"{DIFFERENT} if a comparison finds a difference.",
        )
        add_program(command)
        add_size(command)
        add_options(command)
        command.add_argument(
            "--input",
            "--inputs",
            nargs="+",
            action="extend",
            metavar="FILE.npy",
            help="the arguments, in order; .npz too",
        )
        command.add_argument(
            "--random", "--seed", type=int, default=0, metavar="SEED", help="of inputs that are made up"
        )
        command.add_argument(
            "--compare",
            nargs="?",
            const="evaluator",
            type=_compared_with,
            metavar="{evaluator,xla}",
            help="run the other way too, and print the largest difference",
        )
        command.add_argument("--tolerance", type=float, help="largest relative difference that counts as none")
        command.add_argument(
            "--repeat", "--iterations", type=at_least(0), default=0, metavar="N", help="time so many calls"
        )
        command.set_defaults(run=_run, evaluated=name == "eval")


def _compared_with(text: str) -> str:
    """What `--compare` names. A FILE behind it would be taken for one."""
    if text not in _OTHERS:
        raise argparse.ArgumentTypeError(f"{text!r} is neither evaluator nor xla; FILE stands in front of the options")
    return text


def _run(chosen: argparse.Namespace) -> int:
    if _is_saved(chosen.file):
        return _run_saved(chosen)
    module = load_static(chosen)
    arguments = _arguments(chosen, module.signature.parameters)
    result = (
        _evaluate(module, arguments) if chosen.evaluated else _compile_and_run(module, arguments, chosen, chosen.repeat)
    )
    _print_results(result)
    if chosen.compare is None:
        return 0
    if chosen.evaluated and chosen.compare == "evaluator":
        name, other = "compiled code", _compile_and_run(module, arguments, chosen, 0)
    else:
        name, run = _OTHERS[chosen.compare]
        other = run(module, arguments)
    return _compared(name, leaves(result), leaves(other), chosen.tolerance)


def _is_saved(file: str) -> bool:
    """Whether the file has what `xlapy compile` wrote. What can be read only once, as a pipe, has a program's text."""
    if file == "-" or not os.path.isfile(file):
        return False
    with open(file, "rb") as opened:
        return is_saved(opened.read(len(MAGIC)))


def _run_saved(chosen: argparse.Namespace) -> int:
    if chosen.evaluated or chosen.compare:
        raise UnsupportedError(f"{chosen.file} is compiled already: only the program it was made of can be evaluated")
    if chosen.fast_math or chosen.threads:
        raise UnsupportedError(f"{chosen.file} is compiled already: `xlapy compile` takes --fast-math and --threads")
    saved = xlapy_runtime.load(chosen.file)
    print(saved)
    arguments = _arguments(chosen, [_shape_of(tree) for tree in saved.program.parameters])
    _print_results(_execute(saved, arguments, chosen.repeat))
    return 0


def _shape_of(tree: Tree) -> Shape:
    if isinstance(tree, tuple):
        return Shape.tuple([_shape_of(part) for part in tree])
    return Shape.token() if isinstance(tree, TokenSpec) else Shape.array(tree.dtype, tree.dims, tree.dynamic)


def _arguments(chosen: argparse.Namespace, parameters: Sequence[Shape]) -> list[Any]:
    return read_arguments(chosen.input) if chosen.input else random_arguments(parameters, chosen.random)


def _print_results(result: Any) -> None:
    for number, leaf in enumerate(leaves(result)):
        print(f"result {number}: {Shape.of(leaf)} {np.array2string(leaf, threshold=32)}")


def _compile_and_run(module: HloModule, arguments: Sequence[Any], chosen: argparse.Namespace, repeat: int) -> Any:
    with progress("compiling"):
        executable = xlapy.compile(module, chosen_options(chosen))
    print(executable.compile_stats())
    return _execute(executable, arguments, repeat)


def _execute(executable: CallableProgram, arguments: Sequence[Any], repeat: int) -> Any:
    with progress("running"):
        result = executable(*_copied(arguments))
        times = []
        arguments = _copied(arguments)
        for _ in range(repeat):
            began = time.perf_counter()
            executable(*arguments)
            times.append(time.perf_counter() - began)
    if times:
        fastest, median = min(times) * 1e6, float(np.median(times)) * 1e6
        print(f"{median:.2f} us per call (median of {repeat}; fastest {fastest:.2f})")
    return result


def _copied(value: Any) -> Any:
    """The arguments once more: those that a program donates hold results afterwards."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_copied, value))
    return None if value is None else np.array(value)  # a token has no value


def _evaluate(module: HloModule, arguments: Sequence[Any]) -> Any:
    with progress("evaluating"):
        return xlapy.evaluate(module, *arguments)


def _run_in_xla(module: HloModule, arguments: Sequence[Any]) -> Any:
    """The results by jaxlib's XLA:CPU, flat."""
    try:
        import jax
        from jax.extend.backend import get_backend
        from jax.interpreters import mlir
        from jaxlib import xla_client
        from jaxlib.mlir import ir
    except ImportError as error:
        raise UnsupportedError(f"comparing with XLA needs jax: pip install 'xlapy[jax]' ({error})") from None
    backend = get_backend("cpu")
    devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
    with progress("running in XLA"), mlir.make_ir_context(), jax.enable_x64(True):
        program = ir.Module.parse(xlapy.stablehlo.to_text(module))
        executable = backend.compile_and_load(program, devices, xla_client.CompileOptions())
        buffers = [jax.device_put(np.asarray(leaf), devices[0]) for leaf in leaves(tuple(arguments))]
        outputs = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
        return tuple(np.asarray(shards[0]) for shards in outputs)


_OTHERS: dict[str, tuple[str, Callable[[HloModule, Sequence[Any]], Any]]] = {
    "evaluator": ("the evaluator", _evaluate),
    "xla": ("XLA", _run_in_xla),
}


def _compared(name: str, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], tolerance: float | None) -> int:
    """Prints the largest differences; the exit status."""
    if len(ours) != len(theirs):
        print(painted(f"different from {name}: {len(ours)} and {len(theirs)} results", RED, sys.stdout))
        return DIFFERENT
    status = 0
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        largest, relative = difference(one, other)
        allowed = _tolerance(one) if tolerance is None else tolerance
        same = relative <= allowed
        verdict = painted("same as", GREEN, sys.stdout) if same else painted("DIFFERENT from", RED, sys.stdout)
        print(f"result {number}: {verdict} {name}; largest difference {largest:.3g}, relative {relative:.3g}")
        status = status if same else DIFFERENT
    return status


def _tolerance(array: np.ndarray) -> float:
    """What rounding may do: nothing to integers, little to wide floats, a few of their last digits to narrow ones."""
    element_type = element_type_of(array.dtype)
    if element_type.is_integer or element_type.kind == "pred":
        return 0.0
    return 1e-4 if array.dtype.itemsize >= 4 else 0.1 if array.dtype.itemsize == 1 else 2e-2


def difference(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The largest distance, and the same in proportion to the largest number; infinite where only one is NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return np.inf, np.inf
    wide = np.complex128 if np.iscomplexobj(one) else np.float64
    left, right = one.astype(wide), other.astype(wide)
    if (np.isnan(left) != np.isnan(right)).any():
        return np.inf, np.inf
    with np.errstate(invalid="ignore"):
        distance = np.where(left == right, 0, np.abs(left - right))
    largest = float(np.nanmax(distance, initial=0.0))
    finite = np.abs(right[np.isfinite(right)])
    scale = float(finite.max(initial=0.0))
    return largest, largest / scale if scale else largest
