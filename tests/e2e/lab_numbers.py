#!/usr/bin/env python3
"""Every experiment of the lab measures what it measured before.

    lab_numbers.py HEDDLE WORK [--write]

HEDDLE is the program, WORK the directory for lab.html, the page of the run in Chinese. What was measured
is in tests/golden/lab.json: the numbers, and the checks with their bounds, in order. A verdict alone
would hide a number that is wrong, or missing, on the right side of its bound. Those that train models
for minutes are left out. --write keeps what is measured now. Exits with 1 when something differs, or
when an experiment does not come to its verdict.
"""

import json
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "lab.json"
# Instruction sets round differently: 1e-6 of a number, and all of one that is 0 but for rounding.
NEAR, NOTHING = 1e-4, 1e-9
# Time and blocks of memory are the machine's: names, relations and bounds are compared.
OF_THE_MACHINE = {"window-cost", "flash-memory"}
TIMED = {("attention-flops", key) for key in ("seconds_256", "seconds_2048", 2)}


def measured(heddle, work):
    work.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([heddle, "lab", "all", "--lang", "zh", "--json", "--out", work / "lab.html"],
                          capture_output=True, timeout=280)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"heddle lab all: status {done.returncode}\n{done.stderr.decode()}")
    return {e["name"]: {"pass": e["pass"], "numbers": e["numbers"],
                        "checks": [[c["value"], c["relation"], c["bound"], c["of"]] for c in e["checks"]]}
            for e in json.loads(done.stdout)["experiments"]}


def near(a, b):
    if a is None or b is None:  # no number in JSON: infinite, or none
        return a is b
    return max(abs(a), abs(b)) < NOTHING or abs(a - b) <= NEAR * max(abs(a), abs(b))


def differences(name, was, now):
    def same(key, value, found):
        return name in OF_THE_MACHINE or (name, key) in TIMED or near(value, found)

    if not now["pass"]:
        yield "does not come to its verdict"
    if list(was["numbers"]) != list(now["numbers"]):
        yield f"numbers {list(now['numbers'])}, expected {list(was['numbers'])}"
    for key, value in was["numbers"].items():
        if key in now["numbers"] and not same(key, value, now["numbers"][key]):
            yield f"{key} is {now['numbers'][key]}, expected {value}"
    if [c[1:] for c in was["checks"]] != [c[1:] for c in now["checks"]]:
        yield f"checks {[c[1:] for c in now['checks']]}, expected {[c[1:] for c in was['checks']]}"
    for number, (one, other) in enumerate(zip(was["checks"], now["checks"])):
        if not same(number, one[0], other[0]):
            yield f"check {number} has {other[0]}, expected {one[0]}"


def main():
    heddle, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    now = measured(heddle, work)
    if sys.argv[3:] == ["--write"]:
        lines = [f" {json.dumps(name)}: {json.dumps(found)}" for name, found in now.items()]
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    wanted = json.loads(GOLDEN.read_text())
    failures = [] if list(wanted) == list(now) else [f"experiments {list(now)}, expected {list(wanted)}"]
    for name in wanted.keys() & now.keys():
        failures += [f"{name}: {text}" for text in differences(name, wanted[name], now[name])]
    print(*failures or [f"{len(now)} experiments measure what they did"], sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
