#!/usr/bin/env python3
"""The same tokens give the same numbers, whichever command reads them, and numbers that are none
are shown by no command.

    same_numbers.py HEDDLE WORK

WORK is the directory in which use_models.py trained its models. Exits with 1 when something is not
as it should be.
"""

import json
import os
import shutil
import struct
import subprocess
import sys

from program import HEDDLE, WORK, check, heddle, refused, run_steps, train


def prefix_model():
    """Barely trained, so that what a token sees decides what is drawn."""
    train("prompted", """
        [model]
        kind = "decoder"
        layers = 2
        width = 24
        [model.attention]
        heads = 3
        position = "rope"
        prefix = true
        [data]
        text = "text.txt"
        tokenizer = "char"
        context = 16
        [train]
        steps = 12
        batch = 8
        learning_rate = 1e-2
        """)


def logits_of(model, tokens, *options):
    ids = ",".join(map(str, tokens))
    return json.loads(heddle("logits", model, "--tokens", ids, "--json", *options))["logits"]


def far(a, b):
    """The largest difference of two lists of scores."""
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def use_prefix_model():
    """The prompt is seen both ways by everything that reads it: the same numbers, the same text."""
    prompt = "the quick "
    for options in [["--tokens", 40], ["--tokens", 60, "--slide"], ["--tokens", 5, "--samples", 4]]:
        ask = ("generate", "prompted", "--prompt", prompt, "--seed", 3, *options)
        check(heddle(*ask) == heddle(*ask, "--no-cache"), f"--no-cache of a prefix model {options}")
    greedy = json.loads(heddle("generate", "prompted", "--prompt", prompt, "--temperature", 0,
                               "--tokens", 20, "--json"))["tokens"]
    tokens = json.loads(heddle("tokenize", "prompted", "--whole", text=prompt))
    check(len(tokens) == len(prompt), "tokens of the prompt", tokens)
    alone = logits_of("prompted", tokens)
    whole = logits_of("prompted", tokens + greedy, "--prefix", len(tokens))
    check(far(alone[-1], whole[len(tokens) - 1]) < 1e-4, "logits behind the prompt")
    best = [row.index(max(row)) for row in whole[len(tokens) - 1:-1]]
    check(best == greedy, "logits choose what generate writes", best, greedy)
    check(far(alone[-1], logits_of("prompted", tokens, "--prefix", 0)[-1]) > 1e-2,
          "a prompt that is not one has other scores")
    check(far(alone[0], logits_of("prompted", tokens[:-1])[0]) > 1e-3,
          "the first token sees the last one of the prompt")
    seen = json.loads(heddle("inspect", "prompted", "--prompt", prompt, "--layer", "1", "--head",
                             "0", "--json"))
    check(min(seen["weights"][0]["rows"][0]) > 0 and "loss" not in seen,
          "inspect sees the prompt both ways", seen["weights"][0]["rows"][0])
    refused("logits", "prompted", "--tokens", "1,2,3", "--prefix", 4, saying=["--prefix", "0 to 3"])
    refused("logits", "prompted", "--tokens", "1,2,3", "--prefix", -1, saying=["--prefix"])
    refused("logits", "language", "--tokens", "1,2,3", "--prefix", 1,
            saying=["--prefix", "attention.prefix"])


def peak_bytes(*arguments, text=""):
    """The most memory that the program had."""
    (WORK / "input").write_text(text)
    with open(WORK / "input", "rb") as given, open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen([str(HEDDLE), *map(str, arguments)], cwd=WORK, stdin=given,
                                   stdout=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check(process.returncode == 0, f"{arguments}", process.returncode)
    return usage.ru_maxrss * 1024


def caches_grow():
    """Memory follows what is written, not what may be."""
    ask = ("generate", "prompted", "--prompt", "the ", "--seed", 1, "--stop", "e", "--stop", "o",
           "--stop", " ")
    few, many = peak_bytes(*ask, "--tokens", 50), peak_bytes(*ask, "--tokens", 16777216)
    check(many < few + 20e6, "generate --tokens 16777216", few, many)
    ask = ("translate", "reverse", "--beam", 4)
    few = peak_bytes(*ask, text="ant bee\n")
    many = peak_bytes(*ask, "--longest-extra", 1000000, text="ant bee\n")
    check(many < few + 20e6, "translate --longest-extra 1000000", few, many)


def precisions():
    """--precision reaches the numbers of every command: others, and nearly the same."""
    def number(path, document):
        for key in path:
            document = document[key]
        return document
    for ask, text, path, near in [
            (("logits", "language", "--tokens", "1,2,3"), "", ["logits", 2, 0], 0.3),
            (("eval", "language"), "", ["loss"], 0.02),
            (("eval", "reverse", "--split", "test", "--no-bleu"), "", ["loss"], 0.02),
            (("eval", "halves"), "", ["loss"], 0.02),
            (("generate", "language", "--prompt", "the ", "--beam", 2, "--tokens", 9), "",
             ["log_probability"], 0.1),
            (("translate", "reverse"), "ant bee cat\n", ["translations", 0, "score"], 0.05),
            (("tag", "tagger"), "bcdo fgga\n", ["sentences", 0, 0, "probability"], 0.05),
            (("classify", "mood"), "ant nice cat\n", ["predictions", 0, "probability"], 0.05),
            (("classify", "halves", "left.png"), "", ["predictions", 0, "probability"], 0.05),
            (("inspect", "language", "--prompt", "the quick"), "", ["loss"], 0.1),
            (("inspect", "reverse", "--prompt", "ant bee cat", "--target", "bee ant ant"), "",
             ["loss"], 0.1)]:
        seen = [number(path, json.loads(heddle(*ask, *options, "--json", text=text)))
                for options in [[], ["--precision", "fp32"], ["--precision", "bf16"]]]
        check(seen[0] == seen[1], f"{ask}: fp32 is what is taken without --precision", seen)
        check(seen[1] != seen[2] and abs(seen[1] - seen[2]) < near, f"{ask} --precision", seen)
    drawn = [json.loads(heddle("generate", "prompted", "--prompt", "the ", "--tokens", 200,
                               "--samples", 8, "--seed", 1, "--precision", precision,
                               "--json"))["samples"] for precision in ["fp32", "bf16"]]
    check(drawn[0] != drawn[1], "generate --precision")


def with_bad_weights(name, value):
    """A copy of a run with another number among its queries' weights, in a file without a checksum.
    Attention gives a NaN no weight, so that the scores do not show it."""
    bad = f"{name}-{value}"
    shutil.copytree(WORK / name, WORK / bad,
                    ignore=shutil.ignore_patterns("checkpoints"))
    data = (WORK / name / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    tensors = bytearray(data[8 + size:])
    begin = next(e for key, e in header.items() if key.endswith("q.weight"))["data_offsets"][0]
    tensors[begin:begin + 4] = struct.pack("<f", value)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (WORK / bad / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + tensors)
    return bad


def weights_that_are_no_numbers():
    """No command shows numbers of a model that has none: all refuse, and say why."""
    for name in ["bad.npy", "bad.html"]:
        (WORK / name).unlink(missing_ok=True)
    for value in [float("nan"), float("inf")]:
        language, prompted, reverse, tagger_, mood, halves = (
            with_bad_weights(name, value)
            for name in ["language", "prompted", "reverse", "tagger", "mood", "halves"])
        for ask, text in [
                (("generate", language, "--prompt", "the "), ""),
                (("generate", language, "--prompt", "the ", "--temperature", 0), ""),
                (("generate", language, "--prompt", "the ", "--no-cache"), ""),
                (("generate", language, "--prompt", "the ", "--beam", 2), ""),
                (("logits", language, "--tokens", "1,2"), ""),
                (("logits", language, "--tokens", "1,2", "--json"), ""),
                (("logits", language, "--tokens", "1,2", "--npy", "bad.npy"), ""),
                (("logits", reverse, "--prompt", "ant"), ""),
                (("logits", tagger_, "--prompt", "bcdo"), ""),
                (("logits", mood, "--prompt", "ant"), ""),
                (("inspect", language, "--prompt", "the ", "--json"), ""),
                (("inspect", language, "--prompt", "the ", "--out", "bad.html"), ""),
                (("inspect", prompted, "--prompt", "the ", "--json"), ""),
                (("inspect", reverse, "--prompt", "ant", "--json"), ""),
                (("inspect", reverse, "--prompt", "ant", "--target", "ant", "--json"), ""),
                (("inspect", tagger_, "--prompt", "bcdo", "--json"), ""),
                (("inspect", mood, "--prompt", "ant", "--json"), ""),
                (("inspect", halves, "--image", "left.png", "--json"), ""),
                (("translate", reverse), "ant\n"), (("tag", tagger_), "bcdo\n"),
                (("classify", mood), "ant\n"), (("classify", halves, "left.png"), ""),
                (("eval", language), ""), (("eval", reverse, "--split", "test"), ""),
                (("eval", tagger_), ""), (("eval", mood), ""), (("eval", halves), "")]:
            done = subprocess.run([str(HEDDLE), *map(str, ask)], input=text.encode(), cwd=WORK,
                                  capture_output=True, timeout=60)
            said = done.stderr.decode()
            check(done.returncode == 2 and done.stdout == b"" and "q.weight" in said
                  and f"expected finite numbers; got {value} at [0, 0]" in said,
                  f"{ask} with weights of {value}", done.returncode, done.stdout[:200], said)
    check(not (WORK / "bad.npy").exists() and not (WORK / "bad.html").exists(),
          "nothing is written of a model without numbers")


def batches_of_eval():
    """Where batches end changes nothing, to the last digit."""
    for ask in [("language",), ("prompted",), ("reverse", "--split", "test", "--no-bleu"),
                ("tagger",), ("mood",), ("halves",)]:
        seen = [heddle("eval", *ask, "--batch", batch, "--json") for batch in [1, 2, 3, 16, 100]]
        check(len(set(seen)) == 1, f"eval {ask} --batch", seen)


def main():
    for left in [WORK / "prompted", *WORK.glob("*-nan"), *WORK.glob("*-inf")]:
        shutil.rmtree(left, ignore_errors=True)
    return run_steps([prefix_model, use_prefix_model, caches_grow, precisions,
                      weights_that_are_no_numbers, batches_of_eval])


if __name__ == "__main__":
    sys.exit(main())
