#!/usr/bin/env python3
"""A hundred mistakes that people make, as a table: each is told what is wrong, where, and what to do.

    mistakes.py HEDDLE WORK [--show]

HEDDLE is the program, WORK a directory for data and tiny models. With --show, what each is told.
"""

import os
import re
import shutil
import subprocess
import sys

from mistake_tables.commands import COMMANDS
from mistake_tables.data import DATA, MODELS
from mistake_tables.recipes import RECIPES
from option_models import write_data
from program import FAILURES, HEDDLE, WORK, check, heddle, run_steps

# What no message may have: words of libraries and of C++, and traces.
NOT_FOR_PEOPLE = ["std::", "heddle::", "CLI::", "json.exception", "basic_string", "what():",
                  "terminate called", "INT in [", "TEXT:", "FLOAT", "UINT", "#0 ", "Aborted"]


def make_models():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    recipes = write_data(WORK)
    recipes["learned"] = recipes["language"].replace('"rope"', '"learned"')
    for name in ["language", "learned", "reverse", "tagger", "halves"]:
        (WORK / f"{name}.toml").write_text(recipes[name])
        heddle("train", f"{name}.toml", "--out", name)
    for name in ["weightless", "cut", "edited"]:
        shutil.copytree(WORK / "language", WORK / name)
    (WORK / "weightless/model.safetensors").unlink()
    weights = (WORK / "language/model.safetensors").read_bytes()
    (WORK / "cut/model.safetensors").write_bytes(weights[:-100])
    recipe = WORK / "edited/recipe.toml"
    recipe.write_text(recipe.read_text().replace("width = 16", "width = 32"))


def tell(mistake):
    """What the program says to it, and its exit status."""
    for name, content in {"mine.toml": mistake.recipe, **mistake.files}.items():
        path = WORK / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = subprocess.run([str(HEDDLE), *map(str, mistake.arguments())], cwd=WORK, timeout=60,
                          input=mistake.text.encode(), capture_output=True,
                          env=os.environ | {"HEDDLE_DATA": str(WORK / "no data")})
    for name in mistake.files:
        (WORK / name).unlink()
    shown = done.stderr if mistake.status == 2 else done.stdout + done.stderr
    return shown.decode(), done.returncode


def named_twice(mistake, message):
    """Arguments that are paths and stand in the message more than once, without a line behind."""
    message = re.sub(r"\S+ -> .*", "", message)  # a round of bases ends where it began
    message = re.sub(r"heddle [a-z]+ --.*", "", message)  # a command to type needs the path again
    for argument in map(str, mistake.arguments()):
        if "." not in argument or argument.startswith("-") or "=" in argument:
            continue
        plain = re.findall(rf"(?<![\w/.]){re.escape(argument)}(?![\w/:]*[\w/])(?!:\d)", message)
        if len(plain) > 1:
            yield argument


def judge(mistake):
    message, status = tell(mistake)
    name = f"{mistake.title} (heddle {' '.join(map(str, mistake.arguments()))})"
    if "--show" in sys.argv:
        print(f"{mistake.title}\n    {status}  {message.strip()}")
    for part in [mistake.wrong, mistake.where, mistake.do]:
        check(part in message, f"{name}: {part!r} is not said", message)
    check(status == mistake.status, f"{name}: exit status", status, mistake.status)
    for word in NOT_FOR_PEOPLE:
        check(word not in message, f"{name}: {word!r} is not for people", message)
    check("?;" not in message, f"{name}: a question goes on behind its mark", message)
    check(not list(named_twice(mistake, message)), f"{name}: the same path twice", message)
    check(message.count("\n") <= 1 or status == 1, f"{name}: too long", message)
    if (WORK / "new").exists():
        FAILURES.append(f"{name}: left a directory behind")
        shutil.rmtree(WORK / "new")


def on_the_command_line():
    for mistake in COMMANDS:
        judge(mistake)


def in_recipes():
    for mistake in RECIPES:
        judge(mistake)


def in_data():
    for mistake in DATA:
        judge(mistake)


def with_models():
    for mistake in MODELS:
        judge(mistake)


def there_are_a_hundred():
    titles = [m.title for m in COMMANDS + RECIPES + DATA + MODELS]
    check(len(titles) >= 100, "rows of the table", len(titles))


if __name__ == "__main__":
    sys.exit(run_steps([make_models, on_the_command_line, in_recipes, in_data, with_models,
                        there_are_a_hundred]))
