"""How the page looks: one column of cards, light or dark as the reader's system is, readable on a telephone."""

_LIGHT = """
  --page: #f6f7f9; --card: #ffffff; --ink: #1c2430; --soft: #5b6675; --line: #dde2e9; --accent: #2457c5;
  --add: #e2f5e7; --add-ink: #14532d; --del: #fde8e8; --del-ink: #7f1d1d; --bar: #b9cdf5; --bar-on: #2457c5;
  --fused: #fff0c2; --elementwise: #dbe9ff; --moving: #dcf3e0; --product: #ffe2cc; --folding: #f3dcf2;
  --control: #e4defa; --talking: #fbd9d9; --plain: #eceff3; --edge: #8b97a8;
  --c0: #5b8def; --c1: #43a680; --c2: #d98a3d; --c3: #b565c4; --c4: #c9565f; --c5: #6a7f96;
"""
_DARK = """
  --page: #12161d; --card: #1a202a; --ink: #e6eaf0; --soft: #9aa6b6; --line: #2d3643; --accent: #8ab0ff;
  --add: #14352199; --add-ink: #a7e8be; --del: #4a1d2299; --del-ink: #f5b5b5; --bar: #2b4375; --bar-on: #8ab0ff;
  --fused: #57471a; --elementwise: #233f6b; --moving: #1f4a2c; --product: #5f3a1d; --folding: #4d2a4c;
  --control: #3a3263; --talking: #5c2a2d; --plain: #2c3440; --edge: #76839a;
  --c0: #4671c9; --c1: #338765; --c2: #b0702f; --c3: #93509f; --c4: #a8464e; --c5: #566a80;
"""

_PAGE = """
* { box-sizing: border-box; }
html { scroll-padding-top: 3.5rem; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 1180px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 28px; }
h1 { font-size: 1.6rem; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 10px; }
h3 { font-size: 1rem; margin: 18px 0 6px; }
p { margin: 0 0 10px; max-width: 75ch; }
a { color: var(--accent); }
.note, figcaption { color: var(--soft); font-size: 0.9rem; }
nav { position: sticky; top: 0; z-index: 1; background: var(--page); border-bottom: 1px solid var(--line); }
nav ul { display: flex; gap: 2px 18px; overflow-x: auto; list-style: none; max-width: 1180px; margin: 0 auto;
  padding: 10px 20px; }
nav a { text-decoration: none; white-space: nowrap; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px;
  margin: 18px 0; }
dl.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px;
  margin: 16px 0 4px; }
dl.figures div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px; }
dl.figures dt { color: var(--soft); font-size: 0.85rem; }
dl.figures dd { margin: 0; font-size: 1.2rem; font-weight: 600; font-variant-numeric: tabular-nums; }
dl.figures dd small { display: block; font-size: 0.8rem; font-weight: 400; color: var(--soft); }
.scroll { overflow: auto; max-height: 78vh; }
.graph { border: 1px solid var(--line); border-radius: 8px; max-height: 70vh; }
figure { margin: 0 0 14px; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 500; position: sticky; top: 0; background: var(--card); }
th, td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th.n, td.n { text-align: right; white-space: nowrap; }
code, pre { font: 12.5px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
td code { white-space: nowrap; }
pre { margin: 8px 0; padding: 10px 12px; background: var(--page); border: 1px solid var(--line); border-radius: 8px;
  overflow: auto; max-height: 60vh; }
details { border-top: 1px solid var(--line); padding: 6px 0; }
details details { margin-left: 14px; }
summary { cursor: pointer; padding: 2px 0; overflow-wrap: anywhere; }
summary .what { color: var(--soft); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
ins, del { display: block; width: max-content; min-width: 100%; text-decoration: none; }
ins { background: var(--add); color: var(--add-ink); }
del { background: var(--del); color: var(--del-ink); }
.pass { display: grid; grid-template-columns: minmax(9rem, 1.2fr) 5rem minmax(4rem, 2fr) minmax(10rem, 2.2fr);
  gap: 2px 12px;  align-items: center; }
summary .pass { display: inline-grid; width: calc(100% - 1.4rem); vertical-align: middle; }
.pass .time { text-align: right; color: var(--soft); font-variant-numeric: tabular-nums; }

.pass .bar { display: block; background: var(--bar); border-radius: 3px; height: 9px; min-width: 2px; }
.tag { display: inline-block; border: 1px solid var(--line); border-radius: 4px; padding: 0 6px; margin: 1px 4px 1px 0;
  font-size: 0.85rem; }
ul.reasons { margin: 0; padding-left: 1.1rem; }
ul.reasons li { margin: 0 0 8px; overflow-wrap: anywhere; }
.legend .key { display: inline-block; border-radius: 4px; padding: 0 8px; margin: 0 6px 4px 0; font-size: 0.85rem; }
footer { color: var(--soft); font-size: 0.85rem; padding-bottom: 28px; }
@media (max-width: 640px) {
  header, main, footer { padding-left: 12px; padding-right: 12px; } header { padding-top: 18px; }
  nav ul { padding: 10px 12px; }
  section { padding: 14px 12px; } dl.figures { grid-template-columns: repeat(2, 1fr); }
  .pass { grid-template-columns: 1fr auto; } .pass .bar-box { display: none; } .pass .what { grid-column: 1 / -1; }
  details details { margin-left: 6px; }
}
"""

_DRAWINGS = """
svg { display: block; }
svg text { font: 11px ui-monospace, "SF Mono", Menlo, Consolas, monospace; fill: var(--ink); }
.graph text { text-anchor: middle; }
.graph svg { margin: 0 auto; }
svg text.name { font-weight: 600; }
svg text.axis { font-family: system-ui, sans-serif; fill: var(--soft); }
svg .edge { fill: none; stroke: var(--edge); stroke-width: 1.2; }
svg rect { stroke: var(--edge); stroke-width: 0.8; }
svg .root > rect { stroke: var(--ink); stroke-width: 2; }
svg a:hover rect, svg a:focus-visible rect { stroke: var(--accent); stroke-width: 2.5; }
svg.chart { width: 100%; min-width: 540px; max-width: 900px; height: auto; }
.grid { stroke: var(--line); stroke-width: 1; }
.roof { fill: none; stroke: var(--accent); stroke-width: 2; }
.possible circle { fill: var(--card); stroke: var(--accent); stroke-width: 2; }
.measured circle { fill: var(--c2); stroke: var(--card); }
.bound { stroke: var(--accent); stroke-width: 1.5; stroke-dasharray: 5 4; }
.block rect { stroke: var(--card); stroke-width: 0.5; }
.block .held { opacity: 0.25; }
.block:hover rect { stroke: var(--ink); }
.c0 rect { fill: var(--c0); } .c1 rect { fill: var(--c1); } .c2 rect { fill: var(--c2); }
.c3 rect { fill: var(--c3); } .c4 rect { fill: var(--c4); } .c5 rect { fill: var(--c5); }
.fused { fill: var(--fused); background: var(--fused); }
.elementwise { fill: var(--elementwise); background: var(--elementwise); }
.moving { fill: var(--moving); background: var(--moving); }
.product { fill: var(--product); background: var(--product); }
.folding { fill: var(--folding); background: var(--folding); }
.control { fill: var(--control); background: var(--control); }
.talking { fill: var(--talking); background: var(--talking); }
.plain { fill: var(--plain); background: var(--plain); }
"""

STYLE = f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
{_PAGE}{_DRAWINGS}
"""

NOTEBOOK_STYLE = f"""
.xlapy {{ {_LIGHT} background: var(--card); color: var(--ink); padding: 8px;
  & .scroll {{ overflow: auto; max-height: 420px; }}
  & pre {{ overflow: auto; max-height: 420px; }}
  {_DRAWINGS} }}
"""
"""The same for drawings in a notebook, whose cells have a style of their own: light, and of nothing else."""
