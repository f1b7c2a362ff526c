"""Random convolutions and both of their gradients: any windows, groups, and orders of dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tests.e2e.random_kernels import Array, chance, error_of, pick, whole_numbers
from tests.support.native import record
from tests.support.surroundings import Case
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import ConvolutionDimensionNumbers
from xlapy.hlo.element_types import ElementType

TYPES = (
    *([et.F32] * 6 + [et.F64] * 2 + [et.BF16, et.F16, et.S8, et.S32, et.C64, et.F8E4M3FN]),
    *(et.U8, et.S16, et.C128, et.PRED),
)
WIDER = {et.BF16: et.F32, et.F16: et.F32, et.F8E4M3FN: et.F32, et.S8: et.S32, et.U8: et.U32}
MOST = 3_000_000  # steps

GROUPS = (*[1] * 8, 2, 3, 4, 5, 8, 16, 32, 40)
FEATURES = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 32, 64)
OUTPUTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17, 24, 32, 33, 48, 64, 65)
OF_A_GROUP = (1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 12, 16)
FEW, MANY_GROUPS = (1, 1, 2, 2, 3, 4, 8), (8, 16, 16, 24, 32, 40, 64)
IMAGES = (1, 1, 2, 3, 4, 8, 9)
EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 20, 27, 28, 29, 31, 32, 33, 40)
WINDOWS = (1, 1, 2, 3, 3, 3, 4, 5, 7)
RARELY_DILATED = (*[1] * 8, 2, 3)

Forms = tuple[str, str, str]
FEATURES_LAST = ("b*f", "*io", "b*f")
FORMS: tuple[Forms, ...] = (FEATURES_LAST, ("bf*", "oi*", "bf*"), ("f*b", "i*o", "*bf"), ("b*f", "*io", "bf*"))
BEHIND = ("nothing", "nothing", "nothing", "added", "limited")


@dataclass(frozen=True)
class Side:
    """How windows lie along one dimension of images."""

    extent: int
    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    dilation: int = 1
    window_dilation: int = 1
    is_reversed: bool = False

    @property
    def window(self) -> int:
        return (self.size - 1) * self.window_dilation + 1

    @property
    def positions(self) -> int:
        padded = (self.extent - 1) * self.dilation + 1 + self.low + self.high
        return (padded - self.window) // self.stride + 1 if padded >= self.window else 0

    @property
    def stretched(self) -> int:
        """From the beginning of the first window to that of the last one, inclusive."""
        return (self.positions - 1) * self.stride + 1


@dataclass(frozen=True)
class Convolution:
    """`features` are those that a group sees, `outputs` those that it makes. Forms name dimensions in order: images
    (b), features (f, i), outputs (o), and the number of a side."""

    type: ElementType
    result: ElementType
    images: int
    features: int
    outputs: int
    sides: tuple[Side, ...]
    groups: int = 1
    image_groups: int = 1
    forms: Forms = FEATURES_LAST
    behind: str = "nothing"

    @property
    def work(self) -> int:
        steps = math.prod(side.positions * side.size for side in self.sides)
        return self.images * self.features * self.outputs * self.groups * steps

    @property
    def image_dims(self) -> list[int]:
        features = self.features * self.groups
        return self._dims(self.forms[0], {"b": self.images * self.image_groups, "f": features}, "extent")

    @property
    def kernel_dims(self) -> list[int]:
        outputs = self.outputs * self.groups * self.image_groups
        return self._dims(self.forms[1], {"i": self.features, "o": outputs}, "size")

    @property
    def result_dims(self) -> list[int]:
        outputs = self.outputs * self.groups * self.image_groups
        return self._dims(self.forms[2], {"b": self.images, "f": outputs}, "positions")

    def _dims(self, form: str, sizes: dict[str, int], of_sides: str) -> list[int]:
        return [sizes[name] if name in sizes else getattr(self.sides[int(name)], of_sides) for name in form]

    def __call__(self, images: XlaOp, kernel: XlaOp, added: XlaOp) -> XlaOp:
        result = ops.ConvGeneralDilated(
            images,
            kernel,
            [side.stride for side in self.sides],
            [(side.low, side.high) for side in self.sides],
            [side.dilation for side in self.sides],
            [side.window_dilation for side in self.sides],
            self._numbers(),
            self.groups,
            self.image_groups,
            preferred_element_type=self.result.dtype,
            window_reversal=[side.is_reversed for side in self.sides],
        )
        if self.behind == "added" and self.result.kind != "pred":
            return result + added
        if self.behind == "limited" and not self.result.is_complex:
            return ops.Max(result, added)
        return result

    def _numbers(self) -> ConvolutionDimensionNumbers:
        image, kernel, result = self.forms
        sides = [str(number) for number in range(len(self.sides))]
        return ConvolutionDimensionNumbers(
            *(image.index("b"), image.index("f"), tuple(map(image.index, sides))),
            *(kernel.index("i"), kernel.index("o"), tuple(map(kernel.index, sides))),
            *(result.index("b"), result.index("f"), tuple(map(result.index, sides))),
        )


def random_convolution(random: np.random.Generator) -> Case:
    return _case(random, _convolution(random, is_plain=False))


def random_gradient_of_kernel(random: np.random.Generator) -> Case:
    return _case(random, gradient_of_kernel(_convolution(random, is_plain=True)))


def random_gradient_of_images(random: np.random.Generator) -> Case:
    return _case(random, gradient_of_images(_convolution(random, is_plain=True)))


def random_convolution_in_groups(random: np.random.Generator) -> Case:
    """Of many groups with few features each, which lie side by side; or one of its gradients."""
    forward = _convolution(random, is_plain=True)
    grouped = replace(
        forward,
        images=pick(random, IMAGES[:4]),
        features=pick(random, FEW),
        outputs=pick(random, FEW),
        groups=pick(random, MANY_GROUPS),
        image_groups=1,
        forms=_forms_of(FEATURES_LAST, len(forward.sides)),
    )
    return _case(
        random, pick(random, (lambda same: same, gradient_of_kernel, gradient_of_images))(_within_work(grouped))
    )


def gradient_of_kernel(forward: Convolution) -> Convolution:
    """Images and what the loss is by their results make what it is by the kernel: features are what images were, and
    the other way round, and windows are as large as results. (Of nothing there is none.)"""
    if not all(side.positions for side in forward.sides):
        return forward
    images, kernel, result = forward.forms
    return Convolution(
        forward.type,
        forward.result,
        images=forward.features,
        features=forward.images,
        outputs=forward.outputs,
        sides=tuple(map(_side_of_kernel, forward.sides)),
        image_groups=forward.groups,
        forms=(_renamed(images, "bf", "fb"), _renamed(result, "bf", "io"), _renamed(kernel, "io", "bf")),
    )


def _side_of_kernel(side: Side) -> Side:
    reach = side.stretched + side.window - 1
    return Side(
        side.extent,
        side.positions,
        side.window_dilation,
        side.low,
        reach - side.extent - side.low,
        window_dilation=side.stride,
    )


def gradient_of_images(forward: Convolution) -> Convolution:
    """The same by the images: results, with zeros between them, under windows the other way round. (The kernel of
    several groups is put in order first.)"""
    if not all(side.positions for side in forward.sides):
        return forward
    images, kernel, result = forward.forms
    return replace(
        forward,
        features=forward.outputs,
        outputs=forward.features,
        sides=tuple(map(_side_of_images, forward.sides)),
        forms=(result, _renamed(kernel, "io", "oi") if forward.groups == 1 else kernel, images),
    )


def _renamed(form: str, names: str, others: str) -> str:
    return form.translate(str.maketrans(names, others))


def _side_of_images(side: Side) -> Side:
    low = side.window - 1 - side.low
    return Side(
        side.positions,
        side.size,
        1,
        low,
        side.extent + side.window - 1 - side.stretched - low,
        dilation=side.stride,
        window_dilation=side.window_dilation,
        is_reversed=True,
    )


def _case(random: np.random.Generator, convolution: Convolution) -> Case:
    arguments: list[Array] = [
        whole_numbers(random, convolution.type, convolution.image_dims),
        whole_numbers(random, convolution.type, convolution.kernel_dims),
        whole_numbers(random, convolution.result, convolution.result_dims),
    ]
    error = error_of(convolution.result)
    return Case(str(convolution), record(convolution, *arguments), arguments, error)


def _convolution(random: np.random.Generator, *, is_plain: bool) -> Convolution:
    """Of at most so much work; a plain one has no holes in its images, nor in its padding."""
    element_type, groups = pick(random, TYPES), pick(random, GROUPS)
    rank = pick(random, (1, 2, 2, 2, 2, 3))
    is_pointwise = chance(random, 0.15)
    made = Convolution(
        element_type,
        WIDER.get(element_type, element_type) if chance(random, 0.4) else element_type,
        pick(random, IMAGES),
        pick(random, FEATURES if groups == 1 else OF_A_GROUP),
        pick(random, OUTPUTS if groups == 1 else OF_A_GROUP),
        tuple(_side(random, is_pointwise=is_pointwise, is_plain=is_plain) for _ in range(rank)),
        groups,
        pick(random, (2, 3, 4)) if groups == 1 and not is_plain and chance(random, 0.1) else 1,
        _forms(random, rank),
        pick(random, BEHIND),
    )
    return _within_work(made)


def _within_work(made: Convolution) -> Convolution:
    for name in ("images", "outputs", "features"):
        while made.work > MOST and getattr(made, name) > 1:
            made = replace(made, **{name: getattr(made, name) * 2 // 3})
    while made.work > MOST:
        made = replace(made, sides=tuple(replace(side, extent=max(1, side.extent * 2 // 3)) for side in made.sides))
    return made


def _side(random: np.random.Generator, *, is_pointwise: bool, is_plain: bool) -> Side:
    size = 1 if is_pointwise else pick(random, WINDOWS)
    side = Side(
        pick(random, EXTENTS),
        size,
        pick(random, (1, 1, 1, 2, 2, 3)),
        dilation=1 if is_plain else pick(random, RARELY_DILATED),
        window_dilation=pick(random, RARELY_DILATED),
        is_reversed=not is_plain and chance(random, 0.1),
    )
    return replace(side, **_padding(random, side.window, is_plain=is_plain))


def _padding(random: np.random.Generator, window: int, *, is_plain: bool) -> dict[str, int]:
    """None, as much as keeps the extent, or any."""
    kind = pick(random, ("none", "same", "same", "any"))
    if kind == "none":
        return {"low": 0, "high": 0}
    if kind == "same":
        return {"low": (window - 1) // 2, "high": window // 2}
    least = 0 if is_plain else -3
    low, high = (int(number) for number in random.integers(least, window + 3, 2))
    return {"low": low, "high": high}


def _forms(random: np.random.Generator, rank: int) -> Forms:
    image, kernel, result = _forms_of(pick(random, FORMS), rank)
    if chance(random, 0.8):
        return image, kernel, result
    return _shuffled(random, image), _shuffled(random, kernel), _shuffled(random, result)


def _forms_of(forms: Forms, rank: int) -> Forms:
    sides = "".join(map(str, range(rank)))
    image, kernel, result = (form.replace("*", sides) for form in forms)
    return image, kernel, result


def _shuffled(random: np.random.Generator, form: str) -> str:
    return "".join(random.permutation([*form]))
