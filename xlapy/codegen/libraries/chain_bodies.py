"""The chains over rows and columns that libraries have: softmaxes and normalizations, as programs write them once they
are simplified. `chain_body.read_body` says how they are written here."""

from __future__ import annotations


def _softmax(wide: str = "", scaling: str = "") -> str:
    """The quotient of exponentials and their sum, which is of a wider type if one is given; of scaled elements."""
    scaled = f"scaled = {scaling} x #" if scaling else ""
    return f"""
        x = whole
        {scaled}
        {_exponentials("scaled" if scaling else "x", wide)}
        result = divide e sum
    """


def _softmax_of(scaled: str) -> str:
    """The same, of what is made from several arrays."""
    return f"""
        x = whole
        {scaled}
        {_exponentials("scaled")}
        result = divide e sum
    """


def _log_softmax(wide: str = "") -> str:
    return f"""
        x = whole
        {_exponentials("x", wide)}
        log = log sum
        result = subtract lower log
    """


def _exponentials(x: str, wide: str = "", suffix: str = "") -> str:
    exponentials = f"""
        top = fold.maximum {x} #
        lower{suffix} = subtract {x} top
        e{suffix} = exponential lower{suffix}
    """
    if not wide:
        return f"{exponentials} sum{suffix} = fold.add e{suffix} #"
    return f"""
        {exponentials}
        terms = convert:{wide} e
        total = fold.add terms #:{wide}
        sum = convert total
    """


def _centered(x: str, type: str = "") -> str:
    """Elements without their mean, and the variance: the mean of their squares."""
    return f"""
        sum = fold.add {x} #{type}
        mean = divide sum #{type}
        centered = subtract {x} mean
        square = multiply centered centered
        squares = fold.add square #{type}
        variance = divide squares #{type}
    """


_MOMENTS = """
        square = multiply x x
        squares = fold.add square #
        mean_square = divide squares #
        sum = fold.add x #
        mean = divide sum #
        centered = subtract x mean
        square_mean = multiply mean mean
        difference = subtract mean_square square_mean
        variance = maximum difference #
"""
"""The same, with the variance from one sweep: the mean of the squares less the square of the mean."""


def _mean_square(x: str, type: str = "") -> str:
    return f"""
        square = multiply {x} {x}
        squares = fold.add square #{type}
        variance = divide squares #{type}
    """


def _normal(x: str, *, by_root: bool = False, type: str = "") -> str:
    """Divided by the root of the variance and a little more."""
    ways = ("inverse = rsqrt shifted", f"normal = multiply {x} inverse")
    if by_root:
        ways = ("deviation = sqrt shifted", f"normal = divide {x} deviation")
    return "\n".join([f"shifted = add variance #{type}", *ways])


def _affine(type: str = "", given: str = "along") -> str:
    return f"""
        scale = {given}{type}
        shift = {given}{type}
        scaled = multiply normal scale
        result = add scaled shift
    """


_SCALED = """
        scale = along
        result = multiply normal scale
"""

_FACTOR_FIRST = """
        shifted = add variance #
        inverse = rsqrt shifted
        scale = along
        shift = along
        factor = multiply inverse scale
        scaled = multiply centered factor
        result = add scaled shift
"""

_CROSS_ENTROPY = f"""
        x = whole
        y = whole
        {_exponentials("x")}
        log = log sum
        logarithm = subtract lower log
        {_exponentials("y", suffix="_of_y")}
        probability = divide e_of_y sum_of_y
        product = multiply logarithm probability
        result = fold.add product #
"""
"""Of two softmaxes, one number for each row."""

_EXPONENTIALS = """
        x = whole
        top = fold.maximum x #
        is_finite = is-finite top
        shift = select is_finite top #
        lower = subtract x shift
        e = exponential lower
        sum = fold.add e #
"""
"""Of what is below a maximum, or zero where that is not finite; their sum."""

_LOG_SUM_EXP = f"""
{_EXPONENTIALS}
        size = abs sum
        log = log size
        result = add log shift
"""
"""One number for each row, and a finite one where all elements are the least."""

_EXPONENTIALS_OF_PARTS = f"""
{_EXPONENTIALS}
        results top sum
"""
"""What the same is made of, of parts of rows (`passes.folds_in_parts`)."""

_MOMENTS_OF_PARTS = """
        x = whole
        sum = fold.add x #
        mean = divide sum #
        centered = subtract x mean
        square = multiply centered centered
        squares = fold.add square #
        results sum mean squares
"""
"""What variances are made of, of parts of rows or columns."""

_MASK = "mask = whole:pred\n"
_TRIANGLE = "mask = triangle #:s32\n"

_WHOLE = "x = whole\n"
_SUM = """
        y = whole
        z = whole
        x = add y z
"""
"""Of an array and what a block of a model adds to it."""

_WIDENED = "x = whole\nwide = convert:f32 x\n"

BODIES = {
    "softmax": _softmax(),
    "softmax_of_products": _softmax(scaling="multiply"),
    "softmax_of_quotients": _softmax(scaling="divide"),
    "softmax_of_sums": _softmax_of("bias = whole \n scaled = add x bias"),
    "softmax_of_chosen": _softmax_of(f"{_MASK} scaled = select mask x #"),
    "softmax_of_chosen_products": _softmax_of(f"{_MASK} product = multiply x # \n scaled = select mask product #"),
    "weights_in_triangle": _softmax_of(f"{_TRIANGLE} scaled = select mask x #"),
    "weights_in_triangle_of_products": _softmax_of(
        f"{_TRIANGLE} product = multiply x # \n scaled = select mask product #"
    ),
    "log_softmax": _log_softmax(),
    "log_sum_exp": _LOG_SUM_EXP,
    "cross_entropy": _CROSS_ENTROPY,
    "layer_norm": _WHOLE + _centered("x") + _normal("centered") + _affine(),
    "layer_norm_of_sums": _SUM + _centered("x") + _normal("centered") + _affine(),
    "layer_norm_by_root": _WHOLE + _centered("x") + _normal("centered", by_root=True) + _affine(),
    "layer_norm_of_moments": _WHOLE + _MOMENTS + _FACTOR_FIRST,
    "standard": _WHOLE + _centered("x") + _normal("centered"),
    "standard_of_moments": _WHOLE + _MOMENTS + _normal("centered"),
    "rms": _WHOLE + _mean_square("x") + _normal("x"),
    "rms_norm_of_sums": _SUM + _mean_square("x") + _normal("x") + _SCALED,
    "unit": _WHOLE + "square = multiply x x \n squares = fold.add square # \n norm = sqrt squares \n y = divide x norm",
    "rms_norm": _WHOLE + _mean_square("x") + _normal("x") + _SCALED,
    "rms_norm_by_root": _WHOLE + _mean_square("x") + _normal("x", by_root=True) + _SCALED,
}
"""By name, for elements of one type."""

FOLDED_BODIES = {
    "moments": _WHOLE + _centered("x") + "results mean variance",
    "variance": _WHOLE + _centered("x"),
    "moments_of_parts": _MOMENTS_OF_PARTS,
    "exponentials_of_parts": _EXPONENTIALS_OF_PARTS,
}
"""The same with some numbers for each row, and nothing to keep before."""

_BATCH_NORM = _WHOLE + _centered("x") + _normal("centered") + _affine(given="across")

COLUMN_BODIES = {
    "batch_norm": _BATCH_NORM,
    "batch_norm_and_moments": _BATCH_NORM + "results result mean variance",
}
"""The same over columns."""

WIDE_BODIES = {
    "wide_softmax": _softmax("f32"),
    "wide_softmax_of_products": _softmax("f32", "multiply"),
    "wide_log_softmax": _log_softmax("f32"),
    "wide_layer_norm": f"""{_WIDENED}
        {_centered("wide", ":f32")}
        {_normal("centered", type=":f32")}
        {_affine(":f32").replace("result = ", "exact = ")}
        result = convert exact""",
    "wide_rms_norm": f"""{_WIDENED}
        {_mean_square("wide", ":f32")}
        {_normal("wide", type=":f32").replace("normal = ", "exact = ")}
        normal = convert exact
        {_SCALED}""",
}
"""For elements that are narrower in memory than what is folded."""


def is_softmax(body: str) -> bool:
    """It keeps exponentials."""
    return "softmax" in body


def is_over_rows(body: str) -> bool:
    return body not in COLUMN_BODIES


def is_over_columns(body: str) -> bool:
    """Programs have it over columns, too."""
    return is_softmax(body) or body in COLUMN_BODIES or body in OVER_WIDE_STRIPS


OVER_WIDE_STRIPS = frozenset({"moments_of_parts", "exponentials_of_parts"})
"""Those over columns of which wide strips are folded in one sweep."""

WITH_LITTLE_WORK = frozenset(
    {"softmax", "softmax_of_products", "softmax_of_quotients", "softmax_of_sums", "wide_softmax"}
)
"""Of the softmaxes: those for which plans have the widest strips of columns."""
