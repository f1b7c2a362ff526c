"""What xlapy knowingly does not do, or not surely, each with the reason: a table of operations, one of processors, and
one of functions of JAX whose results are not XLA's.

`docs/limitations.md` is made from them (`python -m xlapy.hlo.limitations`), and the test of completeness lets pass what
stands here and nothing else. Whoever meets a limitation of an operation gets an UnsupportedError that names the
instruction; a processor of the second table gets code, tested as far as its row says; the functions of the third were
looked at one by one, and all others that the tests know agree.
"""

from __future__ import annotations

from xlapy.hlo.element_types import ALL
from xlapy.support.records import Record


class Limitation(Record):
    """`ops` lack native code for some of their uses: those that `what` describes."""

    ops: tuple[str, ...]
    what: str
    reason: str


LIMITATIONS = (
    Limitation(
        ("map", "reduce", "reduce-window", "select-and-scatter", "scatter", "sort", "all-reduce", "reduce-scatter"),
        "with a computation that has effects: infeed, send, collectives, custom calls, stateful random numbers ...",
        "kernels apply it on several threads, while an effect happens on one, in its place",
    ),
    Limitation(
        (
            "infeed",
            "outfeed",
            "send",
            "recv",
            "custom-call",
            "all-reduce",
            "all-gather",
            "reduce-scatter",
            "all-to-all",
            "collective-broadcast",
            "collective-permute",
        ),
        "of arrays of dynamic size",
        "what leaves the program is one buffer of a size that all who take part know in advance",
    ),
    Limitation(
        ("send", "recv"),
        "between devices, in a program that runs over MPI (`run_distributed` raises the error)",
        "their channels are those of one process; collective-permute does the same",
    ),
    Limitation(
        ("while", "conditional", "map", "reduce", "reduce-window", "select-and-scatter", "scatter", "sort"),
        "with computations that nest more than a hundred deep",
        "passes and code generation follow them by recursion, which Python bounds",
    ),
    Limitation(
        ("call", "while", "conditional"),
        "with computations that others call too, if the copies have more than a million instructions together",
        "each place has memory and kernels of its own: two calls of what has two calls ... are a million, twenty deep",
    ),
    Limitation(
        ("sort",),
        "along rows of more than 4,294,967,296 elements, unless it is a sort of one array, or of two, by a comparator "
        "that is recognised (the other array's elements of 8 bytes at most)",
        "what is ordered says in 32 bits which element it comes from",
    ),
    Limitation(
        ("topk",),
        "along rows of more than 2,147,483,648 elements",
        "its second result, of s32, says which elements these are",
    ),
    Limitation(
        ("bitcast",),
        "between complex numbers and others, and of 6-bit floats to elements of another width (also when written as "
        "StableHLO)",
        "it is spelled out in operations on logical arrays, and none takes the bits of these apart",
    ),
)


class Processor(Record):
    """How far code for one kind of processor is tested, and why no further ("" if tests run all of it)."""

    machine: str  # the name of codegen's reference target
    what: str
    tested: str
    reason: str


ON_HARDWARE = "run by the tests, on hardware"
EMULATED = "run by the tests under emulation where its tools are installed, and not yet on hardware"

PROCESSORS = (
    Processor("avx512", "x86-64 with AVX-512 (F, BW, DQ, VL)", ON_HARDWARE, ""),
    Processor("avx2", "x86-64 with AVX2 and FMA", ON_HARDWARE, ""),
    Processor("sse2", "x86-64 without AVX2", ON_HARDWARE, ""),
    Processor(
        "neon",
        "AArch64 (NEON): matrix products, vector math, and whole programs with the thread pool",
        EMULATED,
        "no machine that has it was at hand; nothing was timed",
    ),
)


class JaxDifference(Record):
    """Results that differ from XLA's: of expressions with one of `functions` in them, in some uses. No modes or types:
    in all."""

    functions: tuple[str, ...]
    what: str
    reason: str
    types: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()  # as in the tests: plain, gradient, edges

    def covers(self, expression: str, element_type: str, mode: str) -> bool:
        return (
            any(function in expression for function in self.functions)
            and (not self.types or element_type in self.types)
            and (not self.modes or mode in self.modes)
        )


JAX_DIFFERENCES = (
    JaxDifference(
        ("lax.lgamma(x)",),
        "where the logarithm is 0: at 1 and 2",
        "it is 0 here; XLA adds larger terms up, whose rounding error remains",
        modes=("edges",),
    ),
    JaxDifference(
        ("lax.exp2(x)", "jnp.logaddexp2(x, y)"),
        "of complex numbers with an infinite real part",
        "infinite or 0 here, as C99 has it for the exponential; NaN for XLA, where JAX multiplies by log 2 first",
        types=("c64", "c128"),
        modes=("edges",),
    ),
    JaxDifference(
        ("lax.approx_max_k(x, 2)", "lax.approx_min_k(x, 2)"),
        "which of several equal elements is meant",
        "the first of them here, and all that is found is exact; XLA may name another one",
        types=("bf16", "f16"),
        modes=("large",),
    ),
)


def limitations_of(op: str) -> list[Limitation]:
    return [limitation for limitation in LIMITATIONS if op in limitation.ops]


def page() -> str:
    """docs/limitations.md."""
    rows = [
        f"| {', '.join(f'`{op}`' for op in limitation.ops)} | {limitation.what} | {limitation.reason} |"
        for limitation in LIMITATIONS
    ]
    processors = [f"| {row.what} | {row.tested} | {row.reason or '-'} |" for row in PROCESSORS]
    differences = [
        f"| {', '.join(f'`{function}`' for function in row.functions)} | {row.what} | {row.reason} |"
        for row in JAX_DIFFERENCES
    ]
    processors_section = [_PROCESSORS_HEAD, *processors, "", _MATRIX_UNIT]
    return "\n".join([_HEAD, *rows, "", *processors_section, _JAX_HEAD, *differences, "", _TAIL])


_HEAD = """\
# What xlapy does not do

Made from `xlapy/hlo/limitations.py` by `python -m xlapy.hlo.limitations > docs/limitations.md`; a test compares them.
Each of these uses of an operation raises `UnsupportedError` when a program is compiled. The reference evaluator has no
such limits.

| op | not supported | why |
|---|---|---|"""

_PROCESSORS_HEAD = """\
## Processors

Code is made for the processor at hand; for each kind, this is how far it is tested. For any other processor of LLVM's,
code is made with 16-byte vectors, and nothing is known of it.

| processor | code is | why no further |
|---|---|---|"""

_MATRIX_UNIT = """\
Where a processor has a matrix unit (AMX) and the system lends it, dots and convolutions of s8, u8 and bf16
use it. It takes subnormal numbers, of operands and of sums, for zeros, so bf16 below 1.2e-38 does not count; those
whose precision is `high` or `highest` are computed without it, and keep them.

It also computes dots of f32, of a million multiplications and about 112 rows and columns or more, and convolutions of
f32 whose features lie side by side and about fill what it reads at a time, unless they are to be `high` or `highest`:
each element is the sum of three bf16, and six products of these make one, of whose magnitude the three that are left
out are 2^-23 at most, and 2^-26 on average. Sums are made in longer pieces, so that results are nearer to the exact
ones than those of multiply-adds one after the other. Where an element is below 2^-103, or a product may be below 2^-98,
so that parts of it would be subnormal, or too large, the convolution, or some hundred rows or columns of a dot in which
it is, are computed by multiply-adds: what is infinite, NaN or tiny is what it is without the unit.
"""

_JAX_HEAD = """\
## Functions of JAX

Several hundred functions of JAX, for every element type that they take, are compared with XLA, their gradients too, and
many at infinities, zeros and the largest numbers (`python -m tests.jax.breadth`). Results differ by what rounding
explains, except for these. Numbers too small to be normal are zero for XLA.

| function | differs | why |
|---|---|---|"""

_TAIL = f"""\
## Where XLA departs from StableHLO

Results here are those of StableHLO's specification and of its interpreter where XLA gives others. Of a window that
`scatter` would write partly outside, the part inside is written; XLA, and therefore JAX, writes nothing of it. Where
`reduce` folds several arrays along a dimension of one element, the initial values take part as anywhere; XLA returns
the elements as they are, which is the same for initial values that change nothing.

Subnormal results are kept, which XLA takes for zeros. A function of JAX does so, too, and any program that is compiled
with `flush_subnormals=True`; remainders of f64 by divisors below 2^-960, which are found in steps that may be
subnormal, are not exact then.

A complex product is (a c - b d) + (a d + b c) i, each of the four products rounded by itself. Where two of them
overflow, a part is infinity less infinity, NaN; XLA contracts one with the difference and has an infinity. Neither
recovers an infinity from NaNs, as C99's Annex G would for a product. It is followed for quotients, and infinite parts
elsewhere give what C99 says, or NaN where it says an infinity whose direction is unknown.

A complex power z^w is e^(w log z) in polar form, as for finite numbers. Where its absolute value is 0, it is 0, and
where that is infinite, its parts are infinities if the angle is known: i^(1 - inf i) is inf + inf i, (2.5 + inf i)^-1
is 0. XLA, numpy and the C library have NaN in most of these cases, which C99 permits. Anything to the power 0 is 1,
and 0 to a power with a positive real part is 0, even to one with an imaginary part, where XLA has NaN.

## Sizes that depend on values

A StableHLO operation that takes sizes as operands (`dynamic_reshape` and its kin) needs to know them from the shapes of
the arguments, or else a result with bounds, `tensor<?xf32, #stablehlo.bounds<8>>`. With bounds, `dynamic_iota`,
`dynamic_broadcast_in_dim`, `real_dynamic_slice` (of known strides) and `dynamic_reshape` (to one bounded dimension, or
to a bounded first one) take sizes at run time. All others raise `UnsupportedError`: `dynamic_pad`, `dynamic_gather` and
`dynamic_conv` move their elements by amounts that would have to be known before, and without a bound nothing says how
much memory a result takes.

## MLIR's binary form

It is read by jaxlib, which does not check all that it finds there: of modules damaged at random, one in two hundred
ends it, or keeps it busy for ever. So a process of its own reads it, which takes 0.3 s, and such a module is a
`ParseError`; where Python is part of a program that cannot be started again, the program itself reads it.

## Element types

Quantized types of StableHLO are the uniform ones, per tensor or per axis, whose storage is narrower than what they
express; types with scales for each block of a tensor (sub-channels), which the specification does not have, raise
`UnsupportedError` when they are read. Storage as wide as what it expresses (`i32:f32`) is against the specification
(`quantized_type.C1`), and refused under that label.

Element types are {", ".join(f"`{element_type}`" for element_type in ALL)} and tokens.
"""

if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - this is what running the module is for
