"""How fast compiled programs run, beside XLA:CPU and beside the machine's limits: `python -m benchmarks`.

A workload is a JAX function with inputs. It is lowered to StableHLO once, and both compilers are given that. Each
engine lives in a worker process of its own and is timed in turns with the others; `docs/performance.md` says what the
numbers mean.
"""
