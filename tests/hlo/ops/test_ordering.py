"""Shape rules of sort and topk."""

from __future__ import annotations

from typing import Any

import pytest

from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import TOKEN, Shape, Signature
from xlapy.support.errors import ShapeError

F32, S32, PRED = (Shape.scalar(name) for name in ("f32", "s32", "pred"))
LESS = Signature((F32, F32), PRED)
ROW = Shape.array("f32", (5,))

SORTS: list[tuple[str, Any]] = [
    ("some-inputs", ([], Signature((), PRED), 0)),
    ("array-operands", ([TOKEN], LESS, 0)),
    ("same-dims", ([ROW, Shape.array("f32", (6,))], Signature((F32,) * 4, PRED), 0)),
    ("dimension-in-range", ([ROW], LESS, 1)),
    ("dimension-in-range", ([ROW], LESS, -1)),
    ("dimension-in-range", ([F32], LESS, 0)),
    ("comparator-type", ([ROW], Signature((F32, F32), F32), 0)),
    ("comparator-type", ([ROW], Signature((F32, S32), PRED), 0)),
    ("comparator-type", ([ROW, ROW], LESS, 0)),
]


@pytest.mark.parametrize(("slug", "arguments"), SORTS)
def test_broken_sorts(slug: str, arguments: Any) -> None:
    inputs, comparator, dimension = arguments
    with pytest.raises(ShapeError) as caught:
        OPS["sort"].infer(inputs, {"dimension": dimension}, [comparator])
    assert caught.value.rule == f"sort.{slug}"


def test_every_constraint_of_sort_is_broken() -> None:
    assert set(OPS["sort"].constraints) == {slug for slug, _ in SORTS}


def test_results_of_sort() -> None:
    matrix = Shape.array("f32", (2, 5))
    assert OPS["sort"].infer([matrix], {"dimension": 0}, [LESS]) == matrix
    numbers = matrix.with_type(S32.type)
    both = OPS["sort"].infer([matrix, numbers], {"dimension": 1}, [Signature((F32, F32, S32, S32), PRED)])
    assert both == Shape.tuple([matrix, numbers])


@pytest.mark.parametrize(
    ("slug", "operand", "k"),
    [("array-operands", F32, 0), ("array-operands", Shape.array("c64", (3,)), 1), ("k-in-range", ROW, 6),
     ("k-in-range", ROW, -1)],
)  # fmt: skip
def test_broken_topks(slug: str, operand: Shape, k: int) -> None:
    with pytest.raises(ShapeError) as caught:
        OPS["topk"].infer([operand], {"k": k, "largest": True})
    assert caught.value.rule == f"topk.{slug}"


def test_results_of_topk() -> None:
    result = OPS["topk"].infer([Shape.array("f16", (3, 9))], {"k": 4, "largest": False})
    assert result == Shape.tuple([Shape.array("f16", (3, 4)), Shape.array("s32", (3, 4))])
