#!/usr/bin/env python3
"""Plants small faults and reports those that no test notices. docs/testing.md says how to read it.

All drawn faults are compiled once into a copy of the tree (build/mutants/tree), each behind a switch
that HEDDLE_MUTANT chooses at run time. One run of every test without a fault says which faults it
reaches; then each fault meets the tests that reach it, those of its room first and then the cheapest,
until one fails.
"""

import argparse
import fnmatch
import json
import os
import random
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants import report, schemata, trial
from mutants.operators import sites

ROOT = Path(__file__).resolve().parent.parent
FILES = ["src/*.cpp", "cli/*.cpp"]
# Kernels have trials of their own (op.mutants); tests are what is on trial here.
LEFT_OUT = ["*/test*", "src/backend/cpu/*", "src/ops/*/amx/*", "*.cpu.h"]
# The flags and the place of the release build: ccache has what no mutant changed. No mutant is in the
# CUDA backend, which would take a quarter of a build from nothing.
CONFIGURE = ["cmake", "-S", "{tree}", "-B", "{build}", "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release",
             "-D", "HEDDLE_WERROR=ON", "-D", "HEDDLE_BENCH=OFF", "-D", "HEDDLE_CUDA=OFF"]
BUILD = ["cmake", "--build", "{build}", "--target", "test_programs", "-j", "{jobs}", "--", "-k", "0"]
# Side by side, one thread each is faster than two that wait for each other; results are the same.
ENVIRONMENT = {"HEDDLE_THREADS": "1"}
SPARE = 1.5  # some mutants do not compile


def say(text: str):
    print(time.strftime("%H:%M:%S "), text, flush=True)


def candidates(root: Path, globs):
    for path in sorted(schemata.files_of(root)):
        wanted = any(fnmatch.fnmatch(path, glob) for glob in globs)
        if wanted and not any(fnmatch.fnmatch(path, glob) for glob in LEFT_OUT):
            yield path


def draw(root: Path, globs, count: int, seed: int):
    """Mutants that do not overlap, every operator as likely as the others, any place of it."""
    by_operator = defaultdict(list)
    for path in candidates(root, globs):
        for site in sites((root / path).read_text()):
            by_operator[site.operator].append((path, site))
    chance, drawn, taken = random.Random(seed), [], defaultdict(list)
    for pool in by_operator.values():
        chance.shuffle(pool)
    while len(drawn) < count and by_operator:
        operator = chance.choice(sorted(by_operator))
        path, site = by_operator[operator].pop()
        if not by_operator[operator]:
            del by_operator[operator]
        if all(site.end <= at or site.at >= end for at, end in taken[path]):
            taken[path].append((site.at, site.end))
            drawn.append({"id": len(drawn) + 1, "file": path, **vars(site)})
    return drawn


def place_again(root: Path, mutants):
    """Finds the text of mutants drawn earlier in today's sources; `compiles` is False where it is gone."""
    found = {}
    for m in mutants:
        path = root / m["file"]
        if path not in found:
            found[path] = sites(path.read_text()) if path.is_file() else []
        same = [s for s in found[path] if (s.operator, s.switched) == (m["operator"], m["switched"])]
        nearest = min(same, key=lambda s: abs(s.at - m["at"]), default=None)
        m["compiles"] = nearest is not None
        if nearest is not None:
            m.update(vars(nearest))
        elif m.get("status") == "survived":
            m["why"] = "its line is no more"


class Run:
    """The state of one draw under build/mutants: the mutants, what tests reach, results so far."""

    def __init__(self, arguments):
        self.options = arguments
        self.root, self.work = Path(arguments.root), Path(arguments.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.draw_file, self.results = self.work / "mutants.json", self.work / "results.jsonl"
        self.reach_file = self.work / "baseline.json"
        self.mutants, self.tests = [], []
        self.homes = trial.homes(self.root)
        self.runner = trial.Runner(self.work, ENVIRONMENT, arguments.jobs)

    def prepare(self):
        o = self.options
        if o.resume or o.survivors:
            self.mutants = json.loads(self.draw_file.read_text())
            self.take_results()
        else:
            self.mutants = draw(self.root, o.files, int(o.count * SPARE) + 5, o.seed)
            self.results.unlink(missing_ok=True)
            self.reach_file.unlink(missing_ok=True)
        if o.resume and self.reach_file.exists():
            self.tests = [trial.Test(**{**t, "reaches": set(t["reaches"])})
                          for t in self.known_tests()]
            return
        if o.survivors:
            place_again(self.root, self.mutants)
        self.build_and_measure()

    def build_and_measure(self):
        o = self.options
        say(f"building {len(self.mutants)} mutants into a copy of the tree")
        build = [part.replace("{jobs}", str(o.jobs)) for part in o.build]
        copy = schemata.Schemata(self.root, self.work, self.mutants, o.configure, build)
        copy.build(say)
        if not o.survivors:
            self.mutants = [m for m in self.mutants if m.get("compiles", True)]
            for m in self.mutants[o.count:]:
                m["spare"] = True  # more of them compiled than were asked for
        self.draw_file.write_text(json.dumps(self.mutants, indent=1))
        found = trial.discover(copy.build_folder, o.tests)
        say(f"running {len(found)} tests without a mutant")
        self.tests = self.runner.baseline(found, say)
        known = {t["name"]: t for t in self.known_tests()} if o.survivors and o.tests else {}
        known |= {t.name: {**vars(t), "reaches": sorted(t.reaches)} for t in self.tests}
        self.reach_file.write_text(json.dumps(list(known.values())))

    def known_tests(self):
        return json.loads(self.reach_file.read_text()) if self.reach_file.exists() else []

    def take_results(self):
        """Later lines replace earlier ones."""
        by_id = {m["id"]: m for m in self.mutants}
        if self.results.exists():
            for line in self.results.read_text().splitlines():
                result = json.loads(line)
                if result["id"] in by_id:
                    by_id[result["id"]].update(result)

    def judge(self, m):
        """Tries one mutant; what an earlier run has tried in vain is not tried again."""
        only = None if self.options.survivors else m.get("not_run")
        room = trial.room_of(m["file"])
        found = self.runner.trial(m["id"], self.tests, self.options.most_seconds, only,
                                  lambda test: room in self.homes.get(trial.suite_of(test), ()))
        if self.options.survivors and self.options.tests and found["status"] == "survived":
            return  # some tests say nothing new about it
        result = {"id": m["id"], **found}
        m.update(result)
        with open(self.results, "a") as out:
            out.write(json.dumps(result) + "\n")
        say(report.table([m]))

    def is_open(self, m) -> bool:
        if self.options.survivors:
            return m.get("status") == "survived"
        return not m.get("status") or bool(m.get("not_run"))

    def all(self):
        open_ones = [m for m in self.mutants if m.get("compiles", True) and not m.get("spare") and
                     self.is_open(m)]
        say(f"trying {len(open_ones)} mutants")
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for future in [pool.submit(self.judge, m) for m in open_ones]:
                future.result()

    def conclude(self):
        shown = [{k: v for k, v in m.items() if k != "switched"} for m in self.mutants
                 if not m.get("spare")]
        (self.work / "report.json").write_text(json.dumps(shown, indent=1))
        text = report.table(self.mutants) + "\n\n" + report.summary(self.mutants)
        (self.work / "report.txt").write_text(text + "\n")
        print(report.summary(self.mutants))
        print(f"all of them: {self.work / 'report.txt'} and report.json")


def parsed(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--count", type=int, default=300, help="how many mutants (300)")
    p.add_argument("--seed", type=int, default=1, help="of the draw (1)")
    p.add_argument("--files", nargs="+", default=FILES, metavar="GLOB", help="where (src/*.cpp cli/*.cpp)")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants tried at the same time")
    p.add_argument("--resume", action="store_true",
                   help="go on with the last draw and its build; tests that were too long come now")
    p.add_argument("--survivors", action="store_true",
                   help="build again and try the last draw's survivors against today's tests")
    p.add_argument("--tests", default="", metavar="REGEX", help="only tests whose name has it")
    p.add_argument("--most-seconds", type=float, default=float("inf"),
                   help="of tests for one mutant; longer ones are reported as not run")
    p.add_argument("--root", default=ROOT, help=argparse.SUPPRESS)
    p.add_argument("--work", default=ROOT / "build/mutants", help=argparse.SUPPRESS)
    options = p.parse_args(arguments)
    options.configure, options.build = CONFIGURE, BUILD
    return options


def main(arguments=None) -> int:
    options = parsed(arguments)
    run = Run(options)
    if (options.resume or options.survivors) and not run.draw_file.exists():
        print(f"there is no draw in {run.work} to go on with: run without --resume and --survivors",
              file=sys.stderr)
        return 2
    try:
        run.prepare()
        run.all()
    except schemata.BuildError as problem:
        print(f"the copy does not build:\n{problem}", file=sys.stderr)
        return 2
    run.conclude()
    return 0


if __name__ == "__main__":
    sys.exit(main())
