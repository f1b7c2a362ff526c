"""The chains over rows that libraries have: softmaxes and normalizations, as programs write them once they are
simplified. `chain_body.read_body` says how they are written here."""

from __future__ import annotations

SOFTMAX = """
    x = whole
    top = fold.maximum x #
    lower = subtract x top
    e = exponential lower
    sum = fold.add e #
    result = divide e sum
"""

SCALED_SOFTMAX = """
    x = whole
    scaled = multiply x #
    top = fold.maximum scaled #
    lower = subtract scaled top
    e = exponential lower
    sum = fold.add e #
    result = divide e sum
"""

LOG_SOFTMAX = """
    x = whole
    top = fold.maximum x #
    lower = subtract x top
    e = exponential lower
    sum = fold.add e #
    log = log sum
    result = subtract lower log
"""

WIDE_SOFTMAX = """
    x = whole
    top = fold.maximum x #
    lower = subtract x top
    e = exponential lower
    wide = convert:f32 e
    sum = fold.add wide #:f32
    narrow = convert sum
    result = divide e narrow
"""

WIDE_LOG_SOFTMAX = """
    x = whole
    top = fold.maximum x #
    lower = subtract x top
    e = exponential lower
    wide = convert:f32 e
    sum = fold.add wide #:f32
    narrow = convert sum
    log = log narrow
    result = subtract lower log
"""

_CENTERED = """
    x = whole
    sum = fold.add x #
    mean = divide sum #
    centered = subtract x mean
    square = multiply centered centered
    squares = fold.add square #
    variance = divide squares #
    shifted = add variance #
    inverse = rsqrt shifted
    normal = multiply centered inverse
"""

LAYER_NORM = f"""
    {_CENTERED.strip()}
    scale = along
    shift = along
    scaled = multiply normal scale
    result = add scaled shift
"""

_ROOT_MEAN_SQUARE = """
    x = whole
    square = multiply x x
    squares = fold.add square #
    mean = divide squares #
    shifted = add mean #
    inverse = rsqrt shifted
    normal = multiply x inverse
"""

RMS_NORM = f"""
    {_ROOT_MEAN_SQUARE.strip()}
    scale = along
    result = multiply normal scale
"""

BODIES = {
    "softmax": SOFTMAX,
    "scaled_softmax": SCALED_SOFTMAX,
    "log_softmax": LOG_SOFTMAX,
    "standard": _CENTERED,
    "layer_norm": LAYER_NORM,
    "rms": _ROOT_MEAN_SQUARE,
    "rms_norm": RMS_NORM,
}
"""By name, for elements of one type."""

WIDE_BODIES = {"wide_softmax": WIDE_SOFTMAX, "wide_log_softmax": WIDE_LOG_SOFTMAX}
"""For elements that are narrower in memory than what is folded."""
