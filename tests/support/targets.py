"""The machines that code can be made for here, beside this one as it is."""

from __future__ import annotations

import dataclasses

from xlapy.codegen.target import Target, host_target, reference_target


def lesser_targets() -> dict[str, Target]:
    """Every instruction set that this machine has, as if there were no more, but for the largest one, for which code is
    made everywhere else; and wide vectors held back."""
    host = host_target()
    found = {name: reference_target(name) for name in ("sse2", "avx2", "avx512")} if host.is_x86 else {}
    found = {name: target for name, target in found.items() if all(map(host.has, _extensions(target)))}
    if not found:
        return {}
    name, own = found.popitem()
    if name == "avx512":
        found["avx512, half its width"] = dataclasses.replace(own, vector_bytes=32)
    return found


def _extensions(target: Target) -> list[str]:
    return [word.removeprefix("+") for word in target.features.split(",") if word.startswith("+")]
