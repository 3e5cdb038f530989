# SPDX-License-Identifier: Apache-2.0
"""Milliseconds of one step of PyTorch's optimiser on the parameters of bench/optimizer.cpp: sgd_momentum or adamw."""
import statistics
import sys
import time

import torch

parameters = []
for _ in range(8):
    parameters += [torch.randn(1024, 1024, requires_grad=True), torch.randn(1024, requires_grad=True)]
for p in parameters:
    p.grad = torch.randn_like(p)
if sys.argv[1] == "adamw":
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=1e-4)
else:
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
seconds = []
for _ in range(12):
    begin = time.perf_counter()
    for _ in range(3):
        optimizer.step()
    seconds.append((time.perf_counter() - begin) / 3)
print(1e3 * statistics.median(seconds[3:]))
