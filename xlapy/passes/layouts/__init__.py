"""The global choice of layouts: which dimension of each array varies fastest in memory.

`forms` says in which orders each op can read and write, `regions` which values share one order, `choice` picks the
orders by cost, `rebuild` writes the program down in them.
"""
