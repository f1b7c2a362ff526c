"""The labels of StableHLO's specification where the op table cannot know them."""

from __future__ import annotations

from xlapy.hlo.shape import Shape

_COMMON = "C1"
"""Element-wise operations have one constraint, about all their types."""

_RESULT = {
    "all_gather": ("C6",),
    "all_reduce": ("C6",),
    "all_to_all": ("C9",),
    "batch_norm_grad": ("C3", "C4"),
    "batch_norm_inference": ("C7",),
    "batch_norm_training": ("C7", "C5", "C6"),
    "case": ("C4",),
    "cholesky": ("C1",),
    "clamp": ("C4",),
    "compare": ("C2",),
    "collective_broadcast": ("C3",),
    "collective_permute": ("C5",),
    "complex": ("C2",),
    "concatenate": ("C6",),
    "convolution": ("C25",),
    "dot_general": ("C12",),
    "dynamic_slice": ("C5",),
    "fft": ("C5",),
    "gather": ("C13",),
    "get_tuple_element": ("C2",),
    "if": ("C3",),
    "pad": ("C4",),
    "reduce": ("C7",),
    "reduce_scatter": ("C8",),
    "rng": ("C3",),
    "reduce_window": ("C15", "C14"),
    "scatter": ("C16",),
    "select": ("C2",),
    "select_and_scatter": ("C11",),
    "slice": ("C5",),
    "sort": ("C2",),
    "transpose": ("C3",),
    "triangular_solve": ("C4",),
    "while": ("C3",),
}
"""The constraints that give the results their types: the first, the second ..., the last one those that are left."""

_RESULT_RANK = {"convolution": "C26"}
"""The constraint that gives the result its rank, where that is another one."""

_RESULT_TYPE = {
    "abs": "C2",
    "all_reduce": "C7",
    "complex": "C3",
    "concatenate": "C5",
    "dynamic_slice": "C1",
    "gather": "C14",
    "imag": "C2",
    "real": "C2",
    "reduce": "C8",
    "reduce_scatter": "C9",
    "reduce_window": "C16",
    "scatter": "C17",
    "select_and_scatter": "C12",
    "slice": "C1",
    "transpose": "C1",
}
"""The constraint that gives the results their element types, where that is another one."""

_OTHER = {"if": {"same-result": "C2"}}
"""Of operations that are another op's special case: constraints of that op which count differently here."""


def result_label(mnemonic: str, position: int, found: Shape, stated: Shape) -> str:
    """The label of result number `position`, which is not what it is stated as."""
    labels = _RESULT.get(mnemonic, (_COMMON,))
    label = labels[min(position, len(labels) - 1)]
    if found.is_array and stated.is_array:
        if found.rank != stated.rank:
            label = _RESULT_RANK.get(mnemonic, label)
        elif found.has_dims_of(stated):
            label = _RESULT_TYPE.get(mnemonic, label)
    return f"{mnemonic}.{label}"


def result_count_label(mnemonic: str) -> str:
    """The label of an operation that has another number of results than is stated."""
    return f"{mnemonic}.{_RESULT.get(mnemonic, (_COMMON,))[0]}"


def other_label(mnemonic: str, slug: str) -> str:
    """The label of a constraint that does not have the label of the op table, or the empty string."""
    return _OTHER.get(mnemonic, {}).get(slug, "")
