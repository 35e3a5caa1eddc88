#!/usr/bin/env python3
"""Text that Heddle writes, against transformers: token for token, on small random models of five families.

    tests/conformance/check_generation.py --heddle build/release/heddle

Greedy decoding, stop strings and beam search are those of `model.generate()`. What is drawn goes through
transformers' own processors of scores, one by one and together, and then meets the random numbers that Heddle
draws with (Philox, by seed and position), so that every token can be told beforehand.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from check_models import byte_tokenizer, random_model
from families import FAMILIES
from transformers import PreTrainedTokenizerFast
from transformers.generation.logits_process import (LogitsProcessorList, MinPLogitsWarper,
                                                    RepetitionPenaltyLogitsProcessor,
                                                    SequenceBiasLogitsProcessor, TemperatureLogitsWarper,
                                                    TopKLogitsWarper, TopPLogitsWarper)

NAMES = ("gpt2", "llama", "qwen3", "gemma2", "gpt_neox")
PROMPTS = ("the moon", "a", "0123456789 and so on")
END = 7
SAMPLING = 0x53414D50  # keeps these random numbers apart from others


class Failed(Exception):
    pass


def philox(seed, stream, op, index):
    c0, c1, c2, c3 = index & 0xFFFFFFFF, index >> 32, stream, op
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1


def unit(seed, position):
    a, b = philox(seed, 0, SAMPLING, position)
    return (((a >> 5) << 26) | (b >> 6)) * 2.0**-53


class Written(LogitsProcessorList):
    """Presence and frequency penalties, which transformers does not have, as others define them."""

    def __init__(self, prompt, presence, frequency):
        super().__init__()
        self.prompt, self.presence, self.frequency = prompt, presence, frequency

    def __call__(self, ids, scores):
        counts = torch.bincount(ids[0, self.prompt:], minlength=scores.shape[1]).to(scores.dtype)
        return scores - self.presence * (counts > 0) - self.frequency * counts


def processors(options, prompt):
    chain = []
    if "logit-bias" in options:
        token, bias = options["logit-bias"].split("=")
        chain.append(SequenceBiasLogitsProcessor([[[int(token)], float(bias)]]))
    if "repetition-penalty" in options:
        chain.append(RepetitionPenaltyLogitsProcessor(options["repetition-penalty"]))
    if "presence-penalty" in options or "frequency-penalty" in options:
        chain.append(Written(prompt, options.get("presence-penalty", 0), options.get("frequency-penalty", 0)))
    if options.get("temperature", 1.0) not in (0, 1.0):
        chain.append(TemperatureLogitsWarper(options["temperature"]))
    if "top-k" in options:
        chain.append(TopKLogitsWarper(options["top-k"]))
    if "top-p" in options:
        chain.append(TopPLogitsWarper(options["top-p"]))
    if "min-p" in options:
        chain.append(MinPLogitsWarper(options["min-p"]))
    return chain


SETS = [{}, {"temperature": 0.6}, {"temperature": 1.7}, {"top-k": 7}, {"top-p": 0.6}, {"min-p": 0.3},
        {"repetition-penalty": 1.6}, {"presence-penalty": 1.5}, {"frequency-penalty": 0.8},
        {"logit-bias": "65=2.5"}, {"logit-bias": "65=-3"},
        {"temperature": 0.8, "top-k": 40, "top-p": 0.9, "min-p": 0.05, "repetition-penalty": 1.2,
         "presence-penalty": 0.3, "frequency-penalty": 0.2, "logit-bias": "97=1.5"},
        {"temperature": 0, "repetition-penalty": 2.0, "frequency-penalty": 0.5}]


@torch.no_grad()
def drawn(model, prompt, options, seed, count):
    ids, written = list(prompt), []
    chain = processors(options, len(prompt))
    for _ in range(count):
        scores = model(torch.tensor([ids])).logits[:, -1].float()
        for process in chain:
            scores = process(torch.tensor([ids]), scores)
        p = torch.softmax(scores[0].double(), 0)
        sums = torch.cumsum(p, 0)
        token = (int(p.argmax()) if options.get("temperature") == 0
                 else int(torch.searchsorted(sums, unit(seed, len(ids)) * float(sums[-1]), right=True)))
        if token == END:
            break
        ids.append(token)
        written.append(token)
    return written


def heddle(program, folder, prompt, *options):
    done = subprocess.run([program, "generate", str(folder), "--prompt", prompt, "--json", *map(str, options)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(done.stderr)
    return json.loads(done.stdout)


def same(what, ours, theirs):
    if ours != theirs:
        raise Failed(f"{what}: Heddle {ours}, transformers {theirs}")


def judge_drawing(a, name, model, folder, tokenizer):
    count = 0
    for options in SETS:
        flags = [word for key, value in options.items() for word in (f"--{key}", value)]
        for seed, text in enumerate(PROMPTS):
            prompt = tokenizer(text, add_special_tokens=False).input_ids
            ours = heddle(a.heddle, folder, text, "--tokens", a.tokens, "--seed", seed, *flags)["tokens"]
            same(f"{name} {flags} seed {seed}", ours, drawn(model, prompt, options, seed, a.tokens))
            count += 1
    return count


def written(model, prompt, **options):
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                         do_sample=False, pad_token_id=0, **options)[0, len(prompt):].tolist()
    return out


def judge_search(a, name, model, folder, tokenizer):
    """Greedy decoding, stop strings, and beams where no hypothesis ends before the longest length."""
    for text in PROMPTS:
        prompt = tokenizer(text, add_special_tokens=False).input_ids
        theirs = written(model, prompt, max_new_tokens=a.tokens, eos_token_id=END)
        theirs = theirs[:theirs.index(END)] if END in theirs else theirs
        ours = heddle(a.heddle, folder, text, "--tokens", a.tokens, "--temperature", 0)
        same(f"{name} greedy", ours["tokens"], theirs)
        whole = ours["text"]
        stop = whole[4:6]
        # transformers also stops at a string that begins in the prompt.
        if len(whole) > 6 and "\ufffd" not in stop and (text + whole).index(stop) >= len(text):
            ended = written(model, prompt, max_new_tokens=a.tokens, stop_strings=[stop], tokenizer=tokenizer)
            ours = heddle(a.heddle, folder, text, "--tokens", a.tokens, "--temperature", 0, "--stop", stop)
            same(f"{name} --stop", ours["tokens"], ended)
            same(f"{name} --stop", ours["text"], whole[:whole.index(stop)])
    for beam in (2, 4):
        theirs = written(model, prompt, max_new_tokens=12, num_beams=beam, early_stopping="never",
                         eos_token_id=None, length_penalty=1.0)
        ours = heddle(a.heddle, folder, text, "--tokens", 12, "--beam", beam)
        if ours["finish"] == "length":
            same(f"{name} --beam {beam}", ours["tokens"], theirs)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--heddle", required=True)
    arguments.add_argument("--tokens", type=int, default=16)
    arguments.add_argument("--only", choices=NAMES)
    a = arguments.parse_args()
    torch.set_num_threads(1)
    failures = 0
    for family in [f for f in FAMILIES if f.name in NAMES and a.only in (None, f.name)]:
        with tempfile.TemporaryDirectory() as work:
            folder = Path(work)
            model = random_model(family, dict(vocab_size=257, eos_token_id=END))
            model.save_pretrained(folder)
            (folder / "generation_config.json").unlink(missing_ok=True)
            byte_tokenizer(folder)
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
            try:
                judge_search(a, family.name, model, folder, tokenizer)
                count = judge_drawing(a, family.name, model, folder, tokenizer)
                print(f"{family.name}: greedy, stop strings, beams and {count} drawn texts: same tokens", flush=True)
            except Failed as failed:
                failures += 1
                print(f"{family.name}: {failed}", flush=True)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
