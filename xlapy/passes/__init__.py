"""Passes: programs in, better programs out. `pipelines` says which ones run, in which order, and why."""
