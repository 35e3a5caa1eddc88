#!/usr/bin/env python3
"""The checks of this folder find what is planted for them."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import chapters
import check_layers
import check_style
import doxygen_filter
import links
import texts

SCRIPTS = Path(__file__).resolve().parent


class Layers(unittest.TestCase):
    def complaints(self, files):
        """Complaints about a tree {path: [included headers]}."""
        with tempfile.TemporaryDirectory() as root:
            for path, includes in files.items():
                file = Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("".join(f'#include "{i}"\n' for i in includes))
            return list(check_layers.check(Path(root)))

    def test_downward_is_fine(self):
        self.assertEqual([], self.complaints({
            "include/heddle/error.h": [],
            "include/heddle/dtype.h": [],
            "include/heddle/tensor.h": ["heddle/dtype.h"],
            "src/backend/cpu/simd.h": ["heddle/dtype.h"],
            "src/ops/add/add.h": ["heddle/tensor.h"],
            "src/ops/add/add.kernels.h": ["heddle/dtype.h"],
            "src/ops/add/add.cpu.h": ["ops/add/add.kernels.h", "backend/cpu/simd.h"],
            "src/backend/cuda/kernel.cuh": ["heddle/tensor.h"],
            "src/ops/add/add.call.h": ["heddle/tensor.h"],
            "src/ops/add/add.cu": ["ops/add/add.call.h", "backend/cuda/kernel.cuh"],
            "src/ops/support/op.h": ["heddle/tensor.h"],
            "src/ops/add/add.cpp": ["ops/add/add.h", "ops/support/op.h", "heddle/ops/mul.h", "heddle/tensor.h"],
            "src/ops/add/test.cpp": ["no/such/file.h"],
        }))

    def test_each_rule(self):
        everything = {
            "include/heddle/dtype.h": [], "include/heddle/tensor.h": [],
            "src/ops/mul/mul.h": [], "src/ops/mul/mul.kernels.h": [],
            "src/backend/cpu/isa.h": [], "src/backend/meta/cost.h": [], "src/nn/linear.h": [],
            "src/train/trainer.h": [], "src/plan/plan.h": [],
            "src/ops/support/cpu/matrix.h": [], "src/backend/cuda/kernel.cuh": [],
        }
        for path, target in [
            ("src/tensor/tensor.cpp", "ops/mul/mul.h"),
            ("src/tensor/tensor.cpp", "backend/cpu/isa.h"),
            ("src/base/dtype.cpp", "heddle/tensor.h"),
            ("src/ops/add/add.cpp", "nn/linear.h"),
            ("src/ops/add/add.cpp", "ops/mul/mul.kernels.h"),
            ("src/ops/add/add.h", "backend/cpu/isa.h"),
            ("src/ops/add/add.cpp", "backend/cpu/isa.h"),
            ("src/ops/add/add.call.h", "backend/cpu/isa.h"),
            ("src/ops/add/add.cpp", "ops/support/cpu/matrix.h"),
            ("src/ops/support/norm.h", "ops/support/cpu/matrix.h"),
            ("src/nn/linear.cpp", "ops/support/cpu/matrix.h"),
            ("src/nn/linear.cpp", "backend/cpu/isa.h"),
            ("src/plan/plan.cpp", "backend/cpu/isa.h"),
            ("src/text/split/word_end.cpp", "backend/cpu/isa.h"),
            ("src/ops/add/add.cpp", "backend/cuda/kernel.cuh"),
            ("src/ops/add/add.cpu.cpp", "backend/cuda/kernel.cuh"),
            ("src/ops/add/add.cu", "backend/cpu/isa.h"),
            ("src/ops/add/add.cu", "ops/mul/mul.kernels.h"),
            ("src/backend/cuda/engine.cpp", "backend/cpu/isa.h"),
            ("src/ops/add/add.cpu.h", "heddle/tensor.h"),
            ("src/ops/add/add.cpu.h", "ops/mul/mul.kernels.h"),
            ("src/ops/support/check.cpp", "ops/mul/mul.h"),
            ("src/backend/cpu/threads.cpp", "heddle/tensor.h"),
            ("src/backend/cpu/threads.cpp", "backend/meta/cost.h"),
            ("include/heddle/shape.h", "heddle/tensor.h"),
            ("include/heddle/memory.h", "backend/cpu/isa.h"),
            ("include/heddle/surprise.h", "heddle/dtype.h"),
            ("src/base/dtype.cpp", "../include/heddle/dtype.h"),
        ]:
            with self.subTest(path=path, target=target):
                found = self.complaints({**everything, path: [target]})
                self.assertEqual(1, len(found), found)
                self.assertTrue(found[0].startswith(f"{path}:1: "), found)


class Style(unittest.TestCase):
    def test_forbidden_text(self):
        for text in ["see /" + "work/main", "g++ -march=" + "native", "https://deb." + "debian.org"]:
            with self.subTest(text=text):
                self.assertTrue(any(p.search(text) for p, _ in check_style.FORBIDDEN))
        for text in ["src/network/home.h", "https://github.com", "the debian package"]:
            with self.subTest(text=text):
                self.assertFalse(any(p.search(text) for p, _ in check_style.FORBIDDEN))

    def test_missing_test_header(self):
        test = "TEST(Sum, IsRight) {"
        self.assertEqual(2, check_style.missing_test_header(["", test]))
        self.assertIsNone(check_style.missing_test_header(["#include <gtest/gtest.h>", test]))
        self.assertIsNone(check_style.missing_test_header(["// TEST(", "  TEST(x);"]))

    def test_function_without_a_test(self):
        with tempfile.TemporaryDirectory() as root:
            folder = Path(root) / "twice"
            folder.mkdir()
            (folder / "twice.h").write_text(
                "Tensor twice(const Tensor& x);\n// Tensor old(int);\nPair twice_many(\n    int n);\n"
                "namespace reference {\nTensor half(int);\n}\n")
            (folder / "test.cpp").write_text("ops::twice(x); ops::twice_many_more(x);\n")
            found = list(check_style.check_functions(Path(root)))
            self.assertEqual(1, len(found), found)
            self.assertIn("calls twice_many", found[0])
            (folder / "test_more.cpp").write_text("ops::twice_many(3);\n")
            self.assertEqual([], list(check_style.check_functions(Path(root))))


class IsaSymbols(unittest.TestCase):
    def run_check(self, code):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "a.cpp", Path(folder) / "a.o"
            source.write_text(code)
            subprocess.run(["c++", "-c", source, "-o", target], check=True)
            return subprocess.run([SCRIPTS / "check_isa_symbols.sh", "avx2", target],
                                  capture_output=True, text=True)

    def test_own_namespace_is_fine(self):
        result = self.run_check("""
            namespace heddle::cpu::avx2 {
            template <class T> T twice(T x) { return x + x; }
            int f(int x) { return twice(x); }
            }""")
        self.assertEqual(0, result.returncode, result.stdout)

    def test_template_of_own_type_is_fine(self):
        result = self.run_check("""
            namespace heddle::cpu {
            template <class F> void use(F f) { f(); }
            namespace avx2 { void f() { use([] {}); } }
            }""")
        self.assertEqual(0, result.returncode, result.stdout)

    def test_template_of_another_room_with_own_type_is_fine(self):
        result = self.run_check("""
            namespace heddle { template <class F> void use(F f) { f(); } }
            namespace heddle::cpu::avx2 { template <class T> void g(T) { use([] {}); } void f() { g(1); } }""")
        self.assertEqual(0, result.returncode, result.stdout)

    def test_weak_symbol_of_another_level(self):
        result = self.run_check("""
            namespace heddle::cpu::avx2_other { inline int f() { return 1; } int g() { return f(); } }
            namespace heddle::cpu::avx512 { inline int f() { return 1; } int g() { return f(); } }""")
        self.assertEqual(1, result.returncode)
        self.assertEqual(2, result.stdout.count("weak:"), result.stdout)

    def test_weak_symbol(self):
        result = self.run_check("inline int shared(int x) { return x; } int f() { return shared(1); }")
        self.assertEqual(1, result.returncode)
        self.assertIn("shared(int)", result.stdout)

    def test_initialiser(self):
        result = self.run_check("int g(); int early = g();")
        self.assertEqual(1, result.returncode)
        self.assertIn("before main", result.stdout)


class Texts(unittest.TestCase):
    """Sources and a catalogue; what is planted is found, and where."""

    SOURCE = """// tr("in a comment")
std::string a() { return tr("one " // joined
                            "two"); }
const char* b = mark("a \\"table\\"");
std::string c(bool x) { return tr(x ? "yes" : "no") + tr("{} of {:.3g}", 1, 2) + tr(variable); }
void d() { app.add_subcommand("name", "what it does")->footer("Example: x"); other("none of this"); }
void e() { app.add_option_function<std::string>("--x", [](auto& v) { f(v, "not this"); }, "by a function"); }
"""
    TEXTS = {"one two": "一二", 'a "table"': "表", "yes": "是", "no": "否", "{} of {:.3g}": "{1:.3g} 之 {0}",
             "what it does": "做什么", "by a function": "由函数", "Example: x": "例：x"}

    def complaints(self, source=SOURCE, catalogue=None, **other_texts):
        with tempfile.TemporaryDirectory() as root:
            entries = {**self.TEXTS, **other_texts}
            if catalogue is None:
                catalogue = "".join("\n" + texts.quoted("msgid", k) + texts.quoted("msgstr", v)
                                    for k, v in entries.items())
            for path, content in {"src/a.cpp": source, "src/test_a.cpp": 'tr("of a test")', "cli/b.js": "",
                                  texts.CATALOGUE: catalogue}.items():
                (Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
                (Path(root) / path).write_text(content)
            return list(texts.check(Path(root)))

    def test_all_is_well(self):
        self.assertEqual([], self.complaints())

    def test_a_text_without_a_translation(self):
        found = self.complaints(self.SOURCE + 'tr("new");')
        self.assertEqual(["src/a.cpp:8: without a translation: new"], found)
        self.assertEqual(["src/a.cpp:5: without a translation: yes"], self.complaints(yes=""))

    def test_an_entry_that_is_not_needed(self):
        self.assertIn("no source has this text: gone", self.complaints(gone="无")[0])
        twice = "".join(texts.quoted("msgid", k) + texts.quoted("msgstr", v)
                        for k, v in [*self.TEXTS.items(), ("no", "不")])
        self.assertIn("a second entry for: no", self.complaints(catalogue=twice)[0])

    def test_translations_that_cannot_be_right(self):
        for text, translation, reason in [
            ("{} of {:.3g}", "{} 之 {}", "other values"),
            ("{} of {:.3g}", "{:.3g}", "other values"),
            ("one two", "one two", "nothing Chinese"),
            ("yes", "是， 是", "a space"),
            ("yes", "是,", "Western punctuation"),
            ("yes", "是\n", "line break"),
        ]:
            with self.subTest(text=text, translation=translation):
                found = self.complaints(**{text: translation})
                self.assertEqual(1, len(found), found)
                self.assertIn(reason, found[0])

    def test_an_update_keeps_translations_and_drops_what_is_gone(self):
        with tempfile.TemporaryDirectory() as root:
            source, catalogue = Path(root) / "src/a.cpp", Path(root) / texts.CATALOGUE
            for path in (source, catalogue):
                path.parent.mkdir()
            source.write_text('tr("b\\n" "c"); tr("a"); tr("b\\nc");')
            catalogue.write_text('# head\nmsgid ""\nmsgstr ""\n"L: zh\\n"\n\nmsgid "a"\nmsgstr "甲"\n'
                                 '\nmsgid "gone"\nmsgstr "无"\n')
            texts.update(Path(root))
            self.assertEqual('# head\nmsgid ""\nmsgstr ""\n"L: zh\\n"\n\n#: src/a.cpp\nmsgid ""\n"b\\n"\n"c"\n'
                             'msgstr ""\n\n#: src/a.cpp\nmsgid "a"\nmsgstr "甲"\n', catalogue.read_text())


class Chapters(unittest.TestCase):
    """A chapter and its translation; where one falls behind the other is found."""

    ENGLISH = """# Data

Reads `data.text` in 3 ways: see [more](more.md).

- One item, over
  two lines, of several words.

| key | value |
|---|---|
| `a` | at most 7 |

```
heddle data x   # shows it
```
"""
    CHINESE = """# 数据

以 3 种方式读取 `data.text`：见[更多](../more.md)。

- 一项，由好几个词组成。

| 字段 | 取值 |
|---|---|
| `a` | 最多 7 |

```
heddle data x   # 显示它
```
"""

    def complaints(self, english=ENGLISH, chinese=CHINESE, **more):
        with tempfile.TemporaryDirectory() as root:
            files = {chapters.TOPICS: "set(HEDDLE_HELP_TOPICS data)", "docs/data.md": english, "docs/more.md": "# M",
                     "docs/zh/data.md": chinese, **more}
            for path, content in files.items():
                if content is not None:
                    (Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
                    (Path(root) / path).write_text(content)
            return list(chapters.check(Path(root)))

    def test_all_is_well(self):
        self.assertEqual([], self.complaints())

    def test_a_chapter_without_a_translation(self):
        self.assertEqual(["docs/data.md:1: without a translation: docs/zh/data.md is not there"],
                         self.complaints(chinese=None))
        self.assertEqual(["docs/reference.md:1: without a translation: docs/zh/reference.md is not there",
                          "README.md:1: without a translation: README.zh-CN.md is not there"],
                         self.complaints(**{"docs/reference.md": "# R\n", "README.md": "# H\n"}))
        self.assertIn("has no such chapter", self.complaints(**{"docs/zh/gone.md": "# 无"})[0])

    def test_english_that_has_gone_on(self):
        for old, new, reason in [
            ("\n- One", "\nA new paragraph.\n\n- One", 'docs/data.md:5: without a translation: paragraph "A new'),
            ("| `a` | at", "| `b` | one |\n| `a` | at", "docs/zh/data.md:9: code that only the English has: `b`"),
            ("`data.text`", "`data.pairs`", "docs/zh/data.md:3: code that only the English has: `data.pairs`"),
            ("most 7", "most 8", "docs/zh/data.md:9: numbers that only the English has: 8"),
            ("(more.md)", "(data.md)", "links that only the English has: data.md"),
            ("data x ", "data y ", "docs/zh/data.md:11: code differs"),
            ("shows it\n```\n", "shows it\n```\n\nThe end.\n", "the chapter ends"),
        ]:
            with self.subTest(new=new):
                self.assertIn(old, self.ENGLISH)
                self.assertIn(reason, self.complaints(english=self.ENGLISH.replace(old, new))[0])

    def test_translations_that_cannot_be_right(self):
        for old, new, reason in [
            ("- 一项，由好几个词组成。", "- One item, of several words.", "nothing Chinese in it"),
            ("一项，", "一项， ", "a space"),
            ("一项，", "一项,", "Western punctuation"),
            ("最多 7 |", "最多 7 | x |", "other cells"),
            ("../more.md", "../nowhere/more.md", "no such file"),
            ("显示它\n```\n", "显示它\n```\n\n完。\n", "the English has no such paragraph"),
        ]:
            with self.subTest(new=new):
                self.assertIn(old, self.CHINESE)
                self.assertIn(reason, self.complaints(chinese=self.CHINESE.replace(old, new))[0])


class Links(unittest.TestCase):
    def faults(self, **documents):
        with tempfile.TemporaryDirectory() as root:
            for name, text in documents.items():
                (Path(root) / f"{name}.md").write_text(text)
            return [fault for name in documents
                    for fault in links.faults_of(Path(root), Path(root) / f"{name}.md")]

    def test_all_is_well(self):
        self.assertEqual([], self.faults(
            one="# One\n[two](two.md), [a part](two.md#a-part-of-it-1), [here](#one), "
                "[far](https://example.org/x)\n`[code](none.md)`\n```\n[code](none.md)\n```\n",
            two="# Two\n## A part of `it`\n## A part of it\n```\n# not-a-heading\n```\n"))

    def test_what_is_not_there(self):
        self.assertEqual(
            ["one.md:1: no such file: three.md", "one.md:2: no such heading: two.md#four",
             "one.md:3: no such file: map.png", "one.md:4: no such file: five.md"],
            self.faults(one="[a](three.md)\n[b](two.md#four)\n![c](map.png)\n<a href=\"five.md\">x</a>\n",
                        two="# Two\n```\n# four\n```\n"))


class DoxygenFilter(unittest.TestCase):
    def test_comments_become_doxygens(self):
        header = """// A layer.
#pragma once

namespace heddle {

// Draws <n> numbers, see #3 and `a<b>`.
struct Draw {  // seeded
  int n = 0;      // how many,
                  // or none
  std::string url = "http://here";
};

}  // namespace heddle"""
        expected = r"""/// @file
/// A layer.
#pragma once

namespace heddle {

/// Draws \<n\> numbers, see \#3 and `a<b>`.
struct Draw {  ///< seeded
  int n = 0;      ///< how many,
                  ///< or none
  std::string url = "http://here";
};

}  """
        found = "\n".join(doxygen_filter.filtered(header.split("\n")))
        self.assertEqual(expected, found)


if __name__ == "__main__":
    unittest.main()
