# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/steps.cpp. For each line `workload threads calls` it prints the seconds of one call.

Eager mode, float32 unless a name says bf16 (then all arrays are), written as its documentation recommends: fused scaled products where this version has them, losses and
optimisers of the library, gradients set to None. A workload is made when it is first asked for and runs twice unmeasured.

First it looks for its best settings on this machine: OpenBLAS takes processors newer than itself for old ones, so each of
its kernels is tried on a product, each instruction set of PyTorch's own kernels on a gelu, and the fastest are kept.
"""
import math
import os
import subprocess
import sys
import time

CHOSEN = "TESSERA_BENCH_PYTORCH_CHOSEN"
PROBES = {
    "OPENBLAS_CORETYPE": (("", "SKYLAKEX", "COOPERLAKE", "HASWELL", "ZEN"), "x @ x"),
    "ATEN_CPU_CAPABILITY": (("", "avx512", "avx2"), "torch.nn.functional.gelu(x, approximate='tanh')"),
}


def seconds(environment, expression):
    code = (
        "import time, torch; torch.set_num_threads(1); x = torch.randn(768, 768); t = []\n"
        f"for _ in range(7): b = time.perf_counter(); {expression}; t.append(time.perf_counter() - b)\n"
        "print(min(t))"
    )
    probe = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    return float(probe.stdout) if probe.returncode == 0 else math.inf


def with_best_settings():
    environment = {k: v for k, v in os.environ.items() if k not in PROBES and k != "OPENBLAS_L2_SIZE"}
    # A malloc that keeps its blocks: otherwise each step touches fresh memory.
    environment |= {"MALLOC_TRIM_THRESHOLD_": str(1 << 33), "MALLOC_MMAP_THRESHOLD_": str(1 << 33), CHOSEN: "1"}
    for name, (values, expression) in PROBES.items():
        tried = [environment | ({name: value} if value else {}) for value in values]
        environment = min(tried, key=lambda e: seconds(e, expression))
    os.execve(sys.executable, [sys.executable, __file__], environment)


if CHOSEN not in os.environ:
    with_best_settings()

import torch
import torch.nn.functional as F


def gelu(x):
    return F.gelu(x, approximate="tanh")


def checkpointed(f, *args):
    from torch.utils.checkpoint import checkpoint

    return checkpoint(f, *args, use_reentrant=False)


def mlp(remat=False, dtype=torch.float32):
    w1 = [torch.randn(256, 1024).mul_(0.02).to(dtype).requires_grad_() for _ in range(16)]
    w2 = [torch.randn(1024, 256).mul_(0.02).to(dtype).requires_grad_() for _ in range(16)]
    x = torch.randn(256, 256, dtype=torch.float32).to(dtype)

    def layer(h, a, b):
        return h + gelu(h @ a) @ b

    def step():
        h = x
        for a, b in zip(w1, w2):
            h = checkpointed(layer, h, a, b) if remat else layer(h, a, b)
        return torch.autograd.grad(h.square().mean(), w1 + w2)

    return step


def wide():
    w1 = torch.randn(512, 8192).mul_(0.04).requires_grad_()
    w2 = torch.randn(8192, 512).mul_(0.01).requires_grad_()
    x, y = torch.randn(64, 512), torch.randn(64, 512)

    def step():
        loss = F.mse_loss(gelu(x @ w1) @ w2, y)
        return loss, torch.autograd.grad(loss, (w1, w2))

    return step


def transformer(remat=False, dtype=torch.float32):
    layers, d, heads, f, batch, t = 8, 256, 4, 1024, 8, 128

    def normal(*shape):
        return torch.randn(*shape).div_(math.sqrt(shape[0])).to(dtype).requires_grad_()

    def block_weights():
        ones = [torch.ones(d, dtype=dtype, requires_grad=True) for _ in range(2)]
        zeros = [torch.zeros(d, dtype=dtype, requires_grad=True) for _ in range(2)]
        return [normal(d, 3 * d), normal(d, d), normal(d, f), normal(f, d), *ones, *zeros]

    weights = [block_weights() for _ in range(layers)]
    leaves = [w for block in weights for w in block]
    x, y = torch.randn(batch, t, d).to(dtype), torch.randn(batch, t, d).to(dtype)
    mask = torch.full((t, t), float("-inf")).triu_(1).to(dtype)

    def block(h, wqkv, wo, w1, w2, g1, g2, b1, b2):
        n = F.layer_norm(h, (d,), g1, b1)
        q, k, v = (p.view(batch, t, heads, d // heads).transpose(1, 2) for p in (n @ wqkv).split(d, dim=-1))
        scores = torch.baddbmm(mask, q.reshape(-1, t, d // heads), k.reshape(-1, t, d // heads).transpose(1, 2),
                               alpha=1 / math.sqrt(d // heads))
        mixed = torch.bmm(scores.softmax(-1), v.reshape(-1, t, d // heads))
        h = h + mixed.view(batch, heads, t, d // heads).transpose(1, 2).reshape(batch, t, d) @ wo
        return h + gelu(F.layer_norm(h, (d,), g2, b2) @ w1) @ w2

    def step():
        h = x
        for w in weights:
            h = checkpointed(block, h, *w) if remat else block(h, *w)
        return torch.autograd.grad(F.mse_loss(h.float(), y.float()), leaves)

    return step


def trained(model, optimizer, loss, x, y):
    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        optimizer.step()

    return step


def race():
    nn = torch.nn
    act = nn.GELU(approximate="tanh")
    model = nn.Sequential(nn.Linear(16, 128), act, nn.Linear(128, 128), act, nn.Linear(128, 128), act, nn.Linear(128, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4, foreach=True)
    return trained(model, optimizer, F.mse_loss, torch.rand(1024, 16), torch.rand(1024, 1))


def small():
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return trained(model, optimizer, F.cross_entropy, torch.rand(64, 784), torch.randint(0, 10, (64,)))


MAKERS = {
    "mlp": mlp,
    "mlp_remat": lambda: mlp(remat=True),
    "mlp_bf16": lambda: mlp(dtype=torch.bfloat16),
    "wide": wide,
    "transformer": transformer,
    "transformer_remat": lambda: transformer(remat=True),
    "transformer_bf16": lambda: transformer(dtype=torch.bfloat16),
    "race": race,
    "small": small,
}
steps = {}
for line in sys.stdin:
    name, threads, calls = line.split()
    torch.set_num_threads(int(threads))
    if name not in steps:
        steps[name] = MAKERS[name]()
    if (name, threads) not in steps:
        steps[name, threads] = True
        steps[name](), steps[name]()
    begin = time.perf_counter()
    for _ in range(int(calls)):
        steps[name]()
    print((time.perf_counter() - begin) / int(calls), flush=True)
