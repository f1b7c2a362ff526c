"""Python functions that JAX programs call: `pure_callback`, `io_callback`, `jax.debug.callback` and `jax.debug.print`.

JAX lowers each to a custom call with the number of a function, which it keeps beside the program. Those in order take
a token and give one, and the tokens of all of them go into and come out of the program, in front of everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from xlapy.hlo.graph import HloModule, Instruction
from xlapy.hlo.text.backend_config import read_backend_config
from xlapy.jax.internals import CALLBACK_EFFECTS, INNER_EFFECTS, kept_beside
from xlapy.support.errors import UnsupportedError

PERMITTED = (*CALLBACK_EFFECTS, *INNER_EFFECTS)

Callback = Callable[..., Sequence[Any]]

TARGETS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")


@dataclass(frozen=True, slots=True)
class Effects:
    """What a program does besides computing: the functions that it calls, and how many kinds of them are in order."""

    callbacks: Sequence[Callback] = ()
    tokens: int = 0

    def targets(self, module: HloModule) -> dict[str, Callback]:
        """The custom call targets of the program."""
        if not self.callbacks:
            return {}
        calls = [instruction for instruction in module.instructions() if is_callback(instruction)]
        in_order = {_number(call) for call in calls if call.operands and call.operands[0].shape.is_token}

        def call_back(*operands: Any, index: int) -> tuple[Any, ...]:
            function = self.callbacks[index]
            if index in in_order:
                _, *results = function(None, *operands)
                return tuple(results)
            return tuple(function(*operands))

        return dict.fromkeys(TARGETS, call_back)

    def __bool__(self) -> bool:
        return bool(self.callbacks or self.tokens)


NONE = Effects()


def effects_of(traced: Any, lowered: Any) -> Effects:
    """What JAX keeps beside a lowered program. Raises UnsupportedError for effects that are no calls of functions."""
    check_effects(effect for effect in traced.jaxpr.effects if not isinstance(effect, PERMITTED))
    kept = kept_beside(lowered)
    callbacks = tuple(kept["host_callbacks"])
    if not all(map(callable, callbacks)):
        raise UnsupportedError("this version of JAX hands callbacks to XLA only; a newer one has functions for them")
    return Effects(callbacks, len(kept["ordered_effects"]))


def check_effects(effects: Iterable[Any]) -> None:
    """Refuses effects that there are: references, and what later versions of JAX may come to know."""
    names = ", ".join(sorted(str(effect) for effect in effects))
    if names:
        raise UnsupportedError(f"the function has effects besides its results, which xlapy.jax cannot run: {names}")


def is_callback(instruction: Instruction) -> bool:
    return instruction.opcode == "custom-call" and instruction.attributes["target"] in TARGETS


def _number(call: Instruction) -> int:
    entries: Any = read_backend_config(call.extra["backend_config"])
    return int(entries["index"])


def without_tokens(function: Callable[..., Any], tokens: int) -> Callable[..., Any]:
    """A program that takes and gives tokens first, as a function without them."""

    def call(*arrays: Any) -> Any:
        value = function(*(None,) * tokens, *arrays)
        results = (value if isinstance(value, tuple) else (value,))[tokens:]
        return results[0] if len(results) == 1 else results

    return call
