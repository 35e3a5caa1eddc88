#!/usr/bin/env python3
"""Heddle's tokenizers against Hugging Face's `tokenizers`: both directions, ids and text.

    make conformance PYTHON=python-with-tokenizers
    tests/conformance/check_tokenizers.py --heddle build/release/heddle [--golden FILE] TEXT...

For every kind of tokenizer trained by Heddle on the texts: its tokenizer.json is loaded there, and
must encode and decode the texts, and random Unicode, as Heddle does. Byte-level BPE trained there is
loaded by Heddle and must do the same, and Heddle's own training must find the same merges.

--golden writes (text, ids) pairs of a tokenizer that was trained there, for src/text/test_golden.cpp.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIALS = {"pad": "<pad>", "begin": "<s>", "end": "</s>", "unknown": "<unk>", "mask": "<mask>"}
# Characters that the rules treat differently; the random texts are full of them.
TRICKY = ("'s 't 're 've 'm 'll 'd 'S ' '' \u2019s  \n\n \t\r\n\u00a0\u3000\u2028\u0085\u200b "
          "<s></s><pad> <unk <mask> 12 \u00b2\u00bd\u2167 a\u0301e\u0308 \u4e2d\u6587 "
          "\u0939\u093f\u0928 \U0001f600\U0001f468\u200d\U0001f469 \x00\x1f\x7f \uffff\U0010ffff")


class Failed(Exception):
    pass


class Heddle:
    def __init__(self, program):
        self.program = program

    def run(self, *args, data=b""):
        done = subprocess.run([self.program, *map(str, args)], input=data, capture_output=True)
        if done.returncode != 0:
            raise Failed(f"heddle {' '.join(map(str, args))}: {done.stderr.decode()}")
        return done.stdout

    def train(self, spec, out, texts, specials=()):
        option = ["--specials", ",".join(specials)] if specials else []
        self.run("tokenizer", "train", "--spec", spec, "--out", out, *option, *texts)

    def encode(self, file, text):
        return json.loads(self.run("tokenize", file, "--whole", data=text.encode()))

    def encode_lines(self, file, lines):
        data = "".join(line + "\n" for line in lines).encode()
        return [json.loads(line) for line in self.run("tokenize", file, data=data).splitlines()]

    def decode(self, file, ids):
        return self.run("tokenize", file, "--decode", "--whole", data=json.dumps(ids).encode())


def read_text(path):
    return Path(path).read_bytes().decode()  # newlines as they are


def random_text(draw, length):
    """Half of it from the tricky characters, the rest from everywhere."""
    out = []
    for _ in range(length):
        kind = draw.random()
        if kind < 0.5:
            at = draw.randrange(len(TRICKY))
            out.append(TRICKY[at:at + draw.randint(1, 4)])
        elif kind < 0.75:
            out.append(chr(draw.randrange(32, 127)))
        elif kind < 0.9:
            out.append(chr(draw.choice((draw.randrange(0x80, 0x3000), draw.randrange(0xE000, 0x110000)))))
        else:
            out.append(chr(draw.randrange(0x3000, 0xD800)))
    return "".join(out)


def random_texts(seed, count):
    draw = random.Random(seed)
    return [random_text(draw, draw.choice((1, 3, 10, 60, 400))) for _ in range(count)]


def every_character():
    """All code points, each between two letters, so that each decides about two cuts."""
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    return ["".join(f"a{chr(c)}b {chr(c)}1" for c in points[i:i + 4096])
            for i in range(0, len(points), 4096)]


def same(what, text, ours, theirs):
    if ours == theirs:
        return
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    raise Failed(f"{what}: differs at {at}: Heddle {ours[at:at + 8]}, tokenizers {theirs[at:at + 8]}, "
                 f"in {text[:200]!r}")


def check_file(heddle, name, file, texts, joined=None):
    """The tokenizer.json means the same to both. `joined` is what the text looks like once decoded,
    where that is not the text itself."""
    theirs = Tokenizer.from_file(str(file))
    for text in texts:
        expected = theirs.encode(text).ids
        same(name, text, heddle.encode(file, text), expected)
        decoded = theirs.decode(expected, skip_special_tokens=False)
        if decoded != (joined(text) if joined else text):
            raise Failed(f"{name}: tokenizers does not give {text[:200]!r} back")
        same(name + ", decoded", text, heddle.decode(file, expected).decode(), decoded)
    lines = [line for text in texts for line in text.split("\n")][:20000]
    for line, ids in zip(lines, heddle.encode_lines(file, lines)):
        same(name + ", by lines", line, ids, theirs.encode(line).ids)
    print(f"{name}: {theirs.get_vocab_size()} tokens, {len(texts)} texts, {len(lines)} lines: same ids")


def byte_level_bpe(texts, size, specials=(), prefix_space=False, alphabet=True):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, special_tokens=list(specials), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [])
    tokenizer.train_from_iterator([read_text(t) for t in texts], trainer)
    return tokenizer


def check_ours(heddle, folder, files, texts):
    everything = ["pad", "begin", "end", "unknown", "mask"]
    for spec, specials in (("byte", []), ("byte", everything), ("bpe:256", []), ("bpe:400", everything),
                           ("bpe:8192", []), ("bpe:8192", ["begin", "end"])):
        file = folder / "ours.json"
        heddle.train(spec, file, files, specials)
        check_file(heddle, f"{spec} {','.join(specials)}", file, texts)
    heddle.train("bpe:1000", folder / "ours.json", files)
    check_file(heddle, "bpe:1000, every character", folder / "ours.json", every_character())
    texts = [text[:50_000] for text in texts]  # tokenizers is slow where each character is a word
    # Every character of the texts is known; unknown ones become <unk>.
    all_texts = folder / "all.txt"
    all_texts.write_bytes("".join(texts).encode())
    heddle.train("char", folder / "char.json", [all_texts], ["begin", "pad", "end", "mask"])
    check_file(heddle, "char", folder / "char.json", texts)
    heddle.train("char", folder / "char.json", files, ["unknown"])
    check_ids(heddle, "char with <unk>", folder / "char.json", texts)
    heddle.train("word", folder / "word.json", files, everything)
    check_ids(heddle, "word", folder / "word.json", texts)


def check_ids(heddle, name, file, texts):
    """As check_file(), for tokenizers that do not give every text back."""
    theirs = Tokenizer.from_file(str(file))
    for text in texts:
        ids = theirs.encode(text).ids
        same(name, text, heddle.encode(file, text), ids)
        same(name + ", decoded", text, heddle.decode(file, ids).decode(),
             theirs.decode(ids, skip_special_tokens=False))
    print(f"{name}: {theirs.get_vocab_size()} tokens, {len(texts)} texts: same ids")


def check_theirs(heddle, folder, files, texts):
    for size, specials in ((300, ()), (5000, tuple(SPECIALS.values())), (5000, ("<|endoftext|>",))):
        file = folder / "theirs.json"
        byte_level_bpe(files, size, specials).save(str(file))
        check_file(heddle, f"theirs, {size} {' '.join(specials)}", file, texts)
    file = folder / "theirs.json"
    byte_level_bpe(files, 1000, prefix_space=True).save(str(file))
    check_ids(heddle, "theirs, with a space in front", file, texts)


def check_training(heddle, folder, files):
    for size in (257, 300, 1000, 8192, 20000):
        theirs = json.loads(byte_level_bpe(files, size).to_str())["model"]
        heddle.train(f"bpe:{size}", folder / "trained.json", files)
        ours = json.loads((folder / "trained.json").read_text())["model"]
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in theirs["merges"]]
        same(f"merges of {size}", "", ours["merges"], merges)
        if ours["vocab"] != theirs["vocab"]:
            raise Failed(f"vocabulary of {size}: differs")
        print(f"training to {size} tokens: the same {len(merges)} merges")


def write_golden(path, files):
    """A small tokenizer that was trained there, and what it makes of some texts."""
    tokenizer = byte_level_bpe(files, 400, ("<s>", "</s>"))
    texts = ["", "In the beginning God created the heaven and the earth.\n", TRICKY, "a" * 100,
             "   three\n\n\nlines\t\tand\u00a0more  ", "we'll they've I'M can't '' 'tis",
             *random_texts(7, 24)]
    document = {"tokenizer": json.loads(tokenizer.to_str()),
                "cases": [{"text": t, "ids": tokenizer.encode(t).ids} for t in texts]}
    Path(path).write_text(json.dumps(document, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(f"{path}: {len(texts)} cases")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--golden", help="write the file of src/text/test_golden.cpp, and nothing else")
    parser.add_argument("text", nargs="+", help="real texts, UTF-8")
    args = parser.parse_args()
    if args.golden:
        write_golden(args.golden, args.text)
        return 0
    heddle = Heddle(args.heddle)
    real = [read_text(t)[:1_000_000] for t in args.text]
    texts = ["", *real, *random_texts(1, 150)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            check_training(heddle, Path(folder), args.text)
            check_ours(heddle, Path(folder), args.text, texts)
            check_theirs(heddle, Path(folder), args.text, texts)
    except Failed as failure:
        print(f"FAILED {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
