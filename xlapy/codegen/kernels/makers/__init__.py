"""Who makes kernels: one file for each family of operations. Importing this package registers all of them."""

from xlapy.codegen.kernels.makers import folds, fusions, loops, movement, ordering, products, random, scatters
from xlapy.codegen.kernels.makers.base import KERNELS, SCRATCH_ALIGNMENT, Kernel, Situation, aligned
from xlapy.codegen.kernels.makers.fusions import brief_fold_to_finish, bytes_of_brief_results, has_results_to_finish
from xlapy.codegen.kernels.makers.loops import RUNS_AS_LOOP, loop_of, runs_as_loop

__all__ = [
    "KERNELS",
    "RUNS_AS_LOOP",
    "SCRATCH_ALIGNMENT",
    "Kernel",
    "Situation",
    "aligned",
    "brief_fold_to_finish",
    "bytes_of_brief_results",
    "folds",
    "fusions",
    "has_results_to_finish",
    "loop_of",
    "loops",
    "movement",
    "ordering",
    "products",
    "random",
    "runs_as_loop",
    "scatters",
]
