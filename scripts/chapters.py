#!/usr/bin/env python3
"""Chapters that `heddle help` shows, and other pages that exist in Chinese, beside their Chinese.

Without arguments: the check. Prints `file:line: reason` for every chapter without a translation and for every
place where a translation has fallen behind: a paragraph, list item, table row or block of code that only one
of both has, names in `code`, numbers or links that differ, English that was left as it was. Exits with 1 when
there is one.
"""

import re
import sys
from collections import Counter
from itertools import zip_longest
from pathlib import Path

import links

ROOT = Path(__file__).resolve().parent.parent
TOPICS = "cmake/help_topics.cmake"
TRANSLATIONS = "docs/zh"
# Pages that the program does not carry: docs/NAME.md, and those at the top.
PAGES = ("reference", "tutorial-learner", "tutorial-experimenter", "tutorial-engineer", "tutorial-lab")
TOP = {"README.md": "README.zh-CN.md"}
CHINESE = "\u3400-\u9fff"


def topic_names(root):
    """The chapters of cmake/help_topics.cmake."""
    listed = root / TOPICS
    names = re.search(r"HEDDLE_HELP_TOPICS ([^)]*)", listed.read_text()) if listed.exists() else None
    return names.group(1).split() if names else []


class Block:
    """A heading, paragraph, list item, table row or block of code, and the line it begins in."""

    def __init__(self, kind, text, line):
        self.kind, self.text, self.line = kind, text, line

    def __str__(self):
        text = self.text.replace("\n", " ")
        return f"{self.kind} \"{text if len(text) <= 60 else text[:57] + '...'}\""


def kind_of(line):
    if line.startswith("#"):
        return "heading of level " + str(len(line) - len(line.lstrip("#")))
    if line.startswith("|"):
        return "table row"
    if line.startswith("- "):
        return "list item"
    return "code" if line.startswith("    ") else "paragraph"


def blocks_of(text):
    """The blocks of a chapter, in their order. Lines that follow each other are one paragraph."""
    blocks, fence, last = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fence = None if fence else Block("code", "", number)
            if fence:
                blocks.append(fence)
        elif fence:
            fence.text += line + "\n"
        elif line.strip():
            kind = kind_of(line)
            follows = last.strip() and not last.startswith("```")
            if follows and kind in ("paragraph", "code") and blocks[-1].kind in ("paragraph", "list item", "code"):
                blocks[-1].text += "\n" + line
            else:
                blocks.append(Block(kind, line, number))
        last = line
    return blocks


def cells_of(row):
    return len(re.findall(r"(?<!\\)\|", row))


def code_lines(text):
    """Lines of code without what is said beside them: behind # or //, or two spaces."""
    return [re.split(r" *(?:#|//) | {2,}(?=\S)", line, maxsplit=1)[0].rstrip() if line.strip() else ""
            for line in text.splitlines()]


def facts_of(text):
    """What a translation has to keep: names in code, numbers, where links lead."""
    code = re.findall(r"`[^`]+`", text)
    plain = re.sub(r"`[^`]+`", " ", text)
    links = [Path(target).name.replace(".zh-CN", "") for target in re.findall(r"\]\(([^)]+)\)", plain)]
    plain = re.sub(r"\]\([^)]+\)", "]", plain)
    return Counter(code), Counter(re.findall(r"\d+(?:[.,]\d+)*", plain)), Counter(links)


def only_in(one, other):
    return ", ".join(sorted((one - other).elements()))


def punctuation_faults(text):
    if re.search(r" [，。：；、！？）]|[，。：；、！？（] ", text):
        yield "a space beside Chinese punctuation"
    if re.search(f"[{CHINESE}][,;:!?](?![A-Za-z0-9_/*])", text):
        yield "Western punctuation behind a Chinese character"


def differences(english, chinese):
    """What a block lacks that the English one has, and the other way round."""
    if english.kind == "code":
        if code_lines(english.text) != code_lines(chinese.text):
            yield "code differs in more than its comments"
        return
    if english.kind == "table row" and cells_of(english.text) != cells_of(chinese.text):
        yield "other cells than the English row"
    for name, ours, theirs in zip(("code", "numbers", "links"), facts_of(english.text), facts_of(chinese.text)):
        if only_in(ours, theirs):
            yield f"{name} that only the English has: {only_in(ours, theirs)}"
        if only_in(theirs, ours):
            yield f"{name} that only the Chinese has: {only_in(theirs, ours)}"
    words = re.findall(r"[A-Za-z]{3,}", re.sub(r"`[^`]+`|\[[^]]*\]\([^)]*\)|\*[^*]+\*", " ", english.text))
    if english.kind != "table row" and len(words) > 4 and not re.search(f"[{CHINESE}]", chinese.text):
        yield "nothing Chinese in it"
    yield from punctuation_faults(chinese.text)


def check_links(root, path):
    for number, line in enumerate(links.without_code((root / path).read_text(encoding="utf-8")), 1):
        for target in re.findall(r"\]\(([^)#]+)\)", line):
            if "://" not in target and not (root / path).parent.joinpath(target).exists():
                yield f"{path}:{number}: no such file: {target}"


def check_page(root, original, path):
    if not (root / path).exists():
        yield f"{original}:1: without a translation: {path} is not there"
        return
    ours = blocks_of((root / original).read_text(encoding="utf-8"))
    theirs = blocks_of((root / path).read_text(encoding="utf-8"))
    for english, chinese in zip_longest(ours, theirs):
        if english is None:
            yield f"{path}:{chinese.line}: the English has no such {chinese}"
            return
        if chinese is None or english.kind != chinese.kind:
            found = f"here is {chinese}" if chinese else "the chapter ends"
            yield f"{original}:{english.line}: without a translation: {english}; {found} ({path})"
            return
        for difference in differences(english, chinese):
            yield f"{path}:{chinese.line}: {difference} ({original}:{english.line})"
    yield from check_links(root, path)


def check(root):
    names = [*topic_names(root), *(page for page in PAGES if (root / f"docs/{page}.md").exists())]
    for name in names:
        yield from check_page(root, f"docs/{name}.md", f"{TRANSLATIONS}/{name}.md")
    for original, path in TOP.items():
        if (root / original).exists():
            yield from check_page(root, original, path)
    for file in sorted((root / TRANSLATIONS).glob("*.md")):
        if file.stem not in names:
            yield f"{TRANSLATIONS}/{file.name}:1: {TOPICS} has no such chapter"


def main():
    if sys.argv[1:]:
        sys.exit(f"{sys.argv[0]}: expected nothing, got {' '.join(sys.argv[1:])}")
    complaints = list(check(ROOT))
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
