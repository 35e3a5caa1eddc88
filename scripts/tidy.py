#!/usr/bin/env python3
"""clang-tidy with the checks of .clang-tidy over the sources of the library and the command line, or
over the files given.

Every file is parsed alone first: this is where a missing include and a shadowed name show. Then up to
eight files of one folder, with the same flags, are judged as one unit. Nearly all of clang-tidy's time goes
into the headers that every file shares, so a unit takes little longer than one of its files: a fifth of the
time in all. Files whose names clash are judged one by one. Flags come from the preset tidy, which is
configured but not built. What was found clean is remembered under everything that the verdict depends on
(its text after the preprocessor, comments included, the checks, the version of the tool) and is not asked
about again: in $XDG_CACHE_HOME/heddle-tidy, or ~/.cache.

    scripts/tidy.py [FILE...]
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/tidy"
TIDY, CLANG = "clang-tidy-19", "clang++-19"
NOISE = re.compile(r"^\d+ warnings? |^\[\d+/\d+\] Processing file ")
# In a unit a file is an included one; and including it is no mistake there.
IN_UNIT = ["--header-filter=" + str(ROOT) + r"/((include/heddle|src/(base|tensor|backend|autograd|ops)/).*\.h$"
           r"|(src|cli)/.*\.cpp$)", "--checks=-bugprone-suspicious-include"]
FILES_IN_UNIT = 8
MOST_REMEMBERED = 20000


def sources():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "src/*.cpp",
                             "cli/*.cpp"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return sorted(path for path in set(listed)
                  if not Path(path).name.startswith("test") and (ROOT / path).is_file())


def commands():
    """What compiles each file, without its output and its name: {path: (words, folder)}."""
    if not (BUILD / "build.ninja").is_file():
        subprocess.run(["cmake", "--preset", "tidy"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        words = words[next(i for i, word in enumerate(words) if word.endswith(CLANG)):]
        for option in ("-o", "-c"):
            while option in words:
                at = words.index(option)
                del words[at:at + 2]
        found[os.path.relpath(entry["file"], ROOT)] = (words, entry["directory"])
    return found


class Memory:
    """What was found clean, by the digest of everything that the verdict depends on."""

    def __init__(self):
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.folder = Path(cache) / "heddle-tidy"
        self.folder.mkdir(parents=True, exist_ok=True)
        version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
        self.base = version + (ROOT / ".clang-tidy").read_bytes() + Path(__file__).read_bytes()
        oldest_first = sorted(self.folder.iterdir(), key=lambda stamp: stamp.stat().st_mtime)
        for stamp in oldest_first[:max(0, len(oldest_first) - MOST_REMEMBERED)]:
            stamp.unlink()

    def stamp(self, kind, command, path):
        """None where the preprocessor already complains: the compiler then says of what."""
        words, folder = command
        text = subprocess.run([*words, "-E", "-CC", "-P", path], cwd=folder, capture_output=True)
        if text.returncode != 0:
            return None
        flags = "\0".join([kind, *(word.replace(str(ROOT), ".") for word in words)]).encode()
        return self.folder / hashlib.sha256(self.base + flags + text.stdout).hexdigest()

    def ask(self, kind, command, path, judge):
        """Complaints, in lines; empty: there are none, now or when the same was asked before."""
        stamp = self.stamp(kind, command, path)
        if stamp and stamp.exists():
            stamp.touch()
            return ""
        complaints = judge()
        if not complaints and stamp:
            stamp.touch()
        return complaints


def run(words, folder, name):
    """What a tool complains about; empty where it is content."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in lines if not NOISE.match(line)) or f"{name}: {words[0]} failed"


def parse(path, known, memory):
    words, folder = known[path]
    return memory.ask("parse", known[path], ROOT / path,
                      lambda: run([*words, "-fsyntax-only", ROOT / path], folder, path))


def tidy(source, command, name, options):
    words, folder = command
    return run([TIDY, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", *options, source, "--", *words[1:]],
               folder, name)


def judge_alone(path, known, memory):
    return memory.ask("alone", known[path], ROOT / path, lambda: tidy(ROOT / path, known[path], path, []))


def judge_together(paths, known, memory, scratch):
    """Files in as few units as their names allow. What a unit complains about is asked again of each file
    alone, where it is named best."""
    if len(paths) == 1:
        return judge_alone(paths[0], known, memory)
    source = Path(scratch) / (hashlib.sha256("\0".join(paths).encode()).hexdigest()[:16] + ".cpp")
    source.write_text("".join(f'#include "{ROOT / path}"\n' for path in paths))
    words, folder = known[paths[0]]
    command = ([*words, "-Wno-shadow"], folder)  # across files it is none

    def judge():
        errors = run([*command[0], "-fsyntax-only", source], folder, source)
        if errors:  # the later of two files with the same name in them is the one that is named
            clash = [path for path in paths if re.search(rf"^{re.escape(str(ROOT / path))}:.* error:", errors, re.M)]
            rest = [path for path in paths if path not in clash]
            parts = [rest, clash] if clash and rest else [[path] for path in paths]
            found = [judge_together(part, known, memory, scratch) for part in parts]
        elif tidy(source, command, ", ".join(paths), IN_UNIT):
            found = [judge_alone(path, known, memory) for path in paths]
        else:
            found = []
        return "\n".join(filter(None, found))

    return memory.ask("together", command, source, judge)


def units(files, known):
    """Files with the same flags in one folder (two levels deep), FILES_IN_UNIT at a time."""
    groups = {}
    for path in files:
        words, folder = known[path]
        groups.setdefault((tuple(words), folder, Path(path).parent.parts[:2]), []).append(path)
    return [group[at:at + FILES_IN_UNIT] for group in groups.values()
            for at in range(0, len(group), FILES_IN_UNIT)]


def main() -> int:
    known, memory, begin = commands(), Memory(), time.monotonic()
    # What this configuration does not compile (the CUDA backend) has no flags to be judged by.
    files = [os.path.relpath(Path(name).resolve(), ROOT) for name in sys.argv[1:]] or [
        path for path in sources() if path in known]
    bad = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        for step in (pool.map(lambda path: parse(path, known, memory), files),
                     pool.map(lambda unit: judge_together(unit, known, memory, scratch), units(files, known))):
            for complaint in step:
                if complaint:
                    bad += 1
                    print(complaint, flush=True)
    print(f"{len(files)} files, {bad} with complaints, {time.monotonic() - begin:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
