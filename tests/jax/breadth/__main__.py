"""Runs the functions of the tables through xlapy and XLA, and prints what came of them."""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Sequence

from tests.jax.agreement import x64_mode
from tests.jax.breadth.cases import MODES, Case, rows
from tests.jax.breadth.running import Outcome, run


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 if nothing differs but what is known to."""
    parser = argparse.ArgumentParser(prog="python -m tests.jax.breadth", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORDS", help="expressions with one of these, as erf,betainc")
    parser.add_argument("--types", default="", metavar="TYPES", help="element types, as f32,bf16")
    parser.add_argument("--modes", default="", metavar="MODES", help=f"of plain,{','.join(MODES)}")
    parser.add_argument("--all", action="store_true", help="print what agrees too")
    options = parser.parse_args(arguments)
    words, types, modes = (text.split(",") if text else [] for text in (options.only, options.types, options.modes))
    cases = [
        case
        for row in rows()
        for case in row.cases
        if _is_chosen(case, words) and (not types or case.type in types) and (not modes or case.mode in modes)
    ]
    begin = time.perf_counter()
    counts: collections.Counter[str] = collections.Counter()
    with x64_mode():
        for outcome in run(cases):
            word = (
                f"{outcome.kind}, as known" if outcome.kind in ("differs", "fails") and outcome.known else outcome.kind
            )
            counts[word] += 1
            if options.all or outcome.kind in ("differs", "fails"):
                print(line(outcome, word), flush=True)
    summary = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    print(f"{len(cases)} cases in {time.perf_counter() - begin:.0f} s: {summary}")
    return 1 if counts["differs"] or counts["fails"] else 0


def _is_chosen(case: Case, words: Sequence[str]) -> bool:
    return not words or any(word in case.row.expression for word in words)


def line(outcome: Outcome, word: str) -> str:
    share = f"{outcome.units:.3g} of what is allowed" if outcome.kind in ("agrees", "differs") else ""
    return f"{outcome.case!s:75} {word:8} {share} {outcome.text}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
