#!/usr/bin/env python3
"""Faults planted into the kernels, which `heddle check` must find on random recipes.

    faults.py --faulty build/release/heddle_faulty --count 100 --seed 1 [--jobs 2]
    faults.py --faulty build/release/heddle_faulty --each

Each recipe is checked with one of the faults of tests/e2e/plant_fault.cpp, drawn from those that show
in it; with --each every fault has one recipe. Exits with 1 when one is not found.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import draw

MOST_REFUSED = 200


class Choices:
    """What a recipe says, with what it does not say filled in."""

    def __init__(self, recipe):
        self.kind, self.task = recipe.kind, recipe.task
        self.model = recipe.tables["model"]
        self.attention = recipe.tables.get("model.attention", {})
        self.moe = recipe.tables.get("model.moe", {})
        self.routed = bool(self.moe) and self.moe.get("dense_layers", 0) < self.model["layers"]
        self.data = recipe.tables["data"]
        self.recurrent = self.kind in ("rnn", "birnn", "rnn-seq2seq")
        self.attends = self.kind not in ("rnn", "birnn")
        self.softmax = self.attention.get("normaliser") != "relu"
        self.norms = not self.recurrent or self.model.get("residual", False)
        self.windowed = "look_back" in self.attention or (
            self.data.get("documents", "none") != "none" and self.task in ("language", "masked"))
        width = self.attention.get("head_width",
                                   self.model["width"] // self.attention.get("heads", 1))
        self.head_width = max(width, 1)
        self.alike = "pattern" not in self.attention  # all layers are as the table says
        bias = self.model.get("bias", True)
        self.biased = any(self.model.get(key, bias) for key in ("qkv_bias", "out_bias", "ffn_bias"))

    def size_of_scores(self):
        own = self.attention.get("scale", 0) or 1 / math.sqrt(self.head_width)
        return own * math.sqrt(self.head_width)

    def turned(self):
        """How many numbers of a head rope turns, at most."""
        if self.attention.get("position") != "rope":
            return 0
        return min(self.attention.get("rope_width", self.head_width), self.head_width)


# Where a fault changes a result at all. A relu that is divided by its sum does not know its scale,
# a cap far above all scores cuts none, a token that sees itself alone has no last key to miss.
SHOWS = {
    "residual-gradient": lambda c: c.norms,
    "tail-element": lambda c: c.norms and c.model["width"] > 1,
    "wrong-scale": lambda c: c.attends and c.softmax and c.alike,
    "wrong-cap": lambda c: c.attends and c.softmax and c.alike
    and c.size_of_scores() > 1e-3 * c.attention.get("softcap", math.inf),
    "wrong-sink": lambda c: c.attends and c.attention.get("sinks", False),
    "early-key": lambda c: not c.recurrent and c.softmax and c.windowed and c.alike,
    "late-key": lambda c: c.attends and c.softmax,
    "missing-last-key": lambda c: c.attends and c.softmax and c.alike
    and c.attention.get("look_back", 1) > 0,
    "swapped-pairs": lambda c: c.turned() > 2 and c.alike,
    "missing-bias": lambda c: c.biased,
    "swapped-gate": lambda c: any("glu" in str(kind) for kind in
                                  (c.model.get("ffn"), c.routed and c.moe.get("expert"))),
    "other-direction": lambda c: c.recurrent and c.data.get("context", 8) > 1,
    "wrong-smoothing": lambda c: True,
    "lost-token": lambda c: c.kind != "vit",
    "lost-row": lambda c: c.routed,
}


def check(program, recipe, fault, timeout):
    with tempfile.TemporaryDirectory(prefix="heddle-faults-") as folder:
        path = Path(folder) / "recipe.toml"
        path.write_text(recipe.text())
        return subprocess.run([program, "check", str(path), "--json"], capture_output=True,
                              text=True, timeout=timeout, env={**os.environ, "HEDDLE_FAULT": fault})


def take(options, number):
    """The fault that was planted, whether it was found, and the recipe."""
    for attempt in range(MOST_REFUSED):
        recipe = draw.recipe(options.seed, number, attempt)
        choices = Choices(recipe)
        shown = [f for f in SHOWS if SHOWS[f](choices)]
        if options.each:
            fault = list(SHOWS)[number]
            if fault not in shown:
                continue
        else:
            # Those of few recipes stand last, and have their turn wherever they show.
            fault = shown[-1 - (number // 3) % len(shown)]
        done = check(options.faulty, recipe, fault, options.timeout)
        if done.returncode == 2:
            continue  # refused
        found = done.returncode == 1 and not json.loads(done.stdout)["pass"]
        return fault, found, recipe.text() + done.stderr
    return "none", False, f"{MOST_REFUSED} recipes in a row are refused"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faulty", required=True, type=os.path.abspath)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--each", action="store_true", help="one recipe for each fault")
    options = parser.parse_args()
    if options.each:
        options.count = len(SHOWS)
    return options


def main():
    options = arguments()
    planted, missed = {}, 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for number, (fault, found, text) in enumerate(
                pool.map(lambda n: take(options, n), range(options.count))):
            planted[fault] = planted.get(fault, 0) + 1
            if not found:
                missed += 1
                print(f"recipe {number} (seed {options.seed}): {fault} is not found\n{text}",
                      flush=True)
    for fault, count in sorted(planted.items()):
        print(f"{fault}: planted {count} times")
    print(f"{options.count} faults, {missed} not found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
