"""The IR builder: what it writes, and that LLVM runs it as Python and numpy would."""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Set

import numpy as np
import pytest

from tests.support.irlab import HAS_FMA, NATIVE_FEATURES, Compiled
from tests.support.work import assert_linear, lines_run
from xlapy.codegen.ir import (
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    NO_SCALES,
    PTR,
    X86_SCALES,
    IRType,
    KernelBuilder,
    Module,
    Value,
)
from xlapy.codegen.jit import emit_assembly
from xlapy.codegen.target import host_target, reference_target
from xlapy_runtime.errors import InternalError


def kernel_text(write: Callable[[KernelBuilder], None], parameters: str = "x y n", *, has_fma: bool = HAS_FMA) -> str:
    """The module with one kernel `f`; parameters are pointers, except those named i..n."""
    module = Module(has_fma=has_fma)
    typed = [(name, I64 if name[0] in "ijklmn" else PTR) for name in parameters.split()]
    with KernelBuilder(module, "f", typed, None) as k:
        write(k)
    return module.text()


def blocks(text: str) -> dict[str, list[str]]:
    """Instructions of the only function by block label."""
    result: dict[str, list[str]] = {}
    body = text[text.index("{\n") + 2 : text.index("\n}")]
    label = ""
    for line in body.splitlines():
        if line.endswith(":"):
            label = line[:-1]
            result[label] = []
        elif line.strip():
            result[label].append(line.strip())
    return result


def run_elementwise(
    write: Callable[[KernelBuilder, Value], Value], x: np.ndarray, type: IRType, out: IRType | None = None
) -> np.ndarray:
    """Applies a function of one vector to an array that is a multiple of its lanes."""
    out = out or type
    stored = out.with_kind("i8") if out.kind == "i1" else out

    def body(k: KernelBuilder) -> None:
        with k.loop(0, x.size, type.lanes) as loop:
            value = write(k, k.load(k.gep(k.parameters["x"], loop.index, type.bytes), type))
            if out.kind == "i1":
                value = k.zext(value, I8)
            k.store(k.gep(k.parameters["y"], loop.index, stored.bytes), value)

    names = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
    y = np.zeros(x.size, names[stored.kind])
    Compiled(kernel_text(body, "x y")).call("f", x, y)
    return y


class TestTypesAndConstants:
    def test_spelling(self) -> None:
        assert IRType("f32", 8).text == "<8 x float>"
        assert IRType("f64", 4).suffix == "v4f64"
        assert PTR.with_lanes(4).text == "<4 x ptr>"
        assert IRType("f32", 8).integer() == IRType("i32", 8)
        assert (I1.bits, I1.bytes, F64.bits) == (1, 1, 64)

    def test_unknown_kind_is_refused(self) -> None:
        with pytest.raises(InternalError):
            IRType("f16")

    @pytest.mark.parametrize(
        ("type", "number", "text"),
        [
            (F32, 0.1, "0x3FB99999A0000000"),
            (F64, 0.1, "0x3FB999999999999A"),
            (F32, -0.0, "0x8000000000000000"),
            (F32, 1e60, "0x7FF0000000000000"),
            (F64, math.nan, "0x7FF8000000000000"),
            (I8, 255, "-1"),
            (I1, 3, "true"),
            (IRType("i32", 4), 7, "splat (i32 7)"),
            (IRType("f32", 4), 0.0, "splat (float 0x0000000000000000)"),
        ],
    )
    def test_literals(self, type: IRType, number: float, text: str) -> None:
        module = Module()
        assert KernelBuilder(module, "f", [], None).const(type, number).text == text

    def test_zeros_of_both_signs_are_different_constants(self) -> None:
        k = KernelBuilder(Module(), "f", [], None)
        assert k.const(F32, 0.0).text != k.const(F32, -0.0).text


class TestFolding:
    def setup_method(self) -> None:
        self.k = KernelBuilder(Module(has_fma=True), "f", [("n", I64), ("x", F32)], None)
        self.n = self.k.parameters["n"]
        self.x = self.k.parameters["x"]

    def test_integer_trivia(self) -> None:
        k, n = self.k, self.n
        for same in (k.add(n, 0), k.sub(n, 0), k.mul(1, n), k.shl(n, 0), k.and_(n, -1), k.or_(0, n), k.sdiv(n, 1)):
            assert same is n
        assert k.mul(n, 0).constant == k.sub(n, n).constant == k.and_(n, 0).constant == 0

    def test_integers_wrap(self) -> None:
        k = self.k
        assert k.add(k.const(I8, 127), 1).constant == -128
        assert k.lshr(k.const(I32, -1), 28).constant == 15
        assert k.ashr(k.const(I32, -16), 2).constant == -4
        assert k.sdiv(k.const(I32, -7), 2).constant == -3
        assert k.srem(k.const(I32, -7), 2).constant == -1
        assert k.udiv(k.const(I8, -1), 2).constant == 127
        assert k.compare("lt", k.const(I8, -1), 1, signed=False).constant == 0

    def test_floats_fold_only_when_exact(self) -> None:
        k = self.k
        tenth = k.const(F32, 0.1)
        assert k.add(tenth, tenth).constant == float(np.float32(0.1) + np.float32(0.1))
        assert k.mul(k.const(F32, 1e30), 1e30).constant == math.inf
        assert k.sub(k.const(F32, math.inf), math.inf).constant is None
        assert k.add(self.x, 0.0).text != self.x.text

    def test_conversions(self) -> None:
        k = self.k
        assert k.sext(k.const(I1, 1), I32).constant == -1
        assert k.zext(k.const(I8, -1), I32).constant == 255
        assert k.bitcast(k.const(F32, 1.0), I32).constant == 0x3F800000
        assert k.bitcast(k.const(I64, 0x3FF0000000000000), F64).constant == 1.0
        assert k.fptosi(k.const(F32, -2.5), I32).constant == -2

    def test_wrong_types_are_refused(self) -> None:
        with pytest.raises(InternalError):
            self.k.add(self.n, self.x)
        with pytest.raises(InternalError):
            self.k.add(1, 2)
        with pytest.raises(InternalError):
            self.k.and_(self.x, 1)


class TestSharingAndHoisting:
    def test_equal_operations_are_written_once(self) -> None:
        def write(k: KernelBuilder) -> None:
            n = k.parameters["n"]
            k.store(k.parameters["x"], k.mul(k.add(n, 5), k.add(5, n)))

        assert kernel_text(write).count("add i64") == 1

    def test_invariants_move_in_front_of_the_outermost_loop(self) -> None:
        def write(k: KernelBuilder) -> None:
            n = k.parameters["n"]
            with k.loop(0, n) as outer, k.loop(0, n) as inner:
                k.store(k.parameters["x"], k.add(k.add(k.mul(n, n), k.mul(outer.index, 3)), inner.index))

        text = blocks(kernel_text(write))
        outer, inner = (label for label in text if label.startswith("loop"))
        assert any("mul i64 %n, %n" in line for line in text["entry"])
        assert any("mul i64" in line and ", 3" in line for line in text[outer])
        assert not any("mul" in line for line in text[inner])

    def test_nothing_leaves_a_branch(self) -> None:
        def write(k: KernelBuilder) -> None:
            n = k.parameters["n"]
            with k.loop(0, n) as loop, k.if_(k.compare("gt", loop.index, 2)), k.loop(0, n):
                k.store(k.parameters["x"], k.mul(n, n))

        text = blocks(kernel_text(write))
        arm = next(label for label in text if label.startswith("then"))
        assert any("mul i64 %n, %n" in line for line in text[arm])

    def test_a_division_by_a_variable_stays(self) -> None:
        def write(k: KernelBuilder) -> None:
            n = k.parameters["n"]
            with k.loop(0, n):
                k.store(k.parameters["x"], k.add(k.sdiv(7, n), k.sdiv(n, 7)))

        text = blocks(kernel_text(write))
        assert any("sdiv i64 %n, 7" in line for line in text["entry"])
        assert not any("sdiv i64 7, %n" in line for line in text["entry"])

    def test_a_value_may_not_leave_its_loop(self) -> None:
        k = KernelBuilder(Module(), "f", [("n", I64)], None)
        with k.loop(0, k.parameters["n"]) as loop:
            pass
        with pytest.raises(InternalError, match="outside"):
            k.add(loop.index, 1)

    def test_the_text_is_deterministic(self) -> None:
        def write(k: KernelBuilder) -> None:
            with k.loop(0, k.parameters["n"], 8) as loop:
                vector = k.load(k.gep(k.parameters["x"], loop.index, 4), F32.with_lanes(8), alias="in")
                k.store(k.gep(k.parameters["y"], loop.index, 4), k.sqrt(vector), alias="out")

        assert kernel_text(write) == kernel_text(write)


class TestArithmetic:
    integers = np.array([0, 1, -1, 7, -7, 100, -128, 127], np.int32)

    @pytest.mark.parametrize("lanes", [1, 4, 8])
    @pytest.mark.parametrize(
        ("name", "reference"),
        [
            ("add", operator.add),
            ("sub", operator.sub),
            ("mul", operator.mul),
            ("and_", operator.and_),
            ("or_", operator.or_),
            ("xor", operator.xor),
            ("smin", np.minimum),
            ("smax", np.maximum),
        ],
    )
    def test_integers(self, name: str, reference: Callable[..., np.ndarray], lanes: int) -> None:
        x = self.integers
        got = run_elementwise(lambda k, v: getattr(k, name)(v, 13), x, I32.with_lanes(lanes))
        np.testing.assert_array_equal(got, reference(x, np.int32(13)))

    def test_shifts_and_bits(self) -> None:
        x = self.integers
        t = I32.with_lanes(8)
        np.testing.assert_array_equal(run_elementwise(lambda k, v: k.shl(v, 3), x, t), x << 3)
        np.testing.assert_array_equal(run_elementwise(lambda k, v: k.ashr(v, 3), x, t), x >> 3)
        np.testing.assert_array_equal(run_elementwise(lambda k, v: k.lshr(v, 3), x, t), x.view(np.uint32) >> 3)
        popcounts = [int(number).bit_count() for number in x.view(np.uint32)]
        np.testing.assert_array_equal(run_elementwise(lambda k, v: k.ctpop(v), x, t), popcounts)
        zeros = [32 - int(number).bit_length() for number in x.view(np.uint32)]
        np.testing.assert_array_equal(run_elementwise(lambda k, v: k.ctlz(v), x, t), zeros)
        np.testing.assert_array_equal(run_elementwise(lambda k, v: k.neg(k.not_(v)), x, t), x + 1)

    floats = np.array([0.0, -0.0, 1.5, -2.5, 3.5, np.inf, -np.inf, np.nan], np.float32)

    @pytest.mark.parametrize("predicate", ["eq", "ne", "lt", "le", "gt", "ge"])
    def test_float_comparisons(self, predicate: str) -> None:
        t = F32.with_lanes(8)
        got = run_elementwise(lambda k, v: k.compare(predicate, v, 0.0), self.floats, t, I1.with_lanes(8))
        np.testing.assert_array_equal(got.astype(bool), getattr(operator, predicate)(self.floats, np.float32(0)))

    @pytest.mark.parametrize(
        ("name", "reference"),
        [
            ("sqrt", np.sqrt),
            ("fabs", np.abs),
            ("floor", np.floor),
            ("ceil", np.ceil),
            ("truncate", np.trunc),
            ("roundeven", np.rint),
            ("neg", np.negative),
            ("is_nan", np.isnan),
        ],
    )
    def test_float_functions(self, name: str, reference: Callable[..., np.ndarray]) -> None:
        t = F32.with_lanes(8)
        out = I1.with_lanes(8) if name == "is_nan" else t
        with np.errstate(invalid="ignore"):
            expected = reference(self.floats)
        np.testing.assert_array_equal(run_elementwise(lambda k, v: getattr(k, name)(v), self.floats, t, out), expected)

    @pytest.mark.parametrize(
        ("name", "reference"),
        [("minimum", np.minimum), ("maximum", np.maximum)],
    )
    @pytest.mark.parametrize("other", [1.0, math.nan])
    def test_extrema(self, name: str, reference: Callable[..., np.ndarray], other: float) -> None:
        got = run_elementwise(lambda k, v: getattr(k, name)(v, other), self.floats, F32.with_lanes(8))
        np.testing.assert_array_equal(got, reference(self.floats, np.float32(other)))

    @pytest.mark.parametrize("has_fma", [True, False])
    def test_fma_rounds_once_on_every_target(self, has_fma: bool) -> None:
        x = np.array([1 + 2.0**-12] * 8, np.float32)

        def write(k: KernelBuilder) -> None:
            v = k.load(k.parameters["x"], F32.with_lanes(8))
            k.store(k.parameters["y"], k.fma(v, v, -1.0))

        y = np.zeros(8, np.float32)
        features = NATIVE_FEATURES if has_fma else "-fma,-fma4,-avx512f"
        Compiled(kernel_text(write, "x y", has_fma=has_fma), features=features).call("f", x, y)
        assert y[0] == np.float32(float(x[0]) * float(x[0]) - 1.0)

    def test_muladd_rounds_twice_without_fma(self) -> None:
        text = kernel_text(
            lambda k: k.store(k.parameters["x"], k.muladd(k.load(k.parameters["x"], F32), 3.0, 1.0)), has_fma=False
        )
        assert "llvm.fma" not in text

    def test_conversions(self) -> None:
        x = np.array([0.0, 1.9, -1.9, 100.0, -128.0, 3.0, 4.0, 5.0], np.float32)
        t = F32.with_lanes(8)
        np.testing.assert_array_equal(
            run_elementwise(lambda k, v: k.fptosi(v, I32), x, t, I32.with_lanes(8)), x.astype(np.int32)
        )
        np.testing.assert_array_equal(
            run_elementwise(lambda k, v: k.fptrunc(k.div(k.fpext(v, F64), 3.0), F32), x, t),
            (x.astype(np.float64) / 3).astype(np.float32),
        )
        i = self.integers
        t = I32.with_lanes(8)
        np.testing.assert_array_equal(run_elementwise(lambda k, v: k.sitofp(v, F64), i, t, F64.with_lanes(8)), i)
        np.testing.assert_array_equal(
            run_elementwise(lambda k, v: k.uitofp(v, F64), i, t, F64.with_lanes(8)), i.view(np.uint32)
        )
        np.testing.assert_array_equal(
            run_elementwise(lambda k, v: k.sext(k.trunc(v, I8), I64), i, t, I64.with_lanes(8)), i.astype(np.int8)
        )

    @pytest.mark.parametrize("lanes", [1, 2, 5, 8, 12])
    def test_horizontal(self, lanes: int) -> None:
        x = np.arange(1.0, lanes + 1).astype(np.float32)

        def write(k: KernelBuilder) -> None:
            value = k.load(k.parameters["x"], F32.with_lanes(lanes))
            k.store(k.parameters["y"], k.horizontal(k.add, value))
            k.store(k.gep(k.parameters["y"], 1, 4), k.horizontal(k.greater, value))

        y = np.zeros(2, np.float32)
        Compiled(kernel_text(write, "x y")).call("f", x, y)
        assert y.tolist() == [x.sum(), lanes]

    def test_lanes(self) -> None:
        def write(k: KernelBuilder) -> None:
            value = k.load(k.parameters["x"], I32.with_lanes(4))
            mixed = k.shuffle(value, k.lane_numbers(I32.with_lanes(4)), [0, 5, 2, 7])
            k.store(k.parameters["y"], k.insert(mixed, k.extract(value, 3), 0))

        y = np.zeros(4, np.int32)
        Compiled(kernel_text(write, "x y")).call("f", np.array([10, 20, 30, 40], np.int32), y)
        assert y.tolist() == [40, 1, 30, 3]


class TestMemory:
    def test_masks_gathers_and_scatters(self) -> None:
        def write(k: KernelBuilder) -> None:
            x, y = k.parameters["x"], k.parameters["y"]
            t = F32.with_lanes(8)
            lanes = k.lane_numbers(I64.with_lanes(8))
            mask = k.compare("lt", lanes, 5)
            k.masked_store(y, k.masked_load(x, t, mask, -1.0), mask)
            k.store(k.gep(y, 8, 4), k.gather(x, k.sub(7, lanes), F32, mask, 9.0))
            k.scatter(y, k.add(k.mul(lanes, 2), 16), k.load(x, t))
            k.store(k.gep(y, 32, 4), k.gather(x, k.const(I64, 99), F32, k.const(I1, 0), 5.0))
            k.store(k.gep(y, 40, 4), k.masked_load(x, t, mask, -1.0))

        x = np.arange(8, dtype=np.float32)
        y = np.full(48, 100, np.float32)
        Compiled(kernel_text(write, "x y")).call("f", x, y)
        assert y[:8].tolist() == [0, 1, 2, 3, 4, 100, 100, 100]
        assert y[8:16].tolist() == [7, 6, 5, 4, 3, 9, 9, 9]
        assert y[16:32:2].tolist() == x.tolist()
        assert y[32] == 5
        assert y[40:].tolist() == [0, 1, 2, 3, 4, -1, -1, -1]

    @pytest.mark.parametrize("element", [I8, I16], ids=["i8", "i16"])
    def test_no_lane_has_a_branch_of_its_own(self, element: IRType) -> None:
        """Those that are not wanted read nothing, wherever they point, of types that no instruction masks."""
        type = element.with_lanes(32)

        def write(k: KernelBuilder) -> None:
            x, y, places = k.parameters["x"], k.parameters["y"], k.load(k.parameters["z"], I64.with_lanes(32))
            mask = k.compare("lt", places, 64)
            k.store(y, k.gather(x, places, type, mask, 9))
            k.store(k.gep(y, 32, type.bytes), k.masked_load(x, type, mask, -1))

        text = kernel_text(write, "x y z")
        x, y = np.arange(64).astype(f"i{type.bytes}"), np.zeros(64, f"i{type.bytes}")
        places = np.where(np.arange(32) % 3, np.arange(64, 0, -2) - 1, 1 << 50)
        Compiled(text).call("f", x, y, places)
        assert y[:32].tolist() == np.where(places < 64, places, 9).tolist()
        assert y[32:].tolist() == np.where(places < 64, x[:32], -1).tolist()
        assert not re.search(r"\tj", emit_assembly(text, reference_target("avx2")))

    @pytest.mark.parametrize("lanes", [8, 16])
    @pytest.mark.parametrize("element", [I8, I16, I32], ids=["i8", "i16", "i32"])
    def test_first_lanes(self, element: IRType, lanes: int) -> None:
        """Those of types that no instruction masks go by way of the stack, in front of loops if they can."""

        def write(k: KernelBuilder) -> None:
            x, y, type = k.parameters["x"], k.parameters["y"], element.with_lanes(lanes)
            mask = k.first_lanes(k.parameters["n"], lanes)
            with k.loop(0, k.parameters["m"]) as loop:
                same = k.masked_load(x, type, mask, 7, hoistable=True)
                assert same is k.masked_load(x, type, mask, 7, hoistable=True)
                place = k.gep(y, k.mul(loop.index, 2 * lanes), type.bytes)
                k.masked_store(place, k.add(same, k.masked_load(x, type, mask, 7)), mask)
                k.store(k.gep(place, lanes, type.bytes), same)

        text = kernel_text(write, "x y n m")
        assert ("llvm.masked" in text) == (element is I32)
        written = blocks(text)
        inside = [line for label, lines in written.items() if label.startswith("loop") for line in lines]
        assert sum("llvm.memcpy" in line or "masked.load" in line for line in inside) == (1 if element is I32 else 2)
        code = Compiled(text)
        x = np.arange(1, lanes + 1).astype(f"int{element.bits}")
        for count in range(lanes + 1):
            y = np.full((3, 2, lanes), 100, x.dtype)
            code.call("f", x, y, count, 3)
            wanted = np.where(np.arange(lanes) < count, x, 7)
            assert (y[:, 0, :count] == 2 * x[:count]).all() and (y[:, 0, count:] == 100).all()
            assert (y[:, 1] == wanted).all()

    def test_alias_scopes(self) -> None:
        def write(k: KernelBuilder) -> None:
            value = k.load(k.parameters["x"], F32, alias="a")
            k.store(k.parameters["y"], value, alias="b")

        text = kernel_text(write, "x y")
        Compiled(text)
        assert "!alias.scope !0, !noalias !1" in text
        assert "!alias.scope !2, !noalias !3" in text
        assert '!5 = distinct !{!"f.a", !4}' in text
        assert "!0 = !{!5}" in text
        assert "!1 = !{!6}" in text

    def test_invariant_loads_are_shared_and_others_are_not(self) -> None:
        def write(k: KernelBuilder) -> None:
            x = k.parameters["x"]
            k.store(k.parameters["y"], k.add(k.load(x, F32, invariant=True), k.load(x, F32, invariant=True)))
            k.store(k.parameters["y"], k.add(k.load(x, F32), k.load(x, F32)))

        assert kernel_text(write, "x y").count("load float") == 3

    def test_what_is_fetched_early_is_fetched_once_where_its_place_is_known(self) -> None:
        def write(k: KernelBuilder) -> None:
            x, y = k.parameters["x"], k.parameters["y"]
            with k.loop(0, 4) as loop:
                k.prefetch(x, 64)
                for _ in range(2):
                    k.prefetch(k.gep(y, loop.index, 64), 128, level=2, for_writing=True)
                k.store(k.gep(y, loop.index, 8), loop.index)

        text = kernel_text(write, "x y")
        fetches = [line for line in text.splitlines() if "call void @llvm.prefetch" in line]
        assert len(fetches) == 3
        assert fetches[0].endswith("i32 0, i32 3, i32 1)") and fetches[1].endswith("i32 1, i32 2, i32 1)")
        y = np.zeros(4, np.int64)
        Compiled(text).call("f", y, y)
        assert y.tolist() == [0, 1, 2, 3]

    def test_an_opaque_number_stays_the_same(self) -> None:
        def write(k: KernelBuilder) -> None:
            number = k.opaque(k.mul(k.load(k.parameters["x"], I64), 3))
            k.store(k.parameters["y"], k.shl(number, 2))

        y = np.zeros(1, np.int64)
        Compiled(kernel_text(write, "x y")).call("f", np.array([7], np.int64), y)
        assert y.tolist() == [84]

    def test_stack_copies_and_atomics(self) -> None:
        def write(k: KernelBuilder) -> None:
            x, y = k.parameters["x"], k.parameters["y"]
            room = k.alloca(I64, 4)
            k.memset(room, 1, 32)
            k.memcpy(k.gep(room, 8), x, 8)
            k.memmove(y, room, 32)
            old = k.atomic_update("add", y, k.const(I64, 5))
            k.store(k.gep(y, 16), old, nontemporal=True)
            found, stored = k.compare_exchange(k.gep(y, 8), k.const(I64, 42), k.const(I64, 43))
            k.fence()
            k.atomic_store(k.gep(y, 24), k.add(k.atomic_load(x, I64), k.add(found, k.zext(stored, I64))))

        y = np.zeros(4, np.int64)
        Compiled(kernel_text(write, "x y")).call("f", np.array([42], np.int64), y)
        ones = 0x0101010101010101
        assert y.tolist() == [ones + 5, 43, ones, 42 + 42 + 1]

    def test_words_of_tables_are_wrapped_where_they_are_too_long(self) -> None:
        given = [5, -(1 << 63), (1 << 63) - 1, 1 << 63, (1 << 64) + 7, True]
        expected = [5, -(1 << 63), (1 << 63) - 1, -(1 << 63), 7, 1]
        for numbers, wrapped in ((given, expected), (given[:3], expected[:3]), (given[5:], expected[5:])):
            module = Module()
            module.table(I64, numbers)
            words = ", ".join(f"i64 {number}" for number in wrapped)
            assert f" constant [{len(wrapped)} x i64] [{words}], align 64" in module.text()

    def test_tables(self) -> None:
        def write(k: KernelBuilder) -> None:
            table = k.table(F64, [1.5, 2.5, math.inf])
            assert k.table(F64, [1.5, 2.5, math.inf]).text == table.text
            k.store(k.parameters["y"], k.gather(table, k.load(k.parameters["x"], I64), F64))

        y = np.zeros(1)
        Compiled(kernel_text(write, "x y")).call("f", np.array([2]), y)
        assert y[0] == math.inf

    @pytest.mark.parametrize("has_permute", sorted({False, host_target().has_permute}))
    @pytest.mark.parametrize("has_short_permute", sorted({False, host_target().has("avx2")}))
    @pytest.mark.parametrize("type", [F32, F64], ids=["f32", "f64"])
    def test_lookups(self, type: IRType, has_short_permute: bool, has_permute: bool) -> None:
        """Sixteen numbers in registers or in memory, for any number of lanes; of an index the low bits count."""
        numbers = [2.5 * number for number in range(16)]
        integer = type.integer()
        indices = np.random.default_rng(0).integers(-1000, 1000, 64).astype(f"i{type.bytes}")
        for lanes in (1, 2, 3, 8, 16, 24, 32, 64):
            module = Module(has_permute=has_permute, has_short_permute=has_short_permute)
            with KernelBuilder(module, "f", [("x", PTR), ("y", PTR)], None) as k:
                index = k.load(k.parameters["x"], integer.with_lanes(lanes))
                k.store(k.parameters["y"], k.lookup(type, numbers, index))
            y = np.zeros(64, f"f{type.bytes}")
            Compiled(module.text()).call("f", indices, y)
            np.testing.assert_array_equal(y[:lanes], 2.5 * (indices[:lanes] % 16))
            assert not y[lanes:].any()

    @pytest.mark.parametrize("has_masks", sorted({False, host_target().is_avx512}))
    @pytest.mark.parametrize("type", [F32, F64], ids=["f32", "f64"])
    def test_a_bit_in_any_lane_of_any_mask(self, type: IRType, has_masks: bool) -> None:
        """With bits as wide as what was compared, and without."""
        for lanes, bits in itertools.product((1, 3, 8, 32), (0, type.bits)):
            module = Module(has_masks=has_masks)
            with KernelBuilder(module, "f", [("x", PTR), ("y", PTR)], None) as k:
                x = k.load(k.parameters["x"], type.with_lanes(lanes))
                found = k.any_lane(k.compare("gt", x, 1.0), k.compare("lt", x, -1.0), bits=bits)
                k.store(k.parameters["y"], k.zext(found, I64))
            compiled = Compiled(module.text())
            for lane, number in itertools.product(range(lanes), (0.5, 2.0, -2.0)):
                x_array = np.zeros(lanes, f"f{type.bytes}")
                x_array[lane] = number
                y = np.zeros(1, np.int64)
                compiled.call("f", x_array, y)
                assert y[0] == (number != 0.5)

    @pytest.mark.parametrize("has_masks", sorted({False, host_target().is_avx512}))
    def test_masks_that_a_mask_chooses(self, has_masks: bool) -> None:
        """Masks that are as wide as what was compared stay so."""
        x = np.arange(24, dtype=np.float32)
        for lanes in (1, 3, 8, 24):
            module = Module(has_masks=has_masks)
            with KernelBuilder(module, "f", [("x", PTR), ("y", PTR)], None) as k:
                number = k.load(k.parameters["x"], F32.with_lanes(lanes))
                chosen = k.select(
                    k.compare("lt", number, 5.0), k.compare("gt", number, 2.0), k.compare("lt", number, 9.0)
                )
                chosen = k.select(k.compare("eq", number, 4.0), k.const(chosen.type, 0), chosen)
                k.store(k.parameters["y"], k.select(chosen, number, -1.0))
            y = np.zeros(24, np.float32)
            compiled = Compiled(module.text())
            compiled.call("f", x, y)
            first = x[:lanes]
            kept = np.where(first < 5, first > 2, first < 9) & (first != 4)
            np.testing.assert_array_equal(y[:lanes], np.where(kept, first, -1))
            if lanes == 8 and not has_masks:
                assert "vpack" not in compiled.assembly

    def test_a_lookup_is_among_sixteen(self) -> None:
        with pytest.raises(InternalError, match="among 3 numbers"):
            kernel_text(lambda k: k.store(k.parameters["y"], k.lookup(F64, [1, 2, 3], k.const(I64, 0))))


class TestControl:
    @pytest.mark.parametrize("n", [0, 1, 5])
    def test_loops_carry_values(self, n: int) -> None:
        def write(k: KernelBuilder) -> None:
            with k.loop(0, k.parameters["n"], carry=[k.const(I64, 10), k.const(I64, 1)]) as loop:
                total, power = loop.values
                loop.next = [k.add(total, k.mul(power, loop.index)), k.mul(power, 2)]
            k.store(k.parameters["x"], loop.results[0])
            k.store(k.parameters["y"], loop.results[1])

        x, y = np.zeros(1, np.int64), np.zeros(1, np.int64)
        Compiled(kernel_text(write)).call("f", x, y, n)
        assert x[0] == 10 + sum(2**i * i for i in range(n))
        assert y[0] == 2**n

    @pytest.mark.parametrize(("begin", "end", "step"), [(3, 4, 1), (3, 7, 4), (3, 5, 8)])
    def test_what_runs_just_once_is_no_loop(self, begin: int, end: int, step: int) -> None:
        def write(k: KernelBuilder) -> None:
            with k.loop(begin, end, step, carry=[k.const(I64, 5)]) as loop:
                loop.next = [k.add(k.load(k.parameters["y"], I64), k.add(loop.values[0], loop.index))]
            k.store(k.parameters["x"], loop.results[0])

        text = kernel_text(write, "x y")
        assert list(blocks(text)) == ["entry"]
        x, y = np.zeros(1, np.int64), np.full(1, 100, np.int64)
        Compiled(text).call("f", x, y)
        assert x[0] == 108

    @pytest.mark.parametrize(("begin", "end", "step"), [(4, 4, 1), (5, 4, 1), (3, 8, 4)])
    def test_what_does_not_run_or_runs_twice_is_a_loop(self, begin: int, end: int, step: int) -> None:
        def write(k: KernelBuilder) -> None:
            with k.loop(begin, end, step, carry=[k.const(I64, 0)]) as loop:
                loop.next = [k.add(loop.values[0], 1)]
            k.store(k.parameters["x"], loop.results[0])

        x = np.full(1, -1, np.int64)
        Compiled(kernel_text(write, "x")).call("f", x)
        assert x[0] == len(range(begin, end, step))

    @pytest.mark.parametrize("n", [1, 5])
    def test_whoever_knows_that_a_loop_runs_may_say_so(self, n: int) -> None:
        def write(k: KernelBuilder) -> None:
            with k.loop(0, k.parameters["n"], carry=[k.const(I64, 0)], runs=True) as loop:
                loop.next = [k.add(loop.values[0], loop.index)]
            k.store(k.parameters["x"], loop.results[0])

        text = kernel_text(write, "x n")
        assert text.count("br i1") == 1
        x = np.full(1, -1, np.int64)
        Compiled(text).call("f", x, n)
        assert x[0] == sum(range(n))

    def test_a_loop_that_surely_runs_has_no_guard(self) -> None:
        def write(k: KernelBuilder) -> None:
            with k.loop(0, 10, carry=[k.const(I64, 0)]) as loop:
                loop.next = [k.add(loop.values[0], 1)]
            k.store(k.parameters["x"], loop.results[0])

        text = kernel_text(write, "x")
        assert text.count("br i1") == 1
        x = np.zeros(1, np.int64)
        Compiled(text).call("f", x)
        assert x[0] == 10

    def test_a_loop_that_never_runs(self) -> None:
        def write(k: KernelBuilder) -> None:
            with k.loop(3, 3, carry=[k.const(I64, 4)]) as loop:
                loop.next = [0]
            k.store(k.parameters["x"], loop.results[0])

        x = np.zeros(1, np.int64)
        Compiled(kernel_text(write, "x")).call("f", x)
        assert x[0] == 4

    @pytest.mark.parametrize("n", [1, 6, 27])
    def test_while_with_a_branch_inside(self, n: int) -> None:
        def write(k: KernelBuilder) -> None:
            def step(values: list[Value]) -> list[Value]:
                number, steps = values
                odd = k.compare("eq", k.and_(number, 1), 1)
                (following,) = k.if_else(odd, lambda: k.add(k.mul(number, 3), 1), lambda: k.lshr(number, 1))
                return [following, k.add(steps, 1)]

            final = k.while_loop(
                lambda values: k.compare("ne", values[0], 1), step, [k.parameters["n"], k.const(I64, 0)]
            )
            k.store(k.parameters["x"], final[1])

        steps, number = 0, n
        while number != 1:
            number, steps = (3 * number + 1 if number % 2 else number // 2), steps + 1
        x = np.zeros(1, np.int64)
        Compiled(kernel_text(write, "x n")).call("f", x, n)
        assert x[0] == steps

    @pytest.mark.parametrize(("n", "expected"), [(0, 5), (3, 9), (4, 4), (7, -1)])
    def test_switch_and_early_return(self, n: int, expected: int) -> None:
        def write(k: KernelBuilder) -> None:
            n = k.parameters["n"]
            with k.if_(k.compare("gt", n, 6)):
                k.store(k.parameters["x"], k.const(I64, -1))
                k.ret()
            (value,) = k.switch(n, {0: lambda: k.const(I64, 5), 3: lambda: k.mul(n, n)}, lambda: n)
            k.store(k.parameters["x"], value)

        x = np.zeros(1, np.int64)
        Compiled(kernel_text(write, "x n")).call("f", x, n)
        assert x[0] == expected

    def test_calls(self) -> None:
        module = Module()
        with KernelBuilder(module, "square", [("a", I64)], I64, linkage="internal") as k:
            k.ret(k.mul(k.parameters["a"], k.parameters["a"]))
        with KernelBuilder(module, "f", [("n", I64)], I64) as k:
            direct = k.call("square", [k.parameters["n"]], I64)
            assert direct is not None
            indirect = k.call(k.function_pointer("square"), [direct], I64)
            assert indirect is not None
            k.ret(indirect)
        import ctypes

        assert Compiled(module.text()).call("f", 3, result=ctypes.c_int64) == 81
        assert "declare" not in module.text()

    def test_a_function_with_a_result_must_return(self) -> None:
        with pytest.raises(InternalError, match="without a value"):
            KernelBuilder(Module(), "f", [], I64).finish()

    def test_nested_vector_loops(self) -> None:
        """Row sums of a matrix, eight columns at a time, scaled by an invariant."""

        def write(k: KernelBuilder) -> None:
            t = F32.with_lanes(8)
            scale = k.load(k.parameters["s"], F32)
            with k.loop(0, k.parameters["m"]) as rows:
                start = k.mul(rows.index, k.parameters["n"])
                with k.loop(0, k.parameters["n"], 8, carry=[k.const(t, 0.0)]) as columns:
                    row = k.load(k.gep(k.parameters["x"], k.add(start, columns.index), 4), t)
                    columns.next = [k.muladd(row, scale, columns.values[0])]
                total = k.horizontal(k.add, columns.results[0])
                k.store(k.gep(k.parameters["y"], rows.index, 4), total)

        x = np.arange(6 * 16, dtype=np.float32).reshape(6, 16)
        y = np.zeros(6, np.float32)
        Compiled(kernel_text(write, "x y s m n")).call("f", x, y, np.array([2.0], np.float32), 6, 16)
        np.testing.assert_array_equal(y, 2 * x.sum(axis=1))


def test_the_work_of_emission_grows_with_the_code() -> None:
    def emission(size: int) -> Callable[[], str]:
        def emit() -> str:
            module = Module(has_fma=True)
            k = KernelBuilder(module, "f", [("x", F32.with_lanes(8))], None)
            value = k.parameters["x"]
            for number in range(size):
                value = k.mul(k.muladd(value, value, 1.5), value)
                value = k.select(k.compare("lt", value, float(number)), value, 2.0)
            k.finish()
            return module.text()

        return emit

    assert_linear(emission, 500)
    assert lines_run(emission(500)) / (4 * 500) < 60  # per instruction; 46 when this was written


def test_constants_of_a_function_that_is_not_optimized_are_made_once() -> None:
    """A zero is not worth a register, nor a constant that comes late a spilled one."""
    module = Module(has_fma=HAS_FMA)
    vector = IRType("f32", 8)
    with KernelBuilder(module, "f", [("x", PTR)], None, hoists_constants=True) as k, k.loop(0, 64, 8) as loop:
        place = k.gep(k.parameters["x"], loop.index, 4)
        value = k.add(k.mul(k.load(place, vector), 3.0), 0.0)
        for number in range(20):
            value = k.add(value, number + 4.5)
        k.store(place, value)
    parts = blocks(module.text())
    inside = "\n".join(next(lines for label, lines in parts.items() if label.startswith("loop")))
    frozen = [line for line in parts["entry"] if " freeze " in line]
    assert len(frozen) == 14 and frozen[0].endswith("splat (float 0x4008000000000000)")
    assert inside.count("splat (") == 7 + 1
    x = np.arange(64, dtype=np.float32)
    Compiled(module.text()).call("f", x)
    np.testing.assert_array_equal(x, np.arange(64) * 3 + sum(number + 4.5 for number in range(20)))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_signs_where_constants_are_loaded(kind: str) -> None:
    """Masks and sums of integers read theirs; shifts and divisions know them."""
    module, vector = Module(has_fma=HAS_FMA), IRType(kind, 8)
    dtype = np.dtype(np.float32 if kind == "f32" else np.float64)
    with KernelBuilder(module, "f", [("x", PTR), ("y", PTR), ("z", PTR)], None, is_quick=True) as k:
        x, y, z = (k.parameters[name] for name in "xyz")
        a, b = k.load(x, vector), k.load(y, vector)
        bits = k.and_(k.add(k.to_integer_bits(a), 12345), 0xFFFF)
        quotients = k.add(k.shl(k.udiv(bits, 10), 3), k.urem(bits, 10))
        for number, value in enumerate((k.fabs(a), k.copysign(a, b), k.copysign(2.5, b), k.copysign(0.0, b))):
            k.store(k.gep(z, number * 8 * dtype.itemsize), value)
        k.store(k.gep(z, 4 * 8 * dtype.itemsize), quotients)
    text = module.text()
    assert "@llvm.fabs" not in text and "@llvm.copysign" not in text
    code = text[text.index("define") :]
    assert len(re.findall(r"(?:udiv|urem|shl) .*splat \(", code)) == 3
    assert not re.findall(r"(?:add|and|or) .*splat \(", code)
    values = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, -np.nan], dtype)
    signs = np.roll(values, 3)
    found = np.zeros(5 * 8, dtype)
    Compiled(text).call("f", values, signs, found)
    floats = np.concatenate([np.abs(values), *(np.copysign(m, signs) for m in (values, 2.5, 0.0))], dtype=dtype)
    integer = np.dtype(f"u{dtype.itemsize}")
    np.testing.assert_array_equal(found[:32].view(integer), floats.view(integer))
    low = (values.view(integer) + integer.type(12345)) & integer.type(0xFFFF)
    np.testing.assert_array_equal(found[32:].view(integer), low // 10 * 8 + low % 10)


def test_constants_in_addresses_come_last() -> None:
    """(i + 2 + j + 1) * 8 and (i + j) * 8 are one sum; what only the addresses needed is not written."""
    module = Module()
    with (
        KernelBuilder(module, "f", [("x", PTR), ("y", PTR), ("i", I64), ("j", I64)], None, joins_offsets=True) as k,
    ):
        x, y, i, j = (k.parameters[name] for name in "xyij")
        near = k.load(k.gep(x, k.add(i, j), 8), I64)
        far = k.load(k.gep(k.gep(x, k.add(k.add(i, 2), k.add(j, 1)), 8), 16), I64)
        back = k.load(k.gep(x, k.add(k.add(i, j), -1), 8), I64)
        k.store(y, k.add(near, k.add(far, k.mul(back, k.add(i, 7)))))
    lines = blocks(module.text())["entry"]
    assert sum(" add " in line for line in lines) == 4  # i + j, i + 7, and those of the result
    assert sum("getelementptr" in line for line in lines) == 3 and any("i64 40" in line for line in lines)
    x, y = np.arange(100), np.zeros(1, np.int64)
    Compiled(module.text()).call("f", x, y, 3, 4)
    assert y[0] == 7 + 12 + 6 * 10


def test_whether_any_lane_is_selected_is_known_of_the_first_ones() -> None:
    module = Module()
    with KernelBuilder(module, "f", [("x", PTR), ("y", PTR), ("n", I64)], None) as k:
        mask = k.first_lanes(k.parameters["n"], 8)
        other = k.compare("gt", k.load(k.parameters["x"], I64.with_lanes(8)), 0)
        for place, selected in enumerate((mask, other)):
            k.store(k.gep(k.parameters["y"], place, I64.bytes), k.zext(k.selects_any(selected), I64))
    assert module.text().count(" or ") == 3  # of the other one: halves, and halves of these
    for first, count in ((-1, 0), (5, 3)):
        x, y = np.array([-1] * 7 + [first]), np.full(2, -1)
        Compiled(module.text()).call("f", x, y, count)
        assert y.tolist() == [count > 0, first > 0]


@pytest.mark.parametrize(("scales", "products"), [(NO_SCALES, 0), (X86_SCALES, 1)])
def test_pointers_are_moved_in_front_of_loops(scales: Set[int], products: int) -> None:
    """By all that does not change in them, so that an address in a loop is a pointer and an index, or a multiple of it
    that grows with it; not out of the arm of a branch, and not where the index is opaque."""
    module = Module(index_scales=scales)
    parameters = [("x", PTR), ("y", PTR), ("n", I64)]
    with KernelBuilder(module, "f", parameters, None, joins_offsets=True, hoists_addresses=True) as k:
        x, y, n = (k.parameters[name] for name in "xyn")
        with k.loop(0, n) as rows:
            row = k.mul(rows.index, 10)
            with k.loop(0, 8) as columns:
                place = k.add(k.mul(k.add(row, k.add(columns.index, 1)), 2), 3)  # 20 i + 2 j + 5
                k.store(k.gep(y, k.add(row, columns.index), 8), k.load(k.gep(x, place, 8), I64))
            with k.loop(0, 2) as columns, k.if_(k.compare("ge", columns.index, 1)):
                k.store(k.gep(y, k.add(row, k.add(columns.index, 8)), 8), row)
            with k.loop(0, 2) as columns:
                k.store(k.gep(y, k.add(row, k.opaque(columns.index)), 8), columns.index)
    code = blocks(module.text())
    inner = next(lines for lines in code.values() if any(" load " in line for line in lines))
    assert sum("getelementptr" in line for line in inner) == 3 and any("i64 40" in line for line in inner)
    assert sum(" mul " in line for line in inner) == products  # 8 j
    assert sum(" add i64 " in line for line in inner) == 2 - products  # 16 j, and 8 j
    x, y = np.arange(100), np.full(40, -1)
    Compiled(module.text()).call("f", x, y, 4)
    expected = 20 * np.arange(4)[:, None] + 2 * np.arange(10) + 5
    expected[:, :2], expected[:, 8], expected[:, 9] = (0, 1), -1, 10 * np.arange(4)
    assert y.tolist() == expected.ravel().tolist()


def test_a_sum_with_negative_zero_is_the_other_number() -> None:
    def write(k: KernelBuilder) -> None:
        x = k.load(k.parameters["x"], F64)
        k.store(k.parameters["y"], k.add(k.add(-0.0, x), -0.0))
        k.store(k.gep(k.parameters["y"], 8), k.add(x, 0.0))

    assert kernel_text(write, "x y").count("fadd") == 1


def test_what_is_loaded_apart_is_stored_whole() -> None:
    """Without masks, of which AVX2 has slow ones; the last case shows what LLVM does else."""

    def chosen(load: Callable[[KernelBuilder, Value, IRType], Value]) -> str:
        def body(k: KernelBuilder) -> None:
            type = I64.with_lanes(4)
            one, two = load(k, k.parameters["x"], type), k.load(k.parameters["y"], type)
            k.store(k.parameters["x"], k.smax(one, two))

        return emit_assembly(kernel_text(body, "x y"), reference_target("avx2"))

    assert "maskmov" not in chosen(lambda k, place, type: k.load_apart(place, type))
    assert "maskmov" not in chosen(lambda k, place, type: k.apart(k.load(place, type)))
    assert "maskmov" in chosen(lambda k, place, type: k.load(place, type))


IN_FOUR_LANES: dict[str, tuple[Callable[[KernelBuilder, Value], Value], Callable[[np.ndarray], np.ndarray]]] = {
    "unsigned to float": (lambda k, x: k.uitofp(x, F32), lambda x: x.astype(np.float32)),
    "low half": (lambda k, x: k.and_(x, 0xFFFF), lambda x: x & 0xFFFF),
    "high half": (lambda k, x: k.and_(x, -0x10000), lambda x: x & 0xFFFF0000),
    "low half, shifted": (lambda k, x: k.lshr(k.shl(x, 16), 16), lambda x: x & 0xFFFF),
    "low half, cut out": (lambda k, x: k.zext(k.trunc(x, I16), I32), lambda x: x & 0xFFFF),
}


@pytest.mark.parametrize("name", IN_FOUR_LANES)
def test_halves_of_four_numbers_where_llvm_shall_not_try_hard(name: str) -> None:
    """It aborted."""
    emit, reference = IN_FOUR_LANES[name]
    module = Module.of(host_target())
    parameters = [("x", PTR), ("y", PTR)]
    with KernelBuilder(module, "f", parameters, None, attributes="noinline optnone nounwind") as k:
        k.store(k.parameters["y"], emit(k, k.load(k.parameters["x"], I32.with_lanes(4))))
    x = np.array([1, 0xFFFFFFFE, 0x12345678, 0x89ABCDEF], np.uint32)
    expected = reference(x)
    got = np.empty_like(expected)
    Compiled(module.text()).call("f", x, got)
    np.testing.assert_array_equal(got, expected)
