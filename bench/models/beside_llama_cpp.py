#!/usr/bin/env python3
"""Speed of a GGUF model here beside llama.cpp, in turns on two threads.

    beside_llama_cpp.py --heddle HEDDLE --llama BIN MODEL.gguf [--rounds 5] [--threads 2]

Writing: 64 tokens behind a short prompt. Reading: what a window of 512 tokens more costs a process
that scores a text. Sixteen: tokens of sixteen texts at once. Medians of rounds in which the programs
take turns; prints one JSON document.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WRITTEN, WINDOW = 64, 512


def run(command):
    start = time.monotonic()
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=1800)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.decode(errors='replace')[-2000:]}")
    return json.loads(done.stdout), time.monotonic() - start


def written(options, precision, samples=1):
    told, _ = run([options.heddle, "generate", options.model, "--prompt", "Once upon a time",
                   "--tokens", WRITTEN, "--temperature", 1 if samples > 1 else 0, "--samples", samples,
                   "--seed", 1, "--precision", precision, "--weights", "bf16", "--json"])
    texts = told.get("samples", [told])
    # The first token of a text comes with its prompt.
    count = sum(len(t["tokens"]) - 1 for t in texts)
    return count / (told["seconds"] - told["prompt_seconds"])


def read(options, precision, texts):
    command = [options.heddle, "eval", options.model, "--window", WINDOW, "--stride", WINDOW,
               "--precision", precision, "--weights", "bf16", "--json", "--text"]
    seconds, tokens = [], []
    for text in texts:
        told, took = run([*command, text])
        seconds.append(took)
        tokens.append(told["tokens"])
    return (tokens[1] - tokens[0]) / (seconds[1] - seconds[0])


def theirs(options):
    told, _ = run([options.llama / "llama-bench", "-m", options.model, "-p", WINDOW, "-n", WRITTEN, "-t",
                   options.threads, "-r", 1, "-o", "json"])
    speeds = {("read" if t["n_prompt"] else "written"): t["avg_ts"] for t in told}
    return speeds["written"], speeds["read"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--heddle", type=Path, required=True)
    parser.add_argument("--llama", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    os.environ["HEDDLE_THREADS"] = str(options.threads)
    figures = {}
    note = lambda name, value: figures.setdefault(name, []).append(value)
    with tempfile.TemporaryDirectory() as work:
        texts = [Path(work) / "short.txt", Path(work) / "long.txt"]
        sentence = "The weaver throws the shuttle from the left to the right and back again. "
        texts[0].write_text(sentence * 70)
        texts[1].write_text(sentence * 280)
        for _ in range(options.rounds):
            for precision in ("fp32", "bf16"):
                note(f"heddle {precision} written", written(options, precision))
                note(f"heddle {precision} read", read(options, precision, texts))
            note("heddle fp32 sixteen", written(options, "fp32", 16))
            speeds = theirs(options)
            note("llama.cpp written", speeds[0])
            note("llama.cpp read", speeds[1])
    print(json.dumps({name: {"median": round(statistics.median(values), 1),
                             "all": [round(v, 1) for v in values]}
                      for name, values in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
