#!/usr/bin/env python3
"""Trains four tiny models through the program and uses every command on them.

    use_models.py HEDDLE WORK

HEDDLE is the program, WORK a directory for what it makes. The tasks are so easy that the models
learn them in seconds: an endless sentence, sequences to reverse, words whose ending is their tag,
images whose bright half is their class. Exits with 1 when something is not as it should be.
"""

import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import zlib

from program import HEDDLE, WORK, check, heddle, refused, run_steps, train

def png(path, rows):
    """A grey image, 8 bits."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
                     + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


SENTENCE = "the quick brown fox jumps over the lazy dog. "


def language_model():
    (WORK / "text.txt").write_text(SENTENCE * 200)
    train("language", """
        [model]
        kind = "decoder"
        layers = 1
        width = 32
        [model.attention]
        heads = 2
        position = "learned"
        [data]
        text = "text.txt"
        tokenizer = "char"
        context = 32
        [train]
        steps = 250
        batch = 8
        learning_rate = 1e-2
        """)


def new_seeds(ask):
    """Without --seed every text has a new one, which is told and gives the text again."""
    def told(*options, temperature="3"):
        done = subprocess.run([str(HEDDLE), *ask, "--temperature", temperature, "--tokens", "20",
                               *options], cwd=WORK, capture_output=True, timeout=60)
        return done.stdout.decode(), done.stderr.decode()
    (first, said), (second, also_said) = told(), told()
    check(first != second and said != also_said, "generate draws a new seed", first, said, also_said)
    check(re.fullmatch(r"seed \d+\n", said), "generate tells its seed", said)
    check(told("--seed", said.split()[1]) == (first, ""), "the seed that was told", first, said)
    many = told("--samples", "2")
    check(re.fullmatch(r"seed \d+\n", many[1]), "generate --samples tells its seed", many)
    check(told(temperature="0")[1] == "", "what is not drawn has no seed")
    drawn = [json.loads(told("--json")[0])["seed"] for _ in range(2)]
    check(drawn[0] != drawn[1], "generate --json draws a new seed", drawn)


def use_language_model():
    ask = ("generate", "language", "--prompt", "the quick ")
    text = heddle(*ask, "--temperature", 0, "--tokens", 20)
    check(text == SENTENCE[:30] + "\n", "generate", text)
    check(heddle(*ask[:2], "--temperature", 0, "--tokens", 20, text="the quick \n") == text,
          "generate from standard input")
    check(heddle(*ask, "--temperature", 0, "--tokens", 20, "--no-cache") == text,
          "generate without a cache")
    check(heddle(*ask, "--beam", 3, "--tokens", 20) == text, "generate with a beam")
    best = heddle(*ask, "--beam", 3, "--best", 2, "--tokens", 20).splitlines()
    check(len(best) == 2 and best[0].endswith("\t" + text[:-1]), "generate n-best", best)
    slid = heddle(*ask, "--temperature", 0, "--tokens", 100, "--slide")
    check(slid == (SENTENCE * 3)[:110] + "\n", "generate beyond the context", slid)
    check(heddle(*ask, "--temperature", 0, "--stop", "jump") == "the quick brown fox \n",
          "generate until a stop string")

    document = json.loads(heddle(*ask, "--seed", 5, "--samples", 3, "--tokens", 12, "--json"))
    again = json.loads(heddle(*ask, "--seed", 5, "--samples", 3, "--tokens", 12, "--json"))
    check(document["prompt_tokens"] == 10 and len(document["tokens"]) == 12
          and len(document["samples"]) == 3 and document["seconds"] > 0
          and document["text"] == document["samples"][0]["text"], "generate --json", document)
    check(document["samples"] == again["samples"], "the same seed gives the same text")
    check(document["seed"] == 5, "generate --json tells the seed", document)
    new_seeds(ask)

    refused(*ask, "--tokens", 100, saying=["32 positions", "--slide"])
    refused(*ask, "--temperature", -1, saying=["temperature"])
    refused(*ask, "--beam", 3, "--top-k", 5, saying=["--beam", "--top-k"])
    for seed in ["-1", "1e3", "18446744073709551616", "99999999999999999999999"]:
        refused(*ask, "--seed", seed, saying=["--seed", seed])
    heddle(*ask, "--seed", "18446744073709551615", "--tokens", 3)
    refused("generate", "language", "--prompt", "", saying=["prompt is empty"])
    refused("generate", "language", "--prompt", "the €", saying=["--prompt", "€"])
    refused("generate", "nowhere", "--prompt", "a", saying=["nowhere"])
    refused("translate", "language", text="a\n", saying=["use heddle generate"])
    refused("tag", "language", text="a\n", saying=["use heddle generate"])

    scores = json.loads(heddle("eval", "language", "--json"))
    check(scores["perplexity"] < 1.5 and scores["tokens"] > 100 and "bleu" not in scores
          and "accuracy" not in scores, "eval of a language model", scores)
    other = json.loads(heddle("eval", "language", "--data", "text.txt", "--json"))
    check(other["tokens"] > scores["tokens"], "eval of another file", other)
    refused("eval", "language", "--split", "test", saying=["test"])
    refused("eval", "language", "--set", "model.layers=2", saying=["[data]"])
    refused("eval", "language", "--set", "data.tokenizer=byte", saying=["data.tokenizer=byte", "own"])
    refused("eval", "", saying=['""'])
    for option in [["--beam", 3], ["--length-penalty", 1], ["--norm", "gnmt"], ["--no-bleu"]]:
        refused("eval", "language", *option, saying=[option[0], "translates"])

    logits = json.loads(heddle("logits", "language", "--tokens", "1,2,3", "--json"))
    check(logits["shape"][0] == 3 and len(logits["logits"]) == 3
          and len(logits["logits"][2]) == logits["shape"][1], "logits", logits["shape"])
    heddle("logits", "language", "--tokens", "1,2,3", "--npy", "logits.npy")
    array = (WORK / "logits.npy").read_bytes()
    values = struct.unpack(f"<{3 * logits['shape'][1]}f", array[128:])
    flat = [x for row in logits["logits"] for x in row]
    check(all(abs(x - y) < 1e-6 for x, y in zip(values, flat)), "logits --npy")
    people = heddle("logits", "language", "--prompt", "the").splitlines()
    check(len(people) == 3 and all(len(line.split()) > 10 for line in people), "logits", people)
    refused("logits", "language", "--tokens", "1,x", saying=["--tokens"])
    refused("logits", "language", "--tokens", "9999", saying=["9999"])
    refused("logits", "language", saying=["--tokens"])
    refused("logits", "language", "--tokens", "", saying=["--tokens"])
    refused("logits", "language", "--prompt", "", saying=["--prompt"])
    refused("logits", "language", "--prompt", "the " * 20, saying=["--prompt", "at most 32"])


def options_before_the_positional():
    """An option takes its one value, and leaves what follows to the others."""
    few = ("--set", "data.context=16")
    sizes = json.loads(heddle("data", *few, "language.toml", "--json"))["sizes"]
    check(sizes["context"] == 16, "data --set RECIPE", sizes)
    plan = json.loads(heddle("plan", *few, "language.toml", "--json"))
    check(plan["parameters"] > 0, "plan --set RECIPE", plan)
    report = json.loads(heddle("check", *few, "language.toml", "--json"))
    check(report["pass"], "check --set RECIPE", report["notes"])
    seen = json.loads(heddle("inspect", "--prompt", "the", "--layer", "0,0", "--head", "1,0,1",
                             "language", "--json"))
    check([w["head"] for w in seen["weights"]] == [1, 0], "inspect --head RUN", seen["weights"])


def plans():
    plan = ("plan", "language.toml")
    whole = json.loads(heddle(*plan, "--context", 100000, "--json"))
    check(whole["kv_bytes"] == 100000 * whole["kv_bytes_per_token"], "plan --context", whole)
    window = json.loads(heddle(*plan, "--set", "model.attention.look_back=8", "--context", 100000,
                               "--json"))
    check(window["kv_bytes"] < whole["kv_bytes"] / 10, "plan --context of a window", window)
    # Shapes are enough: this batch would be 36 GB before anything is computed.
    done = subprocess.run([str(HEDDLE), *plan, "--set", "train.batch=1048576", "--set",
                           "data.context=4096", "--json"], cwd=WORK, capture_output=True, timeout=60)
    huge = json.loads(done.stdout)
    check(huge["peak_bytes"]["total"] > 1e12, "plan of a batch that no memory holds", huge)
    check(done.returncode == 1 and not huge["fits"] and 0 < huge["largest_batch"] < 1048576
          and huge["room_bytes"] < 1e12, "plan of what does not fit", done.returncode, huge)
    check(whole["fits"] and whole["largest_batch"] > 8 and whole["room_bytes"] > 1e8,
          "plan of what fits", whole)
    text = heddle(*plan, "--memory", "2GB")
    for part in ["gradients at the moment of the peak", "It fits: about", "of the 2.00 GB of --memory.",
                 "1 GB is 10^9 bytes", "The largest batch that fits: ", "(train.batch is 8)"]:
        check(part in text, "plan concludes", part, text)
    for memory in ["0", "9EB", "99EB", "-1"]:
        refused(*plan, "--memory", memory, saying=["--memory"])
    for name in ["tagger", "halves"]:
        refused("plan", f"{name}.toml", "--vocabulary", 50, saying=["--vocabulary", "leave"])
        refused("plan", f"{name}.toml", "--context", 50, saying=["--context", "decoder"])


def tokenizers_of_nothing():
    (WORK / "empty.txt").write_text("")
    for spec in ["bpe:300", "char", "word"]:
        refused("tokenizer", "train", "text.txt", "empty.txt", "--spec", spec, "--out", "t.json",
                saying=["empty.txt", "is empty"])


def lab_outputs():
    """Known before the experiments run."""
    for option in ["--out", "--markdown"]:
        refused("lab", "all", "--json", option, "nowhere/page", saying=["nowhere"])


def lab_faults():
    """A planted fault is named, noticed, and ends with 1; what cannot be planted is refused."""
    done = subprocess.run([str(HEDDLE), "lab", "copying", "--plant", "next-key", "--json"],
                          capture_output=True, timeout=60)
    outcome = json.loads(done.stdout)["experiments"][0]
    check(done.returncode == 1 and outcome["planted"] == "next-key" and not outcome["pass"]
          and "next-key" in outcome["faults"], "lab --plant", done.returncode, outcome)
    refused("lab", "copying", "--plant", "nonsense", saying=["copying", "next-key", "nonsense"])
    refused("lab", "all", "--plant", "next-key", saying=["into one experiment"])
    refused("lab", "list", "--plant", "next-key", saying=["--plant"])
    refused("lab", "copying", "--plant", "next-key", "--markdown", "lab.md", saying=["--plant"])


def benchmarks_beside_nothing():
    """A Python that is none is found out before anything is measured."""
    for bench in ["roofline", "attention", "train", "decode"]:
        for python in ["nowhere/python", "true"]:  # one does not start, one ends at once
            refused("bench", bench, "--quick", "--torch", python,
                    saying=[python, "a Python with PyTorch"], without="measuring")


WORDS = "ant bee cat dog elk fox".split()


def translation_model():
    rng = random.Random(1)

    def pair():
        words = [rng.choice(WORDS) for _ in range(rng.randint(1, 4))]
        return " ".join(words) + "\t" + " ".join(reversed(words))
    (WORK / "pairs.tsv").write_text("\n".join(pair() for _ in range(1500)) + "\n")
    (WORK / "test.tsv").write_text("\n".join(pair() for _ in range(60)) + "\n")
    train("reverse", """
        [model]
        kind = "encoder-decoder"
        layers = 1
        width = 48
        [model.attention]
        heads = 4
        position = "sinusoidal"
        [data]
        pairs = "pairs.tsv"
        test_pairs = "test.tsv"
        tokenizer = "word"
        [train]
        steps = 500
        batch = 32
        learning_rate = 5e-3
        """)


def use_translation_model():
    lines = ["ant bee cat", "", "dog", "fox elk", "  ", "cat cat bee ant"]
    expected = ["cat bee ant", "", "dog", "elk fox", "", "ant bee cat cat"]
    for options in [[], ["--beam", 1], ["--norm", "gnmt", "--batch", 2]]:
        out = heddle("translate", "reverse", *options, text="\n".join(lines) + "\n").split("\n")
        check(out == expected + [""], f"translate {options}", out)
    document = json.loads(heddle("translate", "reverse", "--json", "--best", 2, text="ant bee\n\n"))
    first = document["translations"][0]
    check(len(document["translations"]) == 2 and first["text"] == "bee ant"
          and first["source_tokens"] == 3 and first["finished"] and len(first["best"]) == 2
          and first["best"][0]["score"] >= first["best"][1]["score"], "translate --json", document)
    scores = json.loads(heddle("eval", "reverse", "--split", "test", "--beam", 2, "--json"))
    check(scores["bleu"] > 60 and scores["perplexity"] < 2 and scores["tokens"] > 60,
          "eval of a translation model", scores)
    logits = json.loads(heddle("logits", "reverse", "--prompt", "ant bee", "--json"))
    check(logits["shape"][0] == 1, "logits behind the begin token", logits["shape"])
    refused("generate", "reverse", "--prompt", "ant", saying=["use heddle translate"])
    refused("eval", "reverse", "--no-bleu", "--beam", 2, saying=["--no-bleu", "--beam"])
    refused("translate", "reverse", "--beam", 2, "--best", 3, text="ant\n", saying=["best"])
    refused("translate", "reverse", "--best", 0, text="ant\n", saying=["--best", "1 to 1024"])
    refused("translate", "reverse", "--length-penalty", -1, text="ant\n",
            saying=["--length-penalty", "0 to 1"])


def tagger():
    rng = random.Random(2)

    def word():
        stem = "".join(rng.choice("bcdfg") for _ in range(3))
        ending, tag = rng.choice([("o", "NOUN"), ("a", "VERB"), ("i", "ADJ")])
        return stem + ending + "\t" + tag
    sentences = ["\n".join(word() for _ in range(rng.randint(1, 6))) for _ in range(400)]
    (WORK / "tags.tsv").write_text("\n\n".join(sentences[:350]) + "\n")
    (WORK / "dev.tsv").write_text("\n\n".join(sentences[350:]) + "\n")
    train("tagger", """
        [model]
        kind = "encoder"
        task = "tag"
        layers = 1
        width = 32
        [model.attention]
        heads = 2
        position = "sinusoidal"
        [data]
        tags = "tags.tsv"
        validation_tags = "dev.tsv"
        tokenizer = "word"
        [train]
        steps = 120
        batch = 16
        learning_rate = 1e-2
        """)


def use_tagger():
    expected = "bcdo\tNOUN\nfgga\tVERB\n\n\nccci\tADJ\n\n"
    out = heddle("tag", "tagger", text="bcdo  fgga\n\nccci\n")
    check(out == expected, "tag", out)
    column = heddle("tag", "tagger", "--input", "words", text="bcdo\tX\nfgga\tX\n\n\nccci\tX\n")
    check(column == expected.replace("\n\n\n", "\n\n"), "tag one word a line", column)
    document = json.loads(heddle("tag", "tagger", "--json", text="bcdo fgga\n"))
    check([w["tag"] for w in document["sentences"][0]] == ["NOUN", "VERB"]
          and document["sentences"][0][0]["word"] == "bcdo"
          and document["sentences"][0][0]["probability"] > 0.5, "tag --json", document)
    scores = json.loads(heddle("eval", "tagger", "--json"))
    check(scores["accuracy"] > 0.9, "eval of a tagger", scores)
    refused("classify", "tagger", text="a\n", saying=["use heddle tag"])


def image_model():
    rng = random.Random(3)

    def image(left):
        return [[rng.randint(150, 255) if (x < 4) == left else rng.randint(0, 100)
                 for x in range(8)] for _ in range(8)]
    examples = [(i % 2 == 0, image(i % 2 == 0)) for i in range(120)]
    pixels = b"".join(bytes(row) for _, rows in examples for row in rows)
    (WORK / "images.idx").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 120, 8, 8) + pixels)
    (WORK / "labels.idx").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 120)
                                      + bytes(0 if left else 1 for left, _ in examples))
    png(WORK / "left.png", image(True))
    png(WORK / "right.png", image(False))
    png(WORK / "small.png", [[0, 0], [0, 0]])
    for name, shade in (("black", 0), ("white", 255)):  # on which heat must be seen
        png(WORK / f"{name}.png", [[shade] * 8] * 8)
    train("halves", """
        [model]
        kind = "vit"
        layers = 1
        width = 16
        patch = 4
        [model.attention]
        heads = 2
        position = "learned"
        [data]
        images = "images.idx"
        labels = "labels.idx"
        label_names = ["left", "right"]
        validation_share = 0.2
        [train]
        steps = 60
        batch = 16
        learning_rate = 1e-2
        """)


def use_image_model():
    out = heddle("classify", "halves", "left.png", "right.png").splitlines()
    check([line.split("\t")[:2] for line in out] == [["left.png", "left"], ["right.png", "right"]],
          "classify images", out)
    check(all(float(line.split("\t")[2]) > 0.5 for line in out), "probabilities of images", out)
    many = json.loads(heddle("classify", "halves", "images.idx", "--json"))["predictions"]
    check(len(many) == 120 and many[3]["name"] == "images.idx[3]" and many[3]["label"] == "right"
          and abs(sum(many[3]["probabilities"].values()) - 1) < 1e-4, "classify IDX", many[3])
    scores = json.loads(heddle("eval", "halves", "--json"))
    check(scores["accuracy"] > 0.9 and scores["tokens"] == 24, "eval of images", scores)
    refused("classify", "halves", saying=["as arguments"])
    refused("classify", "halves", "small.png", saying=["8"])
    refused("classify", "halves", "pairs.tsv", saying=["pairs.tsv"])
    refused("logits", "halves", "--tokens", "1", saying=["--image FILE"])


def text_classifier():
    rng = random.Random(4)

    def line():
        good = rng.random() < 0.5
        words = [rng.choice(WORDS) for _ in range(3)] + ["nice" if good else "bad"]
        rng.shuffle(words)
        return ("yes" if good else "no") + "\t" + " ".join(words)
    (WORK / "labelled.tsv").write_text("\n".join(line() for _ in range(400)) + "\n")
    train("mood", """
        [model]
        kind = "encoder"
        task = "classify"
        layers = 1
        width = 16
        [model.attention]
        heads = 2
        [data]
        labelled = "labelled.tsv"
        max_length = 8
        tokenizer = "word"
        validation_share = 0.1
        [train]
        steps = 80
        batch = 16
        learning_rate = 1e-2
        """)


def use_text_classifier():
    out = heddle("classify", "mood", text="ant nice cat\n\nbad dog\n").split("\n")
    check([line.split("\t")[0] for line in out] == ["yes", "", "no", ""], "classify lines", out)
    refused("classify", "mood", "left.png", saying=["standard input"])
    cut = subprocess.run([str(HEDDLE), "classify", "mood"], input=b"ant " * 20, cwd=WORK,
                         capture_output=True, timeout=60).stderr
    check(cut == b"1 line was cut to the 8 tokens that the model learned from\n", "a line is cut", cut)
    check(json.loads(heddle("eval", "mood", "--json"))["accuracy"] > 0.9, "eval of a classifier")


def full_disk():
    """What could not be written was not done, however little it was."""
    for ask in [("info",), ("info", "--json"), ("logits", "language", "--tokens", "1", "--json"),
                ("generate", "language", "--prompt", "the", "--tokens", 3), ("lab", "list"),
                ("--help",)]:
        with open("/dev/full", "wb") as full:
            done = subprocess.run([str(HEDDLE), *map(str, ask)], stdout=full, cwd=WORK,
                                  stderr=subprocess.PIPE, timeout=60)
        check(done.returncode == 1 and b"standard output" in done.stderr,
              f"{ask} with standard output on a full disk", done.returncode, done.stderr)


def closed_files():
    """Standard files that are closed or full: training goes on, and what is printed does not get
    into a file of the run."""
    for closed in ["2>/dev/full", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"]:
        shutil.rmtree(WORK / "closed", ignore_errors=True)
        status = subprocess.run(f"'{HEDDLE}' train mood.toml --set train.steps=3 --set "
                                f"train.warmup=0 --out closed {closed}", shell=True, cwd=WORK,
                                timeout=60, stdout=subprocess.DEVNULL).returncode
        # Without a place for its last words it has not done all that it was asked for.
        check(status == (1 if ">&- 2" in closed else 0), f"train with {closed}", status)
        check((WORK / "closed/lock").read_bytes() == b"", f"the lock with {closed}")
        check((WORK / "closed/model.safetensors").exists(), f"the weights with {closed}")


def names_that_are_no_text():
    """A file's name may be any bytes; what was computed is told all the same."""
    shutil.copy(WORK / "left.png", os.fsencode(WORK) + b"/\xff.png")
    done = subprocess.run([str(HEDDLE), "classify", "halves", b"\xff.png", "--json"], cwd=WORK,
                          capture_output=True, timeout=60)
    check(done.returncode == 0 and json.loads(done.stdout)["predictions"][0]["label"] == "left",
          "classify \\xff.png --json", done.stderr)


def helps():
    """Every command has help with an example, and the example's options exist."""
    for command in ["generate", "translate", "classify", "tag", "eval", "logits"]:
        text = heddle(command, "--help")
        check("Example" in text and f"heddle {command}" in text, f"help of {command}")
    refused("generate", saying=["heddle: ", "MODEL"])


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    return run_steps([
        language_model, use_language_model, translation_model, use_translation_model, tagger,
        use_tagger, image_model, use_image_model, text_classifier, use_text_classifier,
        options_before_the_positional, plans, tokenizers_of_nothing, lab_outputs,
        lab_faults, benchmarks_beside_nothing, full_disk, closed_files, names_that_are_no_text, helps])


if __name__ == "__main__":
    sys.exit(main())
