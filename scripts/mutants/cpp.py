"""C++ as tokens with their brackets matched: as much of the language as placing a mutant needs.

The sources are formatted by clang-format, which tells apart what the grammar alone cannot: a `<`, `*`
or `&` with spaces on both sides is an operator; one that touches its left neighbour is part of a type.
"""

import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<string>(?:u8|u|U|L)?R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"|(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*")
  | (?P<char>(?:u8|u|U|L)?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<punct><=>|->\*|<<=|\.\.\.|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S)
DIRECTIVE = re.compile(r"[ \t]*\#(?:[^\n\\]|\\\n|\\.)*")
OPENING = {"(": ")", "[": "]", "{": "}"}


@dataclass
class Token:
    kind: str
    text: str
    at: int  # offset of the first byte
    line: int
    apart_before: bool  # whether blanks stand before it
    apart_after: bool = True
    partner: int = -1  # index of the other bracket
    parent: int = -1  # index of the bracket that it lies in

    @property
    def end(self):
        return self.at + len(self.text)

    @property
    def binary(self):
        """An operator between two operands, by the spaces around it."""
        return self.kind == "punct" and self.apart_before and self.apart_after


class Source:
    """A file's text and tokens; brackets, among them those of template arguments, know each other."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = tokenize(text)
        match_brackets(self.tokens)
        self.bodies = set(function_bodies(self.tokens))  # indices of the `{` that begin code

    def in_code(self, index: int) -> bool:
        """Whether a token lies in the body of a function."""
        while index >= 0:
            index = self.tokens[index].parent
            if index in self.bodies:
                return True
        return False

    def cut(self, first: int, last: int) -> str:
        """The text of tokens first to last on one line, without comments."""
        parts = []
        for token in self.tokens[first:last + 1]:
            if parts and token.apart_before:
                parts.append(" ")
            parts.append(token.text)
        return "".join(parts)


def tokenize(text: str):
    tokens, at, line, apart, fresh = [], 0, 1, True, True
    while at < len(text):
        directive = DIRECTIVE.match(text, at) if fresh else None
        match = directive or TOKEN.match(text, at)
        piece = match.group()
        if directive or match.lastgroup == "space":
            apart = True
            if tokens:
                tokens[-1].apart_after = True
        else:
            kind = "string" if match.group("string") else match.lastgroup
            tokens.append(Token(kind, piece, at, line, apart, apart_after=False))
            apart = False
        fresh = (fresh and not piece.strip()) or "\n" in piece
        line += piece.count("\n")
        at = match.end()
    return tokens


def match_brackets(tokens):
    stack = []

    def open_at(index):
        stack.append(index)

    def close_at(index, opener):
        # Angles that turned out to be none are forgotten with the bracket around them.
        while stack and tokens[stack[-1]].text == "<" and opener != "<":
            stack.pop()
        if stack and tokens[stack[-1]].text == opener:
            tokens[index].partner, tokens[stack[-1]].partner = stack[-1], index
            stack.pop()

    for index, token in enumerate(tokens):
        if token.kind != "punct":
            continue
        if token.text in OPENING:
            open_at(index)
        elif token.text in ")]}":
            close_at(index, {v: k for k, v in OPENING.items()}[token.text])
        elif token.text == "<" and index and (tokens[index - 1].kind == "word") and (
                not token.apart_before or tokens[index - 1].text == "template"):
            open_at(index)
        elif token.text == ">" and stack and tokens[stack[-1]].text == "<" and not token.apart_before:
            close_at(index, "<")
    set_parents(tokens)


def set_parents(tokens):
    stack = [-1]
    for index, token in enumerate(tokens):
        if 0 <= token.partner < index:
            stack.pop()
        token.parent = stack[-1]
        if token.partner > index:
            stack.append(index)


NOT_FUNCTIONS = {"namespace", "struct", "class", "enum", "union", "extern", "concept", "using"}


def function_bodies(tokens):
    """The `{` after a parameter list, in a namespace or a class: code begins there."""
    start, index = 0, 0  # of the declaration at hand
    while index < len(tokens):
        token = tokens[index]
        if token.text == "{" and token.partner > index:
            head = tokens[start:index]
            if is_function(head, tokens, start) and tokens[index - 1].kind != "number":
                if starts_member(tokens, start, index):
                    index = token.partner + 1  # a_{1} in a list of initialisers
                    continue
                yield index
                index = token.partner + 1
                start = index
                continue
            if any(t.text in NOT_FUNCTIONS for t in head) and not any(t.text == "enum" for t in head):
                start = index = index + 1  # look inside
                continue
            index = token.partner + 1  # a value in braces
            continue
        if token.partner > index:
            index = token.partner + 1
            continue
        if token.text in (";", "}") or (token.text == ":" and tokens[index - 1].text in
                                        ("public", "private", "protected")):
            start = index + 1
        index += 1


def is_function(head, tokens, start):
    top = top_level(tokens, start, start + len(head))
    texts = [tokens[i].text for i in top]
    if "operator" in texts:
        return "(" in texts
    first_paren = texts.index("(") if "(" in texts else -1
    if first_paren < 0 or "=" in texts or NOT_FUNCTIONS & set(texts[:first_paren]):
        return False
    return True


def starts_member(tokens, start, brace):
    """`: a_(1), b_{2} {`: whether the brace initialises a member and is not the body yet."""
    texts = [tokens[i].text for i in top_level(tokens, start, brace)]
    if ")" in texts and ":" in texts[texts.index(")"):]:
        return tokens[brace - 1].kind == "word"
    return False


def top_level(tokens, start, end):
    """Indices from start to end that lie in no bracket opened between them; brackets count."""
    index = start
    while index < end:
        yield index
        if tokens[index].partner > index:
            index = tokens[index].partner
            if index < end:
                yield index
        index += 1
