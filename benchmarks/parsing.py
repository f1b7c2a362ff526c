"""`python -m benchmarks.parsing`: how fast StableHLO and HLO text become a verified module.

Reading runs every rule on every instruction, so what it returns is verified; the time to verify it again is beside it.
CPU time counts, and the fastest of several times: other work on the machine only ever slows reading down.
Lines that say what an earlier one said are read fastest; in the rows "all new", no line does.
Sizes grow, so that a time per line that grows with the program shows.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import xlapy
from benchmarks.arguments import positive
from xlapy.hlo.verifier import verify

BLOCK = """\
    %{0} = stablehlo.add %{p}, %{p} : tensor<{rows}x128xf32> loc(#loc1)
    %{1} = stablehlo.multiply %{0}, %{p} : tensor<{rows}x128xf32> loc(#loc2)
    %{2} = stablehlo.slice %{1} [0:{rows}, 0:64] : (tensor<{rows}x128xf32>) -> tensor<{rows}x64xf32> loc(#loc1)
    %{3} = stablehlo.concatenate %{2}, %{2}, dim = 1 : (tensor<{rows}x64xf32>, tensor<{rows}x64xf32>) -> tensor<{rows}x128xf32> loc(#loc2)
    %{4} = stablehlo.tanh %{3} : tensor<{rows}x128xf32> loc(#loc3)
    %{5} = stablehlo.dot_general %{4}, %w, contracting_dims = [1] x [0] : (tensor<{rows}x128xf32>, tensor<128x128xf32>) -> tensor<{rows}x128xf32> loc(#loc1)
    %{6} = stablehlo.reduce(%{5} init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<{rows}x128xf32>, tensor<f32>) -> tensor<{rows}xf32> loc(#loc2)
    %{7} = stablehlo.broadcast_in_dim %{6}, dims = [0] : (tensor<{rows}xf32>) -> tensor<{rows}x128xf32> loc(#loc3)
    %{8} = stablehlo.compare GT, %{5}, %{7}, FLOAT : (tensor<{rows}x128xf32>, tensor<{rows}x128xf32>) -> tensor<{rows}x128xi1> loc(#loc1)
    %{9} = stablehlo.select %{8}, %{5}, %{7} : tensor<{rows}x128xi1>, tensor<{rows}x128xf32> loc(#loc2)
"""  # noqa: E501

LINES = (2_000, 8_000, 32_000)
CONSTANT_BYTES = 100 * 1000 * 1000


def stablehlo_program(lines: int, *, new_sizes: bool = False) -> str:
    """A chain of ten operations again and again, as JAX would print it; or each time on an array of another size."""
    body, arguments = [], ["%x8: tensor<8x128xf32>"]
    last = "x8"
    for block in range(lines // 10):
        rows = 8 + block if new_sizes else 8
        names = [str(block * 10 + number) for number in range(10)]
        body.append(BLOCK.format(*names, p=f"x{rows}" if new_sizes else last, rows=rows))
        if rows > 8:
            arguments.append(f"%x{rows}: tensor<{rows}x128xf32>")
        last = "9" if new_sizes else names[-1]
    return (
        '#loc1 = loc("model.py":10:4)\n#loc2 = loc("model.py":11:4)\n#loc3 = loc("tanh"("model.py":12:4))\n'
        f"module @model {{\n  func.func public @main(%w: tensor<128x128xf32>, {', '.join(arguments)})"
        " -> tensor<8x128xf32> {\n"
        "    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
        f"{''.join(body)}    return %{last} : tensor<8x128xf32>\n  }}\n}}\n"
    )


def measured(read: Callable[[str], xlapy.HloModule], text: str, repeat: int) -> tuple[float, float]:
    """Seconds to a module, and to verify it again: the fastest of several times."""
    reading, verifying = [], []
    for _ in range(repeat):
        gc.collect()
        began = time.process_time()
        module = read(text)
        ended = time.process_time()
        verify(module)
        reading.append(ended - began)
        verifying.append(time.process_time() - ended)
        del module
    return min(reading), min(verifying)


def measurements(repeat: int) -> Iterator[str]:
    for lines in LINES:
        text = stablehlo_program(lines)
        module = xlapy.stablehlo.parse(text)
        forms = {
            "StableHLO, pretty": (xlapy.stablehlo.parse, text),
            "StableHLO, all new": (xlapy.stablehlo.parse, stablehlo_program(lines, new_sizes=True)),
            "StableHLO, generic": (xlapy.stablehlo.parse, xlapy.stablehlo.to_text(module)),
            "HLO, long": (xlapy.hlo.parse, module.to_text(long=True)),
        }
        for name, (read, written) in forms.items():
            count = written.count("\n")
            seconds, again = measured(read, written, repeat)
            speed = f"{count / seconds:9,.0f} lines/s"
            yield f"{name:20} {count:7,} lines  {seconds:7.3f} s  {speed}  (verified again in {again:.3f} s)"
    yield constant(repeat)


def constant(repeat: int) -> str:
    """A large constant in hexadecimal."""
    digits = np.arange(CONSTANT_BYTES // 4, dtype=np.float32).tobytes().hex().upper()
    type = f"tensor<{CONSTANT_BYTES // 4}xf32>"
    constant = f'%0 = stablehlo.constant dense<"0x{digits}"> : {type}'
    text = f"func.func @main() -> {type} {{\n{constant}\nreturn %0 : {type}\n}}"
    seconds, _ = measured(xlapy.stablehlo.parse, text, repeat)
    return f"a constant of {CONSTANT_BYTES // 1_000_000} MB   {seconds:7.3f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.parsing", description=__doc__)
    parser.add_argument("--repeat", type=positive, default=5, help="how often each is read (default: 5)")
    options = parser.parse_args(arguments)
    for line in measurements(options.repeat):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
