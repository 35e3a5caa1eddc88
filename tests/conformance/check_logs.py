#!/usr/bin/env python3
"""Event files and CSV of a run, read by TensorBoard and by Python's csv, against its log.jsonl.

    make conformance PYTHON=python-with-tensorboard
    tests/conformance/check_logs.py --heddle build/release/heddle

A tiny model is trained, interrupted by a second sitting with more steps; every value that the log
tells must be what TensorBoard's own reader finds, each step once.
"""

import argparse
import csv
import json
import math
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

RECIPE = """
[model]
kind = "decoder"
layers = 1
width = 16
[model.attention]
heads = 2
[data]
text = "text.txt"
tokenizer = "char"
context = 16
[train]
steps = 60
batch = 4
warmup = 5
schedule = "constant"
log_every = 5
eval_every = 20
save_every = 30
log = ["jsonl", "csv", "tensorboard"]
"""

TAGS = {"loss": "train/loss", "lr": "train/learning_rate", "tokens": "train/tokens",
        "tokens_per_s": "train/tokens_per_s", "grad_norm": "train/grad_norm",
        "live_bytes": "train/live_bytes", "eval_loss": "validation/loss",
        "eval_tokens": "validation/tokens", "accuracy": "validation/accuracy"}


def as_float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def train(heddle, folder, *more):
    done = subprocess.run([heddle, "train", "tiny.toml", "--out", "run", *more], cwd=folder,
                          capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())


def expect(ok, *what):
    if not ok:
        sys.exit("not as it should be: " + " ".join(map(str, what)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--heddle", required=True, type=lambda p: str(Path(p).resolve()))
    heddle = parser.parse_args().heddle
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tiny.toml").write_text(RECIPE)
        (folder / "text.txt").write_text("".join(f"{i * i} is {i} times {i}\n" for i in range(300)))
        train(heddle, folder)
        train(heddle, folder, "--resume", "--set", "train.steps=100")
        log = [json.loads(line) for line in (folder / "run/log.jsonl").read_text().splitlines()]
        events = EventAccumulator(str(folder / "run"), size_guidance={"scalars": 0})
        events.Reload()
        expect(len(list((folder / "run").glob("events*"))) == 1, "one event file")
        for key, tag in TAGS.items():
            told = [(line["step"], as_float32(line[key])) for line in log if key in line]
            if not told:
                continue
            read = [(e.step, e.value) for e in events.Scalars(tag)]
            expect(read == told, tag, read[:3], told[:3])
        times = [e.wall_time for e in events.Scalars("train/loss")]
        seconds = [line["seconds"] for line in log if "loss" in line]
        expect(all(math.isclose(t - times[0], s - seconds[0], abs_tol=1e-5)
                   for t, s in zip(times, seconds)), "times", times)
        with open(folder / "run/log.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        expect(len(rows) == len(log), "rows", len(rows), len(log))
        for row, line in zip(rows, log):
            expect({k: json.loads(v) for k, v in row.items() if v} == line, row, line)
        print(f"TensorBoard and csv read all {len(log)} lines")


if __name__ == "__main__":
    main()
