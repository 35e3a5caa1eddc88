"""Where a small realistic fault can be planted, and how it reads as a switch at run time.

Each operator yields Sites: a range of the text, what it becomes, and the text with the switch in it,
in which `heddle_mutants::on(@)` stands for "this mutant is chosen". An instrumented range stays on as
many lines as the original, so that the compiler's complaints name lines of the original.
"""

from dataclasses import dataclass

from .cpp import Source, top_level

ON = "heddle_mutants::on(@)"
KEYWORDS = {"if", "while", "for", "switch", "return", "catch", "sizeof", "decltype", "alignof", "throw",
            "static_assert", "constexpr", "new", "delete", "co_return", "else", "do", "case", "auto",
            "const", "noexcept", "typeid", "requires", "static_cast", "reinterpret_cast", "const_cast"}
SYMMETRIC = {"min", "max", "swap"}  # f(a, b) is f(b, a)
WITHOUT_EFFECT = {"reserve", "shrink_to_fit"}  # that anybody could see
LEAVING = {"return", "throw", "continue", "break"}
ASSIGNING = {"=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>="}
# What ends an operand to its left or right, by how tightly an operator binds.
LOOSEST = {",", ";", "?", ":", "return", "throw", "co_return", "case", "else", "do"} | ASSIGNING
BINDING = [{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="}, {"<=>"},
           {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}]
OTHER = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"],
         "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
         "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"]}
NAMES = {"<": "comparison", "<=": "comparison", ">": "comparison", ">=": "comparison",
         "==": "comparison", "!=": "comparison", "&&": "logic", "||": "logic"}


@dataclass(frozen=True)
class Site:
    operator: str
    at: int  # range of the text
    end: int
    line: int
    last_line: int
    original: str
    mutated: str
    switched: str  # the range with the switch; @ is the number of the mutant


class Finder:
    def __init__(self, source: Source):
        self.source, self.tokens = source, source.tokens

    def site(self, operator, first, last, mutated, switched=None):
        original = self.source.cut(first, last)
        return self._made(operator, first, last, original, mutated,
                          switched or f"({ON} ? ({mutated}) : ({original}))")

    def _made(self, operator, first, last, original, mutated, switched):
        a, b = self.tokens[first], self.tokens[last]
        last_line = b.line + b.text.count("\n")
        # As many lines as before, whatever was cut out on one.
        switched += "\n" * (last_line - a.line - switched.count("\n"))
        return Site(operator, a.at, b.end, a.line, last_line, original, mutated, switched)

    def all(self):
        code = [i for i in range(len(self.tokens)) if self.source.in_code(i)]
        for find in (self.constants, self.operators, self.negations, self.conditions, self.statements,
                     self.sums, self.calls, self.fields):
            for index in code:
                yield from find(index)

    # 3 -> 4, 3 -> 2, 0.5 -> 0.25, true -> false
    def constants(self, i):
        token = self.tokens[i]
        if token.text in ("true", "false"):
            yield self.site("constant", i, i, "false" if token.text == "true" else "true")
        if token.kind != "number":
            return
        for other in other_numbers(token.text):
            yield self.site("constant", i, i, other)

    # a < b -> a <= b, a && b -> a || b, a + b -> a - b
    def operators(self, i):
        token = self.tokens[i]
        if not token.binary or token.text not in OTHER:
            return
        first, last = self.operand_start(i), self.operand_end(i)
        if first is None or last is None or first >= i or last <= i:
            return
        texts = [self.tokens[k] for k in (i - 1, i + 1)]
        if token.text in "+-*/%" and any(t.kind in ("string", "char") for t in texts):
            return  # a text that is put together
        before, after = self.source.cut(first, i - 1), self.source.cut(i + 1, last)
        for other in OTHER[token.text]:
            yield self.site(NAMES.get(token.text, "arithmetic"), first, last,
                            f"{before} {other} {after}")

    # !a -> a; c ? a : b -> !c ? a : b
    def negations(self, i):
        token = self.tokens[i]
        if token.text == "!" and not token.apart_after:
            last = self.chain_end(i + 1)
            if last is not None:
                yield self.site("negated", i, last, self.source.cut(i + 1, last))
        if token.text == "?" and token.binary:
            first = self.operand_start(i)
            if first is not None and first < i:
                yield self.negation(first, i - 1)

    # Both sides are bool: of an optional c, `on ? !c : c` would be an optional that holds !c.
    def negation(self, first, last):
        condition = self.source.cut(first, last)
        return self.site("negated", first, last, f"!({condition})",
                         f"({ON} ? !({condition}) : !!({condition}))")

    # if (c) -> if (!c); the early `return` of if (c) return ... is dropped
    def conditions(self, i):
        if self.tokens[i].text not in ("if", "while") or self.tokens[i + 1].text != "(":
            return
        begin, end = i + 2, self.tokens[i + 1].partner - 1
        inside = [self.tokens[k].text for k in top_level(self.tokens, begin, end + 1)]
        if ASSIGNING & set(inside) or ";" in inside or end < begin:
            return
        condition = self.source.cut(begin, end)
        yield self.negation(begin, end)
        after = end + 2
        if self.tokens[after].text == "{":
            after += 1
        if self.tokens[i].text == "if" and self.tokens[after].text in LEAVING:
            yield self.site("early exit dropped", begin, end, f"false && ({condition})",
                            f"(!{ON} && ({condition}))")

    # f(x);  a = b;  ++n;  dropped
    def statements(self, i):
        last = self.statement_end(i)
        if last is None:
            return
        close = self.tokens[last - 1]
        if close.text == ")" and self.called(close.partner) in WITHOUT_EFFECT:
            return
        original = self.source.cut(i, last)
        # In braces: an `else` behind it belongs to another `if`.
        yield self.site("statement dropped", i, last, ";", f"{{ if (!{ON}) {{ {original} }} }}")

    # a += b -> a -= b
    def sums(self, i):
        last = self.statement_end(i)
        if last is None:
            return
        for k in top_level(self.tokens, i, last):
            text = self.tokens[k].text
            if text in ("+=", "-=") and self.tokens[k + 1].kind not in ("string", "char"):
                other = "-=" if text == "+=" else "+="
                mutated = f"{self.source.cut(i, k - 1)} {other} {self.source.cut(k + 1, last)}"
                yield self.site("arithmetic", i, last, mutated,
                                f"if ({ON}) {{ {mutated} }} else {{ {self.source.cut(i, last)} }}")

    # f(a, b) -> f(b, a); f(a) -> f({}); min -> max
    def calls(self, i):
        if self.tokens[i].text != "(" or not self.is_call(i):
            return
        close = self.tokens[i].partner
        arguments = list(self.split(i + 1, close))
        first = self.chain_start(i - 1)
        if first is None:
            return
        yield from self.extrema(i, first, close)
        if self.tokens[i - 1].text.startswith("fail"):
            return  # the words of a message; that it is dropped altogether is a fault
        head = self.source.cut(first, i)
        texts = [self.source.cut(a, b) for a, b in arguments]
        pairs = 0 if self.called(i) in SYMMETRIC else len(arguments) - 1
        for k in range(pairs):
            if texts[k] == texts[k + 1] or texts[k].startswith("{") or texts[k][0] == '"':
                continue
            swapped = texts[:k] + [texts[k + 1], texts[k]] + texts[k + 2:]
            yield self.site("arguments swapped", first, close, f"{head}{', '.join(swapped)})")
        for begin, end in arguments:
            yield from self.defaulted("argument not passed", begin, end)

    def name_before(self, i):
        """The index of the name that the bracket at i calls, template arguments or not."""
        return i - 1 if self.tokens[i - 1].kind == "word" else self.tokens[i - 1].partner - 1

    def called(self, i):
        return self.tokens[self.name_before(i)].text

    def extrema(self, i, first, close):
        name = self.name_before(i)
        other = {"min": "max", "max": "min"}.get(self.tokens[name].text)
        if other:
            mutated = self.source.cut(first, name - 1) + other + self.source.cut(name + 1, close)
            yield self.site("min and max swapped", first, close, mutated)

    # {.width = w} -> {.width = {}}
    def fields(self, i):
        tokens = self.tokens
        if not (tokens[i].text == "." and tokens[i - 1].text in ("{", ",") and
                tokens[i + 1].kind == "word" and tokens[i + 2].text == "="):
            return
        for begin, end in self.split(i + 3, tokens[tokens[i].parent].partner):
            yield from self.defaulted("field not passed", begin, end)
            return

    def defaulted(self, operator, begin, end):
        """A value replaced by its type's own default."""
        text = self.source.cut(begin, end)
        kind = self.tokens[begin].kind
        if begin == end and kind in ("number", "string", "char") or text in ("true", "false", "nullptr"):
            return
        if text[0] in "{[&*" or any(t.kind == "string" for t in self.tokens[begin:end + 1]):
            return  # a list, a lambda, something to write to, a message
        yield self.site(operator, begin, end, "{}", f"heddle_mutants::value(@, {text})")

    def is_call(self, i):
        before = self.tokens[i - 1]
        if self.tokens[i].partner <= i + 1 or self.tokens[i].apart_before:
            return False
        if before.text == ">" and before.partner >= 0:
            before = self.tokens[before.partner - 1]
        return before.kind == "word" and before.text not in KEYWORDS

    def chain_start(self, i):
        """The first token of a.b<c>(d)::e that ends at token i, or None in a declaration."""
        tokens = self.tokens
        while True:
            if tokens[i].text in (")", "]", ">") and 0 <= tokens[i].partner < i:
                i = tokens[i].partner - 1
                continue
            if tokens[i].text == ")" or tokens[i].kind not in ("word", "string"):
                break
            if tokens[i - 1].text in ("::", ".", "->"):
                i -= 2
                if tokens[i + 1].text == "::" and tokens[i].kind != "word" and tokens[i].text != ">":
                    return None
                continue
            break
        if tokens[i].kind != "word" or tokens[i].text in KEYWORDS - {"static_cast", "const_cast"}:
            return None
        before = tokens[i - 1]
        # Two words side by side declare something: Tensor x(a, b).
        if before.kind == "word" and before.text not in ("return", "else", "do", "throw"):
            return None
        if before.text in (">", "&", "*") and not before.binary:
            return None
        return i

    def chain_end(self, i):
        """The last token of an operand that begins at token i: words, brackets and what joins them."""
        tokens = self.tokens
        if tokens[i].text == "(":
            i = tokens[i].partner
        elif tokens[i].kind != "word":
            return None
        while True:
            after = tokens[i + 1]
            if after.text in ("::", ".", "->"):
                i += 2
            elif after.text in ("(", "[", "<", "{") and after.partner > 0 and not after.apart_before:
                i = after.partner
            else:
                return i

    def operand_start(self, i):
        """Where the left operand of the binary operator at i begins."""
        stops = self.looser(self.tokens[i].text)
        k = i - 1
        while k > self.tokens[i].parent:
            token = self.tokens[k]
            if 0 <= token.partner < k:
                if token.text == "}" and token.apart_after and self.tokens[k + 1].text not in OTHER:
                    return k + 1  # the end of a block
                k = token.partner - 1
                continue
            if token.text in stops and (token.kind == "word" or token.binary or token.text in ",;:"):
                break
            k -= 1
        return k + 1 if k + 1 < i and self.no_declaration(k + 1, i) else None

    def operand_end(self, i):
        stops = self.looser(self.tokens[i].text) | set(self.same(self.tokens[i].text))
        k = i + 1
        while k < len(self.tokens):
            token = self.tokens[k]
            if token.partner > k:
                k = token.partner + 1
                continue
            if 0 <= token.partner < k:
                return k - 1
            if token.text in stops and (token.binary or token.text in ",;:"):
                return k - 1
            k += 1
        return None

    def no_declaration(self, first, last):
        """Whether no two words stand side by side, as in a declaration or after an `if (...)`."""
        tokens = self.tokens
        if tokens[first].text in KEYWORDS - {"static_cast", "const_cast", "sizeof"}:
            return False
        for k in top_level(tokens, first, last - 1):
            if tokens[k].kind == "word" and tokens[k + 1].kind == "word":
                return False
            if tokens[k].text == ")" and tokens[k + 1].kind == "word":
                return False
        return True

    @staticmethod
    def same(text):
        return next((level for level in BINDING if text in level), set())

    @classmethod
    def looser(cls, text):
        found = set(LOOSEST)
        for level in BINDING:
            if text in level:
                return found
            found |= level
        return LOOSEST  # of `?`

    def split(self, begin, close):
        """The ranges between commas of a list that ends before `close`."""
        start = begin
        for k in top_level(self.tokens, begin, close):
            if self.tokens[k].text == ",":
                if k > start:
                    yield start, k - 1
                start = k + 1
        if start < close:
            yield start, close - 1

    def statement_end(self, i):
        """The `;` of a statement that begins at i and is a call, an assignment or a count."""
        tokens = self.tokens
        if not self.begins_statement(i):
            return None
        counts = tokens[i].text in ("++", "--")
        k = self.chain_end(i + 1 if counts or tokens[i].text == "*" else i)
        if k is None or (tokens[i].kind == "word" and tokens[i].text in KEYWORDS | LEAVING):
            return None
        after = tokens[k + 1].text
        if after in ("++", "--") or (after == ";" and (counts or tokens[k].text == ")")):
            end = k + 1 if after == ";" else k + 2
        elif after in ASSIGNING:
            end = next((m for m in top_level(tokens, k + 1, len(tokens))
                        if tokens[m].text in (";", ")", "}", ",")), None)
            # A value in brackets ends with one of its own.
            while end is not None and tokens[end].text != ";" and 0 <= tokens[end].partner > k:
                end = next((m for m in range(end + 1, len(tokens)) if tokens[m].text == ";" and
                            tokens[m].parent == tokens[i].parent), None)
        else:
            return None
        return end if end is not None and tokens[end].text == ";" else None

    def begins_statement(self, i):
        tokens, before = self.tokens, self.tokens[i - 1]
        parent = tokens[tokens[i].parent]
        if parent.text != "{":
            return False
        if before.text in (";", "{", "}", "else", "do"):
            return before.text != "{" or tokens[before.partner - 1].text in (";", "}")
        return before.text == ")" and tokens[before.partner - 1].text in ("if", "for", "while")


def other_numbers(text: str):
    """What a slip would make of a number: one more, one less; half of a fraction."""
    body = text.replace("'", "")
    if body.lower().startswith(("0x", "0b")):
        return []
    digits = body.rstrip("uUlLzZfF") if not body.lower().startswith("0x") else body
    suffix = body[len(digits):]
    if digits.isdigit() and suffix.lower() not in ("f",):
        value = int(digits)
        return [f"{value + 1}{suffix}"] + ([f"{value - 1}{suffix}"] if value else [])
    try:
        value = float(digits)
    except ValueError:
        return []
    halved = repr(value / 2 if value else 0.5)
    return [halved + suffix]


def sites(text: str):
    return list(Finder(Source(text)).all())
