#!/usr/bin/env python3
"""The lab's page in Chromium: sliders against what was measured, formulas, the index, a phone.

    lab.py HEDDLE WORK

WORK is a directory for what is made. Needs Chromium and is skipped without it (exit status 77). Exits
with 1 when something is not as it should be.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import Browser, chromium_or_skip  # noqa: E402

HEDDLE, WORK = (Path(p).resolve() for p in sys.argv[1:3])
# One of each kind: sliders, all three verdicts, bars, maps and charts.
NAMES = ("scale-sqrt-d", "window-cost", "copying", "alibi-slopes", "rope-relative", "permutation",
         "attention-symmetry", "multiplicative-class", "elman-and", "sinusoid-rotation")
SLIDERS = {"scale", "window-work", "window-memory", "temperature", "alibi", "rope-base"}
FAILURES = []


def check(ok, what, *seen):
    if not ok:
        FAILURES.append(f"{what}: {' '.join(map(repr, seen))}")


def written(language):
    page = WORK / f"lab-{language}.html"
    done = subprocess.run([str(HEDDLE), "lab", *NAMES, "--lang", language, "--out", str(page)],
                          capture_output=True, timeout=300)
    check(done.returncode == 0, "heddle lab", done.stdout.decode()[-500:], done.stderr.decode())
    check(str(page) in done.stdout.decode(), "says what it wrote", done.stdout.decode()[-200:])
    return page


# What was measured, and what the page computes there.
SAMPLES = """Object.values(heddleExplorers).flatMap(e => [
  ...e.measured.map(([t, line, x, y]) => [e.name, t, y, e.value(line, x, t)]),
  ...e.readings.flatMap((r, i) => r.measured.map(([t, y]) => [e.name + ' ' + r.label, t, y, e.reading(i, t)]))])"""

# Pairs of texts in drawings that cover each other.
OVERLAPS = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].filter(t => t.textContent && getComputedStyle(t).visibility !== 'hidden')
    .map(t => [t.textContent, t.getBoundingClientRect()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
    .filter(([, q]) => p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 4 && q.top < p.bottom - 4)
    .map(([b]) => [svg.closest('section').id, a, b])); })"""

VERDICTS = """[...document.querySelectorAll('section:has(.head)')].map(s => [s.id,
  [...s.querySelector('.head .badge').classList].find(c => c !== 'badge'),
  s.querySelectorAll('.contradicts').length])"""


def sliders(page):
    check(set(page.evaluate("Object.keys(heddleExplorers)")) == SLIDERS, "sliders of the page",
          page.evaluate("Object.keys(heddleExplorers)"))
    samples = page.evaluate(SAMPLES)
    check(len(samples) > 300, "measured numbers", len(samples))
    for name, t, y, computed in samples:
        check(computed is not None and abs(computed - y) <= 1e-9 * max(1, abs(y)),
              f"{name} at {t}: what the page computes is what was measured", computed, y)
    # Every stop of a slider at which something was measured can be reached.
    reached = page.evaluate("""Object.values(heddleExplorers).flatMap(e => e.measured.map(([t]) => {
      e.input.value = e.position(t); const off = Math.abs(e.t() - t) / t; e.reset(); return t === 0 ? 0 : off; }))""")
    check(max(reached) < 1e-9, "stops of the sliders", max(reached))


def keyboard_and_print(page):
    for name in sorted(SLIDERS):
        box = f"#explore-{name}"
        state = f"[document.querySelector('{box} output').textContent, document.querySelector('{box} polyline:last-of-type')" \
                f".parentElement.innerHTML.length, heddleExplorers['{name}'].t()]"
        before = page.evaluate(state)
        page.evaluate(f"document.querySelector('{box} input').focus()")
        page.send("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", code="ArrowRight",
                  windowsVirtualKeyCode=39)
        page.send("Input.dispatchKeyEvent", type="keyUp", key="ArrowRight", code="ArrowRight",
                  windowsVirtualKeyCode=39)
        after = page.evaluate(state)
        check(after[0] != before[0] and after[2] > before[2], f"{name}: an arrow key moves it", before, after)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        check(page.evaluate(state) == before, f"{name}: printed as it begins", page.evaluate(state), before)


def looks(page, width):
    check(page.evaluate("document.documentElement.scrollWidth") <= width, f"nothing is cut off at {width}",
          page.evaluate("document.documentElement.scrollWidth"))
    check(page.evaluate(OVERLAPS) == [], f"no labels overlap at {width}", page.evaluate(OVERLAPS)[:5])
    # A formula may be of several pieces, and a piece nothing but an arrow.
    check(min(page.evaluate("[...document.querySelectorAll('.formula')].map(f => Math.max(..."
                            "[...f.querySelectorAll('math')].map(m => m.getBoundingClientRect().height)))"))
          > 10, "formulas are set")
    hidden = page.evaluate("[...document.querySelectorAll('.formula')].filter(f => f.scrollWidth > f.clientWidth + 1)"
                           ".map(f => [f.closest('section').id, f.scrollWidth])")
    check(hidden == [], f"formulas are seen whole at {width}", hidden)
    check(page.evaluate("document.querySelectorAll('math').length") >= 9, "formulas are there")


def verdicts(page):
    for name, verdict, against in page.evaluate(VERDICTS):
        check((against == 0) == (verdict == "holds"), f"{name}: {verdict} and its checks", against)
    check({v for _, v, _ in page.evaluate(VERDICTS)} == {"holds", "conditional", "refuted"}, "all verdicts")


def index(page):
    page.evaluate("document.getElementById('rope-relative').scrollIntoView()")
    page.wait_for("document.querySelector('.index a[aria-current]')?.hash === '#rope-relative'")
    top, bottom = page.evaluate("(() => { const b = document.querySelector('.index').getBoundingClientRect();"
                                " return [b.top, b.bottom]; })()")
    check(top >= -1 and bottom > 50, "the index stays in sight", top, bottom)
    page.click(".to-top")
    page.wait_for("scrollY === 0")
    check(page.evaluate("document.querySelectorAll('#documents a[href=\"#rope-relative\"]').length") == 1,
          "a document lists its claims")


def on_paper(page):
    """The index is narrow on paper, too, but nobody can open it there; drawings are read at arm's length."""
    page.send("Emulation.setDeviceMetricsOverride", width=794, height=1123, deviceScaleFactor=1, mobile=False)
    page.wait_for("!document.querySelector('.index details').open")
    page.send("Emulation.setEmulatedMedia", media="print")
    page.wait_for("document.querySelector('.index details').open")
    small = page.evaluate("[...document.querySelectorAll('svg.chart text')].filter(t => t.textContent &&"
                          " t.getBoundingClientRect().height > 0 && t.getBoundingClientRect().height < 9).length")
    check(small == 0, "letters of charts on paper", small)
    page.send("Emulation.setEmulatedMedia", media="")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    program = chromium_or_skip()
    with Browser(program) as browser:
        for language in ("en", "zh"):
            path = written(language)
            for width in (1400, 390):
                page = browser.open(path, width=width, height=900, dark=language == "zh")
                looks(page, width)
                if width > 1000 and language == "en":
                    sliders(page)
                    keyboard_and_print(page)
                    verdicts(page)
                    index(page)
                    on_paper(page)
                check(page.complaints == [], f"{language}, {width}: complaints", page.complaints)
    print(json.dumps(FAILURES, indent=1, ensure_ascii=False) if FAILURES else "fine")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
