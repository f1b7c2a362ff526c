"""The reference evaluator: what a program means, obviously right, in numpy."""

from xlapy.hlo.evaluate import (
    bits,
    communication,
    contractions,
    control_flow,
    elementwise,
    fft,
    indexing,
    linalg,
    normalization,
    ordering,
    random,
    reductions,
    rotations,
    shapes,
    special,
    structure,
    windows,
)
from xlapy.hlo.evaluate.base import EVALUATORS
from xlapy.hlo.evaluate.interpreter import Interpreter, evaluate, evaluate_parallel

__all__ = [
    "EVALUATORS",
    "Interpreter",
    "bits",
    "communication",
    "contractions",
    "control_flow",
    "elementwise",
    "evaluate",
    "evaluate_parallel",
    "fft",
    "indexing",
    "linalg",
    "normalization",
    "ordering",
    "random",
    "reductions",
    "rotations",
    "shapes",
    "special",
    "structure",
    "windows",
]
