"""XlaBuilder and XlaComputation: what build() takes, what it leaves alone, and what instructions carry."""

from __future__ import annotations

import linecache
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xlapy import ops
from xlapy.builder import XlaBuilder, XlaComputation, XlaOp, pass_over
from xlapy.hlo.graph import InputOutputAlias
from xlapy.hlo.shape import Shape
from xlapy_runtime.errors import ArgumentError, ShapeError

VECTOR = Shape.array(np.float32, (4,))


def opcodes(computation: XlaComputation) -> list[str]:
    return [instruction.opcode for instruction in computation.computation]


def started(name: str = "b") -> tuple[XlaBuilder, XlaOp]:
    builder = XlaBuilder(name)
    return builder, builder.parameter(0, VECTOR, "x")


def test_the_last_op_is_the_root() -> None:
    builder, x = started()
    ops.Neg(x)
    ops.Exp(x)
    assert builder.build().computation.root.opcode == "exponential"
    assert builder.Build().program_shape == builder.get_program_shape()


def test_a_root_may_be_given() -> None:
    builder, x = started()
    y = ops.Neg(x)
    ops.Exp(x)
    computation = builder.build(y)
    assert opcodes(computation) == ["parameter", "negate"]
    assert str(computation.program_shape) == "(f32[4]) -> f32[4]"


def test_a_root_may_be_a_structure() -> None:
    builder, x = started()
    assert str(builder.build([x, (x + 1, x)]).program_shape.result) == "(f32[4], (f32[4], f32[4]))"


def test_an_empty_builder_builds_nothing() -> None:
    with pytest.raises(ArgumentError, match="nothing was recorded"):
        XlaBuilder("empty").build()


def test_dead_ops_are_dropped_but_parameters_and_effects_stay() -> None:
    builder, x = started()
    builder.parameter(1, VECTOR)
    ops.Exp(ops.Sin(x))
    ops.OutfeedWithToken(x, ops.CreateToken(builder))
    computation = builder.build(ops.Neg(x))
    assert opcodes(computation) == ["parameter", "parameter", "after-all", "outfeed", "negate"]


def test_a_built_computation_does_not_change() -> None:
    builder, x = started()
    y = ops.Neg(x)
    first = builder.build(y)
    second = builder.build(ops.Exp(y))
    assert opcodes(first) == ["parameter", "negate"]
    assert opcodes(second) == ["parameter", "negate", "exponential"]
    assert first.computation.root is not second.computation.root


def test_what_is_called_is_a_copy() -> None:
    inner_builder, y = started("inner")
    inner = inner_builder.build(ops.Neg(y))
    builder, x = started()
    outer = builder.build(ops.Call(builder, inner, [ops.Call(builder, inner, [x])]))
    called = outer.module.computations()[0]
    assert called is not inner.computation
    assert called.name == "inner"
    assert len(outer.module.computations()) == 2


def test_computations_of_one_name_get_names_of_their_own() -> None:
    parts = []
    for function in (ops.Neg, ops.Exp):
        inner, y = started("same")
        parts.append(inner.build(function(y)))
    builder, x = started("same")
    outer = builder.build(ops.Call(builder, parts[0], [ops.Call(builder, parts[1], [x])]))
    assert sorted(computation.name for computation in outer.module.computations()) == ["same", "same.1", "same.2"]


def test_one_computation_in_two_builders() -> None:
    inner_builder, y = started("inner")
    inner = inner_builder.build(y * 2)
    for name in ("one", "two"):
        builder, x = started(name)
        assert builder.build(ops.Call(builder, inner, [x])).program_shape.result == VECTOR


def test_parameters_are_numbered_without_gaps() -> None:
    builder = XlaBuilder("gap")
    builder.parameter(1, VECTOR)
    with pytest.raises(ShapeError, match="no parameter 0"):
        builder.build()
    builder.parameter(0, Shape.scalar(np.int32))
    assert str(builder.build().program_shape) == "(s32[], f32[4]) -> s32[]"


def test_a_parameter_number_is_used_once() -> None:
    builder, _ = started()
    with pytest.raises(ShapeError, match=r"parameter 0 .*already"):
        builder.parameter(0, VECTOR)
    with pytest.raises(ShapeError, match="not a parameter number"):
        builder.parameter(-1, VECTOR)


def test_names_are_made_fit_for_text() -> None:
    builder = XlaBuilder("my model!")
    x = builder.parameter(0, VECTOR, "a b")
    assert builder.build(x).name == "my_model_"
    assert x.instruction.name == "a_b"


def test_asking() -> None:
    builder, x = started()
    constant = builder.constant(2) + builder.iota(np.int32, 3)
    assert builder.GetShape(x) == builder.get_shape(x) == VECTOR
    assert builder.is_constant(constant)
    assert not builder.IsConstant(x + 1)
    assert not builder.is_constant(ops.ReplicaId(builder))
    assert str(builder.GetProgramShape(constant)) == "(f32[4]) -> s32[3]"


def test_instructions_know_the_users_line() -> None:
    _, x = started()
    metadata = (x + 1).instruction.metadata
    assert metadata.source_file == __file__
    assert "metadata = (x + 1)" in linecache.getline(__file__, metadata.source_line)
    assert not (XlaBuilder("fast", locations=False).constant(1)).instruction.metadata.source_file


def test_a_framework_is_no_user(tmp_path: Path) -> None:
    (tmp_path / "framework.py").write_text("def layer(x, h):\n    return x + h\n")
    layer: Any = runpy.run_path(str(tmp_path / "framework.py"))["layer"]
    _, x = started()
    assert layer(x, 1).instruction.metadata.source_file == str(tmp_path / "framework.py")
    pass_over(str(tmp_path))
    assert layer(x, 1).instruction.metadata.source_file == __file__
    with pytest.raises(ShapeError, match=r"test_building.py:\d+: layer\(x, np.float64\(1\)\)"):
        layer(x, np.float64(1))


def test_metadata_of_the_user() -> None:
    builder, x = started()
    builder.set_op_metadata(SimpleNamespace(op_type="layer", op_name="dense/add"))
    inside = (x + 1).instruction.metadata
    builder.clear_op_metadata()
    outside = (x + 1).instruction.metadata
    assert (inside.op_type, inside.op_name, inside.source_file) == ("layer", "dense/add", __file__)
    assert not outside.op_type


def test_sharding_and_frontend_attributes_are_carried() -> None:
    builder, x = started()
    builder.set_sharding("{replicated}")
    builder.set_frontend_attributes({"key": "value"})
    y = ops.Neg(x)
    builder.clear_sharding()
    builder.clear_frontend_attributes()
    z = ops.Neg(y)
    module = builder.build(z).module
    _, first, second = module.entry
    assert first.extra == {"sharding": "{replicated}", "frontend_attributes": '{key="value"}'}
    assert not second.extra


def test_aliases() -> None:
    builder, x = started()
    builder.setup_alias((0,), 0, ())
    aliased = builder.build([x + 1, x])
    assert aliased.module.config.aliases == (InputOutputAlias((0,), 0, ()),)
    with pytest.raises(ShapeError, match="cannot share their memory"):
        builder.build(x + 1)
    builder.setup_alias((1,), 7)
    with pytest.raises(ShapeError, match=r"builder\.setup_alias\(\(1,\), 7\)"):
        builder.build([x + 1, x])


@pytest.mark.parametrize("second", [((0,), 1), ((1,), 0)], ids=["one output", "one parameter"])
def test_nothing_is_in_two_aliases(second: tuple[tuple[int, ...], int]) -> None:
    builder, x = started()
    y = ops.Parameter(builder, 1, x.shape)
    builder.setup_alias((0,), 0)
    builder.setup_alias(*second)
    with pytest.raises(ShapeError, match=r"shares its memory already(.|\n)*builder\.setup_alias\(\*second\)"):
        builder.build([x + y, x - y])


def test_an_error_shows_the_users_source() -> None:
    _, x = started()
    with pytest.raises(ShapeError) as caught:
        ops.ConcatInDim(x.builder, [x, ops.Reshape(x, (2, 2))], 0)
    headline, place = str(caught.value).splitlines()
    assert headline == ("concatenate(f32[4], f32[2,2]): f32[2,2] and f32[4] have different ranks  [Concatenate.B2]")
    assert place.endswith(": ops.ConcatInDim(x.builder, [x, ops.Reshape(x, (2, 2))], 0)")


def test_ten_thousand_instructions() -> None:
    builder, x = started()
    for _ in range(10_000):
        x = x + x
    computation = builder.build(x)
    assert len(computation.computation) == 10_001


def test_text_of_a_computation() -> None:
    builder, x = started("axpy")
    computation = builder.build(2 * x + np.arange(100, dtype=np.float32)[:4])
    assert computation.as_hlo_text().startswith("HloModule axpy")
    assert "x = f32[4] parameter(0)" in computation.as_hlo_text()
    assert computation.as_hlo_module() is computation.module


def test_large_constants_are_elided_in_text() -> None:
    builder = XlaBuilder("large")
    computation = builder.build(builder.constant(np.arange(100)))
    assert "99" not in computation.as_hlo_text()
    assert "99" in computation.as_hlo_text(print_large_constants=True)
