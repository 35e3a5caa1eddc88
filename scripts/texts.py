#!/usr/bin/env python3
"""Texts that people read, and their Chinese in po/zh_CN.po.

Without arguments: the check. Prints `file:line: reason` for every text without a translation, every entry
that no text needs, and every translation that cannot be right; exits with 1 when there is one.
--update: adds entries for new texts (with an empty msgstr, to be filled in), drops those that are gone, and
puts all in the order of the sources.
"""

import re
import sys
from pathlib import Path

from chapters import CHINESE, punctuation_faults, topic_names

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = "po/zh_CN.po"
FOLDERS = ("src", "cli")
SUFFIXES = {".h", ".cpp", ".js"}

# Functions whose n-th argument (from 1) is a text, when it is a literal: tr() and mark() of
# src/language/language.h, and what the command line gives its parser, whose help is translated.
FUNCTIONS = {"tr": 1, "mark": 1, "add_option": 3, "add_flag": 3, "add_subcommand": 2, "footer": 1, "group": 1,
             "set_help_flag": 2, "set_version_flag": 3, "add_option_function": 3, "add_flag_function": 3}
# What is called the same in Chinese.
NAMES = {"ALiBi", "token", "tokens", "nats", "BiRNN", "BLEU", "MoE", "RNN", "RoPE", "T5"}

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\s+|.""",
    re.S)
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "'": "'"}


class Use:
    """A text where the source has it. `values`: it is a format, and its {} are replaced."""

    def __init__(self, text, path, line, values):
        self.text, self.path, self.line, self.values = text, path, line, values


def tokens_of(source):
    """(token, line) without comments and white space."""
    line, found = 1, []
    for match in TOKEN.finditer(source):
        token = match.group(0)
        if not (token.isspace() or token.startswith(("//", "/*"))):
            found.append((token, line))
        line += token.count("\n")
    return found


def is_literal(token, javascript):
    return token[0] == '"' or (javascript and token[0] == "'" and len(token) > 1)


def text_of(literal):
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), literal[1:-1])


def arguments_at(tokens, at):
    """The arguments of the call whose parenthesis opens at `at`, each a list of tokens."""
    depth, all_of_them = 0, [[]]
    for token, line in tokens[at:]:
        if token in "([{":
            depth += 1
            if depth == 1:
                continue
        if token in ")]}":
            depth -= 1
            if depth == 0:
                break
        if token == "," and depth == 1:
            all_of_them.append([])
        else:
            all_of_them[-1].append((token, line))
    return all_of_them


def literals_in(argument, javascript):
    """(text, line) of every run of literals that stand alone or are picked by ?: in an argument."""
    found, run, depth = [], None, 0
    for token, line in [*argument, (";", 0)]:
        depth += (token in "([{") - (token in ")]}")
        if is_literal(token, javascript) and depth == 0:
            run = (run[0] + text_of(token), run[1]) if run else (text_of(token), line)
        elif run:
            found.append(run)
            run = None
    return found


def uses_in(path, source):
    javascript = path.endswith(".js")
    tokens = tokens_of(source)
    for i, (token, _) in enumerate(tokens[:-1]):
        if token not in FUNCTIONS:
            continue
        at = i + 1
        if tokens[at][0] == "<":  # add_option_function<std::string>(
            at = next((j for j in range(at, len(tokens)) if tokens[j][0] == ">"), at) + 1
        if at >= len(tokens) or tokens[at][0] != "(":
            continue
        arguments = arguments_at(tokens, at)
        number = FUNCTIONS[token]
        if len(arguments) < number:
            continue
        for text, line in literals_in(arguments[number - 1], javascript):
            if text:
                yield Use(text, path, line, token == "tr" and len(arguments) > 1)


def chapter_titles(root):
    """Headings of the chapters that `heddle help` lists (cmake/help_topics.cmake)."""
    for name in topic_names(root):
        heading = re.match("# (.*)", (root / f"docs/{name}.md").read_text(encoding="utf-8"))
        yield Use(heading.group(1), f"docs/{name}.md", 1, False)


def uses_of(root):
    yield from chapter_titles(root)
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES and not file.name.startswith("test"):
                yield from uses_in(str(file.relative_to(root)), file.read_text(encoding="utf-8"))


class Entry:
    def __init__(self, text, translation, line=0):
        self.text, self.translation, self.line = text, translation, line


def entries_of(catalogue):
    """(header, entries) of a .po file. The header is everything before the first text."""
    entries, part = [], None
    for number, line in enumerate(catalogue.splitlines(), 1):
        if line.startswith("msgid "):
            entries.append(Entry("", "", number))
            part = "text"
        elif line.startswith("msgstr "):
            part = "translation"
        elif not line.startswith('"'):
            part = None
        if part:
            quoted = text_of(line[line.index('"'):])
            setattr(entries[-1], part, getattr(entries[-1], part) + quoted)
    header = catalogue[:re.search(r'\n\n|\Z', catalogue[catalogue.find('msgid ""'):]).start()
                       + max(catalogue.find('msgid ""'), 0)]
    return header, [e for e in entries if e.text]


def quoted(keyword, text):
    """As gettext's own tools write it: one line, or one for each line of the text."""
    def escaped(part):
        return part.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    lines = text.splitlines(keepends=True)
    if len(lines) <= 1:
        return f'{keyword} "{escaped(text)}"\n'
    return f'{keyword} ""\n' + "".join(f'"{escaped(line)}"\n' for line in lines)


def written(header, uses, translations):
    """The catalogue of these texts, in the order in which the sources have them."""
    files = {}
    for use in uses:
        files.setdefault(use.text, []).append(use.path)
    out = header + "\n"
    for text, paths in files.items():
        out += "\n#: " + " ".join(dict.fromkeys(paths)) + "\n"
        out += quoted("msgid", text) + quoted("msgstr", translations.get(text, ""))
    return out


def placeholders(text):
    """{(number of the value, its format)}: "{}", "{:.3g}", "{1}" of fmt's, "$1" of our pages."""
    found, following = {(int(number), "$") for number in re.findall(r"\$(\d)", text)}, 0
    for name, form in re.findall(r"\{(\d*)(:[^{}]*)?\}", text.replace("{{", "").replace("}}", "")):
        found.add((int(name) if name else following, form))
        following += not name
    return found


def has_words(text):
    return re.search(r"[A-Za-z]{3}", text) and text not in NAMES


def faults_of(entry, values):
    """What can be seen to be wrong with a translation."""
    translation = entry.translation
    if values and placeholders(entry.text) != placeholders(translation):
        yield "other values in { } than the English"
    if has_words(entry.text) and not re.search(f"[{CHINESE}]", translation):
        yield "nothing Chinese in the translation"
    if entry.text.endswith("\n") != translation.endswith("\n"):
        yield "only one of text and translation ends with a line break"
    yield from punctuation_faults(translation)


def shown(text):
    """On one line, and no longer than one."""
    line = text.replace("\n", "\\n")
    return line if len(line) <= 100 else line[:97] + "..."


def check(root):
    uses = list(uses_of(root))
    _, entries = entries_of((root / CATALOGUE).read_text(encoding="utf-8"))
    by_text = {}
    for entry in entries:
        if entry.text in by_text:
            yield f"{CATALOGUE}:{entry.line}: a second entry for: {shown(entry.text)}"
        by_text[entry.text] = entry
    wanted, with_values = {}, {use.text for use in uses if use.values}
    for use in uses:
        wanted.setdefault(use.text, use)
    for text, use in wanted.items():
        if text not in by_text or not by_text[text].translation:
            yield f"{use.path}:{use.line}: without a translation: {shown(text)}"
    for entry in entries:
        if entry.text not in wanted:
            yield f"{CATALOGUE}:{entry.line}: no source has this text: {shown(entry.text)}"
        elif entry.translation:
            for fault in faults_of(entry, entry.text in with_values):
                yield f"{CATALOGUE}:{entry.line}: {fault}: {shown(entry.text)}"


def update(root):
    path = root / CATALOGUE
    header, entries = entries_of(path.read_text(encoding="utf-8"))
    translations = {entry.text: entry.translation for entry in entries}
    path.write_text(written(header, uses_of(root), translations), encoding="utf-8")


def main():
    if sys.argv[1:] == ["--update"]:
        update(ROOT)
    elif sys.argv[1:]:
        sys.exit(f"{sys.argv[0]}: expected nothing or --update, got {' '.join(sys.argv[1:])}")
    complaints = list(check(ROOT))
    if complaints:
        sys.exit("\n".join(complaints) + "\nscripts/texts.py --update adds entries; the Chinese goes into "
                 + CATALOGUE)


if __name__ == "__main__":
    main()
