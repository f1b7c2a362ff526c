"""The process that an engine lives in, and the handle that the measuring process has on it.

Libraries whose threads spin after work would slow each other down in one process, and would share its memory; so each
engine has a process, does what it is told over a pipe, and sleeps otherwise.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.engines import Engine, Program, Unsupported, make_engine
from benchmarks.machine import has_running_thread, peak_growth, pin, take_own_pages
from xlapy.support.late import late

if TYPE_CHECKING:
    from xlapy.report.limits import Bound, Probe

CALIBRATION_SECONDS = 0.005
ANSWER_SECONDS = 60.0
"""An engine that is silent for longer is taken for hung."""

LOOK_SECONDS = 0.001
QUIET_LOOKS = 2
LONGEST_REST_SECONDS = 0.5
BLIND_REST_SECONDS = 0.15
"""Threads that spin after work are waited for: until none of the process runs at QUIET_LOOKS looks one after the other,
or a fixed time where threads cannot be seen. (Clocks of other processes would not tell: they move with the scheduler's
ticks, 4 ms apart, and OpenBLAS spins for 120 ms.)"""


class WorkerError(Exception):
    """The engine failed at a case. `status` is how the table says it."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class Worker:
    """A handle on an engine in a process of its own."""

    def __init__(
        self,
        engine: str,
        *,
        environment: Mapping[str, str] | None = None,
        core: int | None = None,
        forked: bool = False,
    ) -> None:
        """A `forked` worker begins as a copy of a process that has imported xlapy and did nothing with it: as new as
        any, and there at once; its memory is its own before it begins."""
        self.engine = engine
        self._environment = dict(environment or {})
        self._core = core
        self._forked = forked
        self._context = _context(forked)
        self._start()

    def ask(self, command: str, *arguments: Any) -> Any:
        """Sends a command and waits for its answer. A worker that dies or hangs is replaced by a fresh one."""
        try:
            self._connection.send((command, *arguments))
            if not self._connection.poll(ANSWER_SECONDS):
                raise TimeoutError
            status, value = self._connection.recv()
        except TimeoutError:
            self._restart()
            raise WorkerError("hung", f"no answer to {command} in {ANSWER_SECONDS:.0f} s") from None
        except (EOFError, OSError):
            self._process.join(1)
            code = self._process.exitcode
            self._restart()
            raise WorkerError("crashed", f"the process of {self.engine} ended with {code}") from None
        if status != "ok":
            raise WorkerError(status, value)
        return value

    @property
    def process(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def rest(self) -> None:
        """Returns once the threads of the worker have gone to sleep."""
        deadline = time.perf_counter() + LONGEST_REST_SECONDS
        quiet = 0
        while quiet < QUIET_LOOKS and time.perf_counter() < deadline:
            time.sleep(LOOK_SECONDS)
            running = has_running_thread(self.process)
            if running is None:
                time.sleep(BLIND_REST_SECONDS)
                return
            quiet = 0 if running else quiet + 1

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.send(("stop",))
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        arguments = (theirs, self.engine, self._core, self._environment, self._forked)
        with changed_environment(self._environment):  # some libraries look at it while they are loaded
            self._process = self._context.Process(target=serve, args=arguments, daemon=True)
            self._process.start()
        theirs.close()

    def _restart(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()
        self._start()


def _context(forked: bool) -> ForkServerContext | SpawnContext:
    """How processes begin: with nothing, or with everything imported that xlapy needs to compile."""
    if not forked or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["__main__", "benchmarks.engines", "xlapy.api", "xlapy.compiler", "xlapy.stablehlo", __name__]
    )
    return context


@contextlib.contextmanager
def changed_environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables while a process is started that inherits them."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def serve(connection: Connection, name: str, core: int | None, environment: Mapping[str, str], forked: bool) -> None:
    """What the process runs: answers commands until it is told to stop or the pipe closes."""
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the measuring process, which then closes the pipe
    pin(core)
    if forked:
        take_own_pages()
    session = _Session(name)
    while True:
        try:
            command, *arguments = connection.recv()
        except EOFError:
            return
        if command == "stop":
            return
        try:
            answer = ("ok", getattr(session, command)(*arguments))
        except Unsupported as error:
            answer = ("not yet", str(error))
        except Exception as error:  # noqa: BLE001 (whatever an engine raises is a row of the table)
            traceback.clear_frames(error.__traceback__)
            answer = ("failed", f"{type(error).__name__}: {error}")
        connection.send(answer)


class _Session:
    """The commands that a worker answers, each a method."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: Engine | None = None
        self._probe: Probe | None = None
        self._batch = 1

    def start(self) -> float:
        """Imports the engine; the seconds that took."""
        began = time.perf_counter()
        self._engine()
        return time.perf_counter() - began

    def lower(self, *program: Any) -> str:
        return self._engine().lower(*program)

    def open(self, program: Program) -> float:
        """Compiles a program and keeps it; the seconds that took."""
        self._batch = 1
        return self._engine().open(replace(program, inputs=[_with_usual_type(array) for array in program.inputs]))

    def recompile(self) -> float:
        return self._engine().recompile()

    def results(self) -> list[Any]:
        return self._engine().results()

    def warm_up(self, seconds: float) -> None:
        """Runs the program for a while, and finds how many calls to make between two looks at the clock."""
        engine = self._engine()
        deadline = time.perf_counter() + seconds
        while True:
            began = time.perf_counter()
            engine.repeat(self._batch)
            ended = time.perf_counter()
            if ended - began < CALIBRATION_SECONDS / 4:
                self._batch *= 2
            elif ended > deadline:
                return

    def sample(self, seconds: float, settle_seconds: float = 0.0, processor_time: bool = False) -> float:
        """Seconds per call, over calls that take `seconds` together at least, behind others of `settle_seconds`."""
        if settle_seconds:
            self._mean(settle_seconds, time.perf_counter)
        return self._mean(seconds, time.process_time if processor_time else time.perf_counter)

    def _mean(self, seconds: float, clock: Callable[[], float]) -> float:
        repeat, batch = self._engine().repeat, self._batch
        calls = 0
        began = clock()
        while True:
            repeat(batch)
            calls += batch
            elapsed = clock() - began
            if elapsed >= seconds:
                return elapsed / calls

    def limit(self, bound: Bound, seconds: float, settle_seconds: float = 0.0, processor_time: bool = False) -> float:
        """Seconds that the machine takes just now for what is bound so, over runs that take `seconds` together, behind
        others of `settle_seconds`."""
        if self._probe is None:
            self._probe = late("xlapy.report.limits").Probe(processor_time=processor_time)
        if settle_seconds:
            self._probe.seconds(bound, settle_seconds)
        return self._probe.seconds(bound, seconds)

    def peak_of_call(self) -> int | None:
        """Bytes by which the process grows during one call whose results are kept; for a process that made none yet."""
        return peak_growth(self._engine().results)

    def declared_memory(self) -> int | None:
        return self._engine().declared_memory()

    def close(self) -> None:
        self._engine().close()

    def _engine(self) -> Engine:
        if self._made is None:
            self._made = make_engine(self._name)
        return self._made


def _with_usual_type(array: np.ndarray) -> np.ndarray:
    """The array with the dtype object that all arrays of its type share; one from a pipe has an equal copy of it."""
    return array.view(array.dtype.type)
