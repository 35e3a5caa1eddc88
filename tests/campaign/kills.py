#!/usr/bin/env python3
"""Kills `heddle train` and `heddle compare` at random moments until they are done.

    kills.py --heddle PROGRAM --count 40 --seed 1 [--jobs 2]

Each life of the program has another number of threads and ends by another signal (KILL, TERM, INT,
HUP, or PIPE: nobody reads what it says any more). What is there in the end must be, to the byte,
what an undisturbed run leaves: weights, optimiser, log (without clocks), losses of a comparison.
Exits with 1 when it is not.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from world import Heddle, tensors_of, timeless, write_data, write_recipes

SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
           signal.SIGPIPE]
RECIPES = ["decoder", "translator", "vit", "tagger"]
STEPS = 90


def remains(run):
    """All of a run that does not depend on clocks."""
    newest = max((run / "checkpoints").glob("step-*.safetensors"),
                 key=lambda path: int(path.stem.split("-")[1]))
    log = [timeless(json.loads(line)) for line in (run / "log.jsonl").read_text().splitlines()]
    files = {name: (run / name).read_bytes() for name in ("model.safetensors", "codec.json",
                                                          "recipe.toml")}
    return {"newest": newest.name, "checkpoint": tensors_of(newest), "log": log, **files}


def train_arguments(recipe, out):
    arguments = ["train", f"{recipe}.toml", "--out", out, "--json"]
    return arguments + ["--resume"] if Path(out).exists() else arguments


def compare_arguments(recipe, out):
    return ["compare", f"{recipe}.toml", "--vary", "model.norm=layer,rms", "--seeds", "2",
            "--budget", "steps=40", "--out", out, "--json"]


def comparison_remains(out):
    results = timeless(json.loads((out / "results.json").read_text()))
    return {"results": results,
            "runs": {str(run.relative_to(out)): (run / "model.safetensors").read_bytes()
                     for run in sorted(out.glob("runs/*/*"))},
            "finals": {str(f.relative_to(out)): json.loads(f.read_text())["losses"]
                       for f in sorted(out.glob("runs/*/*/final.json"))}}


class Campaign:
    def __init__(self, options, root):
        self.options = options
        self.root = root
        self.heddle = Heddle(options.heddle)
        self.lives = Counter()
        self.failures = []
        write_data(root)
        write_recipes(root, steps=STEPS)
        self.whole = {}

    def kinds(self):
        return [("train", recipe) for recipe in RECIPES] + [("compare", "decoder")]

    def arguments(self, kind, recipe, out):
        make = train_arguments if kind == "train" else compare_arguments
        return make(recipe, str(out))

    def remains(self, kind, out):
        return remains(out) if kind == "train" else comparison_remains(out)

    def undisturbed(self, kind, recipe):
        out = self.root / f"whole-{kind}-{recipe}"
        start = time.monotonic()
        ending = self.heddle.run(self.arguments(kind, recipe, out), self.root)
        if ending.status != 0:
            sys.exit(f"undisturbed {kind} of {recipe}: status {ending.status}\n{ending.err}")
        return self.remains(kind, out), time.monotonic() - start

    def live(self, arguments, draw, seconds):
        """One life; seconds=None: to its end. (status, signal sent, what it said)"""
        threads = draw.choice([1, 2, 3, 5])
        piped = seconds is not None and draw.random() < 0.15
        with tempfile.TemporaryFile() as said:
            process = self.heddle.start(arguments, self.root, threads, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE if piped else said)
            sent = None
            if seconds is not None:
                sent = signal.SIGPIPE if piped else draw.choice(SIGNALS)
                try:
                    process.wait(draw.uniform(0, seconds))
                except subprocess.TimeoutExpired:
                    if piped:
                        process.stderr.close()  # as `2>&1 | head` does: the next words find nobody
                    else:
                        process.send_signal(sent)
            if piped and not process.stderr.closed and process.poll() is not None:
                process.stderr.close()
            try:
                status = process.wait(300)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return None, sent, "it hangs"
            said.seek(0)
            return status, sent, said.read().decode(errors="replace")

    def one(self, number):
        """A run or comparison that is killed until its share of kills is spent, then left alone."""
        draw = random.Random(f"{self.options.seed}/{number}")
        kind, recipe = self.kinds()[number % len(self.kinds())]
        whole, seconds = self.whole[kind, recipe]
        out = self.root / f"killed-{number}"
        kills, lives = 0, Counter()
        while True:
            last = kills >= self.options.kills_each
            status, sent, said = self.live(self.arguments(kind, recipe, out), draw,
                                           None if last else 0.6 * seconds)
            if status == 0:
                break
            expected = {None: set(), signal.SIGKILL: {-9}}.get(
                sent, {-sent, 128 + sent} if sent else set())
            if status not in expected:
                return lives, f"{kind} {recipe} {number}: status {status} after {sent}\n{said}"
            kills += 1
            lives[f"{kind} by {signal.Signals(sent).name}"] += 1
        left = self.remains(kind, out)
        wrong = [key for key in whole if left[key] != whole[key]]
        if wrong:
            return lives, (f"{kind} {recipe} {number}: differs in {', '.join(wrong)} after {kills} "
                           "kills")
        return lives, None

    def run(self):
        self.whole = {key: self.undisturbed(*key) for key in self.kinds()}
        numbers = iter(range(10**9))
        with ThreadPoolExecutor(self.options.jobs) as pool:
            while sum(self.lives.values()) < self.options.count and not self.failures:
                for lives, failure in pool.map(self.one, [next(numbers)
                                                          for _ in range(self.options.jobs)]):
                    self.lives += lives
                    if failure:
                        self.failures.append(failure)
                        print(failure, flush=True)

    def summary(self):
        for what, count in sorted(self.lives.items()):
            print(f"{what:24} {count}")
        print(f"{sum(self.lives.values())} kills; {len(self.failures)} failures")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", required=True, help="the program")
    parser.add_argument("--count", type=int, default=40, help="kills, at least")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kills-each", type=int, default=4,
                        help="of one run before it is left alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heddle-kills-") as root:
        campaign = Campaign(options, Path(root))
        campaign.run()
        campaign.summary()
        sys.exit(1 if campaign.failures else 0)


if __name__ == "__main__":
    main()
