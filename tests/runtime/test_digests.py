"""Digests of texts tell them apart, short and long."""

from __future__ import annotations

import pytest

from xlapy_runtime.digests import DIGEST_BYTES, LONG_TEXT, digest_of_text


@pytest.mark.parametrize("size", [10, LONG_TEXT - 1, LONG_TEXT])
def test_facts_and_every_part_of_a_text_count(size: int) -> None:
    text = bytes(size)
    others = [digest_of_text(b"facts", text[:-1] + b"1"), digest_of_text(b"fact", text), digest_of_text(b"", text)]
    assert digest_of_text(b"facts", text) == digest_of_text(b"facts", bytes(size)) not in others
    assert len(digest_of_text(b"facts", text)) == DIGEST_BYTES


def test_facts_and_text_do_not_run_together() -> None:
    assert digest_of_text(b"ab", b"c") != digest_of_text(b"a", b"bc")
