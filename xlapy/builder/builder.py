"""`XlaBuilder` records straight into an HLO computation; `XlaComputation` is a snapshot of what it recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xlapy.builder.arguments import as_flag, as_int, as_ints, as_list, as_shape, as_text, as_texts, described
from xlapy.builder.memory import check_apart, checked_alias, checked_donor, leaf_of_parameter
from xlapy.builder.op import XlaOp
from xlapy.builder.other_names import hint_for_function
from xlapy.builder.places import printable, user_frame, user_line
from xlapy.builder.registry import FUNCTIONS, located
from xlapy.builder.snapshots import snapshot
from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.graph import (
    NO_METADATA,
    BufferDonor,
    Computation,
    HloModule,
    InputOutputAlias,
    Instruction,
)
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import Shape, Signature
from xlapy.hlo.text import to_text
from xlapy.hlo.text.lexer import Lexer, quote
from xlapy.support.errors import ArgumentError, ParseError, ShapeError
from xlapy.support.other_names import COMPUTATION, hint_for
from xlapy.support.source import Source
from xlapy.support.wording import counted

if TYPE_CHECKING:
    from xlapy.builder.method_types import BuilderMethods
else:
    BuilderMethods = object  # those of `methods.attach_methods`, which only checkers and editors read


class XlaComputation:
    """A finished computation: a module of its own, which nothing recorded later can change.

    It can be compiled, or be called from other computations, any number of times."""

    def __init__(self, module: HloModule) -> None:
        self.module = module

    @property
    def computation(self) -> Computation:
        """The entry of the module."""
        return self.module.entry

    @property
    def name(self) -> str:
        """The name of the builder, as HLO text spells it."""
        return self.module.name

    @property
    def program_shape(self) -> Signature:
        """The shapes of the parameters, in order, and of the result."""
        return self.module.signature

    def as_hlo_module(self) -> HloModule:
        """The module itself, not a copy; `compile` and passes leave it as it is."""
        return self.module

    def as_hlo_text(self, print_large_constants: bool = False) -> str:
        """HLO text. As in xla_client, large constants are elided unless asked for; `module.to_text()` has them."""
        return to_text(self.module, large_constants=print_large_constants)

    def __repr__(self) -> str:
        return f"<XlaComputation {self.name} {self.program_shape}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = hint_for(COMPUTATION, name)
            raise AttributeError(f"an XlaComputation has no {name!r}{hint}", name=name, obj=self)

    def _repr_html_(self) -> str | None:
        """What notebooks show: the module."""
        return self.module._repr_html_()


class XlaBuilder(BuilderMethods):
    """Records a computation, one instruction per call of an op function.

    Functions of `xlapy.ops` whose first parameter is the builder are also methods: `b.constant(1.0)`. With `locations`
    every instruction remembers the user's file and line. `parent` is the builder in whose call a Python function is
    being recorded as a sub-computation.
    """

    def __init__(self, name: str, *, locations: bool = True, parent: XlaBuilder | None = None) -> None:
        self.name = as_text(name, "the name of a builder")
        self.parent = parent
        self._computation = Computation(_identifier(self.name, "computation"))
        self._locations: bool = locations if parent is None else parent._locations
        self._places: dict[tuple[str, int], OpMetadata] = {}
        self._last: XlaOp | None = None
        self._parameters: dict[int, XlaOp] = {}
        self._metadata: OpMetadata = NO_METADATA if parent is None else parent._metadata
        self._extra: dict[str, str] = {}
        self._aliases: list[tuple[InputOutputAlias, str]] = []
        self._donors: list[tuple[BufferDonor, str]] = []
        self._last_effect: Instruction | None = None
        self._hidden_token: XlaOp | None = None

    # -- recording -------------------------------------------------------------------------------------------------

    def record(
        self,
        opcode: str,
        operands: Sequence[XlaOp] = (),
        *,
        called: Sequence[Computation] = (),
        shape: Shape | None = None,
        name: str = "",
        **attributes: Any,
    ) -> XlaOp:
        """Adds one instruction; the operands are handles of this builder. The op functions are made of this.

        Raises ShapeError with the builder's label of the constraint that is broken."""
        instructions = [operand.instruction for operand in operands]
        for instruction in instructions:
            if instruction.spec.name in _WAITED_FOR_BY:
                _check_waiter(instruction, opcode)
        try:
            instruction = self._computation.add(
                opcode,
                instructions,
                called=called,
                shape=shape,
                name=_identifier(name, "") if name else "",
                metadata=self._place(),
                **attributes,
            )
        except ShapeError as error:
            error.add_context(rule=OPS[opcode].label(error.rule, "B"))
            raise
        if self._extra:
            instruction.extra.update(self._extra)
        if called and Trait.CONTROL in instruction.spec.traits and instruction.has_effect:
            self.order_effect(instruction)
        self._last = XlaOp(self, instruction)
        return self._last

    def _place(self) -> OpMetadata:
        """The metadata of the next instruction: what the user set, and the user's line unless that says another."""
        if not self._locations:
            return self._metadata
        frame = user_frame()
        if frame is None:
            return self._metadata
        key = (frame.f_code.co_filename, frame.f_lineno)
        place = self._places.get(key)
        if place is None:
            set_ = self._metadata
            file, line = printable(frame.f_code.co_filename), frame.f_lineno
            place = set_ if set_.source_file else OpMetadata(set_.op_type, set_.op_name, file, line, set_.extra)
            self._places[key] = place
        return place

    @located
    def parameter(
        self, parameter_number: int, shape: Shape, name: str = "", replicated_at_leaf_buffers: Sequence[bool] = ()
    ) -> XlaOp:
        """Input `parameter_number` of the computation. Numbers may come in any order; `build` wants all from 0 on.

        A call takes an array for it, or nested tuples of arrays; errors call it `name`. `replicated_at_leaf_buffers`, a
        flag for each leaf, is for other compilers: HLO text has it."""
        number = as_int(parameter_number, "a parameter number")
        if number in self._parameters:
            taken = self._parameters[number]
            raise ShapeError("Parameter.number", f"parameter {number} of {self.name!r} is already {taken!r}")
        stated = as_shape(shape, "the shape of a parameter")
        replicated = [
            as_flag(flag, "a leaf of replicated_at_leaf_buffers")
            for flag in as_list(replicated_at_leaf_buffers, "replicated_at_leaf_buffers")
        ]
        text = as_text(name, "the name of a parameter")
        op = self.record("parameter", shape=stated, name=text or "parameter", number=number)
        if replicated:
            leaves = ",".join(str(flag).lower() for flag in replicated)
            op.instruction.extra["parameter_replication"] = "{" + leaves + "}"
        self._parameters[number] = op
        return op

    # -- the order of effects --------------------------------------------------------------------------------------

    def order_effect(self, instruction: Instruction) -> None:
        """Lets `instruction` run behind every earlier instruction of which this was asked.

        Operations without token operands (Infeed, Outfeed, Send ...) happen in the order in which they were recorded,
        also inside and around control flow, which their hidden token does not reach."""
        if self._last_effect is not None:
            self._computation.add_control_edge(self._last_effect, instruction)
        self._last_effect = instruction

    def hidden_token(self) -> XlaOp:
        """The token that threads through the operations without token operands."""
        if self._hidden_token is None:
            self._hidden_token = self.record("after-all")
        return self._hidden_token

    @located
    def set_hidden_token(self, token: XlaOp) -> None:
        """`token` is what the next operation without token operands waits for."""
        self._hidden_token = self.own(token)

    # -- what later instructions carry -----------------------------------------------------------------------------

    @located
    def set_op_metadata(self, metadata: Any) -> None:
        """Instructions recorded from now on carry op_type, op_name, source_file and source_line of `metadata`."""

        def text(name: str) -> str:
            return as_text(getattr(metadata, name, "") or "", f"{name} of metadata")

        line = as_int(getattr(metadata, "source_line", 0) or 0, "source_line of metadata")
        self._metadata = OpMetadata(text("op_type"), text("op_name"), text("source_file"), line)
        self._places.clear()

    def clear_op_metadata(self) -> None:
        """Instructions recorded from now on carry the user's line only."""
        self._metadata = NO_METADATA
        self._places.clear()

    @located
    def set_sharding(self, sharding: Any) -> None:
        """Instructions recorded from now on carry `sharding`, whose str() is HLO's text ("{replicated}")."""
        text = str(sharding)
        if not _is_group(text):
            raise ArgumentError(f"a sharding is HLO's text in braces, as {{replicated}}; got {described(sharding)}")
        self._extra["sharding"] = text

    def clear_sharding(self) -> None:
        """Instructions recorded from now on carry no sharding."""
        self._extra.pop("sharding", None)

    @located
    def set_frontend_attributes(self, attributes: Mapping[str, str]) -> None:
        """Instructions recorded from now on carry these attributes, which no pass looks at."""
        texts = as_texts(attributes, "frontend attributes")
        for key in texts:
            if not re.fullmatch(r"[\w.-]+", key):
                raise ArgumentError(f"the name of an attribute has letters, digits, '_', '.' and '-'; got {key!r}")
        pairs = ",".join(f"{key}={quote(text)}" for key, text in texts.items())
        self._extra["frontend_attributes"] = "{" + pairs + "}"

    def clear_frontend_attributes(self) -> None:
        """Instructions recorded from now on carry none of these attributes."""
        self._extra.pop("frontend_attributes", None)

    @located
    def setup_alias(self, output_index: Sequence[int], param_number: int, param_index: Sequence[int] = ()) -> None:
        """Lets leaf `output_index` of the result live in the memory of leaf `param_index` of a parameter.

        `build` checks that both exist and have the same shape, and blames this line if not."""
        parameter, index = leaf_of_parameter(param_number, param_index)
        alias = InputOutputAlias(as_ints(output_index, "an index into the result"), parameter, index)
        self._aliases.append((alias, user_line()))

    @located
    def add_buffer_donor(self, param_number: int, param_index: Sequence[int] = ()) -> None:
        """Lets any leaf of the result that has the shape of leaf `param_index` of a parameter live in its memory."""
        self._donors.append((BufferDonor(*leaf_of_parameter(param_number, param_index)), user_line()))

    # -- asking ----------------------------------------------------------------------------------------------------

    @located
    def get_shape(self, op: XlaOp) -> Shape:
        """The shape of a value of this builder."""
        return self.own(op).shape

    @located
    def get_program_shape(self, root: XlaOp | None = None) -> Signature:
        """The signature of what `build(root)` would build now."""
        return Signature(tuple(op.shape for op in self._numbered_parameters()), self._root(root).shape)

    @located
    def is_constant(self, op: XlaOp) -> bool:
        """The value depends on no parameter, no effect and no process id."""
        seen: set[Instruction] = set()
        pending = [self.own(op).instruction]
        while pending:
            instruction = pending.pop()
            if instruction.opcode == "parameter" or not instruction.is_pure or Trait.RUNTIME in instruction.spec.traits:
                return False
            new = [operand for operand in instruction.operands if operand not in seen]
            seen.update(new)
            pending.extend(new)
        return True

    def own(self, op: Any) -> XlaOp:
        """`op`, if it is a value of this builder; else an error that says whose it is."""
        if not isinstance(op, XlaOp):
            raise ArgumentError(f"{described(op)} is not an XlaOp")
        if op.builder is not self:
            raise ArgumentError(self._stranger(op))
        return op

    def _stranger(self, op: XlaOp) -> str:
        ancestor = self.parent
        while ancestor is not None and ancestor is not op.builder:
            ancestor = ancestor.parent
        if ancestor is not None:
            return (
                f"{op!r} belongs to the enclosing computation {op.builder.name!r} and cannot be used inside "
                f"{self.name!r}, which sees its parameters only: pass the value through the operands, or through the "
                "state of the loop"
            )
        if op.builder.name == self.name:
            return f"{op!r} belongs to another builder that is called {self.name!r} too, and cannot be used in this one"
        return f"{op!r} belongs to the builder {op.builder.name!r} and cannot be used in {self.name!r}"

    # -- building --------------------------------------------------------------------------------------------------

    @located
    def build(self, root: Any = None) -> XlaComputation:
        """A snapshot of what `root` (by default the last op; a list or tuple becomes a tuple), the effects, and the
        parameters need. The builder may go on recording."""
        result = self._root(root)
        self._numbered_parameters()
        module = snapshot(self._computation, result.instruction, self._computation.name)
        check_apart(self._aliases)
        module.config.aliases = tuple(checked_alias(module, alias, where) for alias, where in self._aliases)
        module.config.donors = tuple(checked_donor(module, donor, where) for donor, where in self._donors)
        return XlaComputation(module)

    @located
    def build_constant_sub_graph(self, op: XlaOp) -> XlaComputation:
        """A computation without parameters, for what `op` is whatever the parameters are (see `is_constant`)."""
        if not self.is_constant(op):
            raise ArgumentError(f"{op!r} is not constant: it depends on a parameter, on an effect or on the process")
        return XlaComputation(snapshot(self._computation, op.instruction, self._computation.name, alone=True))

    def _root(self, root: Any) -> XlaOp:
        if root is None:
            if self._last is None:
                raise ArgumentError(f"nothing was recorded in {self.name!r}, so there is nothing to build")
            root = self._last
        op = self._packed(root)
        if op.instruction.opcode in _WAITED_FOR_BY:
            _check_waiter(op.instruction, "the result")
        return op

    def _packed(self, value: Any) -> XlaOp:
        if isinstance(value, (list, tuple)):
            return self.record("tuple", [self._packed(element) for element in value])
        return self.own(value)

    def _numbered_parameters(self) -> list[XlaOp]:
        missing = [number for number in range(len(self._parameters)) if number not in self._parameters]
        if missing:
            raise ShapeError(
                "Parameter.number",
                f"{self.name!r} has the parameters {sorted(self._parameters)}, but no parameter {missing[0]}",
            )
        return [self._parameters[number] for number in range(len(self._parameters))]

    GetShape = get_shape
    GetProgramShape = get_program_shape
    IsConstant = is_constant
    BuildConstantSubGraph = build_constant_sub_graph
    Build = build

    def __repr__(self) -> str:
        return f"<XlaBuilder {self.name}, {counted(len(self._computation), 'instruction')}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is no method: those that `methods.attach_methods` makes from the op functions are found before."""
            if name in FUNCTIONS:
                hint = f": ops.{name} is a function"
            elif hasattr(XlaOp, name):
                hint = f": values have it, as x.{name}"
            else:
                hint = _RUN_ELSEWHERE if name in ("compile", "evaluate") else hint_for_function(name)
            raise AttributeError(f"an XlaBuilder has no {name!r}{hint}", name=name, obj=self)


_RUN_ELSEWHERE = ": xlapy.compile(builder.build(root)) makes a function of what it records"

_WAITED_FOR_BY = {"send": ("send-done", "Send.B1"), "recv": ("recv-done", "Recv.B1")}


def _check_waiter(started: Instruction, opcode: str) -> None:
    """Raises unless `opcode` is the op that may use the context which `started` returns."""
    waiter, rule = _WAITED_FOR_BY[started.opcode]
    if opcode != waiter:
        raise ShapeError(rule, f"{started!r} returns a context, which only {waiter} may use, not {opcode}")


def _identifier(name: str, default: str) -> str:
    """The name as HLO text can spell it."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name) or default


def _is_group(text: str) -> bool:
    """Whether all of the text stands in one pair of braces, with those inside it closed."""
    lexer = Lexer(Source(text))
    if '"' in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        return False  # a string that never ends
    try:
        return lexer.at("{") and bool(lexer.balanced()) and lexer.at_end
    except ParseError:
        return False


ComputationLike = XlaComputation | Callable[..., Any]
"""What an op function takes as a computation: a built one, or a Python function to record one from."""
