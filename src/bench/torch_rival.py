"""PyTorch's side of Heddle's benchmarks: answers requests on standard input, one a line.

    gemm M N K f32|bf16 forward|input_grad|weight_grad REPEATS  ->  seconds of one product
    attention B N H G D f32|bf16 none|causal forward|both REPEATS  ->  seconds of one call
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


def work(words):
    if words[0] == "gemm":
        return gemm(*(int(v) for v in words[1:4]), *words[4:6]), int(words[6])
    if words[0] == "attention":
        return attention(*(int(v) for v in words[1:6]), *words[6:9]), int(words[9])
    raise ValueError("unknown request: " + words[0])


def answer(words):
    call, repeats = work(words)
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    print(repr(answer(line.split())), flush=True)
