"""Dumps: numbered files in a folder, one for each state worth looking at afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from xlapy.support.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class DumpFolder:
    """Where dumps go, and which of them are wanted. Files sort in the order in which they were written."""

    path: Path
    wanted: str = ""  # regular expression that a dump's name must contain

    def __post_init__(self) -> None:
        try:
            re.compile(self.wanted)
        except re.error as error:
            raise ArgumentError(
                f"dumps are wanted by a regular expression, which {self.wanted!r} is not: {error}"
            ) from None

    def wants(self, *parts: str) -> bool:
        return re.search(self.wanted, ".".join(parts)) is not None

    def write(self, number: int, *parts: str, suffix: str, text: str) -> Path:
        """Writes `text` to `NUMBER.PART.PART.SUFFIX`, making the folder if need be, and returns the path."""
        stem = ".".join(_SAFE.sub("_", part) for part in parts if part)
        path = self.path / f"{number:04d}.{stem}.{suffix}"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f"dumps cannot be written to {str(self.path)!r}: {error}") from error
        return path


_SAFE = re.compile(r"[^\w.-]+")
