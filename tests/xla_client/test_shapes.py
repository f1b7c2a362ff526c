"""Shapes, element types and proto stand-ins."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from xlapy import ParseError, ShapeError, xla_client
from xlapy.hlo.element_types import ALL
from xlapy.hlo.proto.shapes import NUMBERS
from xlapy.support.errors import ArgumentError
from xlapy.xla_client import PaddingType, PrimitiveType, Shape


def test_a_shape_answers_by_methods() -> None:
    shape = Shape.array_shape(PrimitiveType.F32, (2, 3))
    assert (shape.rank(), shape.dimensions()) == (2, (2, 3))
    assert shape.xla_element_type() is PrimitiveType.F32
    assert shape.element_type() == shape.numpy_dtype() == np.float32
    assert shape.is_array() and shape.is_static() and not shape.is_tuple()
    assert shape.layout().minor_to_major() == (1, 0)
    assert repr(shape) == "f32[2,3]{1,0}"


@pytest.mark.parametrize("text", ["f32[2,3]{1,0}", "f32[2,3]{0,1}", "(s32[], pred[4]{0})", "f32[<=8]{0}", "token[]"])
def test_a_shape_is_read_from_its_text(text: str) -> None:
    assert repr(Shape(text)) == text
    assert Shape(repr(Shape(text))) == Shape(text)


def test_no_layout_is_the_row_major_one() -> None:
    assert Shape("f32[2,3]") == Shape("f32[2,3]{1,0}")
    assert hash(Shape("f32[2,3]")) == hash(Shape("f32[2,3]{1,0}"))
    assert Shape("f32[2,3]") != Shape("f32[2,3]{0,1}")


def test_text_behind_a_shape_is_refused() -> None:
    with pytest.raises(ArgumentError, match="something else"):
        Shape("f32[2] f32[3]")


def test_tuples_and_tokens() -> None:
    shape = Shape.tuple_shape([Shape.scalar_shape(np.dtype(np.int32)), Shape.token_shape()])
    assert shape.is_tuple() and shape.leaf_count() == 2
    assert [part.is_token() for part in shape.tuple_shapes()] == [False, True]
    assert shape.numpy_dtype() == np.object_
    assert shape.xla_element_type() is PrimitiveType.TUPLE
    with pytest.raises(ArgumentError, match="not an array"):
        shape.dimensions()
    with pytest.raises(ArgumentError, match="not a tuple"):
        shape.tuple_shapes()[0].tuple_shapes()


def test_dimensions_become_dynamic() -> None:
    shape = Shape.array_shape(np.dtype(np.float32), (4, 2), dynamic_dimensions=[True, False])
    assert shape.is_dynamic_dimension(0) and shape.is_dynamic()
    shape.set_dynamic_dimension(0, False)
    assert shape == Shape("f32[4,2]")


def test_a_wrong_layout_is_refused() -> None:
    with pytest.raises(ShapeError, match="permutation"):
        Shape.array_shape(np.dtype(np.float32), (2, 3), [0, 2])


@pytest.mark.parametrize("text", ["f32[2,3]{1,0}", "f32[2,3]{0,1}", "(s32[], pred[4]{0}, token[])", "f32[<=8]{0}"])
def test_shapes_are_serialized(text: str) -> None:
    shape = Shape(text)
    assert Shape(shape.to_serialized_proto()) == shape
    program = xla_client.ProgramShape([shape, Shape("f32[]")], shape, ["x"])
    again = xla_client.ProgramShape.from_serialized_proto(program.to_serialized_proto())
    assert again == program and repr(again) == repr(program)


def test_a_serialized_shape_has_known_bytes() -> None:
    """f32[2]: element type 11, one dimension, not dynamic, one dimension in the layout."""
    assert Shape(b"\x10\x0b\x1a\x01\x02") == Shape("f32[2]")
    assert Shape("f32[2]").to_serialized_proto() == b"\x10\x0b\x1a\x01\x02\x2a\x03\x0a\x01\x00\x32\x01\x00"
    with pytest.raises(ParseError, match="number of no element type"):
        Shape(b"\x10\x63")


def test_shapes_of_values() -> None:
    value = (np.zeros((2, 3), np.float32), (np.int32(1), np.zeros(0, ml_dtypes.bfloat16)))
    assert xla_client.shape_from_pyval(value) == Shape("(f32[2,3], (s32[], bf16[0]))")
    with pytest.raises(ArgumentError, match="dtype"):
        xla_client.shape_from_pyval(1.0)


def test_program_shapes_print_names() -> None:
    shape = xla_client.ProgramShape([Shape("f32[4]"), Shape("f32[]")], Shape("f32[4]"), ["x"])
    assert repr(shape) == "(x: f32[4], parameter: f32[]) -> f32[4]"


@pytest.mark.parametrize(("name", "etype"), sorted(xla_client.DTYPE_TO_XLA_ELEMENT_TYPE.items()))
def test_element_types_and_dtypes_correspond(name: str, etype: PrimitiveType) -> None:
    dtype = xla_client.XLA_ELEMENT_TYPE_TO_DTYPE[etype]
    assert str(dtype) == name
    assert xla_client.dtype_to_etype(dtype) is etype


def test_lists_of_protos_are_lists() -> None:
    numbers = xla_client.make_dot_dimension_numbers((([1], [0]), ([], [])))
    numbers.lhs_batch_dimensions.append(0)
    assert numbers.lhs_batch_dimensions == [0]
    assert numbers.rhs_batch_dimensions == []
    assert [group.replica_ids for group in xla_client.make_replica_groups([[0, 1], [2]])] == [[0, 1], [2]]
    assert xla_client.make_replica_groups(None) == []


def test_shardings_print_as_text() -> None:
    tiled = xla_client.OpSharding()
    tiled.type = xla_client.OpSharding.Type.OTHER
    tiled.tile_assignment_dimensions.extend([2, 1])
    tiled.tile_assignment_devices.extend([0, 1])
    assert str(tiled) == "{devices=[2,1]0,1}"
    both = xla_client.OpSharding()
    both.type = xla_client.OpSharding.Type.TUPLE
    both.tuple_shardings.extend([tiled, xla_client.OpSharding()])
    assert str(both) == "{{devices=[2,1]0,1}, {replicated}}"
    single = xla_client.OpSharding()
    single.type = xla_client.OpSharding.Type.MAXIMAL
    single.tile_assignment_devices.append(1)
    assert str(single) == "{maximal device=1}"


def test_padding_configurations() -> None:
    config = xla_client.make_padding_config([(1, 2, 0), (0, -1, 3)])
    first, second = config.dimensions
    assert (first.edge_padding_low, first.edge_padding_high, first.interior_padding) == (1, 2, 0)
    assert (second.edge_padding_low, second.edge_padding_high, second.interior_padding) == (0, -1, 3)


def test_convolution_numbers_follow_the_letters_of_the_kernel() -> None:
    numbers = xla_client.make_convolution_dimension_numbers(("NWHC", "HWIO", "NHWC"), 2)
    assert (numbers.input_batch_dimension, numbers.input_feature_dimension) == (0, 3)
    assert numbers.input_spatial_dimensions == [2, 1]
    assert numbers.kernel_spatial_dimensions == [0, 1]
    assert (numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension) == (2, 3)
    default = xla_client.make_convolution_dimension_numbers(None, 1)
    assert (default.kernel_output_feature_dimension, default.kernel_spatial_dimensions) == (0, [2])
    with pytest.raises(ArgumentError, match="spatial"):
        xla_client.make_convolution_dimension_numbers(("NHWC", "HWIO", "NHWC"), 1)


@pytest.mark.parametrize(
    ("padding", "pads"), [(PaddingType.SAME, [(1, 1), (0, 1)]), ("VALID", [(0, 0), (0, 0)]), ("same", [(1, 1), (0, 1)])]
)
def test_padding_types_give_pairs(padding: PaddingType | str, pads: list[tuple[int, int]]) -> None:
    assert xla_client.window_padding_type_to_pad_values(padding, (5, 4), (3, 3), (1, 2)) == pads


def test_metadata_names_the_line_of_the_caller() -> None:
    metadata = xla_client.CurrentSourceInfoMetadata("add", "sum")
    assert (metadata.op_type, metadata.op_name) == ("add", "sum")
    assert metadata.source_file == __file__


def test_shardings_are_values_too() -> None:
    tiled = xla_client.HloSharding.iota_tile((2, 2), (2, 2), (1, 0))
    assert repr(tiled) == "{devices=[2,2]<=[2,2]T(1,0)}"
    assert tiled.is_tiled() and tiled.tile_assignment_devices() == [0, 2, 1, 3]
    assert (tiled.num_devices(), tiled.num_dimensions()) == (4, 2)
    assert xla_client.HloSharding.from_proto(tiled.to_proto()) == tiled
    assert hash(xla_client.HloSharding.from_string(repr(tiled))) == hash(tiled)
    kinds = xla_client.HloSharding
    assert kinds.replicate().is_replicated() and kinds.manual().is_manual() and kinds.unknown().is_unknown()
    both = kinds.tuple_sharding(Shape("(f32[2], s32[])"), [tiled, kinds.unreduced()])
    assert both.tuple_elements()[1].is_unreduced()
    with pytest.raises(ArgumentError, match="2 leaves, 1 shardings"):
        kinds.tuple_sharding(Shape("(f32[2], s32[])"), [tiled])


def test_shardings_are_serialized() -> None:
    sharding = xla_client.HloSharding.from_string("{devices=[1,2]0,1 last_tile_dim_replicate}").to_proto()
    again = xla_client.OpSharding()
    again.ParseFromString(sharding.SerializeToString())
    assert again == sharding == again.clone() and str(again) == str(sharding)
    with pytest.raises(ParseError, match="kind of sharding"):
        again.ParseFromString(b"\x08\x63")


def test_shardings_with_devices() -> None:
    replicated = xla_client.HloSharding.replicate()
    assert "replicated" in repr(xla_client.GSPMDSharding([], replicated.to_proto()))
    assert xla_client.GSPMDSharding([], replicated).hlo_sharding == replicated
    for sharding in (xla_client.SingleDeviceSharding("d"), xla_client.NamedSharding("mesh", "spec")):
        assert isinstance(sharding, xla_client.Sharding)


def test_indices_and_accuracies_are_values() -> None:
    assert xla_client.ShapeIndex((1, 0)) == (1, 0)
    assert xla_client.ResultAccuracy().mode == xla_client.ResultAccuracy.Mode.DEFAULT
    assert xla_client.PjRtLayout([1, 0])._xla_layout() == xla_client.Layout([1, 0])


def test_element_types_have_the_numbers_of_the_messages() -> None:
    assert {element_type.name.upper(): NUMBERS[element_type.name] for element_type in ALL} == {
        etype.name: int(etype) for etype in xla_client.DTYPE_TO_XLA_ELEMENT_TYPE.values()
    }
