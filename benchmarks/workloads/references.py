"""Workloads at the sizes of the reference figures (`python -m benchmarks.floors`) that no other family has.

They are no part of the suite: most differ from one of its workloads by nothing but the size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workload import Arrays, Workload
from benchmarks.workloads import contractions, convolutions, elementwise, normalization
from benchmarks.workloads.inputs import constant_weights, normal

ONE_MILLION = {"1M": 1 << 20}
SQUARE = {"1024x1024": (1024, 1024)}
PRODUCTS = {"1x4096x1024": (1, 4096, 1024), "1x1024x4096": (1, 1024, 4096), "197x768x768": (197, 768, 768)}
LAYERS = [
    convolutions.Layer(1, 56, 64, 64),
    convolutions.Layer(1, 28, 128, 128),
    convolutions.Layer(1, 14, 256, 256),
    convolutions.Layer(1, 7, 512, 512),
    convolutions.Layer(8, 56, 64, 64),
    convolutions.Layer(8, 14, 256, 256),
]
KERNELS = 60


def _resized(workloads: Sequence[Workload], names: Sequence[str], sizes: Mapping[str, Any]) -> list[Workload]:
    by_name = {workload.name: workload for workload in workloads}
    return [replace(by_name[name], family="references", sizes=sizes) for name in names]


def convolution(image: Any) -> Any:
    """With a kernel that belongs to the program: the figures are those of kernels that were packed beforehand."""
    features = image.shape[-1]
    kernel: Any = constant_weights((3, 3, features, features))
    return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=convolutions.LAST)


def image(generator: np.random.Generator, layer: Any) -> Arrays:
    shape, _, _ = convolutions.shapes(layer, convolutions.LAST)
    return [generator.standard_normal(shape, np.float32)]


def eight_in_three_out(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    return a + b, c + d + e, f + g + h


def many_kernels(*arrays: Any) -> Any:
    """Eight operations on each array. All lengths differ, so that no two kernels are equal and none can be one."""
    results = []
    for number, x in enumerate(arrays):
        weight = 1.0 + number / KERNELS
        results.append(jnp.tanh(x * weight + 0.5) * jnp.exp(-x) - jnp.log(jnp.abs(x) + weight))
    return results


def arrays_of_many_lengths(generator: np.random.Generator, length: int) -> Arrays:
    return [generator.standard_normal(length + number, np.float32) for number in range(KERNELS)]


WORKLOADS = [
    Workload(
        "references",
        "dot",
        jnp.matmul,
        contractions.operands(np.float32),
        PRODUCTS,
        operations=contractions.operations,
    ),
    *_resized(
        elementwise.WORKLOADS,
        ["gelu_erf", "gelu_tanh", "black_scholes", "exp", "tanh", "sin", "add"],
        ONE_MILLION,
    ),
    *_resized(normalization.WORKLOADS, ["softmax", "layer_norm"], SQUARE),
    Workload(
        "references",
        "convolution",
        convolution,
        image,
        {layer.label: layer for layer in LAYERS},
        operations=lambda layer: float(layer.operations),
    ),
    Workload("references", "eight_in_three_out", eight_in_three_out, normal(8), {"small": 4}),
    Workload("references", "many_kernels", many_kernels, arrays_of_many_lengths, {"small": 256}, may_differ=1.0),
]
