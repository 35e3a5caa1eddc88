#!/usr/bin/env python3
"""The tables of docs/distributed.md on many ranks, as `heddle plan` computes them.

    scripts/scaling_table.py build/release/heddle

Prints them as Markdown, with the command of each row on standard error.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

# The shape of GPT-2: layer norms, gelu, learned positions, one table for both ends.
RECIPE = """[model]
kind = "decoder"
norm = "layer"
ffn = "gelu"
tied = true
layers = 12
width = 768
[model.attention]
heads = 12
position = "learned"
[data]
text = "text.txt"
tokenizer = "byte"
context = 1024
[train]
steps = 1000
batch = 1024
precision = "bf16"
"""
MODELS = {  # layers, width, heads
    "124M": (12, 768, 12),
    "350M": (24, 1024, 16),
    "1.3B": (24, 2048, 16),
    "7B": (32, 4096, 32),
    "13B": (40, 5120, 40),
    "70B": (86, 8192, 64),
}
RANKS = (1, 8, 64, 256, 1024)
LINKS = ("10G", "400G")
FLOPS = "20T"
BATCH = 1024


def command(model, ranks, link):
    layers, width, heads = MODELS[model]
    words = ["plan", "gpt2.toml", "--vocabulary", "50257", "--flops", FLOPS, "--link", link, "--ranks", str(ranks)]
    # One sequence at a time: as many parts as ranks (8 at least), and each part in as many again.
    parts = max(8, ranks) if ranks > 1 else 1
    sets = {"model.layers": layers, "model.width": width, "model.attention.heads": heads,
            "train.accumulate": BATCH // parts}
    if ranks > 1:
        sets["train.parts"] = parts
    for key, value in sets.items():
        words += ["--set", f"{key}={value}"]
    return words


def plan(heddle, folder, model, ranks, link):
    words = command(model, ranks, link)
    print("heddle", shlex.join(words), file=sys.stderr)
    # Whether it fits this machine is not the question: with next to no memory the largest batch is not looked for.
    done = subprocess.run([heddle, *words, "--memory", "1B", "--json"], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "HEDDLE_THREADS": "1"})
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"heddle {shlex.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


def gigabytes(number):
    return f"{number / 1e9:.3g} GB" if number < 1e12 else f"{number / 1e12:.3g} TB"


def seconds(number):
    for limit, unit, factor in ((0.9995, "ms", 1e3), (600, "s", 1), (7200, "min", 1 / 60)):
        if number < limit:
            return f"{number * factor:.3g} {unit}"
    return f"{number / 3600:.3g} h"


def main():
    heddle = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "gpt2.toml").write_text(RECIPE)
        plans = {(model, ranks, link): plan(heddle, folder, model, ranks, link)
                 for model in MODELS for ranks in RANKS for link in LINKS}
    print("| model | ranks | memory | sent | computing | step, 10G | talk | step, 400G | talk |\n|" + "---|" * 9)
    for model in MODELS:
        for ranks in RANKS:
            both = [plans[model, ranks, link] for link in LINKS]
            steps = [text for p in both
                     for text in (seconds(p["step_seconds"]), f"{100 * p['communication_share']:.2g} %")]
            print("|", " | ".join([model if ranks == 1 else "", f"{ranks:,}", gigabytes(both[0]["peak_bytes"]["total"]),
                                   gigabytes(both[0].get("sent_bytes_per_step", 0)) if ranks > 1 else "–",
                                   seconds(both[0]["compute_seconds"]), *steps]), "|")
    print("\n| model | parameters | layers × width | pays to, 10G | pays to, 400G |\n|" + "---|" * 5)
    for model, (layers, width, _) in MODELS.items():
        first = [plans[model, 8, link] for link in LINKS]
        print(f"| {model} | {first[0]['parameters']:,} | {layers} × {width:,} | "
              + " | ".join(f"{p['pays_to_ranks']:,} ranks" for p in first) + " |")


if __name__ == "__main__":
    main()
