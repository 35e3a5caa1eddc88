#!/usr/bin/env python3
"""`heddle compare` on several processes: runs dealt out to ranks, through the program.

    compare_ranks.py HEDDLE WORK

The results are those of one process apart from times; a rank that is killed leaves its runs to the
others, or, where the launcher ends all, to the same command again; one that is stopped for a while
holds up nobody; ranks that differ are refused by name. Exits with 77 where there is no mpirun, and
with 1 when something is not as it should be.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from program import FAILURES, HEDDLE, WORK, check, run_steps

# Many processes on few cores, perhaps in a container and as root. No MPI passes between them.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
GOES_ON = ["--enable-recovery"]  # where a process dies, mpirun leaves the others alone
ENVIRONMENT = {**os.environ, "HEDDLE_THREADS": "1"}
ARGUMENTS = ["compare", "tiny.toml", "--vary", "model.attention.kv_heads=1,4", "--vary", "model.norm=layer,rms", "--seeds", "2"]
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
steps = 300
batch = 8
eval_every = 100
eval_batches = 6
save_every = 7
"""


def command(ranks, *arguments, launcher=()):
    return [*MPIRUN, *launcher, "-np", str(ranks), str(HEDDLE), *map(str, arguments)]


def run(ranks, *arguments, status=0, launcher=()):
    done = subprocess.run(command(ranks, *arguments, launcher=launcher), cwd=WORK, env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=300)
    check(done.returncode == status, f"{ranks} ranks {arguments}: {done.returncode}, expected {status}", done.stderr)
    return done


def results(folder):
    """Without times."""
    document = json.loads((WORK / folder / "results.json").read_text())
    taken = document.pop("times")
    for variant in document["variants"]:
        for key in ("step_seconds", "tokens_per_s", "step_seconds_quartiles"):
            variant.pop(key)
    for difference in document["differences"] + document.get("main_effects", []):
        difference.pop("step_seconds", None)
    return document, taken


def who(folder):
    """Which rank did each run."""
    return [path.read_text().strip() for path in sorted((WORK / folder / "ranks").glob("run-*.done"))]


def started(folder, ranks, launcher=(), steps=300, until="run-*.done"):
    """A comparison that has begun; the numbers of its ranks' processes."""
    running = subprocess.Popen(
        command(ranks, *ARGUMENTS, "--budget", f"steps={steps}", "--out", folder, launcher=launcher), cwd=WORK,
        env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not list((WORK / folder / "ranks").glob(until)) and time.monotonic() < end and running.poll() is None:
        time.sleep(0.01)
    seats = [json.loads(path.read_text()) for path in (WORK / folder / "ranks").glob("rank-*.json")]
    check(len(seats) == ranks, folder, "ranks that came in", seats)
    return running, {seat["rank"]: int(seat["process"]) for seat in seats}


def alone():
    done = subprocess.run([str(HEDDLE), *ARGUMENTS, "--budget", "steps=300", "--out", "whole"], cwd=WORK, env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, "one process", done.stderr)
    check(results("whole")[1] == {"taken": "in-turns"}, "times of one process", results("whole")[1])


def dealt_out():
    for ranks in (2, 3):
        done = run(ranks, *ARGUMENTS, "--budget", "steps=300", "--out", f"on-{ranks}")
        document, taken = results(f"on-{ranks}")
        check(document == results("whole")[0], f"{ranks} ranks have other results")
        check(taken["taken"] == "on-ranks" and taken["ranks"] == ranks and len(taken["hosts"]) == 1, "times", taken)
        check(len(set(who(f"on-{ranks}"))) == ranks, "every rank has runs", who(f"on-{ranks}"))
        # One rank speaks.
        check(done.stderr.count("variants x 2 seeds") == 1 and done.stderr.count(f"{ranks} ranks; each run") == 1, done.stderr)
        check(done.stdout.count("index.html") == 1, done.stdout)
        check("Times were not taken in turns" in " ".join(done.stdout.split()), done.stdout)
        check("A step takes" not in (WORK / f"on-{ranks}" / "index.html").read_text(), "the page compares times")
    # All is there: the same command again tells the same.
    again = run(3, *ARGUMENTS, "--budget", "steps=300", "--out", "on-3", "--json")
    check(json.loads(again.stdout)["variants"][0]["final_loss"] == results("on-3")[0]["variants"][0]["final_loss"], "again")
    # One process goes on with what ranks began, and more seeds than before are welcome.
    done = subprocess.run([str(HEDDLE), *ARGUMENTS[:-1], "3", "--budget", "steps=300", "--out", "on-3"], cwd=WORK,
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    check(done.returncode == 0 and results("on-3")[1]["taken"] == "on-ranks", "one more seed", done.stderr)


def of_one():
    """A launcher that starts one process starts an ordinary comparison."""
    run(1, *ARGUMENTS, "--budget", "steps=20", "--out", "of-one")
    check(results("of-one")[1] == {"taken": "in-turns"} and not (WORK / "of-one/ranks").exists(), "mpirun -np 1")


def killed():
    """The others take over the run of a rank that is killed, whichever it is."""
    for victim in (1, 0):
        folder = f"killed-{victim}"
        running, ranks = started(folder, 3, launcher=GOES_ON)
        os.kill(ranks[victim], signal.SIGKILL)
        out, errors = running.communicate(timeout=300)
        check(running.returncode == 0, "a rank was killed", victim, running.returncode, errors)
        check(results(folder)[0] == results("whole")[0], "results after rank", victim, "was killed")
        check(len(who(folder)) == 8 and out.count("index.html") == 1, who(folder), out)
        check(("rank 1 tells the results" in errors) == (victim == 0), "who tells", errors)
    # Without the option mpirun ends all, long before long runs are done.
    running, ranks = started("long", 3, steps=20000, until="run-*")
    os.kill(ranks[1], signal.SIGKILL)
    running.communicate(timeout=60)
    check(running.returncode != 0 and not (WORK / "long/results.json").exists(), "mpirun without --enable-recovery",
          running.returncode)
    # Short ones may be through by then; the same command again goes on, on any number of ranks.
    running, ranks = started("ended", 3, until="run-*")
    os.kill(ranks[1], signal.SIGKILL)
    running.communicate(timeout=60)
    check(running.returncode != 0, "mpirun without --enable-recovery", running.returncode)
    run(2, *ARGUMENTS, "--budget", "steps=300", "--out", "ended")
    check(results("ended")[0] == results("whole")[0], "gone on with after a kill")


def slow():
    """A rank that stands still has its run, and nothing else waits for it."""
    running, ranks = started("slow", 3, until="run-*")
    os.kill(ranks[2], signal.SIGSTOP)
    end = time.monotonic() + 120
    while len(who("slow")) < 7 and time.monotonic() < end:
        time.sleep(0.05)
    at_rest = who("slow")
    os.kill(ranks[2], signal.SIGCONT)
    _, errors = running.communicate(timeout=300)
    check(len(at_rest) >= 7, "the others go on", at_rest)
    check(running.returncode == 0 and results("slow")[0] == results("whole")[0], "a slow rank", errors)


def asked():
    """One that is asked to end stops all, with that signal's status."""
    running, ranks = started("asked", 3)
    os.kill(ranks[2], signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    check(running.returncode == 130, "SIGINT to a rank", running.returncode, errors)
    check(errors.count("the same command again goes on") == 1, errors)
    check(not (WORK / "asked/results.json").exists(), "stopped, and results")
    # A second launch beside one that runs is refused, as is a process alone.
    running, ranks = started("beside", 2, steps=3000)
    said = run(2, *ARGUMENTS, "--budget", "steps=3000", "--out", "beside", status=2)
    check("another process is at this comparison" in said.stderr, said.stderr)
    said = subprocess.run([str(HEDDLE), *ARGUMENTS, "--budget", "steps=3000", "--out", "beside"], cwd=WORK, env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=60)
    check(said.returncode == 2 and "another process is at this comparison" in said.stderr, said.stderr)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    run(2, *ARGUMENTS, "--budget", "steps=300", "--out", "asked")
    check(results("asked")[0] == results("whole")[0], "gone on with after Ctrl-C")


def refused():
    """Ranks that are not alike are named, once, before anything is trained."""
    other = WORK / "other-heddle"
    shutil.copy(HEDDLE, other)
    with open(other, "ab") as file:
        file.write(b"\0")
    words = [*ARGUMENTS, "--budget", "steps=300"]
    for name, second in (("instruction set", ["-x", "HEDDLE_ISA=generic", str(HEDDLE), *words]), ("program", [str(other), *words]),
                         ("comparison: recipes", [str(HEDDLE), *words, "--set", "model.dropout=0.2"])):
        said = subprocess.run([*MPIRUN, "-np", "1", str(HEDDLE), *words, "--out", "no", ":", "-np", "1", *second, "--out", "no"],
                              cwd=WORK, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
        check(said.returncode == 2 and said.stderr.count(f"has another {name}") == 1, name, said.returncode, said.stderr)
        check("rank 1 (process" in said.stderr, said.stderr)
        check(not (WORK / "no/runs").exists(), "something was trained")
    said = run(3, *ARGUMENTS, "--set", "train.stepz=3", "--out", "nothing", status=2)
    check(said.stderr.count("unknown key train.stepz") == 1, said.stderr)
    check(not (WORK / "nothing").exists(), "a directory was left")
    # All diverged: one says it, and the status is that.
    wild = ["--set", "train.clip=0", "--set", "train.optimizer=sgd", "--set", "train.warmup=0"]
    said = run(2, "compare", "tiny.toml", "--vary", "train.learning_rate=1000,900", *wild, "--out", "wild", status=1)
    check(said.stdout.count("index.html") == 1, said.stdout)


def main():
    if shutil.which("mpirun") is None:
        print("skipped: no mpirun")
        return 77
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    (WORK / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 200)
    (WORK / "tiny.toml").write_text(RECIPE)
    return run_steps([alone, dealt_out, of_one, killed, slow, asked, refused])


if __name__ == "__main__":
    sys.exit(main())
