#!/usr/bin/env python3
"""How fast text is read and written: Heddle, llama.cpp and transformers in turns, on the same weights in bf16.

    measure_generation.py --heddle PROGRAM [--llama BIN] [--torch PYTHON] [--smollm MODEL.gguf] [--work FOLDER]
                          [--threads 2] [--turns 5] [--only smollm|gpt2|llama-1.1b] [--json FILE]

BIN is the folder of llama.cpp's programs (llama-bench is used), PYTHON one that has torch and transformers.
Every turn runs each measurement once, one system after the other, so that a machine that is busy for a while is
busy for all; the table has the median of the turns. Random models (GPT-2's smallest, a Llama of 1.1 billion
parameters) are written by transformers once into FOLDER, which then has some 5 GB.

What is measured, with N threads:
  write      tokens/s behind a prompt of 16 tokens, and the share of the read bandwidth (`heddle bench roofline`)
  read 512   tokens/s of a prompt of 512 tokens
  16 at once tokens/s of 16 texts together over that of one
  long       GB/s at which keys and values are read: a token behind 7,900 of them against one behind 16
  lookup     tokens/s with --lookup 4 over those without, on a prompt that repeats itself
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TOKENS = 64
PREPARE = """
import sys, torch, transformers
kind, folder = sys.argv[1:]
torch.manual_seed(0)
if kind == "gpt2":
    config = transformers.GPT2Config(n_positions=8192)
else:
    config = transformers.LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
                                      num_attention_heads=32, num_key_value_heads=4, max_position_embeddings=8192)
model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
model.save_pretrained(folder)
# A tokenizer of bytes, and names for the other rows: texts do not matter, numbers of tokens do.
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
names = sorted(pre_tokenizers.ByteLevel.alphabet())
names += [f"<row {i}>" for i in range(len(names), config.vocab_size)]
tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(names)}, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.save(folder + "/tokenizer.json")
"""
RIVAL = """
import json, sys, time, torch, transformers
folder, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
def timed(prompt, tokens):
    ids = torch.arange(prompt).remainder(200).add(10).unsqueeze(0)
    begin = time.perf_counter()
    model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens,
                   do_sample=False, pad_token_id=0)
    return time.perf_counter() - begin
with torch.no_grad():
    timed(16, 4)
    one = timed(16, 1)
    print(json.dumps({"write": 63 / (timed(16, 64) - one), "read": 512 / timed(512, 1)}))
"""


def run(command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr[-2000:]}")
    return done.stdout


class Model:
    def __init__(self, options, name, source):
        self.name, self.options = name, options
        self.folder = source if source.is_dir() else None  # for transformers
        self.gguf = options.work / f"{name}.bf16.gguf"
        if not self.gguf.exists():
            run([options.heddle, "export", source, "--to", "gguf", "--type", "bf16", "--out", self.gguf])
        self.source = source if source.is_dir() else self.gguf

    def heddle(self, prompts, tokens, *more):
        """The texts of some prompts, each given by its number of words."""
        with tempfile.TemporaryDirectory() as work:
            path = Path(work) / "prompts.jsonl"
            path.write_text("".join(json.dumps(p) + "\n" for p in prompts))
            told = json.loads(run([self.options.heddle, "generate", self.source, "--prompts", path, "--tokens", tokens,
                                   "--temperature", "0", "--precision", "bf16", "--no-defaults", "--json", *more],
                                  env=self.options.environment))
        return told["texts"]


def words(model, tokens):
    """A text of about as many tokens: letters, and no spaces for a tokenizer of bytes, which would count them."""
    return (" " if model.folder is None else "").join(chr(97 + i * 7 % 26) for i in range(tokens))


def rate(texts):
    """Tokens a second of writing: all tokens but the first of each, from the first to the last."""
    written = sum(len(t["tokens"]) - 1 for t in texts)
    return written / max(t["seconds"] - t["prompt_seconds"] for t in texts)


def heddle_figures(model):
    short = words(model, 16)
    one = model.heddle([short], TOKENS)
    figures = {"write": rate(one)}
    read = model.heddle([words(model, 512)], 1)[0]
    figures["read"] = read["prompt_tokens"] / read["prompt_seconds"]
    # Together: tokens of all by the time of the longest, prompts left out.
    many = model.heddle([short + chr(97 + i) for i in range(16)], TOKENS, "--batch", 16)
    figures["together"] = rate(many) / figures["write"]
    long = model.heddle([words(model, 7900)], 16)[0]
    step = (long["seconds"] - long["prompt_seconds"]) / max(len(long["tokens"]) - 1, 1)
    figures["long_tokens"] = long["prompt_tokens"]
    figures["long_step"] = step - 1 / figures["write"]
    again = words(model, 60) * 4
    plain, tried = model.heddle([again], TOKENS), model.heddle([again], TOKENS, "--lookup", 4)
    if plain[0]["tokens"] != tried[0]["tokens"]:
        sys.exit("--lookup changed a text")
    figures["lookup"] = rate(tried) / rate(plain)
    return figures


def llama_figures(model):
    told = json.loads(run([model.options.llama / "llama-bench", "-m", model.gguf, "-p", 512, "-n", TOKENS, "-r", 1,
                           "-t", model.options.threads, "-o", "json"]))
    return {("read" if t["n_prompt"] else "write"): t["avg_ts"] for t in told}


def torch_figures(model):
    return json.loads(run([model.options.torch, "-c", RIVAL, model.folder, model.options.threads]).splitlines()[-1])


def measured(options, models):
    all_figures = {}
    for turn in range(options.turns):
        for model in models:
            systems = [("heddle", heddle_figures)]
            if options.llama:
                systems.append(("llama.cpp", llama_figures))
            if options.torch and model.folder:
                systems.append(("transformers", torch_figures))
            for name, figures in systems:
                for key, value in figures(model).items():
                    all_figures.setdefault(model.name, {}).setdefault(name, {}).setdefault(key, []).append(value)
        print(f"turn {turn + 1} of {options.turns}", file=sys.stderr, flush=True)
    return {m: {s: {k: statistics.median(v) for k, v in f.items()} for s, f in of.items()}
            for m, of in all_figures.items()}


def cache_bytes(options, model, tokens):
    """Of keys and values in bf16."""
    told = json.loads(run([options.heddle, "info", model.gguf, "--json"]))["choices"]
    heads = int(told["attention.heads"])
    width = int(told.get("attention.head_width", int(told["width"]) // heads))
    return 2 * int(told["layers"]) * int(told.get("attention.kv_heads", heads)) * width * 2 * tokens


def read_bandwidth(options):
    """Bytes a second that all threads together read from memory."""
    told = json.loads(run([options.heddle, "bench", "roofline", "--quick", "--dtype", "bf16", "--json"],
                          env=options.environment))
    return told["read_bandwidth"]


def print_table(options, models, figures, bandwidth):
    for model in models:
        of = figures[model.name]
        ours = of["heddle"]
        print(f"\n{model.name}, {options.threads} threads, median of {options.turns} turns")
        for system, own in of.items():
            print(f"  {system:13} writes {own['write']:8.1f} tokens/s, reads {own['read']:8.0f}")
        size = model.gguf.stat().st_size
        if bandwidth:
            print(f"  writing reads {ours['write'] * size / 1e9:.1f} GB/s, {ours['write'] * size / bandwidth:.0%} of the "
                  f"bandwidth (wanted: 85 %)")
        for system, bars in (("llama.cpp", (1.3, 2)), ("transformers", (3, 3))):
            if system in of:
                print(f"  over {system}: writing {ours['write'] / of[system]['write']:.2f} (wanted: {bars[0]}), "
                      f"reading {ours['read'] / of[system]['read']:.2f} (wanted: {bars[1]})")
        print(f"  16 texts at once: {ours['together']:.1f} times the tokens of one (wanted: 8)")
        held = cache_bytes(options, model, ours["long_tokens"])
        if ours["long_step"] > 0:
            speed = held / ours["long_step"]
            share = f", {speed / bandwidth:.0%} of the bandwidth (wanted: 70 %)" if bandwidth else ""
            print(f"  attention over {ours['long_tokens']:.0f} keys: {speed / 1e9:.1f} GB/s{share}")
        print(f"  --lookup 4 on a text that repeats itself: {ours['lookup']:.2f} times as fast")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", type=Path, required=True)
    parser.add_argument("--llama", type=Path)
    parser.add_argument("--torch")
    parser.add_argument("--smollm", type=Path)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "measure_generation")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", action="append", choices=("smollm", "gpt2", "llama-1.1b"))
    parser.add_argument("--bandwidth", type=float, help="GB/s that this machine reads; absent: measured")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.environment = dict(os.environ, HEDDLE_THREADS=str(options.threads))
    options.work.mkdir(parents=True, exist_ok=True)
    wanted = options.only or ["smollm", "gpt2", "llama-1.1b"]
    models = []
    if "smollm" in wanted and options.smollm:
        models.append(Model(options, "smollm", options.smollm))
    for name in ("gpt2", "llama-1.1b"):
        folder = options.work / name
        if name in wanted and options.torch:
            if not (folder / "config.json").exists():
                run([options.torch, "-c", PREPARE, name, folder])
            models.append(Model(options, name, folder))
    bandwidth = options.bandwidth * 1e9 if options.bandwidth else read_bandwidth(options)
    figures = measured(options, models)
    print_table(options, models, figures, bandwidth)
    if options.json:
        options.json.write_text(json.dumps({"bandwidth": bandwidth, "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
