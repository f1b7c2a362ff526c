"""Verification: is a module what the rest of the compiler takes it for?

Structure is checked here; shapes by running the rules of the op table again. A fault in a module that the user gave is
the user's error; a fault after a pass is ours, and shows the instructions around the culprit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.leaves import origin_of_leaf
from xlapy.hlo.ops import OPS, OpSpec, Trait
from xlapy.hlo.process_groups import group_mode, id_count, meeting_sizes
from xlapy.hlo.text import to_text
from xlapy.support.errors import InternalError, ShapeError, XlaError
from xlapy.support.ordering import CycleError, post_order


def verify(module: HloModule, *, after: str = "") -> None:
    """Raises unless every instruction, computation and the module keep the rules.

    `after` names the pass that ran last: faults are then InternalErrors. Otherwise they are XlaErrors (ShapeErrors
    where an op's rule is broken) that name the instruction and the user's line; rules that an instruction kept when it
    was added, and nothing has changed of it since, are not run again then."""
    try:
        for computation in _callees_first(module):
            _verify_computation(computation, again=bool(after))
        _verify_configuration(module)
    except _Fault as fault:
        raise fault.to_error(after) from fault.__cause__


class _Fault(Exception):
    """What is wrong, and with which instruction."""

    def __init__(self, message: str, culprit: Instruction | None = None, *, rule: str = "", subject: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.culprit = culprit
        self.rule = rule
        self.subject = subject

    def to_error(self, after: str) -> XlaError:
        culprit = self.culprit
        if after:
            error: XlaError = InternalError(f"after {after}: {self.message}", rule=self.rule)
            return error.add_context(subject=self.subject, where=_surroundings(culprit) if culprit else "")
        error = ShapeError(self.rule, self.message) if self.rule else XlaError(self.message)
        error.add_context(subject=self.subject)
        if culprit is None:
            return error
        location = culprit.metadata.location()
        place = f"{culprit.name} in {culprit.parent.name}" + (f", from {location}" if location else "")
        return error.add_context(where=place)


def _surroundings(culprit: Instruction) -> str:
    """The culprit between its operands and its users, as text."""
    lines = [f"in {culprit.parent.name}:"]
    lines += [f"    {_line(operand)}" for operand in dict.fromkeys(culprit.operands)]
    lines.append(f" -> {_line(culprit)}")
    return "\n".join(lines + [f"    {_line(user)}" for user in culprit.users])


def _line(instruction: Instruction) -> str:
    complete = instruction.attributes.keys() == instruction.spec.attributes.keys()
    return to_text(instruction) if complete else repr(instruction)


def _callees_first(module: HloModule) -> list[Computation]:
    """Every computation that the entry reaches; a computation that calls itself is a fault."""
    try:
        return post_order([module.entry], Computation.called_computations)
    except CycleError as cycle:
        caller = next(instruction for instruction in cycle.source if cycle.target in instruction.called)
        raise _Fault(f"computation {cycle.target.name} calls itself", caller) from None


# -- computations --------------------------------------------------------------------------------------------------


def _verify_computation(computation: Computation, *, again: bool) -> None:
    if not computation.has_root:
        raise _Fault(f"computation {computation.name} has no root")
    if computation.root not in computation:
        raise _Fault(f"the root of {computation.name} is not one of its instructions", computation.root)
    names: set[str] = set()
    for instruction in computation:
        if instruction.name in names:
            raise _Fault(f"two instructions of {computation.name} are named {instruction.name}", instruction)
        names.add(instruction.name)
        _verify_edges(instruction, computation)
    _verify_parameters(computation)
    try:
        order = computation.post_order()
    except InternalError as error:
        raise _Fault(error.message) from error
    for instruction in order:
        if again or not instruction.is_proven:
            _verify_attributes(instruction)
            _verify_shape(instruction)
        for check in _CHECKS:
            check(instruction)


def _verify_edges(instruction: Instruction, computation: Computation) -> None:
    if instruction.parent is not computation:
        _fail(instruction, f"it is listed in {computation.name}, but belongs to {instruction.parent.name}")
    for operand in instruction.operands:
        if operand not in computation:
            _fail(instruction, f"its operand {operand.name} is not in {computation.name}")
        if instruction not in operand.users:
            _fail(instruction, f"its operand {operand.name} does not know it as a user")
    for user in instruction.users:
        if user not in computation:
            _fail(instruction, f"its user {user.name} is not in {computation.name}")
        if instruction not in user.operands:
            _fail(instruction, f"{user.name} is listed as a user, but does not use it")
    for predecessor in instruction.control_predecessors:
        if predecessor not in computation:
            _fail(instruction, f"its control predecessor {predecessor.name} is not in {computation.name}")


def _verify_parameters(computation: Computation) -> None:
    found = [instruction for instruction in computation if instruction.opcode == "parameter"]
    if set(found) != set(computation.parameters) or len(found) != len(computation.parameters):
        raise _Fault(f"the parameters of {computation.name} are not those that it lists")
    for position, parameter in enumerate(computation.parameters):
        if parameter.attributes["number"] != position:
            _fail(parameter, f"it is parameter number {parameter.attributes['number']}, but stands at {position}")


# -- instructions --------------------------------------------------------------------------------------------------


def _fail(culprit: Instruction, message: str) -> NoReturn:
    raise _Fault(f"{culprit.name}: {message}", culprit)


def _verify_attributes(instruction: Instruction) -> None:
    expected, present = instruction.spec.attributes.keys(), instruction.attributes.keys()
    if expected != present:
        difference = ", ".join(sorted(expected ^ present))
        _fail(instruction, f"its attributes are not those of {instruction.opcode}: {difference}")


def _verify_shape(instruction: Instruction) -> None:
    spec = instruction.spec
    operands = [operand.shape for operand in instruction.operands]
    signatures = [called.signature for called in instruction.called]
    try:
        inferred = spec.infer(operands, instruction.attributes, signatures, instruction.shape)
    except ShapeError as error:
        raise _Fault(error.message, instruction, rule=error.rule, subject=error.subject) from error
    if instruction.shape != inferred and not instruction.shape.matches(inferred):
        subject = f"{spec.name}({', '.join(map(str, operands))})"
        message = f"{instruction.shape} is stated, but the result is {inferred}"
        raise _Fault(message, instruction, rule=f"{spec.name}.result-shape", subject=subject)


def _verify_layouts(instruction: Instruction) -> None:
    for leaf in instruction.shape.leaves():
        if leaf.layout is not None and sorted(leaf.layout.minor_to_major) != list(range(leaf.rank)):
            _fail(instruction, f"layout {leaf.layout} is not a permutation of the dimensions of {leaf}")


def _verify_pair(instruction: Instruction) -> None:
    """A done op has one start op of its kind as operand, and a start op one done op as its only user."""
    if instruction.spec.done_of is not None:
        started = instruction.operands[0]
        if started.spec.start_of != instruction.spec.done_of:
            _fail(instruction, f"its operand {started.name} is not {instruction.spec.done_of}-start")
    if Trait.START in instruction.spec.traits:
        done = [user for user in instruction.users if user.spec.done_of == instruction.spec.start_of]
        if len(done) != 1 or len(instruction.users) != 1 or instruction.is_root:
            _fail(instruction, f"its only user must be one {instruction.spec.start_of}-done")


_BEGUN_BY = {
    "send-done": ("send",),
    "recv-done": ("recv",),
    "async-update": ("async-start", "async-update"),
    "async-done": ("async-start", "async-update"),
}


def _verify_begun(instruction: Instruction) -> None:
    """What waits for something, or passes it on, has what began it as its operand, perhaps through tuples."""
    begins = _BEGUN_BY.get(instruction.opcode)
    if begins is None:
        return
    begun, _ = origin_of_leaf(instruction.operands[0], 0)
    if begun.opcode not in begins:
        _fail(instruction, f"its operand {begun.name} is not {' or '.join(begins)}")


_CHECKS: tuple[Callable[[Instruction], None], ...] = (
    _verify_layouts,
    _verify_pair,
    _verify_begun,
)


def verify_pairs(module: HloModule) -> None:
    """Raises an XlaError unless whatever waits for the end of something has its beginning as its operand."""
    try:
        for instruction in module.instructions():
            _verify_pair(instruction)
            _verify_begun(instruction)
    except _Fault as fault:
        raise fault.to_error("") from fault.__cause__


# -- processes -----------------------------------------------------------------------------------------------------


def verify_processes(module: HloModule, replicas: int, partitions: int) -> None:
    """Raises ShapeError unless collectives name processes of the grid, and all of them where they must, and what they
    exchange is as large as their groups want it."""
    try:
        for instruction in module.instructions():
            if Trait.COLLECTIVE in instruction.spec.traits and Trait.DONE not in instruction.spec.traits:
                _verify_groups(instruction, replicas, partitions)
    except _Fault as fault:
        raise fault.to_error("") from fault.__cause__


def _verify_groups(instruction: Instruction, replicas: int, partitions: int) -> None:
    spec, attributes = instruction.spec, instruction.attributes
    declared = OPS[spec.start_of] if spec.start_of else spec
    by_partition = bool(spec.options.get("channel_means_partitions"))
    mode = group_mode(attributes["channel_id"], bool(attributes.get("use_global_device_ids")), by_partition)
    count = id_count(mode, replicas, partitions)
    groups = attributes["replica_groups"].groups if "replica_groups" in attributes else ()
    pairs = attributes["source_target_pairs"].pairs if "source_target_pairs" in attributes else ()
    named = {process for group in (*groups, *pairs) for process in group if process >= 0}
    grid = f"{replicas} replicas of {partitions} partitions (ids of {mode}: 0 to {count - 1})"
    if named and max(named) >= count:
        message = f"there is no process {max(named)} among {grid}"
        raise _Fault(message, instruction, rule=f"{declared.name}.known-processes", subject=spec.name)
    if groups and "all-processes" in declared.constraints and len(named) < count:
        missing = min(set(range(count)) - named)
        message = f"no group names process {missing} of {grid}"
        raise _Fault(message, instruction, rule=f"{declared.name}.all-processes", subject=spec.name)
    for size in sorted(meeting_sizes(mode, groups, replicas, partitions)):
        _verify_exchange(instruction, declared, size, grid)


def _verify_exchange(instruction: Instruction, declared: OpSpec, size: int, grid: str) -> None:
    """The shapes of a collective in a group of so many processes, which the group alone does not always say."""
    check = declared.options.get("check_group")
    if check is None:
        return
    operands = [operand.shape for operand in instruction.operands]
    result_of = declared.options["done_shape"] if instruction.spec.start_of else lambda shape: shape
    try:
        check(operands, result_of(instruction.shape), instruction.attributes["dimension"], size)
    except ShapeError as error:
        subject = f"{instruction.opcode}({', '.join(map(str, operands))})"
        message = f"{error.message}; the grid is {grid}"
        raise _Fault(message, instruction, rule=f"{declared.name}.{error.rule}", subject=subject) from error


# -- the module ----------------------------------------------------------------------------------------------------


def _verify_configuration(module: HloModule) -> None:
    config, signature = module.config, module.signature
    if config.num_replicas < 1 or config.num_partitions < 1:
        raise _Fault(f"{config.num_replicas} replicas of {config.num_partitions} partitions are no processes")
    if config.entry_layout is not None and not config.entry_layout.matches(signature):
        raise _Fault(f"entry_computation_layout is {config.entry_layout}, but the entry has the type {signature}")
    for alias in config.aliases:
        output = signature.result.part_at(alias.output_index)
        in_range = 0 <= alias.parameter < len(signature.parameters)
        parameter = signature.parameters[alias.parameter].part_at(alias.parameter_index) if in_range else None
        if output is None or parameter is None or not output.matches(parameter):
            raise _Fault(f"{alias} does not connect a result of {signature} with a parameter of its shape")
    outputs = [alias.output_index for alias in config.aliases]
    sources = [(alias.parameter, alias.parameter_index) for alias in config.aliases]
    if len(set(outputs)) < len(outputs) or len(set(sources)) < len(sources):
        raise _Fault(f"a result or a parameter is in two aliases of {list(config.aliases)}")
    for donor in config.donors:
        in_range = 0 <= donor.parameter < len(signature.parameters)
        if not in_range or signature.parameters[donor.parameter].part_at(donor.parameter_index) is None:
            raise _Fault(f"{donor} is not in a parameter of {signature}")
