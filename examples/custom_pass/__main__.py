"""Shows what the pass does to one program: its temporaries, and that the numbers stay."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import xlapy
from examples.custom_pass.attention import StreamingAttention
from xlapy import ops
from xlapy.passes.user import after

HEADS, POSITIONS, WIDTH = 2, 1024, 64


def attention() -> xlapy.XlaComputation:
    """softmax(q k' / sqrt(d)) v for each head."""
    b = xlapy.XlaBuilder("attention")
    shape = xlapy.Shape.array(np.float32, (HEADS, POSITIONS, WIDTH))
    q, k, v = (ops.Parameter(b, number, shape, name) for number, name in enumerate("qkv"))
    scores = ops.DotGeneral(q, k, (((2,), (2,)), ((0,), (0,)))) * float(1 / np.sqrt(WIDTH))
    square = (HEADS, POSITIONS, POSITIONS)
    e = ops.Exp(scores - scores.reduce(-np.inf, ops.Max, (2,)).broadcast_in_dim(square, (0, 1)))
    p = e / e.reduce(0, ops.Add, (2,)).broadcast_in_dim(square, (0, 1))
    return b.build(ops.DotGeneral(p, v, (((2,), (1,)), ((0,), (0,)))))


def main(arguments: Sequence[str] | None = None) -> None:
    """Compiles with and without the pass, and compares; without, once more as the compiler does it by itself."""
    argparse.ArgumentParser(prog="python -m examples.custom_pass", description=__doc__).parse_args(arguments)
    plain = xlapy.compile(attention(), xlapy.CompileOptions(disabled_passes=frozenset({"row-blocks"})))
    in_blocks = xlapy.compile(attention())
    streaming = xlapy.compile(attention(), xlapy.CompileOptions(passes=[after("simplify", StreamingAttention())]))
    random = np.random.default_rng(0)
    inputs = [random.normal(size=(HEADS, POSITIONS, WIDTH)).astype(np.float32) for _ in range(3)]
    difference = np.abs(plain(*inputs) - streaming(*inputs)).max()
    for name, exe in (("plain", plain), ("streaming", streaming), ("row-blocks", in_blocks)):
        print(f"{name:10} {exe.memory_analysis()['temporary_bytes']:>12,} bytes of temporaries")
    print(f"largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
