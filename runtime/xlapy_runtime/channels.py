"""Queues between programs and hosts: streams (infeed, outfeed) and mailboxes (send, recv).

A `Stream` is a bounded queue of typed items; a producer waits for room, a consumer for an item. A `Mailbox` is one
end-to-end channel of send and recv: `send` deposits at once and its completion waits for room; `receive` takes a
ticket at once and its completion waits for the message. Tickets and messages meet in the order in which they came.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from xlapy_runtime.errors import ArgumentError, DeadlineError, ExecutionError, ShapeError
from xlapy_runtime.given import array_of
from xlapy_runtime.program import ArraySpec, TokenSpec, Tree, Value, flatten, tree_text, unflatten
from xlapy_runtime.records import Record
from xlapy_runtime.waiting import seconds, wait_until

STREAM_CAPACITY = 64
"""Items in flight before a producer waits."""

MAILBOX_CAPACITY = 16
"""Messages in flight before a send-done waits."""


class Item(Record):
    """Arrays on their way, with the shape of the whole. The arrays belong to the item alone."""

    arrays: tuple[np.ndarray, ...]
    tree: Tree

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def fits(self, expected: Tree) -> bool:
        """Whether these arrays can be read as `expected`. Only leaves count, because tokens travel on their own."""
        specs = flatten(expected)
        return len(specs) == len(self.arrays) and all(
            array.dtype == spec.dtype and spec.admits(array.shape)
            for array, spec in zip(self.arrays, specs, strict=True)
        )

    def value(self) -> Value:
        """The arrays, nested as the tree says."""
        return unflatten(self.tree, self.arrays)


def item_of(value: Value) -> Item:
    """A private copy of a host value."""
    arrays: list[np.ndarray] = []
    return Item(tree=_collect(value, arrays), arrays=tuple(arrays))


def _collect(value: Value, arrays: list[np.ndarray]) -> Tree:
    if isinstance(value, (tuple, list)):
        return tuple(_collect(part, arrays) for part in value)
    array = array_of(value, "an item of a queue")
    if array.dtype.hasobject or array.dtype.kind in "SUMm":
        raise ArgumentError(f"{type(value).__name__} of {array.dtype} is no array of numbers")
    array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)
    arrays.append(array)
    return ArraySpec(array.dtype, array.shape)


Expected: TypeAlias = Any
"""What a host expects: a `Tree`, a shape of the compiler, anything with `dtype` and `shape`, or a tuple of these."""


def tree_of(expected: Expected) -> Tree:
    """The tree that says what is expected. Raises ArgumentError where that is neither a shape nor like an array."""
    if isinstance(expected, (ArraySpec, TokenSpec)):
        return expected
    if isinstance(expected, (tuple, list)):
        return tuple(map(tree_of, expected))
    if getattr(expected, "is_tuple", False):
        return tuple(map(tree_of, expected.parts))
    if getattr(expected, "is_token", False):
        return TokenSpec()
    if getattr(expected, "is_array", False):
        return ArraySpec(expected.type.dtype, tuple(expected.dims), tuple(expected.dynamic))
    if hasattr(expected, "dtype") and hasattr(expected, "shape"):
        return ArraySpec(np.dtype(expected.dtype), tuple(expected.shape))
    raise ArgumentError(
        f"{expected!r} does not say what is expected: give a shape, an array, or what has its dtype and shape"
    )


class Waiter(Protocol):
    """Who waits: a running call, which can be cancelled, or the host, which can not."""

    def wait(self, condition: threading.Condition, ready: Callable[[], bool], timeout: float | None) -> bool: ...


class HostWaiter:
    """A thread of the host: only time and Ctrl-C end its waits."""

    def wait(self, condition: threading.Condition, ready: Callable[[], bool], timeout: float | None) -> bool:
        return wait_until(condition, ready, timeout)


HOST: Waiter = HostWaiter()


class _Consumer:
    """Someone waiting for the next item, and what they wait for. `refused` is set when something else came, or when the
    queue is reset."""

    __slots__ = ("expected", "refused")

    def __init__(self, expected: Tree | None) -> None:
        self.expected = expected
        self.refused: ShapeError | ExecutionError | None = None


class Stream:
    """A bounded first-in first-out queue of items, for any number of producers and consumers.

    A mismatch of shapes is an error for the consumer, which names both; and for the producer too, if the consumer is
    already waiting for something else.
    """

    def __init__(self, name: str, capacity: int = STREAM_CAPACITY) -> None:
        self.name = name
        self.capacity = capacity
        self._changed = threading.Condition(threading.Lock())
        self._items: deque[Item] = deque()
        self._consumers: deque[_Consumer] = deque()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def nbytes(self) -> int:
        with self._changed:
            return sum(item.nbytes for item in self._items)

    def put(self, item: Item, waiter: Waiter, timeout: float | None) -> None:
        """Appends an item; waits while the queue is full."""
        with self._changed:
            if not waiter.wait(self._changed, self._has_room, timeout):
                raise DeadlineError(f"{self.name} stayed full ({self.capacity} items) for {seconds(timeout or 0)}")
            self._refuse_mismatch(item)
            self._items.append(item)
            self._changed.notify_all()

    def get(self, expected: Tree | None, waiter: Waiter, timeout: float | None, *, keep_mismatch: bool) -> Item:
        """Takes the oldest item, in the order in which consumers came; waits while there is none.

        An item that does not fit `expected` stays first in the queue if `keep_mismatch`, and is dropped otherwise.
        """
        consumer = _Consumer(expected)
        with self._changed:
            self._consumers.append(consumer)
            try:
                if not waiter.wait(self._changed, lambda: self._is_served(consumer), timeout):
                    raise DeadlineError(f"nothing arrived at {self.name} within {seconds(timeout or 0)}")
                if consumer.refused is not None:
                    raise consumer.refused
                item = self._items[0]
                fits = expected is None or item.fits(expected)
                if fits or not keep_mismatch:
                    self._items.popleft()
            finally:
                self._consumers.remove(consumer)
                self._changed.notify_all()
        if expected is not None and not fits:
            raise self._mismatch(expected, item)
        return item

    def clear(self) -> None:
        """Drops everything that is on its way; who waits for an item gets an error."""
        with self._changed:
            self._items.clear()
            for consumer in self._consumers:
                consumer.refused = consumer.refused or _reset_error(self.name)
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._items) < self.capacity

    def _is_served(self, consumer: _Consumer) -> bool:
        return consumer.refused is not None or (bool(self._items) and self._consumers[0] is consumer)

    def _refuse_mismatch(self, item: Item) -> None:
        """Fails producer and consumer if the consumer that this item would go to expects something else."""
        waiting = [consumer for consumer in self._consumers if consumer.refused is None]
        if len(self._items) >= len(waiting):
            return
        consumer = waiting[len(self._items)]
        if consumer.expected is None or item.fits(consumer.expected):
            return
        consumer.refused = self._mismatch(consumer.expected, item)
        self._changed.notify_all()
        raise self._mismatch(consumer.expected, item)

    def _mismatch(self, expected: Tree, item: Item) -> ShapeError:
        return ShapeError(
            "stream.same-shape", f"{self.name}: {tree_text(expected)} was expected, {tree_text(item.tree)} was sent"
        )


def _reset_error(name: str) -> ExecutionError:
    return ExecutionError(f"{name} was reset while something waited for what would arrive there")


class Message:
    """A sent item, and whether a receiver has it."""

    __slots__ = ("item", "taken")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.taken = False


class Ticket:
    """A place in the queue of receivers, void once the channel is reset."""

    __slots__ = ("is_void", "message")

    def __init__(self) -> None:
        self.message: Message | None = None
        self.is_void = False


class Mailbox:
    """One channel: messages and receivers meet in order, whoever comes first."""

    def __init__(self, name: str, capacity: int = MAILBOX_CAPACITY) -> None:
        self.name = name
        self.capacity = capacity
        self._changed = threading.Condition(threading.Lock())
        self._messages: deque[Message] = deque()
        self._tickets: deque[Ticket] = deque()

    def send(self, item: Item) -> Message:
        """Deposits a message and returns at once."""
        message = Message(item)
        with self._changed:
            self._messages.append(message)
            self._match()
        return message

    def finish_send(self, message: Message, waiter: Waiter, timeout: float | None) -> None:
        """Waits until the channel has room for everything up to `message`."""
        with self._changed:
            if not waiter.wait(self._changed, lambda: self._has_accepted(message), timeout):
                self._withdraw(message)
                raise DeadlineError(
                    f"{self.name} is full ({self.capacity} messages): nobody received for {seconds(timeout or 0)}"
                )

    def receive(self) -> Ticket:
        """Takes the next place in the queue of receivers and returns at once."""
        ticket = Ticket()
        with self._changed:
            self._tickets.append(ticket)
            self._match()
        return ticket

    def finish_receive(
        self, ticket: Ticket, waiter: Waiter, timeout: float | None, expected: Tree | None = None
    ) -> Item:
        """Waits for the message of `ticket`. A message of the wrong shape is dropped and an error."""
        with self._changed:
            try:
                arrived = waiter.wait(self._changed, lambda: ticket.is_void or ticket.message is not None, timeout)
            except BaseException:
                self._return(ticket)
                raise
            if not arrived:
                self._return(ticket)
                raise DeadlineError(f"nothing was sent to {self.name} within {seconds(timeout or 0)}")
        if ticket.message is None:
            raise _reset_error(self.name)
        item = ticket.message.item
        if expected is not None and not item.fits(expected):
            raise ShapeError(
                "channel.same-shape",
                f"{self.name}: recv expects {tree_text(expected)}, send sent {tree_text(item.tree)}",
            )
        return item

    def abandon(self, ticket: Ticket) -> None:
        """Gives a place back that nobody will wait at; its message goes to the next receiver."""
        with self._changed:
            self._return(ticket)

    def withdraw(self, message: Message) -> None:
        """Takes a message back that nobody has received."""
        with self._changed:
            self._withdraw(message)

    def clear(self) -> None:
        """Drops all messages that nobody has received; who waits for one gets an error."""
        with self._changed:
            self._messages.clear()
            for ticket in self._tickets:
                ticket.is_void = True
            self._tickets.clear()
            self._changed.notify_all()

    @property
    def nbytes(self) -> int:
        with self._changed:
            return sum(message.item.nbytes for message in self._messages)

    def _match(self) -> None:
        while self._messages and self._tickets:
            message = self._messages.popleft()
            message.taken = True
            self._tickets.popleft().message = message
        self._changed.notify_all()

    def _has_accepted(self, message: Message) -> bool:
        if message.taken or len(self._messages) <= self.capacity:
            return True
        return all(waiting is not message for waiting in list(self._messages)[self.capacity :])

    def _withdraw(self, message: Message) -> None:
        if message in self._messages:
            self._messages.remove(message)
            self._changed.notify_all()

    def _return(self, ticket: Ticket) -> None:
        if ticket in self._tickets:
            self._tickets.remove(ticket)
        elif ticket.message is not None:
            ticket.message.taken = False
            self._messages.appendleft(ticket.message)
            ticket.message = None
            self._match()


class Mailboxes:
    """Mailboxes by key, made when they are first named."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.begin()

    def begin(self) -> None:
        """Starts without a mailbox."""
        self._lock = threading.Lock()
        self._boxes: dict[tuple[int, ...], Mailbox] = {}

    def __getitem__(self, key: tuple[int, ...]) -> Mailbox:
        with self._lock:
            if key not in self._boxes:
                self._boxes[key] = Mailbox(f"{self._name} {', '.join(str(part) for part in key)}")
            return self._boxes[key]

    def all(self) -> tuple[Mailbox, ...]:
        with self._lock:
            return tuple(self._boxes.values())


BETWEEN_DEVICES = Mailboxes("channel")
"""The channels of send and recv between computations, keyed by channel id, and by target process where send and recv
name their pairs."""
