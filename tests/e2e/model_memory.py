#!/usr/bin/env python3
"""The memory of a process that uses a model: its weights once, in the type that they are held in.

    model_memory.py HEDDLE WORK

Makes models shaped like GPT-2 on the spot, in bf16 and in f32, writes a few tokens with them, and
compares the peak that the kernel counted with the bytes of the weights. Prints a table; exits with 1
when one is out of bounds.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

HEDDLE = Path(sys.argv[1]).resolve()
WORK = Path(sys.argv[2]).resolve()
MEGA = 1 << 20

LAYERS, WIDTH, VOCABULARY, CONTEXT = 10, 512, 2048, 64
# Above the weights: a tenth of them, which one tensor in two forms and the cache have to share, and
# what the program takes with a model of next to nothing.
SHARE_ABOVE, NOISE = 0.10, 4 * MEGA
# Held twice they would take this share of themselves more at least; the test must be able to see that.
TWICE = 0.5


def tensors(layers, width):
    yield "wte.weight", (VOCABULARY, width)
    yield "wpe.weight", (CONTEXT, width)
    for layer in range(layers):
        for name, shape in (("attn.c_attn", (width, 3 * width)), ("attn.c_proj", (width, width)),
                            ("mlp.c_fc", (width, 4 * width)), ("mlp.c_proj", (4 * width, width))):
            yield f"h.{layer}.{name}.weight", shape
            yield f"h.{layer}.{name}.bias", shape[1:]
        for norm in ("ln_1", "ln_2"):
            yield f"h.{layer}.{norm}.weight", (width,)
            yield f"h.{layer}.{norm}.bias", (width,)
    yield "ln_f.weight", (width,)
    yield "ln_f.bias", (width,)


def numbers(count, kind):
    """`count` numbers of about ±0.02 in a repeating order."""
    pattern = [((i * 2654435761) % 997 - 498) / 20000 for i in range(4099)]
    wide = b"".join(struct.pack("<f", x) for x in pattern)
    if kind == "BF16":
        wide = b"".join(wide[i + 2:i + 4] for i in range(0, len(wide), 4))
    bytes_each = 2 if kind == "BF16" else 4
    return (wide * (count // len(pattern) + 1))[:count * bytes_each]


def write_model(folder, layers, width, kind):
    folder.mkdir(parents=True)
    header, at = {}, 0
    shapes = list(tensors(layers, width))
    for name, shape in shapes:
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        size = count * (2 if kind == "BF16" else 4)
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes:
            file.write(numbers(shape[0] * (shape[1] if len(shape) > 1 else 1), kind))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "gpt2", "n_layer": layers, "n_head": width // 32, "n_embd": width,
        "n_positions": CONTEXT, "vocab_size": VOCABULARY, "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True}))
    # Bytes as GPT-2 writes them, and a few tokens more.
    letters = [chr(c) for c in range(33, 127)] + [chr(c) for c in range(161, 173)] \
        + [chr(c) for c in range(174, 256)] + [chr(c) for c in range(256, 324)]
    (folder / "vocab.json").write_text(json.dumps({c: i for i, c in enumerate(letters)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return at


def peak(model, *options):
    """The most bytes that the process had in memory."""
    command = [str(HEDDLE), "generate", str(model), "--prompt", "once", "--tokens", "8",
               "--temperature", "0", *options]
    with open(os.devnull, "wb") as nothing, open(WORK / "errors", "wb") as errors:
        process = subprocess.Popen(command, stdout=nothing, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: {(WORK / 'errors').read_text()}")
    return usage.ru_maxrss * 1024


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    for kind in ("BF16", "F32"):
        write_model(WORK / f"none-{kind}", 1, 32, kind)
    sizes = {kind: write_model(WORK / kind, LAYERS, WIDTH, kind) for kind in ("BF16", "F32")}
    wrong = 0
    print(f"{'file':6} {'options':38} {'weights':>9} {'program':>9} {'measured':>9}")
    for kind, options, weights in (
            ("BF16", (), sizes["BF16"]),
            ("BF16", ("--precision", "bf16"), sizes["BF16"]),
            ("BF16", ("--weights", "fp32"), sizes["F32"]),
            ("F32", (), sizes["F32"]),
            ("F32", ("--weights", "bf16"), sizes["BF16"]),
            ("F32", ("--precision", "bf16"), sizes["BF16"])):
        program = peak(WORK / f"none-{kind}", *options)
        measured = peak(WORK / kind, *options)
        print(f"{kind:6} {' '.join(options):38} {weights / MEGA:9.1f} {program / MEGA:9.1f} "
              f"{measured / MEGA:9.1f}")
        if measured > program + weights * (1 + SHARE_ABOVE) + NOISE:
            wrong += 1
            print(f"  {(measured - program - weights) / weights:.0%} above the weights")
        if weights * TWICE < weights * SHARE_ABOVE + NOISE:
            wrong += 1
            print("  too small a model to tell weights that are held twice")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
