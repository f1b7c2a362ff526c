"""Transposing a square block that lies in vector registers."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.ir import KernelBuilder, Value


def transposed(k: KernelBuilder, rows: Sequence[Value]) -> list[Value]:
    """The columns of a square block: interleaving the first half with the second, as often as it can be halved.

    There are as many rows as each has lanes, a power of two."""
    lanes = len(rows)
    half = lanes // 2
    low = [lane for column in range(half) for lane in (column, lanes + column)]
    high = [lane for column in range(half, lanes) for lane in (column, lanes + column)]
    block = list(rows)
    for _ in range(lanes.bit_length() - 1):
        block = [k.shuffle(block[row], block[row + half], order) for row in range(half) for order in (low, high)]
    return block
