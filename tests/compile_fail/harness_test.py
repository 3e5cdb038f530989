#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compile-fail harness itself: what check.py and uncovered.py must accept and refuse. harness_test.py <compiler>"""
import os
import subprocess
import sys
import tempfile
import unittest

import uncovered

HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "c++"

BODY = 'template <int N> struct shows { static_assert(N < 0, "tessera: add: shapes differ; reshape one"); };\n'


class Check(unittest.TestCase):
    def checked(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "case.cpp")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            command = [sys.executable, os.path.join(HERE, "check.py"), "gnu", path, "--", COMPILER, "-std=c++20",
                       "-I" + HERE]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def case(self, comment, use="shows<CURE((1), (-1))> x;\n"):
        return self.checked(comment + '#include "cure.hpp"\n' + BODY + use)

    def test_accepts_the_announced_sentence(self):
        run = self.case("// expect: tessera: add: shapes differ; reshape one\n")
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_joins_continued_lines(self):
        self.assertEqual(self.case("// expect: tessera: add: shapes\n//         differ\n").returncode, 0)

    def test_refuses_another_sentence(self):
        run = self.case("// expect: tessera: add: dtypes differ\n")
        self.assertEqual(run.returncode, 1)
        self.assertIn("the first error is not the sentence", run.stderr)

    def test_refuses_a_file_that_compiles(self):
        run = self.case("// expect: tessera: add: shapes differ\n", "shows<CURE((-1), (-2))> x;\n")
        self.assertIn("it compiles, but must be refused", run.stderr)

    def test_refuses_a_control_that_does_not_compile(self):
        run = self.case("// expect: tessera: add: shapes differ\n", "shows<CURE((1), (2))> x;\n")
        self.assertIn("the control must compile", run.stderr)

    def test_refuses_a_sentence_that_is_not_first(self):
        use = "CURE((int y = nothing;), ())\nshows<CURE((1), (-1))> x;\n"
        run = self.case("// expect: tessera: add: shapes differ\n", use)
        self.assertIn("the first error is not the sentence", run.stderr)

    def test_refuses_further_errors(self):
        use = "shows<CURE((1), (-1))> x;\nCURE((int y = nothing;), ())\n"
        comment = "// expect: tessera: add: shapes differ\n"
        self.assertIn("2 errors where 1 may be reported", self.case(comment, use).stderr)
        self.assertEqual(self.case(comment + "// errors: 2\n", use).returncode, 0)

    def test_refuses_a_missing_note(self):
        comment = "// expect: tessera: add: shapes differ\n// note: {}\n"
        self.assertEqual(self.case(comment.format("reshape one")).returncode, 0)
        self.assertIn("the note `float32[2]`", self.case(comment.format("float32[2]")).stderr)

    def test_refuses_more_lines_than_announced(self):
        comment = "// expect: tessera: add: shapes differ\n// lines: {}\n"
        self.assertIn("lines where 1 may be printed", self.case(comment.format(1)).stderr)
        self.assertEqual(self.case(comment.format(20)).returncode, 0)

    def test_refuses_a_file_without_expectation_or_control(self):
        self.assertIn("exactly one", self.case("// nothing\n").stderr)
        run = self.checked("// expect: tessera: add: shapes differ\n" + BODY + "shows<1> x;\n")
        self.assertIn("no control", run.stderr)


class Uncovered(unittest.TestCase):
    def left(self, table, *expectations):
        return uncovered.uncovered(table, expectations)

    def test_covers_by_the_part_before_the_cure(self):
        table = {"a": "tessera: add: shapes differ; reshape one"}
        self.assertEqual(self.left(table, "tessera: add: shapes differ"), [])
        self.assertEqual(self.left(table, "tessera: add: shapes differ; reshape one"), [])
        self.assertEqual(self.left(table, "tessera: add: shapes"), ["a"])
        self.assertEqual(self.left(table, "tessera: add: shapes differ; cast one"), ["a"])

    def test_placeholders_match_any_text(self):
        table = {"a": "tessera: {op}: axis {axis} of size {n} is unknown; name one of {axes}"}
        self.assertEqual(self.left(table, "tessera: mean: axis 'x' of size 2 is unknown; name one of y, z"), [])
        self.assertEqual(self.left(table, "tessera: mean: axis 'x' is unknown"), ["a"])

    def test_messages_that_open_alike_need_their_cure(self):
        table = {"a": "tessera: add: differ; reshape", "b": "tessera: add: differ; cast"}
        self.assertEqual(self.left(table, "tessera: add: differ"), ["a", "b"])
        self.assertEqual(self.left(table, "tessera: add: differ; cast"), ["a"])

    def test_reads_split_literals_and_refuses_other_shapes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "messages.hpp")
            with open(path, "w", encoding="utf-8") as file:
                file.write('#define T(X) \\\n  X(a, \\\n "tessera: add: shapes " \\\n'
                           '     "differ; reshape \\"one\\"") \\\n'
                           '  X(b, "tessera: x: y; z")\n')
            self.assertEqual(uncovered.messages(path),
                             {"a": 'tessera: add: shapes differ; reshape "one"', "b": "tessera: x: y; z"})
            with open(path, "w", encoding="utf-8") as file:
                file.write('X(a, "tessera: add: no cure")\n')
            self.assertRaises(SystemExit, uncovered.messages, path)


if __name__ == "__main__":
    unittest.main()
