"""The pages of the site: which document each is made of, in which order readers meet them, and where links lead.

A page has one name in both languages, `recipes` for docs/recipes.md and docs/zh/recipes.md, so that the switch of
languages leads from each page to itself. What has no Chinese yet is a page of the Chinese site all the same, in English.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import links  # noqa: E402

LANGUAGES = ("en", "zh")
HOME = "index"
# Pages whose documents are not docs/NAME.md.
ELSEWHERE = {HOME: ("README.md", "README.zh-CN.md"), "contributing": ("CONTRIBUTING.md", None),
             "changelog": ("CHANGELOG.md", None)}


@dataclass(frozen=True)
class Group:
    """The pages of one kind of reader, in the order of the navigation."""
    title: dict
    pages: tuple


GROUPS = (
    Group({"en": "Learn", "zh": "学习"},
          ("tutorial-learner", "tutorial-lab", "lab", "attention", "recurrent", "inspect")),
    Group({"en": "Experiment", "zh": "做实验"},
          ("tutorial-experimenter", "recipes", "reference", "data", "training", "compare", "check", "distributed",
           "results")),
    Group({"en": "Use it in programs", "zh": "用在程序里"},
          ("tutorial-engineer", "library", "generate", "pretrained", "tokenizers", "performance")),
    Group({"en": "Contribute", "zh": "参与开发"},
          ("contributing", "building", "architecture", "backends", "testing", "notebook", "changelog")),
)

# Chinese titles, in the navigation, of pages that are still in English.
ENGLISH_ONLY = {
    "lab": "实验室：运行理论", "results": "各个配方学到了什么", "library": "作为库使用", "performance": "性能",
    "contributing": "为 Heddle 做贡献", "building": "编译", "architecture": "架构", "backends": "后端",
    "testing": "检验测试本身", "notebook": "优化笔记", "changelog": "更新日志",
}
NOT_YET_CHINESE = "这一页还没有中文，下面是英文原文。"


def document(page, language, root=ROOT):
    """The file that a page is made of, and whether it is in that language."""
    english, chinese = ELSEWHERE.get(page, (f"docs/{page}.md", f"docs/zh/{page}.md"))
    if language == "zh" and chinese and (root / chinese).exists():
        return root / chinese, True
    return root / english, language == "en"


def all_pages():
    return [HOME, *(page for group in GROUPS for page in group.pages)]


def title(page, language, root=ROOT):
    """What a page is called where others lead to it."""
    file, translated = document(page, language, root)
    if not translated and page in ENGLISH_ONLY:
        return f"{ENGLISH_ONLY[page]}（英文）"
    return file.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def page_of(path, root=ROOT):
    """The page that a document is shown on, in either language, or None."""
    for page in all_pages():
        if path in [document(page, language, root)[0] for language in LANGUAGES]:
            return page
    return None


def faults(root=ROOT):
    """Documents that no page shows, pages without one, and links among documents that lead nowhere."""
    for page in all_pages():
        if not document(page, "en", root)[0].exists():
            yield f"docs/site/pages.py: {page} has no document"
    for file in links.documents(root):
        yield from links.faults_of(root, file)
        if page_of(file, root) is None and file.parent in (root, root / "docs", root / "docs/zh"):
            yield f"{file.relative_to(root)}: in no group of docs/site/pages.py"


def anchor_in(language, to, part, root=ROOT):
    """A heading's anchor in the document that is shown: of a translation, the heading in the same place."""
    page = page_of(to, root)
    shown = document(page, language, root)[0]
    if not part or shown == to:
        return part
    here, there = (links.anchors_of(file.read_text(encoding="utf-8")) for file in (to, shown))
    return there[here.index(part)]


class Links:
    """The links of one document, turned into those of its page."""

    def __init__(self, file, language, root=ROOT):
        self.file, self.language, self.root = file, language, root
        self.sources = set()  # files of the repository that are linked to and are no documents

    def target(self, target):
        """Where a link leads on the site. `site:` is an address there that is no document."""
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            return target
        path, _, part = target.partition("#")
        to = (self.file.parent / path).resolve() if path else self.file
        page = page_of(to, self.root)
        if page is not None:
            part = anchor_in(self.language, to, part, self.root)
            return (f"{page}.md" if path else "") + (f"#{part}" if part else "")
        if to == self.root / "docs/zh":
            return "site:index.html" if self.language == "zh" else "site:zh/index.html"
        name = to.relative_to(self.root).as_posix()
        if to.is_relative_to(self.root / "docs/images"):
            return f"images/{to.relative_to(self.root / 'docs/images')}"
        self.sources.add(name)
        return f"site:sources/{name}.html"

    def line(self, line, without_code):
        """A line with its links turned; those in code stay. `without_code` is the same line with code left empty.
        A link that is told by the name of its file has the title of the page instead."""
        parts, end = [], 0
        for match in links.LINK.finditer(without_code):
            group = next(number for number in (1, 2, 3) if match[number])
            before, target = line[match.start():match.start(group)], self.target(match[group])
            if re.fullmatch(r"\[[\w./-]+\.md\]\(", before):
                before = f"[{title(target.partition('.md')[0], self.language, self.root)}]("
            parts += [line[end:match.start()], before, target]
            end = match.end(group)
        return "".join(parts) + line[end:]

    def text(self):
        text = self.file.read_text(encoding="utf-8")
        return "\n".join(map(self.line, text.splitlines(), links.without_code(text))) + "\n"


def contents(language, root=ROOT):
    """The navigation, as the home page has it."""
    for group in GROUPS:
        yield "\n```{toctree}\n:hidden:\n:caption: " + group.title[language] + "\n"
        for page in group.pages:
            translated = document(page, language, root)[1]
            yield page if translated else f"{title(page, language, root)} <{page}>"
        yield "```"


def page_text(page, language, root=ROOT):
    """Markdown of a page, and the files of the repository that it links to."""
    file, translated = document(page, language, root)
    turned = Links(file, language, root)
    lines = turned.text().splitlines()
    if page == HOME:  # the line of languages: the site has a switch
        lines = [line for line in lines if not re.match(r"\[English\]\(.*\) \| \[中文\]\(.*\)$", line)]
        lines += contents(language, root)
    if not translated:
        lines[1:1] = ["", "```{note}", NOT_YET_CHINESE, "```"]
    return "\n".join(lines) + "\n", turned.sources
