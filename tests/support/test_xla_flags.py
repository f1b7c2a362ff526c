"""The flags with which JAX compiles quickly come beside those of the user, as far as the installed XLA has them."""

from __future__ import annotations

import os

import pytest

from tests.support.xla_flags import QUICK, use_quick_xla, usual_fusions


def flags_after(monkeypatch: pytest.MonkeyPatch, given: str) -> list[str]:
    monkeypatch.setenv("XLA_FLAGS", given)
    use_quick_xla()
    return os.environ["XLA_FLAGS"].split()


def test_what_the_user_says_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["--xla_backend_optimization_level=2", "--xla_dump_to=somewhere"]
    flags = flags_after(monkeypatch, " ".join(given))
    assert flags[:2] == given
    assert [flag for flag in flags if "optimization_level" in flag] == given[:1]
    assert flags_after(monkeypatch, " ".join(flags)) == flags


def test_flags_that_xla_does_not_know_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jaxlib")
    monkeypatch.setitem(QUICK, "xla_no_such_flag", "true")
    flags = flags_after(monkeypatch, "")
    assert "--xla_backend_optimization_level=0" in flags
    assert not any("no_such_flag" in flag for flag in flags)


def test_fusions_are_as_usual_only_where_they_were_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")
    assert usual_fusions() == {"xla_cpu_use_fusion_emitters": True}
    monkeypatch.setenv("XLA_FLAGS", "")
    assert usual_fusions() == {}
