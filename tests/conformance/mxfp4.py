"""gpt-oss with experts in MXFP4, for check_models.py: random blocks, the model that they stand for,
and the files as they are published."""

import json

import numpy
import torch
from safetensors.torch import load_file, save_file

VALUES = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def random_blocks(generator, experts, rows, columns):
    """[E, rows, G, 16] bytes, [E, rows, G] exponents."""
    groups = columns // 32
    blocks = generator.integers(0, 256, (experts, rows, groups, 16), dtype=numpy.uint8)
    scales = generator.integers(121, 126, (experts, rows, groups), dtype=numpy.uint8)
    return blocks, scales


def values_of(blocks, scales):
    """[E, rows, columns]: the low half of a byte comes first."""
    pairs = numpy.stack([VALUES[blocks & 15], VALUES[blocks >> 4]], -1)  # [E, rows, G, 16, 2]
    numbers = pairs.reshape(*blocks.shape[:3], 32) * 2.0 ** (scales.astype(int) - 127)[..., None]
    return numbers.reshape(*blocks.shape[:2], -1)


def save(model, folder):
    """Gives the model random experts that MXFP4 can hold, and writes its files with them."""
    generator = numpy.random.default_rng(23)
    stored = {}
    for i, layer in enumerate(model.model.layers):
        for name in ("gate_up_proj", "down_proj"):
            weight = getattr(layer.mlp.experts, name)  # [E, in, out]
            blocks, scales = random_blocks(generator, weight.shape[0], weight.shape[2],
                                           weight.shape[1])
            with torch.no_grad():
                weight.copy_(torch.tensor(values_of(blocks, scales)).transpose(1, 2))
            key = f"model.layers.{i}.mlp.experts.{name}"
            stored[key + "_blocks"], stored[key + "_scales"] = blocks, scales
    model.save_pretrained(folder)
    file = str(folder / "model.safetensors")
    tensors = load_file(file)
    for key, value in stored.items():
        tensors.pop(key.removesuffix("_blocks").removesuffix("_scales"), None)
        tensors[key] = torch.tensor(value)
    save_file(tensors, file, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (folder / "config.json").write_text(json.dumps(config))
