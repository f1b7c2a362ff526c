"""MLIR's binary form, and StableHLO's portable artifacts, which are that with an older dialect inside: through jaxlib.

The format is MLIR's own and changes with it, so its own library reads and writes it: the one in jaxlib, if that is
installed. Text needs no such library.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Never

from xlapy.support.errors import ParseError, UnsupportedError

MAGIC = b"ML\xefR"
"""How MLIR's binary form begins."""

_PORTABLE = b"StableHLO_v"
_HEADER_BYTES = 32  # the name of the producer, by which a portable artifact is told, stands within these


def is_bytecode(data: bytes) -> bool:
    return data.startswith(MAGIC)


def is_portable_artifact(data: bytes) -> bool:
    """Whether bytes in MLIR's form say that they are StableHLO of a stated version."""
    return is_bytecode(data) and _PORTABLE in data[:_HEADER_BYTES]


def text_of_bytecode(data: bytes) -> str:
    """The text of a module in MLIR's binary form, portable or not.

    Raises ParseError for bytes that hold no module, UnsupportedError where jaxlib is missing."""
    if not sys.executable:  # Python is part of a program, which cannot be started again
        return _text(data, *_library())
    return _text_from_outside(data)


def _text(data: bytes, ir: Any, dialect: Any, context: Any) -> str:
    with _errors_of(ir, context) as said:
        try:
            is_portable = is_portable_artifact(data)
            return str(dialect.deserialize_portable_artifact(context, data) if is_portable else ir.Module.parse(data))
        except (ir.MLIRError, ValueError, SystemError, MemoryError) as error:
            reason = _reason(said, error)
    raise ParseError(f"{_NO_MODULE}: {reason}")


_NO_MODULE = "these bytes are no module in MLIR's binary form"
_REFUSED, _MISSING = 3, 4
"""How a process ends that was to read a module, and found none, or no jaxlib."""

_PATIENCE = 60.0
_BYTES_PER_SECOND = 100_000
"""How long it may take: so many seconds, and one more for so many bytes, of which jaxlib reads millions."""


def _text_from_outside(data: bytes) -> str:
    """By a process of its own: jaxlib does not check all that it finds in modules, and damaged ones end the process, or
    write wherever they say, or are read for ever."""
    module = f"from {__name__} import read_module; read_module()"
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    around = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    patience = _PATIENCE + len(data) / _BYTES_PER_SECOND
    command = [sys.executable, "-c", module]
    try:
        reader = subprocess.run(command, input=data, capture_output=True, env=around, check=False, timeout=patience)
    except subprocess.TimeoutExpired:
        raise ParseError(f"{_NO_MODULE}: jaxlib was not done with them in {patience:.0f} s") from None
    answer = reader.stdout.decode()
    if reader.returncode == 0:
        return answer
    if reader.returncode == _MISSING:
        raise _no_library()
    if reader.returncode != _REFUSED:
        *_, last_words = ("it says nothing", *reader.stderr.decode(errors="replace").split("\n")[:-1])
        answer = f"{_NO_MODULE}: jaxlib does not survive reading them ({last_words[:300]})"
    raise ParseError(answer)


def read_module() -> Never:
    """Reads a module in MLIR's binary form from standard input, writes its text, or why it is none, and exits."""
    try:
        library = _library_of_reader()
    except UnsupportedError:
        sys.exit(_MISSING)
    try:
        answer, status = _text(sys.stdin.buffer.read(), *library), 0
    except ParseError as error:
        answer, status = error.message, _REFUSED
    sys.stdout.buffer.write(answer.encode())
    sys.exit(status)


def _library_of_reader() -> tuple[Any, Any, Any]:
    """What `_library` gives; in half the time if this jaxlib has the dialects that the newest ones have."""
    try:
        return _library_without_jax()
    except (ImportError, AttributeError):
        return _library()


def _library_without_jax() -> tuple[Any, Any, Any]:
    """Importing JAX would take as long as all the rest."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, mhlo, mpmd, sdy, stablehlo

    registry, context = ir.DialectRegistry(), ir.Context()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (chlo, mpmd, sdy, stablehlo):
        dialect.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    return ir, stablehlo, context


def bytecode_of_text(text: str) -> bytes:
    """A module in MLIR's binary form, of the version that jaxlib has."""
    ir, _, context = _library()
    result = io.BytesIO()
    with _errors_of(ir, context) as said:
        _parsed(ir, text, said).operation.write_bytecode(result)
    return result.getvalue()


def portable_artifact(text: str, target: str) -> bytes:
    """A module as StableHLO of the version `target` ("1.0.0"), which newer libraries read, too."""
    ir, dialect, context = _library()
    with _errors_of(ir, context) as said:
        module = _parsed(ir, text, said)
        try:
            return bytes(dialect.serialize_portable_artifact(module, target))
        except (ir.MLIRError, ValueError, SystemError) as error:
            reason = _reason(said, error)
    known = f"{dialect.get_minimum_version()} to {dialect.get_current_version()}"
    raise UnsupportedError(f"this module is not written as StableHLO {target!r}, of which jaxlib has {known}: {reason}")


def _library() -> tuple[Any, Any, Any]:
    """jaxlib's MLIR, its StableHLO, and a fresh context that knows the dialects of programs."""
    try:
        from jax.interpreters import mlir
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo
    except ImportError:
        raise _no_library() from None
    return ir, stablehlo, mlir.make_ir_context()


def _no_library() -> UnsupportedError:
    return UnsupportedError(
        "MLIR's binary form is read and written by jaxlib, which is not installed: pip install 'xlapy[jax]', "
        "or give the text of the module, str(module)"
    )


def _parsed(ir: Any, text: str, said: list[str]) -> Any:
    try:
        return ir.Module.parse(text)
    except (ir.MLIRError, ValueError) as error:
        raise ParseError(f"MLIR does not read this module: {_reason(said, error)}") from None


@contextlib.contextmanager
def _errors_of(ir: Any, context: Any) -> Iterator[list[str]]:
    """What MLIR says of errors in the context, which is the current one meanwhile. Left to itself, jaxlib ends the
    process where such a message is not UTF-8, as it is when it quotes names from damaged bytes."""
    said: list[str] = []

    def note(diagnostic: Any) -> bool:
        if diagnostic.severity != ir.DiagnosticSeverity.ERROR:
            return False
        with contextlib.suppress(RuntimeError, ValueError):  # not UTF-8
            said.append(str(diagnostic))
        return True

    with context:
        context.emit_error_diagnostics = True
        handler = context.attach_diagnostic_handler(note)
        try:
            yield said
        finally:
            handler.detach()


def _reason(said: Sequence[str], error: BaseException) -> str:
    """What MLIR said first, or else what was raised."""
    return " ".join((said[0] if said else str(error)).split())[:300]


__all__ = ["bytecode_of_text", "is_bytecode", "is_portable_artifact", "portable_artifact", "text_of_bytecode"]
