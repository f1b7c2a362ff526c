"""Decompositions of matrices, composed of simpler operations and loops: QR, Eigh, SVD.

All take batches. Inside, the batch is one dimension; loops are sweeps of Jacobi rotations, of half as many pairs at
once as there are rows.
"""

from xlapy.builder.decompositions.factorizations import QR
from xlapy.builder.decompositions.jacobi import SVD, Eigh

__all__ = ["QR", "SVD", "Eigh"]
