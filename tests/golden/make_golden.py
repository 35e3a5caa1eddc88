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
        bias = self.p.get(name + ".bias", width) if self.has_bias("norm_bias") else None
        return F.layer_norm(x, (width,), gain, bias, 1e-5)

    @property
    def bias(self):
        return self.m.get("bias", True)

    def has_bias(self, key):
        return self.m.get(key, self.bias)

    def gain_norm(self, x, name):
        """The model's norm with a gain alone: of queries and keys."""
        gain = self.p.get(name + ".weight", x.shape[-1], around=1.0)
        if self.m.get("norm", "layer") == "rms":
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * gain
        return F.layer_norm(x, (x.shape[-1],), gain, None, 1e-5)

    def rope(self, x, base, factors):
        """x: [B, T, H, D]; the pairs are (i, i + D/2)."""
        t, d = x.shape[1], x.shape[3]
        rates = base ** (-torch.arange(0, d, 2) / d) / torch.tensor(factors or [1.0])
        angles = torch.arange(t)[:, None] * rates
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        a, b = x[..., : d // 2], x[..., d // 2:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def t5_bias(self, name, heads, a, tq, tk, causal):
        """[heads, Tq, Tk] of T5's buckets, from a table [buckets, heads]."""
        table = self.p.get(name + ".t5.table", a["t5_buckets"], heads)
        n = a["t5_buckets"] if causal else a["t5_buckets"] // 2
        m = n // 2

        def bucket(distance):  # of the key from the query
            length = max(-distance, 0) if causal else abs(distance)
            base = 0 if causal or distance <= 0 else n
            if length < m:
                return base + length
            far = math.log(length / m) / math.log(a["t5_max_distance"] / m) * (n - m)
            return base + min(m + int(far + 1e-9), n - 1)

        index = torch.tensor([[bucket(k - q) for k in range(tk)] for q in range(tq)])
        return table[index].permute(2, 0, 1)

    def layer_options(self, layer):
        """[model.attention], and what the layer's table of the pattern changes."""
        a = self.m["attention"]
        if layer is None or "pattern" not in a:
            return a
        return {**a, **a[a["pattern"][layer % len(a["pattern"])]]}

    def attention(self, x, memory, name, mask, layer=None, causal=False):
        """mask: [B, Tq, Tk], true where a query sees a key. layer: of self-attention."""
        a = self.layer_options(layer)
        heads, groups = a["heads"], a.get("kv_heads", a["heads"])
        d = a.get("head_width", self.m["width"] // heads)
        split = lambda y, n: y.view(*y.shape[:2], n, d)
        bias = self.has_bias("qkv_bias")
        q = self.linear(x, name + ".q", heads * d, bias)
        k = self.linear(memory, name + ".k", groups * d, self.m.get("key_bias", bias))
        v = split(self.linear(memory, name + ".v", groups * d, bias), groups)
        if self.m.get("qk_norm") == "full":
            q, k = self.gain_norm(q, name + ".q_norm"), self.gain_norm(k, name + ".k_norm")
        q, k = split(q, heads), split(k, groups)
        if self.m.get("qk_norm") == "head":
            q, k = self.gain_norm(q, name + ".q_norm"), self.gain_norm(k, name + ".k_norm")
        position = a.get("position") if layer is not None else None
        if position == "rope":
            turn = lambda y: self.rope(y, a.get("rope_base", 10000.0), a.get("rope_factors"))
            q, k = turn(q), turn(k)
        k, v = (y.repeat_interleave(heads // groups, 2) for y in (k, v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * a.get("scale", 1 / math.sqrt(d))
        if position == "t5":
            table = name.replace(f"layers.{layer}.", "layers.0.") if a.get("t5_shared") else name
            scores = scores + self.t5_bias(table, heads, a, *mask.shape[1:], causal)
        if layer is not None and "look_back" in a:
            ago = torch.arange(mask.shape[1])[:, None] - torch.arange(mask.shape[2])
            mask = mask & (ago <= a["look_back"])
        weights = scores.masked_fill(~mask[:, None], -math.inf).softmax(-1)
        y = torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2)
        return self.linear(y, name + ".out", self.m["width"], self.has_bias("out_bias"))

    def dense(self, x, name, hidden=None):
        width, kind = self.m["width"], self.m.get("ffn", "gelu")
        hidden = hidden or self.m.get("ffn_width", 4 * width)
        bias = self.has_bias("ffn_bias")
        tanh = lambda y: F.gelu(y, approximate="tanh")
        quick = lambda y: y * torch.sigmoid(1.702 * y)
        gates = {"swiglu": F.silu, "geglu": F.gelu, "geglu-tanh": tanh, "swiglu-clamped": quick}
        bends = {"relu": F.relu, "relu2": lambda y: F.relu(y).square(), "gelu": F.gelu,
                 "gelu-tanh": tanh, "quick-gelu": quick, "silu": F.silu}
        if kind in gates:
            gate, up = self.linear(x, name + ".in", 2 * hidden, bias).chunk(2, -1)
            if kind == "swiglu-clamped":
                limit = self.m["ffn_clamp"]
                gate, up = gate.clamp(max=limit), up.clamp(-limit, limit) + 1
            h = gates[kind](gate) * up
        else:
            h = bends[kind](self.linear(x, name + ".in", hidden, bias))
        return self.linear(h, name + ".out", width, bias)

    def experts(self, x, name):
        moe, flat = self.m["moe"], x.flatten(0, 1)
        router = self.linear(flat, name + ".router", moe["experts"], moe.get("router_bias", False))
        scores = router.sigmoid() if moe.get("router") == "sigmoid" else router.softmax(-1)
        probabilities = scores / scores.sum(-1, keepdim=True)
        wanted = scores
        if moe.get("router_correction"):
            wanted = scores + self.p.get(name + ".router.correction", moe["experts"])
        chosen = wanted.topk(moe["active"], -1).indices
        shares = scores.gather(1, chosen)
        if moe.get("renormalise", True):
            shares = shares / shares.sum(-1, keepdim=True)
        shares = shares * moe.get("routed_scale", 1.0)
        outputs = torch.stack([self.dense(flat, f"{name}.experts.{e}")
                               for e in range(moe["experts"])], 1)
        picked = outputs.gather(1, chosen[..., None].expand(-1, -1, flat.shape[1]))
        # Padding has no expert and does not count.
        real = self.real.flatten()
        counts = F.one_hot(chosen[real], moe["experts"]).sum((0, 1)) / chosen[real].numel()
        self.balance = self.balance + moe["balance"] * moe["experts"] * (
            counts * probabilities[real].mean(0)).sum()
        y = (picked * shares[..., None]).sum(1) * real[:, None]
        together = sum(self.dense(flat, f"{name}.shared.{s}") for s in range(moe.get("shared", 0)))
        if moe.get("shared_gate"):
            together = together * self.linear(flat, name + ".shared_gate", 1, False).sigmoid()
        return (y + together).view_as(x)

    def scaled(self, y, name):
        if "layer_scale" in self.m:
            y = y * self.p.get(name + "_scale", y.shape[-1], around=self.m["layer_scale"])
        return y * self.m.get("residual_scale", 1.0)

    def branch(self, x, name, f):
        place = self.m.get("norm_place", "pre")
        if name.endswith("layers.0.attention") and not self.m.get("first_norm", True):
            return x + self.scaled(f(x), name)
        if place == "post":
            return self.norm(x + self.scaled(f(x), name), name + "_norm")
        y = f(x if place == "branch" else self.norm(x, name + "_norm"))
        if place in ("branch", "sandwich"):
            y = self.norm(y, name + "_post_norm")
        return x + self.scaled(y, name)

    def stack(self, x, mask, scope="", memory=None, memory_mask=None, causal=False):
        for i in range(self.m["layers"]):
            at = f"{scope}layers.{i}."
            attend = lambda y: self.attention(y, y, at + "attention", mask, i, causal)
            feed = lambda y: self.feed(y, at + "ffn", i)
            parallel = self.m.get("parallel", "none")
            if parallel != "none":
                n = self.norm(x, at + "attention_norm")
                own = self.norm(x, at + "ffn_norm") if parallel == "two-norms" else n
                x = x + self.scaled(attend(n), at + "attention") + self.scaled(feed(own), at + "ffn")
                continue
            x = self.branch(x, at + "attention", attend)
            if memory is not None:
                x = self.branch(x, at + "cross",
                                lambda y: self.attention(y, memory, at + "cross", memory_mask))
            if self.m.get("ffn") != "none":
                x = self.branch(x, at + "ffn", feed)
        last = self.m.get("last_norm", self.m.get("norm_place", "pre") != "post")
        return self.norm(x, scope + "norm") if last else x

    def feed(self, x, name, layer):
        moe = self.m.get("moe")
        if moe is None:
            return self.dense(x, name)
        if layer < moe.get("dense_layers", 0):
            return self.dense(x, name, moe.get("dense_width"))
        return self.experts(x, name)

    def positions(self, x, scope, count):
        t, c = x.shape[1], x.shape[2]
        kind = self.m["attention"].get("position", "none")
        if kind == "learned":
            return x + self.p.get(scope + "position.weight", count, c)[:t]
        if kind == "sinusoidal":
            angles = torch.arange(t)[:, None] * 10000.0 ** (-torch.arange(0, c, 2) / c)
            if self.m["attention"].get("sinusoidal_halves"):
                return x + torch.cat([angles.sin(), angles.cos()], -1)
            return x + torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        return x

    def tokens(self, ids, scope, table=None):
        width = self.m["width"]
        if table is None:
            table = self.p.get(scope + "embed.weight", self.m["vocabulary"], width)
        x = F.embedding(ids, table)
        recurrent = "rnn" in self.m["kind"]
        if "embedding_scale" in self.m:
            x = x * self.m["embedding_scale"]
        elif recurrent or self.m["attention"].get("position") == "sinusoidal":
            x = x * math.sqrt(width)
        if recurrent:
            return x, table
        x = self.positions(x, scope, self.m["context"])
        return self.norm(x, scope + "embed_norm") if self.m.get("embedding_norm") else x, table

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
            return self.head(self.stack(x, visible & causal, causal=True), table)
        if kind == "encoder":
            x, table = self.tokens(ids, "")
            if self.m["task"] == "classify":
                first = self.m.get("pooling") == "first-token"
                y = self.stack(x, visible)[:, 0] if first else self.pooled(x, lengths)
                return self.head(y, None)
            return self.head(self.stack(x, visible), table)
        x, table = self.tokens(ids, "encoder.")
        memory = self.stack(x, visible, "encoder.")
        written = batch["target_tokens"]
        u = written.shape[1]
        own = torch.arange(u)[None, None, :] < batch["target_lengths"][:, None, None]
        shared = self.m.get("shared_embedding", self.m.get("tied"))
        y, table = self.tokens(written, "decoder.", table if shared else None)
        seen = own & torch.ones(u, u, dtype=torch.bool).tril()
        memory_mask = (keys < lengths[:, None, None]).expand(b, u, t)
        return self.head(self.stack(y, seen, "decoder.", memory, memory_mask, True), table)

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
        pooling, extra = self.m.get("pooling", "class-token"), self.m.get("extra_tokens", 0)
        before = [] if pooling == "mean" else [self.p.get("class_token", 1, width)]
        if extra:
            before.append(self.p.get("extra_tokens", extra, width))
        first = sum(token.shape[0] for token in before)
        x = torch.cat([*(t.expand(x.shape[0], *t.shape) for t in before), x], 1)
        x = self.positions(x, "", x.shape[1])
        if self.m.get("embedding_norm"):
            x = self.norm(x, "embed_norm")
        mask = torch.ones(x.shape[0], x.shape[1], x.shape[1], dtype=torch.bool)
        y = self.stack(x, mask)
        mean = y[:, first:].mean(1)
        whole = {"mean": mean, "class-token": y[:, 0], "class-mean": torch.cat([y[:, 0], mean], 1),
                 "class-extra": torch.cat([y[:, 0], y[:, 1]], 1)}
        return self.head(whole[pooling], None)

    def first_head_layer(self, x):
        bends = {"tanh": torch.tanh, "relu": F.relu, "gelu": F.gelu, "silu": F.silu}
        bias = self.has_bias("head_transform_bias")
        y = self.linear(x, "head_transform", self.m["width"], bias)
        y = bends[self.m["head_transform"]](y)
        return self.norm(y, "head_norm") if self.m.get("head_norm") else y

    def head(self, x, table):
        if "head_transform" in self.m:
            x = self.first_head_layer(x)
        x = x * self.m.get("logit_scale", 1.0)
        labels = self.m.get("classes", 0)
        outputs = labels or self.m["vocabulary"]
        bias = self.m.get("head_bias", bool(labels) and self.bias)
        if self.m.get("tied"):
            y = F.linear(x, table, self.p.get("head.bias", outputs) if bias else None)
        else:
            y = self.linear(x, "head", outputs, bias)
        cap = self.m.get("logit_softcap")
        return cap * torch.tanh(y / cap) if cap else y


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
                        "gradient": flat(torch.zeros_like(v) if v.grad is None else v.grad)}
                       for k, v in parameters.items()],
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
    # What pretrained families add, under the name of one that has it.
    ("gemma", {"kind": "decoder", **BASE, "width": 8, "norm": "rms", "norm_place": "sandwich", "tied": True,
               "bias": False, "ffn": "geglu-tanh", "ffn_width": 6, "qk_norm": "head",
               "embedding_scale": 2.0, "logit_softcap": 1.5,
               "attention": {"heads": 2, "kv_heads": 1, "position": "rope", "scale": 0.5,
                             "pattern": ["local", "global"],
                             "local": {"look_back": 2, "rope_base": 100.0}, "global": {}}}, 0.0),
    ("olmo", {"kind": "decoder", **BASE, "norm": "rms", "norm_place": "branch", "bias": False,
              "ffn": "swiglu", "ffn_width": 6, "qk_norm": "full",
              "attention": {"heads": 2, "kv_heads": 1, "position": "rope",
                            "rope_factors": [2.0]}}, 0.0),
    ("neox", {"kind": "decoder", **BASE, "parallel": "two-norms", "qk_norm": "head",
              "attention": {"heads": 2, "position": "rope"}}, 0.0),
    ("falcon", {"kind": "decoder", **BASE, "parallel": "one-norm", "bias": False, "norm_bias": True,
                "attention": {"heads": 2, "kv_heads": 1, "position": "none"}}, 0.0),
    ("bloom", {"kind": "decoder", **BASE, "layers": 1, "embedding_norm": True, "tied": True,
               "ffn": "geglu", "ffn_width": 6,
               "attention": {"heads": 2, "position": "none"}}, 0.0),
    ("qwen", {"kind": "decoder", **BASE, "layers": 1, "norm": "rms", "bias": False,
              "qkv_bias": True, "ffn": "relu2", "attention": {"heads": 2, "position": "rope"}}, 0.0),
    ("whisper", {"kind": "encoder", "task": "masked", **BASE, "layers": 1, "key_bias": False,
                 "ffn": "quick-gelu", "tied": True, "head_bias": True, "last_norm": False,
                 "attention": {"heads": 2, "position": "none"}}, 0.0),
    ("granite", {"kind": "decoder", **BASE, "norm": "rms", "bias": False, "ffn": "silu",
                 "residual_scale": 0.25, "logit_scale": 0.5, "embedding_scale": 3.0,
                 "attention": {"heads": 2, "position": "rope"}}, 0.1),
    ("gpt-oss", {"kind": "decoder", **BASE, "norm": "rms", "ffn": "swiglu-clamped",
                 "ffn_clamp": 0.75, "ffn_width": 6,
                 "moe": {"experts": 3, "active": 2, "balance": 0.1, "router_bias": True},
                 "attention": {"heads": 2, "position": "rope"}}, 0.0),
    ("deepseek", {"kind": "decoder", **BASE, "norm": "rms", "bias": False, "ffn": "swiglu",
                  "ffn_width": 6,
                  "moe": {"experts": 4, "active": 2, "balance": 0.1, "shared": 2,
                          "shared_gate": True, "router": "sigmoid", "router_correction": True,
                          "routed_scale": 2.5, "renormalise": False, "dense_layers": 1,
                          "dense_width": 5},
                  "attention": {"heads": 2, "position": "rope"}}, 0.0),
    ("t5", {"kind": "encoder-decoder", **BASE, "norm": "rms", "bias": False, "tied": True,
            "ffn": "relu", "logit_scale": 0.5,
            "attention": {"heads": 2, "position": "t5", "t5_buckets": 4, "t5_max_distance": 3,
                          "t5_shared": True, "scale": 1.0}}, 0.0),
    ("marian", {"kind": "encoder-decoder", **BASE, "layers": 1, "norm_place": "post", "tied": True,
                "ffn": "silu", "head_bias": True,
                "attention": {"heads": 2, "position": "sinusoidal", "sinusoidal_halves": True}},
     0.1),
    ("flan", {"kind": "encoder-decoder", **BASE, "layers": 1, "norm": "rms", "bias": False,
              "shared_embedding": True, "ffn": "geglu-tanh", "ffn_width": 6,
              "attention": {"heads": 2, "head_width": 3, "position": "t5", "t5_buckets": 4,
                            "t5_max_distance": 3, "t5_shared": True, "scale": 1.0}}, 0.0),
    ("two tables", {"kind": "encoder-decoder", **BASE, "layers": 1, "tied": True,
                    "shared_embedding": False, "ffn": "relu",
                    "attention": {"heads": 2, "position": "none"}}, 0.0),
    ("bert", {"kind": "encoder", "task": "masked", **BASE, "layers": 1, "norm_place": "post",
              "embedding_norm": True, "tied": True, "head_bias": True, "head_transform": "gelu",
              "head_norm": True, "attention": {"heads": 2, "position": "learned"}}, 0.0),
    ("bert classifier", {"kind": "encoder", "task": "classify", **BASE, "layers": 1, "classes": 3,
                         "norm_place": "post", "pooling": "first-token", "head_transform": "tanh",
                         "attention": {"heads": 2, "position": "learned"}}, 0.1),
    ("modernbert", {"kind": "encoder", "task": "tag", **BASE, "classes": 3, "bias": False,
                    "norm_bias": False, "embedding_norm": True, "first_norm": False,
                    "ffn": "geglu", "ffn_width": 6, "head_transform": "silu", "head_norm": True,
                    "head_transform_bias": True, "head_bias": True,
                    "attention": {"heads": 2, "position": "rope"}}, 0.0),
    ("dino", {"kind": "vit", "layers": 1, "width": 4, "classes": 3, "channels": 1, "height": 4,
              "pixels_wide": 4, "patch": 2, "layer_scale": 0.5, "embedding_norm": True,
              "attention": {"heads": 2, "position": "learned"}}, 0.0),
    ("dino classifier", {"kind": "vit", "layers": 1, "width": 4, "classes": 3, "channels": 1,
                         "height": 4, "pixels_wide": 4, "patch": 2, "pooling": "class-mean",
                         "extra_tokens": 2, "head_transform": "tanh",
                         "attention": {"heads": 2, "position": "learned"}}, 0.0),
    ("deit", {"kind": "vit", "layers": 1, "width": 4, "classes": 3, "channels": 1, "height": 4,
              "pixels_wide": 4, "patch": 2, "pooling": "class-extra", "extra_tokens": 1,
              "attention": {"heads": 2, "position": "learned"}}, 0.1),
    ("attention alone", {"kind": "decoder", **BASE, "ffn": "none",
                         "attention": {"heads": 2, "kv_heads": 1, "position": "rope"}}, 0.0),
    ("registers", {"kind": "vit", "layers": 1, "width": 4, "classes": 3, "channels": 1,
                   "height": 4, "pixels_wide": 4, "patch": 2, "pooling": "mean", "extra_tokens": 2,
                   "attention": {"heads": 2, "position": "rope"}}, 0.0),
]

json.dump({"torch": torch.__version__, "optimizer": {**OPTIMIZER, "betas": list(OPTIMIZER["betas"])},
           "models": [golden(*m) for m in MODELS]}, sys.stdout)
print()
