"""Models of images for check_models.py: scores and vectors of PNG files of the right size."""

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
    files, pixels = prepare(folder, size_of(model, options), model.config.num_channels)
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


def patches_of(model, pixels):
    patch = model.config.patch_size
    side = patch if isinstance(patch, int) else patch[0]
    return (pixels.shape[2] // side) * (pixels.shape[3] // side)
