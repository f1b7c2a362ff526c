"""Several hundred functions of JAX, for every element type they take, and their gradients: xlapy beside XLA.

    python -m tests.jax.breadth                        all of them; some minutes
    python -m tests.jax.breadth --only erf,betainc     those with a word in their expression
    python -m tests.jax.breadth --types f32,bf16       for these element types

The functions stand in `tables/`, a line each; `values` makes what they are called with; what is known to differ, and
why, is a table of `xlapy.hlo.limitations`.
"""
