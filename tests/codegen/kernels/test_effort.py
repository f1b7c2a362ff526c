"""Kernels that LLVM does not try hard for: which they are, and that their results are the same."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xlapy
from tests.support.emitted import emitted_kernels
from tests.support.native import flatten
from xlapy.codegen.jit import emit_object
from xlapy.codegen.kernels.effort import is_heavy
from xlapy.codegen.kernels.functions import ROOMY_REGISTERS
from xlapy.codegen.kernels.loop import STREAMED_BYTES
from xlapy.codegen.program import GLUE_LEVEL, KERNEL_LEVEL
from xlapy.codegen.target import host_target, reference_target
from xlapy.compiler import lower
from xlapy.hlo.text import parse
from xlapy.options import CompileOptions
from xlapy.passes.pipeline import Watch
from xlapy.support.timing import Timings

SUMS = """
  sum { a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT s = f32[] add(a, b) }
  largest { a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT m = f32[] maximum(a, b) }
"""


def program(body: str) -> str:
    return f"HloModule m {SUMS} {DOUBLES} ENTRY e {{ {body} }}"


def is_light(text: str) -> bool:
    """Whether the first kernel of the program is one. It shows in what is handed to LLVM."""
    code = emitted_kernels(text, host_target())
    header = next(line for line in code.splitlines() if re.match(r"define void @kernel\.0\.\w+\(", line))
    return "optnone" in header


DOUBLES = "doubles { a = f64[] parameter(0) b = f64[] parameter(1) ROOT s = f64[] add(a, b) }"
HAS_ROOM = host_target().vector_registers >= ROOMY_REGISTERS
PLAIN = {
    "a sum": "x = f32[300000] parameter(0)  y = f32[300000] parameter(1)  ROOT s = f32[300000] add(x, y)",
    "a polynomial": """x = f32[600,500] parameter(0)
        c = f32[] constant(2.5)
        b = f32[600,500] broadcast(c), dimensions={}
        m = f32[600,500] multiply(x, b)  ROOT s = f32[600,500] add(m, x)""",
    "sums of long rows": """x = f64[1000,600] parameter(0)  w = f64[1000,600] parameter(1)
        z = f64[] constant(0)  y = f64[1000,600] subtract(x, w)
        ROOT r = f64[1000] reduce(y, z), dimensions={1}, to_apply=doubles""",
    "rows joined": """x = f32[2,50,3000] parameter(0)  y = f32[2,40,3000] parameter(1)
        ROOT c = f32[2,90,3000] concatenate(x, y), dimensions={1}""",
    "many short rows joined": """x = f32[2,500,300] parameter(0)  y = f32[2,400,300] parameter(1)
        ROOT c = f32[2,900,300] concatenate(x, y), dimensions={1}""",
}
BROKEN_UP = """x = f32[300000] parameter(0)  y = f32[300000] parameter(1)
    s = f32[300000] sine(x)  c = f32[300000] cosine(y)  {more}
    p = pred[300000] compare(x, y), direction=LT  m = f32[300000] multiply(s, c)
    ROOT r = f32[300000] select(p, m, {last})"""
WITH_MORE_TO_FIND = {
    "each short row joined": """x = f32[5000,13] parameter(0)  y = f32[5000,12] parameter(1)
        ROOT c = f32[5000,25] concatenate(x, y), dimensions={1}""",
    "a selection": """x = f32[300000] parameter(0)  y = f32[300000] parameter(1)
        p = pred[300000] compare(x, y), direction=LT  ROOT s = f32[300000] select(p, x, y)""",
    "a function of few elements": "x = f32[30000] parameter(0)  ROOT s = f32[30000] tanh(x)",
    "a power": "x = f32[300000] parameter(0)  y = f32[300000] parameter(1)  ROOT s = f32[300000] power(x, y)",
    "a function of narrow floats": "x = bf16[300000] parameter(0)  ROOT s = bf16[300000] tanh(x)",
    "narrow floats": "x = bf16[300000] parameter(0)  ROOT s = bf16[300000] add(x, x)",
    "short rows": """x = f32[9000,40] parameter(0)  y = f32[40] parameter(1)
        b = f32[9000,40] broadcast(y), dimensions={1}  ROOT s = f32[9000,40] add(x, b)""",
    "sums of short rows": """x = f32[50000,20] parameter(0)  z = f32[] constant(0)
        ROOT r = f32[50000] reduce(x, z), dimensions={1}, to_apply=sum""",
    "the largest": """x = f32[100,5000] parameter(0)  w = f32[100,5000] parameter(1)
        z = f32[] constant(-inf)  y = f32[100,5000] multiply(x, w)
        ROOT r = f32[100] reduce(y, z), dimensions={1}, to_apply=largest""",
}
SMALL = """x = f32[20,30] parameter(0)  z = f32[] constant(-inf)
    r = f32[20] reduce(x, z), dimensions={1}, to_apply=largest"""


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_plain_is_light(name: str) -> None:
    text = program(PLAIN[name])
    assert is_light(text)
    check_same(text)


@pytest.mark.parametrize("name", WITH_MORE_TO_FIND)
def test_what_is_not_plain_is_not_light(name: str) -> None:
    assert not is_light(program(WITH_MORE_TO_FIND[name]))


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_functions_side_by_side_are_light_with_few_registers(type: str) -> None:
    shape = f"{type}[300000]"
    text = program(f"""x = {shape} parameter(0)  y = {shape} parameter(1)  l = {shape} logistic(x)
        p = pred[300000] compare(x, y), direction=LT  m = {shape} exponential-minus-one(y)
        ROOT r = {shape} select(p, l, m)""")
    assert is_light(text) == (not HAS_ROOM)
    check_same(text)


def test_what_branches_anyway_is_light() -> None:
    waves = program(BROKEN_UP.format(more="q = f32[300000] sqrt(x)", last="q"))
    assert is_light(waves)
    check_same(waves)
    more = "t = f32[300000] tanh(x)  e = f32[300000] exponential(y)  a = f32[300000] add(t, e)"
    assert not is_light(program(BROKEN_UP.format(more=more, last="a")))


def test_what_is_small_is_light() -> None:
    text = program(SMALL.replace("r =", "ROOT r ="))
    assert is_light(text)
    check_same(text)
    assert not is_light(program(SMALL.replace("r =", "ROOT r =").replace("20", "9000")))


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("window", ["1x3x2", "2x2x2", "2x1x5"])
def test_few_windows_are_light(window: str, type: str) -> None:
    """As long as it is known how much each has."""
    fold = {"f32": "sum", "f64": "doubles"}[type]
    text = program(
        f"""x = {type}[10,30,20] parameter(0)  z = {type}[] constant(0)
        ROOT r = {type}[SIZE] reduce-window(x, z), window={{size={window}}}, to_apply={fold}"""
    )
    places = [int(size) for size in window.split("x")]
    size = ",".join(str(size - place + 1) for size, place in zip((10, 30, 20), places, strict=True))
    assert is_light(text.replace("SIZE", size))
    check_same(text.replace("SIZE", size))
    large = ",".join(str(size - place + 1) for size, place in zip((100, 301, 20), places, strict=True))
    assert not is_light(text.replace("[10,30,20]", "[100,301,20]").replace("SIZE", large))


def test_what_is_a_small_part_of_the_program_is_light() -> None:
    """A better kernel for it would not be noticed beside the rest."""
    alone = SMALL.replace("20", "9000")
    rest = "y = f32[3000,5000] parameter(1)  n = f32[3000,5000] sine(y)  ROOT t = tuple(r, n)"
    assert is_light(program(f"{alone}  {rest}"))
    assert not is_light(program(f"{alone}  {rest}".replace("3000,5000", "3000,50")))


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_folds_of_columns_that_are_a_small_part_have_less_code(type: str) -> None:
    """Fewer of them run side by side, in the same order. (Of an odd number, the last ones overlap others.)"""
    alone = f"""x = {type}[40,1501] parameter(0)  v = {type}[1501] parameter(1)  z = {type}[] constant(0)
        b = {type}[40,1501] broadcast(v), dimensions={{1}}  d = {type}[40,1501] subtract(x, b)
        y = {type}[40,1501] multiply(d, x)
        r = {type}[1501] reduce(y, z), dimensions={{0}}, to_apply={"sum" if type == "f32" else "doubles"}"""
    rest = "w = f32[3000,3000] parameter(2)  n = f32[3000,3000] multiply(w, w)  ROOT t = tuple(r, n)"
    brief, usual = map(xlapy.compile, (program(f"{alone}  {rest}"), program(alone.replace("r =", "ROOT r ="))))
    less, more = (fold_of(executable).count("fadd") for executable in (brief, usual))
    assert 2 * less <= more
    generator = np.random.default_rng(2)
    x, v = (generator.standard_normal(dims).astype("f4" if type == "f32" else "f8") for dims in ((40, 1501), 1501))
    assert np.array_equal(brief(x, v, np.ones((3000, 3000), np.float32))[0], usual(x, v))


def test_folds_in_two_steps_that_are_a_small_part_take_both_of_them() -> None:
    """The least of each column, and what these come to: the kernel with less code has a second step, too."""
    fold = """x = f64[16,1025] parameter(0)  i = f64[] constant(inf)  z = f64[] constant(0)
        c = f64[1025] reduce(x, i), dimensions={0}, to_apply=least
        r = f64[] reduce(c, z), dimensions={0}, to_apply=doubles"""
    rest = "w = f32[3000,3000] parameter(1)  n = f32[3000,3000] multiply(w, w)  ROOT t = tuple(r, n)"
    least = DOUBLES.replace("doubles", "least").replace("add", "minimum")
    executable = xlapy.compile(program(f"{fold}  {rest}").replace("ENTRY", f"{least} ENTRY"))
    assert "r.fusion = f64[] fusion(x), kind=kInput" in executable.hlo_text()
    x = np.random.default_rng(1).integers(-50, 60, (16, 1025)).astype(np.float64)
    assert executable(x, np.ones((3000, 3000), np.float32))[0] == x.min(0).sum()


def fold_of(executable: xlapy.Executable) -> str:
    """The kernel that adds and subtracts."""
    code = "".join(executable._compiled.program.llvm_modules)
    kernels = re.findall(r"^define void @kernel\.\d+\.\w+\(.*?^}", code, re.MULTILINE | re.DOTALL)
    (fold,) = (kernel for kernel in kernels if "fsub" in kernel)
    return str(fold)


def test_what_is_a_small_part_beside_a_product_is_light() -> None:
    """Products count by what they compute, not by what they move."""
    rest = """a = f32[{rows},900] parameter(1)  b = f32[900,900] parameter(2)
        d = f32[{rows},900] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}  ROOT t = tuple(r, d)"""
    alone = SMALL.replace("20", "9000")
    assert is_light(program(f"{alone}  {rest.format(rows=900)}"))
    assert not is_light(program(f"{alone}  {rest.format(rows=9)}"))


BEHIND_PRODUCT = """a = f32[130,{depth}] parameter(0)  b = f32[{depth},290] parameter(1)  c = f32[290] parameter(2)
    d = f32[130,290] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
    w = f32[130,290] broadcast(c), dimensions={{1}}  s = f32[130,290] add(d, w)  ROOT r = f32[130,290] {function}"""


@pytest.mark.parametrize("function", ["maximum(s, w)", "subtract(s, w)"])
def test_what_is_a_small_part_of_its_product_is_light(function: str) -> None:
    text = program(BEHIND_PRODUCT.format(depth=600, function=function))
    assert "kernel.0.epilogue" in xlapy.compile(text).llvm_ir()
    assert is_light(text)
    check_same(text)
    short = BEHIND_PRODUCT.format(depth=200, function=function)
    assert not is_light(program(short))
    rest = "x = f32[900,900] parameter(3)  n = f32[900,900] sine(x)  ROOT t = tuple(r, n)"
    assert is_light(program(f"{short.replace('ROOT r', 'r')}  {rest}"))


@pytest.mark.parametrize("name", ["sse2", "avx2", "avx512", "neon"])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_light_parts_of_products_compile_for_every_machine(name: str, type: str) -> None:
    """Those with parts of vectors behind masks, too."""
    target = reference_target(name)
    text = program(BEHIND_PRODUCT.format(depth=600, function="maximum(s, w)")).replace("f32", type)
    lowered = lower(parse(text), CompileOptions(), target, Watch(), Timings())
    (code,) = (module.text for module in lowered.emitted.modules if module.level == KERNEL_LEVEL)
    assert re.search(r"define void @kernel\.0\.epilogue.*optnone", code)
    assert emit_object(code, target, codegen_level=KERNEL_LEVEL)


@pytest.mark.parametrize("type", ["f32", "f64", "bf16"])
def test_functions_behind_products_are_written_once_where_masks_are_quick(type: str) -> None:
    """Whole vectors and parts of them are loaded by masks. Only parts are stored so."""
    text = program(BEHIND_PRODUCT.format(depth=900, function="tanh(s)")).replace("f32", type)
    lowered = lower(parse(text), CompileOptions(), reference_target("avx2"), Watch(), Timings())
    (code,) = (module.text for module in lowered.emitted.modules if module.level == KERNEL_LEVEL)
    divisions = len(re.findall(r"fdiv <", code))
    assert (divisions == 1) == (type != "bf16")
    if type != "bf16":
        assert len(re.findall(r"call <\d+ x \w+> @llvm\.masked\.load", code)) == 2
        assert len(re.findall(r"call void @llvm\.masked\.store", code)) == len(re.findall(r"  store <", code)) == 1
        check_same(text)


def test_what_is_no_small_part_of_its_product_or_has_masks_is_not_light() -> None:
    assert not is_light(program(BEHIND_PRODUCT.format(depth=600, function="tanh(s)")))
    text = program(BEHIND_PRODUCT.format(depth=600, function="select(m, s, w)"))
    assert not is_light(text.replace("ROOT r", "m = pred[130,290] compare(s, w), direction=GT  ROOT r"))


MASKED_ROWS = -(-host_target().l2_bytes // (1000 * 4))
MASKED = f"""x = f32[{MASKED_ROWS},1000] parameter(0)  y = {{type}}[{MASKED_ROWS},1000] parameter(1)
    z = f32[] constant(0)  b = f32[{MASKED_ROWS},1000] broadcast(z), dimensions={{{{}}}}
    i = {{type}}[{MASKED_ROWS},1000] iota(), iota_dimension=1
    p = pred[{MASKED_ROWS},1000] compare(y, i), direction=GT  s = f32[{MASKED_ROWS},1000] select(p, x, b)
    r = f32[{{kept}}] reduce(s, z), dimensions={{{{{{folded}}}}}}, to_apply=sum"""
REST_DIMS = (45 * MASKED_ROWS, 1000)
REST = "w = f32[{0},{1}] parameter(2)  n = f32[{0},{1}] sine(w)".format(*REST_DIMS)
"""Of zeros: the evaluator, which would compute it for a second, is not asked for so many of them."""


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize(("kept", "folded"), [(f"{MASKED_ROWS}", "1"), ("1000", "0"), ("", "0,1")])
def test_what_folds_with_masks_in_registers_is_light_if_it_is_a_small_part(type: str, kept: str, folded: str) -> None:
    """Whatever the lanes of what is compared are, and of what is selected. In the nearest caches it is not, however
    small, nor with masks that come from memory."""
    part = MASKED.format(type=type, kept=kept, folded=folded)
    text = program(f"{part}  {REST}  ROOT t = tuple(r, n)")
    alone = program(part.replace("r =", "ROOT r ="))
    assert is_light(text)
    x, y = arguments_of(alone)
    (found, rest), wanted = xlapy.compile(text)(x, y, np.zeros(REST_DIMS, np.float32)), xlapy.evaluate(alone, x, y)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-3)
    assert not rest.any()
    assert not is_light(alone)
    assert not is_light(
        text.replace(f"[{MASKED_ROWS},1000", "[20,30")
        .replace("f32[1000]", "f32[30]")
        .replace(f"f32[{MASKED_ROWS}]", "f32[20]")
    )
    masks = text.replace(f"{type}[{MASKED_ROWS},1000] parameter(1)", f"pred[{MASKED_ROWS},1000] parameter(1)")
    assert not is_light(re.sub(r"compare\(y, i\), direction=GT", "not(y)", masks))


def test_what_widens_is_not_light() -> None:
    assert not is_light(program("x = bf16[200,200] parameter(0)  ROOT y = f32[200,200] convert(x)"))


ROWS = -(-max(STREAMED_BYTES, host_target().l3_bytes) // (2 * 1024 * 4))
"""Of 1024 numbers, so that to read and to write an array takes longer than to compute it."""

SOFTMAX = """x = f32[{dims}] parameter(0)  z = f32[] constant(0)  i = f32[] constant(-inf)
    m = f32[{kept}] reduce(x, i), dimensions={{{folded}}}, to_apply=largest
    n = f32[{dims}] broadcast(m), dimensions={{{other}}}  d = f32[{dims}] subtract(x, n)  e = f32[{dims}] exponential(d)
    s = f32[{kept}] reduce(e, z), dimensions={{{folded}}}, to_apply=sum
    t = f32[{dims}] broadcast(s), dimensions={{{other}}}  ROOT r = f32[{dims}] divide(e, t)"""


def softmax(rows: int, *, folded: int) -> str:
    kept = (rows, 1024)[1 - folded]
    return program(SOFTMAX.format(dims=f"{rows},1024", kept=kept, folded=folded, other=1 - folded))


@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains are compiled with their programs, however usual they are."""
    for limit in ("LEAST_BYTES", "LEAST_WHOLE_BYTES"):
        monkeypatch.setattr(f"xlapy.codegen.libraries.chain.{limit}", 1 << 60)
    monkeypatch.setenv("XLAPY_CACHE_DIR", "off")


@pytest.mark.usefixtures("no_libraries")
def test_what_waits_for_memory_is_light() -> None:
    assert is_light(softmax(ROWS, folded=1))
    assert is_light(softmax(ROWS // 2, folded=1)) == HAS_ROOM
    assert not is_light(softmax(ROWS, folded=0))
    assert not is_light(softmax(ROWS, folded=1).replace("f32", "f16"))
    x = np.random.default_rng(2).normal(size=(ROWS, 1024)).astype(np.float32)
    found = xlapy.compile(softmax(ROWS, folded=1))(x)
    e = np.exp(x[:50].astype(np.float64) - x[:50].max(1, keepdims=True))
    np.testing.assert_allclose(found[:50], e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(found.sum(1, dtype=np.float64), 1, rtol=1e-5)


SPREAD = """x = f32[{rows},1024] parameter(0)  z = f32[] constant(0)
    m = f32[1024] reduce(x, z), dimensions={{0}}, to_apply=sum
    n = f32[{rows},1024] broadcast(m), dimensions={{1}}  d = f32[{rows},1024] subtract(x, n)
    a = f32[{rows},1024] abs(d)  ROOT r = f32[1024] reduce(a, z), dimensions={{0}}, to_apply=sum"""


def test_what_folds_columns_and_waits_for_memory_is_light() -> None:
    """Where there are registers for its strips."""
    text = program(SPREAD.format(rows=2 * ROWS))
    assert is_light(text) == HAS_ROOM
    assert not is_light(program(SPREAD.format(rows=ROWS // 16)))
    half = np.random.default_rng(3).integers(-1, 2, (ROWS, 1024)).astype(np.float32)
    x = np.concatenate([half, -half])  # of which sums are exact, whatever the machine makes of ROWS
    x[0] += 1
    np.testing.assert_array_equal(xlapy.compile(text)(x), np.abs(x - x.sum(0)).sum(0, dtype=np.float64))


@pytest.mark.usefixtures("no_libraries")
def test_what_takes_one_function_of_each_element_is_light() -> None:
    """Where there are registers for its constants."""
    text = softmax(200, folded=1)
    assert is_light(text) == HAS_ROOM
    check_same(text)
    assert not is_light(text.replace("exponential(d)", "abs(d)"))
    assert not is_light(with_functions(text, "f32[200,1024]", 1))
    assert not is_light(softmax(200, folded=0))


def test_what_folds_nothing_that_is_given_compiles() -> None:
    compiled = xlapy.compile(
        program(
            "i = f32[50,60] iota(), iota_dimension=1\nz = f32[] constant(0)\n"
            "e = f32[50,60] exponential(i)\nROOT r = f32[50] reduce(e, z), dimensions={1}, to_apply=sum"
        )
    )
    np.testing.assert_allclose(compiled(), np.full(50, np.exp(np.arange(60.0)).sum()), rtol=1e-6)


def test_what_has_much_to_compute_is_not_light() -> None:
    assert not is_light(with_functions(softmax(ROWS, folded=1), f"f32[{ROWS},1024]", 4))


def with_functions(softmax: str, dims: str, count: int) -> str:
    """The same, of that many functions of what it was of."""
    functions = "".join(f"  d{n + 1} = {dims} tanh(d{n})" for n in range(count))
    last = f"{functions}  e = {dims} exponential(d{count})"
    return softmax.replace(" d =", " d0 =").replace(f"  e = {dims} exponential(d)", last)


def check_same(text: str) -> None:
    arguments = arguments_of(text)
    found, wanted = flatten(xlapy.compile(text)(*arguments)), flatten(xlapy.evaluate(text, *arguments))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-3)


def arguments_of(text: str) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(5)
    return [
        random.standard_normal(parameter.shape.dims).astype(parameter.shape.type.dtype)
        for parameter in parse(text).entry.parameters
    ]


def test_small_matrices_of_bits_are_turned_with_all_of_llvm() -> None:
    """LLVM 22 gives up on such orders of bytes where it does not optimize."""
    x = np.arange(66 * 14).reshape(66, 14) % 3 == 0
    text = "HloModule m ENTRY e { p = pred[66,14] parameter(0)  ROOT t = pred[14,66] transpose(p), dimensions={1,0} }"
    assert not is_light(text)
    assert (xlapy.compile(text)(x) == x.T).all()


LOOP = """HloModule m
  body {
    s = (s32[], f32[ROWS,256]) parameter(0)
    i = s32[] get-tuple-element(s), index=0
    x = f32[ROWS,256] get-tuple-element(s), index=1
    y = f32[ROWS,256] sine(x)
    one = s32[] constant(1)
    n = s32[] add(i, one)
    ROOT r = (s32[], f32[ROWS,256]) tuple(n, y)
  }
  more {
    s = (s32[], f32[ROWS,256]) parameter(0)
    i = s32[] get-tuple-element(s), index=0
    n = s32[] constant(5)
    ROOT r = pred[] compare(i, n), direction=LT
  }
  ENTRY e {
    x = f32[ROWS,256] parameter(0)
    i = s32[] constant(0)
    t = (s32[], f32[ROWS,256]) tuple(i, x)
    w = (s32[], f32[ROWS,256]) while(t), condition=more, body=body
    ROOT r = f32[ROWS,256] get-tuple-element(w), index=1
  }"""


@pytest.mark.parametrize(("rows", "heavy"), [(10, False), (1000, True)])
def test_loops_around_much_work_are_compiled_as_fast_as_possible(rows: int, heavy: bool) -> None:
    text = LOOP.replace("ROWS", str(rows))
    (loop,) = (i for i in parse(text).instructions() if i.opcode == "while")
    assert is_heavy(loop) == heavy
    compiled = xlapy.compile(text)
    lowered = lower(parse(text), CompileOptions(), host_target(), Watch(), Timings())
    levels = [module.level for module in lowered.emitted.modules if "br label %while" in module.text]
    assert levels == [GLUE_LEVEL if heavy else KERNEL_LEVEL]
    x = np.random.default_rng(0).normal(size=(rows, 256)).astype(np.float32)
    np.testing.assert_allclose(compiled(x), xlapy.evaluate(text, x), rtol=1e-5, atol=1e-6)


def test_a_loop_with_a_tight_one_in_it_is_not_heavy() -> None:
    tight = parse(LOOP.replace("ROWS", "1"))
    heavy = parse(LOOP.replace("ROWS", "4000"))
    (inner,) = (i for i in tight.instructions() if i.opcode == "while")
    (outer,) = (i for i in heavy.instructions() if i.opcode == "while")
    assert is_heavy(outer)
    body = outer.called[1]
    zero = body.add("parameter", shape=inner.operands[0].shape, number=1)
    body.add("while", [zero], called=list(inner.called), shape=inner.shape)
    assert not is_heavy(outer)


@pytest.mark.parametrize(("arrays", "heavy"), [(5, False), (30, True)])
def test_loops_that_call_more_kernels_than_there_are_registers_are_compiled_as_fast_as_possible(
    arrays: int, heavy: bool
) -> None:
    def scan(*arrays: Any) -> Any:
        return lax.fori_loop(0, 5, lambda step, state: [jnp.sort(x) + step for x in state], list(arrays))

    values = [np.random.default_rng(number).normal(size=8 + number).astype(np.float32) for number in range(arrays)]
    text = jax.jit(scan).lower(*values).as_text()
    compiled = xlapy.compile(text, xlapy.CompileOptions(disabled_passes=frozenset({"unroll-loops"})))
    (loop,) = (i for i in parse(compiled.hlo_text()).instructions() if i.opcode == "while")
    assert is_heavy(loop) == heavy
    for made, wanted in zip(compiled(*values), xlapy.evaluate(text, *values), strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-6)
