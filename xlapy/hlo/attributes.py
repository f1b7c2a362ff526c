"""The attribute values of instructions: frozen dataclasses and enumerations, spelled as HLO spells them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import TypeAlias


class Named(enum.Enum):
    """An enumeration whose values are HLO's spellings."""

    def __str__(self) -> str:
        return str(self.value)


class ComparisonDirection(Named):
    EQ = "EQ"
    NE = "NE"
    GE = "GE"
    GT = "GT"
    LE = "LE"
    LT = "LT"

    def swapped(self) -> ComparisonDirection:
        """The direction that compares the same with the sides exchanged."""
        return ComparisonDirection(self.value.translate(str.maketrans("GL", "LG")))

    def inverted(self) -> ComparisonDirection:
        """The direction that holds where this one does not, in a total order."""
        opposites = {"EQ": "NE", "NE": "EQ", "GE": "LT", "LT": "GE", "GT": "LE", "LE": "GT"}
        return ComparisonDirection(opposites[self.value])


class ComparisonType(Named):
    FLOAT = "FLOAT"
    TOTALORDER = "TOTALORDER"
    SIGNED = "SIGNED"
    UNSIGNED = "UNSIGNED"


class Precision(Named):
    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


class FftType(Named):
    """A transform or its inverse: of complex numbers, or of real numbers to half of their spectrum."""

    FFT = "FFT"
    IFFT = "IFFT"
    RFFT = "RFFT"
    IRFFT = "IRFFT"


class RandomAlgorithm(Named):
    """What makes random bits of a state. The default is Philox."""

    DEFAULT = "rng_default"
    THREE_FRY = "rng_three_fry"
    PHILOX = "rng_philox"


class RandomDistribution(Named):
    UNIFORM = "rng_uniform"
    NORMAL = "rng_normal"


class Transpose(Named):
    """What triangular-solve does to its matrix."""

    NO_TRANSPOSE = "NO_TRANSPOSE"
    TRANSPOSE = "TRANSPOSE"
    ADJOINT = "ADJOINT"


class FusionKind(Named):
    """How a fused computation becomes a kernel; see `kernel_plan`."""

    LOOP = "kLoop"
    INPUT = "kInput"
    OUTPUT = "kOutput"
    CUSTOM = "kCustom"


class CustomCallApiVersion(Named):
    ORIGINAL = "API_VERSION_ORIGINAL"
    STATUS_RETURNING = "API_VERSION_STATUS_RETURNING"
    STATUS_RETURNING_UNIFIED = "API_VERSION_STATUS_RETURNING_UNIFIED"
    TYPED_FFI = "API_VERSION_TYPED_FFI"


@dataclass(frozen=True, slots=True)
class PaddingDimension:
    """Padding of one dimension: elements added (negative: removed) at the edges, and between neighbours."""

    low: int = 0
    high: int = 0
    interior: int = 0


@dataclass(frozen=True, slots=True)
class SliceDimension:
    """The half-open range [start, limit) of one dimension, every `stride`-th element."""

    start: int
    limit: int
    stride: int = 1


@dataclass(frozen=True, slots=True)
class DotDimensionNumbers:
    """Which dimensions a dot contracts and which it batches over, pairwise in order."""

    lhs_contracting: tuple[int, ...] = ()
    rhs_contracting: tuple[int, ...] = ()
    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()

    def exchanged(self) -> DotDimensionNumbers:
        """The numbers of the dot of the right side by the left one."""
        return DotDimensionNumbers(self.rhs_contracting, self.lhs_contracting, self.rhs_batch, self.lhs_batch)

    def lhs_free(self, rank: int) -> tuple[int, ...]:
        """Dimensions of the left side that are neither contracted nor batched, in order."""
        return tuple(dim for dim in range(rank) if dim not in self.lhs_contracting and dim not in self.lhs_batch)

    def rhs_free(self, rank: int) -> tuple[int, ...]:
        """Dimensions of the right side that are neither contracted nor batched, in order."""
        return tuple(dim for dim in range(rank) if dim not in self.rhs_contracting and dim not in self.rhs_batch)


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """A sliding window along one dimension."""

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    reversal: bool = False

    def positions(self, size: int) -> int:
        """How many positions the window takes over a dimension of `size`."""
        dilated = 0 if size == 0 else (size - 1) * self.base_dilation + 1
        padded = dilated + self.padding_low + self.padding_high
        extent = 0 if self.size == 0 else (self.size - 1) * self.window_dilation + 1
        return 0 if padded < extent or padded <= 0 else (padded - extent) // self.stride + 1

    def places_on_elements(self, size: int) -> range:
        """The places of the window under which, at some position over a dimension of `size`, there may be an element,
        and at all others only padding. One at least, if the window has any."""
        dilated = 0 if size == 0 else (size - 1) * self.base_dilation + 1
        moved = max(self.positions(size) - 1, 0) * self.stride
        first = -((moved - self.padding_low) // self.window_dilation)
        behind = -(-(dilated + self.padding_low) // self.window_dilation)
        first = min(max(first, 0), max(self.size - 1, 0))
        return range(first, min(max(behind, first + 1), self.size))

    def cut_to(self, places: range) -> WindowDimension:
        """The window of these places alone, at the same positions."""
        if places == range(self.size):
            return self
        return replace(
            self,
            size=len(places),
            padding_low=self.padding_low - places.start * self.window_dilation,
            padding_high=self.padding_high - (self.size - places.stop) * self.window_dilation,
        )


@dataclass(frozen=True, slots=True)
class Window:
    """One `WindowDimension` per (spatial) dimension."""

    dimensions: tuple[WindowDimension, ...] = ()


NO_WINDOW = Window()
NO_WINDOW_DIMENSION = WindowDimension(1)
"""Along a dimension that the window does not slide over: each place is one element."""
"""Of arrays without dimensions: text leaves it out."""


ConvolutionSide: TypeAlias = tuple[int, int, tuple[int, ...]]
"""The dimensions of one array of a convolution: batch and feature (input and output feature of the kernel), spatial."""


@dataclass(frozen=True, slots=True)
class ConvolutionDimensionNumbers:
    """Where batch, feature and spatial dimensions lie in the operands and the result of a convolution."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]

    @staticmethod
    def of_sides(
        inputs: ConvolutionSide, kernel: ConvolutionSide, output: ConvolutionSide
    ) -> ConvolutionDimensionNumbers:
        return ConvolutionDimensionNumbers(*inputs, *kernel, *output)

    def sides(self) -> tuple[ConvolutionSide, ConvolutionSide, ConvolutionSide]:
        """Of input, kernel and output."""
        return (
            (self.input_batch, self.input_feature, self.input_spatial),
            (self.kernel_input_feature, self.kernel_output_feature, self.kernel_spatial),
            (self.output_batch, self.output_feature, self.output_spatial),
        )

    def reordered(self, *orders: tuple[int, ...]) -> ConvolutionDimensionNumbers:
        """The numbers for input, kernel and output whose dimension i was dimension `order[i]`, one order for each."""
        return ConvolutionDimensionNumbers.of_sides(
            *(
                (order.index(first), order.index(second), tuple(map(order.index, spatial)))
                for order, (first, second, spatial) in zip(orders, self.sides(), strict=True)
            )
        )


@dataclass(frozen=True, slots=True)
class GatherDimensionNumbers:
    """How index vectors and slices make up the operand and the result of a gather."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScatterDimensionNumbers:
    """How index vectors and windows make up the operands and the updates of a scatter."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    input_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Groups of process ids. Empty: all processes in one group."""

    groups: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class SourceTargetPairs:
    """(source, target) processes of a collective-permute."""

    pairs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class OutputOperandAlias:
    """The output leaf at `output_index` shares its buffer with the leaf `operand_index` of operand `operand`."""

    output_index: tuple[int, ...]
    operand: int
    operand_index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OpMetadata:
    """Where an instruction came from, in the user's terms."""

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    extra: tuple[tuple[str, str], ...] = field(default=())

    @property
    def is_empty(self) -> bool:
        return self == OpMetadata()

    def location(self) -> str:
        """`model.py:41`, or the empty string where unknown."""
        return f"{self.source_file}:{self.source_line}" if self.source_file else ""
