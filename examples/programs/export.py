"""Writes the files of the programs: their StableHLO, and what XLA computes for their arguments. This needs JAX.

python -m examples.programs.export              all of them
python -m examples.programs.export kmeans       one of them
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from examples.programs.catalogue import PROGRAMS, Program
from examples.programs.sources import networks, simulations, transformers

SOURCES: dict[str, Callable[..., Any]] = {
    "perceptron": networks.perceptron,
    "perceptron_training": networks.perceptron_training,
    "cnn_training": networks.convolutional_training,
    "transformer": transformers.transformer,
    "transformer_training": transformers.transformer_training,
    "decoding": transformers.decoding,
    "lstm": networks.lstm,
    "ray_marcher": simulations.ray_marcher,
    "orbits": simulations.orbits,
    "fft_filter": simulations.filtering,
    "kmeans": simulations.clustering,
    "particle_filter": simulations.particles,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.programs.export", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *PROGRAMS], help="which to write (all)")
    for name in parser.parse_args(arguments).names or PROGRAMS:
        program = PROGRAMS[name]
        text, results = export(program)
        program.path("mlir").write_text(text)
        save: Any = np.savez_compressed  # whose keywords are names
        save(program.path("npz"), **results)
        print(f"{name}: {len(text)} characters, {sum(result.nbytes for result in results.values())} bytes of results")


def export(program: Program) -> tuple[str, dict[str, np.ndarray]]:
    """The StableHLO, and the results by their paths, in order."""
    config: Any = jax.config
    config.update("jax_enable_x64", is_wide(program))
    jitted = jax.jit(SOURCES[program.name], keep_unused=True)
    results = jax.tree_util.tree_leaves_with_path(jitted(*program.arguments))
    return jitted.lower(*program.arguments).as_text(), {_dotted(path): np.asarray(leaf) for path, leaf in results}


def is_wide(program: Program) -> bool:
    """Whether an argument has 64 bits: then the whole program is traced in the mode that has them."""
    return any(leaf.dtype.itemsize == np.dtype(np.float64).itemsize for leaf in program.leaves)


def _dotted(path: Any) -> str:
    return ".".join(str(getattr(key, "key", getattr(key, "idx", key))) for key in path)


if __name__ == "__main__":
    main()
