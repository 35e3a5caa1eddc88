"""What the tests of the whole program share: running it, and keeping what is not as it should be.

The first argument of a test is the program, the second a directory for what it makes.
"""

import subprocess
import sys
from pathlib import Path

HEDDLE = Path(sys.argv[1]).resolve()
WORK = Path(sys.argv[2]).resolve()
FAILURES = []


def heddle(*arguments, text="", status=0):
    """Runs the program; what it wrote to standard output, which is bytes of UTF-8."""
    done = subprocess.run([str(HEDDLE), *map(str, arguments)], input=text.encode(), cwd=WORK,
                          capture_output=True, timeout=300)
    shown = " ".join(map(str, arguments))
    if done.returncode != status:
        FAILURES.append(f"heddle {shown}: exit {done.returncode}, expected {status}\n"
                        + done.stderr.decode(errors="replace"))
    if status != 0 and (not done.stderr or done.stdout):
        FAILURES.append(f"heddle {shown}: an error belongs on standard error, alone")
    return done.stdout.decode()


def refused(*arguments, saying, text="", without=None):
    """The program must end with 2 and a message that has all of `saying` and not `without`."""
    done = subprocess.run([str(HEDDLE), *map(str, arguments)], input=text.encode(), cwd=WORK,
                          capture_output=True, timeout=60)
    message = done.stderr.decode()
    for part in saying:
        if part not in message:
            FAILURES.append(f"heddle {' '.join(map(str, arguments))}: {part!r} is not in {message!r}")
    if without is not None and without in message:
        FAILURES.append(f"heddle {' '.join(map(str, arguments))}: {without!r} is in {message!r}")
    if done.returncode != 2:
        FAILURES.append(f"heddle {' '.join(map(str, arguments))}: exit {done.returncode}, expected 2")


def check(ok, what, *seen):
    if not ok:
        FAILURES.append(f"{what}: {' '.join(map(repr, seen))}")


def train(name, recipe):
    (WORK / f"{name}.toml").write_text(recipe)
    heddle("train", f"{name}.toml", "--out", name)


def run_steps(steps):
    """Runs functions, says what each found; the status of the whole."""
    for step in steps:
        before = len(FAILURES)
        step()
        print(f"{step.__name__}: {'fine' if len(FAILURES) == before else 'WRONG'}", flush=True)
    for failure in FAILURES:
        print(failure)
    return 1 if FAILURES else 0
