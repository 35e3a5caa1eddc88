#!/usr/bin/env python3
"""Dependencies point down the list of layers only.

Prints `file:line: reason` for each #include that breaks a rule, and exits with 1.

    scripts/check_layers.py [ROOT]
"""

import re
import sys
from pathlib import Path

# Lowest first. A file may include its own layer and the ones before it.
LAYERS = [
    "base", "language", "tensor", "backend", "autograd", "ops", "io", "text", "nn", "model", "data",
    "pretrained", "recipe", "run", "generate", "distributed", "optim", "plan", "train", "compare", "check", "report", "lab", "bench", "cli",
]

# Rooms above train/ that use models or show runs and train none.
USING = {"check", "report"}

# The layer of each public header include/heddle/<name>.h. heddle/ops.h and heddle/ops/ are `ops`.
PUBLIC = {
    "error": "base", "dtype": "base", "shape": "base", "device": "base", "random": "base",
    "activation": "base",
    "gate": "base",
    "print": "tensor",
    "tensor": "tensor", "memory": "tensor",
    "runtime": "backend", "cost": "backend",
    "tape": "autograd", "autograd": "autograd",
    "ops": "ops", "operators": "ops",
    "generation": "generate",
    "trained_model": "run", "export": "run",
    "language_model": "generate", "chat": "generate", "translator": "generate", "prediction": "generate",
    "tagger": "generate", "classifier": "generate", "embedder": "generate", "images": "generate", "texts": "generate",
}

# Layers that know nothing of any one device's backend.
ABOVE_DEVICES = {"io", "text", "nn", "model", "data", "pretrained", "recipe", "run", "generate", "distributed", "optim", "plan", "train", "compare"}

# Written by CMake, so not in the tree.
GENERATED = re.compile(
    r"^(bench/torch_rival_script\.h|report/inspect/page_files\.h|(report/page/explorer|lab/present/page)_files\.h|language/catalogue\.h|recipe/shipped_texts\.h|"
    r"heddle/ops\.h|heddle/ops/\w+\.h|op_names\.inc)$")

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
SOURCES = {".h", ".cpp", ".inc", ".cu", ".cuh"}


def is_test(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name.startswith("test")


def place(path: str):
    """(layer, room) of a path relative to include/ or src/; the room separates siblings."""
    parts = path.split("/")
    if parts[0] == "heddle":
        if parts[1] == "ops":
            return "ops", parts[2].removesuffix(".h")
        return PUBLIC.get(parts[1].removesuffix(".h")), None
    if path.startswith("ops/support/"):
        return "ops", None  # shared by all ops
    if parts[0] in ("backend", "ops") and len(parts) > 2:
        return parts[0], parts[1]
    return (parts[0] if parts[0] in LAYERS else None), None


def complaint(path: str, target: str):
    """Why the file at `path` (relative to its root) may not include `target`, or None."""
    name = path.rsplit("/", 1)[-1]
    layer, room = place(path)
    to_layer, to_room = place(target)
    if layer is None:
        return f"{path} belongs to no layer (see LAYERS and PUBLIC in scripts/check_layers.py)"
    if to_layer is None:
        return f"{target} belongs to no layer"

    public = path.startswith("heddle/") or (layer == "ops" and name == f"{room}.h")
    if public and not target.startswith("heddle/"):
        return f"a public header includes public headers only, not {target}"
    if LAYERS.index(to_layer) > LAYERS.index(layer):
        return f"layer {layer} may not use {target} of layer {to_layer}"

    if layer in USING and to_layer == "train":
        return f"layer {layer} uses models and trains none: not {target}"

    if layer == "backend" and room:
        if to_layer == "backend" and to_room and to_room != room:
            return f"backend {room} may not use backend {to_room}"
        if room == "cpu" and to_layer == "tensor":
            return "the CPU backend knows plain pointers, not tensors"

    if layer in ABOVE_DEVICES and target.startswith("backend/cpu/"):
        return f"layer {layer} is for every device: backend/, heddle/runtime.h or base/parallel.h instead of {target}"

    if path.startswith("ops/support/") and to_room and to_layer == "ops":
        return f"what ops share may not use op {to_room}"
    if layer == "ops" and room:
        tiles = f"ops/{room}/amx/"
        if name.endswith((".cpu.h", ".kernels.h")) or path.startswith(tiles):
            own = target in (f"ops/{room}/{room}.kernels.h", f"ops/{room}/{room}.kinds.h") or target.startswith(tiles) or (
                target.startswith(f"ops/{room}/") and target.endswith(".cpu.h"))
            shared = target.startswith("ops/") and to_room is None and target.endswith(".cpu.h")
            plain = to_layer == "base" or target.startswith("backend/cpu/")
            if not (own or plain or (shared and name.endswith(".cpu.h"))):
                return f"kernels know plain pointers only, not {target}"
        elif to_layer == "ops" and to_room and to_room != room:
            if name.endswith(".cpu.cpp") and target == f"ops/{to_room}/{to_room}.kernels.h":
                return None  # the CPU's routines may call all of its kernels
            if target not in (f"ops/{to_room}/{to_room}.h", f"heddle/ops/{to_room}.h"):
                return f"op {room} may use the interface of op {to_room}, not {target}"
    return None


# What ops share on the CPU: for the CPU's files of ops alone.
CPU_SUPPORT = "ops/support/cpu/"


def of_the_cpu(path: str) -> bool:
    """Whether a file under ops/ is the CPU's own."""
    return (path.endswith((".cpu.cpp", ".cpu.h", ".kernels.h", ".cpu_args.h")) or "/amx/" in path
            or path.startswith(CPU_SUPPORT) or path == "ops/support/cpu.h")


def device_complaint(path: str, line: str):
    """Why this line may not stand in a file of an op that is for every device, or None."""
    if not path.startswith("ops/"):
        if re.search(rf'"{CPU_SUPPORT}', line):
            return f"{CPU_SUPPORT} is for the CPU's files of ops"
        return None
    if path.endswith((".cu", ".cuh")):
        if re.search(r'\bcpu::|"(backend/cpu|ops/support/cpu)[/.]', line):
            return "what is the CPU's stands in .cpu.cpp, not here"
        return None
    if re.search(r'"backend/cuda/', line):
        return "an op is for every device: what is CUDA's stands in its .cu"
    if of_the_cpu(path):
        return None
    if re.search(r'\bcpu::|"(backend/cpu|ops/support/cpu)/', line):
        return "an op is for every device: what is the CPU's stands in its .cpu.cpp"
    return None


def check(root: Path):
    for base in ("include", "src", "cli"):
        for file in sorted((root / base).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            shown = file.relative_to(root).as_posix()
            path = shown if base == "cli" else file.relative_to(root / base).as_posix()
            if is_test(path):
                continue  # a test may look at whatever it needs
            for number, line in enumerate(file.read_text().splitlines(), 1):
                reason = device_complaint(path, line)
                if reason:
                    yield f"{shown}:{number}: {reason}"
                    continue
                match = INCLUDE.match(line)
                if not match:
                    continue
                target = match.group(1)
                where = f"{shown}:{number}"
                if base == "cli" and any((folder / target).exists() for folder in (file.parent, root / "cli")):
                    continue
                known = GENERATED.match(target) or any(
                    (root / r / target).is_file() for r in ("include", "src"))
                if not known:
                    yield f"{where}: {target} is neither in include/ nor in src/"
                    continue
                reason = complaint(path, target)
                if reason:
                    yield f"{where}: {reason}"


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    problems = list(check(root))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
