#!/usr/bin/env python3
"""What was trained here, written for others: the same scores and the same text there.

    check_export.py --heddle PROGRAM [--llama-simple PROGRAM] [--only NAME] [--keep DIRECTORY]

For each recipe a run of a few steps is exported to a directory, which transformers loads: logits to 1e-4 of
their size, greedy tokens one by one. Then to a GGUF file, which llama.cpp's `llama-simple` reads (where it is
given): the same greedy text. Exits with 1 when one differs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import transformers

TOLERANCE = 1e-4
TEXT = " ".join(f"The {a} {b} saw a {c}, and the {c} saw the {b}." for a in ("old", "young", "small")
                for b in ("ant", "bee", "cat") for c in ("dog", "eel", "fox"))
PROMPT = "The old ant"

LLAMA = 'norm = "rms"\nbias = false\nffn = "swiglu"\nffn_width = 96\nnorm_epsilon = 1e-6\n'
GELU = 'ffn = "gelu-tanh"\n'
# Of a recipe: the model's keys, those of its attention, the family and the architecture that it becomes.
RECIPES = {
    "llama": (LLAMA, 'kv_heads = 2\nposition = "rope"', "llama", "llama"),
    "llama-tied": (LLAMA + "tied = true\n", 'position = "rope"', "llama", "llama"),
    "mistral": (LLAMA, 'kv_heads = 2\nposition = "rope"\nlook_back = 5', "mistral", None),
    "qwen2": (LLAMA + "qkv_bias = true\n", 'kv_heads = 2\nposition = "rope"', "qwen2", "llama"),
    "qwen3": (LLAMA + 'qk_norm = "head"\n', 'kv_heads = 2\nposition = "rope"', "qwen3", "qwen3"),
    "gemma": (LLAMA.replace("swiglu", "geglu-tanh") + "tied = true\nscale_embedding = true\n",
              'kv_heads = 2\nposition = "rope"', "gemma", "gemma"),
    "olmo2": (LLAMA + 'qk_norm = "full"\nnorm_place = "branch"\n', 'position = "rope"', "olmo2", "olmo2"),
    "gpt2": (GELU + "tied = true\n", 'position = "learned"', "gpt2", "gpt2"),
    "gpt2-untied": (GELU, 'position = "learned"', "gpt2", "gpt2"),
    "bloom": (GELU + "tied = true\nembedding_norm = true\n", 'position = "alibi"', "bloom", "bloom"),
}


def recipe_text(keys, attention):
    return f"""
[model]
kind = "decoder"
layers = 3
width = 64
{keys}
[model.attention]
heads = 4
{attention}
[data]
text = "text.txt"
tokenizer = "bpe:300"
context = 48
[train]
steps = 30
batch = 4
learning_rate = 3e-3
"""


def heddle(program, folder, *arguments):
    done = subprocess.run([program, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def greedy(program, folder, model):
    return json.loads(heddle(program, folder, "generate", model, "--prompt", PROMPT, "--tokens", 24,
                             "--temperature", 0, "--json"))["text"]


def judge_directory(program, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "hf", dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "hf")
    tokens = tokenizer(TEXT[:120])["input_ids"][:40]
    heddle(program, folder, "logits", "run", "--tokens", ",".join(map(str, tokens)), "--npy", "logits.npy")
    ours = numpy.load(folder / "logits.npy")
    with torch.no_grad():
        theirs = model(torch.tensor([tokens])).logits[0].numpy()
    error = float(numpy.abs(ours - theirs).max() / numpy.sqrt((theirs**2).mean()))
    if error > TOLERANCE:
        return f"logits differ by {error:.2e}"
    prompt = tokenizer(PROMPT, return_tensors="pt")["input_ids"]
    written = model.generate(prompt, max_new_tokens=24, do_sample=False)[0][prompt.shape[1]:]
    theirs = tokenizer.decode(written, skip_special_tokens=True)
    ours = greedy(program, folder, "run")
    return None if ours == theirs else f"greedy text {ours!r}, transformers' {theirs!r}"


def judge_gguf(options, folder, architecture):
    made = json.loads(heddle(options.heddle, folder, "export", "run", "--to", "gguf", "--out", "m.gguf", "--json"))
    if made["family"] != architecture:
        return f"written as {made['family']}"
    ours, run = greedy(options.heddle, folder, "m.gguf"), greedy(options.heddle, folder, "run")
    if ours != run:
        return f"greedy text {ours!r} of the file, {run!r} of the run"
    if not options.llama_simple:
        return None
    done = subprocess.run([options.llama_simple, "-m", folder / "m.gguf", "-n", "24", PROMPT],
                          capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return "llama.cpp: " + done.stderr[-400:]
    theirs = done.stdout.strip("\n").removeprefix(PROMPT)
    same = theirs.startswith(ours) or ours.startswith(theirs)
    return None if same and theirs else f"greedy text {ours!r}, llama.cpp's {theirs!r}"


def judge(options, folder, recipe):
    keys, attention, family, architecture = recipe
    (folder / "text.txt").write_text(TEXT)
    (folder / "recipe.toml").write_text(recipe_text(keys, attention))
    heddle(options.heddle, folder, "train", "recipe.toml", "--out", "run")
    made = json.loads(heddle(options.heddle, folder, "export", "run", "--to", "hf", "--out", "hf", "--json"))
    if made["family"] != family:
        return f"written as {made['family']}"
    complaint = judge_directory(options.heddle, folder)
    if not complaint and architecture:
        complaint = judge_gguf(options, folder, architecture)
    return complaint


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--llama-simple")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="directory for what differs")
    options = parser.parse_args()
    options.heddle = str(Path(options.heddle).resolve())
    transformers.logging.set_verbosity_error()
    bad = judged = 0
    for name, recipe in RECIPES.items():
        if options.only and options.only != name:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(options.keep or temporary) / name
            folder.mkdir(parents=True, exist_ok=True)
            try:
                complaint = judge(options, folder, recipe)
            except RuntimeError as error:
                complaint = str(error)
        judged += 1
        bad += complaint is not None
        print(f"{name:12} {complaint or 'same'}", flush=True)
    if not options.llama_simple:
        print("--llama-simple not given: GGUF files were written and read here, and not by llama.cpp")
    print(f"{judged} recipes, {bad} differ")
    return 1 if bad or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
