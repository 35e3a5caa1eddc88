#!/usr/bin/env python3
"""A GGUF model here and in llama.cpp: the same greedy texts, and the same perplexity to four digits.

    check_llama_cpp.py --heddle HEDDLE --llama BIN MODEL.gguf [--work FOLDER] [--threads N]

BIN is the folder of llama.cpp's programs (llama-quantize, llama-perplexity, llama-completion). The
weights are expanded to f32 first, so that both compute with the same numbers: llama.cpp rounds
activations to eight bits beside quantised weights, and Heddle does not. Prints a line for each
comparison; exits with 1 when one fails.
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


def expanded(options, work):
    """The model with all of its weights in f32."""
    wide = work / "f32.gguf"
    if not wide.exists():
        run([options.llama / "llama-quantize", "--allow-requantize", options.model, wide, "F32"])
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
        print(f"{'same ' if same else 'OTHER'} {prompt!r}: {ours!r}")
        if not same:
            print(f"      llama.cpp: {theirs!r}")
    return wrong


def sample_text(work):
    """Plain prose of a few thousand tokens: some of Heddle's own pages."""
    root = Path(__file__).resolve().parents[2]
    text = "\n".join((root / "docs" / name).read_text() for name in ("attention.md", "training.md"))
    text = re.sub(r"[`*|#]", "", text)
    path = work / "text.txt"
    path.write_text(text[:24000])
    return path


def judge_perplexity(options, model, work):
    text = sample_text(work)
    ours = json.loads(run([options.heddle, "eval", model, "--text", text, "--window", 512, "--stride",
                           512, "--skip", 257, "--json"]).stdout)["perplexity"]
    done = run([options.llama / "llama-perplexity", "-m", model, "-f", text, "-c", 512, "-t",
                options.threads, *WIDE])
    said = (done.stdout + done.stderr).decode(errors="replace")
    theirs = float(re.search(r"Final estimate: PPL = ([0-9.]+)", said).group(1))
    same = abs(ours - theirs) < 5e-5 * theirs
    print(f"{'same ' if same else 'OTHER'} perplexity {ours:.4f}, llama.cpp {theirs:.4f}")
    return 0 if same else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--heddle", type=Path, required=True)
    parser.add_argument("--llama", type=Path, required=True)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        model = expanded(options, work)
        wrong = judge_texts(options, model) + judge_perplexity(options, model, work)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
