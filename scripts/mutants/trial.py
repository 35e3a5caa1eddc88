"""Tests as ctest knows them, cases of Google Test one by one; which mutants each reaches; trials."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

FILTER = "--gtest_filter="
BATCH_SECONDS = (2, 10)  # of the first batch of cases in one process, and of those after it
PATIENCE = 20  # seconds on top of ten times what a test takes, before it counts as hanging
# A mutant may ask for anything: 8 GiB of memory, files of 2 GiB, no dumps.
LIMITED = ["bash", "-c", 'ulimit -v 8388608 -f 2097152 -c 0; exec "$@"', "limited"]


@dataclass
class Test:
    name: str
    command: list
    folder: str
    environment: dict
    case: str = ""  # of Google Test, as its filter takes it
    needs: list = field(default_factory=list)  # names of tests that prepare what this one uses
    lock: str = ""  # tests that share files do not run at the same time
    seconds: float = 0
    reaches: set = field(default_factory=set)


@dataclass
class Outcome:
    passed: bool
    seconds: float
    output: str
    why: str  # of a failure: failed, timeout, crash


def discover(build: Path, pattern: str):
    """Every test but the nightly ones; one for each case of a program of Google Test."""
    listed = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"],
                            check=True, capture_output=True, text=True)
    entries = [entry for entry in json.loads(listed.stdout)["tests"] if "command" in entry]
    prepares, tests = {}, []
    for entry in entries:
        for fixture in properties(entry).get("FIXTURES_SETUP", []):
            prepares.setdefault(fixture, []).append(entry["name"])
    for entry in entries:
        has = properties(entry)
        if "nightly" in has.get("LABELS", []) or not Path(entry["command"][0]).exists():
            continue  # the programs of tests are what was built
        environment = dict(pair.split("=", 1) for pair in has.get("ENVIRONMENT", []))
        test = Test(entry["name"], entry["command"], has.get("WORKING_DIRECTORY", str(build)),
                    environment)
        fixtures = has.get("FIXTURES_REQUIRED", []) + has.get("FIXTURES_SETUP", [])
        test.needs = [name for f in has.get("FIXTURES_REQUIRED", []) for name in prepares.get(f, [])]
        test.lock = (fixtures or [test.name])[0]
        tests += cases(test) if any(FILTER in part for part in test.command) else [test]
    return [t for t in tests if re.search(pattern, t.name)]


def properties(entry):
    return {p["name"]: p["value"] for p in entry.get("properties", [])}


def cases(test: Test):
    """The cases that a program's filter lets through; those of one parameterised suite together."""
    listed = subprocess.run(test.command + ["--gtest_list_tests"], check=True, capture_output=True,
                            text=True, cwd=test.folder)
    command = [part for part in test.command if FILTER not in part]
    names, suite = {}, ""
    for line in listed.stdout.splitlines():
        word = line.split("#")[0].rstrip()
        if word.endswith(".") and not word.startswith(" "):
            suite = word
        elif word.startswith("  ") and "DISABLED_" not in suite + word:
            names[suite + ("*" if "/" in suite or "/" in word else word.strip())] = None
    return [Test(f"{test.name}/{name}", command, test.folder, test.environment, case=name)
            for name in names]


CASE = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP)\((\w+),", re.MULTILINE)


def room_of(path: str) -> str:
    """src/io/files/gzip.cpp -> src/io; each op is a room: src/ops/rope/rope.cpp -> src/ops/rope"""
    folders = path.split("/")[:-1]
    return "/".join(folders[:3] if folders[:2] == ["src", "ops"] else folders[:2])


def homes(root: Path):
    """The rooms of each suite of Google Test: a fault is mostly noticed by the tests of its room."""
    found = {}
    for base in ("src", "cli"):
        for file in sorted((root / base).rglob("test*.cpp")):
            room = room_of(file.relative_to(root).as_posix())
            for suite in CASE.findall(file.read_text()):
                found.setdefault(suite, set()).add(room)
            if room.startswith("src/ops/"):  # the harness calls suites of cases by their ops
                found.setdefault(file.parent.name, set()).add(room)
    return found


def suite_of(test: Test) -> str:
    """"Quick/LabFaults.*" -> "LabFaults"."""
    return test.case.split(".")[0].split("/")[-1]


class Runner:
    def __init__(self, work: Path, environment, jobs: int):
        self.work, self.environment, self.jobs = work, environment, jobs
        self.locks, self.guard = {}, threading.Lock()

    def run(self, tests, mutant=None, coverage=None, most=600.0) -> Outcome:
        """Runs one test, or cases of one program in one process."""
        test = tests[0]
        command = list(test.command)
        if test.case:
            command += [FILTER + ":".join(t.case for t in tests), "--gtest_fail_fast"]
        temporary = self.work / "tmp" / str(threading.get_ident())
        temporary.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **self.environment, **test.environment,
                       "TMPDIR": str(temporary), "TEST_TMPDIR": str(temporary)}
        for name, value in (("HEDDLE_MUTANT", mutant), ("HEDDLE_MUTANT_COVERAGE", coverage)):
            environment.pop(name, None)
            if value is not None:
                environment[name] = str(value)
        try:
            return execute(command, test.folder, environment, most, temporary / "output")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def lock(self, test: Test):
        with self.guard:
            return self.locks.setdefault(test.lock or threading.get_ident(), threading.Lock())

    def prepared(self, test: Test, by_name, mutant):
        for name in test.needs:
            if name in by_name:
                self.run([by_name[name]], mutant)

    def baseline(self, tests, say):
        """Each test once without a mutant: how long it takes, what it reaches. Returns those that pass."""
        by_name = {t.name: t for t in tests}
        marks = self.work / "coverage"
        shutil.rmtree(marks, ignore_errors=True)
        marks.mkdir(parents=True)

        def measure(numbered):
            number, test = numbered
            file = marks / str(number)
            with self.lock(test):
                self.prepared(test, by_name, None)
                outcome = self.run([test], coverage=file)
            test.seconds = outcome.seconds
            if file.exists():
                data = file.read_bytes()
                test.reaches = {mark.start() for mark in re.finditer(rb"[^\0]", data)}
                file.unlink()
            if not outcome.passed:
                say(f"{test.name} fails without any mutant ({outcome.why}): left out")
            return outcome.passed

        # The longest last would leave one worker alone with it; programs of their own come first.
        order = sorted(enumerate(tests), key=lambda pair: pair[1].case != "")
        with ThreadPoolExecutor(self.jobs) as pool:
            passed = list(pool.map(measure, order))
        return [test for (_, test), ok in zip(order, passed) if ok]

    def trial(self, mutant: int, tests, most: float, only=None, near=lambda test: False):
        """Runs the tests that reach the mutant (of those named, if any), those near it first and then
        the cheapest, until one fails or they would take more than `most` seconds."""
        by_name = {t.name: t for t in tests}
        reaching = [t for t in tests if mutant in t.reaches and (not only or t.name in only)]
        if not reaching:
            return verdict("survived", "not reached by any test")
        spent, not_run = 0.0, []
        queue = batches([t for t in reaching if near(t)]) + batches([t for t in reaching if not near(t)])
        while queue:
            batch = queue.pop(0)
            expected = sum(t.seconds for t in batch)
            if spent + expected > most:
                not_run += [t.name for t in batch]
                continue
            with self.lock(batch[0]):
                self.prepared(batch[0], by_name, mutant)
                outcome = self.run(batch, mutant, most=PATIENCE + 10 * expected)
                spent += outcome.seconds
                if outcome.passed:
                    continue
                killer = culprit(batch, outcome.output)
                self.prepared(killer, by_name, None)
                if self.run([killer]).passed:
                    return verdict("killed", outcome.why, by=killer.name)
            # It fails without the mutant, too: a test that proves nothing today.
            rest = [t for t in batch if t is not killer]
            if rest:
                queue.insert(0, rest)
        return verdict("survived", f"passed by {len(reaching) - len(not_run)} tests that reach it",
                       not_run=not_run)


def verdict(status, why, by=None, not_run=()):
    return {"status": status, "why": why, "by": by, "not_run": list(not_run)}


def batches(tests):
    """Cheapest first; cases of one program go together."""
    out, open_batch = [], {}
    for test in sorted(tests, key=lambda t: t.seconds):
        if not test.case:
            out.append([test])
            continue
        key = (tuple(test.command), tuple(sorted(test.environment.items())))
        batch, first = open_batch.get(key, (None, True))
        limit = BATCH_SECONDS[0 if first else 1]
        if batch is None or sum(t.seconds for t in batch) + test.seconds > limit or len(batch) > 400:
            first = batch is None
            batch = []
            out.append(batch)
        batch.append(test)
        open_batch[key] = (batch, first)
    return sorted(out, key=lambda batch: sum(t.seconds for t in batch))


def culprit(batch, output: str) -> Test:
    """The case that failed, or that was running when its process ended."""
    failed = re.findall(r"\[  FAILED  \] ([\w/.]+)", output) or \
        re.findall(r"\[ RUN      \] ([\w/.]+)", output)[-1:]
    for name in failed:
        for test in batch:
            if test.case and re.fullmatch(test.case.replace(".", r"\.").replace("*", ".*"), name):
                return test
    return batch[0]


def execute(command, folder, environment, most, output: Path) -> Outcome:
    """Runs a command in a process group of its own, which ends with it."""
    began = time.monotonic()
    with open(output, "wb") as out:
        process = subprocess.Popen(LIMITED + command, cwd=folder, env=environment, stdout=out, stderr=out,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            code, why = process.wait(timeout=most), "failed"
        except subprocess.TimeoutExpired:
            code, why = -1, "timeout"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    if why == "failed" and code < 0:
        why = "crash"
    with open(output, "rb") as text:
        text.seek(max(0, output.stat().st_size - (1 << 20)))
        shown = text.read().decode(errors="replace")
    return Outcome(code == 0, time.monotonic() - began, shown, why)
