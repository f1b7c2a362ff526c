"""What the compiler hands over: object code, the shapes of what goes in and out, and one row per call into the runtime.

Everything here is plain frozen data, so that a program can be saved, loaded and run without the compiler in memory.

Shapes of parameters and results are trees of `ArraySpec` and `TokenSpec`. Native code sees only the arrays among
their leaves, in depth-first order; tokens have no buffer. A leaf with dynamic dimensions has a data buffer padded to
its bounds and, directly behind it, one 32-bit size for each dynamic dimension.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from xlapy_runtime.records import Record, field


class ArraySpec(Record):
    """Element type and dimensions of an array; `dynamic` marks the dimensions whose size is only a bound.

    `order` lists the dimensions from minor to major in memory, where they do not lie row by row."""

    dtype: np.dtype[np.generic]
    dims: tuple[int, ...]
    dynamic: tuple[bool, ...] = ()
    order: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.dims)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def dynamic_dims(self) -> tuple[int, ...]:
        return tuple(d for d, is_dynamic in enumerate(self.dynamic) if is_dynamic) if self.dynamic else ()

    @property
    def num_buffers(self) -> int:
        """The data and a size for each dynamic dimension."""
        return 1 + sum(self.dynamic)

    def admits(self, dims: tuple[int, ...]) -> bool:
        """Whether an array of these dimensions is one of this spec's."""
        if dims == self.dims or not any(self.dynamic):
            return dims == self.dims
        return len(dims) == len(self.dims) and all(
            have <= bound if is_dynamic else have == bound
            for have, bound, is_dynamic in zip(dims, self.dims, self.dynamic, strict=True)
        )

    def __str__(self) -> str:
        dynamic = self.dynamic or (False,) * len(self.dims)
        sizes = ("<=" * is_dynamic + str(size) for size, is_dynamic in zip(self.dims, dynamic, strict=True))
        return f"{element_name(self.dtype)}[{','.join(sizes)}]"


class TokenSpec(Record):
    """A value that only orders effects."""

    def __str__(self) -> str:
        return "token"


Tree: TypeAlias = ArraySpec | TokenSpec | tuple["Tree", ...]


class RuntimeCall(Record):
    """One call site of native code into the runtime.

    `label` is the instruction ("all-reduce.3"), `where` the user's source line if it is known. `attributes` are plain
    values, whose names each kind documents where it is registered.
    """

    kind: str
    label: str
    where: str = ""
    operands: tuple[ArraySpec, ...] = ()
    results: tuple[ArraySpec, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


class Texts(Record):
    """What object code was made of: the module as HLO text, and LLVM IR."""

    hlo_text: str = ""
    llvm_modules: tuple[str, ...] = ()


class Program(Record, eq=False):
    """A compiled program.

    `parameters` and `result` are trees; `aliases` maps a result leaf to the parameter leaf whose memory it takes over
    (both counted among the array leaves). `kernels` are the symbols that native code exports besides `entry`.
    `has_loops` says that a call may take any time. `libraries` are those whose functions it calls: shape-generic code
    that the process loads once for all programs. `texts` gives what the program was made of, which is more than itself
    and needed only to be read.
    """

    name: str
    objects: tuple[bytes, ...]
    entry: str
    parameters: tuple[Tree, ...]
    result: Tree
    kernels: tuple[str, ...] = ()
    parameter_names: tuple[str, ...] = ()
    arena_bytes: int = 0
    constants: tuple[np.ndarray, ...] = ()
    runtime_calls: tuple[RuntimeCall, ...] = ()
    num_replicas: int = 1
    num_partitions: int = 1
    aliases: Mapping[int, int] = field(default_factory=dict)
    texts: Callable[[], Texts] = Texts
    libraries: tuple[str, ...] = ()
    has_loops: bool = False

    @property
    def num_processes(self) -> int:
        return self.num_replicas * self.num_partitions

    @property
    def hlo_text(self) -> str:
        return self.texts().hlo_text

    @property
    def llvm_modules(self) -> tuple[str, ...]:
        return self.texts().llvm_modules


Value: TypeAlias = Any
"""An array, or a (nested) tuple or list of arrays."""


_ARRAYS = frozenset({ArraySpec})


def flatten(tree: Tree) -> tuple[ArraySpec, ...]:
    """The array leaves in depth-first order. Tokens have no buffer and do not appear."""
    parts: Any = tree if isinstance(tree, tuple) else (tree,)
    if {*map(type, parts)} == _ARRAYS:  # as mostly
        flat: tuple[ArraySpec, ...] = parts
        return flat
    return tuple(leaf for _, leaf in array_leaves(tree))


def array_leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, ArraySpec]]:
    """Each array leaf with its path, written as an index expression: "[0][2]"."""
    if isinstance(tree, ArraySpec):
        yield path, tree
    elif isinstance(tree, tuple):
        for index, part in enumerate(tree):
            yield from array_leaves(part, f"{path}[{index}]")


def unflatten(tree: Tree, leaves: Sequence[Value]) -> Value:
    """The leaves nested as `tree` says, with None for each token.

    Nothing holds on to them afterwards: memory of results is used again as soon as its array is dropped."""
    return leaves[0] if isinstance(tree, ArraySpec) else _build(tree, iter(leaves))


def _build(tree: Tree, remaining: Iterator[Value]) -> Value:
    if isinstance(tree, tuple):
        return tuple(_build(part, remaining) for part in tree)
    return None if isinstance(tree, TokenSpec) else next(remaining)


def tree_text(tree: Tree) -> str:
    """The tree as HLO writes shapes: (f32[4], (s32[], token))."""
    if isinstance(tree, tuple):
        return "(" + ", ".join(tree_text(part) for part in tree) + ")"
    return str(tree)


def specs_text(specs: Sequence[ArraySpec]) -> str:
    """A list of arrays, without brackets if it is only one."""
    return str(specs[0]) if len(specs) == 1 else tree_text(tuple(specs))


_FAMILY_LETTERS = {"int": "s", "uint": "u", "float": "f", "bfloat": "bf", "complex": "c"}
_DTYPE_NAME = r"(int|uint|float|bfloat|complex)(\d+)(?:_(\w+))?"


def element_name(dtype: np.dtype[np.generic]) -> str:
    """HLO's name of an element type: f32, bf16, s8, pred, f8e4m3fn."""
    if dtype == np.bool_:
        return "pred"
    matched = re.fullmatch(_DTYPE_NAME, dtype.name)
    if matched is None:
        return dtype.name
    family, bits, variant = matched.groups()
    name = _FAMILY_LETTERS[family] + bits + (variant or "")
    return name if dtype.isnative else f"{name} in foreign byte order"
