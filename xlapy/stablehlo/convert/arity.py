"""How many operands, regions and results operations have, where their converters rely on it."""

from __future__ import annotations

from functools import lru_cache

from xlapy.stablehlo.tree import Operation
from xlapy.support.errors import ParseError
from xlapy.support.records import Record
from xlapy.support.wording import counted

MANY = 1 << 30


class Arity(Record):
    """The least and the largest number of operands, and the numbers of regions and of results (None: any)."""

    least: int
    most: int
    regions: int | None = 0
    results: int | None = 1


_ONE, _TWO = Arity(1, 1), Arity(2, 2)
_ARITIES = {
    "all_gather": Arity(1, MANY, 0, None),
    "all_reduce": Arity(1, MANY, 1, None),
    "batch_norm_grad": Arity(5, 5, 0, None),
    "batch_norm_inference": Arity(5, 5),
    "batch_norm_training": Arity(3, 3, 0, None),
    "bitcast_convert": _ONE,
    "broadcast": _ONE,
    "broadcast_in_dim": _ONE,
    "case": Arity(1, 1, None, None),
    "cholesky": _ONE,
    "collective_broadcast": _ONE,
    "collective_permute": _ONE,
    "conj": _ONE,
    "constant_like": _ONE,
    "convert": _ONE,
    "convolution": _TWO,
    "dot": _TWO,
    "dot_general": _TWO,
    "dynamic_gather": Arity(3, 3),
    "dynamic_slice": Arity(1, MANY),
    "dynamic_update_slice": Arity(2, MANY),
    "fft": _ONE,
    "gather": _TWO,
    "get_dimension_size": _ONE,
    "get_tuple_element": _ONE,
    "if": Arity(1, 1, 2, None),
    "iota": Arity(0, 0),
    "is_finite": _ONE,
    "is_inf": _ONE,
    "is_neg_inf": _ONE,
    "is_pos_inf": _ONE,
    "map": Arity(0, MANY, 1),
    "mulhi": _TWO,
    "outfeed": Arity(1, MANY),
    "pad": _TWO,
    "reduce": Arity(0, MANY, 1, None),
    "reduce_precision": _ONE,
    "reduce_scatter": Arity(1, MANY, 1, None),
    "reduce_window": Arity(0, MANY, 1, None),
    "reshape": _ONE,
    "reverse": _ONE,
    "scatter": Arity(0, MANY, 1, None),
    "select_and_scatter": Arity(3, 3, 2),
    "send": Arity(1, MANY),
    "set_dimension_size": _TWO,
    "slice": _ONE,
    "sort": Arity(0, MANY, 1, None),
    "square": _ONE,
    "transpose": _ONE,
    "triangular_solve": _TWO,
    "tuple": Arity(0, MANY),
    "uniform_dequantize": _ONE,
    "uniform_quantize": _ONE,
    "while": Arity(0, MANY, 2, None),
}
"""By mnemonic. What is missing checks for itself: the op that an operation becomes knows its operands. So do the ops
whose constraints say how many there are at the least."""

_OTHER_DIALECTS = frozenset({"arith", "shape", "tensor"})
_ARITIES_ELSEWHERE = {
    "shape.dim": _TWO,
    "shape.get_extent": _TWO,
    "shape.index_to_size": _ONE,
    "shape.num_elements": _ONE,
    "shape.shape_of": _ONE,
    "shape.size_to_index": _ONE,
    "shape.to_extent_tensor": _ONE,
    "shape.value_as_shape": _ONE,
    "shape.value_of": _ONE,
    "tensor.cast": _ONE,
    "tensor.dim": _TWO,
    "tensor.extract": Arity(1, MANY),
    "tensor.from_elements": Arity(0, MANY),
    "tensor.splat": _ONE,
}
"""By name: the operations of these dialects on sizes."""


def check_arity(operation: Operation) -> None:
    """Raises ParseError, without a place, if an operation has the wrong number of parts."""
    arity = _arity_of(operation.name)
    if arity is None:
        return
    operands, regions, results = len(operation.operands), len(operation.regions), len(operation.result_types)
    if not arity.least <= operands <= arity.most:
        few = "at least " if arity.most == MANY else ""
        raise ParseError(f"{operation.name} takes {few}{counted(arity.least, 'operand')}, but has {operands}")
    if arity.regions not in (None, regions):
        raise ParseError(f"{operation.name} has {counted(arity.regions or 0, 'region')}, not {regions}")
    if arity.results not in (None, results):
        raise ParseError(f"{operation.name} has {counted(arity.results or 0, 'result')}, not {results}")


@lru_cache(maxsize=1024)  # a text may name anything
def _arity_of(name: str) -> Arity | None:
    dialect, _, mnemonic = name.partition(".")
    return _ARITIES_ELSEWHERE.get(name) if dialect in _OTHER_DIALECTS else _ARITIES.get(mnemonic)
