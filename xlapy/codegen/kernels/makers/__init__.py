"""Who makes kernels: one file for each family of operations. Importing this package registers all of them."""

from xlapy.codegen.kernels.makers import folds, fusions, loops, movement, ordering, products, random, scatters
from xlapy.codegen.kernels.makers.base import KERNELS, SCRATCH_ALIGNMENT, Kernel, Situation, aligned
from xlapy.codegen.kernels.makers.fusions import fold_to_finish
from xlapy.codegen.kernels.makers.loops import RUNS_AS_LOOP, loop_of, runs_as_loop

__all__ = [
    "KERNELS",
    "RUNS_AS_LOOP",
    "SCRATCH_ALIGNMENT",
    "Kernel",
    "Situation",
    "aligned",
    "fold_to_finish",
    "folds",
    "fusions",
    "loop_of",
    "loops",
    "movement",
    "ordering",
    "products",
    "random",
    "runs_as_loop",
    "scatters",
]
