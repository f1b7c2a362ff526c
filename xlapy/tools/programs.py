"""What the commands have in common: the program in a file, and arguments for it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import xlapy
from xlapy.hlo.graph import HloModule
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.hlo.specialize import is_dynamic, specialize
from xlapy.support.errors import ParseError, UnsupportedError, XlaError
from xlapy.tools.console import progress

PROGRAM = "HLO or StableHLO, as text or serialized; - for standard input"
"""What the argument FILE names."""


def add_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help=PROGRAM)


def add_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=at_least(0), default=4, metavar="N", help="of every `?` dimension (default: 4)")


def add_options(parser: argparse.ArgumentParser) -> None:
    """What of `CompileOptions` the command line has."""
    parser.add_argument("--fast-math", action="store_true", help="with laws that are not exact")
    parser.add_argument(
        "--threads", "--num-threads", type=at_least(1), metavar="N", help="of one call (default: all cores)"
    )


def chosen_options(chosen: argparse.Namespace) -> xlapy.CompileOptions:
    return xlapy.CompileOptions(fast_math=chosen.fast_math, num_threads=chosen.threads)


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option that is a number, not below `least`."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no number, {least} or more")
        return int(text)

    return number


def load_program(chosen: argparse.Namespace) -> HloModule:
    """The module in a file, as it is written there. Raises OSError, or XlaError for what is no program."""
    source = sys.stdin.buffer.read() if chosen.file == "-" else Path(chosen.file).read_bytes()
    try:
        with progress(f"reading {chosen.file}"):
            return xlapy.load(source)
    except XlaError as error:
        error.where = f"{chosen.file}, {error.where}" if error.where else chosen.file
        raise


def load_static(chosen: argparse.Namespace) -> HloModule:
    """The module in a file, `?` dimensions at the size that the command line gives."""
    module = load_program(chosen)
    if not is_dynamic(module):
        return module
    return specialize(module, [_sized(shape, chosen.size) for shape in module.signature.parameters])


def _sized(shape: Shape, size: int) -> Shape:
    if shape.is_tuple:
        return Shape.tuple([_sized(part, size) for part in shape.parts])
    if not shape.is_unbounded:
        return shape
    dims = [size if dim == UNBOUNDED else dim for dim in shape.dims]
    dynamic = [shape.is_dynamic_dim(dim) and shape.dims[dim] != UNBOUNDED for dim in range(shape.rank)]
    return Shape.array(shape.type, dims, dynamic)


def random_arguments(parameters: Sequence[Shape], seed: int) -> list[Any]:
    """Numbers of moderate size; integers small, so that most are good indices."""
    random = np.random.default_rng(seed)
    return [_random(shape, random) for shape in parameters]


def _random(shape: Shape, random: np.random.Generator) -> Any:
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


def read_arguments(files: Sequence[str]) -> list[Any]:
    """The arrays in .npy files, and all of each .npz file, in order."""
    arrays: list[Any] = []
    for file in files:
        try:
            loaded = np.load(file, allow_pickle=False)
        except (ValueError, EOFError):
            raise ParseError(f"{file} holds no arrays: it is no .npy or .npz file, or one of pickled objects") from None
        if isinstance(loaded, np.ndarray):
            arrays.append(loaded)
        else:
            with loaded:
                arrays += [loaded[name] for name in loaded.files]
    return arrays


def leaves(value: Any) -> list[np.ndarray]:
    """The arrays in a result, depth first; tokens have none."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [] if value is None else [np.asarray(value)]
