#!/usr/bin/env python3
"""What commands print for people says what their JSON says, in the place where it belongs.

    printed.py HEDDLE WORK

HEDDLE is the program, WORK a directory for what it makes. Exits with 1 when something is not as it
should be.
"""

import json
import re
import shutil
import subprocess
import sys

from option_models import LANGUAGE, write_data
from program import FAILURES, HEDDLE, WORK, check, heddle, run_steps


def ask(*arguments):
    return json.loads(heddle(*arguments, "--json") or "null")


def ended(*arguments, status, text=""):
    """A call that ends with this status; what it wrote to standard error."""
    done = subprocess.run([str(HEDDLE), *map(str, arguments)], input=text.encode(), cwd=WORK,
                          capture_output=True, timeout=120)
    check(done.returncode == status, f"{arguments}: status {status}", done.returncode, done.stderr)
    return done.stderr.decode()


def models():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    recipes = write_data(WORK)
    for name, recipe in recipes.items():
        (WORK / f"{name}.toml").write_text(recipe)
    for name in ("language", "mood"):
        heddle("train", f"{name}.toml", "--out", name)


def several_samples():
    """Each under its number, with the prompt before it."""
    arguments = ("generate", "language", "--prompt", "ant", "--tokens", 6, "--samples", 3, "--seed", 7)
    texts = [sample["text"] for sample in ask(*arguments)["samples"]]
    check(len(texts) == 3, "three samples", texts)
    expected = "".join(f"--- {i}\nant{text}\n" for i, text in enumerate(texts, 1))
    check(heddle(*arguments) == expected, "samples for people", heddle(*arguments), expected)


def best_scores():
    """The best five of each row, or as many as there are."""
    for model, most in (("language", 5), ("mood", 2)):
        arguments = ("logits", model, "--prompt", "ant bee")
        rows = ask(*arguments)["logits"]
        rows = rows if isinstance(rows[0], list) else [rows]
        lines = heddle(*arguments).splitlines()
        check(len(lines) == len(rows), f"{model}: a line for each row", len(lines), len(rows))
        for number, (row, line) in enumerate(zip(rows, lines)):
            check(line.split()[0] == str(number), f"{model}: the number of a row", line)
            shown = [(int(i), float(v)) for i, v in
                     re.findall(r"  (\d+):.*? (-?\d+\.\d{4})(?=  |$)", line)]
            best = sorted(range(len(row)), key=lambda i: (-row[i], i))[:most]
            check([i for i, _ in shown] == best, f"{model}: the best {most}", line, best)
            check(all(abs(v - row[i]) < 1e-4 for i, v in shown), f"{model}: their scores", line)


def planned_data():
    """Lines about data where data was read, and only there."""
    lines = ("  data ", "  while data is read ")
    read = heddle("plan", "language.toml")
    alone = heddle("plan", "language.toml", "--vocabulary", 9)
    for line in lines:
        check(f"\n{line}" in read, "plan with data", line, read)
        check(f"\n{line}" not in alone, "plan without data", line, alone)


def facts_of_a_text():
    arguments = ("inspect", "language", "--prompt", "ant bee")
    loss = ask(*arguments)["loss"]
    heddle(*arguments, "--out", "text.html")
    page = (WORK / "text.html").read_text()
    found = re.search(r"loss of this text, nats per token</\w+>\s*<\w+[^>]*>([\d.]+)<", page)
    check(found and found[1] == f"{loss:.3f}", "loss on the page", found and found[0], loss)


def lines_of_input():
    """A mistake in standard input is named by its line, the first being 1."""
    heddle("tokenizer", "train", "text.txt", "--spec", "char", "--out", "char.json")
    for lines, number in (("[999]\n", 1), ("[1]\n[0]\n[999]\n", 3)):
        error = ended("tokenize", "char.json", "--decode", text=lines, status=2)
        check(f"standard input:{number}" in error, f"the line {number}", error)


def no_colours_in_a_file():
    shown = heddle("lab", "average-of-two")
    check("average-of-two" in shown and "\x1b" not in shown, "lab into a pipe", shown[:200])


def trainings_that_end():
    """What failed says what is left of it; what is damaged is said before it goes on."""
    wild = ('learning_rate = 1000\noptimizer = "sgd"\nclip = 0\nsave_every = {}\n'
            "eval_every = 1000")
    ends = {("log_every=100", 1000): "; nothing was saved; wild is free again\n",
            ("log_every=1", 1000): " and use another --out; wild has its log and no weights\n",
            ("log_every=1", 1): " and use another --out (--set train.from=wild begins with the weights "
                                "in it)\n"}
    for (log, save), says in ends.items():
        shutil.rmtree(WORK / "wild", ignore_errors=True)
        recipe = LANGUAGE.replace("learning_rate = 0.05", wild.format(save))
        (WORK / "wild.toml").write_text(recipe.replace("steps = 6", "steps = 60"))
        error = ended("train", "wild.toml", "--out", "wild", "--set", f"train.{log}", status=1)
        check(error.endswith("come to the same step: change it" + says), "a run that fails", error, says)
    (WORK / "long.toml").write_text(LANGUAGE.replace("log_every", "save_every = 2\nlog_every"))
    heddle("train", "long.toml", "--out", "long")
    steps = sorted((WORK / "long/checkpoints").iterdir(), key=lambda p: int(p.stem.split("-")[1]))
    check(len(steps) > 1, "two checkpoints", steps)
    steps[-1].write_bytes(steps[-1].read_bytes()[:-9])
    said = ended("train", "long", "--resume", status=0)
    check("damaged checkpoint" in said and steps[-1].name in said and "going on from step 4" in said,
          "a damaged checkpoint", said)


if __name__ == "__main__":
    sys.exit(run_steps([models, several_samples, best_scores, planned_data, facts_of_a_text,
                        lines_of_input, no_colours_in_a_file, trainings_that_end]))
