#!/usr/bin/env python3
"""Every option of every command reaches its effect.

    options.py HEDDLE WORK [--drop [START]]

HEDDLE is the program, WORK a directory for what it makes. Tiny models are trained for a few steps, so
that their scores are nearly random and every option has something to change. The options are those
that the program's own --help lists: one without a row, or a row without its option, is a failure. Rows
are here and in the option_*.py beside it.

With --drop the table itself is on trial: each option (of those that begin with START) is left out of
every call, as if the program ignored it, and its row must notice.
"""

import json
import re
import resource
import shutil
import sys

import option_chat
import option_recipes  # noqa: F401: its rows
import option_table
import option_use  # noqa: F401: its rows
from option_models import write_data
from option_table import FAILURES, FLAGS, ROWS, WORK, ask, check, heddle, row, run


def subcommands(*command):
    text = heddle(*command, "--help")
    _, _, rest = text.partition("Commands:\n")
    return re.findall(r"^  (\S+) ", rest, re.M)


def commands():
    for name in subcommands():
        yield [name]
        yield from ([name, sub] for sub in subcommands(name))


def listed():
    for command in commands():
        text = heddle(*command, "--help")
        for option, kind in re.findall(r"^ {2,4}(--[a-z-]+)( \S+)?", text, re.M):
            name = f"{' '.join(command)} {option}"
            if not kind:
                FLAGS.add(name)
            yield name


def make_models():
    for name, recipe in write_data(WORK).items():
        (WORK / f"{name}.toml").write_text(recipe)
        heddle("train", f"{name}.toml", "--out", name)


# ---- --json and --precision, which many commands have.

TEXTS = {"generate": ("language", "--prompt", "ant"), "logits": ("language", "--prompt", "ant"),
         "eval": ("language",), "translate": ("reverse",), "tag": ("tagger",), "classify": ("mood",),
         "embed": ("mood",),
         "inspect": ("language", "--prompt", "ant bee"), "data": ("language.toml",),
         "plan": ("language.toml", "--vocabulary", 9), "check": ("language.toml",), "info": ()}


@row(*[f"{command} --json" for command in (*TEXTS, "lab")])
def json_documents():
    for command, arguments in {**TEXTS, "lab": ("average-of-two",)}.items():
        if command != "inspect":  # writes a page or a document, nothing for people
            plain = heddle(command, *arguments, text="ant bee\n")
            check(plain and not plain.startswith("{"), f"{command} for people", plain[:200])
        document = ask(command, *arguments, text="ant bee\n")
        check(isinstance(document, (dict, list)) and document, f"{command} --json", document)


SEEN = {"logits": lambda d: d["logits"], "eval": lambda d: d["loss"],
        "inspect": lambda d: d["layers"], "classify": lambda d: d, "tag": lambda d: d,
        "embed": lambda d: d["vectors"]}


# The last bits of a score tell bf16 from fp32 wherever scores can be seen.
@row("logits --precision", "eval --precision", "inspect --precision", "classify --precision",
     "tag --precision", "translate --precision", "generate --precision", "embed --precision")
def precisions():
    for command, value in SEEN.items():
        wide, narrow = (value(ask(command, *TEXTS[command], "--precision", p, text="ant bee cat\n"))
                        for p in ("fp32", "bf16"))
        if command != "tag":  # whose labels alone are told, see below
            check(wide != narrow, f"{command} --precision", wide, narrow)
    best = [heddle("translate", "reverse", "--best", 2, "--precision", p, text="ant bee\n")
            for p in ("fp32", "bf16")]
    check(best[0] != best[1], "translate --precision", best)
    best = [heddle("generate", *TEXTS["generate"], "--beam", 2, "--best", 2, "--tokens", 5,
                   "--precision", p) for p in ("fp32", "bf16")]
    check(best[0] != best[1], "generate --precision", best)
    done = run("tag", "tagger", "--precision", "f16", text="ant\n")
    check(done.returncode == 2 and b"--precision" in done.stderr, "tag --precision", done.stderr)


@row("logits --weights", "eval --weights", "inspect --weights", "classify --weights",
     "tag --weights", "translate --weights", "generate --weights", "embed --weights")
def weights():
    """In f32 they are as trained, in bf16 rounded: which is all that bf16 sees of them anyway."""
    for command, value in SEEN.items():
        read = lambda *options: value(ask(command, *TEXTS[command], *options, text="ant bee cat\n"))
        plain, wide, narrow = read(), read("--weights", "fp32"), read("--weights", "bf16")
        check(plain == wide, f"{command} --weights fp32", plain, wide)
        if command != "tag":
            check(wide != narrow, f"{command} --weights", wide, narrow)
        both = [read("--precision", "bf16", "--weights", w) for w in ("fp32", "bf16")]
        check(both[0] == both[1], f"{command} --precision bf16 --weights", both)
    best = [heddle("translate", "reverse", "--best", 2, "--weights", w, text="ant bee\n")
            for w in ("fp32", "bf16")]
    check(best[0] != best[1], "translate --weights", best)
    best = [heddle("generate", *TEXTS["generate"], "--beam", 2, "--best", 2, "--tokens", 5,
                   "--weights", w) for w in ("fp32", "bf16")]
    check(best[0] != best[1], "generate --weights", best)
    done = run("tag", "tagger", "--weights", "f16", text="ant\n")
    check(done.returncode == 2 and b"--weights" in done.stderr, "tag --weights", done.stderr)


# Here there is the CPU for certain: any other device is looked for, and that is told.
@row("logits --device", "eval --device", "inspect --device", "classify --device", "tag --device",
     "translate --device", "generate --device", "train --device", "compare --device", "plan --device",
     "embed --device")
def devices():
    given = {**TEXTS, "inspect": (*TEXTS["inspect"], "--json"),
             "train": ("language.toml", "--out", "elsewhere"),
             "compare": ("language.toml", "--vary", "model.layers=1,2", "--out", "elsewhere")}
    for command in ("logits", "eval", "inspect", "classify", "tag", "translate", "generate", "train",
                    "compare", "plan", "embed"):
        done = run(command, *given[command], "--device", "tpu", text="ant bee\n")
        check(done.returncode != 0 and b"cpu, cuda" in done.stderr, f"{command} --device", done.stderr)
        if command in ("logits", "eval", "generate", "plan", "tag"):
            done = run(command, *given[command], "--device", "cpu", text="ant bee\n")
            check(done.returncode == 0, f"{command} --device cpu", done.stderr)


@row("info --ops")
def routines():
    plain, ops = ask("info"), ask("info", "--ops")
    check("ops" not in plain and "cpu" in ops["ops"]["matmul"], "info --ops", ops)
    check([d["device"] for d in ops["devices"]][0] == "cpu", "info", ops["devices"])


@row("tokenize --decode", "tokenize --whole", "tokenize --plain", "tokenize --hide-specials",
     "tokenizer train --spec", "tokenizer train --out", "tokenizer train --specials",
     "tokenizer train --json")
def tokenizing():
    for name in ("bytes.json", "bpe.json"):
        (WORK / name).unlink(missing_ok=True)
    made = ask("tokenizer", "train", "text.txt", "--spec", "byte", "--specials", "begin,mask", "--out",
               "bytes.json")
    check("258" in json.dumps(made) and (WORK / "bytes.json").exists(), "tokenizer train", made)
    pieces = ask("tokenizer", "train", "text.txt", "--spec", "bpe:270", "--out", "bpe.json")
    check("270" in json.dumps(pieces), "tokenizer train --spec", pieces)
    lines = heddle("tokenize", "bytes.json", text="ab\nc\n")
    check(lines == "[97,98]\n[99]\n" or lines == "[97, 98]\n[99]\n", "tokenize", lines)
    whole = json.loads(heddle("tokenize", "bytes.json", "--whole", text="ab\nc\n"))
    check(whole == [97, 98, 10, 99, 10], "tokenize --whole", whole)
    special = json.loads(heddle("tokenize", "bytes.json", text="a<s>\n"))
    plain = json.loads(heddle("tokenize", "bytes.json", "--plain", text="a<s>\n"))
    check(special == [97, 256] and plain == [97, 60, 115, 62], "tokenize --plain", special, plain)
    check(heddle("tokenize", "bytes.json", "--decode", text="[97, 256]\n") == "a<s>\n", "tokenize --decode")
    check(heddle("tokenize", "bytes.json", "--decode", "--hide-specials", text="[97, 256]\n") == "a\n",
          "tokenize --hide-specials")


@row("lab --slow", "lab --out", "lab --markdown", "lab --plant")
def lab():
    name = "average-of-two"
    heddle("lab", name, "--out", "lab.html", "--markdown", "lab.md")
    check("<html" in (WORK / "lab.html").read_text(), "lab --out")
    check((WORK / "lab.md").read_text().startswith("#"), "lab --markdown")
    # What it adds takes minutes; that it is for `all` alone can be seen at once.
    done = run("lab", name, "--slow")
    check(done.returncode == 2 and b"--slow" in done.stderr, "lab --slow", done.stderr)
    check(run("lab", "head-split", "--plant", "rows-of-the-next-head").returncode == 1, "lab --plant")


@row("keys --json", "keys --markdown")
def keys():
    """The same keys for people, in JSON and on the page of the documentation."""
    few = ask("keys", "model.moe")["keys"]
    check(len(few) > 10 and all(k["key"].startswith("model.moe.") for k in few), "keys --json", few)
    heads = ask("keys", "kv_heads")["keys"]
    check([(k["key"], k["type"], k["low"]) for k in heads] == [("model.attention.kv_heads", "integer", 1)],
          "keys KEY", heads)
    heddle("keys", "--markdown", "keys.md")
    page = (WORK / "keys.md").read_text()
    every = ask("keys")["keys"]
    rows = re.findall(r"^\| `(\w+)` \|", page, re.M)
    check(rows == [k["key"].rpartition(".")[2] for k in every], "keys --markdown", len(rows), len(every))
    shown = heddle("keys", "train")
    check("schedule" in shown and "kv_heads" not in shown and "|--" not in shown, "keys TABLE", shown[:300])
    done = run("keys", "kv_head")
    check(done.returncode == 2 and b"kv_heads" in done.stderr, "an unknown key", done.stderr)


def time_of_children():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


BENCHES = ("roofline", "attention", "train", "decode")


@row(*[f"bench {b} {o}" for b in BENCHES for o in ("--json", "--quick", "--rounds", "--torch")],
     "bench roofline --dtype", "bench attention --dtype", "bench train --model", "bench decode --model",
     "bench train --torch-mode", "bench train --batch", "bench train --context", "bench train --device")
def benches():
    for name in ("roofline", "attention"):
        seconds = []
        for rounds in (1, 6):
            before = time_of_children()
            done = run("bench", name, "--quick", "--rounds", rounds, "--dtype", "f32", "--json")
            seconds.append(time_of_children() - before)
        cases = json.loads(done.stdout)["gemm" if name == "roofline" else "cases"]
        check(cases and {c["dtype"] for c in cases} == {"f32"}, f"bench {name} --dtype", cases[:1])
        # Of one round most of the time are the peaks, which are measured once.
        check(seconds[1] > 1.2 * seconds[0], f"bench {name} --rounds", seconds)
        # A machine that does other work as well measures its peak too low, but not ten times.
        check(all(0 < c["share_of_peak"] < 10 for c in cases), f"bench {name}: shares", cases[:1])
        largest = max(c.get("n", 0) for c in cases)
        check(largest <= 4096, f"bench {name} --quick", largest)
    table = heddle("bench", "attention", "--quick", "--rounds", 1, "--dtype", "f32").splitlines()
    masks = [f"back {c['look_back']}" if "look_back" in c else c["mask"] for c in cases]
    check([mask for line in table for mask in re.findall(r"back \d+|causal|none", line)] == masks,
          "bench attention: masks", table, masks)
    for name in ("train", "decode"):
        for few in (("--quick",), ("--model", "tiny")):  # either leaves the large model out
            done = run("bench", name, *few, "--rounds", 1, "--json")
            cases = json.loads(done.stdout)["cases"]
            check({c["name"] for c in cases} == {"tiny"}, f"bench {name} {few[0]}", cases)
            check("round 1" in done.stderr.decode() and "round 2" not in done.stderr.decode(),
                  f"bench {name} --rounds", done.stderr)
    flops = []
    for more in ((), ("--batch", 3), ("--context", 32)):  # of 12 sequences of 64 tokens
        done = run("bench", "train", "--model", "tiny", "--rounds", 1, "--json", *more)
        flops.append(json.loads(done.stdout)["cases"][0]["flops_per_step"])
    check(0.2 < flops[1] / flops[0] < 0.3, "bench train --batch", flops)
    check(0.4 < flops[2] / flops[0] < 0.55, "bench train --context", flops)
    done = run("bench", "train", "--model", "tiny", "--device", "cuda:15")
    check(done.returncode == 2 and b"cuda" in done.stderr, "bench train --device", done.stderr[-300:])
    for name in BENCHES:
        few = ("--model", "tiny") if name in ("train", "decode") else ("--dtype", "f32")
        more = ("--torch-mode", "fp32") if name == "train" else ()
        done = run("bench", name, "--quick", "--rounds", 1, *few, "--torch", "no-such-python", *more)
        check(done.returncode != 0 and b"no-such-python" in done.stderr, f"bench {name} --torch",
              done.stderr[-300:])


def show(function):
    try:
        function()
    except (AttributeError, KeyError, ValueError, TypeError, IndexError, OSError) as error:
        FAILURES.append(f"{function.__name__}: {error!r}")


def drop_each(start):
    for name, function in ROWS.items():
        if not name.startswith(start):
            continue
        before = len(FAILURES)
        option_table.DROPPED = name
        clean()
        show(function)
        option_table.DROPPED = None
        noticed = FAILURES[before:]
        del FAILURES[before:]
        print(name, "noticed" if noticed else "NOT NOTICED", flush=True)
        check(noticed, f"{name} could be ignored, and nobody would notice")


def clean():
    """What rows make under names of their own."""
    for name in ("a", "longer", "compared", "deep", "learned", "runs", "copy", "kept"):
        shutil.rmtree(WORK / name, ignore_errors=True)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    make_models()
    rows = set(ROWS)
    options = {name for name in listed() if not name.endswith("--help")}
    check(len(options) > 90, "options that --help lists", sorted(options))
    check(options <= rows, "options without a row", sorted(options - rows))
    check(rows <= options, "rows without an option", sorted(rows - options))
    if sys.argv[3:4] == ["--drop"]:
        drop_each("".join(sys.argv[4:]))
    else:
        for function in dict.fromkeys(ROWS.values()):
            show(function)
        option_chat.in_terminal()
    for failure in FAILURES:
        print("FAIL", failure)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
