#!/usr/bin/env python3
"""What `make run` shows, with a small text and few steps: it trains, writes, and the commands that it
names work when they are pasted.

    first_run.py HEDDLE SOURCE WORK

HEDDLE is the program, SOURCE the repository, WORK a directory for a copy of what the script needs.
"""

import shutil
import subprocess
import sys
from pathlib import Path

HEDDLE, SOURCE, WORK = (Path(a).resolve() for a in sys.argv[1:4])
FEW = "--set train.steps=4 --set train.warmup=0 --set train.batch=2 --set data.context=16"


def run(command):
    done = subprocess.run(command, shell=True, cwd=WORK, capture_output=True, text=True, timeout=100)
    if done.returncode != 0:
        sys.exit(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    for folder in ["build/release", "data", "scripts"]:
        (WORK / folder).mkdir(parents=True)
    (WORK / "build/release/heddle").symlink_to(HEDDLE)
    shutil.copy(SOURCE / "scripts/first_run.sh", WORK / "scripts")
    shutil.copytree(SOURCE / "recipes", WORK / "recipes")
    verses = [f"And God said, Let there be {n} lights: and there were {n} lights." for n in range(2000)]
    (WORK / "data/kjv.txt").write_text("\n".join(verses) + "\n")

    first = run(f"scripts/first_run.sh {FEW}")
    for part in ["And God said", "In the beginning", "Blessed are", "runs/first/report.html"]:
        if part not in first:
            sys.exit(f"no {part!r} in:\n{first}")
    if not (WORK / "runs/first/report.html").exists():
        sys.exit("the report is not where it should be")
    commands = [line.strip() for line in first.splitlines() if line.startswith("  build/")]
    if len(commands) != 3:
        sys.exit(f"not three commands: {commands}")
    for command in commands:
        run(command + (" " + FEW if " train " in command else ""))
    run(f"scripts/first_run.sh {FEW}")  # again: it only writes


if __name__ == "__main__":
    main()
