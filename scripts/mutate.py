#!/usr/bin/env python3
"""Plants small faults and reports those that no test notices. docs/testing.md says how to read it.

All drawn faults are compiled once into a copy of the tree (build/mutants/tree), each behind a switch
that HEDDLE_MUTANT chooses at run time. One run of every test without a fault says which faults it
reaches; then each fault meets the tests that reach it, the cheapest first, until one fails.
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
CONFIGURE = ["cmake", "-S", "{tree}", "-B", "{build}", "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release",
             "-D", "HEDDLE_WERROR=ON", "-D", "HEDDLE_BENCH=OFF",
             "-D", "CMAKE_PROJECT_INCLUDE={tree}/scripts/mutants/quick_build.cmake"]
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


def still_there(root: Path, m) -> bool:
    """Whether a mutant drawn earlier finds the text that it changes."""
    path = root / m["file"]
    return path.is_file() and any(site.at == m["at"] and site.switched == m["switched"]
                                  for site in sites(path.read_text()))


class Run:
    """The state of one draw under build/mutants: the mutants, what tests reach, results so far."""

    def __init__(self, arguments):
        self.options = arguments
        self.root, self.work = Path(arguments.root), Path(arguments.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.draw_file, self.results = self.work / "mutants.json", self.work / "results.jsonl"
        self.reach_file = self.work / "baseline.json"
        self.mutants, self.tests = [], []
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
                          for t in json.loads(self.reach_file.read_text())]
            return
        if o.survivors:
            self.mutants = [m for m in self.mutants if m.get("status") == "survived"]
            for m in self.mutants:
                m["compiles"] = still_there(self.root, m)
        self.build_and_measure()

    def build_and_measure(self):
        o = self.options
        say(f"building {len(self.mutants)} mutants into a copy of the tree")
        build = [part.replace("{jobs}", str(o.jobs)) for part in o.build]
        copy = schemata.Schemata(self.root, self.work, self.mutants, o.configure, build)
        copy.build(say)
        if not o.survivors:
            compiled = [m for m in self.mutants if m.get("compiles", True)]
            self.mutants = compiled[:o.count]
            self.draw_file.write_text(json.dumps(compiled[:o.count], indent=1))
        found = trial.discover(copy.build_folder, o.tests)
        say(f"running {len(found)} tests without a mutant")
        self.tests = self.runner.baseline(found, say)
        self.reach_file.write_text(json.dumps([{**vars(t), "reaches": sorted(t.reaches)}
                                               for t in self.tests]))

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
        found = self.runner.trial(m["id"], self.tests, self.options.most_seconds, only)
        result = {"id": m["id"], **found}
        m.update(result)
        with open(self.results, "a") as out:
            out.write(json.dumps(result) + "\n")
        say(report.table([m]))

    def all(self):
        open_ones = [m for m in self.mutants if m.get("compiles", True) and (
            self.options.survivors or not m.get("status") or m.get("not_run"))]
        say(f"trying {len(open_ones)} mutants")
        with ThreadPoolExecutor(self.options.jobs) as pool:
            for future in [pool.submit(self.judge, m) for m in open_ones]:
                future.result()

    def conclude(self):
        if self.options.survivors:  # the whole draw, with what is known now
            self.mutants = json.loads(self.draw_file.read_text())
            self.take_results()
        (self.work / "report.json").write_text(json.dumps(
            [{k: v for k, v in m.items() if k != "switched"} for m in self.mutants], indent=1))
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
