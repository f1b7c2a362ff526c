"""Costs of small programs, counted by hand."""

from __future__ import annotations

import itertools

import pytest

from xlapy.hlo.attributes import WindowDimension
from xlapy.hlo.cost import Traffic, cost_analysis, program_cost, traffic
from xlapy.hlo.text import parse

LOOP = """
condition { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT t = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(2)
  j = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] exponential(x)
  ROOT r = (s32[], f32[8]) tuple(j, y) }
ENTRY main { x = f32[8] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[8]) tuple(zero, x)
  ROOT w = (s32[], f32[8]) while(s), condition=condition, body=body }
"""


def test_elementwise_and_dot() -> None:
    cost = cost_analysis(
        parse("""ENTRY main { x = f32[4,8] parameter(0)  y = f32[8,2] parameter(1)
            d = f32[4,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            ROOT t = f32[4,2] tanh(d) }""")
    )
    assert cost["flops"] == 2 * 4 * 2 * 8
    assert cost["transcendentals"] == 8
    assert cost["bytes accessed"] == 4 * (32 + 16 + 8) + 4 * (8 + 8)


def test_linear_algebra() -> None:
    cost = cost_analysis(
        parse("""ENTRY main { a = f32[6,6] parameter(0)  b = f32[6,4] parameter(1)  x = f32[2,16] parameter(2)
            l = f32[6,6] cholesky(a), lower=true
            s = f32[6,4] triangular-solve(l, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
            f = c64[2,9] fft(x), fft_type=RFFT, fft_length={16}
            ROOT t = (f32[6,4], c64[2,9]) tuple(s, f) }""")
    )
    assert cost["flops"] == 2 * 6**3 / 6 + 2 * 6 * 4 * 6 / 2 + 5 * 2 * 16 * 4 / 2


@pytest.mark.parametrize(
    ("dims", "products"), [("6,6", 6**3 / 3), ("6,9", 36 * (9 - 2) / 2), ("9,6", 36 * (9 - 2) / 2)]
)
def test_flops_of_eliminations(dims: str, products: float) -> None:
    rows, columns = map(int, dims.split(","))
    parts = f"(f32[{dims}], s32[{min(rows, columns)}], s32[{rows}])"
    cost = cost_analysis(parse(f"ENTRY main {{ a = f32[{dims}] parameter(0)  ROOT f = {parts} lu(a) }}"))
    assert cost["flops"] == pytest.approx(2 * products)


def test_flops_of_eigenvalues() -> None:
    """Of six sweeps: two numbers of three rows in each of three rotations, and as many of vectors."""
    parts = "(f32[5,3,3], f32[5,3])"
    cost = cost_analysis(parse(f"ENTRY main {{ a = f32[5,3,3] parameter(0)  ROOT e = {parts} eigh(a) }}"))
    assert cost["flops"] == 6 * 5 * 3 * (3 * 8) * 2


def test_flops_of_reflections() -> None:
    """Two products for each element that is left."""
    left = 5 * 3 + 4 * 2 + 3
    for text, part in [
        ("ROOT e = (f32[2,5,3], f32[2,3]) qr-decomposition(a)", left),
        ("t = f32[2,2] parameter(1)  ROOT e = f32[2,5,3] householder-product(a, t)", left - 3),
    ]:
        cost = cost_analysis(parse(f"ENTRY main {{ a = f32[2,5,3] parameter(0)  {text} }}"))
        assert cost["flops"] == 2 * 2 * 2 * part


def test_flops_of_singular_values() -> None:
    """The same of three pairs of columns, which have five rows, after three sums of products."""
    parts = "(f32[5,5,3], f32[5,3], f32[5,3,3])"
    cost = cost_analysis(
        parse(f"ENTRY main {{ a = f32[5,5,3] parameter(0)  ROOT e = {parts} svd(a), full_matrices=false }}")
    )
    assert cost["flops"] == 6 * 5 * 3 * (3 * 5 * 2 + (5 + 3) * 8)


def test_a_counted_loop_is_counted_per_trip() -> None:
    cost = cost_analysis(parse(LOOP))
    assert cost["transcendentals"] == 8 * 5
    assert cost["unknown trip counts"] == 0


def test_a_loop_without_a_known_count_is_counted_once() -> None:
    cost = cost_analysis(parse(LOOP.replace("n = s32[] constant(10)", "n = s32[] negate(i)")))
    assert cost["transcendentals"] == 8
    assert cost["unknown trip counts"] == 1


def test_a_reduce_counts_its_region_per_element() -> None:
    cost = cost_analysis(
        parse("""add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
            ENTRY main { x = f32[3,5] parameter(0)  z = f32[] constant(0)
            ROOT r = f32[3] reduce(x, z), dimensions={1}, to_apply=add }""")
    )
    assert cost["flops"] == 15


def test_windows_count_what_lies_on_elements() -> None:
    cost = cost_analysis(
        parse("""ENTRY main { x = f32[2,5,3] parameter(0)  k = f32[3,3,4] parameter(1)
            ROOT c = f32[2,5,4] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f }""")
    )
    assert cost["flops"] == 2 * 2 * 3 * 4 * (5 * 3 - 2)
    cost = cost_analysis(
        parse("""add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
            ge { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=GE }
            ENTRY main { x = f32[6] parameter(0)  z = f32[] constant(0)
            r = f32[3] reduce-window(x, z), window={size=2 stride=2}, to_apply=add
            ROOT s = f32[6] select-and-scatter(x, r, z), window={size=2 stride=2}, select=ge, scatter=add }""")
    )
    assert cost["flops"] == 3 * 2 + 3 * (1 + 1)


@pytest.mark.parametrize(("stride", "base", "apart"), [*itertools.product((1, 2, 3, 6), (1, 2, 4), (1, 2, 3))])
def test_places_of_windows_on_elements_are_counted(stride: int, base: int, apart: int) -> None:
    for size, low, high in ((1, 0, 0), (4, 3, -2), (3, -2, 7), (5, 6, 6)):
        part = WindowDimension(size, stride, low, high, base, apart)
        count = part.positions(9)
        if not count:
            continue
        written = f"size={size} stride={stride} pad={low}_{high} lhs_dilate={base} rhs_dilate={apart}"
        text = f"""ENTRY main {{ x = f32[1,9,1] parameter(0)  k = f32[{size},1,1] parameter(1)
            ROOT c = f32[1,{count},1] convolution(x, k), window={{{written}}}, dim_labels=b0f_0io->b0f }}"""
        elements = {place * base for place in range(9)}
        places = itertools.product(range(count), range(size))
        met = sum(position * stride + place * apart - low in elements for position, place in places)
        assert cost_analysis(parse(text))["flops"] == 2 * met


@pytest.mark.parametrize(
    ("root", "in_place", "expected"),
    [
        ("f32[100] add(x, y)", False, Traffic(800, 400)),
        ("f32[100] add(x, x)", True, Traffic(400, 400)),
        ("f32[10] dynamic-slice(x, i), dynamic_slice_sizes={10}", False, Traffic(44, 40)),
        ("f32[10] slice(x), slice={[0:10]}", False, Traffic(40, 40)),
        ("f32[100] dynamic-update-slice(x, u, i)", True, Traffic(44, 40)),
        ("f32[100] dynamic-update-slice(x, u, i)", False, Traffic(444, 400)),
    ],
)
def test_kernels_move_what_they_pick_and_what_they_update(root: str, in_place: bool, expected: Traffic) -> None:
    lines = "x = f32[100] parameter(0)  y = f32[100] parameter(1)  u = f32[10] parameter(2)  i = s32[] parameter(3)"
    module = parse("ENTRY e { " + lines + f"  ROOT r = {root} }}")
    assert traffic(module.entry.root, in_place=in_place) == expected
    fused = f"f {{ {lines}  ROOT r = {root} }}"
    kind = root.partition(" ")[0]
    module = parse(f"{fused}\nENTRY e {{ {lines}  ROOT r = {kind} fusion(x, y, u, i), kind=kLoop, calls=f }}")
    assert traffic(module.entry.root, in_place=in_place) == expected


def test_kernels_are_counted_as_often_as_they_run() -> None:
    assert program_cost(parse(LOOP).entry).kernels == 5
    assert program_cost(parse("ENTRY e { x = f32[] parameter(0)  ROOT y = f32[] sine(x) }").entry).kernels == 0


@pytest.mark.parametrize(
    ("window", "flops"), [("1x8 pad=0_0x7_0", 4 * 8), ("1x8 pad=0_0x0_7", 4 * 8), ("1x4 pad=0_0x3_0", 4 * 8 * 4)]
)
def test_windows_that_continue_one_another_are_not_folded_anew(window: str, flops: int) -> None:
    cost = cost_analysis(
        parse(
            """sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
            ENTRY main { x = f32[4,8] parameter(0)  z = f32[] constant(0)
              ROOT r = f32[4,8] reduce-window(x, z), window={size="""
            + window
            + "}, to_apply=sum }"
        )
    )
    assert cost["flops"] == flops


SUM = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"


@pytest.mark.parametrize(
    ("entry", "kernels", "size"),
    [
        # parts of what is picked, scalar constants, and what only has another name
        ("r = f32[50,2] reshape(x)  ROOT s = f32[5,2] slice(r), slice={[0:5], [0:2]}", 1, 40 + 40),
        ("z = f32[] constant(0)  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum", 1, 400 + 4),
        ("i = s32[] constant(0)  ROOT d = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}", 1, 4 + 4),
        # a parameter is not overwritten; what is made here is
        ("i = s32[] constant(0)  ROOT d = f32[100] dynamic-update-slice(x, u, i)", 1, 400 + 40 + 400),
        (
            "i = s32[] constant(0)  n = f32[100] negate(x)  ROOT d = f32[100] dynamic-update-slice(n, u, i)",
            2,
            400 + 400 + 40 + 40,
        ),
        # scalars stay in registers, but what is read from an array comes from memory
        ("s = f32[] sine(y)  t = f32[] copy(s)  ROOT b = f32[100] broadcast(t), dimensions={}", 1, 4 + 400),
    ],
)
def test_what_kernels_of_a_program_move(entry: str, kernels: int, size: int) -> None:
    parameters = "x = f32[100] parameter(0)  y = f32[] parameter(1)  u = f32[10] parameter(2) "
    cost = program_cost(parse(f"{SUM}ENTRY e {{ {parameters} {entry} }}").entry)
    assert (cost.kernels, cost.bytes) == (kernels, size)


def test_a_part_that_is_picked_inside_of_a_fusion_under_another_name() -> None:
    """A row of a matrix that a loop has as a list of rows."""
    text = """f { x = f32[8,16] parameter(0)  i = s32[] parameter(1)  r = f32[2,4,16] reshape(x)
        z = s32[] constant(0)
        d = f32[1,1,16] dynamic-slice(r, i, z, z), dynamic_slice_sizes={1,1,16}
        ROOT n = f32[1,1,16] negate(d) }
        ENTRY e { x = f32[8,16] parameter(0)  i = s32[] parameter(1)
        ROOT r = f32[1,1,16] fusion(x, i), kind=kLoop, calls=f }"""
    assert program_cost(parse(text).entry).bytes == 64 + 4 + 64


BLOCKS = """
below { s = (s64[], s64[], f32[8]) parameter(0)
  i = s64[] get-tuple-element(s), index=0  end = s64[] get-tuple-element(s), index=1
  ROOT t = pred[] compare(i, end), direction=LT }
step { s = (s64[], s64[], f32[8]) parameter(0)
  i = s64[] get-tuple-element(s), index=0  end = s64[] get-tuple-element(s), index=1
  x = f32[8] get-tuple-element(s), index=2
  one = s64[] constant(1)  j = s64[] add(i, one)  y = f32[8] exponential(x)
  ROOT r = (s64[], s64[], f32[8]) tuple(j, end, y) }
more { s = (s64[], f32[8]) parameter(0)
  done = s64[] get-tuple-element(s), index=0  all = s64[] constant(100)
  ROOT t = pred[] compare(done, all), direction=LT }
block { s = (s64[], f32[8]) parameter(0)
  done = s64[] get-tuple-element(s), index=0  x = f32[8] get-tuple-element(s), index=1
  all = s64[] constant(100)  size = s64[] constant(15)  zero = s64[] constant(0)
  rest = s64[] subtract(all, done)  end = s64[] minimum(size, rest)
  inner = (s64[], s64[], f32[8]) tuple(zero, end, x)
  w = (s64[], s64[], f32[8]) while(inner), condition=below, body=step
  y = f32[8] get-tuple-element(w), index=2  next = s64[] add(done, size)
  ROOT r = (s64[], f32[8]) tuple(next, y) }
ENTRY main { x = f32[8] parameter(0)  zero = s64[] constant(0)  s = (s64[], f32[8]) tuple(zero, x)
  ROOT w = (s64[], f32[8]) while(s), condition=more, body=block }
"""


def test_steps_of_a_loop_in_blocks_are_counted_though_the_last_block_is_shorter() -> None:
    cost = cost_analysis(parse(BLOCKS))
    assert cost["transcendentals"] == pytest.approx(100 * 8)
    assert cost["unknown trip counts"] == 0


def test_a_limit_that_the_state_hands_on_is_known_if_it_starts_as_a_number() -> None:
    always = BLOCKS.replace("minimum(size, rest)", "constant(15)")
    assert cost_analysis(parse(always))["transcendentals"] == 7 * 15 * 8


def test_a_limit_that_nobody_knows_is_unknown() -> None:
    cost = cost_analysis(parse(BLOCKS.replace("minimum(size, rest)", "popcnt(rest)")))
    assert cost["unknown trip counts"] == 1
    deep = "".join(f"t{k + 1} = s64[] add(t{k}, t{k})  " for k in range(60))
    text = BLOCKS.replace(
        "end = s64[] minimum(size, rest)", f"t0 = s64[] minimum(size, rest)  {deep} end = s64[] copy(t60)"
    )
    assert cost_analysis(parse(text.replace("copy(t60)", "add(t60, t60)")))["unknown trip counts"] == 1


def test_a_dump_says_how_often_its_loops_run() -> None:
    """Where the counter is inside of a fusion, only the compiler that made it knows."""
    unknown = LOOP.replace("n = s32[] constant(10)", "n = s32[] negate(i)")
    recorded = unknown.replace("body=body", 'body=body, backend_config={"known_trip_count":{"n":"7"}}')
    assert cost_analysis(parse(unknown))["transcendentals"] == 8
    assert cost_analysis(parse(recorded))["transcendentals"] == 7 * 8
    assert cost_analysis(parse(recorded))["unknown trip counts"] == 0


def test_who_knows_where_arrays_lie_says_what_is_updated_in_place() -> None:
    text = """ENTRY e { x = f32[100] parameter(0)  u = f32[10] parameter(1)  i = s32[] constant(0)
        ROOT d = f32[100] dynamic-update-slice(x, u, i) }"""
    assert program_cost(parse(text).entry, lambda _: True).bytes == 80
