# SPDX-License-Identifier: Apache-2.0
"""What the opening comment of a compile-fail file asks for.

    // expect: tessera: matmul: both contracting dimensions are sharded over the same axis; write
    //         out_sharding<...>
    // expect-clang: ...       where clang's line has to be described otherwise
    // note: float32[32@data,256@model]
    // note-clang: ...         replaces all `note`s for clang
    // errors: 2               how many lines with `error:` are allowed, where one is not possible (default 1)
    // lines: 20               how many lines the compiler may print in all (default: any number)
    // lines-clang: 25         replaces `lines` for clang
    // options: -Werror=...    what the compiler is given besides

A line that opens with `//` and two or more spaces continues the one above it, joined by one space.
"""
import re

KEYS = ("expect", "expect-clang", "note", "note-clang", "errors", "lines", "lines-clang", "options")
ONCE = ("expect-clang", "errors", "lines", "lines-clang", "options")


class Malformed(Exception):
    """The opening comment is not of the form above."""


def read(path):
    """The directives of one file: a dict from key to the list of its texts."""
    found = {key: [] for key in KEYS}
    current = None
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        directive = re.match(r"// ([a-z-]+): +(\S.*)$", line)
        more = re.match(r"//  +(\S.*)$", line)
        if directive and directive[1] in KEYS:
            current = found[directive[1]]
            current.append(directive[2].strip())
        elif more and current:
            current[-1] += " " + more[1].strip()
        else:
            current = None
    if len(found["expect"]) != 1:
        raise Malformed(f"{path}: needs exactly one `// expect:` in its opening comment, has {len(found['expect'])}")
    if not found["expect"][0].startswith("tessera: "):
        raise Malformed(f"{path}: `expect` must open with `tessera: `, has `{found['expect'][0]}`")
    for key in ONCE:
        if len(found[key]) > 1:
            raise Malformed(f"{path}: `{key}` may be given once")
    if not re.search(r"\bCURE\(|\bTESSERA_CONTROL\b", text):
        raise Malformed(f"{path}: has no CURE((bad), (good)), so there is no control to compare it with")
    return found


def wanted(found, clang):
    """(sentence, notes, allowed errors, allowed lines or None) for one compiler."""
    sentence = (clang and found["expect-clang"] or found["expect"])[0]
    notes = clang and found["note-clang"] or found["note"]
    lines = clang and found["lines-clang"] or found["lines"]
    return sentence, notes, int((found["errors"] or ["1"])[0]), int(lines[0]) if lines else None
