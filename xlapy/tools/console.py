"""What the command line writes to: colour on a terminal only, and a line of progress while something takes long."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

RED, GREEN, BOLD, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"

WRONG = 1
"""The exit status for a program that is wrong or fails, or a file that cannot be read."""

PATIENCE = 0.5  # seconds before progress is worth telling

_CARET = re.compile(r"^(\s*)(\^)$", re.MULTILINE)


def painted(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour, if the stream is a terminal."""
    return f"{colour}{text}{PLAIN}" if stream.isatty() else text


def report_error(error: Exception) -> None:
    """One message on stderr, with the place in the program where there is one."""
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    if sys.stderr.isatty():
        text = _CARET.sub(rf"\1{RED}\2{PLAIN}", text)
    print(f"{painted('xlapy:', RED, sys.stderr)} {text}", file=sys.stderr)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Says `what` on the last line of a terminal, once it takes a while, and takes it back at the end."""
    if not sys.stderr.isatty():
        yield
        return
    said = threading.Event()

    def say() -> None:
        said.set()
        sys.stderr.write(f"{what} ...")
        sys.stderr.flush()

    timer = threading.Timer(PATIENCE, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if said.is_set():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
