"""PyTorch's nn.RNN on the sizes of bench_elman: python torch_rnn.py [threads]"""

import sys
import time

import torch

SIZES = [(64, 32, 256), (64, 128, 256), (64, 256, 256), (64, 32, 512), (64, 128, 512),
         (64, 256, 512), (16, 128, 256), (1, 128, 512)]


def best_of(work, clock):
    best, spent = 1e9, 0.0
    while spent < 0.5:
        begin = clock()
        work()
        took = clock() - begin
        spent += took
        best = min(best, took)
    return 1e3 * best


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else torch.get_num_threads()
    torch.set_num_threads(threads)
    # As in bench_elman: a single thread's own time, which stands still while others compute.
    clock = time.process_time if threads == 1 else time.perf_counter
    print(f"threads: {threads}, PyTorch {torch.__version__}, f32")
    for batch, steps, width in SIZES:
        layer = torch.nn.RNN(width, width, batch_first=True)
        x = torch.randn(batch, steps, width, requires_grad=True)
        cotangent = torch.randn(batch, steps, width)

        def forward():
            with torch.no_grad():
                layer(x)

        def both():
            x.grad = None
            layer.zero_grad(set_to_none=True)
            layer(x)[0].backward(cotangent)

        print(f"{batch:5} {steps:5} {width:5}  forward {best_of(forward, clock):9.2f} ms"
              f"  both {best_of(both, clock):9.2f} ms")


if __name__ == "__main__":
    main()
