#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the cases of reference/sharding_rules.jsonl into compile-time assertions.

generate.py write <folder>   sharding_rules.cpp, the assertions of every case whose operation has a row in operations.py,
                             and refused/<case>.cpp, files that must not compile, for tests/compile_fail/check.py
generate.py coverage         what is covered and what is left out, and why; fails unless each case is exactly one

A case becomes a test: the expression of its row, over arrays of its types, has the type that the file gives, or is
refused with the message of its row (by our own ruling, `tessera`, where there is one). Cases without a test stand in
left_out.json with their reason.
"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "compile_fail"))

from operations import OPERATIONS, REFUSED, REFUSED_FILES, REFUSED_TRACES, axes, printed
import uncovered

CASES = os.path.join(HERE, "..", "reference", "sharding_rules.jsonl")
LEFT_OUT = os.path.join(HERE, "left_out.json")
TYPE = re.compile(r"(\w+)\[(.*?)\](?:\{(.*)\})?$")
DIMENSION = re.compile(r"(\d+)(?:@(\w+|\([^)]*\)))?")

HEAD = """// SPDX-License-Identifier: Apache-2.0
// Written by tests/sharding_rules/generate.py.
#include "sharding_rules/support.hpp"
"""


def cases():
    """The cases of the file; where it has a ruling of ours, that is the result or the error."""
    with open(CASES, encoding="utf-8") as file:
        for line in file:
            case = json.loads(line)
            ours = case.get("tessera")
            if ours is not None:
                refused = ours.startswith("error")
                case["out"], case["error"] = (None, ours) if refused else (ours, None)
            if case["op"] == "shard_map in_specs":
                case["inside"], case["out"] = case["out"], case["out"] and case["inputs"][0]
            if case["op"] == "grad(pmax)":  # the array whose blocks the case is about
                case["inputs"] = ["f32[8@x]"]
            if case["op"].startswith("transpose("):
                forward = case["params"].get("forward", f"{case['out']} -> {case['inputs'][0]}").split(" -> ")
                case["cotangents"] = (case["out"], case["inputs"][0])
                case["inputs"], case["out"] = forward[:1], forward[1]
            yield case


def left_out():
    """{case: reason}"""
    with open(LEFT_OUT, encoding="utf-8") as file:
        return {name: reason for reason, names in json.load(file).items() for name in names}


def expression(case):
    """The C++ expression of a case, or None."""
    row = OPERATIONS.get(case["op"])
    return row(case) if row else None


def axis_set(text, mark, mesh):
    """The axes that `V:x,U:(x,y)` names after a mark, as bits."""
    found = re.search(mark + r":(\w+|\([^)]*\))", text or "")
    named = re.findall(r"\w+", found[1]) if found else []
    return sum(1 << list(mesh).index(name) for name in named)


def input_type(text, mesh):
    """The C++ type of `f32[8@x,4@(x,y)]{U:z}` over `mesh`."""
    dtype, dims, marks = TYPE.match(text).groups()
    found = DIMENSION.findall(dims)
    if dtype == "key":
        dtype, found = "u32", found + [("2", "")]
    shape = ", ".join(extent for extent, _ in found)
    names = [re.sub(r"(\w+)", r"'\1'", cut) if cut else "None" for _, cut in found]
    spec = ", ".join(axes(name) for name in names)
    name = {"bool": "bool_"}.get(dtype, dtype)
    sets = ", ".join(str(axis_set(marks, mark, mesh)) for mark in "VUR")
    return f"array<ts::{name}, ts::shape<{shape}>, ts::P<{spec}>, mesh, {sets}>"


def mesh_types(case):
    """The mesh of a case and, where its types are those in the body of a shard_map over all axes, that of the body."""
    kinds = case["params"].get("axis_types", {})
    mesh = ", ".join(f'ts::{"auto_axis" if kinds.get(name) == "Auto" else "axis"}<"{name}", {size}>'
                     for name, size in case["mesh"].items())
    inside = case["params"].get("manual") and not case["op"].startswith("grad(") or case["op"] == "shard_map out_specs"
    body = f"ts::region<outside, ts::axis_kind::manual, {(1 << len(case['mesh'])) - 1}>"
    return f"using outside = ts::mesh<{mesh}>;\nusing mesh = {body if inside else 'outside'};\n"


# Of the texts that say what a transpose becomes: their first word, and the collective it is.
BECOMES = {"psum": "all_reduce", "psum_scatter": "reduce_scatter", "all_gather": "all_gather",
           "ppermute": "collective_permute", "all_to_all": "all_to_all", "pcast": None, "dynamic": None}
KINDS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute"]


def moved_by_transpose(case):
    """Collectives of the transpose of an operation of shard_map bodies, as an assertion."""
    wanted = BECOMES[re.match(r"\w+", case["params"]["becomes"])[0]]
    counts = " && ".join(f"moves.{kind} == {int(kind == wanted)}" for kind in KINDS)
    name = case["id"]
    return f"  constexpr auto moves = moves_of_transpose<{name}::call, {name}::type_a, {name}::outside>();\n" \
           f"  STATIC_REQUIRE(({counts}));\n"


def moved(case):
    """Collectives of the backward pass, as an assertion, or nothing."""
    wanted = case["params"].get("bwd")
    if wanted is None or not case["op"].startswith("grad("):
        return ""
    counts = [f"moves.{kind.replace('-', '_')} == {int(kind in wanted)}"
              for kind in ("all-reduce", "reduce-scatter", "all-gather")]
    return f"  constexpr auto moves = collectives<{case['id']}::call, {arguments(case)}>();\n" \
           f"  STATIC_REQUIRE(({' && '.join(counts)}));\n"


def arguments(case):
    return ", ".join(f"{case['id']}::type_{name}" for name in "abc"[:len(case["inputs"])])


def call(case):
    """The mesh, the types and the call of a case, in a namespace of its own."""
    letters = "abc"[:len(case["inputs"])]
    types = "".join(f"using type_{letter} = {input_type(text, case['mesh'])};\n"
                    for letter, text in zip(letters, case["inputs"]))
    parameters = ", ".join(f"[[maybe_unused]] auto {letter}" for letter in letters)
    return f"namespace {case['id']} {{\n{mesh_types(case)}{types}" \
           f"inline constexpr auto call = []({parameters}) {{ return {expression(case)}; }};\n}}\n"


def test(case):
    """The text of one test."""
    name = case["id"]
    title = f"{name}: {case['op']}({', '.join(case['inputs'])})"
    result = f"result_of<{name}::call{', ' + arguments(case) if case['inputs'] else ''}>"
    if case["error"] is None:
        check = f'  STATIC_REQUIRE(prints<{result}>("{printed(case["out"])}"));\n{moved(case)}'
        title += f" is {case['out']}"
        if "cotangents" in case:
            operand, of_result = map(printed, case["cotangents"])
            check += f'  STATIC_REQUIRE(prints<cotangent_of<{name}::type_a>>("{operand}"));\n' \
                     f'  STATIC_REQUIRE(prints<cotangent_of<{result}>>("{of_result}"));\n' + moved_by_transpose(case)
    else:
        check = f"  STATIC_REQUIRE(refuses<{result}>(ts::message::{REFUSED[name]}));\n"
        title += f" is refused"
    return f'\n{call(case)}TEST_CASE("{title}") {{\n{check}}}\n'


def refused_file(case, sentences):
    """The text of a file that is refused with a case's message."""
    traces = case["id"] in REFUSED_TRACES
    what = f"{'collectives' if traces else 'result_of'}<{case['id']}::call, {arguments(case)}>{'()' if traces else ''}"
    return f"// SPDX-License-Identifier: Apache-2.0\n// expect: {sentences[REFUSED_FILES[case['id']]]}\n" \
           f'#include "compile_fail/cure.hpp"\n#include "sharding_rules/types.hpp"\n\n{call(case)}' \
           f"{'constexpr auto' if traces else 'using'} result = CURE(({what}), ({'0' if traces else 'void'}));\n"


def put(path, text):
    """Writes a file unless it has this text already."""
    if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def write(folder):
    out = left_out()
    tested = [case for case in cases() if expression(case) and case["id"] not in out]
    put(os.path.join(folder, "sharding_rules.cpp"),
        HEAD + "".join(test(case) for case in tested if case["id"] not in REFUSED_FILES))
    sentences = uncovered.messages(uncovered.TABLE)
    os.makedirs(os.path.join(folder, "refused"), exist_ok=True)
    for case in tested:
        if case["id"] in REFUSED_FILES:
            put(os.path.join(folder, "refused", case["id"] + ".cpp"), refused_file(case, sentences))


def coverage():
    out = left_out()
    refused = set(REFUSED) | set(REFUSED_FILES)
    faults, covered, known = [], 0, set()
    for case in cases():
        name = case["id"]
        known.add(name)
        if name in out:
            print(f"left out: {name} {case['op']}: {out[name]}")
            continue
        covered += 1
        if expression(case) is None:
            faults.append(f"{name} ({case['op']}) has no row in operations.py and no reason in left_out.json")
        if (case["error"] is not None) != (name in refused):
            faults.append(f"{name} is refused, but by no message" if case["error"] else f"{name} is not refused")
    faults += [f"{name} is no case" for name in sorted((set(out) | refused) - known)]
    print(f"{covered} of {len(known)} cases are checked while compiling, {len(out)} are left out")
    if faults:
        sys.exit("sharding_rules: " + "\n".join(faults))


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"] and len(sys.argv) == 3:
        write(sys.argv[2])
    elif sys.argv[1:] == ["coverage"]:
        coverage()
    else:
        sys.exit(__doc__)
