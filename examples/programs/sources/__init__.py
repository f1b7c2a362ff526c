"""The programs as they are written for JAX. Only `examples.programs.export` imports them."""
