"""What campaigns work on: tiny data sets and recipes of several kinds, and how Heddle is run."""

import base64
import gzip
import json
import os
import random
import resource
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

# 8 x 8 pixels in grey.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4"
    "UG1RV19iZ2hnPk1xeXBkeFxlZ2P/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EAB8QAAEBCQEAAAAA"
    "AAAAAAAAABEBAAMGEhMUISJxof/aAAgBAQAAPwAH0QV0NrKUzuR5xv/Z")

TRAIN = """[train]
steps = {steps}
batch = 4
schedule = "constant"
learning_rate = 0.01
log_every = 2
eval_every = 4
eval_batches = 2
save_every = 3
"""

DECODER = """[model]
kind = "decoder"
layers = 1
width = 16
dropout = 0.1
[model.attention]
heads = 2
position = "rope"
[data]
text = "{text}"
tokenizer = "char"
context = 16
""" + TRAIN

ENCODER = """[model]
kind = "encoder"
task = "{task}"
layers = 1
width = 8
[model.attention]
heads = 2
[data]
{key} = "{file}"
tokenizer = "word"
validation_share = 0.2
""" + TRAIN

TRANSLATOR = """[model]
kind = "encoder-decoder"
layers = 1
width = 8
[model.attention]
heads = 2
[data]
pairs = "{file}"
tokenizer = "word"
validation_share = 0.2
""" + TRAIN

VIT = """[model]
kind = "vit"
layers = 1
width = 8
patch = 4
[model.attention]
heads = 2
[data]
{data}
validation_share = 0.2
""" + TRAIN


@dataclass
class Ending:
    status: int  # negative: the signal that ended it, as of subprocess
    out: str
    err: str
    hung: bool = False


class Heddle:
    """The program, with a bound on its memory and its time."""

    def __init__(self, program, memory_bytes=None, seconds=120):
        self.program = str(Path(program).resolve())
        self.memory = memory_bytes
        self.seconds = seconds

    def _limit(self):
        if self.memory:
            resource.setrlimit(resource.RLIMIT_AS, (self.memory, self.memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def start(self, arguments, cwd, threads=1, **more):
        environment = dict(os.environ, HEDDLE_THREADS=str(threads))
        return subprocess.Popen([self.program, *map(str, arguments)], cwd=cwd, env=environment,
                                preexec_fn=self._limit, **more)

    def run(self, arguments, cwd, text=""):
        """To its end; what it writes goes to files, so that nothing has to be read meanwhile."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
                tempfile.TemporaryFile() as given:
            given.write(text.encode())
            given.seek(0)
            process = self.start(arguments, cwd, stdin=given, stdout=out, stderr=err)
            hung = False
            try:
                process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                hung = True
                process.kill()
                process.wait()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
            return Ending(process.returncode, texts[0], texts[1], hung)


def png(width, height, value):
    """Grey, by the book."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    rows = b"".join(b"\0" + bytes((value + 7 * x + y) % 256 for x in range(width))
                    for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def idx(shape, values):
    return (bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape)
            + bytes(values))


def write_data(root):
    draw = random.Random(7)
    root = Path(root)
    text = "".join(f"{i * i} is the square of {i}\n" for i in range(200))
    (root / "text.txt").write_text(text)
    (root / "text.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    words = ["red", "green", "blue", "old", "new", "house", "tree", "walk", "sing"]
    lines = [[draw.choice(words) for _ in range(draw.randint(1, 5))] for _ in range(60)]
    (root / "pairs.tsv").write_text(
        "".join(f"{' '.join(line)}\t{' '.join(reversed(line))}\n" for line in lines))
    (root / "labelled.tsv").write_text(
        "".join(f"{'long' if len(line) > 2 else 'short'}\t{' '.join(line)}\n" for line in lines))
    (root / "tags.tsv").write_text(
        "".join("".join(f"{word}\t{'D' if len(word) == 3 else 'X'}\n" for word in line) + "\n"
                for line in lines))
    pixels = [draw.randrange(256) for _ in range(30 * 64)]
    (root / "images.idx").write_bytes(idx([30, 8, 8], pixels))
    (root / "labels.idx").write_bytes(idx([30], [i % 3 for i in range(30)]))
    for name, first in (("dark", 0), ("light", 120)):
        folder = root / "pictures" / name
        folder.mkdir(parents=True)
        for i in range(5):
            (folder / f"{i}.png").write_bytes(png(8, 8, first + i))
        (folder / "photo.jpg").write_bytes(JPEG)


def write_recipes(root, data="", steps=12):
    """`data` is the folder of the files, with a slash; they may lie beside the recipes."""
    recipes = {
        "decoder": DECODER.format(text=f"{data}text.txt", steps=steps),
        "packed": DECODER.format(text=f"{data}text.gz", steps=steps),
        "tagger": ENCODER.format(task="tag", key="tags", file=f"{data}tags.tsv", steps=steps),
        "classifier": ENCODER.format(task="classify", key="labelled", file=f"{data}labelled.tsv",
                                     steps=steps),
        "translator": TRANSLATOR.format(file=f"{data}pairs.tsv", steps=steps),
        "vit": VIT.format(data=f'images = "{data}images.idx"\nlabels = "{data}labels.idx"',
                          steps=steps),
        "pictures": VIT.format(data=f'image_folder = "{data}pictures"', steps=steps),
    }
    for name, recipe in recipes.items():
        (Path(root) / f"{name}.toml").write_text(recipe)


def tensors_of(path):
    """The bytes of each tensor of a safetensors file."""
    data = Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: data[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]]
            for name, entry in header.items()}


def timeless(value):
    """A JSON document without what a clock or the number of threads decides."""
    clocks = {"seconds", "tokens_per_s", "step_seconds", "round_seconds", "prompt_seconds",
              "peak_bytes", "live_bytes", "share_of_peak", "directory", "seconds_spread",
              "step_seconds_quartiles"}
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in clocks}
    if isinstance(value, list):
        return [timeless(v) for v in value]
    return value
