"""The op table: what an operation is, declared once.

The signature of an op's shape rule is its declaration. Positional parameters are operands (`Shape`, or `Variadic` for
any number; several variadic groups of one op have equal lengths). Keyword-only parameters are called computations
(`Signature`, or `Regions` for any number), the result shape where the text gives it (`ResultShape`), and attributes
(everything else). The docstring documents the op, and its constraint lines

    same-other-dims [B3 C6]: the inputs agree in element type and in every other dimension.

name each constraint: a slug, its labels in the specifications (B: builder, C: StableHLO), what must hold.

    @op("concatenate", traits=PURE, hlo_text={"dimension": "dimensions={}"})
    def concatenate(inputs: Variadic, *, dimension: int) -> Shape: ...
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, NewType

from xlapy.hlo.shape import Shape, Signature
from xlapy.support.errors import ArgumentError, InternalError, ShapeError
from xlapy.support.records import Record
from xlapy.support.source import suggestion

Variadic = Sequence[Shape]
Regions = Sequence[Signature]
ResultShape = NewType("ResultShape", Shape)
StatedResult = ResultShape | None
"""A result shape that the text may give, and that the rule completes where it does not."""

REQUIRED: Any = inspect.Parameter.empty


class Trait:
    """What passes and emitters may assume of an op, which has a set of these.

    They are words, not members of an `enum`: passes ask for them of each instruction, many times, and with Python's
    enums as with its flags that takes four times as long."""

    PURE: Final = "pure"  # same operands, same result, and nothing else happens
    ELEMENTWISE: Final = "elementwise"  # element i of the result depends on that of each operand (or on a scalar one)
    COMMUTATIVE: Final = "commutative"  # the two operands may be exchanged
    INDEX_MAP: Final = "index-map"  # each result element is a copy of one operand element: data movement
    EFFECT: Final = "effect"  # runs once per execution, in the order of its tokens, even if nobody uses the result
    RUNTIME: Final = "runtime"  # native code asks the runtime to do it
    COLLECTIVE: Final = "collective"  # all processes of a group take part
    ASYNC: Final = "async"  # has derived `-start` and `-done` forms
    START: Final = "start"  # deposits and returns; its done op waits
    DONE: Final = "done"  # waits for its operand, a start op
    CONTROL: Final = "control"  # runs called computations as control flow
    STRUCTURE: Final = "structure"  # parameter, constant, tuple ...: no computation of its own


Traits = frozenset[str]

PURE: Traits = frozenset({Trait.PURE})
ELEMENTWISE = PURE | {Trait.ELEMENTWISE}
COMMUTATIVE = ELEMENTWISE | {Trait.COMMUTATIVE}
INDEX_MAP = PURE | {Trait.INDEX_MAP}


class OperandParameter(Record):
    name: str
    variadic: bool


class RegionParameter(Record):
    name: str
    variadic: bool
    text_key: str


class AttributeParameter(Record):
    """An attribute: its Python type, its default (`REQUIRED` if none), its spelling in HLO text."""

    name: str
    type: Any
    default: Any
    text_key: str
    braces: bool  # an int printed as {1}

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


class Constraint(Record):
    """One numbered rule of an op."""

    slug: str
    labels: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class OpSpec:
    """Everything the graph knows about one kind of operation."""

    name: str  # HLO's opcode, "reduce-window"
    family: str
    traits: Traits
    rule: Callable[..., Shape]
    operands: tuple[OperandParameter, ...]
    regions: tuple[RegionParameter, ...]
    attributes: Mapping[str, AttributeParameter]
    takes_result: bool  # the rule wants the result shape that text or builder gives
    needs_result: bool  # ... and cannot do without
    constraints: Mapping[str, Constraint]
    doc: str
    title: str  # heading in the specification, "ReduceWindow"
    reference: Callable[..., Any] | None = None  # numpy's function, where one row says it all
    identity: Any = None  # of a binary op used as a reduction: a number, or "lowest"/"highest"
    start_of: str | None = None  # for derived pairs: the synchronous op
    done_of: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    variadic: int = field(init=False)  # how many operands are

    def __post_init__(self) -> None:
        object.__setattr__(self, "variadic", sum(operand.variadic for operand in self.operands))

    def __reduce__(self) -> tuple[Any, ...]:
        """There is one for each name, in copies and pickles of graphs, too."""
        return _known, (self.name,)

    @property
    def python_name(self) -> str:
        """The name as Python spells it: `reduce_window`."""
        return self.name.replace("-", "_")

    def has(self, trait: str) -> bool:
        """Whether it has a trait."""
        return trait in self.traits

    def group(self, operands: Sequence[Any]) -> list[Any]:
        """Deals a flat operand list to the parameters: one value, or a tuple for a variadic parameter.

        Raises ShapeError when the number of operands does not fit."""
        variadic = self.variadic
        if not variadic and len(operands) == len(self.operands):
            return list(operands)
        single = len(self.operands) - variadic
        spare = len(operands) - single
        if spare < 0 or (spare and not variadic) or (variadic and spare % variadic):
            names = ", ".join(("*" if operand.variadic else "") + operand.name for operand in self.operands)
            raise ShapeError("operand-count", f"it takes ({names}), but the number of operands is {len(operands)}")
        each = spare // variadic if variadic else 0
        grouped: list[Any] = []
        position = 0
        for operand in self.operands:
            if operand.variadic:
                grouped.append(tuple(operands[position : position + each]))
                position += each
            else:
                grouped.append(operands[position])
                position += 1
        return grouped

    def complete_attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes with defaults filled in, in declared order. Raises ShapeError for missing or unknown ones."""
        if attributes.keys() == self.attributes.keys():
            return dict(attributes)
        for name in attributes:
            if name not in self.attributes:
                known = ", ".join(self.attributes) or "none"
                raise ShapeError("attributes", f"{self.name} has no attribute {name!r}; it has: {known}")
        complete = {}
        for name, parameter in self.attributes.items():
            value = attributes.get(name, parameter.default)
            if value is REQUIRED:
                raise ShapeError("attributes", f"{self.name} needs the attribute {name!r}")
            complete[name] = value
        return complete

    def infer(
        self,
        operands: Sequence[Shape],
        attributes: Mapping[str, Any],
        called: Sequence[Signature] = (),
        result: Shape | None = None,
    ) -> Shape:
        """The shape of the result: inference and verification in one.

        `result` is the shape that the text or the caller states; ops with `takes_result` need it, and for others it is
        not looked at. Raises ShapeError naming the op, the operand shapes and the broken constraint."""
        try:
            grouped = self.group(operands)
            is_complete = attributes.keys() == self.attributes.keys()
            arguments = dict(attributes) if is_complete else self.complete_attributes(attributes)
            if called or self.regions:
                arguments.update(self._group_regions(called))
            if self.takes_result:
                if result is None and self.needs_result:
                    raise ShapeError("result-shape", "the shape of the result must be given")
                arguments["result"] = result
            return self.rule(*grouped, **arguments)
        except ShapeError as error:
            subject = f"{self.name}({', '.join(map(str, operands))})"
            rule = error.rule if "." in error.rule else f"{self.name}.{error.rule}"
            error.add_context(subject=subject, rule=rule)
            raise

    def _group_regions(self, called: Sequence[Signature]) -> dict[str, Any]:
        if any(region.variadic for region in self.regions):
            return {self.regions[0].name: tuple(called)}
        if len(called) != len(self.regions):
            names = ", ".join(region.name for region in self.regions) or "none"
            raise ShapeError("regions", f"it calls: {names}; but the number of computations is {len(called)}")
        return {region.name: signature for region, signature in zip(self.regions, called, strict=True)}

    def label(self, rule: str, letter: str) -> str:
        """The label of a rule ("concatenate.same-other-dims") in the specification of a front end.

        `letter` is "B" for the builder, "C" for StableHLO; a rule without such a label keeps its slug."""
        slug = rule.removeprefix(self.name + ".")
        declared = OPS[self.start_of] if self.start_of else self
        constraint = declared.constraints.get(slug)
        for label in constraint.labels if constraint else ():
            if label.startswith(letter):
                return f"{self.title}.{label}" if letter == "B" else f"{self.python_name}.{label}"
        return rule

    def __repr__(self) -> str:
        return f"OpSpec({self.name})"


class _OpTable(dict[str, OpSpec]):
    def __missing__(self, opcode: str) -> OpSpec:
        raise ArgumentError(f"there is no op {opcode!r}{suggestion(str(opcode), self)}")


OPS: dict[str, OpSpec] = _OpTable()
"""The op table, by HLO opcode, in the order of declaration."""


def _known(name: str) -> OpSpec:
    return OPS[name]


Rule = typing.TypeVar("Rule", bound=Callable[..., Shape])


def op(
    name: str,
    *,
    traits: Set[str] = frozenset(),
    hlo_text: Mapping[str, str] | None = None,
    title: str = "",
    reference: Callable[..., Any] | None = None,
    identity: Any = None,
    **options: Any,
) -> Callable[[Rule], Rule]:
    """Declares the op `name` by its shape rule. `hlo_text` renames attributes and regions in HLO text: `"key"`, or
    `"key={}"` for an int that is printed in braces, or `"()"` for the one that stands where operands do."""

    def declare(rule: Rule) -> Rule:
        declare_op(name, rule, traits, hlo_text or {}, title, reference, identity, options)
        if Trait.ASYNC in traits:
            _derive_pair(OPS[name], rule, hlo_text or {})
        return rule

    return declare


def declare_op(
    name: str,
    rule: Callable[..., Shape],
    traits: Set[str],
    hlo_text: Mapping[str, str],
    title: str,
    reference: Callable[..., Any] | None,
    identity: Any,
    options: Mapping[str, Any],
    start_of: str | None = None,
    done_of: str | None = None,
) -> OpSpec:
    """Enters one row of the table; `op` is the usual way to call it."""
    if name in OPS:
        raise InternalError(f"op {name!r} is declared twice")
    parameters = _parameters_of(rule, hlo_text)
    doc = inspect.getdoc(rule) or ""
    spec = OpSpec(
        name=name,
        family=rule.__module__.rpartition(".")[2],
        traits=frozenset(traits),
        rule=rule,
        operands=tuple(parameters.operands),
        regions=tuple(parameters.regions),
        attributes=parameters.attributes,
        takes_result=parameters.takes_result,
        needs_result=parameters.needs_result,
        constraints=_constraints(doc),
        doc=doc,
        title=title or "".join(word.capitalize() for word in name.split("-")),
        reference=reference,
        identity=identity,
        start_of=start_of,
        done_of=done_of,
        options=options,
    )
    OPS[name] = spec
    return spec


@dataclass(slots=True)
class _Parameters:
    """The parameters of a shape rule, by what they stand for."""

    operands: list[OperandParameter] = field(default_factory=list)
    regions: list[RegionParameter] = field(default_factory=list)
    attributes: dict[str, AttributeParameter] = field(default_factory=dict)
    takes_result: bool = False
    needs_result: bool = False


def _parameters_of(rule: Callable[..., Shape], hlo_text: Mapping[str, str]) -> _Parameters:
    found = _Parameters()
    annotations = typing.get_type_hints(rule)
    for parameter in inspect.signature(rule).parameters.values():
        name, annotation = parameter.name, annotations[parameter.name]
        key = hlo_text.get(name, name)
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            found.operands.append(OperandParameter(name, annotation == Variadic))
        elif annotation is Signature or annotation == Regions:
            found.regions.append(RegionParameter(name, annotation == Regions, key))
        elif annotation is ResultShape or annotation == StatedResult:
            found.takes_result, found.needs_result = True, annotation is ResultShape
        else:
            braces = key.endswith("={}")
            found.attributes[name] = AttributeParameter(
                name, annotation, parameter.default, key.removesuffix("={}"), braces
            )
    return found


_CONSTRAINT = re.compile(r"^([a-z][a-z0-9-]*)(?: \[([A-Z0-9 ]+)\])?: (.+(?:\n(?:  +).+)*)", re.MULTILINE)


def _constraints(doc: str) -> dict[str, Constraint]:
    return {
        match[1]: Constraint(match[1], tuple((match[2] or "").split()), " ".join(match[3].split()))
        for match in _CONSTRAINT.finditer(doc)
    }


def _derive_pair(spec: OpSpec, rule: Callable[..., Shape], hlo_text: Mapping[str, str]) -> None:
    """Declares `NAME-start` and `NAME-done` of an asynchronous op.

    The start op takes what the synchronous op takes and deposits its operands. What it returns differs by op, by XLA's
    convention: what the synchronous op returns, or, where there is an `async_shape`, a tuple of operands and results.
    Text may state more elements of that tuple, integer scalars: contexts, which nobody reads. The done op waits, and
    returns what the synchronous op returns."""
    done_shape: Callable[[Shape], Shape] = spec.options.get("done_shape", lambda started: started)

    def done(started: Shape) -> Shape:
        return done_shape(started)

    done.__module__ = rule.__module__
    done.__doc__ = f"Waits for the {spec.name}-start that is its operand, and returns its result."
    start = _start_rule(spec, rule, done_shape)
    traits, options = spec.traits - {Trait.ASYNC}, spec.options
    start_traits, done_traits = traits | {Trait.START}, traits | {Trait.DONE}
    declare_op(f"{spec.name}-start", start, start_traits, hlo_text, spec.title, None, None, options, start_of=spec.name)
    declare_op(f"{spec.name}-done", done, done_traits, {}, spec.title, None, None, {}, done_of=spec.name)


def _start_rule(spec: OpSpec, rule: Callable[..., Shape], done_shape: Callable[[Shape], Shape]) -> Callable[..., Shape]:
    """The shape rule of a start op. Its parameters are those of the synchronous op, and a result that text may state
    where contexts can be behind it."""
    async_shape: Callable[[Sequence[Shape], Shape], Shape] | None = spec.options.get("async_shape")

    @functools.wraps(rule)
    def start(*operands: Any, **attributes: Any) -> Shape:
        if async_shape is None:
            return rule(*operands, **attributes)
        stated: Shape | None = attributes.pop("result", None)
        if spec.takes_result and stated is not None:
            attributes["result"] = done_shape(stated)
        flat = [shape for group in operands for shape in ((group,) if isinstance(group, Shape) else group)]
        return _with_contexts(async_shape(flat, rule(*operands, **attributes)), stated)

    start.__doc__ = f"Begins an asynchronous {spec.name}; see there. {spec.name}-done waits for it."
    if async_shape is not None and not spec.takes_result:
        signature = inspect.signature(rule)
        result = inspect.Parameter("result", inspect.Parameter.KEYWORD_ONLY)
        vars(start)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), result])
        start.__annotations__ = {**rule.__annotations__, "result": StatedResult}
    return start


def _with_contexts(inferred: Shape, stated: Shape | None) -> Shape:
    """The inferred tuple, with the contexts that the stated one has behind it."""
    count = len(inferred.parts)
    contexts = stated.parts[count:] if stated is not None and stated.is_tuple else ()
    if any(not context.is_scalar or not context.type.is_integer for context in contexts):
        raise ShapeError("contexts", f"{stated} has more behind {inferred} than integer scalars")
    return Shape.tuple([*inferred.parts, *contexts])
