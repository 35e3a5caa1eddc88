"""PyTorch's side of Heddle's benchmarks: answers requests on standard input, one a line.

    gemm M N K f32|bf16 forward|input_grad|weight_grad REPEATS  ->  seconds of one product
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


def answer(words):
    if words[0] != "gemm":
        raise ValueError("unknown request: " + words[0])
    m, n, k = (int(v) for v in words[1:4])
    product = gemm(m, n, k, words[4], words[5])
    repeats = int(words[6])
    start = time.perf_counter()
    for _ in range(repeats):
        product()
    return (time.perf_counter() - start) / repeats


print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    print(repr(answer(line.split())), flush=True)
