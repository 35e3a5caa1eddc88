#!/usr/bin/env python3
"""A GGUF model here and in llama.cpp: the same greedy texts, and the same perplexity to four digits; the
same perplexity of the files that Heddle writes, in every type.

    check_llama_cpp.py --heddle HEDDLE --llama BIN MODEL.gguf [--work FOLDER] [--threads N] [--only PART]

BIN is the folder of llama.cpp's programs (llama-quantize, llama-perplexity, llama-completion). The
weights are expanded to f32 first, so that both compute with the same numbers: llama.cpp rounds
activations to eight bits beside quantised weights, and Heddle does not. Files that Heddle writes are
expanded by llama.cpp too, so that it is llama.cpp that decodes them; what it gives of the file as it is
stands beside it, and must be near. Prints a line for each comparison; exits with 1 when one fails.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROMPTS = [
    "The moon is", "Once upon a time there was a weaver who", "Water boils when",
    "To bake bread you need flour,", "In 1969, people", "The capital of France is",
    "A good friend is someone who", "def add(a, b):\n    return", "Rivers flow to the sea because",
    "My favourite season is winter, because",
]
TOKENS = 40
# llama.cpp keeps keys and values in f16 unless told otherwise.
WIDE = ["-ctk", "f32", "-ctv", "f32"]


def run(command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=3000, **more)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done


TYPES = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q4_k", "q6_k"]


def expanded(options, model, wide):
    """The model with all of its weights in f32."""
    if not wide.exists():
        run([options.llama / "llama-quantize", "--allow-requantize", model, wide, "F32"])
    return wide


def texts_of(options, model, prompt):
    ours = run([options.heddle, "generate", model, "--prompt", prompt, "--tokens", TOKENS,
                "--temperature", "0", "--json"])
    theirs = run([options.llama / "llama-completion", "-m", model, "-p", prompt, "-n", TOKENS,
                  "--temp", "0", "-t", options.threads, "-no-cnv", "--no-display-prompt", "--no-warmup", *WIDE],
                 stdin=subprocess.DEVNULL)
    return json.loads(ours.stdout), theirs.stdout.decode(errors="replace")


def judge_texts(options, model):
    wrong = 0
    for prompt in PROMPTS:
        told, theirs = texts_of(options, model, prompt)
        ours = told["text"]
        same = ours.rstrip() == theirs.replace(" [end of text]", "").rstrip()
        wrong += not same
        print(f"{'same ' if same else 'OTHER'} {prompt!r}: {ours!r}", flush=True)
        if not same:
            print(f"      llama.cpp: {theirs!r}")
    return wrong


def sample_text(work, characters=24000):
    """Plain prose of a few thousand tokens: some of Heddle's own pages."""
    root = Path(__file__).resolve().parents[2]
    text = "\n".join((root / "docs" / name).read_text() for name in ("attention.md", "training.md"))
    text = re.sub(r"[`*|#]", "", text)
    path = work / f"text{characters}.txt"
    path.write_text(text[:characters])
    return path


def our_perplexity(options, model, text):
    return json.loads(run([options.heddle, "eval", model, "--text", text, "--window", 512, "--stride", 512,
                           "--skip", 257, "--weights", "fp32", "--json"]).stdout)["perplexity"]


def their_perplexity(options, model, text):
    done = run([options.llama / "llama-perplexity", "-m", model, "-f", text, "-c", 512, "-t",
                options.threads, *WIDE])
    said = (done.stdout + done.stderr).decode(errors="replace")
    return float(re.search(r"Final estimate: PPL = ([0-9.]+)", said).group(1))


def judge_perplexity(options, model, work):
    text = sample_text(work)
    ours, theirs = our_perplexity(options, model, text), their_perplexity(options, model, text)
    same = abs(ours - theirs) < 5e-5 * theirs
    print(f"{'same ' if same else 'OTHER'} perplexity {ours:.4f}, llama.cpp {theirs:.4f}", flush=True)
    return 0 if same else 1


def judge_written(options, model, work):
    """Files of every type, written by Heddle."""
    wrong, text = 0, sample_text(work, 7000)
    for kind in TYPES:
        own, wide = work / f"own-{kind}.gguf", work / f"own-{kind}-f32.gguf"
        run([options.heddle, "export", model, "--to", "gguf", "--type", kind, "--out", own])
        ours = our_perplexity(options, own, text)
        theirs = their_perplexity(options, expanded(options, own, wide), text)
        as_it_is = their_perplexity(options, own, text)
        same = abs(ours - theirs) < 5e-5 * theirs and abs(as_it_is - theirs) < 0.03 * theirs
        print(f"{'same ' if same else 'OTHER'} {kind} written: perplexity {ours:.4f}, llama.cpp {theirs:.4f} from its "
              f"weights expanded, {as_it_is:.4f} as it is", flush=True)
        wrong += not same
        for file in (own, wide):
            file.unlink()
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--heddle", type=Path, required=True)
    parser.add_argument("--llama", type=Path, required=True)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp")
    parser.add_argument("--only", choices=["texts", "perplexity", "written"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        model = expanded(options, options.model, work / "f32.gguf")
        wrong = 0
        if options.only in (None, "texts"):
            wrong += judge_texts(options, model)
        if options.only in (None, "perplexity"):
            wrong += judge_perplexity(options, model, work)
        if options.only in (None, "written"):
            wrong += judge_written(options, model, work)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
