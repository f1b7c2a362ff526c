"""How much becomes one kernel, where that is a matter of degree."""

from itertools import permutations

import numpy as np
import pytest

import xlapy
from xlapy.hlo.text import parse
from xlapy.passes.fusion.sibling_reduces import SiblingReduces
from xlapy.passes.pipeline import Watch
from xlapy.passes.pipelines import PipelineOptions, cpu_pipeline


def _sum_of_turned(kind: str) -> str:
    """An array and what it is with its dimensions in all orders, each of them this way and that."""
    shape, lines, sums = f"{kind}[4,4,4]", [], ["x"]
    for turned in range(8):
        dims = ",".join(str(dim) for dim in range(3) if turned >> dim & 1)
        lines.append(f"r{turned} = {shape} reverse(x), dimensions={{{dims}}}")
        for order in permutations(range(3)):
            name = f"{turned}_{''.join(map(str, order))}"
            lines.append(f"t{name} = {shape} transpose(r{turned}), dimensions={{{','.join(map(str, order))}}}")
            lines.append(f"a{name} = {shape} add({sums[-1]}, t{name})")
            sums.append(f"a{name}")
    return f"ENTRY e {{ x = {shape} parameter(0) {' '.join(lines)} ROOT n = {shape} negate({sums[-1]}) }}"


@pytest.mark.parametrize(("kind", "kernels"), [("f64", 1), ("s8", 2)])
def test_places_that_are_read_lane_by_lane_fill_a_kernel(kind: str, kernels: int) -> None:
    """Of bytes there are 64 lanes, and as many pieces of code for each place."""
    module = parse(_sum_of_turned(kind))
    cpu_pipeline(PipelineOptions(), Watch()).run(module)
    assert sum(instruction.opcode == "fusion" for instruction in module.entry) == kernels


def _joined_step_by_step(count: int) -> str:
    """An array that grows by a column in each step, and is summed whenever it has grown."""
    lines, joined, column = ["zero = f32[] constant(0) x = f32[4,8] parameter(0)"], "x", "c"
    lines.append("c = f32[4,1] slice(x), slice={[0:4], [7:8]}")
    for step in range(count):
        lines.append(f"t{step} = f32[4,1] tanh({column})")
        lines.append(f"j{step} = f32[4,{9 + step}] concatenate({joined}, t{step}), dimensions={{1}}")
        lines.append(f"s{step} = f32[] reduce(j{step}, zero), dimensions={{0,1}}, to_apply=sum")
        joined, column = f"j{step}", f"t{step}"
    results = ", ".join(f"s{step}" for step in range(count))
    region = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
    return f"{region} ENTRY e {{ {' '.join(lines)} ROOT r = ({', '.join(['f32[]'] * count)}) tuple({results}) }}"


def _instructions(text: str) -> int:
    module = parse(text)
    cpu_pipeline(PipelineOptions(), Watch()).run(module)
    return module.instruction_count


def test_what_is_joined_step_by_step_has_code_in_few_kernels() -> None:
    assert _instructions(_joined_step_by_step(60)) < 2.2 * _instructions(_joined_step_by_step(30))


def _pieces_of_a_chain(length: int) -> str:
    """Three sines of pieces of what many multiplications made."""
    lines = ["x0 = u32[6] parameter(0)"]
    lines += [f"x{number + 1} = u32[6] multiply(x{number}, x{number})" for number in range(length)]
    for piece in range(3):
        lines += [
            f"s{piece} = u32[2] slice(x{length}), slice={{[{2 * piece}:{2 * piece + 2}]}}",
            f"f{piece} = f32[2] convert(s{piece})",
            f"r{piece} = f32[{piece + 2},2] broadcast(f{piece}), dimensions={{1}}",
            f"y{piece} = f32[{piece + 2},2] sine(r{piece})",
        ]
    lines.append("ROOT t = (f32[2,2], f32[3,2], f32[4,2]) tuple(y0, y1, y2)")
    return f"ENTRY main {{ {' '.join(lines)} }}"


@pytest.mark.parametrize(("length", "copies"), [(20, 3), (150, 1)])
def test_a_long_chain_has_code_in_one_kernel(length: int, copies: int) -> None:
    """Each multiplication by itself takes less than another kernel, in each of three."""
    module = parse(_pieces_of_a_chain(length))
    cpu_pipeline(PipelineOptions(), Watch()).run(module)
    assert sum(i.opcode == "multiply" for i in module.instructions()) == copies * length


def _statistics_of_layers(count: int) -> str:
    """Sums of each layer and of its squares, where the next layer is made of both, and all layers of the first one."""
    lines = ["zero = f32[] constant(0) x0 = f32[64,32] parameter(0)"]
    for n in range(count):
        lines.append(f"s{n} = f32[32] reduce(x{n}, zero), dimensions={{0}}, to_apply=sum")
        lines.append(f"q{n} = f32[64,32] multiply(x{n}, x{n})")
        lines.append(f"v{n} = f32[32] reduce(q{n}, zero), dimensions={{0}}, to_apply=sum")
        lines.append(f"a{n} = f32[64,32] broadcast(s{n}), dimensions={{1}}")
        lines.append(f"b{n} = f32[64,32] broadcast(v{n}), dimensions={{1}}")
        lines.append(f"c{n} = f32[64,32] add(x{n}, a{n}) d{n} = f32[64,32] multiply(c{n}, b{n})")
        lines.append(f"x{n + 1} = f32[64,32] add(d{n}, x0)")
    region = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
    return f"{region} ENTRY e {{ {' '.join(lines)} ROOT r = f32[64,32] negate(x{count}) }}"


def test_siblings_are_found_in_the_depth_of_large_programs() -> None:
    """Whether one needs the other is told without a search through all that is below them."""
    layers = 400
    module = parse(_statistics_of_layers(layers))
    SiblingReduces().run(module)
    assert sum(i.opcode == "reduce" and len(i.operands) == 4 for i in module.entry) == layers


def _differences(size: int, order: int) -> str:
    """Of neighbours, of these differences, and so on."""
    lines, source = [f"x0 = f32[{size}] parameter(0)"], "x0"
    for step in range(1, order + 1):
        left, made = f"f32[{size - step}]", f"x{step}"
        lines.append(f"b{step} = {left} slice({source}), slice={{[1:{size - step + 1}]}}")
        lines.append(f"a{step} = {left} slice({source}), slice={{[0:{size - step}]}}")
        root = "ROOT " if step == order else ""
        lines.append(f"{root}{made} = {left} subtract(b{step}, a{step})")
        source = made
    return f"ENTRY e {{ {' '.join(lines)} }}"


def _kernels(text: str) -> int:
    module = parse(text)
    cpu_pipeline(PipelineOptions(), Watch()).run(module)
    return sum(instruction.opcode == "fusion" for instruction in module.entry)


@pytest.mark.parametrize(("size", "order", "kernels"), [(5000, 3, 1), (30_000, 3, 1), (30_000, 6, 2), (300_000, 6, 1)])
def test_differences_of_differences_read_each_neighbour_once(size: int, order: int, kernels: int) -> None:
    """More of them are computed again if the differences would come from memory."""
    assert _kernels(_differences(size, order)) == kernels


@pytest.mark.parametrize(("size", "order"), [(400, 5), (300_000, 8)])
def test_differences_of_differences_are_right(size: int, order: int) -> None:
    text = _differences(size, order)
    values = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    np.testing.assert_array_equal(xlapy.compile(text)(values), xlapy.evaluate(text, values))


def _scaled_rows(columns: int, operations: int) -> str:
    """Sums of rows that a number is multiplied with, which many operations make for each."""
    steps = [f"m{step} = f32[400,30] multiply(m{step - 1}, m{step - 1})" for step in range(1, operations + 1)]
    return f"""
        sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
        ENTRY e {{
          m0 = f32[400,30] parameter(0)
          x = f32[400,30,{columns}] parameter(1)
          {" ".join(steps)}
          spread = f32[400,30,{columns}] broadcast(m{operations}), dimensions={{0,1}}
          scaled = f32[400,30,{columns}] multiply(x, spread)
          zero = f32[] constant(0)
          ROOT r = f32[400,{columns}] reduce(scaled, zero), dimensions={{1}}, to_apply=sum
        }}"""


@pytest.mark.parametrize(("columns", "operations", "kernels"), [(3, 20, 2), (3, 1, 1), (16, 20, 1)])
def test_a_fold_of_short_rows_computes_no_chain_for_each(columns: int, operations: int, kernels: int) -> None:
    """Numbers of rows are computed one by one, unless they are stored first, many to a vector."""
    module = parse(_scaled_rows(columns, operations))
    cpu_pipeline(PipelineOptions(), Watch()).run(module)
    assert sum(instruction.opcode == "fusion" for instruction in module.entry) == kernels
