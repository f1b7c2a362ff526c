"""Checksums and keys: BLAKE2b as `hashlib` has it, which would first load OpenSSL for the sake of others."""

from __future__ import annotations

from typing import Any

from xlapy_runtime.late import late

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

LONG_TEXT = 1 << 22
"""Characters for which OpenSSL is worth loading, 4 ms: then SHA-256 takes a third of the time, with the instructions
that most processors have for it (8 MB: 5 ms against 17)."""

DIGEST_BYTES = 32


_PIECE = 1 << 16
"""Characters that are encoded at a time. Megabytes of bytes would be memory that the system has to bring first."""


def digest_of_text(facts: bytes, text: str) -> bytes:
    """A digest of facts and of a text of any length, each of which tells texts apart."""
    is_long = len(text) >= LONG_TEXT
    digest: Any = late("hashlib").sha256(facts) if is_long else blake2b(facts, digest_size=DIGEST_BYTES)
    digest.update(len(facts).to_bytes(8, "little"))
    for begin in range(0, len(text), _PIECE):
        digest.update(text[begin : begin + _PIECE].encode("utf-8", "surrogatepass"))
    return bytes(digest.digest())


__all__ = ["blake2b", "digest_of_text"]
