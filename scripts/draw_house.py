#!/usr/bin/env python3
"""The drawing of docs/architecture.md: the rooms, who stands on whom, and the seam where devices begin.

    scripts/draw_house.py [FILE]        writes docs/images/house.svg, or FILE

A test holds it to scripts/check_layers.py: every layer is drawn, none below one that it may not include.
"""

import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs/images/house.svg"
WIDTH, MARGIN, LABELS, GAP = 960, 20, 140, 8
BOX = 46  # height of a room

# Each floor: what it is for, its colour, and its rooms from the top of the layers downwards: name, what it is.
ABOVE = (
    ("people", "edge", (("cli", "one file per command"), ("your program", "#include <heddle/heddle.h>"))),
    ("tools of the\ncommand line", "tool", (("bench", "speed"), ("lab", "the theory, run"), ("report", "pages, drawings"),
                                            ("check", "against float64"))),
    ("training", "train", (("compare", "variants"), ("train", "many steps"), ("plan", "before it begins"),
                           ("optim", "one update"), ("distributed", "ranks"))),
    ("using", "use", (("generate", "text, labels, maps"), ("run", "a run's directory"), ("recipe", "what TOML says"),
                      ("pretrained", "models of others"))),
    ("models", "model", (("data", "batches, their order"), ("model", "kinds, blocks, stacks"),
                         ("nn", "a file per variant"))),
    ("bytes", "file", (("text", "tokenizers, templates"), ("io", "every format; every byte may be hostile"))),
    ("mathematics", "ops", (("ops", "a folder per op: checks, gradient, reference(); nothing of any device"),
                            ("autograd", "the tape"))),
)
DEVICES = (("cpu", "generic, avx2, avx512,\navx512_bf16, amx"), ("cuda", "own kernels, cuBLASLt;\nbits repeat"),
           ("meta", "shapes, bytes, FLOPs:\nheddle plan"), ("plug-ins", "a whole one in tests:\nthe mock device"),
           ("no routine?", "the op's reference(),\nout of eight plain ops"))
BELOW = (("foundation", "base", (("tensor", "storage, engines, the ledger of memory"), ("language", "English, Chinese"),
                                 ("base", "Error, DType, threads"))),)

STYLE = """
  .paper { fill: #ffffff; } .frame { fill: none; stroke: #d0d7de; }
  text { font-family: -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .label { font-size: 13px; fill: #59636e; } .name { font-size: 14px; font-weight: 600; } .what { font-size: 11.5px; }
  .code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12px; }
  .edge { fill: #eaeef2; } .tool { fill: #f3e8fd; } .train { fill: #fdebd3; } .use { fill: #fdf3c7; }
  .model { fill: #dcf3e0; } .file { fill: #e4eefb; } .ops { fill: #cfe4fb; } .device { fill: #fbdcd8; } .base { fill: #eaeef2; }
  .room { stroke: #8c959f; stroke-width: 0.8; } .line { stroke: #cf222e; stroke-width: 2; stroke-dasharray: 7 5; }
  .seam { font-size: 14px; font-weight: 600; fill: #cf222e; } .arrow { stroke: #59636e; fill: none; stroke-width: 1.2; }
  .tip { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; } .frame { stroke: #3d444d; } text { fill: #e6edf3; } .label { fill: #9198a1; }
    .edge, .base { fill: #262c36; } .tool { fill: #3b2a4f; } .train { fill: #4a3413; } .use { fill: #453c0e; }
    .model { fill: #1c3f28; } .file { fill: #1d3050; } .ops { fill: #14406f; } .device { fill: #55231f; }
    .room { stroke: #656c76; } .line { stroke: #ff7b72; } .seam { fill: #ff7b72; } .arrow { stroke: #9198a1; }
    .tip { fill: #9198a1; }
  }
"""


def text(kind, x, y, content, middle=True):
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}"{anchor}>{escape(content, quote=False)}</text>'


def room(colour, x, y, width, name, what):
    """A box with its name and one or two lines of what it is."""
    lines = what.split("\n")
    yield f'<rect class="room {colour}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height_of(what):g}" rx="5"/>'
    yield text("name", x + width / 2, y + 19, name)
    for number, line in enumerate(lines):
        yield text("what", x + width / 2, y + 36 + 15 * number, line)


def height_of(what):
    return BOX + 15 * what.count("\n")


def floor(label, colour, rooms, y):
    """Rooms beside each other, as wide as what is written in them asks for."""
    lines = label.split("\n")
    for number, line in enumerate(lines):
        yield text("label", MARGIN + 12, y + BOX / 2 + 5 + 16 * (number - (len(lines) - 1) / 2), line, middle=False)
    free = WIDTH - 2 * MARGIN - LABELS - 12 - GAP * (len(rooms) - 1)
    wants = [max(len(line) for line in (name + "  ", *what.split("\n"))) + 6 for name, what in rooms]
    x = MARGIN + LABELS
    for (name, what), want in zip(rooms, wants):
        width = free * want / sum(wants)
        yield from room(colour, x, y, width, name, what)
        x += width + GAP


def seam(y):
    left, right = MARGIN + 12, WIDTH - MARGIN - 12
    yield f'<line class="line" x1="{left}" y1="{y}" x2="{right}" y2="{y}"/>'
    yield text("seam", left, y - 12, "the seam", middle=False)
    yield text("code", MARGIN + LABELS, y - 12, "launch(NormCall{x, gain, bias, y, ...}): tensors, numbers and what they cost",
               middle=False)
    yield text("code", MARGIN + LABELS, y + 23, "Routine<NormCall>{run, plan} of the tensor's device: plans its workspace, runs",
               middle=False)


def drawing():
    parts, y = [], MARGIN + 14
    for label, colour, rooms in ABOVE:
        parts += floor(label, colour, rooms, y)
        y += BOX + GAP
    y += 30
    parts += seam(y)
    y += 38
    parts += floor("devices", "device", DEVICES, y)
    y += max(height_of(what) for _, what in DEVICES) + GAP
    for label, colour, rooms in BELOW:
        parts += floor(label, colour, rooms, y)
        y += BOX + GAP
    bottom = y - GAP + 12
    x = WIDTH - MARGIN - 1  # who may include whom
    parts += [f'<line class="arrow" x1="{x}" y1="{MARGIN + 14}" x2="{x}" y2="{bottom - 20}"/>',
              f'<path class="tip" d="M{x - 4} {bottom - 21} h8 l-4 9 z"/>']
    frame = f'x="{MARGIN / 2:g}" y="{MARGIN / 2:g}" width="{WIDTH - MARGIN:g}" height="{bottom - MARGIN / 2:g}" rx="8"'
    height = bottom + MARGIN / 2
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" '
        'role="img" aria-label="The rooms of Heddle, from the command line down to tensors, and the seam between ops and devices">',
        f"<style>{STYLE}</style>", f'<rect class="paper" width="{WIDTH}" height="{height:g}" rx="8"/>',
        f'<rect class="frame" {frame}/>', *parts, "</svg>", ""])


def rooms_by_floor():
    """The layers that are drawn, floor by floor from the top."""
    return [[name for name, _ in rooms] for _, _, rooms in (*ABOVE, ("devices", "device", (("backend", ""),)), *BELOW)]


if __name__ == "__main__":
    (Path(sys.argv[1]) if sys.argv[1:] else FILE).write_text(drawing(), encoding="utf-8")
