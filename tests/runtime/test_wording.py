"""Words of messages."""

from __future__ import annotations

import pytest

from xlapy_runtime.wording import kind_of


@pytest.mark.parametrize(("value", "kind"), [(1, "an int"), ([], "a list"), (ValueError(), "a ValueError")])
def test_kinds_have_their_articles(value: object, kind: str) -> None:
    assert kind_of(value) == kind
