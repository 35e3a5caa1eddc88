#!/usr/bin/env python3
"""What no compiler checks: sizes of files, paths of one machine, ops that nobody lists or tests.

Prints `file:line: reason` for each finding, and exits with 1.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 600
SIZED = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake"}

# Each pattern is written so that it does not match itself.
FORBIDDEN = [
    (re.compile(r"(?<![\w.])/(wor[k]|far[m]|roo[t]|hom[e])/"), "a path of one machine"),
    (re.compile(r"://[^\s)]*(debia[n]|pyp[i]|np[m]js)\b"), "the host of a package registry"),
    (re.compile(r"-march=nativ[e]"), "a binary for one machine"),
]
# Documentation may say what not to do.
ALLOWED_IN = {"-march=nativ[e]": (".md",)}


def files():
    """Everything git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return sorted(path for path in set(listed.split("\0")) if path and (ROOT / path).is_file())


def may_be_long(path: str) -> bool:
    """Micro-kernels may."""
    return path.endswith(".cpu.h") or path.startswith("src/backend/cpu/gemm/")


# Macros of tests, where they open a line, and the headers that have them.
TEST_MACRO = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_\w+)\(")
TEST_HEADER = re.compile(r"^#include <(gtest|rapidcheck)/gtest\.h>")


def missing_test_header(lines):
    """Number of the first test in a file that relies on another one's include, or None: files are
    compiled together here, and alone elsewhere."""
    if any(TEST_HEADER.match(line) for line in lines):
        return None
    return next((n for n, line in enumerate(lines, 1) if TEST_MACRO.match(line)), None)


def check_file(path: str):
    data = (ROOT / path).read_bytes()
    if b"\0" in data:
        return  # not text
    lines = data.decode("utf-8", errors="replace").splitlines()
    if Path(path).suffix in SIZED and len(lines) > MAX_LINES and not may_be_long(path):
        yield f"{path}:{MAX_LINES + 1}: {len(lines)} lines; more than {MAX_LINES} want a second file"
    if path.endswith(".cpp") and (number := missing_test_header(lines)):
        yield f"{path}:{number}: a test without #include <gtest/gtest.h> in its own file"
    for number, line in enumerate(lines, 1):
        for pattern, what in FORBIDDEN:
            if pattern.search(line) and not path.endswith(ALLOWED_IN.get(pattern.pattern, ())):
                yield f"{path}:{number}: {what}"


def check_ops():
    """A folder of an op that ops.def does not list would never be compiled."""
    ops = (ROOT / "src/ops/ops.def").read_text()
    listed = set(re.findall(r"^HEDDLE_(?:OP|COMPOSITE)\((\w+),", ops, re.M))
    for folder in sorted(p for p in (ROOT / "src/ops").iterdir() if p.is_dir()):
        if folder.name not in listed | {"support"}:  # what ops share
            yield f"src/ops/{folder.name}:1: not listed in src/ops/ops.def"


DECLARATION = re.compile(r"^(?:void|double|std::vector<Tensor>|[A-Z]\w+) (\w+)\(", re.M)


def check_functions(ops: Path):
    """Every function that an op's header offers is called in its tests: ops.def knows folders only."""
    for header in sorted(ops.glob("*/*.h")):
        if header.stem != header.parent.name:
            continue
        offered = re.sub(r"//.*", "", header.read_text()).split("namespace reference")[0]
        tests = "".join(file.read_text() for file in header.parent.glob("test*.cpp"))
        for name in DECLARATION.findall(offered):
            if not re.search(rf"\b{name}\b", tests):
                yield f"src/ops/{header.stem}/{header.name}:1: no test of the op calls {name}"


def main() -> int:
    problems = [p for path in files() for p in check_file(path)] + list(check_ops())
    problems += check_functions(ROOT / "src/ops")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
