"""Tiny models of every task for options.py: their data and their recipes."""

import struct

MODEL = 'layers = 1\nwidth = 16\nattention.heads = 2\n'
TRAIN = "[train]\nsteps = 6\nbatch = 4\nlearning_rate = 0.05\nlog_every = 1\n"
LANGUAGE = ('[model]\nkind = "decoder"\n' + MODEL + 'attention.position = "rope"\n'
            '[data]\ntext = "text.txt"\nvalidation = "other.txt"\ntest = "third.txt"\n'
            'tokenizer = "char"\ncontext = 16\n' + TRAIN)


def write_data(folder):
    """Data of every task; the recipes that learn from it, by the names of their runs."""
    words = ["ant", "bee", "cat", "dog", "eel"]
    lines = [" ".join(words[(i * k + j) % 5] for j in range(2 + (i + k) % 4))
             for k, i in enumerate(range(60))]
    for name, part in [("text", lines), ("other", lines[::3]), ("third", lines[1::2])]:
        (folder / f"{name}.txt").write_text(". ".join(part))
    for name, part in [("pairs", lines), ("pairs.v", lines[:7]), ("pairs.t", lines[:12])]:
        (folder / f"{name}.tsv").write_text(
            "".join(f"{x}\t{' '.join(reversed(x.split()))}\n" for x in part))
    tags = "".join("".join(f"{w}\tT{i % 3}\n" for i, w in enumerate(x.split())) + "\n" for x in lines)
    (folder / "tags.tsv").write_text(tags)
    (folder / "mood.tsv").write_text("".join(f"{'good' if i % 2 else 'bad'}\t{x}\n"
                                           for i, x in enumerate(lines)))
    pixels = bytes((37 * i + i // 16 * 11) % 256 for i in range(20 * 16))
    (folder / "images.idx").write_bytes(struct.pack(">IIII", 0x803, 20, 4, 4) + pixels)
    (folder / "labels.idx").write_bytes(struct.pack(">II", 0x801, 20) + bytes(i % 2 for i in range(20)))
    return {
        "language": LANGUAGE,
        "prefix": LANGUAGE.replace("attention.heads", "attention.prefix = true\nattention.heads"),
        "reverse": '[model]\nkind = "encoder-decoder"\n' + MODEL + '[data]\npairs = "pairs.tsv"\n'
                   'validation_pairs = "pairs.v.tsv"\ntest_pairs = "pairs.t.tsv"\n'
                   'tokenizer = "word"\n' + TRAIN,
        "tagger": '[model]\nkind = "encoder"\ntask = "tag"\n' + MODEL
                  + '[data]\ntags = "tags.tsv"\ntokenizer = "word"\n' + TRAIN,
        "mood": '[model]\nkind = "encoder"\ntask = "classify"\n' + MODEL
                + '[data]\nlabelled = "mood.tsv"\ntokenizer = "word"\n' + TRAIN,
        "halves": '[model]\nkind = "vit"\npatch = 2\n' + MODEL
                  + '[data]\nimages = "images.idx"\nlabels = "labels.idx"\n' + TRAIN}


def derived_recipe(folder, heddle, ask, check):
    """What `init --base` writes: the same model, until a key of its own says otherwise."""
    recipe = folder / "derived.toml"
    recipe.unlink(missing_ok=True)
    heddle("init", "derived.toml", "--base", "language.toml")
    text = recipe.read_text()
    check('base = "language.toml"' in text and "# width = 16" in text, "init --base", text)
    own, base = (ask("plan", name)["parameters"] for name in ("derived.toml", "language.toml"))
    check(own == base, "init --base", own, base)
    recipe.write_text(text + "[model]\nlayers = 2\n")
    check(ask("plan", "derived.toml")["parameters"] > base, "a recipe with a base")
