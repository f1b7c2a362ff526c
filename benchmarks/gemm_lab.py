"""How fast the matrix products are: GFLOP/s of one thread and of several, the share of the machine's peak, and numpy.

    python -m benchmarks.gemm_lab                  f32, one thread
    python -m benchmarks.gemm_lab f64 --threads 2

The peak is that of multiply-adds in registers, measured in the same run. numpy runs in a process of its own that is
limited to as many threads, because the threads of one library would steal the other's cores. Each figure is the best
of many runs, which is what a busy machine spoils least; complex products count eight operations.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing

import numpy as np

from benchmarks.arguments import positive
from xlapy.codegen.libraries import Library
from xlapy.codegen.libraries.catalogue import LIBRARIES
from xlapy.codegen.libraries.gemm import product_function
from xlapy.codegen.libraries.gemm_problem import SIZES
from xlapy.codegen.object_cache import ObjectCache
from xlapy.codegen.pool import POOL
from xlapy.codegen.target import host_target
from xlapy.report.limits import Probe
from xlapy_runtime import threads
from xlapy_runtime.linking import LinkedCode, link

SHAPES = [
    *[(size, size, size) for size in (16, 32, 64, 128, 256, 512, 1024, 2048)],
    (1, 4096, 1024),
    (8, 4096, 1024),
    (32, 1000, 2048),
    (64, 64, 16384),
    (4096, 8, 1024),
    (4096, 1, 1024),
    (197, 768, 768),
    (1000, 1000, 16),
]
DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
SECONDS_PER_FIGURE = 0.1
PAGE = 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("type", nargs="?", default="f32", choices=sorted(DTYPES))
    parser.add_argument("--threads", type=positive, default=1, help="for ours, and for numpy (default: 1)")
    parser.add_argument("--numpy", action="store_true", help="only measure numpy, and print JSON")
    options = parser.parse_args()
    if options.numpy:
        print(json.dumps(numpy_figures(DTYPES[options.type])))
        return
    theirs = figures_of_a_numpy_process(options.type, options.threads)
    ours = own_figures(options.type, options.threads)
    peak = peak_gigaflops(DTYPES[options.type], options.threads)
    print(f"{options.type}, {options.threads} thread(s), peak {peak:.0f} GFLOP/s\n")
    print(f"{'m x n x k':>18} {'GFLOP/s':>8} {'of peak':>8} {'numpy':>8} {'ratio':>6}")
    for shape, own, other in zip(SHAPES, ours, theirs, strict=True):
        label = " x ".join(map(str, shape))
        print(f"{label:>18} {own:8.1f} {own / peak:8.0%} {other:8.1f} {own / other:6.2f}")


def peak_gigaflops(dtype: type, num_threads: int) -> float:
    """What so many threads multiply and add in registers."""
    with closing(Probe(num_threads)) as probe:
        return probe.best("f32" if dtype in (np.float32, np.complex64) else "f64") / 1e9


def own_figures(name: str, num_threads: int) -> list[float]:
    started = time.perf_counter()
    symbols: dict[str, int] = {}
    codes = []  # what is not kept is unloaded
    for library in ("scratch", f"gemm_{name}", f"gemm_{name}_low"):
        codes.append(linked(LIBRARIES[library], symbols))
        symbols |= codes[-1].addresses()
    print(f"made and linked in {time.perf_counter() - started:.2f} s")
    threads.install(POOL.objects(host_target(), ObjectCache(None)))
    parallel = threads.parallel_address(num_threads)
    figures = []
    for m, n, k in SHAPES:
        a, b, c = operands(m, n, k, DTYPES[name])
        numbers = (1, m, n, k, 0, k, 1, 0, n, 1, 0, n, 1, 0)
        _, function = product_function(name, dict(zip(SIZES, numbers, strict=False)))
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)(symbols[function])
        sizes = (ctypes.c_int64 * len(SIZES))(*numbers)
        arguments = (parallel, a.ctypes.data, b.ctypes.data, c.ctypes.data, ctypes.addressof(sizes), None, None)
        figures.append(gigaflops(m, n, k, c.dtype, lambda run=run, arguments=arguments: run(*arguments)))  # type: ignore[misc]
    return figures


def linked(library: Library, imports: dict[str, int]) -> LinkedCode:
    """The library in the memory of this process."""
    return link(library.objects(host_target(), ObjectCache(None)), imports, library.exports)


def figures_of_a_numpy_process(name: str, num_threads: int) -> list[float]:
    limits = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), str(num_threads))
    command = [sys.executable, "-m", "benchmarks.gemm_lab", name, "--numpy"]
    done = subprocess.run(command, env={**os.environ, **limits}, capture_output=True, text=True, check=True)
    figures: list[float] = json.loads(done.stdout)
    return figures


def numpy_figures(dtype: type) -> list[float]:
    figures = []
    for m, n, k in SHAPES:
        a, b, c = operands(m, n, k, dtype)
        figures.append(gigaflops(m, n, k, c.dtype, lambda a=a, b=b, c=c: np.matmul(a, b, out=c)))  # type: ignore[misc]
    return figures


def operands(m: int, n: int, k: int, dtype: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    a, b, c = (page_aligned(shape, dtype) for shape in ((m, k), (k, n), (m, n)))
    a[...] = generator.standard_normal(a.shape)
    b[...] = generator.standard_normal(b.shape)
    return a, b, c


def page_aligned(shape: tuple[int, int], dtype: type) -> np.ndarray:
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    room = np.zeros(size + PAGE, np.uint8)
    start = -room.ctypes.data % PAGE
    return room[start : start + size].view(dtype).reshape(shape)


def gigaflops(m: int, n: int, k: int, dtype: np.dtype, product: Callable[[], object]) -> float:
    operations = m * n * k * (8 if dtype.kind == "c" else 2)
    return operations / best_time(product) / 1e9


def best_time(function: Callable[[], object]) -> float:
    function()
    best, end = float("inf"), time.perf_counter() + SECONDS_PER_FIGURE
    while time.perf_counter() < end:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
