"""Factors of small matrices, and solutions of their systems.

    eigh.f32.3x3.1.full        eigenvectors and values of 3 by 3 matrices, of which whole vectors are there
    triangular_solve.f64.4x4_4x2.1100.ragged
    triangular_solve.c64.64x64_64x8.1100.sized

A machine compiles the kernel that programs have for such once for each size, as geometry and physics have few. A
function is named by the op, the type, the sizes of matrices in the operands, the attributes, and the way they come
(`WAYS`). How many matrices there are is all that it need not know.

Larger ones that come one by one are told their sizes when they run: the name is that of a pattern
(`kernels.matrices.Pattern`), which says no more than how wide vectors are and what is computed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module
from xlapy.codegen.kernels.factors import MOST_ACROSS
from xlapy.codegen.kernels.matrices import MATRIX_OPS, MatrixWork, Pattern, work_on_matrices
from xlapy.codegen.libraries import FIRST_ARRAY, Library, LibraryCall
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import Transpose
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape

_SIZED = "sized"
WAYS = ("full", "ragged", "single", _SIZED)
"""Vectors of matrices that are all full, one of which is not, or matrices one by one, of one size or of any."""

_IN_PLACE, _PAST_CACHES = ".in_place", ".past_caches"
_VECTORS, _MANY_VECTORS = 8, 1 << 30  # of matrices in the plan of a library, and of one whose results no cache holds
_CHOICES: Mapping[str, tuple[Any, ...]] = {"transpose_a": tuple(Transpose)}
_BOOLEAN = (False, True)


def call_on_matrices(instruction: Instruction, work: MatrixWork, *, in_place: bool) -> LibraryCall | None:
    """How a library does the work of an instruction, if it does."""
    batch = instruction.operands[0].shape.dims[:-2]
    arrays = [*(operand.shape for operand in instruction.operands), *instruction.shape.leaves()]
    if work.scratch_bytes or work.takes_long or not work.units or not all(map(_is_plain, arrays)):
        return None
    sizes = [operand.shape.dims[len(batch) :] for operand in instruction.operands]
    numbers: Sequence[int]
    if all(size <= MOST_ACROSS for own in sizes for size in own):
        way = "single" if not work.across else "ragged" if math.prod(batch) % work.lanes else "full"
        pattern, numbers = Pattern(tuple(sizes), instruction.attributes), [math.prod(batch)]
    elif work.pattern is not None:
        way, pattern, numbers = _SIZED, work.pattern, work.numbers
    else:
        return None
    choices = (_choices(name).index(pattern.attributes[name]) for name in instruction.spec.attributes)
    name = ".".join(
        (
            instruction.spec.python_name,
            instruction.operands[0].shape.type.name,
            "_".join("x".join(map(str, own)) for own in pattern.sizes),
            "".join(map(str, choices)),
            way + _IN_PLACE * in_place + _PAST_CACHES * work.streaming,
        )
    )
    return LibraryCall(name, name, tuple(numbers))


def _is_plain(shape: Shape) -> bool:
    return shape.layout is None or shape.layout.is_row_major


def _choices(attribute: str) -> tuple[Any, ...]:
    return _CHOICES.get(attribute, _BOOLEAN)


def matrix_library(name: str) -> Library | None:
    """The library of that name, if it is one of these. There are thousands, of which a program calls a few."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    emit = partial(_emit, found)
    if found["way"] == _SIZED and (found["op"], found["type"][0]) in _REWORKED:
        return Library(name, (name,), emit, optimization="full", codegen_level=2)
    return Library(name, (name,), emit, reduces_strength=False)


_REWORKED = frozenset({("cholesky", "f"), ("cholesky", "c"), ("triangular_solve", "c")})
"""Ops, and kinds of numbers, whose loops LLVM makes better than they are written if their lengths are not known:
Cholesky factors of 50 rows take 0.85 of the time, complex systems 0.93. Systems of real numbers would take a tenth
longer."""


_OPS = {OPS[opcode].python_name: opcode for opcode in MATRIX_OPS}
_NAME = re.compile(
    rf"(?P<op>{'|'.join(_OPS)})\.(?P<type>\w+)\.(?P<sizes>[\dx_]+)\.(?P<attributes>\d*)\.(?P<way>{'|'.join(WAYS)})"
    rf"(?P<in_place>{re.escape(_IN_PLACE)})?(?P<past_caches>{re.escape(_PAST_CACHES)})?"
)


def _emit(found: re.Match[str], target: Target) -> Module:
    instruction, in_place = _instruction(found, target), found["in_place"] is not None
    work = work_on_matrices(instruction, target, in_place=in_place)
    module, attributes = Module.of(target), f"nounwind {target.function_attributes}".rstrip()
    parameters = [("table", PTR), ("begin", I64), ("end", I64)]
    with KernelBuilder(
        module, found[0], parameters, None, attributes=attributes, joins_offsets=True, hoists_addresses=True
    ) as k:
        arrays = []
        operands, results = [operand.shape for operand in instruction.operands], [*instruction.shape.leaves()]
        for number, shape in enumerate((*operands, *results)):
            pointer = k.load(k.gep(k.parameters["table"], FIRST_ARRAY + number, PTR.bytes), PTR)
            is_result = number >= len(operands)
            alias = None if in_place else f"a{number}" if is_result else "operands"
            arrays.append(Array(pointer, shape, alias, read_only=not (is_result or in_place)))
        begin, end = k.parameters["begin"], k.parameters["end"]
        groups = arrays[: len(operands)], arrays[len(operands) :]
        if found["way"] == _SIZED:
            place = k.load(k.parameters["table"], PTR)
            numbers = [k.load(k.gep(place, number, I64.bytes), I64) for number in range(len(work.numbers))]
            work.write(k, *groups, begin, end, numbers)
        else:
            work.body(k, *groups, begin, end)
    return module


def _instruction(found: re.Match[str], target: Target) -> Instruction:
    """One that the function does the work of."""
    type = et.element_type_named(found["type"])
    lanes = target.lanes(register_type(type).bits)
    full = lanes * (_MANY_VECTORS if found["past_caches"] else _VECTORS)
    batch = {"full": full, "ragged": full + 1}.get(found["way"], 1)
    computation = Computation("matrices")
    operands = []
    for number, sizes in enumerate(found["sizes"].split("_")):
        shape = Shape.array(type, (batch, *map(int, sizes.split("x"))))
        operands.append(computation.add("parameter", shape=shape, number=number))
    opcode = _OPS[found["op"]]
    names = OPS[opcode].attributes
    chosen = {name: _choices(name)[int(digit)] for name, digit in zip(names, found["attributes"], strict=True)}
    return computation.add(opcode, operands, **chosen)
