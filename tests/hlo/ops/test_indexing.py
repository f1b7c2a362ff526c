"""Shape rules of gather and scatter: a row breaks each constraint; random dimension numbers infer their shapes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.support.dimension_numbers import Windows, windows
from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import TOKEN, Shape, Signature
from xlapy.support.errors import ShapeError

SCALAR = Shape.scalar("f32")
ADD = Signature((SCALAR, SCALAR), SCALAR)


def f32(*dims: int) -> Shape:
    return Shape.array("f32", dims)


def s32(*dims: int) -> Shape:
    return Shape.array("s32", dims)


def infer_gather(operand: Shape, indices: Shape, sizes: tuple[int, ...], *numbers: Any) -> Shape:
    attributes = {"dimension_numbers": GatherDimensionNumbers(*numbers), "slice_sizes": sizes}
    return OPS["gather"].infer([operand, indices], attributes)


GATHERS: list[tuple[str, Any]] = [
    ("array-operands", (TOKEN, s32(5, 1), (), (), (), (), 0)),
    ("index-type", (f32(4, 3), f32(5, 1), (1, 3), (1,), (0,), (0,), 1)),
    ("index-vector-dim", (f32(4, 3), s32(5, 1), (1, 3), (1,), (0,), (0,), 3)),
    ("one-dim-per-index", (f32(4, 3), s32(5, 2), (1, 3), (1,), (0,), (0,), 1)),
    ("one-dim-per-index", (f32(4, 3), s32(5), (1, 3), (1,), (0,), (0, 1), 1)),
    ("start-index-map-unique", (f32(4, 3), s32(5, 2), (1, 3), (1,), (0,), (0, 0), 1)),
    ("start-index-map-in-range", (f32(4, 3), s32(5, 1), (1, 3), (1,), (0,), (2,), 1)),
    ("collapsed-in-range", (f32(4, 3), s32(5, 1), (1, 3), (1,), (2,), (0,), 1)),
    ("collapsed-ascending", (f32(4, 3), s32(5, 1), (1, 1), (), (1, 0), (0,), 1)),
    ("collapsed-ascending", (f32(4, 3), s32(5, 1), (1, 1), (), (0, 0), (0,), 1)),
    ("batching-dims", (f32(4, 3), s32(5, 1), (1, 3), (1,), (), (1,), 1, (0,), (0,))),
    ("batching-dims", (f32(4, 3), s32(4, 1), (1, 3), (1,), (), (0,), 1, (0,), (0,))),
    ("batching-dims", (f32(4, 3), s32(4, 1), (1, 3), (1,), (), (1,), 1, (0,), (1,))),
    ("batching-dims", (f32(4, 3), s32(4, 1), (1, 3), (1,), (), (1,), 1, (0,), ())),
    ("batching-dims", (f32(4, 3), s32(4, 1), (1, 3), (1,), (), (1,), 1, (2,), (0,))),
    ("rank-adds-up", (f32(4, 3), s32(5, 1), (1, 3), (1, 2), (0,), (0,), 1)),
    ("sizes-count", (f32(4, 3), s32(5, 1), (1,), (1,), (0,), (0,), 1)),
    ("slice-sizes", (f32(4, 3), s32(5, 1), (1, 4), (1,), (0,), (0,), 1)),
    ("slice-sizes", (f32(4, 3), s32(5, 1), (1, -1), (1,), (0,), (0,), 1)),
    ("collapsed-size", (f32(4, 3), s32(5, 1), (2, 3), (1,), (0,), (0,), 1)),
    ("offset-ascending", (f32(4, 3), s32(5, 1), (1, 3), (1, 0), (), (0,), 1)),
    ("offset-ascending", (f32(4, 3), s32(5, 1), (1, 3), (1, 1), (), (0,), 1)),
    ("offset-in-range", (f32(4, 3), s32(5, 1), (1, 3), (2,), (0,), (0,), 1)),
]


@pytest.mark.parametrize(("slug", "arguments"), GATHERS, ids=lambda value: value if isinstance(value, str) else "")
def test_broken_gathers(slug: str, arguments: Any) -> None:
    with pytest.raises(ShapeError) as caught:
        infer_gather(*arguments)
    assert caught.value.rule == f"gather.{slug}"


def infer_scatter(inputs: list[Shape], indices: Shape, updates: list[Shape], region: Signature, *numbers: Any) -> Shape:
    attributes = {"dimension_numbers": ScatterDimensionNumbers(*numbers)}
    return OPS["scatter"].infer([*inputs, indices, *updates], attributes, [region])


ROWS = ((1,), (0,), (0,), 1)
PAIR = Signature((SCALAR,) * 4, Shape.tuple([SCALAR, SCALAR]))

SCATTERS: list[tuple[str, Any]] = [
    ("some-inputs", ([], s32(5, 1), [], ADD, *ROWS)),
    ("array-operands", ([TOKEN], s32(5, 1), [f32(5, 3)], ADD, *ROWS)),
    ("same-dims", ([f32(4, 3), f32(4, 4)], s32(5, 1), [f32(5, 3)] * 2, PAIR, *ROWS)),
    ("same-update-dims", ([f32(4, 3)] * 2, s32(5, 1), [f32(5, 3), f32(5, 2)], PAIR, *ROWS)),
    ("same-types", ([f32(4, 3)], s32(5, 1), [s32(5, 3)], ADD, *ROWS)),
    ("index-type", ([f32(4, 3)], f32(5, 1), [f32(5, 3)], ADD, *ROWS)),
    ("index-vector-dim", ([f32(4, 3)], s32(5, 1), [f32(5, 3)], ADD, (1,), (0,), (0,), 3)),
    ("one-dim-per-index", ([f32(4, 3)], s32(5, 2), [f32(5, 3)], ADD, *ROWS)),
    ("scatter-dims-unique", ([f32(4, 3)], s32(5, 2), [f32(5, 3)], ADD, (1,), (0,), (0, 0), 1)),
    ("scatter-dims-in-range", ([f32(4, 3)], s32(5, 1), [f32(5, 3)], ADD, (1,), (0,), (2,), 1)),
    ("inserted-ascending", ([f32(4, 3)], s32(5, 1), [f32(5)], ADD, (), (1, 0), (0,), 1)),
    ("inserted-in-range", ([f32(4, 3)], s32(5, 1), [f32(5, 3)], ADD, (1,), (2,), (0,), 1)),
    ("batching-dims", ([f32(4, 3)], s32(5, 1), [f32(5, 3)], ADD, (1,), (), (1,), 1, (0,), (0,))),
    ("batching-dims", ([f32(4, 3)], s32(4, 1), [f32(4, 3)], ADD, (1,), (0,), (1,), 1, (0,), (0,))),
    ("rank-adds-up", ([f32(4, 3)], s32(5, 1), [f32(5, 3)], ADD, (1,), (), (0,), 1)),
    ("update-rank", ([f32(4, 3)], s32(5, 1), [f32(5, 3, 1)], ADD, *ROWS)),
    ("window-ascending", ([f32(4, 3)], s32(1), [f32(3, 3)], ADD, (1, 0), (), (0,), 0)),
    ("window-in-range", ([f32(4, 3)], s32(5, 1), [f32(5, 3)], ADD, (2,), (0,), (0,), 1)),
    ("window-fits", ([f32(4, 3)], s32(5, 1), [f32(5, 4)], ADD, *ROWS)),
    ("scatter-sizes", ([f32(4, 3)], s32(5, 1), [f32(6, 3)], ADD, *ROWS)),
    ("computation-type", ([f32(4, 3)], s32(5, 1), [f32(5, 3)], PAIR, *ROWS)),
]


@pytest.mark.parametrize(("slug", "arguments"), SCATTERS, ids=lambda value: value if isinstance(value, str) else "")
def test_broken_scatters(slug: str, arguments: Any) -> None:
    with pytest.raises(ShapeError) as caught:
        infer_scatter(*arguments)
    assert caught.value.rule == f"scatter.{slug}"


@pytest.mark.parametrize(("name", "rows"), [("gather", GATHERS), ("scatter", SCATTERS)])
def test_every_constraint_is_broken(name: str, rows: list[tuple[str, Any]]) -> None:
    assert set(OPS[name].constraints) == {slug for slug, _ in rows}


@settings(max_examples=80, deadline=None)
@given(windows())
def test_shapes_of_random_windows(case: Windows) -> None:
    operand, indices = f32(*case.operand), s32(*case.indices)
    attributes: dict[str, Any] = {"dimension_numbers": case.gather, "slice_sizes": case.sizes}
    assert OPS["gather"].infer([operand, indices], attributes) == f32(*case.all_windows)
    updates = f32(*case.all_windows)
    attributes = {"dimension_numbers": case.scatter}
    assert OPS["scatter"].infer([operand, indices, updates], attributes, [ADD]) == operand
    pair = OPS["scatter"].infer([operand, operand, indices, updates, updates], attributes, [PAIR])
    assert pair == Shape.tuple([operand, operand])
