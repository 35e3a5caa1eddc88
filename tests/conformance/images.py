"""Models of images for check_models.py: scores and vectors of PNG files of the right size, and of others
that are resized as transformers' processors do it."""

import json

import numpy
import torch
from PIL import Image

MEAN, DEVIATION = [0.5, 0.4, 0.3], [0.2, 0.3, 0.5]
COUNT = 3


def size_of(model, options):
    asked = options.get("image", model.config.image_size)
    return (asked, asked) if isinstance(asked, int) else tuple(asked)


def prepare(folder, size, channels):
    """preprocessor_config.json and some images, which have the last size already. Returns their
    pixels as the model gets them, computed in float32 as everybody does."""
    settings = dict(do_resize=True, size=dict(height=size[0], width=size[1]), resample=2,
                    do_rescale=True, rescale_factor=1 / 255, do_normalize=True,
                    image_mean=MEAN[:channels], image_std=DEVIATION[:channels],
                    image_processor_type="ViTImageProcessor")
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    generator = numpy.random.default_rng(17)
    pixels, files = [], []
    for i in range(COUNT):
        image = generator.integers(0, 256, (*size, channels), dtype=numpy.uint8)
        files.append(folder / f"{i}.png")
        Image.fromarray(image if channels == 3 else image[..., 0]).save(files[-1])
        scaled = image.astype(numpy.float32) / numpy.float32(255)
        mean, deviation = (numpy.array(v[:channels], numpy.float32) for v in (MEAN, DEVIATION))
        pixels.append(((scaled - mean) / deviation).transpose(2, 0, 1))
    return files, torch.tensor(numpy.stack(pixels))


def judge(run, compare, program, folder, model, options, precision):
    """Complaints about one model in one precision; errors go to `compare`."""
    size = size_of(model, options)
    if model.config.num_channels == 3:
        complaint = judge_resizing(run, compare, program, folder, model, size, precision)
        if complaint:
            return complaint
    files, pixels = prepare(folder, size, model.config.num_channels)
    out = folder / "out.npy"
    with torch.no_grad():
        made = model(pixels.to(next(model.parameters()).dtype))
    if hasattr(made, "logits"):
        for i, file in enumerate(files):
            run(program, "logits", folder, "--image", file, "--npy", out, "--precision", precision)
            complaint = compare(numpy.load(out), made.logits[i:i + 1].numpy(), "logits", precision)
            if complaint:
                return complaint
        return None
    before = made.last_hidden_state.shape[1] - patches_of(model, pixels)
    theirs = {"class": made.last_hidden_state[:, 0],
              "mean": made.last_hidden_state[:, before:].mean(1)}
    for pool, vectors in theirs.items():
        many = []
        for batch in (1, 2, 64):
            run(program, "embed", folder, *files, "--pool", pool, "--batch", batch, "--npy", out,
                "--precision", precision)
            many.append(numpy.load(out))
        complaint = compare(many[0], vectors.numpy(), pool + " vectors", precision)
        if complaint:
            return complaint
        if any((other != many[0]).any() for other in many):
            return f"{pool} vectors depend on the images beside them"
    return None


def judge_resizing(run, compare, program, folder, model, size, precision):
    """Images of other sizes, through ViT's processor and through one that cuts the middle out."""
    from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    common = dict(image_mean=MEAN, image_std=DEVIATION)
    high, wide = size
    processors = [ViTImageProcessorPil(size=dict(height=high, width=wide), resample=2, **common),
                  BitImageProcessorPil(size=dict(shortest_edge=max(size) + 5), resample=3,
                                       crop_size=dict(height=high, width=wide), **common)]
    generator, out = numpy.random.default_rng(29), folder / "out.npy"
    for processor in processors:
        processor.save_pretrained(folder)
        for shape in ((60, 97, 3), (high, wide, 3), (11, 130, 3)):
            image = Image.fromarray(generator.integers(0, 256, shape, dtype=numpy.uint8))
            image.save(folder / "other.png")
            pixels = processor(image, return_tensors="pt")["pixel_values"]
            with torch.no_grad():
                made = model(pixels.to(next(model.parameters()).dtype))
            if hasattr(made, "logits"):
                run(program, "logits", folder, "--image", folder / "other.png", "--npy", out, "--precision",
                    precision)
                theirs = made.logits
            else:
                run(program, "embed", folder, folder / "other.png", "--pool", "class", "--npy", out, "--precision",
                    precision)
                theirs = made.last_hidden_state[:, 0]
            complaint = compare(numpy.load(out), theirs.numpy(), f"resized {shape}", precision)
            if complaint:
                return complaint
    return None


def patches_of(model, pixels):
    patch = model.config.patch_size
    side = patch if isinstance(patch, int) else patch[0]
    return (pixels.shape[2] // side) * (pixels.shape[3] // side)
