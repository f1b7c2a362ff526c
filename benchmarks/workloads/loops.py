"""Loops with small bodies: what a step costs beyond its arithmetic."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.workload import Arrays, Maker, Workload
from benchmarks.workloads.inputs import integers, normal, scaled

STEPS = 200_000
SCAN_STEPS = 600
ONE_SIZE = {"small": ()}
SMOOTHING = 0.1
"""Of optimal transport: which share of the squared distances counts as nothing."""

RECURRENT = {"small": (100, 1, 16), "cache": (100, 16, 128)}
"""Steps, batch, width."""


def scalar_loop(start: Any) -> Any:
    """A logistic map: one multiplication chain per step."""
    return jax.lax.fori_loop(0, STEPS, lambda _, x: 3.7 * x * (1 - x), start)


def scan_over_scalars(scalars: int) -> Any:
    """A scan whose state is a tuple of scalars, each pulled towards its neighbour."""

    def function(start: Any, forcing: Any) -> Any:
        def step(state: Any, push: Any) -> Any:
            moved = tuple(
                own + 0.01 * (push * jnp.sin(state[(number + 1) % scalars]) - own) for number, own in enumerate(state)
            )
            return moved, moved[0]

        final, trace = jax.lax.scan(step, tuple(start[number] for number in range(scalars)), forcing)
        return jnp.stack(final), trace

    return function


def gradient_of_scan(scalars: int) -> Any:
    forward = scan_over_scalars(scalars)
    return jax.grad(lambda start, forcing: (forward(start, forcing)[0] ** 2).sum(), argnums=(0, 1))


def start_and_forcing(scalars: int) -> Maker:
    def make(generator: np.random.Generator, _: Any) -> Arrays:
        return [generator.standard_normal(scalars, np.float32), generator.standard_normal(SCAN_STEPS, np.float32)]

    return make


def recurrent_network(inputs: Any, state: Any, recurrent: Any, incoming: Any) -> Any:
    def step(hidden: Any, x: Any) -> Any:
        hidden = jnp.tanh(hidden @ recurrent + x @ incoming)
        return hidden, hidden

    return jax.lax.scan(step, state, inputs)


def recurrent_inputs(generator: np.random.Generator, size: Any) -> Arrays:
    steps, batch, width = size
    sequence = generator.standard_normal((steps, batch, width), np.float32)
    return [sequence, np.zeros((batch, width), np.float32), *(scaled(generator, (width, width)) for _ in range(2))]


def recurrent_operations(size: Any) -> float:
    steps, batch, width = size
    return float(4 * steps * batch * width * width)


def recurrent_network_gradient(*arrays: Any) -> Any:
    """With respect to state and weights, which every step adds to."""

    def loss(state: Any, recurrent: Any, incoming: Any) -> Any:
        return (recurrent_network(arrays[0], state, recurrent, incoming)[1] ** 2).mean()

    return jax.grad(loss, argnums=(0, 1, 2))(*arrays[1:])


def lorenz_derivative(state: Any) -> Any:
    x, y, z = state
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - (8.0 / 3.0) * z


def lorenz_runge_kutta(start: Any) -> Any:
    """Two thousand Runge-Kutta steps of the Lorenz system, too few for its chaos to show."""
    size = 0.0005

    def moved(state: Any, slope: Any, share: float) -> Any:
        return tuple(value + share * size * rate for value, rate in zip(state, slope, strict=True))

    def step(_: Any, state: Any) -> Any:
        first = lorenz_derivative(state)
        second = lorenz_derivative(moved(state, first, 0.5))
        third = lorenz_derivative(moved(state, second, 0.5))
        fourth = lorenz_derivative(moved(state, third, 1.0))
        return tuple(
            value + size / 6 * (a + 2 * b + 2 * c + d)
            for value, a, b, c, d in zip(state, first, second, third, fourth, strict=True)
        )

    return jnp.stack(jax.lax.fori_loop(0, 2000, step, (start[0], start[1], start[2])))


def adaptive_decay(start: Any) -> Any:
    """A while loop that ends on its data: Euler steps as long as the error estimate allows."""

    def unfinished(state: Any) -> Any:
        time, _, _ = state
        return time < 10.0

    def step(state: Any) -> Any:
        time, value, size = state
        slope = -value * jnp.cos(time)
        ahead = -(value + size * slope) * jnp.cos(time + size)
        error = jnp.abs(ahead - slope) * size
        grown = jnp.clip(size * jnp.where(error < 1e-5, 1.1, 0.5), 1e-4, 0.1)
        accepted = error < 2e-5
        return jnp.where(accepted, time + size, time), jnp.where(accepted, value + size * slope, value), grown

    return jax.lax.while_loop(unfinished, step, (jnp.zeros_like(start), start, jnp.full_like(start, 1e-3)))[1]


def mandelbrot(real: Any, imaginary: Any) -> Any:
    """Counts the steps, at most 100, that each point of a grid stays near the origin."""

    def step(_: Any, state: Any) -> Any:
        x, y, count = state
        inside = x * x + y * y < 4
        x, y = jnp.where(inside, x * x - y * y + real, x), jnp.where(inside, 2 * x * y + imaginary, y)
        return x, y, count + inside

    zero = jnp.zeros_like(real)
    return jax.lax.fori_loop(0, 100, step, (zero, zero, jnp.zeros(real.shape, jnp.int32)))[2]


def complex_grid(_: np.random.Generator, size: Any) -> Arrays:
    rows, columns = size
    return [
        np.broadcast_to(np.linspace(-2, 0.6, columns, dtype=np.float32), size),
        np.broadcast_to(np.linspace(-1.2, 1.2, rows, dtype=np.float32)[:, None], size),
    ]


def heat_equation(field: Any) -> Any:
    """A hundred steps of an explicit stencil with a moving neighbourhood."""

    def step(_: Any, u: Any) -> Any:
        padded = jnp.pad(u, 1)
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return u + 0.2 * (around - 4 * u)

    return jax.lax.fori_loop(0, 100, step, field)


def relaxation(field: Any) -> Any:
    """Means of neighbours until they rest, which they do not in 99 steps."""

    def step(state: Any) -> Any:
        steps, u, _ = state
        padded = jnp.pad(u, 1)
        means = 0.25 * (padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:])
        return steps + 1, means, jnp.abs(means - u).max()

    def goes_on(state: Any) -> Any:
        steps, _, change = state
        return (steps < 99) & (change > 1e-6)

    return jax.lax.while_loop(goes_on, step, (0, field, jnp.float32(jnp.inf)))


def recursive_filter(signal: Any) -> Any:
    """Two poles and two zeros, sample by sample."""

    def step(state: Any, x: Any) -> Any:
        x1, x2, y1, y2 = state
        y = 0.2 * x + 0.4 * x1 + 0.2 * x2 + 0.3 * y1 - 0.1 * y2
        return (x, x1, y, y1), y

    return jax.lax.scan(step, (0.0, 0.0, 0.0, 0.0), signal)[1]


def edit_distances(one: Any, other: Any) -> Any:
    """From a word to all beginnings of another: a scan over letters in a scan over letters."""

    def row(above: Any, letter: Any) -> Any:
        replaced = jnp.minimum(above[:-1] + (other != letter), above[1:] + 1)

        def place(left: Any, least: Any) -> Any:
            left = jnp.minimum(left + 1, least)
            return left, left

        first = above[0] + 1
        return jnp.concatenate([first[None], jax.lax.scan(place, first, replaced)[1]]), None

    return jax.lax.scan(row, jnp.arange(other.shape[0] + 1), one)[0]


def newton_method(start: Any, weights: Any, target: Any) -> Any:
    """Ten steps towards tanh(weights @ x) = target, each of which solves a small system."""

    def residual(x: Any) -> Any:
        return jnp.tanh(weights @ x) - target

    def step(_: Any, x: Any) -> Any:
        matrix = jax.jacfwd(residual)(x) + jnp.eye(x.size, dtype=x.dtype)
        return x - 0.5 * jnp.linalg.solve(matrix, residual(x))

    return jax.lax.fori_loop(0, 10, step, start)


def newton_inputs(generator: np.random.Generator, unknowns: Any) -> Arrays:
    weights = generator.standard_normal((unknowns, unknowns), np.float32) / unknowns
    return [weights[0], weights, generator.standard_normal(unknowns, np.float32) * np.float32(0.1)]


PAIRS_KEPT = 8  # of steps and what they did to the slope

STEP_LENGTH = 0.05


def limited_memory_descent(start: Any, bends: Any) -> Any:
    """Thirty steps of L-BFGS towards the least value of a sum of squares, whose directions are made of products of
    vectors, two loops of them in each step."""
    keep = jnp.arange(PAIRS_KEPT)

    def slope(x: Any) -> Any:
        return bends * (x - 1) + 0.1 * jnp.sin(x)

    def step(number: Any, state: Any) -> Any:
        x, g, moves, changes = state

        def weight(pair: Any) -> Any:
            return 1 / (moves[pair] @ changes[pair] + 1e-6)

        def backwards(q: Any, pair: Any) -> Any:
            share = weight(pair) * (moves[pair] @ q)
            return q - share * changes[pair], share

        def forwards(r: Any, known: Any) -> Any:
            pair, share = known
            return r + (share - weight(pair) * (changes[pair] @ r)) * moves[pair], None

        order = (number - 1 - keep) % PAIRS_KEPT
        q, shares = jax.lax.scan(backwards, g, order)
        direction, _ = jax.lax.scan(forwards, q, (order[::-1], shares[::-1]))
        following = x - STEP_LENGTH * direction
        following_slope = slope(following)
        place = number % PAIRS_KEPT
        return (
            following,
            following_slope,
            moves.at[place].set(following - x),
            changes.at[place].set(following_slope - g),
        )

    nothing = jnp.zeros((PAIRS_KEPT, start.size), start.dtype)
    return jax.lax.fori_loop(0, 30, step, (start, slope(start), nothing, nothing))[0]


def descent_inputs(generator: np.random.Generator, unknowns: Any) -> Arrays:
    bends = generator.uniform(0.5, 2.0, unknowns).astype(np.float32)
    return [generator.standard_normal(unknowns, np.float32), bends]


def kalman_filter(observations: Any, transition: Any, projection: Any) -> Any:
    """The states of a linear system from two noisy numbers at each step."""
    states, outputs = transition.shape[0], projection.shape[0]

    def step(state: Any, seen: Any) -> Any:
        mean, covariance = state
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + 0.01 * jnp.eye(states)
        innovation = projection @ covariance @ projection.T + 0.1 * jnp.eye(outputs)
        gain = jnp.linalg.solve(innovation, projection @ covariance).T
        mean = mean + gain @ (seen - projection @ mean)
        covariance = covariance - gain @ projection @ covariance
        return (mean, covariance), mean

    return jax.lax.scan(step, (jnp.zeros(states), jnp.eye(states)), observations)[1]


def kalman_inputs(generator: np.random.Generator, steps: Any) -> Arrays:
    transition = np.eye(4, dtype=np.float32) * 0.98
    transition[0, 2] = transition[1, 3] = 0.1
    return [generator.standard_normal((steps, 2), np.float32), transition, np.eye(2, 4, dtype=np.float32)]


def optimal_transport(sources: Any, targets: Any) -> Any:
    """Sinkhorn's algorithm in logarithms, between two clouds of points. Exponentials of costs are of all sizes: many
    vanish, and some of those that do not are subnormal."""
    costs = ((sources[:, None] - targets) ** 2).sum(-1)

    def step(_: Any, potentials: Any) -> Any:
        of_sources, of_targets = potentials
        of_sources = -SMOOTHING * jax.nn.logsumexp((of_targets - costs) / SMOOTHING, axis=1)
        of_targets = -SMOOTHING * jax.nn.logsumexp((of_sources[:, None] - costs) / SMOOTHING, axis=0)
        return of_sources, of_targets

    return jax.lax.fori_loop(0, 20, step, (jnp.zeros_like(sources[:, 0]), jnp.zeros_like(targets[:, 0])))


def clouds(generator: np.random.Generator, size: Any) -> Arrays:
    return [generator.standard_normal((points, 3), np.float32) for points in size]


def _scan(scalars: int) -> list[Workload]:
    inputs = start_and_forcing(scalars)
    return [
        Workload("loops", f"scan_{scalars}_scalars", scan_over_scalars(scalars), inputs, ONE_SIZE),
        Workload("loops", f"scan_{scalars}_scalars_gradient", gradient_of_scan(scalars), inputs, ONE_SIZE, tolerance=4),
    ]


WORKLOADS = [
    # The map is chaotic, so only engines that round alike agree: the numbers are compared nowhere.
    Workload("loops", "scalar_loop", scalar_loop, lambda *_: [np.full((), 0.3, np.float32)], ONE_SIZE, may_differ=1.0),
    *_scan(16),
    *_scan(60),
    Workload(
        "loops",
        "recurrent_network",
        recurrent_network,
        recurrent_inputs,
        RECURRENT,
        operations=recurrent_operations,
    ),
    Workload(
        "loops",
        "recurrent_network_gradient",
        recurrent_network_gradient,
        recurrent_inputs,
        RECURRENT,
        operations=lambda size: 3 * recurrent_operations(size),
        tolerance=8,
    ),
    Workload("loops", "lorenz_runge_kutta", lorenz_runge_kutta, normal(), {"small": 3}, tolerance=64),
    Workload(
        "loops", "adaptive_decay", adaptive_decay, lambda *_: [np.full((), 1.5, np.float32)], ONE_SIZE, tolerance=64
    ),
    Workload(
        "loops",
        "mandelbrot",
        mandelbrot,
        complex_grid,
        {"small": (16, 24), "cache": (256, 384)},
        moves_memory=False,
        may_differ=0.02,
    ),
    Workload(
        "loops",
        "recursive_filter",
        recursive_filter,
        normal(),
        {"small": 1 << 10, "cache": 1 << 15},
        moves_memory=False,
    ),
    Workload(
        "loops",
        "edit_distances",
        edit_distances,
        integers(0, 4, 2),
        {"small": 64, "cache": 512},
        moves_memory=False,
    ),
    Workload(
        "loops", "heat_equation", heat_equation, normal(), {"small": (16, 16), "cache": (256, 256)}, moves_memory=False
    ),
    Workload("loops", "newton_method", newton_method, newton_inputs, {"small": 8}, tolerance=4),
    Workload(
        "loops",
        "limited_memory_descent",
        limited_memory_descent,
        descent_inputs,
        {"small": 20, "cache": 1000},
        moves_memory=False,
        tolerance=16,
    ),
    Workload("loops", "kalman_filter", kalman_filter, kalman_inputs, {"small": 1000}, tolerance=4),
    Workload(
        "loops",
        "optimal_transport",
        optimal_transport,
        clouds,
        {"small": (20, 16), "cache": (160, 128)},
        moves_memory=False,
        tolerance=4,
    ),
    Workload("loops", "relaxation", relaxation, normal(), {"small": (16, 16), "cache": (256, 256)}, moves_memory=False),
]
