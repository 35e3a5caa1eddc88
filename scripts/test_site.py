#!/usr/bin/env python3
"""What the site is made of: every document has a page, links lead where they led, and what is wrong is found."""

import tempfile
import unittest
from pathlib import Path

import check_layers
import draw_house
import make_site
from make_site import pages

ENGLISH = """# Recipes

See [data.md](data.md#where-it-lies), [the lab](lab.md) and [a header](../include/heddle/chat.h).

```sh
cat [data.md](data.md)
```

![a map](images/map.png) and `[data.md](data.md)`, [here](#recipes) and [there](https://example.org/)
"""
FILES = {
    "README.md": "# Heddle\n\n[English](README.md) | [中文](README.zh-CN.md)\n\n[chapters](docs/zh), [all](docs/recipes.md)\n",
    "README.zh-CN.md": "# Heddle\n\n[English](README.md) | [中文](README.zh-CN.md)\n\n[docs/lab.md](docs/lab.md)\n",
    "docs/recipes.md": ENGLISH,
    "docs/data.md": "# Data\n\n## Kinds\n\n## Where it lies\n",
    "docs/zh/data.md": "# 数据\n\n## 种类\n\n## 存放位置\n",
    "docs/lab.md": "# The lab\n\n[data](data.md#kinds)\n",
    "docs/images/map.png": "",
    "include/heddle/chat.h": "",
}


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        others = {f"docs/{page}.md": f"# {page}\n" for page in pages.all_pages() if page not in pages.ELSEWHERE}
        for name, text in {**others, "CONTRIBUTING.md": "# C\n", "CHANGELOG.md": "# C\n", **FILES}.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def text(self, page, language):
        return pages.page_text(page, language, self.root)

    def test_this_repository_has_a_page_for_each_document(self):
        self.assertEqual([], list(pages.faults()))

    def test_a_document_without_a_page_and_a_page_without_a_document(self):
        self.assertEqual([], list(pages.faults(self.root)))
        (self.root / "docs/new.md").write_text("# New\n")
        (self.root / "docs/inspect.md").unlink()
        (self.root / "docs/check.md").write_text("# Check\n\n[nowhere](nowhere.md)\n")
        self.assertEqual(["docs/check.md:3: no such file: nowhere.md",
                          "docs/new.md: in no group of docs/site/pages.py",
                          "docs/site/pages.py: inspect has no document"], sorted(pages.faults(self.root)))

    def test_links_of_a_page(self):
        text, linked = self.text("recipes", "en")
        self.assertIn("See [Data](data.md#where-it-lies), [the lab](lab.md) and "
                      "[a header](site:sources/include/heddle/chat.h.html).", text)
        self.assertIn("cat [data.md](data.md)", text)
        self.assertIn("![a map](images/map.png) and `[data.md](data.md)`, [here](#recipes) and "
                      "[there](https://example.org/)", text)
        self.assertEqual({"include/heddle/chat.h"}, linked)

    def test_an_english_page_among_chinese_ones(self):
        text, _ = self.text("recipes", "zh")
        self.assertEqual(["# Recipes", "", "```{note}", pages.NOT_YET_CHINESE, "```"], text.splitlines()[:5])
        # The heading in the same place of the translation.
        self.assertIn("[数据](data.md#存放位置)", text)

    def test_home(self):
        english, chinese = self.text("index", "en")[0], self.text("index", "zh")[0]
        self.assertNotIn("[English]", english + chinese)
        self.assertIn("[chapters](site:zh/index.html), [all](recipes.md)", english)
        self.assertIn(":caption: Learn\n", english)
        self.assertIn(f"[{pages.ENGLISH_ONLY['lab']}（英文）](lab.md)", chinese)
        self.assertIn(f"\n{pages.ENGLISH_ONLY['lab']}（英文） <lab>\n", chinese)
        self.assertIn("\ndata\n", chinese)


class House(unittest.TestCase):
    def test_the_drawing_has_the_layers_in_their_order(self):
        drawn = [name for rooms in draw_house.rooms_by_floor() for name in rooms if name != "your program"]
        self.assertEqual(check_layers.LAYERS, drawn[::-1])

    def test_the_file_is_what_the_script_draws(self):
        self.assertEqual(draw_house.drawing(), draw_house.FILE.read_text(encoding="utf-8"))


class BuiltPages(unittest.TestCase):
    def faults(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(make_site.page_faults(root))

    def test_all_is_well(self):
        self.assertEqual([], self.faults({
            "a.html": '<a href="zh/b.html#so">b</a><a href="https://example.org/">far</a><img src="data:image/png;base64,">'
                      '<script src="s.js?v=1"></script><a href="#top">up</a><a href="#">up</a><p id="top">',
            "zh/b.html": '<p id="so"><a href="../a.html">a</a>', "s.js": "", "s.css": "a { background: url(s.js) }"}))

    def test_each_fault(self):
        for text, fault in {
            '<a href="c.html">': "a.html: leads nowhere: c.html",
            '<a href="#c">': "a.html: no such place on the page: #c",
            '<img src="c.png">': "a.html: leads nowhere: c.png",
            '<script src="https://example.org/s.js"></script>': "a.html: would fetch https://example.org/s.js",
            '<link rel="stylesheet" href="//example.org/s.css">': "a.html: would fetch //example.org/s.css",
            '<img srcset="http://example.org/i.png 2x">': "a.html: would fetch http://example.org/i.png",
            '<p style="background: url(https://example.org/i.png)">': "a.html: would fetch https://example.org/i.png",
            "<style>@import 'https://example.org/f.css';</style>": "a.html: would fetch https://example.org/f.css",
        }.items():
            self.assertIn(fault, self.faults({"a.html": text}), text)
        self.assertEqual(["f.css: would fetch https://example.org/f.woff2"], self.faults(
            {"f.css": "@font-face { src: url('https://example.org/f.woff2') }"}))


if __name__ == "__main__":
    unittest.main()
