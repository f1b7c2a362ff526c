"""Decompositions of matrices, composed of simpler operations and loops: QR, Eigh, SVD.

All take batches. Inside, the batch is one dimension; a loop goes through the columns, or sweeps of Jacobi rotations,
and masks say which elements a step is about.
"""

from xlapy.builder.decompositions.factorizations import (
    QR,
    ProductOfElementaryHouseholderReflectors,
    QrDecomposition,
)
from xlapy.builder.decompositions.jacobi import SVD, Eigh

__all__ = ["QR", "SVD", "Eigh", "ProductOfElementaryHouseholderReflectors", "QrDecomposition"]
