"""Every op ignores padding: native code on arrays amid garbage, against the evaluator on arrays of the exact size.

A program is the instructions of an entry computation, or computations; it may use the regions below.
"""

import numpy as np
import pytest

import xlapy
from tests.support import dynamic_sizes
from tests.support.random_dynamic import random_program
from xlapy import ops
from xlapy.builder import XlaBuilder
from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.element_types import ALL, C64, F32, PRED, S32, ElementType
from xlapy.hlo.graph import Computation, HloModule
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse
from xlapy.support.errors import ShapeError

REGIONS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
add16 { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT s = bf16[] add(a, b) }
addc { a = c64[] parameter(0)  b = c64[] parameter(1)  ROOT s = c64[] add(a, b) }
adds { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT s = s32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }
min8 { a = u8[] parameter(0)  b = u8[] parameter(1)  ROOT s = u8[] minimum(a, b) }
and { a = pred[] parameter(0)  b = pred[] parameter(1)  ROOT s = pred[] and(a, b) }
last { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(b, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = pred[] compare(a, b), direction=LT }
ge { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = pred[] compare(a, b), direction=GE }
less2 {
  a = s32[] parameter(0)  b = s32[] parameter(1)  c = f32[] parameter(2)  d = f32[] parameter(3)
  ROOT s = pred[] compare(a, b), direction=GT
}
best {
  a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  x = f32[] select(p, a, b)  y = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(x, y)
}
scaled { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] subtract(a, b)  ROOT s = f32[] abs(c) }
"""

STRUCTURE = {
    "arithmetic": "p = f32[<=5,3] parameter(0)  q = f32[<=5,3] parameter(1)  ROOT r = f32[<=5,3] multiply(p, q)",
    "one side is bounded": "p = f32[<=5] parameter(0)  q = f32[5] parameter(1)  ROOT r = f32[<=5] add(p, q)",
    "choice": """
      p = f32[<=5] parameter(0)  q = f32[<=5] parameter(1)  c = pred[<=5] compare(p, q), direction=LT
      ROOT r = f32[<=5] select(c, p, q)""",
    "choice by a scalar": """
      p = f32[<=5] parameter(0)  q = f32[<=5] parameter(1)  c = pred[] parameter(2)
      ROOT r = f32[<=5] select(c, p, q)""",
    "clamped by scalars": """
      p = f32[<=5] parameter(0)  l = f32[] constant(-1)  h = f32[] constant(1)
      ROOT r = f32[<=5] clamp(l, p, h)""",
    "conversion": "p = f32[<=5] parameter(0)  ROOT r = s8[<=5] convert(p)",
    "map": """
      p = f32[<=5] parameter(0)  q = f32[<=5] parameter(1)
      ROOT r = f32[<=5] map(p, q), dimensions={0}, to_apply=scaled""",
    "a size": "p = f32[3,<=5] parameter(0)  ROOT r = s32[] get-dimension-size(p), dimensions={1}",
    "a size grows": """
      p = f32[<=5] parameter(0)  n = s32[] parameter(1)
      ROOT r = f32[<=5] set-dimension-size(p, n), dimensions={0}""",
    "tuples and barriers": """
      p = f32[<=5] parameter(0)  q = s32[<=3] parameter(1)
      t = (f32[<=5], s32[<=3]) tuple(p, q)  b = (f32[<=5], s32[<=3]) opt-barrier(t)
      ROOT r = s32[<=3] get-tuple-element(b), index=1""",
    "dependency": """
      p = f32[<=5] parameter(0)  t = token[] after-all()
      ROOT r = f32[<=5] add-dependency(p, t)""",
    "whole counters": "p = f32[<=5] parameter(0)  i = f32[<=5] iota(), iota_dimension=0  ROOT r = f32[<=5] add(p, i)",
    "bits, narrower": "p = f32[<=5] parameter(0)  ROOT r = u8[<=5,4] bitcast-convert(p)",
    "bits, wider": "p = u16[<=5,2] parameter(0)  ROOT r = u32[<=5] bitcast-convert(p)",
}

SHAPES = {
    "broadcast": "p = f32[<=3] parameter(0)  ROOT r = f32[2,<=3,4] broadcast(p), dimensions={1}",
    "transpose": "p = f32[2,<=3,<=4] parameter(0)  ROOT r = f32[<=4,2,<=3] transpose(p), dimensions={2,0,1}",
    "merge": "p = f32[<=3,4] parameter(0)  ROOT r = f32[<=12] reshape(p)",
    "merge the minor one": "p = f32[3,<=4] parameter(0)  ROOT r = f32[<=12] reshape(p)",
    "merge two": "p = f32[<=3,<=4] parameter(0)  ROOT r = f32[<=12] reshape(p)",
    "merge three amid others": "p = s32[2,<=3,2,<=4,5] parameter(0)  ROOT r = s32[2,<=24,5] reshape(p)",
    "split": "p = f32[<=12] parameter(0)  ROOT r = f32[<=3,4] reshape(p)",
    "split, minor bounded": "p = f32[<=12] parameter(0)  ROOT r = f32[3,<=4] reshape(p)",
    "split, two bounded": "p = f32[<=12] parameter(0)  ROOT r = f32[<=3,<=4] reshape(p)",
    "runs of their own": "p = f32[2,<=3,<=4] parameter(0)  ROOT r = f32[<=6,<=4] reshape(p)",
    "other factors": "p = f32[<=4,<=6] parameter(0)  ROOT r = f32[3,<=8] reshape(p)",
    "ones": "p = f32[<=1,5,<=3] parameter(0)  ROOT r = f32[5,<=1,<=3] reshape(p)",
    "ones come": "p = f32[<=3,2] parameter(0)  ROOT r = f32[1,<=3,1,2] reshape(p)",
    "a bounded one goes": "p = f32[<=1,5] parameter(0)  ROOT r = f32[<=5] reshape(p)",
    "nothing": "p = f32[0,<=3] parameter(0)  ROOT r = f32[<=2,0] reshape(p)",
    "part": "p = f32[<=6,3] parameter(0)  ROOT r = f32[3,2] slice(p), slice={[1:6:2],[0:2]}",
    "part of another": "p = f32[<=6,3] parameter(0)  ROOT r = f32[<=6,2] slice(p), slice={[0:6],[1:3]}",
    "reverse": "p = f32[<=6,<=3] parameter(0)  ROOT r = f32[<=6,<=3] reverse(p), dimensions={0,1}",
    "pad": "p = f32[<=4] parameter(0)  z = f32[] constant(7)  ROOT r = f32[<=10] pad(p, z), padding=1_2_1",
    "pad by less": "p = f32[<=6] parameter(0)  z = f32[] constant(7)  ROOT r = f32[<=6] pad(p, z), padding=-2_2",
    "cut": "p = f32[<=6] parameter(0)  z = f32[] constant(7)  ROOT r = f32[<=3] pad(p, z), padding=-1_-2",
    "join": """
      p = f32[<=4,<=2] parameter(0)  q = f32[3,<=2] parameter(1)  o = f32[<=2,<=2] parameter(2)
      ROOT r = f32[<=9,<=2] concatenate(p, q, o), dimensions={0}""",
    "join beside": """
      p = f32[<=4,2] parameter(0)  q = f32[<=4,3] parameter(1)
      ROOT r = f32[<=4,5] concatenate(p, q), dimensions={1}""",
}

INDEXING = {
    "a slice": """
      p = f32[<=6,<=3] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)
      ROOT r = f32[2,<=3] dynamic-slice(p, i, j), dynamic_slice_sizes={2,3}""",
    "a slice at a small integer": """
      p = f32[<=300] parameter(0)  i = s8[] parameter(1)
      ROOT r = f32[5] dynamic-slice(p, i), dynamic_slice_sizes={5}""",
    "a slice at an unsigned integer": """
      p = f32[<=6] parameter(0)  i = u64[] parameter(1)
      ROOT r = f32[5] dynamic-slice(p, i), dynamic_slice_sizes={5}""",
    "an update of a bounded array": """
      p = f32[<=6] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
      ROOT r = f32[<=6] dynamic-update-slice(p, u, i)""",
    "a bounded update": """
      p = f32[6,3] parameter(0)  u = f32[<=4,2] parameter(1)  i = s32[] parameter(2)  j = s32[] parameter(3)
      ROOT r = f32[6,3] dynamic-update-slice(p, u, i, j)""",
    "a bounded update of a bounded array": """
      p = f32[<=6,<=3] parameter(0)  u = f32[<=4,<=3] parameter(1)  i = s64[] parameter(2)  j = s64[] parameter(3)
      ROOT r = f32[<=6,<=3] dynamic-update-slice(p, u, i, j)""",
    "an update as large as the array": """
      p = f32[4] parameter(0)  u = f32[<=4] parameter(1)  i = u8[] parameter(2)
      ROOT r = f32[4] dynamic-update-slice(p, u, i)""",
    "rows": """
      p = f32[<=6,<=3] parameter(0)  i = s32[<=4] parameter(1)
      ROOT r = f32[<=4,<=3] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
        index_vector_dim=1, slice_sizes={1,3}""",
    "blocks": """
      p = f32[<=6,4] parameter(0)  i = u8[3,2] parameter(1)
      ROOT r = f32[3,2,2] gather(p, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0},
        index_vector_dim=1, slice_sizes={2,2}""",
    "batches": """
      p = f32[<=3,<=6] parameter(0)  i = s32[3,2] parameter(1)
      ROOT r = f32[<=3,2] gather(p, i), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1},
        operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}""",
    "scattered rows": """
      p = f32[<=6,<=3] parameter(0)  i = s32[<=4,1] parameter(1)  u = f32[<=4,<=3] parameter(2)
      ROOT r = f32[<=6,<=3] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add""",
    "scattered into a bounded array": """
      p = f32[<=6] parameter(0)  i = s32[4,1] parameter(1)  u = f32[4,2] parameter(2)
      ROOT r = f32[<=6] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=scaled""",
    "scattered at no index": """
      p = f32[3] parameter(0)  i = s32[<=4,0] parameter(1)  u = f32[<=4,<=3] parameter(2)
      ROOT r = f32[3] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={},
        scatter_dims_to_operand_dims={}, index_vector_dim=1, to_apply=add""",
}

FOLDS = {
    "sum": """
      p = f32[<=5,<=3] parameter(0)
      z = f32[] constant(2.5)
      ROOT r = f32[<=5] reduce(p, z), dimensions={1}, to_apply=add""",
    "sum of all": """
      p = f32[<=5,<=3] parameter(0)
      z = f32[] constant(1)
      ROOT r = f32[] reduce(p, z), dimensions={0,1}, to_apply=add""",
    "sum of narrow floats": """
      p = bf16[<=5] parameter(0)
      z = bf16[] constant(2)
      ROOT r = bf16[] reduce(p, z), dimensions={0}, to_apply=add16""",
    "sum of complex numbers": """
      p = c64[<=5,2] parameter(0)
      z = c64[] constant((1,2))
      ROOT r = c64[2] reduce(p, z), dimensions={0}, to_apply=addc""",
    "largest": """
      p = f32[<=5,3] parameter(0)
      z = f32[] constant(0.5)
      ROOT r = f32[3] reduce(p, z), dimensions={0}, to_apply=max""",
    "smallest": """
      p = u8[<=5] parameter(0)  z = u8[] constant(3)
      ROOT r = u8[] reduce(p, z), dimensions={0}, to_apply=min8""",
    "all": """
      p = pred[<=5] parameter(0)
      z = pred[] constant(true)
      ROOT r = pred[] reduce(p, z), dimensions={0}, to_apply=and""",
    "an odd fold": """
      p = f32[<=5,2] parameter(0)
      z = f32[] constant(9)
      ROOT r = f32[2] reduce(p, z), dimensions={0}, to_apply=last""",
    "best and where": """
      p = f32[<=5,<=3] parameter(0)  i = s32[<=5,<=3] iota(), iota_dimension=1
      z = f32[] constant(-inf)  n = s32[] constant(-1)
      ROOT r = (f32[<=5], s32[<=5]) reduce(p, i, z, n), dimensions={1}, to_apply=best""",
    "sort": "p = f32[<=6,<=3] parameter(0)  ROOT r = f32[<=6,<=3] sort(p), dimensions={0}, to_apply=less",
    "sort along another": "p = f32[<=6,3] parameter(0)  ROOT r = f32[<=6,3] sort(p), dimensions={1}, to_apply=less",
    "sort of two": """
      p = s32[<=6] parameter(0)  q = f32[<=6] parameter(1)
      ROOT r = (s32[<=6], f32[<=6]) sort(p, q), dimensions={0}, is_stable=true, to_apply=less2""",
    "best": "p = f32[<=2,<=6] parameter(0)  ROOT r = (f32[<=2,<=4], s32[<=2,<=4]) topk(p), k=4, largest=true",
    "worst": "p = s8[2,<=6] parameter(0)  ROOT r = (s8[2,<=3], s32[2,<=3]) topk(p), k=3, largest=false",
    "best of whole rows": "p = f32[<=2,6] parameter(0)  ROOT r = (f32[<=2,3], s32[<=2,3]) topk(p), k=3, largest=true",
}

WINDOWS = {
    "sums": """
      p = f32[<=7,<=4] parameter(0)  z = f32[] constant(0)
      ROOT r = f32[<=4,<=4] reduce-window(p, z), window={size=3x2 stride=2x1 pad=1_1x0_1}, to_apply=add""",
    "dilated, of a start that counts": """
      p = f32[<=5] parameter(0)  z = f32[] constant(1)
      ROOT r = f32[<=9] reduce-window(p, z), window={size=3 pad=2_2 lhs_dilate=2 rhs_dilate=2}, to_apply=add""",
    "pools and back": """
      p = f32[<=6,<=4] parameter(0)  s = f32[<=3,<=2] parameter(1)  z = f32[] constant(0.25)
      ROOT r = f32[<=6,<=4] select-and-scatter(p, s, z), window={size=2x2 stride=2x2}, select=ge, scatter=add""",
    "overlapping pools and back": """
      p = f32[<=5] parameter(0)  s = f32[<=5] parameter(1)  z = f32[] constant(0)
      ROOT r = f32[<=5] select-and-scatter(p, s, z), window={size=3 pad=1_1}, select=ge, scatter=add""",
    "a batch of pools and back": """
      p = f32[<=3,4] parameter(0)  s = f32[<=3,2] parameter(1)  z = f32[] constant(0)
      ROOT r = f32[<=3,4] select-and-scatter(p, s, z), window={size=1x2 stride=1x2}, select=ge, scatter=add""",
}

PRODUCTS = {
    "matrices": """
      p = f32[<=3,<=4] parameter(0)  q = f32[<=4,<=5] parameter(1)
      ROOT r = f32[<=3,<=5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "batches": """
      p = f32[<=3,2,<=4] parameter(0)  q = f32[3,<=4,2] parameter(1)
      ROOT r = f32[<=3,2,2] dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
        rhs_contracting_dims={1}""",
    "batches of the other side": """
      p = f32[3,2,4] parameter(0)  q = f32[<=3,4,2] parameter(1)
      ROOT r = f32[<=3,2,2] dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
        rhs_contracting_dims={1}""",
    "convolution": """
      p = f32[<=2,<=7,<=3] parameter(0)  k = f32[3,<=3,<=4] parameter(1)
      ROOT r = f32[<=2,<=4,<=4] convolution(p, k), window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f""",
    "convolution, dilated": """
      p = f32[2,<=5,3] parameter(0)  k = f32[2,3,4] parameter(1)
      ROOT r = f32[2,<=8,4] convolution(p, k), window={size=2 pad=1_0 lhs_dilate=2 rhs_dilate=2},
        dim_labels=b0f_0io->b0f""",
    "a small kernel": """
      p = f32[2,7,3] parameter(0)  k = f32[<=3,3,4] parameter(1)
      ROOT r = f32[2,5,4] convolution(p, k), window={size=3}, dim_labels=b0f_0io->b0f""",
    "a small reversed kernel": """
      p = f32[2,7,3] parameter(0)  k = f32[<=3,3,4] parameter(1)
      ROOT r = f32[2,7,4] convolution(p, k), window={size=3 pad=1_1 rhs_reversal=1}, dim_labels=b0f_0io->b0f""",
    "groups of features": """
      p = f32[2,5,<=6] parameter(0)  k = f32[2,<=3,<=8] parameter(1)
      ROOT r = f32[2,4,<=8] convolution(p, k), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2""",
    "each feature alone": """
      p = f32[2,5,<=6] parameter(0)  k = f32[2,1,<=6] parameter(1)
      ROOT r = f32[2,4,<=6] convolution(p, k), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=6""",
    "groups of a batch": """
      p = f32[<=6,5,3] parameter(0)  k = f32[2,<=3,<=4] parameter(1)
      ROOT r = f32[<=3,4,<=4] convolution(p, k), window={size=2}, dim_labels=b0f_0io->b0f, batch_group_count=2""",
    "spectra of bounded rows": """
      p = f32[2,<=8] parameter(0)
      ROOT r = c64[2,<=5] fft(p), fft_type=RFFT, fft_length={8}""",
    "spectra of bounded batches": """
      p = c64[<=2,6] parameter(0)
      ROOT r = c64[<=2,6] fft(p), fft_type=FFT, fft_length={6}""",
    "spectra of two dimensions": """
      p = c64[<=4,<=6] parameter(0)
      ROOT r = c64[<=4,<=6] fft(p), fft_type=IFFT, fft_length={4,6}""",
    "back from spectra": "p = c64[2,<=5] parameter(0)  ROOT r = f32[2,8] fft(p), fft_type=IRFFT, fft_length={8}",
    "factors": """
      p = f32[2,<=4,<=4] parameter(0)
      s = f32[2,<=4,<=4] dot(p, p), lhs_batch_dims={0}, rhs_batch_dims={0},
        lhs_contracting_dims={2}, rhs_contracting_dims={2}
      one = f32[] constant(1)  i = s32[4,4] iota(), iota_dimension=0  j = s32[4,4] iota(), iota_dimension=1
      e = pred[4,4] compare(i, j), direction=EQ  c = f32[4,4] convert(e)  u = f32[2,4,4] broadcast(c), dimensions={1,2}
      d = f32[2,<=4,<=4] add(s, u)
      ROOT r = f32[2,<=4,<=4] cholesky(d), lower=true""",
    "factors with pivots": """
      p = f32[<=2,<=5,<=4] parameter(0)
      ROOT r = (f32[<=2,<=5,<=4], s32[<=2,<=4], s32[<=2,<=5]) lu(p)""",
    "factors with pivots of whole rows": """
      p = f32[2,<=3,4] parameter(0)
      ROOT r = (f32[2,<=3,4], s32[2,<=3], s32[2,<=3]) lu(p)""",
    "reflections": """
      p = f32[<=2,<=5,<=4] parameter(0)
      ROOT r = (f32[<=2,<=5,<=4], f32[<=2,<=4]) qr-decomposition(p)""",
    "products of reflections": """
      p = f32[<=9,3,2] parameter(0)
      q = (f32[<=9,3,2], f32[<=9,2]) qr-decomposition(p)
      a = f32[<=9,3,2] get-tuple-element(q), index=0  t = f32[<=9,2] get-tuple-element(q), index=1
      ROOT r = f32[<=9,3,2] householder-product(a, t)""",
    "eigenvalues": """
      p = f32[<=9,3,3] parameter(0)
      ROOT r = (f32[<=9,3,3], f32[<=9,3]) eigh(p), lower=true""",
    "singular values": """
      p = f32[<=9,3,2] parameter(0)
      ROOT r = (f32[<=9,3,3], f32[<=9,2], f32[<=9,2,2]) svd(p), full_matrices=true""",
    "systems": """
      b = f32[<=4,<=3] parameter(0)  n = s32[] get-dimension-size(b), dimensions={0}
      i = s32[4,4] iota(), iota_dimension=0  j = s32[4,4] iota(), iota_dimension=1
      t = s32[4,4] add(i, j)  a = f32[4,4] convert(t)  one = f32[] constant(1)
      o = f32[4,4] broadcast(one), dimensions={}
      m = f32[4,4] add(a, o)  rows = f32[<=4,4] set-dimension-size(m, n), dimensions={0}
      s = f32[<=4,<=4] set-dimension-size(rows, n), dimensions={1}
      ROOT r = f32[<=4,<=3] triangular-solve(s, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE""",
}

NORMALIZATION = {
    "training": """
      p = f32[<=4,<=3] parameter(0)  s = f32[<=3] parameter(1)  o = f32[3] parameter(2)
      ROOT r = (f32[<=4,<=3], f32[<=3], f32[<=3]) batch-norm-training(p, s, o), epsilon=0.5, feature_index=1""",
    "inference": """
      p = f32[<=4,3] parameter(0)  s = f32[3] parameter(1)  v = f32[3] multiply(s, s)
      ROOT r = f32[<=4,3] batch-norm-inference(p, s, s, s, v), epsilon=0.5, feature_index=1""",
    "gradients": """
      p = f32[<=4,<=3] parameter(0)  s = f32[<=3] parameter(1)  v = f32[<=3] multiply(s, s)
      g = f32[<=4,<=3] parameter(2)
      ROOT r = (f32[<=4,<=3], f32[<=3], f32[<=3]) batch-norm-grad(p, s, s, v, g), epsilon=0.5, feature_index=1""",
}

CONTROL_FLOW = {
    "a loop over a bounded array": """
      c0 { s = (s32[], f32[<=5]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(3)
        ROOT l = pred[] compare(i, n), direction=LT }
      b0 { s = (s32[], f32[<=5]) parameter(0)  i = s32[] get-tuple-element(s), index=0
        x = f32[<=5] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
        z = f32[] constant(0)  t = f32[] reduce(x, z), dimensions={0}, to_apply=add
        w = f32[<=5] broadcast(t), dimensions={}  q = f32[] constant(0.25)  v = f32[<=5] broadcast(q), dimensions={}
        u = f32[<=5] multiply(w, v)  y = f32[<=5] add(x, u)  ROOT r = (s32[], f32[<=5]) tuple(j, y) }
      ENTRY e { p = f32[<=5] parameter(0)  o = s32[] constant(0)  t = (s32[], f32[<=5]) tuple(o, p)
        w = (s32[], f32[<=5]) while(t), condition=c0, body=b0
        ROOT r = f32[<=5] get-tuple-element(w), index=1 }""",
    "a size that shrinks": """
      c1 { s = f32[<=5] parameter(0)  n = s32[] get-dimension-size(s), dimensions={0}  two = s32[] constant(2)
        ROOT l = pred[] compare(n, two), direction=GT }
      b1 { s = f32[<=5] parameter(0)  n = s32[] get-dimension-size(s), dimensions={0}  one = s32[] constant(1)
        m = s32[] subtract(n, one)  x = f32[<=5] negate(s)
        ROOT r = f32[<=5] set-dimension-size(x, m), dimensions={0} }
      ENTRY e { p = f32[<=5] parameter(0)  ROOT w = f32[<=5] while(p), condition=c1, body=b1 }""",
    "a size that grows": """
      c2 { s = (f32[2,<=5], s32[<=3]) parameter(0)  x = f32[2,<=5] get-tuple-element(s), index=0
        n = s32[] get-dimension-size(x), dimensions={1}  four = s32[] constant(4)
        ROOT l = pred[] compare(n, four), direction=LT }
      b2 { s = (f32[2,<=5], s32[<=3]) parameter(0)  x = f32[2,<=5] get-tuple-element(s), index=0
        y = s32[<=3] get-tuple-element(s), index=1  n = s32[] get-dimension-size(x), dimensions={1}
        one = s32[] constant(1)  m = s32[] add(n, one)  z = f32[2,<=5] set-dimension-size(x, m), dimensions={1}
        e = f32[2,<=5] exponential(z)  ROOT r = (f32[2,<=5], s32[<=3]) tuple(e, y) }
      ENTRY e { p = f32[2,<=5] parameter(0)  q = s32[<=3] parameter(1)  t = (f32[2,<=5], s32[<=3]) tuple(p, q)
        ROOT w = (f32[2,<=5], s32[<=3]) while(t), condition=c2, body=b2 }""",
    "branches": """
      y3 { x = f32[<=5] parameter(0)  ROOT n = f32[<=5] negate(x) }
      n3 { x = (f32[<=5], s32[]) parameter(0)  a = f32[<=5] get-tuple-element(x), index=0
        n = s32[] get-tuple-element(x), index=1
        b = f32[<=5] set-dimension-size(a, n), dimensions={0}  ROOT e = f32[<=5] exponential(b) }
      ENTRY e { p = f32[<=5] parameter(0)  c = pred[] parameter(1)  n = s32[] parameter(2)
        t = (f32[<=5], s32[]) tuple(p, n)
        ROOT r = f32[<=5] conditional(c, p, t), true_computation=y3, false_computation=n3 }""",
    "branches that agree by being bounded": """
      y4 { x = f32[<=5,3] parameter(0)  ROOT n = f32[<=5,3] negate(x) }
      n4 { x = f32[5,<=3] parameter(0)  ROOT n = f32[5,<=3] abs(x) }
      o4 { x = s32[] parameter(0)  f = f32[] convert(x)  ROOT b = f32[5,3] broadcast(f), dimensions={} }
      ENTRY e { p = f32[<=5,3] parameter(0)  q = f32[5,<=3] parameter(1)  i = s32[] parameter(2)
        r = f32[<=5,<=3] conditional(i, p, q, i), branch_computations={y4, n4, o4}  z = f32[] constant(0)
        ROOT t = f32[<=3] reduce(r, z), dimensions={0}, to_apply=add }""",
    "calls, nested and shared": """
      f5 { x = f32[<=5] parameter(0)  z = f32[] constant(0)
        t = f32[] reduce(x, z), dimensions={0}, to_apply=add  w = f32[<=5] broadcast(t), dimensions={}
        ROOT r = f32[<=5] subtract(x, w) }
      g5 { x = f32[<=5] parameter(0)  y = f32[<=5] call(x), to_apply=f5  ROOT z = f32[<=5] call(y), to_apply=f5 }
      ENTRY e { p = f32[<=5] parameter(0)  q = f32[<=5] parameter(1)  a = f32[<=5] call(p), to_apply=g5
        b = f32[<=5] call(q), to_apply=f5  ROOT t = (f32[<=5], f32[<=5]) tuple(a, b) }""",
    "a loop in a branch in a loop": """
      ic { s = f32[<=5] parameter(0)  n = s32[] get-dimension-size(s), dimensions={0}  two = s32[] constant(2)
        ROOT l = pred[] compare(n, two), direction=GT }
      ib { s = f32[<=5] parameter(0)  n = s32[] get-dimension-size(s), dimensions={0}  two = s32[] constant(2)
        m = s32[] subtract(n, two)  x = f32[<=5] reverse(s), dimensions={0}
        ROOT r = f32[<=5] set-dimension-size(x, m), dimensions={0} }
      y6 { x = f32[<=5] parameter(0)  ROOT w = f32[<=5] while(x), condition=ic, body=ib }
      n6 { x = f32[<=5] parameter(0)  ROOT n = f32[<=5] negate(x) }
      c6 { s = (s32[], f32[<=5]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(3)
        ROOT l = pred[] compare(i, n), direction=LT }
      b6 { s = (s32[], f32[<=5]) parameter(0)  i = s32[] get-tuple-element(s), index=0
        x = f32[<=5] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
        k = pred[] compare(i, one), direction=EQ
        y = f32[<=5] conditional(k, x, x), true_computation=y6, false_computation=n6
        ROOT r = (s32[], f32[<=5]) tuple(j, y) }
      ENTRY e { p = f32[<=5] parameter(0)  o = s32[] constant(0)  t = (s32[], f32[<=5]) tuple(o, p)
        ROOT w = (s32[], f32[<=5]) while(t), condition=c6, body=b6 }""",
    "static outside, bounded inside": """
      f7 { x = f32[5] parameter(0)  n = s32[] constant(2)  y = f32[<=5] set-dimension-size(x, n), dimensions={0}
        z = f32[] constant(0)  ROOT t = f32[] reduce(y, z), dimensions={0}, to_apply=add }
      g7 { x = f32[5] parameter(0)  ROOT t = f32[] constant(1) }
      ENTRY e { p = f32[5] parameter(0)  c = pred[] parameter(1)
        ROOT r = f32[] conditional(c, p, p), true_computation=f7, false_computation=g7 }""",
}

FAMILIES = {
    "structure": STRUCTURE,
    "shapes": SHAPES,
    "indexing": INDEXING,
    "folds": FOLDS,
    "windows": WINDOWS,
    "products": PRODUCTS,
    "normalization": NORMALIZATION,
    "control flow": CONTROL_FLOW,
}


def program(text: str) -> HloModule:
    return parse(REGIONS + (text if "ENTRY" in text else "ENTRY e {\n" + text + "\n}"))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_op_sees_padding(family: str) -> None:
    dynamic_sizes.check({name: program(text) for name, text in FAMILIES[family].items()})


def elementwise_programs() -> dict[str, HloModule]:
    """Each element-wise op of the table, on arrays one of which is bounded, the others perhaps."""
    programs: dict[str, HloModule] = {}
    for name, spec in OPS.items():
        if Trait.ELEMENTWISE in spec.traits and name not in ("map", "reduce-precision"):
            programs[name] = elementwise_program(name)
    return programs


def elementwise_program(name: str) -> HloModule:
    """On the first element types that the op takes."""
    count = sum(parameter.name != "result" for parameter in OPS[name].operands)
    attributes = {"compare": {"direction": ComparisonDirection.LT}}.get(name, {})
    for element_type in (F32, S32, C64):
        entry = Computation("e")
        kinds = [PRED if name == "select" and number == 0 else element_type for number in range(count)]
        shapes = [Shape.array(kind, (5, 3), (True, number == 1)) for number, kind in enumerate(kinds)]
        operands = [entry.add("parameter", shape=shape, number=number) for number, shape in enumerate(shapes)]
        stated = Shape.array(element_type, (5, 3), (True, count > 1)) if OPS[name].takes_result else None
        try:
            entry.set_root(entry.add(name, operands, shape=stated, **attributes))
        except ShapeError:
            continue
        return HloModule(name, entry)
    raise AssertionError(f"{name} takes none of the types that are tried")


def test_no_elementwise_op_sees_padding() -> None:
    dynamic_sizes.check(elementwise_programs(), tolerance=1e-3)


BATCH = 8


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(8, 200, 8))])
def test_random_programs(first: int) -> None:
    programs = {str(seed): random_program(seed) for seed in range(first, first + BATCH)}
    dynamic_sizes.check(programs, tolerance=0, seed=first)


def folds_of(element_type: ElementType) -> dict[str, HloModule]:
    """Sum, extremes, order and the best of a bounded array."""
    name = element_type.name
    start = {"pred": "true", "complex": "(1,0)"}.get(element_type.kind, "1")
    texts = {
        f"{opcode} of {name}": f"""
          f {{ a = {name}[] parameter(0)  b = {name}[] parameter(1)  ROOT s = {name}[] {opcode}(a, b) }}
          ENTRY e {{ p = {name}[<=5,3] parameter(0)  z = {name}[] constant({start})
            ROOT r = {name}[3] reduce(p, z), dimensions={{0}}, to_apply=f }}"""
        for opcode in ("add", "maximum", "minimum", "multiply")
        if not (element_type.is_complex and opcode in ("maximum", "minimum"))
    }
    if element_type.is_integer or element_type.is_float:
        texts[f"best of {name}"] = f"""
          ENTRY e {{ p = {name}[2,<=5] parameter(0)
            ROOT r = ({name}[2,<=3], s32[2,<=3]) topk(p), k=3, largest=true }}"""
    return {title: parse(text) for title, text in texts.items()}


def test_no_fold_of_any_element_type_sees_padding() -> None:
    programs: dict[str, HloModule] = {}
    for element_type in ALL:
        programs |= folds_of(element_type)
    dynamic_sizes.check(programs, tolerance=1e-2)


def test_the_builder_keeps_bounded_dimensions_bounded() -> None:
    b = XlaBuilder("bounded")
    x = ops.Parameter(b, 0, Shape.array(F32, (4, 6), (True, True)))
    results = [
        ops.Reshape(x, (24,)), ops.Reshape(x, (2, 12)), ops.Collapse(x, (0, 1)), x[None], x[0], x[:, 0], x[1:3],
        ops.BitcastConvertType(x, np.uint8), ops.GetDimensionSize(x, 1),
    ]  # fmt: skip
    assert [str(result.shape) for result in results] == [
        "f32[<=24]", "f32[<=2,12]", "f32[<=24]", "f32[1,<=4,<=6]", "f32[<=6]", "f32[<=4]", "f32[2,<=6]",
        "u8[<=4,<=6,4]", "s32[]",
    ]  # fmt: skip
    run = xlapy.compile(b.build(ops.Tuple(b, results)))
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    flat, halves, collapsed, nested, first, column, rows, octets, count = run(given)
    assert flat.tolist() == collapsed.tolist() == given.reshape(-1).tolist()
    assert halves.shape == (0, 12)
    assert nested.tolist() == [given.tolist()]
    assert (first.tolist(), column.tolist(), int(count)) == ([0, 1, 2], [0, 3], 3)
    assert rows.tolist() == [[3, 4, 5], [0, 0, 0]]
    assert octets.tolist() == given.view(np.uint8).reshape(2, 3, 4).tolist()
