#!/usr/bin/env python3
"""Damages files of every format that Heddle reads, and looks at what the program makes of them.

    damage.py --heddle PROGRAM --count 3000 --seed 1 [--jobs 2]

Each mutant is one file of a tiny run or data set with flipped bits, a cut end, inserted, removed or
swapped blocks, or a number that is too large. A command that reads it then has to end by itself,
within bounds of time and memory, with status 0, 1, 2 or 130. A file that Heddle itself has written
must be refused, or give what the whole one gives. Exits with 1 when a mutant does otherwise; they
are kept in --keep DIRECTORY.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from world import Heddle, tensors_of, timeless, write_data, write_recipes

LOGITS = ["logits", "run", "--tokens", "1,2,3,4", "--json"]
RESUME = ["train", "run", "--resume", "--json"]
COMPARE = ["compare", "decoder.toml", "--vary", "model.norm=layer,rms", "--set", "train.keep=2",
           "--budget", "steps=12", "--out", "compared", "--json"]
IN_COMPARISON = "compared/runs/norm=rms/seed-1/"


def data_of(recipe):
    return ["data", f"{recipe}.toml", "--json"]


# Format: the folder it is in, the file, commands that read it, and whether Heddle wrote it (then it
# is refused, or gives the same).
FORMATS = {
    "weights": ("stopped", "run/model.safetensors", [LOGITS, RESUME], True),
    "checkpoint": ("stopped", "run/checkpoints/step-{newest}.safetensors", [RESUME], True),
    "run's recipe.toml": ("stopped", "run/recipe.toml", [LOGITS, RESUME], True),
    "tokenizer.json": ("stopped", "run/tokenizer.json",
                       [LOGITS, RESUME, ["tokenize", "run"]], True),
    "codec.json": ("stopped", "run/codec.json", [LOGITS, RESUME], True),
    "codec.json of images": ("images", "run/codec.json", [RESUME], True),
    "plan.json": ("stopped", "run/plan.json", [RESUME], True),
    "log.jsonl": ("stopped", "run/log.jsonl", [RESUME], True),
    "final.json": ("comparison", IN_COMPARISON + "final.json", [COMPARE], True),
    "compare.json": ("comparison", "compared/compare.json", [COMPARE], True),
    "compare's log.jsonl": ("comparison", IN_COMPARISON + "log.jsonl", [COMPARE], True),
    "compare's checkpoint": ("comparison", IN_COMPARISON + "checkpoints/step-12.safetensors",
                             [COMPARE], True),
    "recipe": ("data", "decoder.toml", [data_of("decoder")], False),
    "text": ("data", "text.txt", [data_of("decoder")], False),
    "gzip": ("data", "text.gz", [data_of("packed")], True),  # it has a checksum of its own
    "tags": ("data", "tags.tsv", [data_of("tagger")], False),
    "pairs": ("data", "pairs.tsv", [data_of("translator")], False),
    "labelled": ("data", "labelled.tsv", [data_of("classifier")], False),
    "idx": ("data", "images.idx", [data_of("vit")], False),
    "idx labels": ("data", "labels.idx", [data_of("vit")], False),
    "png": ("data", "pictures/dark/2.png", [data_of("pictures")], False),
    "jpeg": ("data", "pictures/light/photo.jpg", [data_of("pictures")], False),
}

STATUSES = {0, 1, 2, 130}


# --- mutations

def flip(b, draw):
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        at = draw.randrange(len(b))
        b[at] ^= 1 << draw.randrange(8)


def replace(b, draw):
    b[draw.randrange(len(b))] = draw.randrange(256)


def cut(b, draw):
    del b[draw.randrange(len(b)):]


def remove(b, draw):
    at = draw.randrange(len(b))
    del b[at:at + draw.randint(1, 64)]


def insert(b, draw):
    at = draw.randrange(len(b) + 1)
    b[at:at] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 32)))


def repeat(b, draw):
    at = draw.randrange(len(b))
    b[at:at] = b[at:at + draw.randint(1, 256)]


def swap(b, draw):
    size = draw.choice([1, 2, 4, 8, 16, 64])
    if len(b) < 2 * size:
        return replace(b, draw)
    one, two = sorted(draw.sample(range(len(b) - size + 1), 2))
    if two - one < size:
        return replace(b, draw)
    b[one:one + size], b[two:two + size] = b[two:two + size], b[one:one + size]


def length_field(b, draw):
    """A number of 4 or 8 bytes that is too large, mostly near the beginning."""
    size = draw.choice([4, 8])
    at = draw.randrange(min(len(b), 32)) if draw.random() < 0.7 else draw.randrange(len(b))
    value = draw.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1])
    b[at:at + size] = (value % 2**(8 * size)).to_bytes(size, draw.choice(["little", "big"]))


def zero(b, draw):
    at = draw.randrange(len(b))
    size = min(draw.choice([1, 16, 512]), len(b) - at)
    b[at:at + size] = bytes(size)


def digit(b, draw):
    """Another digit: what reads like an edit."""
    digits = [i for i, c in enumerate(b) if 48 <= c <= 57]
    if not digits:
        return replace(b, draw)
    b[draw.choice(digits)] = draw.choice(b"0123456789")


def lines(b, draw):
    parts = bytes(b).split(b"\n")
    one = draw.randrange(len(parts))
    if draw.random() < 0.5:
        del parts[one]
    else:
        two = draw.randrange(len(parts))
        parts[one], parts[two] = parts[two], parts[one]
    b[:] = b"\n".join(parts)


def huge(b, draw):
    """A number in text that is far too large."""
    digits = [i for i, c in enumerate(b) if 48 <= c <= 57]
    if not digits:
        return length_field(b, draw)
    at = draw.choice(digits)
    b[at:at + 1] = draw.choice([b"99999999999999999999", b"4294967296", b"-1", b"1e400"])


MUTATIONS = [flip, flip, flip, replace, cut, remove, insert, repeat, swap, length_field, zero,
             digit, digit, lines, huge]


def mutated(data, draw):
    b = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 1, 2, 3])):
        if b:
            draw.choice(MUTATIONS)(b, draw)
    return bytes(b)


# --- what a command gives

def numbers(arguments, ending, folder):
    """What must be the same where a damaged file is taken."""
    if arguments is RESUME:
        run = folder / "run"
        newest = max((run / "checkpoints").glob("step-*.safetensors"),
                     key=lambda path: int(path.stem.split("-")[1]))
        return newest.name, tensors_of(newest), tensors_of(run / "model.safetensors")
    try:
        return timeless(json.loads(ending.out))
    except ValueError:
        return ending.out


def make_worlds(heddle, root):
    """Folders to copy from: data alone, a run to go on with, one of images, a comparison."""
    def run(arguments, folder):
        ending = heddle.run(arguments, folder)
        if ending.status != 0:
            sys.exit(f"heddle {' '.join(arguments)}: status {ending.status}\n{ending.err}")

    for name in ("files", "data", "stopped", "images", "comparison"):
        (root / name).mkdir()
    for name in ("files", "data"):
        write_data(root / name)
    # Runs know whole paths of their data. It stays where it is when a run is copied.
    for name in ("stopped", "images", "comparison"):
        write_recipes(root / name, f"{root / 'files'}/")
    write_recipes(root / "data")
    run(["train", "decoder.toml", "--out", "run", "--set", "train.steps=7"], root / "stopped")
    run(["train", "vit.toml", "--out", "run", "--set", "train.steps=7"], root / "images")
    run(COMPARE, root / "comparison")


class Campaign:
    def __init__(self, options, root):
        self.options = options
        self.root = root
        self.heddle = Heddle(options.heddle, options.memory << 20, options.timeout)
        self.baselines = {}
        self.counts = defaultdict(Counter)
        self.failures = []

    def place(self, name):
        world, file, commands, protected = FORMATS[name]
        newest = max((int(p.stem.split("-")[1]) for p in
                      (self.root / world).glob("run/checkpoints/*.safetensors")), default=0)
        return world, file.format(newest=newest), commands, protected

    def input(self, command):
        return "12 is the square\n" if command[0] == "tokenize" else ""

    def command(self, command):
        """More steps than the run has had: resuming has something to do."""
        return command + ["--set", "train.steps=14"] if command is RESUME else command

    def try_once(self, name, command, data):
        """Runs the command on a copy with this content of the file, or on a whole one."""
        world, file, _, _ = self.place(name)
        with tempfile.TemporaryDirectory(dir=self.root) as copy:
            folder = Path(copy) / "world"
            shutil.copytree(self.root / world, folder)
            if data is not None:
                (folder / file).write_bytes(data)
            ending = self.heddle.run(self.command(command), folder, self.input(command))
            result = None
            if ending.status == 0:
                try:
                    result = numbers(command, ending, folder)
                except (OSError, ValueError, KeyError) as e:
                    result = f"no result: {e}"
            return ending, result

    def baseline(self, name, command):
        key = (name, command[0])
        if key not in self.baselines:
            ending, result = self.try_once(name, command, None)
            if ending.status != 0:
                sys.exit(f"{name}: the whole one is refused: {ending.err}")
            self.baselines[key] = result
        return self.baselines[key]

    def verdict(self, name, command, ending, result):
        """(class, failure or None)"""
        if ending.hung:
            return "hung", "hangs"
        if ending.status < 0:
            return "crashed", f"signal {-ending.status}"
        if ending.status not in STATUSES:
            return "other status", f"status {ending.status}"
        if "out of memory" in ending.err or "refused memory" in ending.err:
            return "out of memory", f"takes more than {self.options.memory} MB"
        if ending.status != 0 and "heddle:" not in ending.err and "wrote" not in ending.err:
            return "silent", "fails without a word"
        if ending.status != 0:
            return "refused", None
        if result == self.baseline(name, command):
            return "same result", None
        if FORMATS[name][3]:
            return "other result", "is taken, with other numbers"
        return "taken", None

    def one(self, number):
        draw = random.Random(f"{self.options.seed}/{number}")
        names = [n for n in FORMATS if self.options.only in n]
        name = names[number % len(names)]
        world, file, commands, _ = self.place(name)
        command = draw.choice(commands)
        data = (self.root / world / file).read_bytes()
        bad = mutated(data, draw)
        if bad == data:
            return name, "unchanged", None
        ending, result = self.try_once(name, command, bad)
        kind, failure = self.verdict(name, command, ending, result)
        if failure:
            said = ending.err.strip().splitlines()[-1:] or [""]
            failure = f"mutant {number} ({name}, {command[0]}): {failure}; {said[0][:300]}"
            if self.options.keep:
                keep = Path(self.options.keep)
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{number}-{Path(file).name}").write_bytes(bad)
        return name, kind, failure

    def run(self):
        for name in FORMATS:
            if self.options.only in name:
                for command in FORMATS[name][2]:
                    self.baseline(name, command)
        pool = ThreadPoolExecutor(self.options.jobs)
        try:
            for name, kind, failure in pool.map(self.one, range(self.options.count)):
                self.counts[name][kind] += 1
                if failure:
                    self.failures.append(failure)
                    print(failure, flush=True)
        except KeyboardInterrupt:
            print("interrupted; so far:")
        finally:
            pool.shutdown(cancel_futures=True)

    def summary(self):
        total = Counter()
        for name, counts in self.counts.items():
            total += counts
            print(f"{name:24} " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
        print(f"{sum(total.values())} mutants: "
              + ", ".join(f"{n} {kind}" for kind, n in sorted(total.items()))
              + f"; {len(self.failures)} failures")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", required=True, help="the program")
    parser.add_argument("--count", type=int, default=1000, help="mutants")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--memory", type=int, default=1500, help="megabytes of address space")
    parser.add_argument("--timeout", type=float, default=120, help="seconds of one command")
    parser.add_argument("--only", default="", help="formats with this in their name")
    parser.add_argument("--keep", help="directory for mutants that failed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heddle-damage-") as root:
        make_worlds(Heddle(options.heddle), Path(root))
        campaign = Campaign(options, Path(root))
        campaign.run()
        campaign.summary()
        sys.exit(1 if campaign.failures else 0)


if __name__ == "__main__":
    main()
