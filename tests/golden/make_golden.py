#!/usr/bin/env python3
"""Writes tests/golden/models.json: what PyTorch computes for a tiny model of each kind.

    python3 tests/golden/make_golden.py > tests/golden/models.json

Each model is written here a second time, in float64 and plain PyTorch, from the papers and from
the names of our parameters. The file holds the configuration as a recipe's [model] table, the
parameters, a batch, and PyTorch's logits, loss, gradients and the losses of ten steps of AdamW.
tests/unit/golden.cpp holds Heddle to them. Needs PyTorch; the tests do not.
"""

import json
import math
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
IGNORE = -100
OPTIMIZER = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-8, "weight_decay": 0.1}
STEPS = 10


class Parameters(dict):
    """Tensors by name, made on first use: short decimals, so that the file stays small."""

    def __init__(self):
        super().__init__()
        self.generator = torch.Generator().manual_seed(len(sys.argv) + 20)

    def get(self, name, *shape, around=0.0):
        if name not in self:
            values = torch.randn(*shape, generator=self.generator) * 0.4 + around
            self[name] = torch.round(values, decimals=2).requires_grad_(True)
        assert tuple(self[name].shape) == shape, name
        return self[name]


class Builder:
    """The layers, by the names that Heddle gives their parameters."""

    def __init__(self, model, parameters):
        self.m, self.p = model, parameters

    def linear(self, x, name, outputs, bias):
        w = self.p.get(name + ".weight", outputs, x.shape[-1])
        return F.linear(x, w, self.p.get(name + ".bias", outputs) if bias else None)

    def norm(self, x, name):
        width = x.shape[-1]
        gain = self.p.get(name + ".weight", width, around=1.0)
        if self.m.get("norm", "layer") == "rms":
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * gain
        bias = self.p.get(name + ".bias", width) if self.bias else None
        return F.layer_norm(x, (width,), gain, bias, 1e-5)

    @property
    def bias(self):
        return self.m.get("bias", True)

    def rope(self, x):
        """x: [B, T, H, D]; the pairs are (i, i + D/2)."""
        t, d = x.shape[1], x.shape[3]
        angles = torch.arange(t)[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        a, b = x[..., : d // 2], x[..., d // 2:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def attention(self, x, memory, name, mask):
        """mask: [B, Tq, Tk], true where a query sees a key."""
        a = self.m["attention"]
        heads, groups = a["heads"], a.get("kv_heads", a["heads"])
        d = self.m["width"] // heads
        split = lambda y, n: y.view(*y.shape[:2], n, d)
        q = split(self.linear(x, name + ".q", heads * d, self.bias), heads)
        k = split(self.linear(memory, name + ".k", groups * d, self.bias), groups)
        v = split(self.linear(memory, name + ".v", groups * d, self.bias), groups)
        if a.get("position") == "rope":
            q, k = self.rope(q), self.rope(k)
        k, v = (y.repeat_interleave(heads // groups, 2) for y in (k, v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(d)
        weights = scores.masked_fill(~mask[:, None], -math.inf).softmax(-1)
        y = torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2)
        return self.linear(y, name + ".out", self.m["width"], self.bias)

    def dense(self, x, name):
        width, kind = self.m["width"], self.m.get("ffn", "gelu")
        hidden = self.m.get("ffn_width", 4 * width)
        if kind == "swiglu":
            gate, up = self.linear(x, name + ".in", 2 * hidden, self.bias).chunk(2, -1)
            h = F.silu(gate) * up
        else:
            h = self.linear(x, name + ".in", hidden, self.bias)
            bend = {"relu": F.relu, "gelu": F.gelu,
                    "gelu-tanh": lambda y: F.gelu(y, approximate="tanh")}[kind]
            h = bend(h)
        return self.linear(h, name + ".out", width, self.bias)

    def experts(self, x, name):
        moe, flat = self.m["moe"], x.flatten(0, 1)
        router = F.linear(flat, self.p.get(name + ".router.weight", moe["experts"], flat.shape[1]))
        probabilities = router.softmax(-1)
        strength, chosen = probabilities.topk(moe["active"], -1)
        shares = strength / strength.sum(-1, keepdim=True)
        outputs = torch.stack([self.dense(flat, f"{name}.experts.{e}")
                               for e in range(moe["experts"])], 1)
        picked = outputs.gather(1, chosen[..., None].expand(-1, -1, flat.shape[1]))
        # Padding has no expert and does not count.
        real = self.real.flatten()
        counts = F.one_hot(chosen[real], moe["experts"]).sum((0, 1)) / chosen[real].numel()
        self.balance = self.balance + moe["balance"] * moe["experts"] * (
            counts * probabilities[real].mean(0)).sum()
        y = (picked * shares[..., None]).sum(1) * real[:, None]
        for s in range(moe.get("shared", 0)):
            y = y + self.dense(flat, f"{name}.shared.{s}")
        return y.view_as(x)

    def branch(self, x, name, f):
        if self.m.get("norm_place", "pre") == "post":
            return self.norm(x + f(x), name)
        return x + f(self.norm(x, name))

    def stack(self, x, mask, scope="", memory=None, memory_mask=None):
        for i in range(self.m["layers"]):
            at = f"{scope}layers.{i}."
            x = self.branch(x, at + "attention_norm",
                            lambda y: self.attention(y, y, at + "attention", mask))
            if memory is not None:
                x = self.branch(x, at + "cross_norm",
                                lambda y: self.attention(y, memory, at + "cross", memory_mask))
            ffn = self.experts if "moe" in self.m else self.dense
            x = self.branch(x, at + "ffn_norm", lambda y: ffn(y, at + "ffn"))
        return self.norm(x, scope + "norm") if self.m.get("norm_place", "pre") == "pre" else x

    def positions(self, x, scope, count):
        t, c = x.shape[1], x.shape[2]
        kind = self.m["attention"].get("position", "none")
        if kind == "learned":
            return x + self.p.get(scope + "position.weight", count, c)[:t]
        if kind == "sinusoidal":
            angles = torch.arange(t)[:, None] * 10000.0 ** (-torch.arange(0, c, 2) / c)
            return x + torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        return x

    def tokens(self, ids, scope, table=None):
        width = self.m["width"]
        if table is None:
            table = self.p.get(scope + "embed.weight", self.m["vocabulary"], width)
        x = F.embedding(ids, table)
        recurrent = "rnn" in self.m["kind"]
        if recurrent or self.m["attention"].get("position") == "sinusoidal":
            x = x * math.sqrt(width)
        if recurrent:
            return x, table
        return self.positions(x, scope, self.m["context"]), table

    def elman(self, x, name, width, lengths, h, backward=False):
        """x: [B, T, C], h: [B, width] or None -> all states [B, T, width], and the last ones."""
        pre = self.linear(x, name + ".in", width, self.bias)
        u = self.p.get(name + ".recurrent.weight", width, width)
        h = torch.zeros(x.shape[0], width) if h is None else h
        out = [None] * x.shape[1]
        steps = range(x.shape[1])
        for t in reversed(steps) if backward else steps:
            alive = (t < lengths)[:, None]
            new = torch.tanh(pre[:, t] + F.linear(h, u))
            h = torch.where(alive, new, h)
            out[t] = torch.where(alive, new, torch.zeros(()))
        return torch.stack(out, 1), h

    def elman_stack(self, x, scope, layers, lengths, both_ways, states=None):
        last, width = [], self.m["width"]
        for i in range(layers):
            at = f"{scope}layers.{i}"
            if both_ways:
                a, ha = self.elman(x, at + ".forward", width // 2, lengths, None)
                b, hb = self.elman(x, at + ".backward", width // 2, lengths, None, True)
                x, h = torch.cat([a, b], -1), torch.cat([ha, hb], -1)
            else:
                x, h = self.elman(x, at, width, lengths, states[i] if states else None)
            last.append(h)
        return x, last

    def one_head(self, h, memory, name, mask):
        """Attention of one head with any of the four scores. mask: [B, Tq, Tk]"""
        width = h.shape[-1]
        q, k, v = (self.linear(x, f"{name}.{n}", width, self.bias)
                   for x, n in ((h, "q"), (memory, "k"), (memory, "v")))
        scores = self.scores(q, k, name + ".score").masked_fill(~mask, -math.inf)
        return self.linear(scores.softmax(-1) @ v, name + ".out", width, self.bias)

    def scores(self, q, k, name):
        """q: [B, Tq, D], k: [B, Tk, D] -> [B, Tq, Tk]"""
        d, kind = q.shape[-1], self.m["attention"]["score"]
        if kind == "scaled-dot":
            return q @ k.mT / math.sqrt(d)
        if kind == "multiplicative":  # k W q
            return F.linear(q, self.p.get(name + ".weight", 1, d, d)[0]) @ k.mT / math.sqrt(d)
        if kind == "concat":  # w [k; q]
            w = self.p.get(name + ".weight", 1, 2 * d)[0]
            return (q @ w[d:])[:, :, None] + (k @ w[:d])[:, None]
        # additive: w tanh(W [k; q])
        w = self.p.get(name + ".weight", 1, d)
        wq, wk = self.p.get(name + ".query", 1, d, d), self.p.get(name + ".key", 1, d, d)
        return (torch.tanh(F.linear(q, wq[0])[:, :, None] + F.linear(k, wk[0])[:, None]) * w[0]).sum(-1)

    def prefixes(self, x):
        """A two-way network on every prefix: its two last states. [B, T, C] -> [B, T, C]"""
        out, half = [], self.m["width"] // 2
        for t in range(1, x.shape[1] + 1):
            y, _ = self.elman_stack(x[:, :t], "", self.m["layers"], torch.full((len(x),), t), True)
            out.append(torch.cat([y[:, -1, :half], y[:, 0, half:]], -1))
        return torch.stack(out, 1)

    def recurrent(self, batch):
        ids, layers = batch["tokens"], self.m["layers"]
        b, t = ids.shape
        lengths = batch.get("lengths", torch.full((b,), t))
        if self.m["kind"] != "rnn-seq2seq":
            x, table = self.tokens(ids, "")
            if self.m.get("task") == "language":
                return self.head(self.prefixes(x), table)
            x, _ = self.elman_stack(x, "", layers, lengths, self.m["kind"] == "birnn")
            return self.head(x, table)
        x, table = self.tokens(ids, "encoder.")
        memory, ends = self.elman_stack(x, "encoder.", layers, lengths, True)
        y, table = self.tokens(batch["target_tokens"], "decoder.")
        begin = [torch.tanh(self.linear(h, f"bridge.{i}", self.m["width"], self.bias))
                 for i, h in enumerate(ends)]
        h, _ = self.elman_stack(y, "decoder.", layers, batch["target_lengths"], False, begin)
        seen = (torch.arange(t)[None, None, :] < lengths[:, None, None]).expand(b, h.shape[1], t)
        c = self.one_head(h, memory, "attention", seen)
        both = self.linear(torch.cat([c, h], -1), "combine", self.m["width"], self.bias)
        return self.head(torch.tanh(both), table)

    def run(self, batch):
        self.balance = torch.zeros(())
        kind = self.m["kind"]
        if kind == "vit":
            return self.vit(batch)
        if "rnn" in kind:
            return self.recurrent(batch)
        ids = batch["tokens"]
        b, t = ids.shape
        keys = torch.arange(t)[None, None, :]
        lengths = batch.get("lengths", torch.full((b,), t))
        visible = (keys < lengths[:, None, None]).expand(b, t, t)
        self.real = visible[:, 0]
        causal = torch.ones(t, t, dtype=torch.bool).tril()
        if kind == "decoder":
            x, table = self.tokens(ids, "")
            return self.head(self.stack(x, visible & causal), table)
        if kind == "encoder":
            x, table = self.tokens(ids, "")
            if self.m["task"] == "classify":
                return self.head(self.pooled(x, lengths), None)
            return self.head(self.stack(x, visible), table)
        x, table = self.tokens(ids, "encoder.")
        memory = self.stack(x, visible, "encoder.")
        written = batch["target_tokens"]
        u = written.shape[1]
        own = torch.arange(u)[None, None, :] < batch["target_lengths"][:, None, None]
        y, table = self.tokens(written, "decoder.", table if self.m.get("tied") else None)
        seen = own & torch.ones(u, u, dtype=torch.bool).tril()
        memory_mask = (keys < lengths[:, None, None]).expand(b, u, t)
        return self.head(self.stack(y, seen, "decoder.", memory, memory_mask), table)

    def pooled(self, x, lengths):
        """A class token in front of the others says what the whole is. [B, T, C] -> [B, C]"""
        b, t, c = x.shape
        x = torch.cat([self.p.get("class_token", 1, c).expand(b, 1, c), x], 1)
        visible = torch.arange(t + 1)[None, None, :] <= lengths[:, None, None]
        return self.stack(x, visible.expand(b, t + 1, t + 1))[:, 0]

    def vit(self, batch):
        images, side, width = batch["images"], self.m["patch"], self.m["width"]
        w = self.p.get("patch.weight", width, images.shape[1], side, side)
        x = F.conv2d(images, w, self.p.get("patch.bias", width) if self.bias else None, stride=side)
        x = x.flatten(2).transpose(1, 2)
        mean = self.m.get("pooling") == "mean"
        if not mean:
            token = self.p.get("class_token", 1, width)
            x = torch.cat([token.expand(x.shape[0], 1, width), x], 1)
        x = self.positions(x, "", x.shape[1])
        mask = torch.ones(x.shape[0], x.shape[1], x.shape[1], dtype=torch.bool)
        y = self.stack(x, mask)
        return self.head(y.mean(1) if mean else y[:, 0], None)

    def head(self, x, table):
        if self.m.get("tied"):
            return F.linear(x, table)
        labels = self.m.get("classes", 0)
        return self.linear(x, "head", labels or self.m["vocabulary"], bool(labels) and self.bias)


def loss_of(model, parameters, batch, smoothing):
    builder = Builder(model, parameters)
    logits = builder.run(batch)
    task = F.cross_entropy(logits.flatten(0, -2), batch["targets"].flatten(),
                           ignore_index=IGNORE, label_smoothing=smoothing)
    return logits, task, task + builder.balance


def token_batch(model, generator, labels):
    t = model["context"]
    ids = lambda limit, *shape: torch.randint(limit, shape, generator=generator)
    batch = {"tokens": ids(model["vocabulary"], 2, t), "targets": ids(labels, 2, t)}
    batch["targets"][1, t - 2:] = IGNORE
    if model.get("task") == "classify":
        batch["targets"] = ids(labels, 2)
    if model["kind"] in ("encoder", "encoder-decoder", "birnn", "rnn-seq2seq") and (
            model.get("task") != "language"):
        batch["lengths"] = torch.tensor([t, t - 2])
    if model["kind"] in ("encoder-decoder", "rnn-seq2seq"):
        batch["target_tokens"] = ids(model["vocabulary"], 2, t)
        batch["target_lengths"] = torch.tensor([t, t - 2])
    return batch


def image_batch(model, generator):
    shape = (3, model["channels"], model["height"], model["pixels_wide"])
    images = torch.round(torch.randn(*shape, generator=generator), decimals=2)
    return {"images": images, "targets": torch.randint(model["classes"], (3,), generator=generator)}


def golden(name, model, smoothing):
    generator = torch.Generator().manual_seed(7)
    labels = model.get("classes", model.get("vocabulary"))
    batch = image_batch(model, generator) if model["kind"] == "vit" else token_batch(
        model, generator, labels)
    parameters = Parameters()
    logits, task, total = loss_of(model, parameters, batch, smoothing)
    total.backward()
    flat = lambda t: t.detach().flatten().tolist()
    out = {
        "name": name, "model": model, "label_smoothing": smoothing,
        "batch": {k: {"shape": list(v.shape), "values": flat(v)} for k, v in batch.items()},
        "parameters": [{"name": k, "shape": list(v.shape), "values": flat(v),
                        "gradient": flat(v.grad)} for k, v in parameters.items()],
        "logits": flat(logits), "task": task.item(), "total": total.item()}
    decayed = [v for v in parameters.values() if v.dim() > 1]
    plain = [v for v in parameters.values() if v.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed}, {"params": plain, "weight_decay": 0.0}], **OPTIMIZER)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        _, task, total = loss_of(model, parameters, batch, smoothing)
        total.backward()
        optimizer.step()
        losses.append(task.item())
    out["losses"] = losses
    return out


BASE = {"layers": 2, "width": 4, "vocabulary": 7, "context": 5}
MODELS = [
    ("gpt", {"kind": "decoder", **BASE, "ffn": "gelu-tanh",
             "attention": {"heads": 2, "position": "learned"}}, 0.0),
    ("llama", {"kind": "decoder", **BASE, "norm": "rms", "ffn": "swiglu", "ffn_width": 6,
               "bias": False, "tied": True,
               "attention": {"heads": 2, "kv_heads": 1, "position": "rope"}}, 0.0),
    ("moe", {"kind": "decoder", **BASE, "ffn_width": 6,
             "moe": {"experts": 3, "active": 2, "balance": 0.1},
             "attention": {"heads": 2, "position": "none"}}, 0.0),
    ("tagger", {"kind": "encoder", "task": "tag", **BASE, "classes": 3, "norm_place": "post",
                "ffn": "relu", "attention": {"heads": 1, "position": "sinusoidal"}}, 0.0),
    ("translate", {"kind": "encoder-decoder", **BASE, "layers": 1, "tied": True, "ffn": "relu",
                   "attention": {"heads": 2, "position": "sinusoidal"}}, 0.1),
    ("vit", {"kind": "vit", "layers": 1, "width": 4, "classes": 3, "channels": 2, "height": 4,
             "pixels_wide": 6, "patch": 2, "attention": {"heads": 2, "position": "learned"}}, 0.05),
    ("rnn", {"kind": "rnn", **BASE}, 0.0),
    ("birnn", {"kind": "birnn", "task": "tag", **BASE, "classes": 3}, 0.0),
    ("rnn-seq2seq", {"kind": "rnn-seq2seq", **BASE, "layers": 1,
                     "attention": {"heads": 1, "score": "additive"}}, 0.1),
    *((f"rnn-seq2seq {score}", {"kind": "rnn-seq2seq", **BASE, "layers": 1,
                                "attention": {"heads": 1, "score": score}}, 0.0)
      for score in ("scaled-dot", "multiplicative", "concat")),
    ("birnn language", {"kind": "birnn", "task": "language", **BASE, "layers": 1}, 0.0),
    ("classifier", {"kind": "encoder", "task": "classify", **BASE, "layers": 1, "classes": 3,
                    "attention": {"heads": 2, "position": "rope"}}, 0.0),
    ("masked", {"kind": "encoder", "task": "masked", **BASE, "layers": 1, "tied": True,
                "attention": {"heads": 2, "position": "learned"}}, 0.0),
    ("vit mean", {"kind": "vit", "layers": 1, "width": 4, "classes": 3, "channels": 1, "height": 4,
                  "pixels_wide": 4, "patch": 2, "pooling": "mean", "norm": "rms", "bias": False,
                  "attention": {"heads": 1, "position": "learned"}}, 0.0),
    ("moe tagger", {"kind": "encoder", "task": "tag", **BASE, "layers": 1, "classes": 3,
                    "ffn_width": 6,
                    "moe": {"experts": 4, "active": 2, "shared": 1, "balance": 0.1},
                    "attention": {"heads": 2, "position": "none"}}, 0.1),
]

json.dump({"torch": torch.__version__, "optimizer": {**OPTIMIZER, "betas": list(OPTIMIZER["betas"])},
           "models": [golden(*m) for m in MODELS]}, sys.stdout)
print()
