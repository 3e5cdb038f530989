#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a file is refused with the sentence it announces, and that its cured form compiles.

check.py gnu|clang <file> -- <compiler> <option>...

The sentence must stand on the first line of the compiler's output that contains `error:`, each note on that line or one
of the NOTE_LINES after it, and no further error may follow. See expectation.py for the comment that announces them.
"""
import re
import subprocess
import sys

import expectation

NOTE_LINES = 12
SHOWN_LINES = 60
CUT = re.compile(r'"\}, (?:tessera::)?text<\d+>\{"')


def compiled(command, source, control):
    """(succeeded, output lines) of one run that parses and instantiates everything but makes no code."""
    options = ["-fsyntax-only", "-fdiagnostics-color=never"] + (["-DTESSERA_CONTROL"] if control else [])
    run = subprocess.run(command + options + [source], capture_output=True, text=True, check=False)
    # g++ prints text that is a template argument with its quotes escaped, clang a long one in pieces.
    output = CUT.sub("", (run.stdout + run.stderr).replace('\\"', '"'))
    return run.returncode == 0, output.splitlines()


def complaint(succeeded, lines, sentence, notes, allowed, longest):
    """Why the refused build is not as announced, or None."""
    if succeeded:
        return "it compiles, but must be refused"
    errors = [number for number, line in enumerate(lines) if "error:" in line]
    if not errors:
        return "the compiler failed without a line that contains `error:`"
    first = errors[0]
    if sentence not in lines[first]:
        return f"the first error is not the sentence\n  expected: {sentence}\n  found:    {lines[first]}"
    near = lines[first:first + 1 + NOTE_LINES]
    for note in notes:
        if not any(note in line for line in near):
            return f"the note `{note}` does not stand on the error's line or the next {NOTE_LINES}"
    if len(errors) > allowed:
        return f"{len(errors)} errors where {allowed} may be reported; the next is\n  {lines[errors[1]]}"
    if longest is not None and len(lines) > longest:
        return f"the compiler prints {len(lines)} lines where {longest} may be printed"
    return None


def main(arguments):
    if len(arguments) < 4 or arguments[0] not in ("gnu", "clang") or arguments[2] != "--":
        sys.exit(__doc__)
    kind, source, command = arguments[0], arguments[1], arguments[3:]
    try:
        found = expectation.read(source)
        sentence, notes, allowed, longest = expectation.wanted(found, kind == "clang")
        command += " ".join(found["options"]).split()
    except (expectation.Malformed, ValueError) as error:
        sys.exit(f"compile_fail: {error}")

    succeeded, lines = compiled(command, source, control=False)
    problem = complaint(succeeded, lines, sentence, notes, allowed, longest)
    if not problem:
        succeeded, lines = compiled(command, source, control=True)
        problem = None if succeeded else "the control must compile, but does not"
    if problem:
        print("\n".join(lines[:SHOWN_LINES]))
        sys.exit(f"compile_fail: {source} with {kind}: {problem}")


if __name__ == "__main__":
    main(sys.argv[1:])
