#!/usr/bin/env python3
"""Small random models of every family, saved by transformers: Heddle's scores against theirs.

    check_models.py --heddle PROGRAM [--only FAMILY] [--keep DIRECTORY]

For each configuration the logits of random tokens in float32 must agree to 1e-4 of their size. Of
encoders without a head it is the vectors of texts, by both ways of pooling, many texts at a time and
one by one, which must have the same bits. Exits with 1 when something differs.
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
from tokenizers import Tokenizer, models, pre_tokenizers, decoders, processors

import seq2seq
from families import FAMILIES

TOLERANCE = 1e-4
VOCABULARY = 259  # larger than the tokenizer's
CLASS, SEPARATOR, MASK = 256, 257, 258  # of encoders
TEXTS = ["a", "", "Some words, and some more.", "ünïcödé and 漢字", "x" * 40, "two  spaces "]


def byte_tokenizer(folder, encoder=False):
    """A tokenizer of 256 bytes and one merge: what text it reads is not what is judged here."""
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *([] if encoder else ["th"])]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    merges = [] if encoder else [("t", "h")]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if encoder:
        tokenizer.add_special_tokens(["[CLS]", "[SEP]", "[MASK]"])
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", CLASS), ("[SEP]", SEPARATOR)])
        names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
        (folder / "tokenizer_config.json").write_text(json.dumps(names))
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def random_model(family, options):
    """A model of the family whose weights are large enough for scores to differ."""
    chosen = {**family.defaults, **options}
    kind = chosen.pop("model", family.model)
    config = getattr(transformers, family.config)(**chosen)
    torch.manual_seed(7)
    model = getattr(transformers, kind)(config)
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() < 2:
                parameter.add_(0.2 * noise)
            else:
                parameter.copy_(noise * (1.2 / parameter.shape[-1] ** 0.5))
    return model.eval()


def heddle(program, *arguments, given=None):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                          input=given)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def judge_logits(program, path, model, tokens):
    file = (path if path.is_dir() else path.parent) / "logits.npy"
    heddle(program, "logits", path, "--tokens", ",".join(map(str, tokens)), "--npy", file)
    ours = numpy.load(file)
    with torch.no_grad():
        made = model(torch.tensor([tokens]))
    logits = made.prediction_logits if "prediction_logits" in made else made.logits
    theirs = numpy.atleast_2d(logits[0].float().numpy())
    return complaint_of(ours, theirs, "logits")


def complaint_of(ours, theirs, what):
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, theirs {theirs.shape}"
    error = float(numpy.abs(ours - theirs).max() / numpy.sqrt((theirs**2).mean()))
    return None if error <= TOLERANCE else f"{what} differ by {error:.2e}"


def vectors_of(model, tokenizer, pool):
    """The last layer's vectors of a text, one text at a time."""
    rows = []
    for text in TEXTS:
        with torch.no_grad():
            states = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0]
        rows.append((states.mean(0) if pool == "mean" else states[0]).numpy())
    return numpy.stack(rows)


def judge_vectors(program, folder, model, tokenizer):
    file, lines = folder / "vectors.npy", "".join(text + "\n" for text in TEXTS)
    for pool in ("mean", "class"):
        many = []
        for batch in (1, 4, 64):
            heddle(program, "embed", folder, "--pool", pool, "--batch", batch, "--npy", file,
                   given=lines)
            many.append(numpy.load(file))
        complaint = complaint_of(many[0], vectors_of(model, tokenizer, pool), pool + " vectors")
        if complaint:
            return complaint
        if any((other != many[0]).any() for other in many):
            return f"{pool} vectors depend on the texts beside them"
    return None


def judge(program, family, options, folder):
    model = random_model(family, options)
    if family in seq2seq.FAMILIES:
        return seq2seq.judge(heddle, program, family, options, model, folder)
    model.save_pretrained(folder)
    encoder = not model.can_generate()
    tokenizer = byte_tokenizer(folder, encoder)
    if encoder and type(model).__name__.endswith("Model"):
        return judge_vectors(program, folder, model, tokenizer)
    generator = numpy.random.default_rng(5)
    for length in (1, 7, 40):
        tokens = generator.integers(0, VOCABULARY, length)
        tokens = numpy.where(numpy.isin(tokens, family.never), 7, tokens).tolist()
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
    for family in FAMILIES + seq2seq.FAMILIES:
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
