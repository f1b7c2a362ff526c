"""Stand-ins for protocol buffers, whose lists scripts fill with `append` and `extend`, and functions that fill them.

The op functions read any object with these attributes."""

from __future__ import annotations

import enum
import sys
from collections.abc import Sequence
from typing import Any

from xlapy.hlo.attributes import Precision
from xlapy.support.errors import ArgumentError
from xlapy.xla_client.types import PaddingType


class _Proto:
    """An object with the fields of its class, each a list."""

    __slots__: tuple[str, ...] = ()

    def __init__(self) -> None:
        for field in self.__slots__:
            setattr(self, field, [])

    def __repr__(self) -> str:
        fields = ", ".join(f"{field}={getattr(self, field)!r}" for field in self.__slots__)
        return f"{type(self).__name__}({fields})"


class OpMetadata(_Proto):
    """Where an instruction comes from."""

    __slots__ = ("op_name", "op_type", "source_file", "source_line")

    def __init__(self, op_type: str = "", op_name: str = "", source_file: str = "", source_line: int = 0) -> None:
        self.op_type = op_type
        self.op_name = op_name
        self.source_file = source_file
        self.source_line = source_line


class PaddingConfigDimension(_Proto):
    __slots__ = ("edge_padding_high", "edge_padding_low", "interior_padding")

    def __init__(self) -> None:
        self.edge_padding_low = 0
        self.edge_padding_high = 0
        self.interior_padding = 0


class PaddingConfig(_Proto):
    __slots__ = ("dimensions",)
    dimensions: list[PaddingConfigDimension]


class DotDimensionNumbers(_Proto):
    __slots__ = (
        "lhs_batch_dimensions",
        "lhs_contracting_dimensions",
        "rhs_batch_dimensions",
        "rhs_contracting_dimensions",
    )
    lhs_batch_dimensions: list[int]
    lhs_contracting_dimensions: list[int]
    rhs_batch_dimensions: list[int]
    rhs_contracting_dimensions: list[int]


class ConvolutionDimensionNumbers(_Proto):
    __slots__ = (
        "input_batch_dimension",
        "input_feature_dimension",
        "input_spatial_dimensions",
        "kernel_input_feature_dimension",
        "kernel_output_feature_dimension",
        "kernel_spatial_dimensions",
        "output_batch_dimension",
        "output_feature_dimension",
        "output_spatial_dimensions",
    )

    def __init__(self) -> None:
        self.input_batch_dimension = 0
        self.input_feature_dimension = 0
        self.input_spatial_dimensions: list[int] = []
        self.kernel_input_feature_dimension = 0
        self.kernel_output_feature_dimension = 0
        self.kernel_spatial_dimensions: list[int] = []
        self.output_batch_dimension = 0
        self.output_feature_dimension = 0
        self.output_spatial_dimensions: list[int] = []


class GatherDimensionNumbers(_Proto):
    __slots__ = ("collapsed_slice_dims", "index_vector_dim", "offset_dims", "start_index_map")

    def __init__(self) -> None:
        self.offset_dims: list[int] = []
        self.collapsed_slice_dims: list[int] = []
        self.start_index_map: list[int] = []
        self.index_vector_dim = 0


class ScatterDimensionNumbers(_Proto):
    __slots__ = ("index_vector_dim", "inserted_window_dims", "scatter_dims_to_operand_dims", "update_window_dims")

    def __init__(self) -> None:
        self.update_window_dims: list[int] = []
        self.inserted_window_dims: list[int] = []
        self.scatter_dims_to_operand_dims: list[int] = []
        self.index_vector_dim = 0


class PrecisionConfig(_Proto):
    """The precision of each operand; an empty list is the default for all."""

    __slots__ = ("operand_precision",)
    operand_precision: list[Precision]
    Precision = Precision


class ReplicaGroup(_Proto):
    __slots__ = ("replica_ids",)
    replica_ids: list[int]


class ResultAccuracy(_Proto):
    """How exact the result of an elementary function has to be: kept, and not read."""

    __slots__ = ("atol", "mode", "rtol", "ulps")

    class Mode(enum.IntEnum):
        DEFAULT = 0
        HIGHEST = 1

    def __init__(self) -> None:
        self.mode = ResultAccuracy.Mode.DEFAULT
        self.atol = 0.0
        self.rtol = 0.0
        self.ulps = 0


# -- functions that fill them --------------------------------------------------------------------------------------


def make_padding_config(padding_config: PaddingConfig | Sequence[tuple[int, int, int]]) -> PaddingConfig:
    """A PaddingConfig of (low, high, interior) for each dimension."""
    if isinstance(padding_config, PaddingConfig):
        return padding_config
    config = PaddingConfig()
    for low, high, interior in padding_config:
        dimension = PaddingConfigDimension()
        dimension.edge_padding_low = low
        dimension.edge_padding_high = high
        dimension.interior_padding = interior
        config.dimensions.append(dimension)
    return config


def make_dot_dimension_numbers(dimension_numbers: Any) -> DotDimensionNumbers:
    """DotDimensionNumbers of ((lhs contracting, rhs contracting), (lhs batch, rhs batch))."""
    if isinstance(dimension_numbers, DotDimensionNumbers):
        return dimension_numbers
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = DotDimensionNumbers()
    numbers.lhs_contracting_dimensions.extend(lhs_contracting)
    numbers.rhs_contracting_dimensions.extend(rhs_contracting)
    numbers.lhs_batch_dimensions.extend(lhs_batch)
    numbers.rhs_batch_dimensions.extend(rhs_batch)
    return numbers


def make_convolution_dimension_numbers(
    dimension_numbers: ConvolutionDimensionNumbers | tuple[str, str, str] | None, num_spatial_dimensions: int
) -> ConvolutionDimensionNumbers:
    """The numbers of labels such as ("NHWC", "HWIO", "NHWC"); None is batch, features and then space.

    Spatial dimensions are in the order of the kernel's letters."""
    if isinstance(dimension_numbers, ConvolutionDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        space = "".join(chr(ord("a") + position) for position in range(num_spatial_dimensions))
        dimension_numbers = ("NC" + space, "OI" + space, "NC" + space)
    lhs, rhs, out = dimension_numbers
    letters = [letter for letter in rhs if letter not in "OI"]
    if len(letters) != num_spatial_dimensions:
        raise ArgumentError(f"{rhs!r} has {len(letters)} spatial dimensions, not {num_spatial_dimensions}")
    for labels, wanted in ((lhs, ["N", "C", *letters]), (rhs, ["O", "I", *letters]), (out, ["N", "C", *letters])):
        if sorted(labels) != sorted(wanted):
            raise ArgumentError(f"{labels!r} does not have each of {', '.join(wanted)} once")
    numbers = ConvolutionDimensionNumbers()
    numbers.input_batch_dimension = lhs.index("N")
    numbers.input_feature_dimension = lhs.index("C")
    numbers.kernel_output_feature_dimension = rhs.index("O")
    numbers.kernel_input_feature_dimension = rhs.index("I")
    numbers.output_batch_dimension = out.index("N")
    numbers.output_feature_dimension = out.index("C")
    numbers.input_spatial_dimensions.extend(map(lhs.index, letters))
    numbers.kernel_spatial_dimensions.extend(map(rhs.index, letters))
    numbers.output_spatial_dimensions.extend(map(out.index, letters))
    return numbers


def make_replica_groups(replica_groups: Sequence[Sequence[int]] | None) -> list[ReplicaGroup]:
    """One ReplicaGroup per list of process ids; None is no group, which means one of all."""
    groups = []
    for members in replica_groups or ():
        group = ReplicaGroup()
        group.replica_ids.extend(members)
        groups.append(group)
    return groups


def window_padding_type_to_pad_values(
    padding_type: PaddingType | str, lhs_dims: Sequence[int], rhs_dims: Sequence[int], window_strides: Sequence[int]
) -> list[tuple[int, int]]:
    """(low, high) for each dimension: SAME gives as many positions as elements, strides apart; VALID is no padding."""
    kind = PaddingType[padding_type.upper()] if isinstance(padding_type, str) else padding_type
    if kind is PaddingType.VALID:
        return [(0, 0)] * len(window_strides)
    pads = []
    for size, window, stride in zip(lhs_dims, rhs_dims, window_strides, strict=True):
        positions = -(-size // stride)
        missing = max((positions - 1) * stride + window - size, 0)
        pads.append((missing // 2, missing - missing // 2))
    return pads


def CurrentSourceInfoMetadata(
    op_type: str | None = None, op_name: str | None = None, skip_frames: int = 1
) -> OpMetadata:
    """Metadata that names the line of the caller, or of a caller `skip_frames - 1` frames further out."""
    frame = sys._getframe(skip_frames)
    return OpMetadata(op_type or "", op_name or "", frame.f_code.co_filename, frame.f_lineno)
