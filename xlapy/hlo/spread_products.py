"""Convolutions that are computed the other way round: each element is multiplied by the whole window, and the products
are spread over the result.

The gradient of a convolution with respect to its image is one over an array with holes. Where its result has few
features, as images have, a product for each position of the window would leave most lanes of vectors idle, and would
have to step over the holes. A product of lines of the array with all places and features of the window at once has
wide rows, and meets no hole:

    products[c, (p, q, f)] = sum over i of array[r, c, i] kernel[p, q, i, f]              for each line r
    result[s r + p + t, s' c + q + t', f] += products[c, (p, q, f)]                       inside of the result

Places are counted here so that neighbours go to neighbours. Nothing is multiplied that does not count.

Everything here is a fact about shapes and attributes, which passes and codegen share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xlapy.hlo.attributes import ConvolutionDimensionNumbers, Window
from xlapy.hlo.graph import Instruction
from xlapy.hlo.matrix_products import LEAST_PRODUCT_FEATURES, SMALLEST_CONVOLUTION, product_kind

SPREAD_KINDS = ("f32", "f64", "s32", "s64")

LEAST_INPUTS = 16  # that are summed up before products are spread
LEAST_PLACES = 16  # places and features of the window: the columns of a product
MOST_LINE_BYTES = 1 << 20  # of the products of one line, which a second-level cache should hold

BLOCK_LINES = 16
"""Lines of the result that one task makes. At its borders the products of a line are made in two parts, each narrower
than the whole."""


@dataclass(frozen=True, slots=True)
class SpreadProduct:
    """A call of the library `spread_KIND`: its numbers by name, strides in elements."""

    kind: str
    sizes: Mapping[str, int]


def spread_product(convolution: Instruction) -> SpreadProduct | None:
    """The library call that spreads the products of a convolution, or None if it is better, or only possible, without.

    That does not depend on layouts."""
    if convolution.opcode != "convolution" or not _has_wide_products(convolution):
        return None
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    lhs, rhs, result = convolution.operands[0].shape, convolution.operands[1].shape, convolution.shape
    kind = product_kind(lhs.type, rhs.type, result.type)
    if kind not in SPREAD_KINDS:
        return None
    strides, kernel_strides, result_strides = lhs.strides(), rhs.strides(), result.strides()
    sizes = {
        "images": result.dims[numbers.output_batch],
        "inputs": rhs.dims[numbers.kernel_input_feature],
        "features": rhs.dims[numbers.kernel_output_feature],
        "array_image": strides[numbers.input_batch],
        "array_input": strides[numbers.input_feature],
        "kernel_input": kernel_strides[numbers.kernel_input_feature],
        "kernel_feature": kernel_strides[numbers.kernel_output_feature],
        "result_image": result_strides[numbers.output_batch],
        "result_feature": result_strides[numbers.output_feature],
        "kernel_start": 0,
    }
    window: Window = convolution.attributes["window"]
    for number, (axis, part) in enumerate(zip(("line", "position"), window.dimensions, strict=True)):
        place = kernel_strides[numbers.kernel_spatial[number]]
        sizes["kernel_start"] += 0 if part.reversal else (part.size - 1) * place
        sizes |= {
            f"array_{axis}s": lhs.dims[numbers.input_spatial[number]],
            f"array_{axis}": strides[numbers.input_spatial[number]],
            f"kernel_{axis}s": part.size,
            f"kernel_{axis}": place if part.reversal else -place,
            f"result_{axis}s": result.dims[numbers.output_spatial[number]],
            f"result_{axis}": result_strides[numbers.output_spatial[number]],
            f"{axis}_step": part.base_dilation,
            f"{axis}_shift": part.padding_low - (part.size - 1),
        }
    return SpreadProduct(kind, sizes | _room(sizes) | _blocks(sizes))


def _room(sizes: Mapping[str, int]) -> dict[str, int]:
    """Where lines are summed up: how many positions they have there, and which of them is the first of the result."""
    shift = sizes["position_shift"]
    reached = sizes["position_step"] * (sizes["array_positions"] - 1) + shift + sizes["kernel_positions"]
    first = max(0, -shift)
    return {"room_positions": first + max(sizes["result_positions"], reached), "room_first": first}


def _blocks(sizes: Mapping[str, int]) -> dict[str, int]:
    """How many blocks an image has, and how many lines a block: about as many in each."""
    lines = sizes["result_lines"]
    even = -(-lines // -(-lines // BLOCK_LINES))
    return {"blocks": -(-lines // even), "block_lines": even}


def _has_wide_products(convolution: Instruction) -> bool:
    """An array with holes, a window of two plain dimensions, many inputs, and few features of the result."""
    window: Window = convolution.attributes["window"]
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    lhs, rhs, result = convolution.operands[0].shape, convolution.operands[1].shape, convolution.shape
    groups = convolution.attributes["feature_group_count"] * convolution.attributes["batch_group_count"]
    if not (lhs.is_static and rhs.is_static and lhs.size and rhs.size and result.size):
        return False
    is_plain = all(part.stride == part.window_dilation == 1 for part in window.dimensions)
    has_holes = any(part.base_dilation > 1 for part in window.dimensions)
    if groups != 1 or len(window.dimensions) != 2 or not (is_plain and has_holes):
        return False
    inputs, features = rhs.dims[numbers.kernel_input_feature], rhs.dims[numbers.kernel_output_feature]
    columns = rhs.size // inputs
    line_bytes = lhs.dims[numbers.input_spatial[1]] * columns * result.type.bytes
    return (
        inputs >= LEAST_INPUTS
        and features < LEAST_PRODUCT_FEATURES
        and columns >= LEAST_PLACES
        and line_bytes <= MOST_LINE_BYTES
        and lhs.size * columns >= SMALLEST_CONVOLUTION
    )
