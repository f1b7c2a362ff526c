"""What is measured of each function: the exact function, its domain, and the bound that is promised."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special

INFINITY = math.inf


@dataclass(frozen=True)
class Case:
    """One function: `exact` is mpmath's; `quick` is numpy's, in a wider type, where there is one.

    `bound` is in ulp for f32 and f64. `floor` is the absolute error, relative to max(1, |result|), that is allowed
    beside: near its zeros such a function has no relative accuracy."""

    name: str
    exact: Callable[..., Any]
    low: float = -INFINITY
    high: float = INFINITY
    quick: Callable[..., Any] | None = None
    bound: tuple[float, float] = (2.0, 2.0)
    floor: float = 0.0
    arity: int = 1
    # scipy's function, where numpy has none: exact enough for f32 only.
    quick_single: Callable[..., Any] | None = None

    def wider(self, kind: str) -> Callable[..., Any] | None:
        """A function of numpy arrays in a type wider than `kind`."""
        return self.quick or (self.quick_single if kind == "f32" else None)


def _cbrt(x: Any) -> Any:
    return mp.cbrt(x) if x >= 0 else -mp.cbrt(-x)


def _remainder(x: Any, y: Any) -> Any:
    return mp.sign(x) * mp.fmod(abs(x), abs(y))


def _log_gamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x))) if abs(x) < 1e4 else mp.re(mp.loggamma(x))


def _bessel(order: int) -> Callable[[Any], Any]:
    return lambda x: mp.besseli(order, x) * mp.exp(-abs(x))


def _quick_logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


ONE_ARGUMENT = [
    Case("acos", mp.acos, -1, 1, np.arccos),
    Case("acosh", mp.acosh, 1, INFINITY, np.arccosh),
    Case("asin", mp.asin, -1, 1, np.arcsin),
    Case("asinh", mp.asinh, quick=np.arcsinh),
    Case("atan", mp.atan, quick=np.arctan),
    Case("atanh", mp.atanh, -0.999999, 0.999999, np.arctanh),
    Case("bessel_i0e", _bessel(0), -1e4, 1e4, bound=(0.6, 16), quick_single=scipy.special.i0e),
    Case("bessel_i1e", _bessel(1), -1e4, 1e4, bound=(0.6, 16), quick_single=scipy.special.i1e),
    Case("cbrt", _cbrt, quick=np.cbrt),
    Case("cos", mp.cos, quick=np.cos),
    Case("cosh", mp.cosh, -720, 720, np.cosh),
    Case("digamma", mp.digamma, -100, INFINITY, bound=(0.6, 2), floor=2e-14, quick_single=scipy.special.digamma),
    Case("erf", mp.erf, bound=(2, 2.5), quick_single=scipy.special.erf),
    Case("erf_inv", mp.erfinv, -0.999999, 0.999999, bound=(3, 4), quick_single=scipy.special.erfinv),
    # f32: e^(-x^2), reduced, and two factors, each rounded once, and the sum and the product of them.
    Case("erfc", mp.erfc, -10, 28, bound=(3, 3), quick_single=scipy.special.erfc),
    Case("exp", mp.exp, -750, 720, np.exp),
    Case("exp2", lambda x: mp.power(2, x), -1080, 1030, np.exp2),
    Case("expm1", mp.expm1, -750, 720, np.expm1),
    Case("lgamma", _log_gamma, -100, 1e30, bound=(0.6, 4), floor=1e-14, quick_single=scipy.special.gammaln),
    Case("log", mp.log, 0, INFINITY, np.log),
    Case("log1p", mp.log1p, -0.9999999, INFINITY, np.log1p),
    Case("log2", lambda x: mp.log(x) / mp.log(2), 0, INFINITY, np.log2),
    Case("logistic", lambda x: 1 / (1 + mp.exp(-x)), -750, 750, _quick_logistic),
    Case("rsqrt", lambda x: 1 / mp.sqrt(x), 0, INFINITY, lambda x: 1 / np.sqrt(x)),
    Case("sin", mp.sin, quick=np.sin),
    Case("sinh", mp.sinh, -720, 720, np.sinh),
    Case("sqrt", mp.sqrt, 0, INFINITY, np.sqrt, (0.5, 0.5)),
    Case("tan", mp.tan, quick=np.tan),
    Case("tanh", mp.tanh, quick=np.tanh),
]
TWO_ARGUMENTS = [
    Case("atan2", mp.atan2, quick=np.arctan2, arity=2),
    Case("power", mp.power, 0, INFINITY, np.power, arity=2),
    Case("remainder", _remainder, bound=(0, 0), arity=2),
]
CASES = {case.name: case for case in (*ONE_ARGUMENT, *TWO_ARGUMENTS)}
