#!/usr/bin/env python3
"""Links among the documents of the repository lead somewhere.

Prints `file:line: reason` for every link to a file that is not there, and for every `#part` that no
heading of that file has; exits with 1 when there is one. Links to other places of the network are not
followed.

    scripts/links.py [ROOT]
"""

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?: \"[^\"]*\")?\)|<(?:img|source)[^>]* src(?:set)?=\"([^\"]+)\"|"
                  r"<a[^>]* href=\"([^\"]+)\"")


def without_code(text):
    """The same lines, with what is code left empty."""
    lines, fenced = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
            line = ""
        lines.append("" if fenced else re.sub(r"`[^`]*`", lambda m: " " * len(m.group(0)), line))
    return lines


def anchors_of(text):
    """What `#part` may be: headings as the sites that show Markdown make anchors of them, in their order."""
    seen, anchors, fenced = {}, [], False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        heading = re.match(r"#{1,6} +(.*?) *$", line)
        if fenced or not heading:
            continue
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("\\", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        again = seen.get(anchor, 0)
        seen[anchor] = again + 1
        anchors.append(f"{anchor}-{again}" if again else anchor)
    return anchors


def documents(root):
    try:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard",
                                 "*.md"], capture_output=True, text=True, check=True).stdout.split("\n")
        files = [root / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):  # a copy without its history
        files = sorted(root.rglob("*.md"))
    return [file for file in files if file.exists()]


def faults_of(root, file):
    name = file.relative_to(root)
    text = file.read_text(encoding="utf-8")
    for number, line in enumerate(without_code(text), 1):
        for groups in LINK.findall(line):
            target = next(filter(None, groups))
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            path, _, part = target.partition("#")
            to = file.parent / path if path else file
            if not to.exists():
                yield f"{name}:{number}: no such file: {target}"
            elif part and to.suffix == ".md" and part not in anchors_of(to.read_text(encoding="utf-8")):
                yield f"{name}:{number}: no such heading: {target}"


def main():
    root = Path(sys.argv[1] if sys.argv[1:] else Path(__file__).resolve().parent.parent).resolve()
    files = documents(root)
    complaints = [fault for file in files for fault in faults_of(root, file)]
    if not files:
        complaints.append(f"{root}: no documents")
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
