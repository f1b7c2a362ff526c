"""Select-and-scatters, with the padding that their windows slide over.

    p = f32[9,9] pad(x, lowest), padding=0_1x0_1            x = f32[8,8]
    s = f32[9,9] select-and-scatter(p, source, zero), ...
    ROOT r = f32[8,8] slice(s), slice={[0:8], [0:8]}

One kernel may do all of it: it knows what lies beside `x` without a copy of it, and does not write what is cut off. In
the coordinates of `s`, which windows count in, `x` and `r` are ranges.
"""

from __future__ import annotations

import math
from dataclasses import replace

from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import is_inlinable, is_kernel_constant
from xlapy.support.records import Record

MOST_PLACE_INSTRUCTIONS = 64
"""Of the regions, over all places of a window, for code that is written out for each of them."""


class PaddedSelection(Record):
    """`selection` reads `array`, and `beside` where that has no elements; of its result, `root` has a part."""

    selection: Instruction
    root: Instruction
    array: Instruction
    beside: Instruction | None  # None where the selection reads the array itself
    read: tuple[range, ...]  # by dimension, where the array lies
    kept: tuple[range, ...]  # where the root does

    @property
    def is_plain(self) -> bool:
        """There is nothing but the selection."""
        return self.root is self.selection and self.beside is None

    @property
    def members(self) -> tuple[Instruction, ...]:
        """What one kernel does, in order."""
        pad = () if self.beside is None else (self.selection.operands[0],)
        return (*pad, *dict.fromkeys((self.selection, self.root)))


def whole_selection(selection: Instruction) -> PaddedSelection:
    """A selection by itself."""
    everything = tuple(range(size) for size in selection.shape.dims)
    return PaddedSelection(selection, selection, selection.operands[0], None, everything, everything)


def padded_selection(root: Instruction) -> PaddedSelection | None:
    """What a kernel with that result would do; None if there is no selection."""
    selection = root.operands[0] if root.opcode == "slice" else root
    if selection.opcode != "select-and-scatter":
        return None
    plain, pad = whole_selection(selection), selection.operands[0]
    kept = plain.kept if root is selection else _sliced(root)
    read = _padded(pad) if pad.opcode == "pad" else None
    if kept is None:
        return None
    if read is None:
        return replace(plain, root=root, kept=kept)
    array, beside = pad.operands
    return PaddedSelection(selection, root, array, beside, read, kept)


def _sliced(root: Instruction) -> tuple[range, ...] | None:
    """What a slice without gaps keeps."""
    parts = root.attributes["dimensions"]
    return tuple(range(part.start, part.limit) for part in parts) if all(part.stride == 1 for part in parts) else None


def _padded(pad: Instruction) -> tuple[range, ...] | None:
    """Where the operand of a pad lies, if there is the same constant everywhere around it, and nothing in between."""
    parts = pad.attributes["dimensions"]
    is_plain = all(part.interior == 0 and part.low >= 0 and part.high >= 0 for part in parts)
    if not is_plain or not is_kernel_constant(pad.operands[1]):
        return None
    return tuple(range(part.low, part.low + size) for part, size in zip(parts, pad.operands[0].shape.dims, strict=True))


def may_update_places(selection: Instruction) -> bool:
    """A kernel may update each place of a window, one after the other, where that is what was selected."""
    places = math.prod(part.size for part in selection.attributes["window"].dimensions)
    work = places * max(map(len, selection.called))
    return work <= MOST_PLACE_INSTRUCTIONS and all(map(is_inlinable, selection.called))
