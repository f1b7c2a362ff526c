"""Checksums and keys: BLAKE2b as `hashlib` has it, which would first load OpenSSL for the sake of others."""

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
