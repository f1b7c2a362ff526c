"""How the processes of one run reach each other. A transport moves what `collectives` describes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from xlapy_runtime.errors import InternalError
from xlapy_runtime.process_groups import Group


@dataclass(frozen=True, slots=True)
class Deposit:
    """What one member brings to a collective: borrowed operands, and the memory for its results. Native code that works
    for it gets `context`, the address of the context of its run."""

    operands: tuple[np.ndarray, ...]
    results: tuple[np.ndarray, ...]
    context: int = 0


Phase = Callable[[Sequence[Deposit], int], None]
"""One member's share of the work: reads every operand, writes its own results only. Takes the deposits in the order of
the group and the member's position. Phases of one collective are separated by barriers."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What the members of a collective do: phase by phase, each its share; or one of them all of it, `together`."""

    phases: tuple[Phase, ...]
    together: Callable[[Sequence[Deposit]], None]


@dataclass(frozen=True, slots=True, eq=False)
class Collective:
    """One collective instruction within one group. `label` and `where` are for errors; `key` tells it from others."""

    kind: str
    label: str
    where: str
    group: Group
    key: tuple[object, ...]
    work: Work = field(repr=False)


class Pending(Protocol):
    """A collective that one member has started."""

    def finish(self, results: tuple[np.ndarray, ...] | None) -> None:
        """Waits until this member's results are complete. `results` says where they go if the start did not."""

    def abandon(self) -> None:
        """Takes the start back, because this member's run has failed; `leave` follows."""


class Transport(Protocol):
    """The connection of one member of a run to the others."""

    def start(
        self, collective: Collective, operands: tuple[np.ndarray, ...], results: tuple[np.ndarray, ...] | None
    ) -> Pending:
        """Brings this member's share and returns at once. The operands stay untouched until `finish` returns."""

    def leave(self) -> None:
        """Ends this member's part in the run. Afterwards nobody reads its operands any more."""


class NoTransport:
    """The transport of a program without collectives."""

    def start(
        self, collective: Collective, operands: tuple[np.ndarray, ...], results: tuple[np.ndarray, ...] | None
    ) -> Pending:
        raise InternalError(f"{collective.label}: the program was said to have no collectives")

    def leave(self) -> None:
        """There is nobody to leave."""


NOBODY = NoTransport()
