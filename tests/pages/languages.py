#!/usr/bin/env python3
"""Every page in Chinese is Chinese: reports, a comparison, inspect pages, the lab, a page of heddle watch.

    languages.py HEDDLE WORK LAB

WORK has the runs that tests/e2e/languages_screens.py made, whose data has no Latin letter; LAB is the page of
`heddle lab all --lang zh`. Needs Chromium and is skipped without it (exit status 77). Exits with 1 when something English is left.
"""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "pages"), str(TESTS / "e2e")]
from browser import Browser, chromium_or_skip  # noqa: E402
from english import english_in  # noqa: E402

HEDDLE, WORK, LAB = (Path(p).resolve() for p in sys.argv[1:4])
FAILURES = []
INPUT = {"text": "天地玄黄", "pairs": "天 地 玄", "tags": "天 地 玄", "mood": "天 地 玄", "images": None}

# Functions, and names that formulas and documents have.
IN_THE_LAB = """log cos sin tanh erf min max slide iii meta patch birnn Elman Flash Attention Self-attention pre-norm
teacher forcing bias true""".split()

# What can be read, but for the recipe's own text and formulas: texts, and what attributes show or tell.
TEXTS = """(() => {
  const found = [], skip = 'script, style, pre, code, math';
  const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  while (walk.nextNode()) {
    const node = walk.currentNode, element = node.nodeType === 1 ? node : node.parentElement;
    if (element.closest(skip)) continue;
    if (node.nodeType === 3) found.push(node.textContent);
    else for (const name of ['title', 'aria-label', 'alt', 'placeholder']) found.push(node.getAttribute(name) ?? '');
  }
  return found.filter(t => t.trim()).map(t => t.trim().replace(/\\s+/g, ' '));
})()"""


def heddle(*arguments):
    done = subprocess.run([HEDDLE, "--lang", "zh", *arguments], cwd=WORK, text=True, capture_output=True,
                          timeout=300)
    if done.returncode != 0:
        FAILURES.append(f"heddle {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def check(page, name, also=()):
    texts = page.evaluate(TEXTS)
    if len(texts) < 10:
        FAILURES.append(f"{name}: there is next to nothing on the page: {texts}")
    for text in dict.fromkeys(texts):
        if found := english_in(text, also):
            FAILURES.append(f"{name}: {', '.join(found)}\n    {text[:300]}")
    if page.complaints:
        FAILURES.append(f"{name}: {page.complaints}")


def pages_of_runs(browser):
    for name, given in INPUT.items():
        check(browser.open(WORK / "runs" / name / "report.html"), f"report of {name}", also=(name,))
        given = ["--prompt", given] if given else ["--image", "images.idx"]
        heddle("inspect", f"runs/{name}", *given, "--out", f"look-{name}.html")
        page = browser.open(WORK / f"look-{name}.html")
        page.hover("#map")
        check(page, f"inspect {name}", also=(name, "class"))  # [class], a token
    heddle("inspect", "runs/text", "--prompt", "天地玄黄", "--prompt", "天地", "--out", "look-two.html")
    check(browser.open(WORK / "look-two.html"), "inspect two prompts", also=("text",))
    check(browser.open(WORK / "runs/compare-text/index.html"), "comparison", also=("text", "rope", "alibi"))


def watched(browser):
    process = subprocess.Popen([HEDDLE, "--lang", "zh", "watch", "runs/text", "--serve", "0"], cwd=WORK,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        with urllib.request.urlopen(process.stdout.readline().strip(), timeout=20) as answer:
            (WORK / "watched.html").write_bytes(answer.read())
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
    page = browser.open(WORK / "watched.html")
    page.wait_for("document.querySelector('#gone') !== null")  # nobody answers a file
    page.complaints.clear()
    check(page, "watch page", also=("text",))


def lab(browser):
    experiments = json.loads(heddle("lab", "list", "--json"))["experiments"]
    names = [name for e in experiments for name in (e["name"], *e["faults"])]
    check(browser.open(LAB, width=1400), "lab", also=[*names, *IN_THE_LAB])


def main():
    program = chromium_or_skip()
    with Browser(program) as browser:
        for step in (pages_of_runs, watched, lab):
            step(browser)
    print("\n".join(FAILURES) if FAILURES else "every page is Chinese")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
