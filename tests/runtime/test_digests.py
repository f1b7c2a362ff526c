"""Digests of texts tell them apart, short and long."""

from __future__ import annotations

import pytest

from xlapy_runtime.digests import DIGEST_BYTES, LONG_TEXT, digest_of_text


@pytest.mark.parametrize("size", [10, LONG_TEXT - 1, LONG_TEXT])
def test_facts_and_every_part_of_a_text_count(size: int) -> None:
    text = "0" * size
    changed = [text[:place] + "1" + text[place + 1 :] for place in (0, size // 2, size - 1)]
    others = [*(digest_of_text(b"facts", other) for other in changed), digest_of_text(b"fact", text)]
    others += [digest_of_text(b"", text), digest_of_text(b"facts", text + "0")]
    assert digest_of_text(b"facts", text) == digest_of_text(b"facts", "0" * size) not in others
    assert len({*others}) == len(others)
    assert len(digest_of_text(b"facts", text)) == DIGEST_BYTES


def test_facts_and_text_do_not_run_together() -> None:
    assert digest_of_text(b"ab", "c") != digest_of_text(b"a", "bc")


def test_any_character_counts() -> None:
    texts = ["", "a", "\u00e4", "\U0001f600", "\ud800", "\ud83d\ude00"]
    assert len({digest_of_text(b"", text) for text in texts}) == len(texts)
