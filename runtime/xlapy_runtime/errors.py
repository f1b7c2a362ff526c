"""The error classes of xlapy.

Every error that a user can cause is an `XlaError`. It says which operation, what it was given, what was required,
under which rule, and where: the user's own line for the builder, line, column and caret for text.

    ShapeError: concatenate(f32[2,3], f32[5,4]): f32[5,4] and f32[2,3] differ outside dimension 1  [Concatenate.B3]
      model.py:41: y = ops.ConcatInDim(b, [x, h], 1)

An error is raised bare where the fault is seen, and gains its surroundings on the way up (`add_context`), because a
shape rule knows neither the front end nor the line.
"""

from __future__ import annotations

from typing import Self


class XlaError(Exception):
    """Base class of all errors raised by xlapy. `str(error)` is one headline and one line per piece of context."""

    def __init__(self, message: str, *, rule: str = "", where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.subject = ""
        self.rule = rule
        self.where = where

    def add_context(self, *, subject: str = "", rule: str = "", where: str = "") -> Self:
        """Fills in what is still unknown: the operation with its operands, the full label, the place. Returns self."""
        self.subject = self.subject or subject
        self.rule = rule or self.rule
        self.where = self.where or where
        return self

    def __str__(self) -> str:
        headline = _shortened(f"{self.subject}: {self.message}" if self.subject else self.message)
        if self.rule:
            headline += f"  [{self.rule}]"
        return headline + ("\n  " + self.where.replace("\n", "\n  ") if self.where else "")


_LONGEST_LINE = 4000


def _shortened(text: str) -> str:
    """The text without the middle of lines that nobody reads to their end: an operation may have a million operands."""
    if len(text) <= _LONGEST_LINE:
        return text
    half = _LONGEST_LINE // 2
    lines = (line if len(line) <= _LONGEST_LINE else f"{line[:half]} ... {line[-half:]}" for line in text.split("\n"))
    return "\n".join(lines)


class ShapeError(XlaError, ValueError):
    """Operands, attributes or regions break a constraint of an operation.

    `rule` starts as the constraint's slug ("same-other-dims"); whoever knows the front end replaces it by a full
    label ("Concatenate.B3")."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message, rule=rule)


class ParseError(XlaError, ValueError):
    """Text or bytes that are not a program. For text, `where` holds line, column and a caret."""


class SavedProgramError(XlaError, ValueError):
    """A file that is no saved program, or none for this machine or this version. The message names the file."""


class UnsupportedError(XlaError):
    """Something valid that xlapy knowingly does not do; the table of limitations has its row and reason."""


class ArgumentError(XlaError, TypeError):
    """Arguments of the wrong number, type, shape or kind: of a program, an operation, a function of xlapy; options."""


class ExecutionError(XlaError, RuntimeError):
    """A running program failed: a custom call raised, a channel or a collective could not complete."""


class OutOfMemoryError(ExecutionError, MemoryError):
    """There is no memory for a result, a copy of an argument, or what a program needs in between; it says how much."""


class DeadlineError(ExecutionError, TimeoutError):
    """A participant did not arrive in time; the message names it."""


class CancelledExecution(ExecutionError):
    """The run was stopped because another participant failed or the user interrupted it."""


class InternalError(XlaError, AssertionError):
    """A broken promise between xlapy's own parts: always a bug in xlapy, never the user's."""
