"""What rows of options.py share: the program, what is not as it should be, and the table itself."""

import json
import subprocess
import sys
from pathlib import Path

HEDDLE, WORK = (Path(p).resolve() for p in sys.argv[1:3])
FAILURES = []
DROPPED = None  # "command --option" that calls leave out; options.py sets it
FLAGS = set()  # options without a value, with their commands
ROWS = {}  # "command --option": the function that shows what it does


def check(ok, what, *seen):
    if not ok:
        FAILURES.append(f"{what}: {' '.join(map(repr, seen))}"[:2000])


def without_dropped(arguments):
    command, _, option = (DROPPED or "").rpartition(" ")
    words = [str(a) for a in arguments]
    if not option or words[:len(command.split())] != command.split():
        return words
    kept, value = [], False
    for word in words:
        if word != option and not value:
            kept.append(word)
        value = word == option and DROPPED not in FLAGS
    return kept


def run(*arguments, text=""):
    arguments = without_dropped(arguments)
    return subprocess.run([str(HEDDLE), *map(str, arguments)], input=text.encode(), cwd=WORK,
                          capture_output=True, timeout=240)


def heddle(*arguments, text=""):
    done = run(*arguments, text=text)
    if done.returncode != 0:
        FAILURES.append(f"heddle {' '.join(map(str, arguments))}: exit {done.returncode}\n"
                        + done.stderr.decode(errors="replace"))
    return done.stdout.decode()


def ask(*arguments, text=""):
    return json.loads(heddle(*arguments, "--json", text=text) or "null")


def row(*names):
    """The function shows what these options do."""
    def add(function):
        for name in names:
            assert name not in ROWS, name
            ROWS[name] = function
        return function
    return add


def differs(command, option, value, text=""):
    """What is written changes with the option, and is the same when it is given again."""
    plain, given = heddle(*command, text=text), heddle(*command, option, value, text=text)
    check(given != plain, f"{command[0]} {option} {value} changes nothing", plain)
    check(heddle(*command, option, value, text=text) == given, f"{command[0]} {option}: not the same again")
    return plain, given
