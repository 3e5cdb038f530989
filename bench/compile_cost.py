#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what compiling costs: compile_cost.py <build folder>.

compile.fashion.seconds      user time of the example's three files with a mesh's steps, together
compile.fashion.mib          largest peak memory of one of them
compile.types_only.seconds   user time of a file that includes types.hpp and asserts a spec (least of three)
compile.headers.seconds      user time of a file that only includes tessera.hpp
compile.layers.<n>.seconds   user time of a residual model of n layers with its Adam step, and
compile.layers.<n>.trace     the same without kernels: traced, lowered, asserted on
"""
import json
import os
import shlex
import sys


def run(command, folder):
    """User seconds and peak MiB of one compiler run, its child processes included."""
    process = os.fork()
    if process == 0:
        os.chdir(folder)
        os.execvp(command[0], command)
    # wait4 reports the driver and the compiler proper it waited for.
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        sys.exit("compile_cost: failed: " + " ".join(command))
    return usage.ru_utime, usage.ru_maxrss / 1024


def compile_command(entry):
    """The entry's command with its object thrown away, and without a cache of objects before the compiler."""
    command = shlex.split(entry["command"])
    if os.path.basename(command[0]) == "ccache":
        command = command[1:]
    command[command.index("-o") + 1] = os.devnull
    return command


def main():
    build = sys.argv[1]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    units = [os.path.join(root, "examples", "fashion", mesh + ".cpp") for mesh in ("one", "data8", "data2_model4")]
    fashion = sorted((e for e in entries if e["file"] in units), key=lambda e: e["file"])
    if fashion:
        costs = [run(compile_command(e), e["directory"]) for e in fashion]
        print(f"compile.fashion.seconds={sum(seconds for seconds, _ in costs):.2f}")
        print(f"compile.fashion.mib={max(mib for _, mib in costs):.0f}")

    source = os.path.join(root, "bench", "compile", "types_only.cpp")
    compiler = compile_command(entries[0])[0]
    command = [compiler, "-std=c++20", "-O3", "-I" + os.path.join(root, "include"), "-c", source, "-o", os.devnull]
    print(f"compile.types_only.seconds={min(run(command, root)[0] for _ in range(3)):.2f}")
    layers(root, fashion)


def layers(root, fashion):
    """How compile time grows with depth, with the flags of the example."""
    if not fashion:
        return
    command = compile_command(fashion[0])
    command[command.index("-c") + 1] = os.path.join(root, "bench", "compile", "layers.cpp")
    headers = list(command)
    headers[headers.index("-c") + 1] = os.path.join(root, "bench", "compile", "headers_only.cpp")
    print(f"compile.headers.seconds={run(headers, root)[0]:.2f}")
    for count in (2, 4, 8, 16, 32):
        print(f"compile.layers.{count}.trace={run(command + [f'-DLAYERS={count}', '-DTRACE_ONLY'], root)[0]:.2f}")
        print(f"compile.layers.{count}.seconds={run(command + [f'-DLAYERS={count}'], root)[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
