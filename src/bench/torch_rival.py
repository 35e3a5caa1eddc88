"""PyTorch's side of Heddle's benchmarks: answers requests on standard input, one a line.

    gemm M N K f32|bf16 forward|input_grad|weight_grad REPEATS  ->  seconds of one product
    attention B N H G D f32|bf16 none|causal forward|both REPEATS  ->  seconds of one call
    train LAYERS HEADS WIDTH VOCABULARY BATCH CONTEXT MODE REPEATS  ->  seconds of a training step;
        MODE: fp32, autocast (bf16), compile, compile-autocast
    decode LAYERS HEADS WIDTH VOCABULARY PROMPT TOKENS MODE prompt|tokens REPEATS  ->  seconds of
        reading a prompt, or of writing TOKENS behind it with a cache of keys and values;
        MODE: fp32, bf16, compile, compile-bf16
    peak  ->  bytes resident at the peak
"""

import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]))
torch.set_grad_enabled(False)
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
cache = {}


def gemm(m, n, k, dtype, which):
    key = (m, n, k, dtype)
    if key not in cache:
        cache.clear()
        torch.manual_seed(0)
        t = DTYPES[dtype]
        cache[key] = (torch.randn(m, k).to(t), torch.randn(n, k).to(t), torch.randn(m, n).to(t))
    x, w, dy = cache[key]
    if which == "forward":
        return lambda: torch.nn.functional.linear(x, w)
    if which == "input_grad":
        return lambda: dy @ w
    return lambda: dy.t() @ x


def attention(b, n, h, g, d, dtype, mask, which):
    key = ("attention", b, n, h, g, d, dtype)
    if key not in cache:
        cache.clear()
        torch.manual_seed(0)
        t = DTYPES[dtype]
        cache[key] = [torch.randn(b, heads, n, d).to(t) for heads in (h, g, g, h)]
    q, k, v, dy = cache[key]

    def forward():
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=mask == "causal", enable_gqa=h != g)

    def both():
        with torch.enable_grad():
            for x in (q, k, v):
                x.requires_grad_(True)
                x.grad = None
            forward().backward(dy)
            for x in (q, k, v):
                x.requires_grad_(False)

    return forward if which == "forward" else both


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.norm2 = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x, cache=None):
        b, t, c = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads)
        q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
        mask = None
        if cache is not None:
            k, v, mask = cache.join(k, v)
        y = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None and t > 1)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        h = torch.nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh")
        return x + self.down(h)


class Decoder(torch.nn.Module):
    def __init__(self, layers, heads, width, vocabulary, context):
        super().__init__()
        self.table = torch.nn.Embedding(vocabulary, width)
        self.positions = torch.nn.Embedding(context, width)
        self.layers = torch.nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, std=0.02)

    def forward(self, ids, targets):
        x = self.table(ids) + self.positions.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = torch.nn.functional.linear(self.norm(x), self.table.weight)
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class Cache:
    """Keys and values of a layer, in place. Eager code looks at those that are there; compiled code
    at all of them under a mask, so that no shape changes."""

    def __init__(self, heads, width, positions, dtype, fixed):
        shape = (1, heads, positions, width // heads)
        self.k, self.v = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)
        self.fixed = fixed
        self.first = 0                    # of the tokens to come
        self.places = self.mask = None    # of one token, for compiled code

    def join(self, k, v):
        if self.places is None:
            end = self.first + k.shape[2]
            self.k[:, :, self.first:end] = k
            self.v[:, :, self.first:end] = v
            return self.k[:, :, :end], self.v[:, :, :end], None
        self.k.index_copy_(2, self.places, k)
        self.v.index_copy_(2, self.places, v)
        return self.k, self.v, self.mask


class Generator:
    def __init__(self, model, heads, positions, compiled):
        width, dtype = model.table.weight.shape[1], model.table.weight.dtype
        self.model, self.positions, self.compiled = model, positions, compiled
        self.caches = [Cache(heads, width, positions, dtype, compiled) for _ in model.layers]
        self.call = torch.compile(self.run) if compiled else self.run

    def run(self, ids, places):
        m = self.model
        x = m.table(ids) + m.positions(places)
        for layer, cache in zip(m.layers, self.caches):
            x = layer(x, cache)
        return torch.nn.functional.linear(m.norm(x[:, -1]), m.table.weight).argmax(-1, keepdim=True)

    def prompt(self, ids):
        for cache in self.caches:
            cache.first, cache.places = 0, None
        return self.run(ids, torch.arange(ids.shape[1]))

    def tokens(self, first, position, count):
        token, every = first, torch.arange(self.positions)
        for place in range(position, position + count):
            places = torch.tensor([place])
            mask = (every <= places)[None, None, None] if self.compiled else None
            for cache in self.caches:
                cache.first, cache.mask = place, mask
                cache.places = places if self.compiled else None
            token = self.call(token, places)
        return token


def decode(layers, heads, width, vocabulary, prompt, tokens, mode, what):
    key = ("decode", layers, heads, width, vocabulary, prompt, tokens, mode)
    if key not in cache:
        cache.clear()
        torch.manual_seed(0)
        model = Decoder(layers, heads, width, vocabulary, prompt + tokens).eval()
        if mode.endswith("bf16"):
            model = model.to(torch.bfloat16)
        generator = Generator(model, heads, prompt + tokens, mode.startswith("compile"))
        ids = torch.randint(vocabulary, (1, prompt))
        cache[key] = (generator, ids, generator.prompt(ids))
    generator, ids, first = cache[key]
    if what == "prompt":
        return lambda: generator.prompt(ids)
    return lambda: generator.tokens(first, prompt, tokens)


def train(layers, heads, width, vocabulary, batch, context, mode):
    key = ("train", layers, heads, width, vocabulary, batch, context, mode)
    if key not in cache:
        cache.clear()
        torch.manual_seed(0)
        model = Decoder(layers, heads, width, vocabulary, context)
        call = torch.compile(model) if mode.startswith("compile") else model
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        cache[key] = (model, call, optimizer)
    model, call, optimizer = cache[key]

    def step():
        with torch.enable_grad():
            ids = torch.randint(vocabulary, (2, batch, context))
            with torch.autocast("cpu", torch.bfloat16, enabled=mode.endswith("autocast")):
                loss = call(ids[0], ids[1])
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def work(words):
    if words[0] == "gemm":
        return gemm(*(int(v) for v in words[1:4]), *words[4:6]), int(words[6])
    if words[0] == "attention":
        return attention(*(int(v) for v in words[1:6]), *words[6:9]), int(words[9])
    if words[0] == "train":
        return train(*(int(v) for v in words[1:7]), words[7]), int(words[8])
    if words[0] == "decode":
        return decode(*(int(v) for v in words[1:7]), *words[7:9]), int(words[9])
    raise ValueError("unknown request: " + words[0])


def answer(words):
    if words == ["peak"]:
        return float(peak())
    call, repeats = work(words)
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    print(repr(answer(line.split())), flush=True)
