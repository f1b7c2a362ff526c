"""What loops over elements know of the functions in them: how many vectors to compute together, and which to call.

A function is a chain of operations, each of which waits for the one before. The processor looks ahead over one to two
hundred instructions, which with two vectors is one function, so it has little else to do meanwhile. The more vectors
are written down side by side, the more it finds, as long as the registers hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xlapy.codegen.math.outlined import LONG
from xlapy.codegen.registers import register_type
from xlapy.codegen.target import Target
from xlapy.hlo import element_types as et
from xlapy.hlo.cost import TRANSCENDENTAL
from xlapy.hlo.graph import Instruction
from xlapy.hlo.ops import Trait

VECTORS_OF_MANY = 4  # take up to a third longer to compile than two
VECTORS_OF_SLENDER = 8  # of which two or three times as much is in flight as of four, and half of it in registers
ROOMY_REGISTERS = 32  # enough for four vectors and for constants
MANY_STEPS = 1 << 11  # from which on four vectors are worth it: some hundred calls win it back
MANY_STEPS_OF_SLENDER = 1 << 13  # the same for eight
MANY_STEPS_IN_MEMORY = 1 << 15  # the same for eight that pay only where results go to memory
STEPS_OF_CALLS = 16  # the same for calls of functions, which save both a fourth of the time and compiling copies
LONG_ROW_STEPS = 16  # in which the overlap of the last two is little
MOST_FUNCTIONS = 8  # of an element, up to which it is: the more there are, the more values wait in memory
MOST_SLENDER = 2  # the same for eight vectors

LEAST_IN_CHAIN = 12
"""Functions, each of the one before, that are called with two vectors, too, if they are most of a kernel: a chain of
16 to 60 tangents, sines or logarithms takes 0.99 to 1.03 of the time, and a half to a fourth to compile. As many that
do not wait for each other take up to an eighth longer."""

MOST_BESIDE = 32  # other operations for each function that is called, up to which eight vectors compile as soon

ROOTS = frozenset({"sqrt", "rsqrt"})  # instructions, or two
_INTRICATE = """bessel-i0e bessel-i1e digamma erfc igamma igamma-grad-a igammac lgamma polygamma
    random-gamma-grad regularized-incomplete-beta zeta"""
CHAINS = (TRANSCENDENTAL - ROOTS) | {"erf-inv"}
"""Functions that are one long chain of operations."""

_BOTH = frozenset({"f32", "f64"})
SLENDER: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "erf": _BOTH,
        "exponential": _BOTH,
        "exponential-minus-one": _BOTH,
        "log-plus-one": frozenset({"f32"}),
        "logistic": _BOTH,
        "sinh": _BOTH,
        "tanh": frozenset({"f32"}),
    }
)
"""Functions, and the types in which they keep few values beside the chain, so that registers hold eight of them.

On Zen 5, loops of one then take a twentieth (tanh) to a fourth (logistic, erf of f64) less than with four vectors.
Those of others, logarithms, sines or quotients, which keep more, take up to a third longer."""

SLENDER_IN_MEMORY: Mapping[str, frozenset[str]] = MappingProxyType(
    {"cosine": frozenset({"f32"}), "log": _BOTH, "sine": frozenset({"f32"})}
)
"""The same where results go to memory, and that is far: with twice as much to read and to write at a time, late Intel
servers take a fifth less; in their caches up to a sixth more.

So it is with all `SLENDER` functions of bf16, which is rounded behind each operation: they take a tenth (silu) to a
fourth (gelu) less, but another half to compile, 4 to 7 ms. With other narrow floats, whose conversions are long, that
would be more."""

SEVERAL_BLOCKS = frozenset({"atan2", "cosine", "power", "sine", "tan"})
"""Functions that branch to what is rarely needed, or divide, and wait for that."""

CALLED_ALONE = frozenset(
    {("power", 32), ("atan2", 64), ("erf", 64), ("log", 64), ("power", 64), ("tan", 64), ("tanh", 64)}
)
"""Functions, with the bits of their numbers, for which a loop of nothing else takes no longer if it calls them; most
of those of f64 take up to a twentieth less."""

SHORT_BY_TABLES = frozenset({("log", 64)})
"""Those of these that are not worth a call where registers of 64 bytes hold tables."""

CALLED_IF_CROWDED = frozenset({("erf", 32), ("log", 32), ("tanh", 32)})
"""The same where there are 16 registers: a function has all of them, and is compiled in full. On Zen 3 a loop of
logarithms takes a sixteenth less, one of tanh a twelfth, and all compile in four fifths of the time."""

CALLED_IN_CACHE = frozenset({("cosine", 32), ("sine", 32)})
"""The same, unless results are streamed: then a loop of sines takes a twelfth longer with calls."""

TABULAR = frozenset({"power"})
"""Functions that look numbers up in tables, which fill registers."""

PLAIN_TYPES = frozenset({et.F32, et.F64, et.PRED})
"""Types of which a function and all around it are instructions without branches, and nothing is widened."""

INTRICATE = frozenset(_INTRICATE.split())
"""Functions whose values fill the registers with two vectors of each, and which take long to compile as it is."""


def vectors_of_functions(
    computed: Sequence[Instruction], size: int, extent: int, lanes: int, target: Target
) -> int | None:
    """How many native vectors, of so many lanes, to compute together because of functions among what is `computed`:
    of `size` elements in all, `extent` behind one another. None if these make no difference."""
    if not _has_long_chains(computed, target):
        return None
    calls = are_functions_called(computed, target, streaming=False)
    worthwhile = {VECTORS_OF_MANY: STEPS_OF_CALLS if calls else MANY_STEPS}
    if _is_roomy(target) and _are_slender(computed):
        is_brief = calls and _work_beside(computed) <= MOST_BESIDE
        worthwhile = {VECTORS_OF_SLENDER: STEPS_OF_CALLS if is_brief else MANY_STEPS_OF_SLENDER, **worthwhile}
    elif target.has_permute and target.has_far_last_cache and _are_slender_in_memory(computed, target):
        worthwhile = {VECTORS_OF_SLENDER: MANY_STEPS_IN_MEMORY, **worthwhile}
    for vectors, steps in worthwhile.items():
        step = vectors * lanes
        fits = not extent % step or extent >= LONG_ROW_STEPS * step
        if fits and size >= steps * step:
            return vectors
    return None


def _has_long_chains(computed: Sequence[Instruction], target: Target) -> bool:
    """Whether the steps of functions, each waiting for the one before, are what takes the time of an element.

    With four vectors, a function of f32 takes a tenth less time on Zen 5, and the distance on a sphere, of f64, a
    quarter less. With 16 registers, on Zen 3, functions take between a twentieth (tanh) and a fifth (erf) less, prices
    of options a third; but powers, which keep tables, a fourth more. Those of narrow floats, which take a sixth less
    and a fifth longer to compile, are left as they are."""
    return (
        0 < len(_functions(computed)) <= MOST_FUNCTIONS
        and (_is_roomy(target) or not any(_fills_few_registers(i) for i in computed))
        and not any(i.opcode in INTRICATE or (i.shape.is_array and i.shape.type.is_complex) for i in computed)
    )


def _work_beside(computed: Sequence[Instruction]) -> float:
    """Operations beside functions, for each of these."""
    others = sum(i.opcode not in CHAINS and Trait.ELEMENTWISE in i.spec.traits for i in computed)
    return others / len(_functions(computed))


def _fills_few_registers(instruction: Instruction) -> bool:
    shape = instruction.shape
    return instruction.opcode in TABULAR or (shape.is_array and shape.type.is_narrow_float)


def _is_roomy(target: Target) -> bool:
    return target.vector_registers >= ROOMY_REGISTERS


def _are_slender(computed: Sequence[Instruction]) -> bool:
    """Whether registers hold eight vectors of all values: of one or two functions, or of calls in one block."""
    functions = _functions(computed)
    if _are_several_called(functions):
        return _is_one_block(functions)
    return len(functions) <= MOST_SLENDER and all(_is_slender(f) for f in functions)


def _is_slender(function: Instruction) -> bool:
    type = function.shape.type
    return not type.is_narrow_float and register_type(type).kind in SLENDER.get(function.opcode, ())


def _are_slender_in_memory(computed: Sequence[Instruction], target: Target) -> bool:
    """The same of one or two functions where results go to memory, if they are not called then."""
    functions = _functions(computed)
    is_called = are_functions_called(computed, target, streaming=True)
    return not is_called and len(functions) <= MOST_SLENDER and all(_is_slender_in_memory(f) for f in functions)


def _is_slender_in_memory(function: Instruction) -> bool:
    type = function.shape.type
    kinds = (SLENDER if type == et.BF16 else SLENDER_IN_MEMORY).get(function.opcode, ())
    return (type == et.BF16 or not type.is_narrow_float) and register_type(type).kind in kinds


def is_block_of_functions(instructions: Sequence[Instruction], computed: Sequence[Instruction], target: Target) -> bool:
    """Whether loops of elements that are `computed`, four vectors at a time, are one block in which LLVM finds nothing
    better than what is written. With 16 registers it finds worse: on Zen 3, a softplus takes a fifth more time if LLVM
    tries hard, logarithms a tenth, others the same, and all take a sixth longer to compile."""
    return not _is_roomy(target) and all(
        instruction.opcode not in SEVERAL_BLOCKS
        and instruction.opcode != "remainder"
        and instruction.shape.is_array
        and instruction.shape.type in PLAIN_TYPES
        for instruction in (*instructions, *computed)
    )


def are_functions_called(computed: Sequence[Instruction], target: Target, *, streaming: bool) -> bool:
    """Whether copies of functions are what LLVM spends its time on, and calls take no longer: of several, most of them
    long, or of one that is long enough."""
    functions = _functions(computed)
    if len(functions) == 1:
        function = (functions[0].opcode, register_type(functions[0].shape.type).bits)
        if target.has_permute and function in SHORT_BY_TABLES:
            return False
        if function in CALLED_ALONE or (function in CALLED_IF_CROWDED and not _is_roomy(target)):
            return True
        return not streaming and function in CALLED_IN_CACHE
    return _are_several_called(functions) and (
        not streaming or _is_one_block(functions) or all(function.opcode in SEVERAL_BLOCKS for function in functions)
    )


def are_many_in_a_chain(computed: Sequence[Instruction]) -> bool:
    """Whether most of many functions wait for each other. What is `computed` comes operands first."""
    functions = _functions(computed)
    if len(functions) < LEAST_IN_CHAIN:
        return False
    waiting: dict[Instruction, int] = {}
    for instruction in computed:
        before = max((waiting.get(operand, 0) for operand in instruction.operands), default=0)
        waiting[instruction] = before + (instruction.opcode in CHAINS)
    return 2 * max(waiting.values()) >= len(functions)


def _functions(computed: Sequence[Instruction]) -> list[Instruction]:
    return [instruction for instruction in computed if instruction.opcode in CHAINS]


def _are_several_called(functions: Sequence[Instruction]) -> bool:
    called = sum(function.opcode in LONG for function in functions)
    return len(functions) > 1 and 2 * called >= len(functions)


def _is_one_block(functions: Sequence[Instruction]) -> bool:
    """Of f32, with eight vectors, called: prices of options, of logarithms and error functions, take a sixth less."""
    return all(f.opcode not in SEVERAL_BLOCKS and register_type(f.shape.type).bits == 32 for f in functions)
