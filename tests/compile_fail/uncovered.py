#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the library's compile-time messages that no compile-fail file shows; fails if there are any.

uncovered.py [<messages.hpp> [<folder of compile-fail files>]]

A message is a line `X(name, "tessera: <operation>: <what is wrong>; <cure>")`, its text possibly split over adjacent
string literals, `{...}` standing for what differs from call to call. It is shown by a file whose `expect` contains the
message up to the `;`, or all of it where the expectation goes on past the `;` or two messages open alike.
"""
import glob
import os
import re
import sys

import expectation

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "..", "..", "include", "tessera", "core", "messages.hpp")
ENTRY = re.compile(r'\bX\(\s*(\w+)\s*,[\s\\]*((?:"(?:[^"\\]|\\.)*"[\s\\]*)+)\)')
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def messages(path):
    """{name: text} of the table, in its order."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    table = {name: "".join(re.sub(r"\\(.)", r"\1", part) for part in LITERAL.findall(literals))
             for name, literals in ENTRY.findall(source)}
    used = len(re.findall(r"\bX\(\s*\w+\s*,", source))
    if used == 0 or used != len(table):
        sys.exit(f"uncovered: {path}: {used} lines look like messages, {len(table)} with distinct names can be read")
    for name, text in table.items():
        if not re.match(r"tessera: [^:]+: [^;]+; \S", text):
            sys.exit(f"uncovered: {path}: {name} is not `tessera: <operation>: <what is wrong>; <cure>`: {text}")
    return table


def pattern(text):
    """The text as a regular expression, `{...}` matching anything."""
    return ".*".join(re.escape(piece) for piece in re.split(r"\{[^}]*\}", text))


def uncovered(table, expectations):
    """The names of the messages that no expectation shows."""
    opening = {name: text.split(";")[0] for name, text in table.items()}
    left = []
    for name, text in table.items():
        shared = sum(other == opening[name] for other in opening.values()) > 1
        shown = any(re.search(pattern(text if shared or ";" in expected else opening[name]), expected)
                    for expected in expectations)
        if not shown:
            left.append(name)
    return left


def main(arguments):
    table = messages(arguments[0] if arguments else TABLE)
    folder = arguments[1] if len(arguments) > 1 else HERE
    expectations = [expectation.read(path)["expect"][0] for path in sorted(glob.glob(os.path.join(folder, "*.cpp")))]
    left = uncovered(table, expectations)
    for name in left:
        print(f"{name}: {table[name]}")
    if left:
        sys.exit(f"uncovered: {len(left)} of {len(table)} messages have no file in {folder}")
    print(f"all {len(table)} messages are shown by {len(expectations)} files")


if __name__ == "__main__":
    main(sys.argv[1:])
