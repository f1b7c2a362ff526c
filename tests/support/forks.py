"""Children of this process, for what must work in them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

SECONDS = 20


def works_in_a_child(action: Callable[[], object]) -> bool:
    """Whether a forked child gets through `action`, in time and without an error."""
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        with contextlib.suppress(BaseException):
            action()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0
