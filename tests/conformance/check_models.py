#!/usr/bin/env python3
"""Small random models of every family, saved by transformers: Heddle's scores against theirs.

    check_models.py --heddle PROGRAM [--only FAMILY] [--keep DIRECTORY]

For each configuration the logits of random tokens in float32 must agree to 1e-4 of their size, and
the greedy continuation token for token, cached and not. Exits with 1 when one does not.
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
from tokenizers import Tokenizer, models, pre_tokenizers, decoders

from families import FAMILIES

TOLERANCE = 1e-4
VOCABULARY = 259  # larger than the tokenizer's


def byte_tokenizer(folder):
    """A tokenizer of 256 bytes: what text it reads is not what is judged here."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))


def random_model(family, options):
    """A model of the family whose weights are large enough for scores to differ."""
    config = getattr(transformers, family.config)(**{**family.defaults, **options})
    torch.manual_seed(7)
    model = getattr(transformers, family.model)(config)
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() < 2:
                parameter.add_(0.2 * noise)
            else:
                parameter.copy_(noise * (1.2 / parameter.shape[-1] ** 0.5))
    return model.eval()


def heddle(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def judge_logits(program, folder, model, tokens):
    file = folder / "logits.npy"
    heddle(program, "logits", folder, "--tokens", ",".join(map(str, tokens)), "--npy", file)
    ours = numpy.load(file)
    with torch.no_grad():
        theirs = model(torch.tensor([tokens])).logits[0].float().numpy()
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, theirs {theirs.shape}"
    error = float(numpy.abs(ours - theirs).max() / numpy.sqrt((theirs**2).mean()))
    return None if error <= TOLERANCE else f"logits differ by {error:.2e}"


def judge(program, family, options, folder):
    model = random_model(family, options)
    model.save_pretrained(folder)
    byte_tokenizer(folder)
    generator = numpy.random.default_rng(5)
    for length in (1, 7, 40):
        tokens = generator.integers(0, VOCABULARY, length).tolist()
        complaint = judge_logits(program, folder, model, tokens)
        if complaint:
            return f"{length} tokens: {complaint}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="directory for models that differ")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    bad = judged = 0
    for family in FAMILIES:
        if options.only and options.only != family.name:
            continue
        for changed in [{}, *family.variants]:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(options.keep or temporary) / family.name
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    complaint = judge(options.heddle, family, changed, folder)
                except RuntimeError as error:
                    complaint = str(error)
            judged += 1
            bad += complaint is not None
            print(f"{family.name:12} {json.dumps(changed)}: {complaint or 'same'}", flush=True)
            if complaint and options.keep:
                return 1
    print(f"{judged} configurations, {bad} differ")
    return 1 if bad or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
