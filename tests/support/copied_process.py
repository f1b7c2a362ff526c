"""Scripts in copies of an interpreter that has imported the compiler and done nothing with it.

As good as an interpreter of their own for what happens once xlapy is there, and a third of a second quicker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any, Self

from tests.support.fresh import ROOT

IMPORTED = ("numpy", "xlapy", "xlapy.api", "xlapy.compiler")


class CopiedProcess:
    """The interpreter, which is started once; close it, or use it as a context."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", __spec__.name],
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'runtime'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()

    def printed_by(self, script: str, *, seconds: int) -> str:
        """The standard output of a script, which must end well and leave its error stream empty; after so many
        `seconds` it is killed."""
        with tempfile.TemporaryDirectory() as folder:
            assert self._server.stdin is not None and self._server.stdout is not None
            self._server.stdin.write(json.dumps([textwrap.dedent(script), folder, seconds]) + "\n")
            self._server.stdin.flush()
            status = int(self._server.stdout.readline())
            printed, errors = ((Path(folder) / name).read_text() for name in STREAMS)
        assert (status, errors) == (0, "")
        return printed.strip()


STREAMS = ("output", "errors")


def serve() -> None:
    """What the interpreter does: for each line that it reads, a copy of it runs a script; it says how that ended."""
    for name in IMPORTED:
        __import__(name)
    for line in sys.stdin:
        script, folder, seconds = json.loads(line)
        child = os.fork()
        if not child:
            run(script, Path(folder), seconds)
            return  # as any interpreter ends
        print(os.waitpid(child, 0)[1], flush=True)


def run(script: str, folder: Path, seconds: int) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    for descriptor, name in enumerate(STREAMS, start=1):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(script, space)


if __name__ == "__main__":
    serve()
