"""Programs that go around in loops: a picture, orbits, clusters, particles; and one of Fourier transforms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from examples.programs.inputs import RAYS

MARCH = 48  # steps of a ray
SOFTNESS = 20.0
FLOOR = -1.2

END, SMALLEST_STEP = 10.0, 1e-6
LENGTHS, GRAVITY = 1.0, 9.81

ROUNDS = 15

COUNT = 1000
STEP_NOISE, SIGHT_NOISE = 0.35, 0.3


def ray_marcher(centers: Any, radii: Any, light: Any) -> Any:
    """A picture of spheres that melt into each other over a floor: the brightness of each pixel."""
    rows, columns = RAYS
    y, x = jnp.meshgrid(jnp.linspace(0.8, -0.8, rows), jnp.linspace(-1.2, 1.2, columns), indexing="ij")
    directions = _unit(jnp.stack([x, y, jnp.full_like(x, 1.6)], -1))
    light = _unit(light)

    def distance(point: Any) -> Any:
        """To the surface: a smooth minimum over all bodies."""
        spheres = jnp.sqrt(((point - centers) ** 2).sum(-1)) - radii
        bodies = jnp.append(spheres, point[1] - FLOOR)
        return -jax.nn.logsumexp(-8 * bodies) / 8

    def brightness(direction: Any) -> Any:
        def advance(_: Any, state: Any) -> Any:
            far, nearest = state
            gap = distance(far * direction)
            return far + 0.8 * gap, jnp.minimum(nearest, gap / (far + 1))

        far, nearest = lax.fori_loop(0, MARCH, advance, (jnp.float32(0.5), jnp.float32(1)))
        normal = _unit(jax.grad(distance)(far * direction))
        shade = 0.2 + 0.8 * jnp.maximum(normal @ light, 0)
        return shade * jnp.exp(-SOFTNESS * jnp.maximum(nearest, 0)) * jnp.exp(-0.05 * far)

    return {"picture": jax.vmap(jax.vmap(brightness))(directions)}


def _unit(vector: Any) -> Any:
    return vector / jnp.linalg.norm(vector, axis=-1, keepdims=True)


def orbits(states: Any, tolerance: Any) -> Any:
    """Pendulums, each with its own steps of the Bogacki-Shampine method: where they are in the end, and how many steps
    were taken and refused."""

    def slope(state: Any) -> Any:
        angle, velocity = state
        return jnp.stack([velocity, -GRAVITY / LENGTHS * jnp.sin(angle) - 0.1 * velocity])

    def one(state: Any) -> Any:
        def unfinished(carry: Any) -> Any:
            return carry[1] < END

        def step(carry: Any) -> Any:
            state, time, size, taken, refused = carry
            size = jnp.minimum(size, END - time)
            k1 = slope(state)
            k2 = slope(state + size / 2 * k1)
            k3 = slope(state + size * 3 / 4 * k2)
            after = state + size * (2 * k1 + 3 * k2 + 4 * k3) / 9
            k4 = slope(after)
            error = jnp.abs(size * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)).max()
            is_good = error <= tolerance
            grow = jnp.clip(0.9 * (tolerance / jnp.maximum(error, 1e-300)) ** (1 / 3), 0.2, 5)
            chosen = jnp.where(is_good, after, state), jnp.where(is_good, time + size, time)
            return *chosen, jnp.maximum(size * grow, SMALLEST_STEP), taken + is_good, refused + ~is_good

        state, _, _, taken, refused = lax.while_loop(unfinished, step, (state, 0.0, 0.01, 0, 0))
        return {"states": state, "steps": taken, "refused steps": refused}

    return jax.vmap(one)(states)


def filtering(signals: Any, window: Any) -> Any:
    """Signals, smoothed by a convolution, or freed of what is weak in their spectrum; how strong each frequency is."""
    smooth = jax.vmap(lambda signal: jnp.convolve(signal, window, mode="same"))(signals)
    spectrum = jnp.fft.rfft(signals)
    strength = jnp.abs(spectrum)
    threshold = 4 * jnp.median(strength, axis=-1, keepdims=True)
    clean = jnp.fft.irfft(spectrum * jax.nn.sigmoid(strength - threshold))
    return {"smooth": smooth, "clean": clean, "strength": strength}


def clustering(points: Any, centers: Any) -> Any:
    """Lloyd's algorithm: the centers, the number of the center next to each point, and how far all are in the mean."""

    def nearest(centers: Any) -> Any:
        gaps = ((points[:, None] - centers) ** 2).sum(-1)
        return gaps.argmin(1).astype(jnp.int32), gaps.min(1)

    def improve(_: Any, centers: Any) -> Any:
        owners, _ = nearest(centers)
        sums = jax.ops.segment_sum(points, owners, len(centers))
        counts = jax.ops.segment_sum(jnp.ones(len(points), points.dtype), owners, len(centers))
        return jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], centers)

    centers = lax.fori_loop(0, ROUNDS, improve, centers)
    owners, gaps = nearest(centers)
    return {"centers": centers, "owners": owners, "mean square": gaps.mean()}


def particles(seed: Any, observations: Any) -> Any:
    """A bootstrap filter: the estimated position behind each observation, and how many particles still counted."""

    def follow(carry: Any, observation: Any) -> Any:
        cloud, key = carry
        key, for_steps, for_choice = jax.random.split(key, 3)
        moved = cloud @ jnp.array([[1.0, 0.0], [0.25, 1.0]]) + STEP_NOISE * jax.random.normal(for_steps, cloud.shape)
        weights = jax.nn.softmax(-0.5 * ((observation - moved[:, 0]) / SIGHT_NOISE) ** 2)
        estimate, effective = weights @ moved, 1 / (weights**2).sum()
        marks = (jnp.arange(COUNT) + jax.random.uniform(for_choice)) / COUNT
        chosen = jnp.minimum(jnp.searchsorted(jnp.cumsum(weights), marks), COUNT - 1)
        return (moved[chosen], key), (estimate, effective)

    key, for_start = jax.random.split(jax.random.key(seed))
    _, (estimates, effective) = lax.scan(follow, (jax.random.normal(for_start, (COUNT, 2)), key), observations)
    return {"estimates": estimates, "effective": effective}
