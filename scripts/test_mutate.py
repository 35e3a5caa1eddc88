#!/usr/bin/env python3
"""The mutation tool on trial: a tiny project whose faults are known to be noticed or not."""

import contextlib
import io
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import mutate
from mutants import report, schemata, trial
from mutants.cpp import Source
from mutants.operators import sites

LIMITS = """\
bool is_long(int n) { return n > 10; }
bool is_wide(int n) { return n > 20; }
int never_called() { return 7; }
int table() {
  constexpr int kSize = 4;
  return kSize;
}
int less(int a, int b) {
  return a -
         b;
}
int difference(int a, int b) { return less(a, b); }
bool ends(int n) {
  while (n > 0) {
    n -= 1;
  }
  return true;
}
"""
# Speaks the part of Google Test's language that the tool uses.
CASES = """\
#include <cstdio>
#include <cstring>
#include <string>
bool is_long(int); bool is_wide(int); int table(); int difference(int, int); bool ends(int);
int main(int count, char** words) {
  const std::string all = count > 1 ? words[1] : "", last = words[count - 1];
  if (last == "--gtest_list_tests") { std::puts("Limits.\\n  Long\\n  Wide  # a comment\\n  Rest"); return 0; }
  const auto asked = [&](const char* name) { return all.find(name) != all.npos; };
  bool good = true;
  const auto test = [&](const char* name, bool right) {
    std::printf("%s %s\\n", right ? "[       OK ]" : "[  FAILED  ]", name);
    good = good && right;
  };
  if (asked("Limits.Long")) test("Limits.Long", is_long(11) && !is_long(10));
  if (asked("Limits.Wide")) test("Limits.Wide", is_wide(50) && !is_wide(3));
  if (asked("Limits.Rest")) test("Limits.Rest", table() == 4 && difference(5, 3) == 2);
  if (all == "program") good = ends(3);
  return good ? 0 : 1;
}
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
add_executable(cases src/limits.cpp cases.cpp)
enable_testing()
add_test(NAME unit COMMAND cases --gtest_filter=*)
add_test(NAME program COMMAND cases program)
add_test(NAME broken COMMAND cases --gtest_none)
set_tests_properties(broken PROPERTIES WILL_FAIL ON LABELS nightly)
"""


def found(text):
    return {(s.operator, s.original, s.mutated) for s in sites(text)}


class Sites(unittest.TestCase):
    def code(self, statement):
        return found(f"void f() {{\n  {statement}\n}}\n")

    def test_each_operator(self):
        for statement, expected in [
            ("x = 3;", ("constant", "3", "4")),
            ("x = 3;", ("constant", "3", "2")),
            ("x = 0.5F;", ("constant", "0.5F", "0.25F")),
            ("x = true;", ("constant", "true", "false")),
            ("if (a + 1 < b.size() && c) g();", ("comparison", "a + 1 < b.size()", "a + 1 <= b.size()")),
            ("if (a && b || c) g();", ("logic", "a && b", "a || b")),
            ("return a - b - c;", ("arithmetic", "a - b - c", "a - b + c")),
            ("sum += x[i] * y;", ("arithmetic", "sum += x[i] * y;", "sum -= x[i] * y;")),
            ("if (!a.empty()) g();", ("negated", "!a.empty()", "a.empty()")),
            ("if (a) g();", ("negated", "a", "!(a)")),
            ("return a == 2 ? b : c;", ("negated", "a == 2", "!(a == 2)")),
            ("if (a < 1) return;", ("early exit dropped", "a < 1", "false && (a < 1)")),
            ("a.b->c(1)[2].d = e;", ("statement dropped", "a.b->c(1)[2].d = e;", ";")),
            ("++n;", ("statement dropped", "++n;", ";")),
            ("g(a, std::pair<int, int>(b, c));",
             ("arguments swapped", "g(a, std::pair<int, int>(b, c))", "g(std::pair<int, int>(b, c), a)")),
            ("g(a, h(b));", ("argument not passed", "h(b)", "{}")),
            ("x = std::min<int>(a, b);", ("min and max swapped", "std::min<int>(a, b)", "std::max<int>(a, b)")),
            ("g({.width = w + 1, .height = h});", ("field not passed", "w + 1", "{}")),
        ]:
            with self.subTest(statement):
                self.assertIn(expected, self.code(statement))

    def test_what_is_no_fault_is_left_alone(self):
        for statement, operator in [
            ("Tensor x(a, b);", "arguments swapped"),       # a declaration
            ("const std::vector<int> x = g();", "comparison"),  # angles of a type
            ("int* x = &y;", "arithmetic"),
            ('fail(code, "a", where);', "arguments swapped"),   # words of a message
            ("// x = 3; if (a < b) return;", "constant"),
            ('x = "3 < 4";', "comparison"),
            ("int x = 3;", "statement dropped"),
            ("x.reserve(3);", "statement dropped"),
            ("x = std::max<int>(a, b);", "arguments swapped"),  # the same
        ]:
            with self.subTest(statement):
                self.assertNotIn(operator, {s[0] for s in self.code(statement)})

    def test_code_is_told_from_declarations(self):
        text = ("namespace a {\nint table[] = {1, 2};\nstruct S { int x = 3; int f() const { return 4; }\n"
                "S(int y) : x(y + 5), z_{6} { g(7); } };\nenum class E { a = 8 };\n}\n")
        self.assertEqual({"4", "7"}, {s.original for s in sites(text) if s.operator == "constant"})
        self.assertEqual([], [t.text for t in Source(text).tokens if t.text in "(){}" and t.partner < 0])

    def test_a_dropped_statement_leaves_the_else_behind_it_alone(self):
        text = "void f() { if (a) go(); else stay(); }"
        site = next(s for s in sites(text) if s.operator == "statement dropped" and "go()" in s.switched)
        copy = text[:site.at] + site.switched + text[site.end:]
        self.assertIn("{ go(); } } else stay();", copy)

    def test_lines_stay_where_they_are(self):
        site = next(s for s in sites(LIMITS) if s.original == "a - b")
        text = schemata.instrument(LIMITS, [{"id": 17, **vars(site)}], "switch.h").split("#line 1\n")[1]
        self.assertIn("heddle_mutants::on(17)", text)
        self.assertEqual(LIMITS.splitlines()[10:], text.splitlines()[10:])


class Trials(unittest.TestCase):
    def test_cheapest_first_in_few_processes(self):
        tests = [trial.Test(n, ["p"], ".", {}, case=c, seconds=s)
                 for n, c, s in [("a", "A.a", 1.5), ("b", "A.b", 0.1), ("c", "A.c", 1), ("long", "", 0.5)]]
        self.assertEqual([["long"], ["b", "c"], ["a"]],
                         [[t.name for t in batch] for batch in trial.batches(tests)])

    def test_where_suites_live(self):
        with tempfile.TemporaryDirectory() as root:
            for path, text in (("src/io/files/test_a.cpp", "TEST(Gzip, A) {\nTEST_F(Files, B) {"),
                               ("src/ops/rope/test.cpp", "TEST(rope_calls, C) {"),
                               ("src/io/files/gzip.cpp", "TEST(NoTest, D) {")):
                file = Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            self.assertEqual({"Gzip": {"src/io"}, "Files": {"src/io"}, "rope": {"src/ops/rope"},
                              "rope_calls": {"src/ops/rope"}}, trial.homes(Path(root)))
        for case, suite in (("Gzip.A", "Gzip"), ("Quick/LabFaults.*", "LabFaults"), ("", "")):
            self.assertEqual(suite, trial.suite_of(trial.Test("n", [], ".", {}, case=case)))

    def test_who_failed(self):
        tests = [trial.Test(c, ["p"], ".", {}, case=c) for c in ("A.a", "B/C.*", "D.d")]
        for output, name in [("[  FAILED  ] B/C.x/3 (1 ms)", "B/C.*"),
                             ("[ RUN      ] A.a\n[       OK ] A.a\n[ RUN      ] D.d\n", "D.d")]:
            self.assertEqual(name, trial.culprit(tests, output).name)


class TinyProject(unittest.TestCase):
    """Whole runs. The mutants are named, so that every verdict is known beforehand."""
    NAMED = [("n > 10", "n >= 10"), ("n > 20", "n >= 20"), ("7", "8"), ("4", "5"), ("a - b", "a + b"),
             ("less(a, b)", "less(b, a)"), ("n -= 1;", ";")]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.work = Path(folder.name) / "tiny", Path(folder.name) / "work"
        for path, text in (("src/limits.cpp", LIMITS), ("cases.cpp", CASES), ("CMakeLists.txt", CMAKE)):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        self.addCleanup(setattr, trial, "PATIENCE", trial.PATIENCE)
        trial.PATIENCE = 1
        self.addCleanup(setattr, mutate, "draw", mutate.draw)
        mutate.draw = lambda *_: [
            {"id": i + 1, "file": "src/limits.cpp", **vars(s)} for i, (a, b) in enumerate(self.NAMED)
            for s in [next(s for s in sites(LIMITS) if (s.original, s.mutated) == (a, b))]]

    def run_tool(self, *arguments):
        options = mutate.parsed(["--root", str(self.root), "--work", str(self.work), "--jobs", "2",
                                 *arguments])
        options.configure = ["cmake", "-S", "{tree}", "-B", "{build}", "-G", "Ninja"]
        options.build = ["cmake", "--build", "{build}", "--", "-k", "0"]
        run = mutate.Run(options)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            run.prepare()
            run.all()
            run.conclude()
        return {m["mutated"] + "/" + m["original"]: m for m in run.mutants}, said.getvalue()

    def test_verdicts_and_new_tests(self):
        before = LIMITS, (self.root / "src/limits.cpp").stat().st_mtime_ns
        mutants, said = self.run_tool("--count", "20")
        self.assertEqual(before, ((self.root / "src/limits.cpp").read_text(),
                                  (self.root / "src/limits.cpp").stat().st_mtime_ns))
        self.assertNotIn("5/4", mutants)  # a constant expression: does not compile
        verdicts = {key: (m["status"], m.get("by")) for key, m in mutants.items()}
        self.assertEqual({
            "n >= 10/n > 10": ("killed", "unit/Limits.Long"),
            "n >= 20/n > 20": ("survived", None),
            "8/7": ("survived", None),
            "a + b/a - b": ("killed", "unit/Limits.Rest"),
            "less(b, a)/less(a, b)": ("killed", "unit/Limits.Rest"),
            ";/n -= 1;": ("killed", "program"),
        }, verdicts)
        self.assertEqual("timeout", mutants[";/n -= 1;"]["why"])
        self.assertEqual("not reached by any test", mutants["8/7"]["why"])
        self.assertEqual("passed by 1 tests that reach it", mutants["n >= 20/n > 20"]["why"])
        self.assertEqual({"all": (4, 6), "src": (4, 6)}, report.rates(mutants.values()))
        self.assertIn("-n > 20\n+n >= 20\n", said)

        self.results_of_a_broken_run()
        self.survivors_meet_a_new_test()

    def results_of_a_broken_run(self):
        lines = (self.work / "results.jsonl").read_text().splitlines()
        (self.work / "results.jsonl").write_text("\n".join(lines[:2]) + "\n")
        mutants, said = self.run_tool("--resume")
        self.assertIn("trying 4 mutants", said)
        self.assertEqual({"all": (4, 6), "src": (4, 6)}, report.rates(mutants.values()))

    def survivors_meet_a_new_test(self):
        (self.root / "cases.cpp").write_text(CASES.replace("!is_wide(3)", "!is_wide(20)"))
        mutants, _ = self.run_tool("--survivors")
        self.assertEqual("unit/Limits.Wide", mutants["n >= 20/n > 20"]["by"])
        self.assertEqual("survived", mutants["8/7"]["status"])
        self.assertEqual(6, len(json.loads((self.work / "report.json").read_text())))

    def test_tests_that_are_too_long_come_later(self):
        mutants, _ = self.run_tool("--count", "20", "--most-seconds", "0")
        self.assertEqual(["unit/Limits.Long"], mutants["n >= 10/n > 10"]["not_run"])
        mutants, _ = self.run_tool("--resume")
        self.assertEqual(("killed", []), (mutants["n >= 10/n > 10"]["status"],
                                          mutants["n >= 10/n > 10"].get("not_run", [])))


if __name__ == "__main__":
    unittest.main()
