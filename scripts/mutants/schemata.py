"""A copy of the tree in which every drawn mutant is a switch, and one build of it for all.

What the compiler refuses (constant expressions, types that do not match) is found by compiling: the
mutants on the lines that it names are taken out again, and what failed is compiled once more.
"""

import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

HEADER = Path(__file__).with_name("switch.h")
SWITCH = "mutant_switch.h"  # its copy at the root of the tree
# Types that nearly match are no reason to lose a mutant where warnings are errors.
IGNORED = ["sign-compare", "extra", "parentheses", "unused-value", "unused-variable",
           "unused-but-set-variable", "unused-function", "unused-parameter", "maybe-uninitialized",
           "uninitialized", "bool-compare", "bool-operation", "int-in-bool-context", "type-limits",
           "div-by-zero", "dangling-else", "empty-body", "return-type", "array-bounds",
           "stringop-overflow", "stringop-overread", "nonnull", "logical-not-parentheses",
           "tautological-compare", "address", "free-nonheap-object", "misleading-indentation",
           "implicit-fallthrough", "format-overflow", "null-dereference", "overflow",
           "enum-compare", "unused-result", "pessimizing-move", "redundant-move", "alloc-size-larger-than="]
PLACE = re.compile(r"([^\s:(]+\.(?:cpp|h|cc|hpp|cxx)):(\d+)")
ERROR = re.compile(r" error: |required from|in .constexpr. expansion")


class BuildError(Exception):
    pass


def files_of(root: Path):
    """What git knows or would add."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=root, check=True, capture_output=True).stdout.decode()
    return {path for path in listed.split("\0") if path and (root / path).is_file()}


def copy_tree(root: Path, tree: Path, others):
    """All files but `others`, which somebody else writes; those that did not change keep their time."""
    wanted = files_of(root)
    for path in wanted - others:
        put(tree / path, (root / path).read_bytes(), mode=(root / path).stat().st_mode)
    for file in [f for f in tree.rglob("*") if f.is_file()]:
        name = str(file.relative_to(tree))
        if name not in wanted | others and not name.startswith("build/"):
            file.unlink()


def put(path: Path, data: bytes, mode=None):
    """Writes a file, unless it has these bytes already: what did not change is not compiled."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if mode is not None:
        path.chmod(mode & 0o777)


def instrument(text: str, mutants, header: str) -> str:
    """The text with a switch for each of its mutants, every line where it was."""
    for m in sorted(mutants, key=lambda m: -m["at"]):
        text = text[:m["at"]] + m["switched"].replace("@", str(m["id"])) + text[m["end"]:]
    ignored = "".join(f'#pragma GCC diagnostic ignored "-W{name}"\n' for name in IGNORED)
    return f'#include "{header}"\n#pragma GCC diagnostic ignored "-Wpragmas"\n{ignored}#line 1\n{text}'


class Schemata:
    def __init__(self, root: Path, work: Path, mutants, configure, build):
        """configure and build are commands; {tree} and {build} in them are the copy's folders."""
        self.root, self.tree = root, work / "tree"
        self.build_folder = self.tree / "build/release"
        self.mutants = mutants
        self.commands = [[part.format(tree=self.tree, build=self.build_folder) for part in command]
                         for command in (configure, build)]

    def write(self):
        by_file = defaultdict(list)
        for m in self.mutants:
            if m.get("compiles", True):
                by_file[m["file"]].append(m)
        for path in {m["file"] for m in self.mutants}:
            text = (self.root / path).read_text()
            if by_file[path]:
                header = os.path.relpath(self.tree / SWITCH, (self.tree / path).parent)
                text = instrument(text, by_file[path], header)
            put(self.tree / path, text.encode())

    def build(self, say):
        """Compiles the copy; mutants that do not compile are marked `compiles: False`."""
        copy_tree(self.root, self.tree, {m["file"] for m in self.mutants} | {SWITCH})
        put(self.tree / SWITCH, HEADER.read_bytes())
        self.write()
        if self.commands[0] and not (self.build_folder / "CMakeCache.txt").exists():
            self.run(self.commands[0])
        for _ in range(12):
            done = subprocess.run(self.commands[1], capture_output=True, text=True, errors="replace")
            if done.returncode == 0:
                return
            refused = self.refused(done.stdout + done.stderr)
            if not refused:
                raise BuildError(done.stdout[-4000:] + done.stderr[-4000:])
            for m in refused:
                m["compiles"] = False
            say(f"{len(refused)} mutants do not compile")
            self.write()
        raise BuildError("the copy does not compile after 12 rounds")

    def run(self, command):
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            raise BuildError(done.stdout[-4000:] + done.stderr[-4000:])

    def refused(self, output: str):
        """The mutants on lines that the compiler names; where it names none, those of the files."""
        alive = [m for m in self.mutants if m.get("compiles", True)]
        complaints = [line for line in output.splitlines() if ERROR.search(line)]
        places = {(self.relative(path), int(line)) for text in complaints
                  for path, line in PLACE.findall(text)}
        near = [m for m in alive if any(m["file"] == file and m["line"] <= line <= m["last_line"]
                                        for file, line in places)]
        files = {self.relative(path) for path, _ in PLACE.findall(output)}
        return near or [m for m in alive if m["file"] in files]

    def relative(self, path: str) -> str:
        full = Path(os.path.normpath(self.build_folder / path))
        return str(full.relative_to(self.tree)) if full.is_relative_to(self.tree) else str(full)
