"""Tiny data for every task, made on the spot."""

import random
import struct
import zlib

WORDS = "the a quick brown lazy fox dog jumps over sees and runs to its red house tree".split()
LABELS = ("few", "some", "many")
TAGS = {"the": "DET", "a": "DET", "its": "DET", "over": "ADP", "to": "ADP", "and": "CONJ"}


def sentences(count, seed):
    chance = random.Random(seed)
    return [" ".join(chance.choice(WORDS) for _ in range(chance.randint(2, 9)))
            for _ in range(count)]


def png(path, rows):
    """A grey image, 8 bits."""
    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
                     + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def write_text(folder, _recipe):
    lines = sentences(160, 1)
    # Documents by lines, by blank lines, and enough for a window in each split.
    folder.joinpath("text.txt").write_text(
        "".join(line + (".\n\n" if i % 3 == 2 else ".\n") for i, line in enumerate(lines)))


def write_pairs(folder, _recipe):
    for name, count, seed in (("pairs.tsv", 40, 2), ("valid.tsv", 6, 3)):
        folder.joinpath(name).write_text(
            "".join(f"{s}\t{' '.join(reversed(s.split()))}\n" for s in sentences(count, seed)))


def write_tags(folder, _recipe):
    for name, count, seed in (("tags.tsv", 40, 4), ("valid.tsv", 6, 5)):
        folder.joinpath(name).write_text("\n".join(
            "".join(f"{word}\t{TAGS.get(word, 'X')}\n" for word in s.split())
            for s in sentences(count, seed)))


def write_labelled(folder, _recipe):
    for name, count, seed in (("labelled.tsv", 40, 6), ("valid.tsv", 9, 7)):
        lines = [f"{LABELS[i % 3]}\t{s}\n" for i, s in enumerate(sentences(count, seed))]
        folder.joinpath(name).write_text("".join(lines))


def write_images(folder, recipe):
    chance = random.Random(8)
    height, width = recipe.pixels
    for split, count in (("images", 6), ("valid", 2)):
        for label, low in (("dark", 0), ("light", 128)):
            folder.joinpath(split, label).mkdir(parents=True)
            for i in range(count):
                png(folder / split / label / f"{i}.png",
                    [[low + chance.randrange(128) for _ in range(width)] for _ in range(height)])


WRITERS = {"language": write_text, "masked": write_text, "translate": write_pairs,
           "tag": write_tags, "classify": write_labelled}


def write(recipe, folder):
    (write_images if recipe.kind == "vit" else WRITERS[recipe.task])(folder, recipe)
