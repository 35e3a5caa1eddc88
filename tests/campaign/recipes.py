#!/usr/bin/env python3
"""Random legal recipes, each taken through train, check, logits, generate, inspect and eval.

    recipes.py --heddle build/release/heddle --count 500 --seed 1 [--jobs 2] [--stages train,check]
    recipes.py --heddle build/release/heddle --show 17 --seed 1

A seed and a number give the recipe (draw.py) and its data (data.py). What is legal is for the
program to say: a recipe that it refuses with a reason is counted, and another is drawn in its place.
Findings:

    crash       a signal, or a status that the command does not have
    refusal     status 2 without a reason, or where the recipe was legal a moment ago
    hang        longer than --timeout seconds
    alarm       `check` says that a sound kernel is wrong
    difference  two commands disagree about the same numbers
    memory      more than the plan's bytes and 100 MB

Exits with 1 when there is one. A campaign that was interrupted goes on with --first.
"""

import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import data
import draw

MEGABYTE = 1 << 20
ROOM = 100 * MEGABYTE  # code, stacks, buffers
ADDRESS_SPACE = 8 << 30  # no child may take the machine with it
MOST_REFUSED = 200  # in a row: then the generator is at fault
# What inspect says of a head as a share of its weights, which f32 gives to a hundredth where scores
# are ten thousands.
SHARES = ("entropy_share", "first", "last", "largest", "next", "previous", "self", "sink")
STAGES = ("train", "check", "logits", "generate", "inspect", "eval")


class Ended(Exception):
    """A recipe's way ends here; what was found is in its findings."""


class Child:
    """A run of the program: its output, its status and the memory it took."""

    def __init__(self, command, folder, timeout, text=""):
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, \
                tempfile.TemporaryFile() as err:
            source.write(text.encode())
            source.seek(0)
            process = subprocess.Popen(
                command, cwd=folder, stdin=source, stdout=out, stderr=err,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                      (ADDRESS_SPACE, ADDRESS_SPACE)))
            self.hung = False
            timer = threading.Timer(timeout, self.stop, [process])
            timer.start()
            _, status, use = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            self.status = process.returncode
            self.peak = use.ru_maxrss * 1024
            out.seek(0)
            err.seek(0)
            self.out = out.read().decode(errors="replace")
            self.err = err.read().decode(errors="replace")

    def stop(self, process):
        self.hung = True
        os.kill(process.pid, signal.SIGKILL)

    def reason(self):
        """What the program said against its input; empty when it said nothing of use."""
        lines = [line for line in self.err.splitlines() if line.startswith("heddle: ")]
        return lines[-1] if lines and len(lines[-1]) > len("heddle: ") + 10 else ""


class Way:
    """One recipe on its way through the commands."""

    def __init__(self, options, recipe, folder):
        self.options, self.recipe, self.folder = options, recipe, folder
        self.findings = []
        self.bound = None
        self.nearest = (0, "")  # what of its tolerance the worst error of a check took, and where

    def find(self, kind, what):
        if kind not in self.options.ignore:
            self.findings.append(f"{kind}: {what}")

    def heddle(self, *arguments, text="", statuses=(0,), bounded=True):
        shown = "heddle " + " ".join(map(str, arguments))
        child = Child([self.options.heddle, *map(str, arguments)], self.folder,
                      self.options.timeout, text)
        last = child.err.strip().splitlines()[-1:]
        if child.hung:
            self.find("hang", shown)
        elif child.status < 0:
            self.find("crash", f"{shown}: signal {-child.status}: {last}")
        elif child.status == 2 and 2 not in statuses:
            self.find("refusal", f"{shown}: {child.reason() or 'no reason'}")
        elif child.status not in statuses:
            self.find("crash", f"{shown}: status {child.status}: {last}")
        elif child.status == 2 and not child.reason():
            self.find("refusal", f"{shown}: no reason: {last}")
        if bounded and self.bound is not None and child.peak > self.bound:
            self.find("memory", f"{shown}: {child.peak / MEGABYTE:.1f} MB, "
                                f"{self.bound / MEGABYTE:.1f} planned with the room around it")
        if child.hung or child.status not in statuses:
            raise Ended
        return child

    def json(self, *arguments, **more):
        child = self.heddle(*arguments, "--json", **more)
        try:
            return json.loads(child.out)
        except ValueError as error:
            self.find("crash", f"{arguments}: not JSON: {error}")
            raise Ended from error

    def legal(self):
        """Whether the program takes the recipe; training begins with the same question."""
        child = self.heddle("plan", "recipe.toml", "--json", statuses=(0, 2))
        if child.status == 2:
            return False
        self.bound = json.loads(child.out)["peak_bytes"]["total"] + ROOM
        return True

    def train(self):
        child = self.heddle("train", "recipe.toml", "--out", "run", statuses=(0, 1, 2))
        if child.status == 0:
            return
        # A loss that is no number ends a training with a reason; nothing else does here.
        if child.status == 2 or "not finite" not in child.err:
            self.find("refusal" if child.status == 2 else "crash",
                      f"heddle train: {child.err.strip().splitlines()[-1:]}")
        raise Ended

    def check(self):
        # The plan is the recipe's, the check's model is another one.
        child = self.heddle("check", "recipe.toml", "--json", statuses=(0, 1), bounded=False)
        report = json.loads(child.out)
        for case in report["cases"]:
            if case["tolerance"] > 0:
                self.nearest = max(self.nearest, (case["error"] / case["tolerance"],
                                                  f"{case['path']}, {case['dtype']}"))
            if not case["pass"]:
                self.find("alarm", ", ".join(f"{key} {case[key]}" for key in case if key != "pass"))
        if report["pass"] != (child.status == 0):
            self.find("alarm", f"status {child.status} beside pass = {report['pass']}")

    def logits(self):
        if self.recipe.kind == "vit":
            return  # reads no tokens
        scores = self.json("logits", "run", "--prompt", self.recipe.prompt)["logits"]
        if not all(math.isfinite(x) for row in scores for x in row):
            self.find("difference", "heddle logits: not a finite number")
        self.recipe.scores = scores

    def generate(self):
        if self.recipe.task == "translate":
            self.heddle("translate", "run", "--beam", 2, text=self.recipe.prompt + "\n")
        elif self.recipe.task == "tag":
            self.heddle("tag", "run", text=self.recipe.prompt + "\n")
        elif self.recipe.kind == "vit":
            self.heddle("classify", "run", self.recipe.image)
        elif self.recipe.task == "classify":
            self.heddle("classify", "run", text=self.recipe.prompt + "\n")
        elif self.recipe.task == "language":
            self.generate_text()

    def generate_text(self):
        ask = ("generate", "run", "--prompt", self.recipe.prompt, "--temperature", 0,
               "--tokens", self.recipe.tokens)
        cached = self.json(*ask)["tokens"]
        uncached = self.json(*ask, "--no-cache")["tokens"]
        if cached != uncached:
            self.find("difference", f"generate: {cached} with the cache, {uncached} without")
        scores = getattr(self.recipe, "scores", [None])[-1]
        if scores and cached and scores[cached[0]] < max(scores) - 1e-4 * (1 + abs(max(scores))):
            self.find("difference", f"generate begins with {cached[0]} of score "
                                    f"{scores[cached[0]]}; logits has {max(scores)}")

    def inspect(self):
        if self.recipe.kind in ("rnn", "birnn"):
            self.heddle("inspect", "run", "--prompt", self.recipe.prompt, statuses=(2,))
            return
        what = (("--image", self.recipe.image) if self.recipe.kind == "vit"
                else ("--prompt", self.recipe.prompt))
        seen = self.json("inspect", "run", *what)
        for layer in seen["layers"]:
            for head in layer["heads"]:
                shares = [head[name] for name in SHARES if name in head]
                if not all(isinstance(x, (int, float)) and -1e-2 <= x <= 1.01 for x in shares):
                    self.find("difference", f"inspect: layer {layer['name']}: shares {shares}")
        scores = getattr(self.recipe, "scores", None)
        tokens = len(seen["tokens"]["source"])
        if scores and self.recipe.task in ("language", "masked") and tokens != len(scores):
            self.find("difference", f"inspect: {tokens} tokens; logits has {len(scores)} rows")

    def eval(self):
        train = self.recipe.tables["train"]
        ask = ["eval", "run", "--precision", train.get("precision", "fp32")]
        if "capacity" in self.recipe.tables.get("model.moe", {}):  # tokens of a batch compete
            ask += ["--batch", max(1, train["batch"] // train.get("accumulate", 1))]
        loss = self.json(*ask)["loss"]
        if not isinstance(loss, (int, float)) or not math.isfinite(loss):
            self.find("difference", f"heddle eval: loss {loss}")
        elif not any(math.isclose(loss, logged, rel_tol=1e-6) for logged in self.logged()):
            self.find("difference", f"heddle eval: loss {loss}; training had {self.logged()}")

    def logged(self):
        """Losses on the validation data that training has seen."""
        lines = (Path(self.folder) / "run" / "log.jsonl").read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        return [entry["eval_loss"] for entry in entries if "eval_loss" in entry]

    def go(self):
        try:
            if not self.legal():
                return False
            for stage in self.options.stages:
                getattr(self, stage)()
        except Ended:
            pass
        return True


def take(options, number):
    """Recipe `number`, how many were refused before it, its way, and its text."""
    for attempt in range(MOST_REFUSED):
        recipe = draw.recipe(options.seed, number, attempt)
        folder = Path(tempfile.mkdtemp(prefix=f"heddle-campaign-{number}-"))
        try:
            data.write(recipe, folder)
            (folder / "recipe.toml").write_text(recipe.text())
            way = Way(options, recipe, folder)
            legal = way.go()
            if legal or way.findings:
                return attempt, way, recipe.text()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    way.find("refusal", f"{MOST_REFUSED} recipes in a row")
    return MOST_REFUSED, way, recipe.text()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", required=True, type=os.path.abspath)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--also", type=int, nargs="*", default=[], help="numbers besides")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--stages", default=",".join(STAGES), type=lambda s: s.split(","))
    parser.add_argument("--ignore", nargs="*", default=[], help="kinds of findings")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print this recipe, and end")
    options = parser.parse_args()
    unknown = [s for s in options.stages if s not in STAGES]
    if unknown:
        parser.error(f"no such stage: {unknown[0]}; there are {', '.join(STAGES)}")
    return options


def main():
    options = arguments()
    if options.show is not None:
        for attempt in range(MOST_REFUSED):
            recipe = draw.recipe(options.seed, options.show, attempt)
            with tempfile.TemporaryDirectory() as folder:
                data.write(recipe, Path(folder))
                (Path(folder) / "recipe.toml").write_text(recipe.text())
                if Way(options, recipe, folder).legal():
                    print(recipe.text())
                    return 0
        return 1
    refused = failed = 0
    nearest = (0, "", -1)
    numbers = [*range(options.first, options.first + options.count), *options.also]
    with ThreadPoolExecutor(options.jobs) as pool:
        for number, (drawn, way, text) in zip(
                numbers, pool.map(lambda n: take(options, n), numbers)):
            refused += drawn
            nearest = max(nearest, (*way.nearest, number))
            if way.findings:
                failed += 1
                print(f"recipe {number} (seed {options.seed}):", *way.findings, sep="\n  ")
                print(text, flush=True)
            if (number + 1) % 50 == 0:
                print(f"{number + 1 - options.first} recipes, {failed} with findings", flush=True)
    print(f"{len(numbers)} recipes, {refused} refused with a reason, {failed} with findings")
    if nearest[2] >= 0:
        print(f"of its tolerance the worst error took {nearest[0]:.2f}: {nearest[1]}, "
              f"recipe {nearest[2]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
