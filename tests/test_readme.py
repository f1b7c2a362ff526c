"""The pages tell the truth: every block marked `python` in README.md and docs/ runs, each page from top to bottom.

A block that is only to be looked at (a fragment, a signature) is marked `py` instead.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import xlapy
from xlapy import CompileOptions, ops
from xlapy.specialized import DynamicExecutable
from xlapy.tools.main import main

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    """The code of each block, behind as many empty lines as stand above it: errors name the page's own lines."""
    text = page.read_text()
    return ["\n" * text.count("\n", 0, match.start(1)) + match[1] for match in BLOCK.finditer(text)]


PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_on_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)


def test_the_readme_shows_code() -> None:
    assert ROOT / "README.md" in PAGES


ALL_PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_links_between_pages_lead_somewhere() -> None:
    for page in ALL_PAGES:
        for link, section in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text()):
            if "://" in link:
                continue
            target = page.parent / link if link else page
            assert target.exists(), f"{page.relative_to(ROOT)}: {link}"
            assert not section or section in sections(target), f"{page.relative_to(ROOT)}: {link}#{section}"


def sections(page: Path) -> set[str]:
    """What the headings of a page are called in links, as GitHub does it."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_on_the_pages_exist(page: Path) -> None:
    """`xlapy.X`, `ops.X` and the like, methods of executables, options, and files of the repository."""
    text = page.read_text()
    missing = [
        name
        for name in sorted(set(re.findall(r"\b((?:xlapy|xlapy_runtime|xla_client)(?:\.[A-Za-z_]\w*)+)", text)))
        if not name.endswith((".py", ".md")) and not _exists(name)
    ]
    missing += [
        f"ops.{name}"
        for name in set(re.findall(r"(?<![\w.])ops\.([A-Z]\w*)", text))
        if not hasattr(ops, name) and name not in WRONG_ON_PURPOSE
    ]
    missing += [
        f"exe.{name}"
        for name in set(re.findall(r"\bexe(?:cutable)?\.([a-z]\w*)\(", text))
        if not hasattr(xlapy.Executable, name) and not hasattr(DynamicExecutable, name) and name not in OF_CLIENTS
    ]
    missing += [
        f"CompileOptions({name}=...)"
        for call in re.findall(r"xlapy\.CompileOptions\(([^)]*)\)", text)
        for name in re.findall(r"(\w+)=(?!=)", call)
        if name not in CompileOptions.__match_args__ and name not in WRONG_ON_PURPOSE
    ]
    missing += [
        file
        for file in set(re.findall(r"`((?:xlapy|runtime|tests|benchmarks|examples|docs)/[\w/.-]+)`", text))
        if not (ROOT / file).exists()
    ]
    assert missing == []


OF_CLIENTS = ("execute", "keep_alive")
"""Methods of the executables of `xla_client`."""

WRONG_ON_PURPOSE = ("pipeline", "MatMul")
"""Names that there are not, on pages that say what becomes of them."""


def _exists(name: str) -> bool:
    """Whether a name with dots is a module, or something in one."""
    parts = name.split(".")
    parts = ["xlapy", *parts] if parts[0] == "xla_client" else parts
    found: Any = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(parts[:number]))
            except ImportError:
                return False
        found = getattr(found, part, None)
    return True


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_the_pages_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`xlapy COMMAND --option`: in blocks of shell, and in the text."""
    text = page.read_text()
    shell = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S))
    lines = re.findall(r"^xlapy ([a-z].*)$", shell, re.M) + re.findall(r"`(?:python -m )?xlapy ([a-z][^`]*)`", text)
    for line in sorted({re.split("[#|]", line)[0] for line in lines}):
        command, *rest = line.split()
        with pytest.raises(SystemExit) as status:
            main([command, "--help"])
        assert status.value.code == 0, f"there is no command {command!r}"
        known = capsys.readouterr().out
        assert [option for option in rest if option.startswith("--") and option.partition("=")[0] not in known] == [], (
            line
        )
