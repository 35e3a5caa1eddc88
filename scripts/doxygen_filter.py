#!/usr/bin/env python3
"""Headers as Doxygen wants them, on stdout: plain comments become its own.

The headers speak in plain `//` comments, which read best in an editor. What stands above a declaration
becomes `///`, what stands behind one `///<`, and the head of a file its description. Signs that are
Doxygen's commands are escaped, except in `code`: a comment means what it says.
"""

import re
import sys

SPECIAL = re.compile(r"([\\@<>#&])")


def literal(text: str) -> str:
    """The text of a comment, with nothing in it that is a command."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else SPECIAL.sub(r"\\\1", p) for p in pieces)


def split(line: str):
    """(code, comment or None), where a // inside of a literal begins no comment."""
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|//', line):
        if match.group(0) == "//":
            return line[:match.start()], line[match.end():]
    return line, None


def filtered(lines):
    at_head, behind = True, None  # behind: the column of a comment that stands behind code
    first = True
    for line in lines:
        code, comment = split(line)
        if comment is None or comment.startswith("/"):
            at_head, behind = False, None
            yield line
        elif code.strip():
            ends_scope = re.match(r"\s*[}#]", code) is not None
            behind, at_head = (None if ends_scope else len(code)), False
            yield code if ends_scope else f"{code}///<{literal(comment)}"
        elif behind == len(code):
            yield f"{code}///<{literal(comment)}"
        else:
            behind = None
            if at_head and first:
                yield "/// @file"
            yield f"{code}///{literal(comment)}"
        first = False


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in filtered(file.read().splitlines()):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
