#!/usr/bin/env python3
"""clang-tidy with the checks of .clang-tidy over the sources of the library and the command line, or
over the files given.

Every file is parsed alone, so this is also where a missing include and a shadowed name show. Flags come
from the preset tidy, which is configured but not built. A file that was found clean is remembered under
everything that the verdict depends on (its text after the preprocessor, comments included, the checks, the
version of the tool) and is not asked about again: in $XDG_CACHE_HOME/heddle-tidy, or ~/.cache.

    scripts/tidy.py [FILE...]
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/tidy"
TIDY, CLANG = "clang-tidy-19", "clang++-19"
NOISE = re.compile(r"^\d+ warnings? |^\[\d+/\d+\] Processing file ")
MOST_REMEMBERED = 20000


def sources():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "src/*.cpp",
                             "cli/*.cpp"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return sorted(path for path in set(listed)
                  if not Path(path).name.startswith("test") and (ROOT / path).is_file())


def commands():
    """What compiles each file, without its output."""
    if not (BUILD / "build.ninja").is_file():
        subprocess.run(["cmake", "--preset", "tidy"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        words = words[next(i for i, word in enumerate(words) if word.endswith(CLANG)):]
        while "-o" in words:
            at = words.index("-o")
            del words[at:at + 2]
        found[entry["file"]] = (words, entry["directory"])
    return found


class Memory:
    """Files that were found clean, by the digest of what the verdict depends on."""

    def __init__(self):
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.folder = Path(cache) / "heddle-tidy"
        self.folder.mkdir(parents=True, exist_ok=True)
        version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
        self.base = version + (ROOT / ".clang-tidy").read_bytes()
        oldest_first = sorted(self.folder.iterdir(), key=lambda stamp: stamp.stat().st_mtime)
        for stamp in oldest_first[:max(0, len(oldest_first) - MOST_REMEMBERED)]:
            stamp.unlink()

    def stamp(self, command):
        """None where the preprocessor already complains: clang-tidy then says of what."""
        words, directory = command
        text = subprocess.run([*words, "-E", "-CC", "-P"], cwd=directory, capture_output=True)
        if text.returncode != 0:
            return None
        flags = "\0".join(word.replace(str(ROOT), ".") for word in words).encode()
        return self.folder / hashlib.sha256(self.base + flags + text.stdout).hexdigest()


def judge(path, known, memory):
    """Complaints about one file; empty: it is clean."""
    stamp = memory.stamp(known[str(ROOT / path)]) if str(ROOT / path) in known else None
    if stamp and stamp.exists():
        stamp.touch()
        return ""
    done = subprocess.run([TIDY, "-p", BUILD, "--quiet", ROOT / path], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        if stamp:
            stamp.touch()
        return ""
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in lines if not NOISE.match(line)) or f"{path}: {TIDY} failed"


def main() -> int:
    known, memory, begin = commands(), Memory(), time.monotonic()
    # What this configuration does not compile (the CUDA backend) has no flags to be judged by.
    files = [os.path.relpath(Path(name).resolve(), ROOT) for name in sys.argv[1:]] or [
        path for path in sources() if str(ROOT / path) in known]
    bad = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for complaint in pool.map(lambda path: judge(path, known, memory), files):
            if complaint:
                bad += 1
                print(complaint, flush=True)
    print(f"{len(files)} files, {bad} with complaints, {time.monotonic() - begin:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
