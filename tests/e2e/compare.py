#!/usr/bin/env python3
"""Compares tiny variants through the program.

    compare.py HEDDLE WORK [pages]

HEDDLE is the program, WORK a directory for what it makes. A comparison that is killed again and again
must end with the results of one that was not; identical variants must not differ; bad input must say
what to write instead; a variant that diverges must be marked and not stop the others. With `pages` it
looks at what an earlier call left in WORK instead: the pages must open in a browser and be readable on
a phone; without Chromium that is skipped (exit status 77). Exits with 1 when something is not as it
should be.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pages"))
from browser import Browser, chromium_or_skip  # noqa: E402

HEDDLE = Path(sys.argv[1]).resolve()
WORK = Path(sys.argv[2]).resolve()
FAILURES = []

RECIPE = """
[model]
kind = "decoder"
layers = 1
width = 24
dropout = 0.1
[model.attention]
heads = 4
position = "rope"
[data]
text = "text.txt"
tokenizer = "char"
context = 16
[train]
steps = 60
batch = 8
eval_every = 20
eval_batches = 6
save_every = 7
"""


def command(*arguments):
    return [str(HEDDLE), "compare", *map(str, arguments)]


def heddle(*arguments, status=0):
    done = subprocess.run(command(*arguments), cwd=WORK, capture_output=True, timeout=300)
    if done.returncode != status:
        FAILURES.append(f"compare {' '.join(map(str, arguments))}: exit {done.returncode}, expected "
                        f"{status}\n{done.stderr.decode(errors='replace')}")
    return done


def check(ok, what, *seen):
    if not ok:
        FAILURES.append(f"{what}: {' '.join(map(repr, seen))}")


def refused(*arguments, saying):
    done = heddle(*arguments, status=2)
    for part in saying:
        check(part in done.stderr.decode(), f"{arguments}: no {part!r}", done.stderr.decode())


def results(folder):
    return json.loads((WORK / folder / "results.json").read_text())


def timeless(document):
    for variant in document["variants"]:
        del variant["step_seconds"], variant["tokens_per_s"], variant["step_seconds_quartiles"]
    for difference in document["differences"]:
        del difference["step_seconds"]
    for effect in document.get("main_effects", []):
        del effect["step_seconds"]
    return document


def contract(document):
    for variant in document["variants"]:
        for key in ("name", "set", "final_loss", "step_seconds", "tokens_per_s", "peak_bytes",
                    "kv_bytes_per_token", "parameters", "flops_per_step", "curve"):
            check(key in variant, f"results.json lacks {key}", variant.keys())
        check("mean" in variant["final_loss"] and "spread" in variant["final_loss"], "final_loss")
        check(sum(v for k, v in variant["peak_bytes"].items() if k != "total")
              == variant["peak_bytes"]["total"], "purposes do not add up", variant["peak_bytes"])
        check(all(len(point) == 2 for point in variant["curve"]), "curve")
        check([step for step, _ in variant.get("validation_curve", [])] == [20, 40, 60],
              "validation_curve", variant.get("validation_curve"))


ARGUMENTS = ("tiny.toml", "--vary", "model.attention.kv_heads=1,4", "--vary", "model.norm=layer,rms",
             "--seeds", 2)


def killed_and_resumed():
    arguments = ARGUMENTS
    begin = time.monotonic()
    heddle(*arguments, "--out", "whole")
    seconds = time.monotonic() - begin
    contract(results("whole"))
    moments = random.Random(7)
    for kill in range(8):
        process = subprocess.Popen(command(*arguments, "--out", "killed"), cwd=WORK,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.02, max(0.1, seconds / 6)))
        process.send_signal(signal.SIGKILL)
        process.wait()
    process = subprocess.Popen(command(*arguments, "--out", "killed"), cwd=WORK,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(max(0.3, seconds / 20))
    process.send_signal(signal.SIGINT)
    message = process.communicate()[1].decode()
    if process.returncode != 0:  # it may have been done already
        check(process.returncode == 130, "Ctrl-C", process.returncode, message)
        check("the same command again" in message, "Ctrl-C says how to go on", message)
    heddle(*arguments, "--out", "killed")
    check(timeless(results("whole")) == timeless(results("killed")), "killed and resumed differs")
    generated = subprocess.run([str(HEDDLE), "generate", "killed/runs/kv_heads=4,norm=rms/seed-2",
                                "--prompt", "the", "--tokens", "5"], cwd=WORK, capture_output=True)
    check(generated.returncode == 0, "a variant is a model", generated.stderr)


def narrow():
    """On a terminal of 80 columns no line of a table is longer, and every column is there."""
    def told(columns):
        done = subprocess.run(command(*ARGUMENTS, "--out", "whole"), cwd=WORK, capture_output=True, timeout=60,
                              env=os.environ | {"COLUMNS": str(columns)})
        return done.stdout.decode()
    wide, short = told(200), told(80)
    check(max(map(len, wide.splitlines())) > 80, "the tables are wide", wide)
    check(max(map(len, short.splitlines())) <= 80, "nothing is wider than the terminal", short)
    for part in ("validation loss", "time/step", "tokens/s", "memory", "cache per token", "verdict"):
        check(part in wide and part in short, f"{part} is told", short)
    rows = [line for line in short.splitlines() if line.startswith("kv_heads=4, norm=rms ")]
    check(len(rows) == 2, "the name of a variant stands in front of both parts", rows)


def identical():
    done = heddle("tiny.toml", "--vary", "model.attention.kv_heads=2,2", "--budget", "steps=10",
                  "--out", "same", "--json")
    document = json.loads(done.stdout)
    check(document["differences"][0]["loss"]["verdict"] == "same", "identical variants differ",
          document["differences"])
    check("does not differ" in (WORK / "same" / "index.html").read_text(), "the page says so")
    report = (WORK / "same" / "runs" / "kv_heads=2" / "seed-1" / "report.html").read_text()
    check("Planned and measured" in report, "the run's report has its plan")


def diverging():
    wild = ("--set", "train.clip=0", "--set", "train.optimizer=sgd", "--set", "train.warmup=0")
    for sitting in ("first", "again"):
        done = heddle("tiny.toml", "--vary", "train.learning_rate=1000,0.01,0.02", *wild, "--out",
                      "diverged")
        check(b"diverged at step" in done.stdout, "the table has the mark", sitting, done.stdout)
        document = results("diverged")
        bad, *others = document["variants"]
        check("final_loss" not in bad and bad["diverged"][0]["step"] > 0, "the mark", sitting, bad)
        check(all("final_loss" in v and v["curve"][-1][0] == 60 for v in others), "the others go on")
        check(len(document["differences"]) == 1, "verdicts without it", document["differences"])
        check("diverged at step" in (WORK / "diverged" / "index.html").read_text(), "the page")
    heddle("tiny.toml", "--vary", "train.learning_rate=1000,900", *wild, "--out", "all-diverged",
           status=1)


def bad_input():
    refused("tiny.toml", "--vary", "model.attention.kv_headz=1,2", "--out", "bad",
            saying=["--vary", "did you mean kv_heads"])
    refused("tiny.toml", "--out", "bad", saying=["nothing to compare", "--vary key=a,b"])
    refused("tiny.toml", "--vary", "model.norm=", "--out", "bad", saying=["no values", "key=a,b,c"])
    refused("tiny.toml", "--vary", "model.norm=rms,layer", "--budget", "ages", "--out", "bad",
            saying=["--budget", "tokens=1M"])
    refused("tiny.toml", "--vary", "model.norm=rms,layer", "--set", "train.warmup=9", "--budget",
            "steps=5", "--out", "bad", saying=["train.warmup"])
    refused("--recipe", "no-such", "--out", "bad", saying=["no-such", "rope-gqa"])
    check(not (WORK / "bad").exists(), "a refused comparison leaves no directory")


CUT_OFF = """[...document.querySelectorAll('.scroll > svg text:not(.reading)')].filter(t =>
  t.getBoundingClientRect().left < t.closest('.scroll').getBoundingClientRect().left).map(t => t.textContent)"""
SCROLLS = """[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)
  .map(e => e.textContent.slice(0, 80))"""
COVERED = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text:not(.reading)')].map(t => [t.textContent, t.getBoundingClientRect()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([, q]) => p.left < q.right - 1 &&
    q.left < p.right - 1 && p.top < q.bottom - 4 && q.top < p.bottom - 4).map(([b]) => [a, b])); })"""


def pages():
    browser = chromium_or_skip()
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu",
                           "--enable-logging=stderr", "--dump-dom",
                           (WORK / "whole" / "index.html").as_uri()],
                          capture_output=True, timeout=120)
    log = done.stderr.decode(errors="replace")
    check(b"What differs" in done.stdout, "the page does not open", log[-2000:])
    check("CONSOLE" not in log, "the page's script complains", log[-2000:])
    with Browser(browser) as phone:
        page = phone.open(WORK / "diverged" / "index.html", width=390, height=844)
        sizes = json.loads(page.evaluate(
            "JSON.stringify([...document.querySelectorAll('svg text:not(.reading)')]"
            ".map(t => t.getBoundingClientRect().height))"))
        check(len(sizes) > 20 and min(sizes) > 9, "labels on a phone", min(sizes, default=0))
        wide = page.evaluate("document.documentElement.scrollWidth")
        check(wide <= 390, "the page scrolls sideways as a whole", wide)
        for page_of_run in (WORK / "whole" / "runs").rglob("report.html"):
            cut = phone.open(page_of_run, width=390, height=844).evaluate(CUT_OFF)
            check(cut == [], "numbers beside a drawing are cut off on a phone", page_of_run, cut)
            break
        check(page.complaints == [], "the page complains", page.complaints)
        for name in ("whole", "diverged"):
            hidden = phone.open(WORK / name / "index.html", width=1100).evaluate(SCROLLS)
            check(hidden == [], "a table does not fit a page of 1100 pixels", name, hidden)
        covered = phone.open(WORK / "whole" / "index.html", width=1200).evaluate(COVERED)
        check(covered == [], "names of points cover each other", covered)


if sys.argv[3:] == ["pages"]:
    pages()
else:
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    (WORK / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 200)
    (WORK / "tiny.toml").write_text(RECIPE)
    killed_and_resumed()
    narrow()
    identical()
    diverging()
    bad_input()
for failure in FAILURES:
    print("FAIL", failure)
sys.exit(1 if FAILURES else 0)
