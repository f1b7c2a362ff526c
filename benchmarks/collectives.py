"""Collectives beside XLA:CPU: `python -m benchmarks.collectives`, on 2, 4 and 8 devices in one process.

Every device holds its own array; what is timed is one call that runs the collective on all of them. JAX runs in a
process of its own, because the number of its devices is fixed when it starts. Inputs of JAX are on its devices already;
ours are numpy arrays, and our results are fresh numpy arrays.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.arguments import positive

DEVICES = (2, 4, 8)
SIZES = (1 << 10, 1 << 20)
"""Elements of f32 per device: 4 KB and 4 MB."""

OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
ROUNDS = 15


def quiet_microseconds(call: Callable[[], Any]) -> float:
    """The lower quartile of the times of a call, after two to warm up: other processes only ever add to a time."""
    times = []
    for number in range(ROUNDS + 2):
        began = time.perf_counter()
        call()
        if number >= 2:
            times.append(time.perf_counter() - began)
    return statistics.quantiles(times, n=4)[0] * 1e6


# -- xlapy ---------------------------------------------------------------------------------------------------------


def ours(operation: str, devices: int, size: int) -> float:
    import xlapy

    builder = xlapy.XlaBuilder(operation)
    operand = builder.parameter(0, xlapy.Shape.array(np.float32, (size,)))
    module = builder.build(_recorded(operation, operand, devices))
    executable = xlapy.compile(module, xlapy.CompileOptions(num_replicas=devices))
    arguments = [[row] for row in _inputs(devices, size)]
    return quiet_microseconds(lambda: executable.run_parallel(arguments))


def _recorded(operation: str, operand: Any, devices: int) -> Any:
    from xlapy import ops

    match operation:
        case "all-reduce":
            return ops.AllReduce(operand, ops.Add)
        case "all-gather":
            return ops.AllGather(operand, 0, devices)
        case "reduce-scatter":
            return ops.ReduceScatter(operand, ops.Add, 0, devices)
        case "all-to-all":
            return ops.AllToAll(operand, 0, 0, devices)
        case _:
            return ops.CollectivePermute(operand, _ring(devices))


def _ring(devices: int) -> list[tuple[int, int]]:
    return [(number, (number + 1) % devices) for number in range(devices)]


def _inputs(devices: int, size: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(devices, size)).astype(np.float32)


# -- jax -----------------------------------------------------------------------------------------------------------


def theirs(devices: int, operations: Sequence[str]) -> dict[str, float]:
    """Times by "operation/size", measured in a process with so many devices."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    command = [sys.executable, "-m", "benchmarks.collectives", "--jax", str(devices), "--only", *operations]
    output = subprocess.run(
        command, env={**os.environ, "XLA_FLAGS": flags.strip()}, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    times: dict[str, float] = json.loads(output.splitlines()[-1])
    return times


def measure_jax(devices: int, operations: Sequence[str]) -> dict[str, float]:
    import jax

    lax: Any = jax.lax  # its functions have no types
    functions: dict[str, Callable[[Any], Any]] = {
        "all-reduce": lambda x: lax.psum(x, "i"),
        "all-gather": lambda x: lax.all_gather(x, "i", tiled=True),
        "reduce-scatter": lambda x: lax.psum_scatter(x, "i", tiled=True),
        "all-to-all": lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True),
        "collective-permute": lambda x: lax.ppermute(x, "i", _ring(devices)),
    }
    times = {}
    for operation in operations:
        mapped = jax.pmap(functions[operation], axis_name="i")
        for size in SIZES:
            operand = jax.pmap(lambda x: x)(_inputs(devices, size))  # one row on each device

            def call(mapped: Any = mapped, operand: Any = operand) -> Any:
                return mapped(operand).block_until_ready()

            times[f"{operation}/{size}"] = quiet_microseconds(call)
    return times


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.collectives", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=OPERATIONS, default=OPERATIONS, help="operations to measure")
    parser.add_argument("--devices", nargs="+", type=positive, default=DEVICES, help="numbers of devices")
    parser.add_argument("--jax", type=positive, metavar="N", help="measure JAX on N devices in this process")
    options = parser.parse_args(arguments)
    if options.jax:
        print(json.dumps(measure_jax(options.jax, options.only)))
        return
    print(f"{'operation':20} {'devices':>7} {'elements':>9} {'xlapy us':>10} {'XLA us':>10} {'XLA / xlapy':>11}")
    for devices in options.devices:
        reference = theirs(devices, options.only)
        for operation in options.only:
            for size in SIZES:
                own, other = ours(operation, devices, size), reference[f"{operation}/{size}"]
                print(f"{operation:20} {devices:7} {size:9} {own:10.0f} {other:10.0f} {other / own:11.2f}")


if __name__ == "__main__":
    main()
