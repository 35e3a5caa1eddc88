#!/usr/bin/env python3
"""Tokenizers of others, read by Heddle, against the packages that they are of.

    make conformance PYTHON=python-with-tokenizers-and-sentencepiece
    tests/conformance/check_pretrained_tokenizers.py --heddle build/release/heddle TEXT... [--also PATH...]

Trains small tokenizers of every family on the texts, with `tokenizers` and with `sentencepiece`, and
compares ids (with special tokens recognised and as plain text) and decoded text over many strings.
--also takes what models were published with: a tokenizer.json, judged by `tokenizers`, or a directory
with a tokenizer.model, judged by `sentencepiece`.
"""

import argparse
import io
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "llama3": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + REST,
    "qwen2": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + REST,
    "o200k": (rf"[^\r\n\p{{L}}\p{{N}}]?{CASED[0]}*{CASED[1]}+{CONTRACTIONS}?"
              rf"|[^\r\n\p{{L}}\p{{N}}]?{CASED[0]}+{CASED[1]}*{CONTRACTIONS}?|\p{{N}}{{1,3}}"
              r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
    "other": r"\p{N}{1,3}(?=(?:\p{N}{3})*\b)|\p{L}+|[^\p{L}\p{N}]+",
}
WORDS = ("the quick Brown fox don't we'LL I'M they've 123 4567 89012 x=y+z; def foo(bar): http://a.b/c?d=e "
         "<s> </s> [CLS] <|end|> \u2581 na\u00efve \ufb01 \u00bd \u01c5 \u0130stanbul stra\u00dfe "
         "\u03b1\u03b2\u03b3 \u041f\u0440\u0438\u0432\u0435\u0442 \u05e9\u05dc\u05d5\u05dd "
         "\u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 \u0e44\u0e17\u0e22 "
         "\u4f60\u597d\u4e16\u754c \u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4 "
         "\U0001f44d\U0001f3fd \U0001f469\u200d\U0001f467 e\u0301 a\u0308\u0323 'ſ \u200b \u2028 "
         "CamelCase HTTPServer snake_case O'Neil's \u2167 \u0663\u0664 \U0001d49c\U00020bb7").split(" ")
GAPS = [" ", " ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u00a0", "\u3000", "", ""]


class Failed(Exception):
    pass


def heddle(program, path, *options, data):
    done = subprocess.run([program, "tokenize", str(path), *options], input=data, capture_output=True)
    if done.returncode != 0:
        raise Failed(f"heddle tokenize {path}: {done.stderr.decode()}")
    return done.stdout


def strings(count, specials):
    draw = random.Random(1)
    out = []
    for i in range(count):
        words = WORDS if i % 3 else WORDS + list(specials) * 4
        text = "".join(draw.choice(words) + draw.choice(GAPS) for _ in range(draw.randint(1, 12)))
        if i % 5 == 0:
            text += "".join(chr(draw.choice((draw.randrange(32, 0x3000), draw.randrange(0x3000, 0xD800),
                                             draw.randrange(0xE000, 0x20000)))) for _ in range(20))
        out.append(text)
    return out


def compare(program, name, path, texts, expected, *options):
    """One process for all texts without ends of lines; one for each of some of the others."""
    lines = [i for i, text in enumerate(texts) if isinstance(text, str) and "\n" not in text]
    answer = heddle(program, path, *options, data="".join(texts[i] + "\n" for i in lines).encode())
    found = dict(zip(lines, map(json.loads, answer.splitlines())))
    for i in [i for i in range(len(texts)) if i not in found][:80]:
        data = texts[i] if isinstance(texts[i], bytes) else texts[i].encode()
        found[i] = json.loads(heddle(program, path, "--whole", *options, data=data))
    for i, ids in found.items():
        if ids != expected(texts[i]):
            raise Failed(f"{name} {' '.join(options)}: {texts[i]!r}: Heddle {ids}, expected {expected(texts[i])}")
    print(f"{name} {' '.join(options)}: {len(found)} texts: same ids")


def check_json(program, name, path, count):
    theirs = Tokenizer.from_file(str(path))
    theirs.no_padding()
    theirs.no_truncation()
    texts = strings(count, [token.content for token in theirs.get_added_tokens_decoder().values()])
    compare(program, name, path, texts, lambda text: theirs.encode(text, add_special_tokens=False).ids)
    if json.loads(Path(path).read_text())["model"]["type"] != "Unigram":  # its model finds special names
        theirs.encode_special_tokens = True
        compare(program, name, path, texts,
                lambda text: theirs.encode(text, add_special_tokens=False).ids, "--plain")
        theirs.encode_special_tokens = False
    for text in texts[:30]:
        ids = theirs.encode(text, add_special_tokens=False).ids
        ours = heddle(program, path, "--decode", "--whole", data=json.dumps(ids).encode())
        if ours.decode("utf-8", "replace") != theirs.decode(ids, skip_special_tokens=False):
            raise Failed(f"{name}: {ids} decoded: {ours}")


def spm_texts(count):
    """Also long runs, where several cuts are equally good, user defined pieces, and bytes that are no UTF-8."""
    draw = random.Random(2)
    runs = [c * n for c in "a e=-. 0#x\u00e9\u4e00\u3042_" for n in (3, 17, 100, 333, 1000)]
    symbols = ["<sep>", "<sep><sep>", " <sep> ", "<tool>x", "a <tool> b", "x<sep>", "<sep>  <tool>"]
    broken = [bytes(draw.choice((97, 32, 0x80, 0xC3, 0xE4, 0xB8, 0xF0, 0xFF, 0xED, 0xA0, 60)) for _ in range(n))
              for n in range(1, 31)]
    return broken + symbols + runs + [t for t in strings(count, ["<sep>", "<tool>"]) if "\0" not in t]


def check_spm(program, name, directory, count):
    model = sentencepiece.SentencePieceProcessor(model_file=str(directory / "tokenizer.model"))
    compare(program, name, directory, spm_texts(count), lambda text: model.encode(text, out_type=int), "--plain")


def check_marian(program, texts, directory, count):
    """The ids of the source's pieces are those of another file, in which some have none."""
    sides = {}
    for side, size in (("source", 1200), ("target", 900)):
        sentencepiece.SentencePieceTrainer.train(
            input=",".join(map(str, texts)), model_prefix=str(directory / side), vocab_size=size, minloglevel=2,
            model_type="unigram", character_coverage=0.995)
        (directory / (side + ".model")).rename(directory / (side + ".spm"))
        sides[side] = sentencepiece.SentencePieceProcessor(model_file=str(directory / (side + ".spm")))
    names = {s.id_to_piece(i) for s in sides.values() for i in range(3, s.get_piece_size()) if i % 97}
    names = ["</s>", "<unk>", *sorted(names), "<pad>"]
    ids = {name: i for i, name in enumerate(names)}
    (directory / "vocab.json").write_text(json.dumps(ids))
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    plain = [t for t in spm_texts(count) if not (isinstance(t, bytes) and b"<" in t)]
    compare(program, "marian", directory, plain,
            lambda text: [ids.get(piece, ids["<unk>"]) for piece in sides["source"].encode(text, out_type=str)],
            "--plain")


def trained(texts, model, trainer, normalizer=None, splitter=None, decoder=None):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer or normalizers.Sequence([]), splitter
    tokenizer.decoder = decoder
    tokenizer.train([str(text) for text in texts], trainer)
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    return tokenizer


def families(texts):
    specials = ["<unk>", "<s>", "</s>", "<|end|>"]
    byte = decoders.ByteLevel()
    for name, pattern in PATTERNS.items():
        splitter = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        trainer = trainers.BpeTrainer(vocab_size=4000, special_tokens=specials, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        yield name, trained(texts, models.BPE(), trainer, normalizers.NFC(), splitter, byte)
    bert = trained(texts, models.WordPiece(unk_token="[UNK]"),
                   trainers.WordPieceTrainer(vocab_size=4000, special_tokens=["[UNK]", "[CLS]", "[SEP]"],
                                             show_progress=False),
                   normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece())
    bert.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    yield "bert", bert
    yield "unigram", trained(texts, models.Unigram(),
                             trainers.UnigramTrainer(vocab_size=3000, special_tokens=specials, unk_token="<unk>",
                                                     show_progress=False),
                             normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
                             pre_tokenizers.Metaspace(), decoders.Metaspace())


def sentencepieces(texts):
    common = {"input": ",".join(map(str, texts)), "minloglevel": 2, "character_coverage": 0.995,
              "user_defined_symbols": ["<sep>", "<tool>"]}
    plain = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    yield "LlamaTokenizer", {**common, **plain, "model_type": "bpe", "vocab_size": 3000, "byte_fallback": True}
    yield "LlamaTokenizer", {**common, "model_type": "bpe", "vocab_size": 3000}
    yield "T5Tokenizer", {**common, "model_type": "unigram", "vocab_size": 3000}
    yield "T5Tokenizer", {**common, **plain, "model_type": "unigram", "vocab_size": 3000, "byte_fallback": True}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--also", nargs="*", default=[], type=Path)
    parser.add_argument("texts", nargs="+", type=Path)
    args = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, tokenizer in families(args.texts):
                path = Path(folder, name + ".json")
                tokenizer.save(str(path))
                check_json(args.heddle, name, path, args.count)
            for i, (kind, options) in enumerate(sentencepieces(args.texts)):
                directory = Path(folder, f"spm{i}")
                directory.mkdir()
                model = io.BytesIO()
                sentencepiece.SentencePieceTrainer.train(model_writer=model, **options)
                (directory / "tokenizer.model").write_bytes(model.getvalue())
                (directory / "tokenizer_config.json").write_text(json.dumps(
                    {"tokenizer_class": kind, "bos_token": "<s>", "eos_token": "</s>"}))
                check_spm(args.heddle, f"sentencepiece {options['model_type']}", directory, args.count)
            marian = Path(folder, "marian")
            marian.mkdir()
            check_marian(args.heddle, args.texts, marian, args.count)
        for path in args.also:
            (check_spm if path.is_dir() else check_json)(args.heddle, str(path), path, args.count)
    except Failed as error:
        sys.exit(f"check_pretrained_tokenizers: {error}")


if __name__ == "__main__":
    main()
