"""Convolutions whose left side is written down: few positions of the window, more features of the result.

There the kernel of the convolution is larger than the left side that the window makes of the array, and packing it
would take longer than to copy the rows of that side. These lie like any matrix then, and the product finds the kernel
where it is: tiles that come first copy its strips for those below while they compute. Where it is lines of the window
that can be read so, `gemm_unfolded` copies less.
"""

from __future__ import annotations

import functools

from xlapy.codegen.ir import I1, I64, KernelBuilder, Value
from xlapy.codegen.libraries.gemm_problem import BLOCK_COLUMNS, PACKED_CHUNK, PROBLEM, RANGE, ceil_div, row_pitch
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_unfolded import GemmUnfolded
from xlapy.codegen.libraries.gemm_windows import WINDOW_NUMBERS
from xlapy.codegen.libraries.scratch import acquire_scratch, release_scratch

LEAST_COPIED_POSITIONS = 9  # of fewer there is too little to multiply to copy rows for
_LEAST_FEATURES = 64
"""Of the input: they are copied at a time, and fewer are not worth the call that does so."""

_EVEN_BLOCKS = 8
"""Side by side in the result, to share out: there is one block or two below each other."""


class GemmCopied(GemmUnfolded):
    """Writes what decides for this way of computing a convolution, and the copying."""

    def copied(self) -> None:
        """The function that copies a range of rows, those of all matrices of the batch in order."""
        if not self._can_copy_rows:
            return
        with (
            self._function("copy_window_rows", RANGE, is_glue=True) as k,
            k.loop(k.parameters["begin"], k.parameters["end"]) as item,
        ):
            problem = PROBLEM.at(k, k.parameters["problem"])
            batch = k.sdiv(item.index, problem["m"])
            row = k.sub(item.index, k.mul(batch, problem["m"]))
            array = k.gep(problem["a"], k.mul(batch, problem["a_batch"]))
            goal = k.gep(problem["tile_a"], k.mul(item.index, problem["tile_a_row"]))
            steps = [k.const(I64, 0), problem["k"]]
            k.call(f"{self._prefix}_copy_row", [problem["windows"], array, row, *steps, goal])

    @property
    def _can_copy_rows(self) -> bool:
        kind = self._kind
        return kind.parts == 1 and kind.pair == 1 and kind.is_packed_in_memory and kind.accumulates_in_result

    def _is_copied(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """Whether a convolution is computed in this way."""
        if not self._can_copy_rows:
            return k.const(I1, 0)
        features = k.load(k.gep(problem["windows"], WINDOW_NUMBERS.index("step_count3"), 8), I64)
        follows_rows = k.load(k.gep(problem["windows"], WINDOW_NUMBERS.index("follows_rows"), 8), I64)
        conditions = [
            self._can_read_b(k, problem),
            k.compare("eq", follows_rows, 0),
            k.compare("ge", features, _LEAST_FEATURES),
            k.compare("ge", problem["m"], LEAST_COPIED_POSITIONS),
            k.compare("le", problem["m"], problem["n"]),
            k.compare("le", self._bytes_of_rows(k, problem), self._most_packed_bytes),
        ]
        return functools.reduce(k.and_, conditions)

    def _bytes_of_rows(self, k: KernelBuilder, problem: RecordValue) -> Value:
        return k.mul(k.mul(problem["batches"], problem["m"]), row_pitch(k, problem["k"], self._element_bytes))

    def _run_copied(self, k: KernelBuilder, problem: RecordValue) -> None:
        if not self._can_copy_rows:
            return
        scratch = acquire_scratch(k, self._bytes_of_rows(k, problem))
        pitch = row_pitch(k, problem["k"], self._element_bytes)
        problem.set(tile_a=scratch.memory, tile_a_row=pitch)
        function = k.function_pointer(f"{self._prefix}_copy_window_rows")
        grain = ceil_div(k, k.const(I64, PACKED_CHUNK), problem["k"])
        k.call(k.parameters["parallel"], [function, problem.place, k.mul(problem["batches"], problem["m"]), grain])
        product = problem.copy()
        product.set(
            a=scratch.memory,
            a_batch=k.mul(problem["m"], pitch),
            a_row=pitch,
            a_step=self._element_bytes,
        )
        even = k.smax(ceil_div(k, problem["n"], _EVEN_BLOCKS), self._shape.columns)
        self._run_unpacked(k, product, k.smin(even, BLOCK_COLUMNS // 2))
        release_scratch(k, scratch)
