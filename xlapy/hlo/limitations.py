"""What xlapy knowingly does not do, each with the reason: the one table of it.

`docs/limitations.md` is made from it (`python -m xlapy.hlo.limitations`), and the test of completeness lets pass what
stands here and nothing else. Whoever meets a limitation gets an UnsupportedError that names the instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from xlapy.hlo.element_types import ALL, ElementType


@dataclass(frozen=True, slots=True)
class Limitation:
    """`ops` lack native code for some of their uses: those of `types`, or those that `what` describes."""

    ops: tuple[str, ...]
    what: str
    reason: str
    types: frozenset[ElementType] = frozenset()


ALTOGETHER = "anything yet"
"""Of an op that has its row in the op table and still lacks code, text or tests."""

LIMITATIONS = (
    Limitation(
        ("bitcast-convert",),
        "between types of different widths, one of them below 8 bits",
        "integers narrower than a byte are stored one per byte, so their bits do not lie side by side",
    ),
    Limitation(
        ("map", "reduce", "reduce-window", "select-and-scatter", "scatter", "sort", "all-reduce"),
        "with a computation that works on arrays or runs loops",
        "the computation is inlined into the kernel, which holds scalars in registers",
    ),
    Limitation(
        ("while", "conditional", "call"),
        "that take or give arrays of dynamic size",
        "sizes travel beside arrays within one computation, and to and from the caller, not yet through control flow",
    ),
    Limitation(
        ("reshape",),
        "that merges a dimension of dynamic size, not the major one, into another",
        "the elements beyond the size would lie between the others",
    ),
    Limitation(
        ("fft",),
        "along a dimension of dynamic size",
        "transforms of different sizes have nothing in common, so that no padding is neutral",
    ),
    Limitation(
        ("dynamic-update-slice",),
        "of an update of dynamic size",
        "the kernel copies a block whose size is known when the program is compiled",
    ),
    Limitation(
        ("convolution",),
        "that groups a dimension of dynamic size, or has a kernel of dynamic size",
        "groups and windows are laid out for sizes known when the program is compiled",
    ),
    Limitation(
        ("custom-call",),
        "of a C function by the typed API version (said when it is called)",
        "its calling convention is a C++ header of XLA's; a Python function of that version gets its attributes",
    ),
)


def limitations_of(op: str) -> list[Limitation]:
    return [limitation for limitation in LIMITATIONS if op in limitation.ops]


def is_limited(op: str, element_type: ElementType) -> bool:
    """The op has no native code for elements of this type."""
    return any(element_type in limitation.types for limitation in limitations_of(op))


def page() -> str:
    """docs/limitations.md."""
    rows = [
        f"| {', '.join(f'`{op}`' for op in limitation.ops)} | {limitation.what} | {limitation.reason} |"
        for limitation in LIMITATIONS
    ]
    return "\n".join([_HEAD, *rows, "", _TAIL])


_HEAD = """\
# What xlapy does not do

Made from `xlapy/hlo/limitations.py` by `python -m xlapy.hlo.limitations > docs/limitations.md`; a test compares them.
Each of these raises `UnsupportedError` when a program is compiled. The reference evaluator has no such limits.

| op | not supported | why |
|---|---|---|"""

_TAIL = f"""\
Processors: code for NEON and AVX-512 is emitted and its assembly checked by tests, here as anywhere; NEON code has not
yet been run, as no machine that has it was at hand.

Element types are {", ".join(f"`{element_type}`" for element_type in ALL)} and tokens.
"""

if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - this is what running the module is for
