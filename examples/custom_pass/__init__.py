"""A pass of one's own: attention in one sweep over its keys, without the matrix of all scores.

    softmax(q k' / sqrt(d)) v        becomes        a loop over blocks of keys that keeps running maxima and sums

`attention.py` is the pass, `laws.py` a law for the same compilation; `python -m examples.custom_pass` shows what they
do to the memory of a program.
"""

from examples.custom_pass.attention import StreamingAttention
from examples.custom_pass.laws import SOFTMAX_LAWS

__all__ = ["SOFTMAX_LAWS", "StreamingAttention"]
