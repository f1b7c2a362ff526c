"""A small language model: forward, one step of its training, and a loop that writes text with it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from examples.programs.inputs import BLOCKS, CONTEXT, HEADS, VOCABULARY, WIDTH
from examples.programs.sources.networks import cross_entropy

NORMALIZATION_EPSILON = 1e-5
LONGEST_GRADIENT = 1.0
RATE, FIRST_DECAY, SECOND_DECAY, ADAM_EPSILON, WEIGHT_DECAY = 1e-3, 0.9, 0.99, 1e-8, 1e-2


def transformer(weights: Any, tokens: Any) -> Any:
    """What the model makes of a batch of sequences."""
    return {"logits": _logits(weights, tokens)}


def _logits(weights: Any, tokens: Any) -> Any:
    """Of the token behind each token."""
    length = tokens.shape[-1]
    x = weights["tokens"][tokens] + weights["positions"][:length]
    may_see = jnp.tril(jnp.ones((length, length), bool))
    for block in weights["blocks"]:
        query, key, value = _projections(block, x)
        x = _with_rest_of_block(block, x, _attention(query, key, value, may_see))
    return _normalized(x) @ weights["output"]


def transformer_training(weights: Any, first: Any, second: Any, step: Any, tokens: Any) -> Any:
    """One step of Adam, for a gradient that is cut to a length."""
    loss, slopes = jax.value_and_grad(lambda w: cross_entropy(_logits(w, tokens[:, :-1]), tokens[:, 1:]))(weights)
    length = jnp.sqrt(sum(jnp.sum(slope**2) for slope in jax.tree.leaves(slopes)))
    shrink = jnp.minimum(1, LONGEST_GRADIENT / length)
    first = jax.tree.map(lambda m, g: FIRST_DECAY * m + (1 - FIRST_DECAY) * shrink * g, first, slopes)
    second = jax.tree.map(lambda v, g: SECOND_DECAY * v + (1 - SECOND_DECAY) * (shrink * g) ** 2, second, slopes)
    step = (step + 1).astype(jnp.float32)
    first_share, second_share = 1 - FIRST_DECAY**step, 1 - SECOND_DECAY**step

    def moved(w: Any, m: Any, v: Any) -> Any:
        return w - RATE * (m / first_share / (jnp.sqrt(v / second_share) + ADAM_EPSILON) + WEIGHT_DECAY * w)

    weights = jax.tree.map(moved, weights, first, second)
    return {"loss": loss, "gradient length": length, "weights": weights, "first": first, "second": second}


def decoding(weights: Any, prompt: Any) -> Any:
    """The prompt, and what the model would write behind it until its caches are full; the logits of the last token.

    Each round reads one token, and keeps its keys and values beside those of the tokens before it."""
    caches = jnp.zeros((BLOCKS, 2, HEADS, CONTEXT, WIDTH // HEADS), jnp.float32)
    text = jnp.zeros(CONTEXT + 1, jnp.int32).at[: len(prompt)].set(prompt)

    def write(place: Any, state: Any) -> Any:
        text, caches, _ = state
        logits, caches = _next_logits(weights, caches, text[place], place)
        chosen = jnp.argmax(logits).astype(jnp.int32)
        following = jnp.where(place + 1 < len(prompt), text[place + 1], chosen)
        return text.at[place + 1].set(following), caches, logits

    logits = jnp.zeros(VOCABULARY, jnp.float32)
    text, _, logits = lax.fori_loop(0, CONTEXT, write, (text, caches, logits))
    return {"text": text, "logits": logits}


def _next_logits(weights: Any, caches: Any, token: Any, place: Any) -> Any:
    x = (weights["tokens"][token] + weights["positions"][place])[None]
    may_see = (jnp.arange(CONTEXT) <= place)[None]
    for index, block in enumerate(weights["blocks"]):
        query, key, value = _projections(block, x)
        caches = lax.dynamic_update_slice(caches, jnp.stack([key, value])[None], (index, 0, 0, place, 0))
        x = _with_rest_of_block(block, x, _attention(query, caches[index, 0], caches[index, 1], may_see))
    return (_normalized(x) @ weights["output"])[0], caches


def _projections(block: Any, x: Any) -> Any:
    """Queries, keys and values: (..., heads, length, depth)."""
    parts = jnp.split(_normalized(x) * block["gains"][0] @ block["attention"], 3, -1)
    return [part.reshape(*x.shape[:-1], HEADS, -1).swapaxes(-2, -3) for part in parts]


def _attention(query: Any, key: Any, value: Any, may_see: Any) -> Any:
    scores = query @ key.swapaxes(-1, -2) * query.shape[-1] ** -0.5
    return jax.nn.softmax(jnp.where(may_see, scores, -jnp.inf)) @ value


def _with_rest_of_block(block: Any, x: Any, attended: Any) -> Any:
    x = x + attended.swapaxes(-2, -3).reshape(x.shape) @ block["projection"]
    return x + jax.nn.gelu(_normalized(x) * block["gains"][1] @ block["widen"]) @ block["narrow"]


def _normalized(x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt((centered**2).mean(-1, keepdims=True) + NORMALIZATION_EPSILON)
