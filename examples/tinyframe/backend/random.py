"""Random numbers that the program draws itself: every call has others."""

from __future__ import annotations

import numpy as np

import xlapy
from examples.tinyframe.backend.recorder import Dims, DType, Handle, Recorder
from xlapy import ops


def uniform(recorder: Recorder, dims: Dims, dtype: DType) -> Handle:
    """Numbers from 0 to 1, without 1."""
    zero, one = (recorder.constant(np.array(bound, dtype)) for bound in (0, 1))
    return ops.RngUniform(zero, one, xlapy.Shape.array(dtype, dims))
