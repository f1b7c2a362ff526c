"""Matrix products: C[m, n] (+)= sum over k of A[m, k] B[k, n], for a batch of matrices with any strides.

    void gemm_f32_run(parallel, a, b, c, sizes, epilogue, epilogue_args)
    void gemm_f32_low(parallel, a, b, c, sizes, epilogue, epilogue_args)

The latter knows ways that suit few rows or columns, too; it is for them, and for who does not know how many there are.
`parallel` is the thread pool's function; `sizes` holds the numbers of `SIZES`, with strides in elements. If there is an
`epilogue`, it is called for each block of C once that is finished and while it is in cache, possibly from several
threads at once; the blocks cover C without overlap:

    void epilogue(args, block, batch, row, rows, column, columns, values, pitch)

`block` is where C[batch, row, column] is. Its values are there, or in a buffer, from which the epilogue brings them
to C: at `values`, rows `pitch` bytes apart, with columns as in C, or side by side if that is a buffer. Only rows of a
convolution that are summed a second time are seen a second time, as they are then.

For convolutions, where A is what `gemm_windows` describes (not for complex numbers):

    void gemm_f32_windows(parallel, a, b, c, sizes, epilogue, epilogue_args, windows)

How a product is computed:

    panel      a part of A, B and C that is packed at once, if packing pays: strips of A and of B, in shared scratch
    block      a part of the panel's C, the unit of work of a thread
    piece      a part of K, if that is long beside few elements of C (`gemm_pieces`)
    chunk      a stretch of K, so that A's part of a block stays in the second-level cache while strips of B go by
    tile       what the registers hold (`gemm_tile`)

Operands are described to tiles by strides, so that "packed" and "where it lies" are the same code. Packing pays only
where A is unsuited to be read in place: the tiles at the top of a block copy a large B for those below while they
compute, and rows of A that crowd the near caches, or lie side by side at each step, are copied by each block for
itself. With vectors of less than a cache line it pays for all large products: a tile has half as many columns then, and
A is read twice as often. All splits depend on the sizes alone; each element of C is summed in one order, whatever the
number of threads.

These are three libraries, so that a program waits, and loads, only what it calls: products of many rows, those of few
(`gemm_f32_low`), and convolutions (`gemm_f32_windows`). The latter two call functions of the first. What the matrix
unit computes in planes calls those of plain f32 where elements do not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from xlapy.codegen.ir import I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.gemm_blocks import TABLES_OF_TILES
from xlapy.codegen.libraries.gemm_copied import LEAST_COPIED_POSITIONS
from xlapy.codegen.libraries.gemm_magnitudes import emit_magnitudes, fit_planes, side_of
from xlapy.codegen.libraries.gemm_plane_costs import suit_plane_gradient, suit_plane_regions, suit_planes
from xlapy.codegen.libraries.gemm_problem import PROBLEM, RANGE, SHARED_FUNCTIONS, SIZES, transpose
from xlapy.codegen.libraries.gemm_record import RecordValue
from xlapy.codegen.libraries.gemm_types import GEMM_TYPES, LIBRARY_TYPES, UNIT_TYPES, GemmType, unit_name
from xlapy.codegen.libraries.gemm_unit_parts import GemmUnitParts
from xlapy.codegen.libraries.gemm_vector import DOT_ROWS
from xlapy.codegen.libraries.gemm_windows import WINDOW_NUMBERS, has_windows
from xlapy.codegen.target import Target
from xlapy.hlo.matrix_products import LEVELS

_RUN = [("parallel", PTR), ("a", PTR), ("b", PTR), ("c", PTR), ("sizes", PTR), ("epilogue", PTR), ("args", PTR)]
_WINDOWS = [*_RUN, ("windows", PTR)]


def emit_gemm(kind: GemmType, target: Target) -> Module:
    """Products of many rows and columns, and what all products share."""
    module = Module.of(target)
    emitter = _GemmEmitter(module, kind.on(target), target)
    if kind.planes > 1:
        emitter.magnitudes("run")
    emitter.tiles()
    emitter.packing()
    emitter.copy_out()
    emitter.finish()
    emitter.block()
    emitter.blocks()
    emitter.pack_strips()
    emitter.alone()
    emitter.matrix()
    emitter.parts()
    emitter.matrices()
    if not kind.unit:
        emitter.small()
    emitter.multiply()
    emitter.add_pieces()
    if kind.unit:
        emitter.unit_parts()
    emitter.run()
    return module


def emit_low(kind: GemmType, target: Target) -> Module:
    """Products of few rows or columns."""
    module = Module.of(target)
    emitter = _GemmEmitter(module, kind.on(target), target)
    emitter.declare_shared()
    if emitter.has_wide_tiles:
        emitter.wide_tiles()
    emitter.streams()
    emitter.dots()
    emitter.multiply_low()
    emitter.low()
    return module


def emit_windows(kind: GemmType, target: Target) -> Module:
    """Convolutions."""
    module = Module.of(target)
    emitter = _GemmEmitter(module, kind.on(target), target)
    emitter.declare_shared()
    if kind.planes > 1:
        emitter.magnitudes("windows")
        emitter.unit_regions()
        emitter.alone()
        emitter.unit_columns()
        emitter.plane_gradient()
        emitter.windows_in_planes()
        return module
    if not kind.unit:
        emitter.declare_tiles()
    if emitter.has_wide_tiles:
        emitter.wide_tiles(LEAST_COPIED_POSITIONS)
    emitter.window_packing()
    if kind.unit:
        emitter.unit_regions()
    emitter.direct()
    emitter.unfolded()
    emitter.copied()
    emitter.gradient()
    emitter.windows()
    return module


def _library(kind: GemmType) -> Library:
    name = f"gemm_{kind.name}"
    shared = [*SHARED_FUNCTIONS]
    if has_windows(kind) and not kind.unit:
        shared += [*TABLES_OF_TILES, "transpose"]
    if kind.planes > 1:
        shared.append("pack_b")
    exports = (f"{name}_run", *(f"{name}_{function}" for function in shared))
    emit, reduces_strength = partial(emit_gemm, kind), not _has_its_addresses(kind)
    needs = ("scratch", f"gemm_{kind.plain_name}") if kind.planes > 1 else ("scratch",)
    return Library(name, exports, emit, reduces_strength=reduces_strength, needs=needs, most_parts=4)


def _has_its_addresses(kind: GemmType) -> bool:
    """Whether LLVM had better leave the addresses in tiles as they are written: of f32 and f64 it keeps more than there
    are registers for (large products up to 1.06 times as fast without, and a fifth less time to make the library). Of
    others it finds better ones (s8 and bf16 up to 1.4 times as fast with)."""
    return kind.accumulator.is_float and kind.parts == 1 and kind.is_packed_in_memory


def _part(
    kind: GemmType, part: str, emit: Callable[[GemmType, Target], Module], *, reduces_strength: bool = True
) -> Library:
    """A library with one function, which builds on that of products of many rows."""
    library = f"gemm_{kind.name}"
    name, plain = f"{library}_{part}", f"gemm_{kind.plain_name}_{part}"
    needs = ("scratch", library, plain) if kind.planes > 1 else ("scratch", library)
    return Library(name, (name,), partial(emit, kind), reduces_strength=reduces_strength, needs=needs, most_parts=4)


GEMM_LIBRARIES = {name: _library(kind) for name, kind in LIBRARY_TYPES.items()}
"""By the element type of the operands; "bf16_f32" and the like leave the sums as they are, and "amx_s8" and the like
are for the matrix unit."""

LOW_GEMM_LIBRARIES = {name: _part(kind, "low", emit_low) for name, kind in GEMM_TYPES.items()}
WINDOW_GEMM_LIBRARIES = {
    name: _part(kind, "windows", emit_windows, reduces_strength=not _has_its_addresses(kind))
    for name, kind in LIBRARY_TYPES.items()
    if has_windows(kind) or kind.planes > 1
}

LOW_ROWS = 9
LOW_ROWS_ALONG_K = 16
"""Products with so many rows or columns, or fewer, may be computed in ways for them: as dot products, by adding up
rows of B, or by tiles that are wider. (No target has more rows in tiles that are wider than usual.) More, if the other
side lies along K, only as dot products."""


_INPUT_FEATURES = f"step_count{LEVELS - 1}"
"""Of the input of a convolution."""

_LEAST_UNIT_STEPS = 16
"""With fewer along K the matrix unit multiplies zeros most of the time, and packing takes longer than that."""


def product_function(kind: str, sizes: Mapping[str, int]) -> tuple[str, str]:
    """The library and its function that compute products of this type and these sizes."""
    library = f"gemm_{kind}"
    few, step = (sizes["m"], sizes["b_step"]) if sizes["m"] <= sizes["n"] else (sizes["n"], sizes["a_step"])
    is_low = few <= LOW_ROWS or (few <= LOW_ROWS_ALONG_K and step == 1)
    if is_low and kind in LOW_GEMM_LIBRARIES:
        return f"{library}_low", f"{library}_low"
    return library, f"{library}_run"


def kind_on(
    kind: str,
    target: Target,
    sizes: Mapping[str, int],
    windows: Mapping[str, int] | None = None,
    *,
    is_precise: bool,
    is_part: bool = False,
) -> str:
    """The type of products as which this machine computes one of these sizes: another one for the matrix unit. That
    takes subnormal numbers for zero, so floats whose product `is_precise` are none of its; nor are convolutions whose
    features are few, or not side by side. Of a product that `is_part` of one, the right side would be looked at once
    for each part to see whether it can be multiplied in planes."""
    unit = unit_name(kind, target)
    if unit is not None and UNIT_TYPES[unit].planes > 1:
        if windows is None:
            is_suited = suit_planes(sizes) and not is_part
        else:
            is_suited = suit_plane_regions(sizes, windows, target.l2_bytes) or suit_plane_gradient(sizes, windows)
    elif windows is None:
        is_suited = min(sizes["m"], sizes["n"]) > DOT_ROWS and sizes["k"] >= _LEAST_UNIT_STEPS
    else:
        has_pieces = not (windows["follows_rows"] or windows["has_few"])
        is_suited = has_pieces and windows[_INPUT_FEATURES] >= _LEAST_UNIT_STEPS
    keeps_subnormals = is_precise and GEMM_TYPES[kind].accumulator.is_float
    return unit if unit and is_suited and not keeps_subnormals else kind


def is_turned_round(sizes: Mapping[str, int]) -> bool:
    """Whether a product of several columns is computed as that of the transposes, since C is stored by columns."""
    return sizes["m"] > 1 and sizes["c_row"] == 1 and sizes["c_column"] != 1


class _GemmEmitter(GemmUnitParts):
    """Writes the entries of the library."""

    def magnitudes(self, function: str) -> None:
        """What tells whether elements are sums of planes, and the function to call if not."""
        emit_magnitudes(self._module, self._prefix, self._attributes)
        parameters = _RUN if function == "run" else _WINDOWS
        self._module.declare(self._plain(function), None, [type for _, type in parameters])

    def run(self) -> None:
        with self._function("run", _RUN, linkage="") as k:
            problem = PROBLEM.new(k)
            self._read_call(k, problem)
            if self._kind.unit:
                with k.if_(self._suits_unit_parts(k, problem)):
                    self._run_unit_parts(k, problem)
                    k.ret()
            if self._kind.planes > 1:
                self._run_plain_unless_fit(k, problem)
            self._run_all(k, problem, f"{self._prefix}_multiply")

    def _run_plain_unless_fit(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Leaves a product whose elements are no sums of planes to the processor."""
        sides = {side: side_of(k, problem, side) for side in "ab"}
        fit = fit_planes(k, self._prefix, k.parameters["parallel"], sides)
        fit = k.and_(fit, k.compare("eq", problem["accumulate"], 0))
        self._call_plain_unless(k, fit, "run")

    def _call_plain_unless(self, k: KernelBuilder, fit: Value, function: str) -> None:
        with k.if_(k.not_(fit)):
            k.call(self._plain(function), list(k.parameters.values()))
            k.ret()

    def windows_in_planes(self) -> None:
        """Convolutions in planes."""
        with self._function("windows", _WINDOWS, linkage="") as k:
            problem = PROBLEM.new(k)
            self._read_call(k, problem)
            problem["windows"] = windows = k.parameters["windows"]
            is_gradient = k.compare("ne", self._window_number(k, problem, "is_gradient"), 0)
            with k.if_(self._suits_unit_columns(k, problem)):
                self._run_unit_columns(k, problem)
                k.ret()
            problem["windows"] = k.select(is_gradient, self._exchanged(k, windows), windows)
            self._call_plain_unless(k, self._windows_fit_planes(k, problem), "windows")
            k.if_else(
                is_gradient,
                lambda: self._run_gradient_in_planes(k, problem),
                lambda: self._run_unit_regions(k, problem),
            )

    def low(self) -> None:
        with self._function("low", _RUN, linkage="") as k:
            problem = PROBLEM.new(k)
            self._read_call(k, problem)
            self._offer_wide_tiles(k, problem)
            self._run_all(k, problem, f"{self._prefix}_multiply_low")

    def _run_all(self, k: KernelBuilder, problem: RecordValue, multiply: str) -> None:
        """The product as it was described, as a whole or in pieces, by the function `multiply`."""
        with k.if_(k.compare("le", k.smin(k.smin(problem["batches"], problem["m"]), problem["n"]), 0)):
            k.ret()
        scattered = k.compare("ne", problem["c_column"], self._c_bytes)
        problem["uses_scratch"] = k.zext(scattered, I64) if self._kind.accumulates_in_result else 1
        steps = self._steps_of_piece(k, problem)
        k.if_else(
            k.compare("lt", steps, problem["k"]),
            lambda: self._run_pieces(k, problem, steps, multiply),
            lambda: k.call(multiply, [k.parameters["parallel"], problem.place]),
        )

    def multiply(self) -> None:
        """A batch of products, in the way that suits the sizes."""
        with self._function("multiply", [("parallel", PTR), ("problem", PTR)]) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            problem["n"] = k.mul(problem["n"], self._kind.parts)
            self._turn_if_columns_are_far(k, problem)
            if not self._kind.unit:
                with k.if_(self._has_small_matrices(k, problem)):
                    self._run_small(k, problem)
                    k.ret()
            if self._kind.is_packed_in_memory:
                with k.if_(self._stays_unpacked(k, problem)):
                    self._run_unpacked(k, problem)
                    k.ret()
            self._run_packed(k, problem)

    def multiply_low(self) -> None:
        """A batch of products, the ways that suit few rows included."""
        with self._function("multiply_low", [("parallel", PTR), ("problem", PTR)]) as k:
            problem = PROBLEM.at(k, k.parameters["problem"])
            self._run_dots_if_suited(k, problem)
            columns = problem["n"]
            problem["n"] = k.mul(columns, self._kind.parts)
            self._run_streams_if_suited(k, problem)
            problem["n"] = columns
            k.call(f"{self._prefix}_multiply", [k.parameters["parallel"], problem.place])

    def _offer_wide_tiles(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Lets few rows be multiplied with the wider tiles of this module."""
        if self.has_wide_tiles:
            problem["wide_tiles"] = k.function_pointer(f"{self._prefix}_wide_tiles")

    @property
    def has_wide_tiles(self) -> bool:
        """Whether tiles wider than usual are of use: they read B where it lies."""
        return self._kind.is_packed_in_memory

    def windows(self) -> None:
        """Convolutions, with C by rows: B is packed, and A too unless its rows are read from copied regions; or A is
        copied, and B read where it is."""
        with self._function("windows", _WINDOWS, linkage="", is_glue=True) as k:
            problem = PROBLEM.new(k)
            self._read_call(k, problem)
            problem.set(
                windows=k.parameters["windows"],
                pack_windows=k.function_pointer(f"{self._prefix}_pack_windows"),
                uses_scratch=0 if self._kind.accumulates_in_result else 1,
                copies=1,  # until B is packed for all
            )
            self._offer_wide_tiles(k, problem)
            flag = self._watch_for_special(k, problem) if self._sums_again else None
            if self._kind.unit:
                k.if_else(
                    self._suits_unit_regions(k, problem),
                    lambda: self._run_unit_regions(k, problem),
                    lambda: self._run_windows(k, problem),
                )
            else:
                self._run_windows(k, problem)
            if flag is not None:
                self._sum_again_if_needed(k, problem, flag)
        if self._sums_again:
            self._sum_rows()

    def _run_windows(self, k: KernelBuilder, problem: RecordValue) -> None:
        """In the way that suits the sizes."""
        is_free = k.not_(self._prefers_direct(k, problem))

        def direct_or_packed() -> None:
            k.if_else(
                self._is_direct(k, problem),
                lambda: self._run_direct(k, problem),
                lambda: self._run_packed(k, problem),
            )

        def unless_copied() -> None:
            is_copied = k.and_(self._is_copied(k, problem), is_free)
            k.if_else(is_copied, lambda: self._run_copied(k, problem), direct_or_packed)

        def unless_unfolded() -> None:
            is_unfolded = k.and_(self._is_unfolded(k, problem), is_free)
            k.if_else(is_unfolded, lambda: self._run_unfolded(k, problem), unless_copied)

        k.if_else(self._is_direct_gradient(k, problem), lambda: self._run_gradient(k, problem), unless_unfolded)

    def _watch_for_special(self, k: KernelBuilder, problem: RecordValue) -> Value:
        """The flag that tells whether a convolution must be summed again; nobody raises it if nothing lies outside."""
        flag = k.alloca(I64)
        k.store(flag, k.const(I64, 0))
        reaches_outside = k.load(k.gep(problem["windows"], WINDOW_NUMBERS.index("reaches_outside"), 8), I64)
        problem["suspect"] = k.select(k.compare("ne", reaches_outside, 0), flag, k.const(PTR, 0))
        return flag

    def _sum_again_if_needed(self, k: KernelBuilder, problem: RecordValue, flag: Value) -> None:
        """Leaves out what lies outside of the array, should B not be finite. Any row of C tells whether that may be."""
        kind = self._kind
        with k.if_(k.compare("ne", k.load(flag, I64), 0)), k.loop(0, problem["batches"]) as batch:
            b = k.gep(problem["b"], k.mul(batch.index, problem["b_batch"]))
            is_special = self._has_special(k, b, kind.element, problem["k"], problem["b_step"], problem["n"])
            with k.if_(k.compare("ne", is_special, 0)):
                again = problem.copy()
                again["batch"] = batch.index
                rows = k.function_pointer(f"{self._prefix}_sum_rows")
                k.call(k.parameters["parallel"], [rows, again.place, problem["m"], k.const(I64, 1)])

    def _sum_rows(self) -> None:
        """A range of rows of one matrix."""
        with (
            self._function("sum_rows", RANGE, is_glue=True) as k,
            k.loop(k.parameters["begin"], k.parameters["end"]) as row,
        ):
            problem = PROBLEM.at(k, k.parameters["problem"])
            batch = problem["batch"]
            a, b, c = (k.gep(problem[name], k.mul(batch, problem[f"{name}_batch"])) for name in "abc")
            c = k.gep(c, k.mul(row.index, problem["c_row"]))
            steps = [k.const(I64, 0), problem["k"]]
            arguments = [problem["windows"], a, row.index, *steps, b, problem["b_step"], problem["n"], c]
            k.call(f"{self._prefix}_sum_row", arguments)
            one_row = [row.index, k.const(I64, 1), k.const(I64, 0), problem["n"]]
            self._run_epilogue(k, problem, [c, batch, *one_row], [c, problem["c_row"], problem["c_column"]])

    def _read_call(self, k: KernelBuilder, problem: RecordValue) -> None:
        """Fills in the problem, in bytes and reals, with C by rows if that can be had by transposing."""
        given = k.parameters
        for index, name in enumerate(SIZES):
            number = k.load(k.gep(given["sizes"], index, 8), I64)
            if name.startswith(("a_", "b_")):
                number = k.mul(number, self._element_bytes)
            elif name.startswith("c_"):
                number = k.mul(number, self._c_bytes)
            problem[name] = number
        problem.set(
            a=given["a"],
            b=given["b"],
            c=given["c"],
            missing_steps=0,
            panel_steps=self._most_panel_steps,
            is_transposed=0,
            windows=k.const(PTR, 0),
            pack_windows=k.const(PTR, 0),
            is_broad=0,
            wide_tiles=k.const(PTR, 0),
            suspect=k.const(PTR, 0),
            epilogue=given["epilogue"],
            epilogue_args=given["args"],
        )
        is_column_of_c = k.compare("eq", problem["c_row"], self._c_bytes)
        is_single = k.compare("eq", problem["n"], 1)
        unsuited = k.or_(k.compare("ne", problem["c_column"], self._c_bytes), is_single)
        with k.if_(k.and_(k.compare("gt", problem["m"], 1), k.and_(is_column_of_c, unsuited))):
            transpose(k, problem)
        # The stride of a single column means nothing; that of a row is the good one.
        is_single = k.compare("eq", problem["n"], 1)
        problem["b_column"] = k.select(is_single, self._element_bytes, problem["b_column"])
        problem["c_column"] = k.select(is_single, self._c_bytes, problem["c_column"])
