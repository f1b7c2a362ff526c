"""How fast compiled programs run, beside XLA:CPU and beside the machine's limits: `python -m benchmarks`.

A workload is a JAX function with inputs. It is lowered to StableHLO once, and that is what both compilers are given.
Each engine lives in a worker process of its own and is timed in turns with the others; `docs/performance.md` says what
the numbers mean.
"""
