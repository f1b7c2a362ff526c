"""Fits a line through points that are spread over the processes of `mpiexec`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from mpi4py import MPI

import xlapy
from xlapy import ops

POINTS = 10_000  # of each process
FEATURES = 8
STEPS = 40
RATE = 0.5
TOLERANCE = 1e-3


def descent(processes: int) -> xlapy.XlaComputation:
    """(inputs f32[POINTS, FEATURES], targets f32[POINTS]) -> weights f32[FEATURES], after STEPS steps."""
    b = xlapy.XlaBuilder("descent")
    inputs = b.parameter(0, xlapy.Shape.array(np.float32, (POINTS, FEATURES)), "inputs")
    targets = b.parameter(1, xlapy.Shape.array(np.float32, (POINTS,)), "targets")
    weights = ops.Constant(b, np.zeros(FEATURES, np.float32))
    for _ in range(STEPS):
        errors = ops.Dot(inputs, weights) - targets
        gradient = ops.AllReduce(ops.Dot(errors, inputs), ops.Add)
        weights = weights - gradient * np.float32(RATE / (POINTS * processes))
    return b.build(weights)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 if all processes have found the weights."""
    argparse.ArgumentParser(prog="mpiexec python -m examples.distributed", description=__doc__).parse_args(arguments)
    world = MPI.COMM_WORLD
    random = np.random.default_rng(world.Get_rank())
    truth = np.arange(FEATURES, dtype=np.float32)
    inputs = random.normal(size=(POINTS, FEATURES)).astype(np.float32)
    targets = inputs @ truth

    options = xlapy.CompileOptions(num_replicas=world.Get_size(), timeout=60)
    run = xlapy.compile(descent(world.Get_size()), options)
    weights = run.run_distributed(inputs, targets)

    error = float(np.abs(weights - truth).max())
    agree = world.allreduce(weights.tobytes() == world.bcast(weights.tobytes()), MPI.LAND)
    if world.Get_rank() == 0:
        processes = "one process" if world.Get_size() == 1 else f"{world.Get_size()} processes"
        print(f"{processes}: largest error {error:.1e}, the same bits everywhere: {agree}")
    return 0 if agree and error < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
