"""Infeed, outfeed, send and recv, as native code calls them.

Attributes of the call sites: `operand_tree` or `result_tree`, the shape with its nesting if there is more to say than
the list of arrays; for send and recv also `channel_id`, `is_host_transfer`, and `source_target_pairs` with `group_mode`
where the processes of one program talk to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xlapy_runtime.calls import PREPARE, Action, Buffers, RunningCall, Site
from xlapy_runtime.channels import BETWEEN_DEVICES, Item, Mailbox, Message, Ticket, item_of
from xlapy_runtime.device import RecvCallback, SendCallback
from xlapy_runtime.errors import ExecutionError, ShapeError
from xlapy_runtime.process_groups import process_pairs
from xlapy_runtime.program import ArraySpec, Tree, Value, tree_text


@PREPARE.register("infeed")
def prepare_infeed(site: Site) -> Action:
    """Takes the next item of the device's infeed; an empty shape takes nothing."""
    expected = _tree(site, "result_tree", site.call.results)

    def infeed(call: RunningCall, buffers: Buffers) -> None:
        if site.call.results:
            _store(call.device.infeed.get(expected, call, call.timeout, keep_mismatch=False), buffers)

    return infeed


@PREPARE.register("outfeed")
def prepare_outfeed(site: Site) -> Action:
    """Appends the operands to the device's outfeed."""
    tree = _tree(site, "operand_tree", site.call.operands)

    def outfeed(call: RunningCall, buffers: Buffers) -> None:
        call.device.outfeed.put(_load(site, tree, buffers), call, call.timeout)

    return outfeed


@dataclass(frozen=True, slots=True, eq=False)
class Sending:
    """A message on its way through a channel."""

    mailbox: Mailbox
    message: Message

    def finish(self, call: RunningCall) -> None:
        self.mailbox.finish_send(self.message, call, call.timeout)

    def abandon(self) -> None:
        self.mailbox.withdraw(self.message)


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """A message for a callback of the host."""

    callback: SendCallback
    item: Item

    def finish(self, _call: RunningCall) -> None:
        self.callback(self.item.value())

    def abandon(self) -> None:
        """The callback has not been called yet."""


@PREPARE.register("send")
def prepare_send(site: Site) -> Action:
    """Deposits the operands in the channel and returns."""
    tree = _tree(site, "operand_tree", site.call.operands)
    channel = site.attribute("channel_id")
    to_host = site.attribute("is_host_transfer", False)
    sources = _sources(site)
    targets = {source: target for target, source in sources.items()}

    def send(call: RunningCall, buffers: Buffers) -> None:
        item = _load(site, tree, buffers)
        if to_host and channel in call.device.on_send:
            call.started(site, Delivery(call.device.on_send[channel], item))
            return
        if to_host:
            mailbox = call.device.to_host[(channel,)]
        elif sources:
            if call.process not in targets:
                raise ExecutionError(f"no pair has process {call.process} as its source")
            mailbox = BETWEEN_DEVICES[(channel, targets[call.process])]
        else:
            mailbox = BETWEEN_DEVICES[(channel,)]
        sending = Sending(mailbox, mailbox.send(item))
        call.started(site, sending)
        if not to_host:
            _remember(call, sending)

    return send


def _remember(call: RunningCall, sending: Sending) -> None:
    """Lets a failing run take its message back, so that the next run does not find it in the channel."""
    call.revocable = [other for other in call.revocable if not (isinstance(other, Sending) and other.message.taken)]
    call.revocable.append(sending)


@PREPARE.register("send-done")
def prepare_send_done(site: Site) -> Action:
    """Waits until the channel has room for the message, or the host's callback has returned."""

    def send_done(call: RunningCall, _buffers: Buffers) -> None:
        call.take_started(site).finish(call)

    return send_done


@dataclass(frozen=True, slots=True, eq=False)
class Receiving:
    """A place in the queue of a channel's receivers."""

    mailbox: Mailbox
    ticket: Ticket
    expected: Tree

    def finish(self, call: RunningCall) -> Item:
        return self.mailbox.finish_receive(self.ticket, call, call.timeout, self.expected)

    def abandon(self) -> None:
        self.mailbox.abandon(self.ticket)


@dataclass(frozen=True, slots=True, eq=False)
class Production:
    """A callback of the host that makes the message when it is needed."""

    callback: RecvCallback
    expected: Tree

    def finish(self, _call: RunningCall) -> Item:
        value: Value = self.callback()
        item = item_of(value)
        if not item.fits(self.expected):
            raise ShapeError(
                "channel.same-shape",
                f"recv expects {tree_text(self.expected)}, the host's callback returned {tree_text(item.tree)}",
            )
        return item

    def abandon(self) -> None:
        """The callback has not been called yet."""


@PREPARE.register("recv")
def prepare_recv(site: Site) -> Action:
    """Takes a place in the channel's queue and returns. The shape is that of `result_tree`, or of the results here."""
    expected = _tree(site, "result_tree", site.call.results)
    channel = site.attribute("channel_id")
    from_host = site.attribute("is_host_transfer", False)
    paired = bool(_sources(site))

    def recv(call: RunningCall, _buffers: Buffers) -> None:
        if from_host and channel in call.device.on_recv:
            call.started(site, Production(call.device.on_recv[channel], expected))
            return
        if from_host:
            mailbox = call.device.to_device[(channel,)]
        else:
            mailbox = BETWEEN_DEVICES[(channel, call.process) if paired else (channel,)]
        call.started(site, Receiving(mailbox, mailbox.receive(), expected))

    return recv


@PREPARE.register("recv-done")
def prepare_recv_done(site: Site) -> Action:
    """Waits for the message and stores it."""

    def recv_done(call: RunningCall, buffers: Buffers) -> None:
        _store(call.take_started(site).finish(call), buffers)

    return recv_done


def _tree(site: Site, attribute: str, specs: tuple[ArraySpec, ...]) -> Tree:
    tree: Tree | None = site.attribute(attribute)
    if tree is not None:
        return tree
    return specs[0] if len(specs) == 1 else specs


def _sources(site: Site) -> dict[int, int]:
    mode = site.attribute("group_mode", "cross_replica")
    return process_pairs(mode, site.grid, site.attribute("source_target_pairs", ()))


def _load(site: Site, tree: Tree, buffers: Buffers) -> Item:
    """A private copy of the operands."""
    arrays = tuple(np.array(operand, order="C", copy=True) for operand in buffers.operands)
    if any(spec.dynamic_dims for spec in site.call.operands):
        return Item(arrays, _specs_of(arrays))
    return Item(arrays, tree)


def _specs_of(arrays: Sequence[np.ndarray]) -> Tree:
    specs = tuple(ArraySpec(array.dtype, array.shape) for array in arrays)
    return specs[0] if len(specs) == 1 else specs


def _store(item: Item, buffers: Buffers) -> None:
    for index, array in enumerate(item.arrays):
        buffers.write(index, array)
