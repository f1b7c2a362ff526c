"""distributed: gradient descent in several processes, on one machine or on many, which add up gradients over MPI.

Each process has examples of its own; the program adds up the gradients of all with an all-reduce in every step, and so
every process ends with the same weights, to the bit.

    mpiexec -n 4 python -m mpi4py -m examples.distributed
"""
