"""Sizes of blocks that are recycled: the smallest, and four between each double of it and the next one."""

from __future__ import annotations

import functools

_CLASSES_PER_DOUBLING = 4


@functools.lru_cache(maxsize=1024)
def size_class(byte_count: int, least: int) -> int:
    """The smallest class whose blocks hold that many bytes; those of class 0 hold `least`, a multiple of 4."""
    doublings = max(0, ((byte_count - 1) // least).bit_length() - 1)
    step_bytes = (least << doublings) // _CLASSES_PER_DOUBLING
    excess = max(0, byte_count - (least << doublings))
    return doublings * _CLASSES_PER_DOUBLING + -(-excess // step_bytes)


@functools.lru_cache(maxsize=256)
def class_bytes(number: int, least: int) -> int:
    """How many bytes a block of the class holds."""
    doublings, steps = divmod(number, _CLASSES_PER_DOUBLING)
    return (least + steps * (least // _CLASSES_PER_DOUBLING)) << doublings
