#!/usr/bin/env python3
"""Small random models of every family, saved by transformers: Heddle's scores against theirs.

    check_models.py --heddle PROGRAM [--only FAMILY] [--keep DIRECTORY]

For each configuration the logits of random tokens must agree to 1e-4 of their size in float32, with
weights in float32 and in bfloat16, and to 1e-9 in float64. Language models write the same tokens as
transformers, greedily, with a cache and without, one text and several at a time. Of encoders without
a head it is the vectors of texts or images, by both ways of pooling, many at a time and one by one,
which must have the same bits. Exits with 1 when something differs.
"""

import argparse
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, decoders, processors

import exact
import images
import mxfp4
import seq2seq
from families import FAMILIES

TOLERANCE = {"fp32": 1e-4, "fp64": 1e-9}
LIMIT = 16  # tokens that are written
PROMPTS = ["A", "the thick thread", "x1 = 2; y"]
worst = {}  # of each family and precision
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
    for own in ("image", "mxfp4"):  # no keys of a configuration
        chosen.pop(own, None)
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


def scores_of(program, path, model, tokens, precision="fp32"):
    """Ours and theirs."""
    file = (path if path.is_dir() else path.parent) / "logits.npy"
    heddle(program, "logits", path, "--tokens", ",".join(map(str, tokens)), "--npy", file,
           "--precision", precision)
    with torch.no_grad():
        made = model(torch.tensor([tokens]))
    logits = made.prediction_logits if "prediction_logits" in made else made.logits
    return numpy.load(file), numpy.atleast_2d(logits[0].numpy())


def judge_logits(program, path, model, tokens, precision="fp32"):
    return complaint_of(*scores_of(program, path, model, tokens, precision), "logits", precision)


def complaint_of(ours, theirs, what, precision="fp32"):
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, theirs {theirs.shape}"
    error = float(numpy.abs(ours - theirs).max() / numpy.sqrt((theirs.astype(float)**2).mean()))
    worst[precision] = max(worst.get(precision, 0.0), error)
    return None if error <= TOLERANCE[precision] else f"{what} differ by {error:.2e} in {precision}"


def vectors_of(model, tokenizer, pool):
    """The last layer's vectors of a text, one text at a time."""
    rows = []
    for text in TEXTS:
        with torch.no_grad():
            states = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0]
        rows.append((states.mean(0) if pool == "mean" else states[0]).numpy())
    return numpy.stack(rows)


def judge_vectors(program, folder, model, tokenizer, precision):
    file, lines = (folder if folder.is_dir() else folder.parent) / "vectors.npy", "".join(text + "\n" for text in TEXTS)
    for pool in ("mean", "class"):
        many = []
        for batch in (1, 4, 64):
            heddle(program, "embed", folder, "--pool", pool, "--batch", batch, "--npy", file,
                   "--precision", precision, given=lines)
            many.append(numpy.load(file))
        complaint = complaint_of(many[0], vectors_of(model, tokenizer, pool), pool + " vectors",
                                 precision)
        if complaint:
            return complaint
        if any((other != many[0]).any() for other in many):
            return f"{pool} vectors depend on the texts beside them"
    return None


def judge_scores(program, family, folder, model, precision, lengths):
    generator = numpy.random.default_rng(5)
    for length in lengths:
        tokens = generator.integers(0, VOCABULARY, length)
        tokens = numpy.where(numpy.isin(tokens, family.never), 7, tokens).tolist()
        complaint = judge_logits(program, folder, model, tokens, precision)
        if complaint:
            return f"{length} tokens: {complaint}"
    return None


def judge_texts(program, folder, model, tokenizer):
    """Greedy texts: with a cache, without, and two at a time."""
    file = folder / "prompts.jsonl"
    file.write_text("".join(json.dumps(prompt) + "\n" for prompt in PROMPTS))
    theirs = []
    unknown = list(range(tokenizer.get_vocab_size(), VOCABULARY))
    for prompt in PROMPTS:
        ids = tokenizer.encode(prompt).ids
        with torch.no_grad():
            written = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=LIMIT,
                                     suppress_tokens=unknown, pad_token_id=0,
                                     # Their cache of a window of one token keeps all of them.
                                     use_cache=getattr(model.config, "sliding_window", None) != 1)
        theirs.append(written[0, len(ids):].tolist())
    for way in ([], ["--no-cache"], ["--samples", 2]):
        told = json.loads(heddle(program, "generate", folder, "--prompts", file, "--temperature", 0,
                                 "--tokens", LIMIT, "--json", *way))
        for text, tokens in zip(told["texts"], theirs):
            for sample in text.get("samples", [text]):
                if sample["tokens"] != tokens:
                    return f"greedy {way}: {sample['tokens']}, theirs {tokens}"
    return None


def in_all_precisions(model, judged):
    """The first complaint of `judged(model, precision)`, in float32 and in float64."""
    complaint = judged(model, "fp32")
    if complaint:
        return complaint
    with exact.float64():
        return judged(exact.copy_of(model), "fp64")


def judge_rounded(program, family, folder, model):
    """Weights in bfloat16, which count as the float32 numbers that they are."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16().float())
    copy.deepcopy(model).bfloat16().save_pretrained(folder)  # that rounds angles too
    return judge_scores(program, family, folder, model, "fp32", (40,))


def judge(program, family, options, folder):
    model = random_model(family, options)
    if family in seq2seq.FAMILIES:
        return seq2seq.judge(heddle, complaint_of, in_all_precisions, program, family, options, model,
                             folder)
    if options.get("mxfp4"):
        mxfp4.save(model, folder)
    else:
        model.save_pretrained(folder)
    if hasattr(model.config, "patch_size"):
        return in_all_precisions(model, lambda own, precision: images.judge(
            heddle, complaint_of, program, folder, own, options, precision))
    encoder = not model.can_generate()
    tokenizer = byte_tokenizer(folder, encoder)
    if encoder and type(model).__name__.endswith("Model"):
        return in_all_precisions(model, lambda own, precision: judge_vectors(
            program, folder, own, tokenizer, precision))
    complaint = in_all_precisions(model, lambda own, precision: judge_scores(
        program, family, folder, own, precision, (1, 7, 40)))
    if complaint or options.get("mxfp4"):
        return complaint
    if not encoder:
        complaint = judge_texts(program, folder, model, tokenizer)
    return complaint or judge_rounded(program, family, folder, model)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="directory for models that differ")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    bad = judged = 0
    errors = []
    for family in FAMILIES + seq2seq.FAMILIES:
        if options.only and options.only != family.name:
            continue
        worst.clear()
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
        errors.append(f"{family.name:12} worst error " +
                      ", ".join(f"{error:.1e} in {p}" for p, error in sorted(worst.items())))
    print("\n".join(errors))
    print(f"{judged} configurations, {bad} differ")
    return 1 if bad or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
