#!/usr/bin/env python3
"""Help and screens in Chinese leave nothing untranslated, wherever --lang stands.

    languages.py HEDDLE
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HEDDLE = Path(sys.argv[1]).resolve()
FAILURES = []


def check(ok, what, *seen):
    if not ok:
        FAILURES.append(f"{what}: {' '.join(map(str, seen))}"[:2000])


def run(*arguments, **variables):
    kept = {k: v for k, v in os.environ.items() if k not in ("HEDDLE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")}
    return subprocess.run([HEDDLE, *arguments], env={**kept, "HEDDLE_SHOW_UNTRANSLATED": "1", **variables},
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def chinese(text):
    return re.search("[\u4e00-\u9fff]", text) is not None


def commands_of(*path):
    """Names below "Commands:" of a help in English."""
    part = run(*path, "--help").stdout.partition("\nCommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  ([a-z]+)", part, re.M)


def check_screen(*arguments):
    done = run(*arguments)
    check(done.returncode == 0, arguments, done.stderr)
    check("untranslated:" not in done.stderr, arguments, done.stderr)
    check(chinese(done.stdout), arguments, done.stdout)
    return done.stdout


def check_help(*path):
    text = check_screen(*path, "--help", "--lang", "zh")
    check(text == run("--lang", "zh", *path, "--help").stdout, path, "--lang before and behind differ")
    # Descriptions begin at column 27, or on a line of their own there.
    for line in re.findall(r"^ {2}-.*\n(?: {26}\S.*\n)?", text, re.M):
        check(chinese(line), path, "an option in English", line)
    for name in commands_of(*path):
        check_help(*path, name)
    if path:  # heddle help data get: the command's help, and then the chapter of that name
        asked = run("help", *path, "--lang", "zh")
        check(asked.returncode == 0 and asked.stdout.startswith(text), "help", path, asked.stdout, asked.stderr)


def topics():
    return re.findall(r"^  ([a-z]+)", run("help").stdout.partition("Topics of heddle help TOPIC:")[2], re.M)


def check_chapter(topic):
    """Lines of running text and of tables end where the terminal does; the languages differ."""
    for language in ("en", "zh"):
        for columns in ("60", "80", "110"):
            text = run("help", topic, "--lang", language, COLUMNS=columns).stdout
            check(chinese(text) == (language == "zh"), topic, "in", language, text[:200])
            check("|---" not in text and "](" not in text and "**" not in text, topic, "has Markdown in it")
            for line in text.splitlines():
                wide = sum(2 if "\u2e80" <= c <= "\uff60" else 1 for c in line)
                # Code is as it is; so is a name that is longer than the column of a table.
                if wide > int(columns) and not line.startswith("    ") and columns != "60":
                    check(False, topic, language, columns, "columns, a line of", wide, line)


def main():
    check(len(commands_of()) > 15, "commands", commands_of())
    check_help()
    for arguments in (("help",), ("help", "recipes"), ("info",), ("version",), ("lab", "list"), ("keys",)):
        check_screen(*arguments, "--lang", "zh")
    check(len(topics()) > 8, "topics", topics())
    for topic in topics():
        check_chapter(topic)
    check("\nCommands:\n  bench" in run("help").stdout, "help lists the commands", run("help").stdout)
    check(chinese(run("info", LANG="zh_CN.UTF-8").stdout), "LANG")
    check(not chinese(run("info", LANG="zh_CN.UTF-8", HEDDLE_LANG="en").stdout), "HEDDLE_LANG")
    for done in (run("info", "--lang", "fr"), run("info", HEDDLE_LANG="fr")):
        check(done.returncode == 2 and "zh (Chinese)" in done.stderr, "unknown language", done.stderr)
    for failure in FAILURES:
        print("FAIL", failure)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
