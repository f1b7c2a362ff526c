"""The configurations of custom calls: bytes, JSON, MLIR's dictionaries."""

from __future__ import annotations

# ruff: noqa: E501 (tables are kept on their lines)
import pytest

from xlapy.hlo.attributes import CustomCallApiVersion
from xlapy.hlo.text.backend_config import config_bytes, config_text, custom_call_config, quoted, read_backend_config
from xlapy.support.errors import ParseError


@pytest.mark.parametrize(
    "content", [b"", b"plain", bytes(range(256)), b'{"a": 1}', b"{a", b'{a} "tail', b"\\101\\x41", "größe".encode()]
)
def test_bytes_come_back(content: bytes) -> None:
    assert config_bytes(config_text(content)) == content
    assert config_bytes(quoted(content)) == content
    assert quoted(content).isascii()


def test_groups_stand_as_they_are() -> None:
    assert config_text(b'{"a": 1}') == '{"a": 1}'
    assert config_text(b"{a} tail") == '"{a} tail"'


def test_escapes_of_all_sorts_are_read() -> None:
    assert config_bytes(r'"\101\x42\n\t\"\\é"') == b'AB\n\t"\\' + "é".encode()


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ('{"a": 1, "b": [1.5, "x"]}', {"a": 1, "b": (1.5, "x")}),
        ("{a = 1 : i64, b = -2.5e3 : f32, c = true}", {"a": 1, "b": -2500.0, "c": True}),
        ('{name = "x", sizes = [1 : i64, 2], on}', {"name": "x", "sizes": (1, 2), "on": True}),
        ("{dims = array<i64: 1, 2>, none = array<i64>, inner = {k = 7 : ui8}}", {"dims": (1, 2), "none": (), "inner": {"k": 7}}),
        ("{}", {}),
    ],
)  # fmt: skip
def test_dictionaries_are_read(text: str, entries: dict[str, object]) -> None:
    assert read_backend_config(text) == entries


@pytest.mark.parametrize("text", ["{a = 1", "{" * 1000, "{a = " + "[" * 100_000, '{"a": ' + "[" * 100_000])
def test_what_is_no_dictionary_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        read_backend_config(text)


def test_bytes_are_no_values_for_typed_targets() -> None:
    with pytest.raises(ParseError, match="named values"):
        custom_call_config(quoted(b"\xff\xfe"), CustomCallApiVersion.TYPED_FFI)
