"""The global choice of layouts: which dimension of each array varies fastest in memory.

`followers` and `forms` say in which orders each op can read and write, `regions` which values share one order, `prices`
what a program costs in some orders, `choice` picks them, and `rebuild` writes the program down in them.
"""
