"""`xlapy opt`, `run`, `eval`: what the compiler makes of a program in a file, and what the program computes."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import xlapy
from xlapy.hlo.graph import HloModule
from xlapy.hlo.shape import Shape
from xlapy.support.errors import UnsupportedError

STAGES = ("input", "dot", "hlo", "llvm", "asm", "stablehlo")


def add_to(commands: Any) -> None:
    """Adds the subcommands to the parser."""
    opt = commands.add_parser("opt", help="print a program as one of the stages of its compilation sees it")
    opt.add_argument("file", help="HLO or StableHLO text; - for standard input")
    opt.add_argument("--stage", choices=STAGES, default="hlo", help="default: hlo, after all passes")
    opt.set_defaults(run=_opt)
    for name, text in (("run", "compile and run"), ("eval", "evaluate by the reference evaluator")):
        command = commands.add_parser(name, help=f"{text} a program on random inputs (or arrays from a .npz)")
        command.add_argument("file", help="HLO or StableHLO text; - for standard input")
        command.add_argument("--inputs", help="a .npz file whose arrays are the arguments, in order")
        command.add_argument("--seed", type=int, default=0, help="of the random inputs")
        command.add_argument("--compare", action="store_true", help="run both ways and print the largest difference")
        command.add_argument("--iterations", type=int, default=0, help="time so many calls")
        command.set_defaults(run=_run, evaluated=name == "eval")


def _read(file: str) -> str:
    return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")


def _opt(chosen: argparse.Namespace) -> int:
    source = _read(chosen.file)
    if chosen.stage == "input":
        print(xlapy.load(source).to_text(), end="")
    elif chosen.stage == "dot":
        print(xlapy.hlo.to_dot(xlapy.load(source)), end="")
    elif chosen.stage == "stablehlo":
        print(xlapy.stablehlo.to_text(xlapy.load(source)))
    else:
        executable = xlapy.compile(source)
        show = {"hlo": executable.hlo_text, "llvm": executable.llvm_ir, "asm": executable.assembly}[chosen.stage]
        print(show(), end="")
    return 0


def _run(chosen: argparse.Namespace) -> int:
    module = xlapy.load(_read(chosen.file))
    arguments = _arguments(module, chosen)
    if chosen.evaluated:
        result = xlapy.evaluate(module, *arguments)
    else:
        executable = xlapy.compile(module)
        print(executable.compile_stats())
        result = executable(*arguments)
        if chosen.iterations:
            began = time.perf_counter()
            for _ in range(chosen.iterations):
                executable(*arguments)
            print(f"{(time.perf_counter() - began) / chosen.iterations * 1e6:.2f} us per call")
    for number, leaf in enumerate(_leaves(result)):
        print(f"result {number}: {Shape.of(leaf)} {np.array2string(leaf, threshold=32)}")
    if chosen.compare:
        other = xlapy.compile(module)(*arguments) if chosen.evaluated else xlapy.evaluate(module, *arguments)
        print(f"largest difference between compiled and evaluated: {_difference(result, other):.3g}")
    return 0


def _arguments(module: HloModule, chosen: argparse.Namespace) -> list[Any]:
    if chosen.inputs:
        with np.load(chosen.inputs) as arrays:
            return [arrays[name] for name in arrays.files]
    random = np.random.default_rng(chosen.seed)
    return [_random(shape, random) for shape in module.signature.parameters]


def _random(shape: Shape, random: np.random.Generator) -> Any:
    """Numbers of moderate size; integers small, so that most are good indices."""
    if shape.is_tuple:
        return tuple(_random(part, random) for part in shape.parts)
    if shape.is_token:
        raise UnsupportedError("a token parameter has no value to make up")
    if shape.type.is_integer or shape.type.kind == "pred":
        return random.integers(0, 2 if shape.type.bits < 8 else 8, shape.dims).astype(shape.type.dtype)
    values = random.standard_normal(shape.dims)
    if shape.type.is_complex:
        values = values + 1j * random.standard_normal(shape.dims)
    return values.astype(shape.type.dtype)


def _leaves(value: Any) -> list[np.ndarray]:
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    return [] if value is None else [np.asarray(value)]


def _difference(one: Any, other: Any) -> float:
    largest = 0.0
    for left, right in zip(_leaves(one), _leaves(other), strict=True):
        wide = np.complex128 if np.iscomplexobj(left) else np.float64
        distance = np.abs(left.astype(wide) - right.astype(wide))
        largest = max(largest, float(np.nanmax(distance, initial=0.0)))
    return largest
