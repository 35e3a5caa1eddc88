#!/usr/bin/env python3
"""What the READMEs and the tutorials tell people to type works.

    documented.py HEDDLE WORK SOURCE BUILD [DOCUMENT...]

HEDDLE is the program, WORK a directory for what it makes, SOURCE the repository, BUILD the build tree
that is installed for the C++ in them. Each document has a folder of its own, in which its blocks are
taken in their order:

    ```sh       is run by bash. Numbers of steps are made small, unless the document is in WHOLE.
    ```text     behind it is what it writes: each of its lines must be among those that were written,
                whatever the numbers in them are (```text exact: with these numbers).
    ```toml, ```cpp, ```cmake and the like, behind a paragraph that ends with "`NAME`:", is that file.
    ```cpp      elsewhere is compiled against what is installed: as the body of a function.
    other blocks are to read.

`make TARGET` is looked up and not made. Beside the blocks, every `heddle COMMAND --option` in a sentence of any
document is looked up in the help: there must be such a command, with such an option. Exits with 1 when something is
not as it should be.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HEDDLE, WORK, SOURCE, BUILD = (Path(p).resolve() for p in sys.argv[1:5])
DOCUMENTS = ["README.md", "README.zh-CN.md", "docs/tutorial-learner.md", "docs/zh/tutorial-learner.md",
             "docs/tutorial-experimenter.md", "docs/zh/tutorial-experimenter.md", "docs/tutorial-engineer.md",
             "docs/zh/tutorial-engineer.md", "docs/tutorial-lab.md", "docs/zh/tutorial-lab.md"]
# What they claim is seen only in models that have learned it; that takes seconds.
WHOLE = {"docs/tutorial-lab.md", "docs/zh/tutorial-lab.md"}
# The same commands as in another document, which runs them: block for block, scripts/chapters.py says.
SAME_AS_ENGLISH = {"README.zh-CN.md": "README.md",
                   **{f"docs/zh/tutorial-{name}.md": f"docs/tutorial-{name}.md"
                      for name in ("learner", "experimenter", "engineer", "lab")}}
# What is there before a document begins: the model of `make run`, and a small one in place of the one
# that `make chat` fetches.
PREPARED = {"README.md": """
heddle data get kjv
heddle train llama-style --set train.steps=4 --set train.warmup=1 --set train.batch=2 --out runs/first
mkdir -p build/chat
heddle export runs/first --to gguf --out build/chat/SmolLM2-135M-Instruct.Q4_1.gguf
"""}
FAILURES = []


class Block:
    def __init__(self, language, lines, number, before):
        self.language, self.text, self.number = language, "\n".join(lines) + "\n", number
        # "`main.cpp`:" at the end of the paragraph before.
        named = re.search(r"`([\w./-]+)`\s*[:：]$", before)
        self.file = named[1] if named and language not in ("sh", "text", "text exact", "") else None


def blocks_of(text):
    blocks, lines, before, language, start = [], None, "", "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if lines is None:
                lines, language, start = [], line[3:].strip(), number
            else:
                blocks.append(Block(language, lines, start, before))
                lines, before = None, ""
        elif lines is not None:
            lines.append(line)
        elif line.strip():
            before = line.strip()
    return blocks


def shortened(script):
    """Few steps, one seed, one claim of the lab: enough to see that a command does what it should."""
    script = re.sub(r"(train\.steps|budget steps|\bsteps)=\d+", r"\1=4", script)
    script = re.sub(r"train\.warmup=\d+", "train.warmup=1", script)
    script = re.sub(r"--seeds \d+", "--seeds 1", script)
    script = re.sub(r"lab all", "lab average-of-two", script)
    lines = []
    for line in script.splitlines():
        words = line.split("#")[0].split()
        if words[:2] in (["heddle", "train"], ["heddle", "compare"]) and not {"--resume", "\\"} & set(words):
            more = [option for option, key in (("--set train.steps=4", "steps="), ("--set train.warmup=1", "warmup="))
                    if key not in line]
            line = " ".join([line.split("#")[0].rstrip(), *more])
        lines.append(line)
    return "\n".join(lines) + "\n"


def without_make(script):
    """`make TARGET` becomes a question to the Makefile whether it knows how."""
    return re.sub(r"^(\s*)make ((?:[a-z-]+|[A-Z]+=\S+| )+)", rf"\1make -s -n -C '{SOURCE}' \2 >/dev/null ",
                  script, flags=re.M)


def environment():
    kept = {k: v for k, v in os.environ.items() if k not in ("HEDDLE_LANG", "LC_ALL", "LANG")}
    return {**kept, "PATH": f"{WORK}/bin:{kept['PATH']}", "HEDDLE_DATA": str(WORK / "data"), "LC_ALL": "C.UTF-8",
            "CMAKE_PREFIX_PATH": str(WORK / "prefix"), "COLUMNS": "100", "SOURCE": str(SOURCE)}


def run(name, block, folder, whole):
    script = without_make(block.text if whole else shortened(block.text))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        FAILURES.append(f"{name}:{block.number}: exit {done.returncode}\n{script}{output[-1500:]}")
    return output


def without_numbers(line):
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?|[─-╿▀-▟]+", "#", line)).strip()


def compare(name, block, output):
    plain = str.strip if block.language == "text exact" else without_numbers
    written = {plain(line) for line in output.splitlines()}
    for line in block.text.splitlines():
        if line.strip() and "…" not in line and plain(line) not in written:
            FAILURES.append(f"{name}:{block.number}: not what was written: {line}\n{output[-1500:]}")


def compile_snippets(name, snippets, folder):
    includes, bodies = ["#include <iostream>"], []
    for block in snippets:
        lines = block.text.splitlines()
        includes += [line for line in lines if line.startswith("#include")]
        body = "\n".join(line for line in lines if not line.startswith("#include"))
        bodies.append(f"void snippet_of_line_{block.number}() {{\n{body}\n}}")
    file = folder / "snippets.cpp"
    file.write_text("\n".join(includes + bodies) + "\n")
    done = subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-Wno-unused",
                           f"-I{WORK}/prefix/include", str(file)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        FAILURES.append(f"{name}: its C++ does not compile\n{done.stderr[:1500]}")


def check_document(name):
    folder = WORK / name.replace("/", "_").removesuffix(".md")
    folder.mkdir(parents=True)
    blocks = blocks_of((SOURCE / name).read_text(encoding="utf-8"))
    if not any(block.language == "sh" for block in blocks):
        FAILURES.append(f"{name}: nothing in it is run")
    if name in PREPARED:
        run(name, Block("sh", [PREPARED[name]], 0, ""), folder, True)
    whole, output, snippets = name in WHOLE, None, []
    for block in blocks:
        if block.file:
            file = folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.language == "sh":
            output = run(name, block, folder, whole)
        elif block.language.startswith("text"):
            compare(name, block, output or "")
        elif block.language == "cpp":
            snippets.append(block)
    if snippets:
        compile_snippets(name, snippets, folder)


def same_commands(name, original):
    """A translation has the blocks of its original; what is said beside commands may be another."""
    def bare(document):
        blocks = blocks_of((SOURCE / document).read_text(encoding="utf-8"))
        return [re.sub(r" *//.*" if block.language == "cpp" else r" *#.*", "", block.text) for block in blocks
                if block.language in ("sh", "cpp", "cmake", "toml")]
    ours, theirs = bare(name), bare(original)
    if ours != theirs:
        different = next((o for o, t in zip(ours + [""], theirs + [""]) if o != t), "")
        FAILURES.append(f"{name}: other commands than in {original}: {different}")


def mentions(text):
    """What a document calls a command of Heddle where nothing runs it: in sentences, tables and lists of commands."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fence = None if fence is not None else line[3:].strip()
        elif fence == "" and line.startswith("heddle "):
            yield number, re.split(" {2,}", line)[0]
        elif fence is None:
            yield from ((number, code) for code in re.findall(r"`(heddle [^`]+)`", line))


def help_of(command, known):
    if command not in known:
        done = subprocess.run([HEDDLE, *command, "--help"], env=environment(), capture_output=True, text=True, timeout=60)
        known[command] = done.stdout if done.returncode == 0 else None
    return known[command]


def check_mentions(names):
    known, count = {}, 0
    everywhere = help_of((), known)
    for name in names:
        for number, code in mentions((SOURCE / name).read_text(encoding="utf-8")):
            # `heddle tag | classify MODEL` are two commands.
            together = re.match(r"heddle ((?:[a-z]+ \| )*[a-z]+)(?![\w./-])", code)
            commands = [(command,) for command in together[1].split(" | ")] if together else []
            # `heddle bench train` is a command of a command.
            if second := re.match(r"heddle (bench|data|tokenizer) ([a-z]+)\b", code):
                commands.append(second.groups())
            texts = [help_of(command, known) for command in commands]
            if None in texts:
                FAILURES.append(f"{name}:{number}: no such command: {code}")
                continue
            count += len(commands)
            FAILURES.extend(f"{name}:{number}: no command has {option}: {code}"
                            for option in re.findall(r"(?<=[\s\[])--[a-z][a-z0-9-]*", code)
                            if not re.search(re.escape(option) + r"(?![\w-])", "".join([everywhere, *texts])))
    if count < 100:
        FAILURES.append(f"only {count} mentions of commands were found in {len(names)} documents")


def prepare():
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "bin").mkdir(parents=True)
    (WORK / "bin/heddle").symlink_to(HEDDLE)
    done = subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(WORK / "prefix")],
                          capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        FAILURES.append(f"installing {BUILD}: {done.stderr[-1000:]}")


def main():
    names = sys.argv[5:] or DOCUMENTS
    prepare()
    if not sys.argv[5:]:
        check_mentions(["README.md", "README.zh-CN.md", *(str(file.relative_to(SOURCE)) for folder in ("docs", "docs/zh")
                                                          for file in sorted((SOURCE / folder).glob("*.md")))])
    for name in names:
        before, start = len(FAILURES), time.monotonic()
        original = SAME_AS_ENGLISH.get(name)
        same_commands(name, original) if original else check_document(name)
        print(f"{name}: {'fine' if len(FAILURES) == before else 'WRONG'}, {time.monotonic() - start:.1f} s",
              flush=True)
    for failure in FAILURES:
        print("FAIL", failure)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
