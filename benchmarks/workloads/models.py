"""Whole models, forward and one step of training, on flat lists of arrays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workload import Arrays, Workload
from benchmarks.workloads.inputs import scaled

PERCEPTRON = {"small": (8, 64, 64, 10), "cache": (64, 784, 256, 10), "memory": (256, 2048, 2048, 1000)}
"""Batch, and the widths of input, hidden layers and output."""

TRANSFORMER = {"small": (1, 16, 64, 4), "cache": (2, 64, 256, 8), "memory": (4, 256, 512, 8)}
"""Batch, sequence, width, heads."""

CONVOLUTIONAL = {"small": (2, 8, 8, 10), "cache": (8, 28, 16, 10), "memory": (64, 64, 32, 100)}
"""Batch, rows and columns of the images, features of the first layer, classes."""

RECURRENT = {"small": (20, 1, 32), "cache": (50, 16, 128), "memory": (64, 64, 512)}
"""Steps, batch, width."""

DECODING = {"small": (8, 32, 4), "cache": (32, 128, 8), "memory": (64, 512, 8)}
"""Tokens, width, heads."""

LAYERS_OF_DECODING = 2

OPTIMIZER = {"small": (10, 16), "cache": (10, 128), "memory": (10, 512)}
"""Layers, of two matrices and two vectors each, and the width of the first one."""

COLORS = 3
LEARNING_RATE = 0.01

DECIDED_BY_A_ROUNDING = 0.001
"""The share of hidden units with an activation so close to zero that the order of a sum decides its sign, and so
whether the sample counts in the unit's slope. A normally distributed activation is within 1e-6 of zero, the rounding of
a sum of 2048 products, with probability 8e-7: one of 256 x 2048 is to be expected, which is one of 2048 slopes."""


def moved(weights: Any, slopes: Any) -> list[Any]:
    """The weights after one step down the slope."""
    return [weight - LEARNING_RATE * slope for weight, slope in zip(weights, slopes, strict=True)]


def surprise(scores: Any, labels: Any) -> Any:
    """The mean cross-entropy of scores and the numbers of the right classes."""
    likelihood = jax.nn.log_softmax(scores)
    chosen = labels[:, None] == jnp.arange(likelihood.shape[1], dtype=jnp.int32)
    return -jnp.where(chosen, likelihood, 0).sum(1).mean()


def training_step_of_classifier(model: Callable[..., Any]) -> Callable[..., Any]:
    """Inputs, labels and weights to the loss and new weights."""

    def step(x: Any, labels: Any, *weights: Any) -> Any:
        value, slopes = jax.value_and_grad(lambda weights: surprise(model(x, *weights), labels))(weights)
        return value, moved(weights, slopes)

    return step


def perceptron(x: Any, *weights: Any) -> Any:
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        x = jax.nn.relu(x @ weight + bias)
    return x @ weights[-2] + weights[-1]


def perceptron_inputs(training: bool) -> Callable[[np.random.Generator, Any], Arrays]:
    def make(generator: np.random.Generator, size: Any) -> Arrays:
        batch, *_ = size
        widths = [size[1], size[2], size[2], size[3]]
        arrays = [generator.standard_normal((batch, widths[0]), np.float32)]
        arrays += [generator.integers(0, widths[-1], batch).astype(np.int32)] if training else []
        for incoming, outgoing in pairwise(widths):
            arrays += [scaled(generator, (incoming, outgoing)), np.zeros(outgoing, np.float32)]
        return arrays

    return make


def perceptron_operations(passes: int) -> Callable[[Any], float]:
    def count(size: Any) -> float:
        batch, incoming, hidden, outgoing = size
        return float(2 * passes * batch * (incoming * hidden + hidden * hidden + hidden * outgoing))

    return count


def convolutional(x: Any, *weights: Any) -> Any:
    """Two convolutions, each halved by pooling, and a dense layer."""
    *layers, weight, bias = weights
    for kernel, shift in zip(layers[::2], layers[1::2], strict=True):
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + shift)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1) @ weight + bias


def convolutional_inputs(training: bool) -> Callable[[np.random.Generator, Any], Arrays]:
    def make(generator: np.random.Generator, size: Any) -> Arrays:
        batch, side, features, classes = size
        arrays = [generator.standard_normal((batch, side, side, COLORS), np.float32)]
        arrays += [generator.integers(0, classes, batch).astype(np.int32)] if training else []
        for incoming, outgoing in ((COLORS, features), (features, 2 * features)):
            kernel = scaled(generator, (9 * incoming, outgoing)).reshape(3, 3, incoming, outgoing)
            arrays += [kernel, np.zeros(outgoing, np.float32)]
        flat = (side // 4) ** 2 * 2 * features
        return [*arrays, scaled(generator, (flat, classes)), np.zeros(classes, np.float32)]

    return make


def convolutional_operations(passes: int) -> Callable[[Any], float]:
    def count(size: Any) -> float:
        batch, side, features, classes = size
        first, second = 9 * COLORS * features * side**2, 9 * features * 2 * features * (side // 2) ** 2
        return float(2 * passes * batch * (first + second + (side // 4) ** 2 * 2 * features * classes))

    return count


def long_short_term_memory(inputs: Any, incoming: Any, recurrent: Any, bias: Any) -> Any:
    """The states after each step of (step, batch, width)."""

    def step(carry: Any, x: Any) -> Any:
        state, cell = carry
        gates = x @ incoming + state @ recurrent + bias
        enter, forget, candidate, leave = jnp.split(gates, 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
        state = jax.nn.sigmoid(leave) * jnp.tanh(cell)
        return (state, cell), state

    zero = jnp.zeros(inputs.shape[1:], inputs.dtype)
    return jax.lax.scan(step, (zero, zero), inputs)[1]


def long_short_term_memory_training_step(inputs: Any, target: Any, *weights: Any) -> Any:
    def loss(weights: Any) -> Any:
        return ((long_short_term_memory(inputs, *weights) - target) ** 2).mean()

    value, slopes = jax.value_and_grad(loss)(weights)
    return value, moved(weights, slopes)


def recurrent_inputs(training: bool) -> Callable[[np.random.Generator, Any], Arrays]:
    def make(generator: np.random.Generator, size: Any) -> Arrays:
        width = size[-1]
        sequences = [generator.standard_normal(size, np.float32) for _ in range(1 + training)]
        weights = [scaled(generator, (width, 4 * width)) for _ in range(2)]
        return [*sequences, *weights, np.zeros(4 * width, np.float32)]

    return make


def recurrent_operations(passes: int) -> Callable[[Any], float]:
    def count(size: Any) -> float:
        steps, batch, width = size
        return float(2 * passes * steps * batch * 8 * width * width)

    return count


def normalized(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def attention(query: Any, key: Any, value: Any) -> Any:
    """Scaled dot products over (batch, heads, sequence, depth)."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) * query.shape[-1] ** -0.5
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), value)


def causal_attention(query: Any, key: Any, value: Any) -> Any:
    """Attention in which no position sees a later one."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) * query.shape[-1] ** -0.5
    earlier = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(earlier, scores, -jnp.inf), -1), value)


def grouped_query_attention(query: Any, key: Any, value: Any) -> Any:
    """Attention over (batch, sequence, heads, depth), in which several heads of queries share one of keys."""
    batch, sequence, heads, depth = query.shape
    groups = key.shape[2]
    grouped = query.reshape(batch, sequence, groups, heads // groups, depth)
    scores = jnp.einsum("btghd,bsgd->bghts", grouped, key) * depth**-0.5
    return jnp.einsum("bghts,bsgd->btghd", jax.nn.softmax(scores, -1), value).reshape(query.shape)


HEADS_PER_KEY = 4


def grouped_query_attention_inputs(generator: np.random.Generator, size: Any) -> Arrays:
    batch, sequence, width, heads = size
    counts = (heads, heads // HEADS_PER_KEY, heads // HEADS_PER_KEY)
    return [generator.standard_normal((batch, sequence, count, width // heads), np.float32) for count in counts]


def attention_in_blocks(query: Any, key: Any, value: Any) -> Any:
    """Attention over (batch and heads, sequence, depth), a block of keys in each step of a scan."""
    batch, sequence, depth = query.shape
    blocks = [x.reshape(batch, KEY_BLOCKS, -1, depth).swapaxes(0, 1) for x in (key, value)]

    def step(carry: Any, block: Any) -> Any:
        highest, total, mean = carry
        scores = jnp.einsum("btd,bsd->bts", query, block[0]) * depth**-0.5
        higher = jnp.maximum(highest, scores.max(-1))
        weights, kept = jnp.exp(scores - higher[..., None]), jnp.exp(highest - higher)
        mean = mean * kept[..., None] + jnp.einsum("bts,bsd->btd", weights, block[1])
        return (higher, total * kept + weights.sum(-1), mean), None

    start = jnp.full((batch, sequence), -jnp.inf), jnp.zeros((batch, sequence)), jnp.zeros_like(query)
    (_, total, mean), _ = jax.lax.scan(step, start, tuple(blocks))
    return mean / total[..., None]


KEY_BLOCKS = 4


def attention_in_blocks_inputs(generator: np.random.Generator, size: Any) -> Arrays:
    batch, sequence, width, heads = size
    return [generator.standard_normal((batch * heads, sequence, width // heads), np.float32) for _ in range(3)]


def attention_inputs(generator: np.random.Generator, size: Any) -> Arrays:
    batch, sequence, width, heads = size
    return [generator.standard_normal((batch, heads, sequence, width // heads), np.float32) for _ in range(3)]


def transformer_block(heads: int, x: Any, *weights: Any) -> Any:
    """Attention and a feed-forward layer, both with a residual and normalization first."""
    to_query, to_key, to_value, to_output, to_hidden, from_hidden = weights
    batch, sequence, width = x.shape

    def split(y: Any) -> Any:
        return y.reshape(batch, sequence, heads, width // heads).transpose(0, 2, 1, 3)

    y = normalized(x)
    attended = attention(split(y @ to_query), split(y @ to_key), split(y @ to_value))
    x = x + attended.transpose(0, 2, 1, 3).reshape(batch, sequence, width) @ to_output
    return x + jax.nn.gelu(normalized(x) @ to_hidden) @ from_hidden


def transformer(x: Any, *weights: Any) -> Any:
    return transformer_block(_heads_of(x), x, *weights)


def transformer_training_step(x: Any, target: Any, *weights: Any) -> Any:
    def loss(weights: Any) -> Any:
        return ((transformer_block(_heads_of(x), x, *weights) - target) ** 2).mean()

    value, slopes = jax.value_and_grad(loss)(weights)
    return value, moved(weights, slopes)


def _heads_of(x: Any) -> int:
    """The number of heads that goes with a width."""
    return next(heads for _, _, width, heads in TRANSFORMER.values() if width == x.shape[-1])


def transformer_inputs(training: bool) -> Callable[[np.random.Generator, Any], Arrays]:
    def make(generator: np.random.Generator, size: Any) -> Arrays:
        batch, sequence, width, _ = size
        activations = [generator.standard_normal((batch, sequence, width), np.float32) for _ in range(1 + training)]
        shapes = [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]
        return activations + [scaled(generator, shape) for shape in shapes]

    return make


def transformer_operations(passes: int) -> Callable[[Any], float]:
    def count(size: Any) -> float:
        batch, sequence, width, _ = size
        return float(2 * passes * batch * sequence * width * (12 * width + 2 * sequence))

    return count


def attention_operations(size: Any) -> float:
    batch, sequence, width, _ = size
    return float(4 * batch * sequence * sequence * width)


def decoding(first: Any, keys: Any, values: Any, *weights: Any) -> Any:
    """One token after the other through blocks of a transformer, which keep the keys and values of those before."""
    _, tokens, heads, _ = keys.shape
    blocks = [weights[start : start + 4] for start in range(0, len(weights), 4)]

    def step(state: Any, place: Any) -> Any:
        x, keys, values = state
        for number, (projection, mixing, up, down) in enumerate(blocks):
            query, key, value = (normalized(x) @ projection).reshape(3, heads, -1)
            keys = jax.lax.dynamic_update_slice(keys, key[None, None], (number, place, 0, 0))
            values = jax.lax.dynamic_update_slice(values, value[None, None], (number, place, 0, 0))
            scores = jnp.einsum("hd,thd->ht", query, keys[number]) * query.shape[-1] ** -0.5
            seen = jax.nn.softmax(jnp.where(jnp.arange(tokens) <= place, scores, -jnp.inf))
            x = x + jnp.einsum("ht,thd->hd", seen, values[number]).reshape(x.shape) @ mixing
            x = x + jax.nn.silu(normalized(x) @ up) @ down
        return (normalized(x), keys, values), x

    return jax.lax.scan(step, (first, keys, values), jnp.arange(tokens, dtype=jnp.int32))[1]


def decoding_inputs(generator: np.random.Generator, size: Any) -> Arrays:
    tokens, width, heads = size
    kept = np.zeros((LAYERS_OF_DECODING, tokens, heads, width // heads), np.float32)
    shapes = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)] * LAYERS_OF_DECODING
    return [scaled(generator, (width,)), kept, kept.copy(), *(scaled(generator, shape) for shape in shapes)]


def decoding_operations(size: Any) -> float:
    tokens, width, _ = size
    return 2.0 * LAYERS_OF_DECODING * float(tokens * width * (12 * width + 2 * tokens))


def optimizer_step(number: Any, *arrays: Any) -> Any:
    """One step of Adam: slopes, weights, and the means of slopes and of their squares so far."""
    count = len(arrays) // 4
    slopes, weights, *past = (arrays[start : start + count] for start in range(0, 4 * count, count))
    number = number + 1
    rate = LEARNING_RATE * jnp.sqrt(1 - 0.999**number) / (1 - 0.9**number)
    means = [0.9 * mean + 0.1 * slope for mean, slope in zip(past[0], slopes, strict=True)]
    squares = [0.999 * square + 0.001 * slope * slope for square, slope in zip(past[1], slopes, strict=True)]
    moves = [rate * mean / (jnp.sqrt(square) + 1e-8) for mean, square in zip(means, squares, strict=True)]
    return number, *(weight - move for weight, move in zip(weights, moves, strict=True)), *means, *squares


def optimizer_inputs(generator: np.random.Generator, size: Any) -> Arrays:
    """Of layers that are all of different widths."""
    layers, first = size
    widths = [first + 8 * layer for layer in range(layers)]
    shapes = [shape for width in widths for shape in ((first, width), (width,), (width, first), (first,))]
    slopes, weights, means = ([scaled(generator, shape) for shape in shapes] for _ in range(3))
    return [np.array(10, np.float32), *slopes, *weights, *means, *(np.square(mean) for mean in means)]


def _model(name: str, function: Any, inputs: Any, sizes: Any, operations: Any, **options: Any) -> Workload:
    return Workload(
        "models",
        name,
        function,
        inputs,
        sizes,
        operations=operations,
        moves_memory=False,
        tolerance=8,
        compare_memory=True,
        **options,
    )


WORKLOADS = [
    _model("perceptron", perceptron, perceptron_inputs(False), PERCEPTRON, perceptron_operations(1)),
    _model(
        "perceptron_training",
        training_step_of_classifier(perceptron),
        perceptron_inputs(True),
        PERCEPTRON,
        perceptron_operations(3),
        may_differ=DECIDED_BY_A_ROUNDING,
    ),
    _model("convolutional", convolutional, convolutional_inputs(False), CONVOLUTIONAL, convolutional_operations(1)),
    _model(
        "convolutional_training",
        training_step_of_classifier(convolutional),
        convolutional_inputs(True),
        CONVOLUTIONAL,
        convolutional_operations(3),
    ),
    _model(
        "long_short_term_memory", long_short_term_memory, recurrent_inputs(False), RECURRENT, recurrent_operations(1)
    ),
    _model(
        "long_short_term_memory_training",
        long_short_term_memory_training_step,
        recurrent_inputs(True),
        RECURRENT,
        recurrent_operations(3),
    ),
    _model("attention", attention, attention_inputs, TRANSFORMER, attention_operations),
    _model("causal_attention", causal_attention, attention_inputs, TRANSFORMER, attention_operations),
    _model(
        "grouped_query_attention",
        grouped_query_attention,
        grouped_query_attention_inputs,
        TRANSFORMER,
        attention_operations,
    ),
    _model("attention_in_blocks", attention_in_blocks, attention_in_blocks_inputs, TRANSFORMER, attention_operations),
    _model("decoding", decoding, decoding_inputs, DECODING, decoding_operations),
    _model("transformer", transformer, transformer_inputs(False), TRANSFORMER, transformer_operations(1)),
    _model(
        "transformer_training",
        transformer_training_step,
        transformer_inputs(True),
        TRANSFORMER,
        transformer_operations(3),
    ),
    _model("optimizer_step", optimizer_step, optimizer_inputs, OPTIMIZER, None),
]
