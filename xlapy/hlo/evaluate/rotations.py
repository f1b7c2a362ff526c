"""Eigenvalues and singular values by rotations of pairs of columns, of all matrices of a batch at once."""

from __future__ import annotations

import itertools
import math

import numpy as np

from xlapy.hlo.evaluate.base import evaluator
from xlapy.hlo.evaluate.numerics import Array, element_type, narrow, widen
from xlapy.hlo.rotations import MOST_SWEEPS, Rotations, scales


@evaluator("eigh")
def eigh(a: Array, *, lower: bool) -> tuple[Array, Array]:
    size = a.shape[-1]
    given = widen(a).reshape(math.prod(a.shape[:-2]), size, size)
    triangle = np.tri(size, dtype=bool) if lower else np.tri(size, dtype=bool).T
    rows, columns = np.nonzero(triangle)
    matrices, vectors = np.zeros_like(given), np.zeros_like(given)
    matrices[:, rows, columns] = matrices[:, columns, rows] = given[:, rows, columns]
    vectors[:] = np.eye(size)
    with np.errstate(all="ignore"):
        scale = scales(_largest(matrices))
        matrices *= scale[:, None, None]
        for _ in range(MOST_SWEEPS):
            turned = [_turn_rows(matrices, vectors, *pair) for pair in itertools.combinations(range(size), 2)]
            if not any(turned):
                break
        values = np.diagonal(matrices, axis1=1, axis2=2)
        order = values.argsort(-1, kind="stable")
        values = np.take_along_axis(values, order, -1) / scale[:, None]
        vectors = np.take_along_axis(vectors, order[:, None], -1)
        fault = (given[:, rows, columns] * 0).sum(-1)
        results = vectors + fault[:, None, None], values + fault[:, None]
    vectors, values = (narrow(result, element_type(a)) for result in results)
    return vectors.reshape(a.shape), values.reshape(a.shape[:-1])


@evaluator("svd")
def svd(a: Array, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    *batch, rows, columns = a.shape
    given = widen(a).reshape(math.prod(batch), rows, columns)
    is_tall = rows >= columns
    left = (given if is_tall else np.swapaxes(given, 1, 2)).copy()
    longer, shorter = left.shape[1:]
    right = np.zeros((len(left), shorter, shorter), left.dtype)
    right[:] = np.eye(shorter)
    with np.errstate(all="ignore"):
        scale = scales(_largest(left))
        left *= scale[:, None, None]
        for _ in range(MOST_SWEEPS):
            turned = [_turn_columns(left, right, *pair) for pair in itertools.combinations(range(shorter), 2)]
            if not any(turned):
                break
        values = np.sqrt(_inner(left, left))
        order = (-values).argsort(-1, kind="stable")
        values = np.take_along_axis(values, order, -1)
        left, right = (np.take_along_axis(each, order[:, None], -1) for each in (left, right))
        basis = np.zeros((len(left), longer, longer if full_matrices else shorter), left.dtype)
        for column in range(basis.shape[-1]):
            basis[:, :, column] = _unit_vector(basis[:, :, :column], left, values, column)
        values = values / scale[:, None]
        fault = (given * 0).sum((1, 2))
        first, second = (basis, right) if is_tall else (right, basis)
        found = [first, values, np.swapaxes(second, 1, 2)]
        found = [each + fault.reshape(-1, *[1] * (each.ndim - 1)) for each in found]
    u, s, vt = (narrow(each, element_type(a)).reshape(*batch, *each.shape[1:]) for each in found)
    return u, s, vt


def _largest(matrices: Array) -> Array:
    return np.asarray(np.fmax.reduce(abs(matrices), (1, 2), initial=0))


def _turn_rows(matrices: Array, vectors: Array, p: int, q: int) -> bool:
    """Turns rows and columns `p` and `q` of matrices, where these meet in what is not small, so that it is zero; and
    those columns of `vectors`. Says whether there is any such matrix."""
    first, second, between = matrices[:, p, p], matrices[:, q, q], matrices[:, p, q]
    chosen = np.flatnonzero(abs(between) > Rotations.of(matrices.dtype).small * np.maximum(abs(first), abs(second)))
    first, second, between = first[chosen], second[chosen], between[chosen]
    step = _turn([matrices, vectors], p, q, chosen, first, second, between) * between
    matrices[chosen, p], matrices[chosen, q] = matrices[chosen, :, p], matrices[chosen, :, q]
    matrices[chosen, p, q] = matrices[chosen, q, p] = 0
    matrices[chosen, p, p], matrices[chosen, q, q] = first - step, second + step
    return bool(chosen.size)


def _turn_columns(left: Array, right: Array, p: int, q: int) -> bool:
    """Turns columns `p` and `q` of both where those of `left` are neither lost nor orthogonal, so that they are."""
    rotations = Rotations.of(left.dtype)
    one, other = left[:, :, p], left[:, :, q]
    first, second, between = _inner(one, one), _inner(other, other), _inner(one, other)
    limit = left.dtype.type(rotations.small_cosine * left.shape[1]) * (np.sqrt(first) * np.sqrt(second))
    is_found = np.minimum(first, second) > left.dtype.type(rotations.lost**2)
    chosen = np.flatnonzero((abs(between) > limit) & is_found)
    _turn([left, right], p, q, chosen, first[chosen], second[chosen], between[chosen])
    return bool(chosen.size)


def _turn(each: list[Array], p: int, q: int, chosen: Array, first: Array, second: Array, between: Array) -> Array:
    """Turns columns `p` and `q` of the chosen matrices by what makes [[first, between], [between, second]] diagonal;
    the tangent of the angle."""
    one = first.dtype.type(1)
    ratio = (second - first) / (between + between)
    size = abs(ratio)
    squared = np.minimum(size, one.dtype.type(Rotations.of(one.dtype).most_squared))
    tangent = np.copysign(one, ratio) / (size + np.maximum(np.sqrt(squared * squared + one), size))
    cosine = one / np.sqrt(tangent * tangent + one)
    sine = tangent * cosine
    rest = sine / (one + cosine)
    s, r = sine[:, None], rest[:, None]
    for matrices in each:
        x, y = matrices[chosen, :, p], matrices[chosen, :, q]
        matrices[chosen, :, p], matrices[chosen, :, q] = x - s * (y + r * x), y + s * (x - r * y)
    return np.asarray(tangent)


def _inner(one: Array, other: Array) -> Array:
    """Products of rows, added up from the first one on."""
    total = np.zeros((len(one), *one.shape[2:]), one.dtype)
    for row in range(one.shape[1]):
        total = total + one[:, row] * other[:, row]
    return total


def _unit_vector(known: Array, left: Array, values: Array, column: int) -> Array:
    """A column of `left` at length 1, or, where it is lost, one that is orthogonal to those that are known."""
    if column >= left.shape[2]:
        return _completing(known)
    norm = values[:, column]
    lost = np.flatnonzero(norm < Rotations.of(left.dtype).lost)
    found = left[:, :, column] / norm[:, None]
    found[lost] = _completing(known[lost])
    return found


def _completing(known: Array) -> Array:
    """Orthogonal to the columns: what is left of the unit vector that they say least about."""
    weights = _inner(np.swapaxes(known, 1, 2), np.swapaxes(known, 1, 2))
    vector = (np.arange(weights.shape[1]) == np.nan_to_num(weights).argmin(-1)[:, None]).astype(weights.dtype)
    for column in [*range(known.shape[2])] * 2:
        share = _inner(known[:, :, column], vector)
        vector = vector - share[:, None] * known[:, :, column]
    return np.asarray(vector / np.sqrt(_inner(vector, vector))[:, None])
