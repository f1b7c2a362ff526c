"""The report as a page: well-formed, self-contained, bounded, and right about the program."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import xlapy
from tests.e2e.corpus import corpus
from tests.report.programs import LOOP, SOFTMAX, chain
from tests.support.machine import LIMITS
from xlapy.hlo.graph import Instruction
from xlapy.hlo.patterns import P, variables
from xlapy.passes import new
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LawBook
from xlapy.report import observation
from xlapy.report.graph import DRAWN
from xlapy.report.markup import element, escaped
from xlapy.specialized import DynamicExecutable

(x,) = variables("x")
BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome", "chrome") if (path := shutil.which(name))), None
)


class Reader(HTMLParser):
    """Checks that tags are closed in order, and gathers ids, links and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.written: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attributes)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        found = dict(attributes)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found["href"] or ""] if "href" in found else []
        assert not {"src", "onclick", "onload", "srcset"} & set(found)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.written.append(data)

    @property
    def text(self) -> str:
        return "".join(self.written)


def page_of(text: str) -> str:
    return xlapy.compile(text).html_report(LIMITS)


LAWS_OF_A_USER = LawBook()


@LAWS_OF_A_USER.law(P.tanh(P.tanh(x)))
def tanh_once(x: Instruction) -> Value:
    """tanh(tanh(x)) -> tanh(x), which is near enough for a page"""
    return new.tanh(x)


def test_laws_of_users_are_cited_like_all_others() -> None:
    text = "ENTRY e { x = f32[8] parameter(0)  y = f32[8] tanh(x)  ROOT z = f32[8] tanh(y) }"
    exe = xlapy.compile(text, xlapy.CompileOptions(laws=[LAWS_OF_A_USER]))
    read = Reader(exe.html_report(LIMITS)).text
    assert "tanh-once" in read and "near enough for a page" in read


@pytest.mark.parametrize("program", [SOFTMAX, LOOP], ids=["softmax", "loop"])
def test_the_page_stands_alone_and_its_links_lead_somewhere(program: str) -> None:
    page = page_of(program)
    read = Reader(page)
    assert not {"script", "link", "iframe", "img"} & read.tags
    assert "http" not in page and "url(" not in page and "@import" not in page
    assert len(set(read.ids)) == len(read.ids)
    assert read.links and all(link.removeprefix("#") in read.ids for link in read.links)


def test_the_page_tells_the_whole_story() -> None:
    text = Reader(page_of(SOFTMAX)).text
    for expected in (
        "9 before fusion",
        "row-fusion",
        "-  n = f32[64,128] negate(e)",
        "negate-twice",
        "each row is read once and stays in a cache".capitalize(),
        "model.py:12",
        "define void @kernel.0.fusion",
        "vmulps" if xlapy.compile(SOFTMAX)._compiled.target.is_x86 else "fmul",
        "gemm_f32_run is a function of the runtime or of a library",
        "1 block share 32.0 KB",
        "dot f32[64,32]",
    ):
        assert expected in text, expected


def test_measured_times_stand_beside_the_best() -> None:
    exe = xlapy.compile(LOOP)
    page = exe.html_report(LIMITS, exe.profile(np.ones(256, np.float32), calls=2))
    assert "fastest of 2 calls" in page and 'class="measured"' in page
    assert 'class="measured"' not in exe.html_report(LIMITS)


def test_bodies_of_loops_are_drawn() -> None:
    text = Reader(page_of(LOOP)).text
    assert "body: 6 instructions; 1 constant left out." in text and "condition: " in text


def test_large_programs_are_cut_with_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "PRINTED_INSTRUCTIONS", 300)
    page = page_of(chain(400))
    assert len(page) < 1_000_000
    text = Reader(page).text
    assert f"400 instructions, of which the first {DRAWN} are drawn" in text
    assert "have no diffs" in text
    assert "... and 199 more kernels" in text and "... and 339 more kernels" in text
    assert page.count("<rect") < 2_000


def test_names_cannot_break_out() -> None:
    assert element("p", "a<b>&", title='"') == '<p title="&quot;">a&lt;b&gt;&amp;</p>'
    assert escaped(element("b", "x")) == "<b>x</b>"
    page = page_of(LOOP.replace("counted", "evil_script").replace("t = f32[256] tanh(v)", EVIL))
    assert "<script" not in page and "&lt;script&gt;" in page


EVIL = 't = f32[256] tanh(v), metadata={op_name="<script>alert(1)</script>" source_line=3}'


def test_notebooks_show_modules_and_executables() -> None:
    exe = xlapy.compile(SOFTMAX)
    for shown, expected in (
        (xlapy.hlo.parse(SOFTMAX), "HloModule softmax"),
        (xlapy.XlaComputation(xlapy.hlo.parse(SOFTMAX)), "HloModule softmax"),
        (exe, "Executable softmax"),
        (xlapy.compile("ENTRY e { x = f32[?] parameter(0)  ROOT y = f32[?] negate(x) }"), "f32[?]"),
    ):
        read = Reader(shown._repr_html_())  # type: ignore[attr-defined]
        assert expected in read.text and "script" not in read.tags


# -- in a browser ------------------------------------------------------------------------------------------------------

PROBE = """<!DOCTYPE html><title>waiting</title>
<iframe id="page" width="{width}" height="900" srcdoc="{page}"></iframe>
<script>
document.getElementById("page").addEventListener("load", event => {{
  const shown = event.target.contentDocument, root = shown.documentElement;
  document.title = [root.scrollWidth, root.clientWidth, shown.querySelectorAll("section").length,
    [...shown.querySelectorAll("summary, a, [tabindex]")].every(one => one.tabIndex >= 0)].join(" ");
}});
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_it_without_scrolling_sideways(width: int, tmp_path: Path) -> None:
    """Wide tables and drawings scroll by themselves; all that opens or leads on can be reached by keyboard."""
    assert BROWSER is not None
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(width=width, page=html.escape(page_of(SOFTMAX))), encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [BROWSER, *flags, "--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search("<title>(.*?)</title>", done.stdout)
    assert title is not None
    wide, seen, sections, reachable = title[1].split()
    assert int(wide) <= int(seen) <= width
    assert (sections, reachable) == ("6", "true")


@pytest.mark.slow
def test_every_program_has_a_report() -> None:
    for module in corpus():
        exe = xlapy.compile(module)
        if not isinstance(exe, DynamicExecutable):
            assert exe.explain(LIMITS)
            Reader(exe.html_report(LIMITS))


def test_a_file_is_not_limits() -> None:
    exe = xlapy.compile("HloModule m  ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] exponential(x) }")
    with pytest.raises(xlapy.ArgumentError, match=r"limits are 'page.html'.*write_text"):
        exe.html_report("page.html")  # type: ignore[arg-type]
