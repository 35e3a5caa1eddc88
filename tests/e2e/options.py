#!/usr/bin/env python3
"""Every option of every command reaches its effect.

    options.py HEDDLE WORK [--drop [START]]

HEDDLE is the program, WORK a directory for what it makes. Tiny models are trained for a few steps, so
that their scores are nearly random and every option has something to change. The options are those
that the program's own --help lists: one without a row here, or a row without its option, is a failure.

With --drop the table itself is on trial: each option (of those that begin with START) is left out of
every call, as if the program ignored it, and its row must notice.
"""

import json
import math
import re
import resource
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from option_models import LANGUAGE, derived_recipe, write_data
from option_pages import show_comparisons, show_pages_of_runs

HEDDLE, WORK = (Path(p).resolve() for p in sys.argv[1:3])
FAILURES = []
DROPPED = None  # "command --option" that calls leave out
FLAGS = set()  # options without a value, with their commands
ROWS = {}  # "command --option": the function that shows what it does


def check(ok, what, *seen):
    if not ok:
        FAILURES.append(f"{what}: {' '.join(map(repr, seen))}"[:2000])


def without_dropped(arguments):
    command, _, option = (DROPPED or "").rpartition(" ")
    words = [str(a) for a in arguments]
    if not option or words[:len(command.split())] != command.split():
        return words
    kept, value = [], False
    for word in words:
        if word != option and not value:
            kept.append(word)
        value = word == option and DROPPED not in FLAGS
    return kept


def run(*arguments, text=""):
    arguments = without_dropped(arguments)
    return subprocess.run([str(HEDDLE), *map(str, arguments)], input=text.encode(), cwd=WORK,
                          capture_output=True, timeout=240)


def heddle(*arguments, text=""):
    done = run(*arguments, text=text)
    if done.returncode != 0:
        FAILURES.append(f"heddle {' '.join(map(str, arguments))}: exit {done.returncode}\n"
                        + done.stderr.decode(errors="replace"))
    return done.stdout.decode()


def ask(*arguments, text=""):
    return json.loads(heddle(*arguments, "--json", text=text) or "null")


def row(*names):
    """The function shows what these options do."""
    def add(function):
        for name in names:
            assert name not in ROWS, name
            ROWS[name] = function
        return function
    return add


def differs(command, option, value, text=""):
    """What is written changes with the option, and is the same when it is given again."""
    plain, given = heddle(*command, text=text), heddle(*command, option, value, text=text)
    check(given != plain, f"{command[0]} {option} {value} changes nothing", plain)
    check(heddle(*command, option, value, text=text) == given, f"{command[0]} {option}: not the same again")
    return plain, given


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


# The last bits of a score tell bf16 from fp32 wherever scores can be seen.
@row("logits --precision", "eval --precision", "inspect --precision", "classify --precision",
     "tag --precision", "translate --precision", "generate --precision")
def precisions():
    seen = {"logits": lambda d: d["logits"], "eval": lambda d: d["loss"],
            "inspect": lambda d: d["layers"], "classify": lambda d: d, "tag": lambda d: d}
    for command, value in seen.items():
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


# ---- Recipes: train, data, plan, check, compare.

@row("train --out", "train --set", "train --json", "train --resume")
def train_options():
    d = ask("train", "language.toml", "--set", "train.steps=3", "--set", "train.seed=5", "--out", "a/b")
    check((WORK / "a/b/model.safetensors").exists(), "train --out makes the run")
    log = [json.loads(line) for line in (WORK / "a/b/log.jsonl").read_text().splitlines()]
    check([l["step"] for l in log if "loss" in l] == [1, 2, 3], "train --set train.steps", log)
    check(d["step"] == 3 if "step" in d else "3" in json.dumps(d), "train --json", d)
    check("seed = 5" in (WORK / "a/b/recipe.toml").read_text(), "train --set train.seed")
    more = ("train", "language.toml", "--set", "train.seed=5", "--set", "train.schedule=constant",
            "--set", "train.warmup=0", "--out", "longer")
    heddle(*more, "--set", "train.steps=3")
    done = run(*more, "--set", "train.steps=5")
    check(done.returncode == 2 and b"--resume" in done.stderr, "without --resume", done.stderr)
    heddle(*more, "--set", "train.steps=5", "--resume")
    log = [json.loads(line) for line in (WORK / "longer/log.jsonl").read_text().splitlines()]
    check([l["step"] for l in log if "loss" in l] == [1, 2, 3, 4, 5], "train --resume", log)


@row("data --set", "data --examples", "plan --set", "plan --memory", "plan --vocabulary",
     "plan --context", "check --set")
def recipe_options():
    check(ask("data", "language.toml", "--set", "data.context=7")["sizes"]["context"] == 7, "data --set")
    for count in (1, 3):
        d = ask("data", "language.toml", "--examples", count)
        check(len(d["examples"]) == count, "data --examples", len(d["examples"]))
    plan = ("plan", "language.toml")
    small = ask(*plan, "--vocabulary", 50)
    large = ask(*plan, "--vocabulary", 90)  # two tables of 16 numbers a token
    check(large["parameters"] - small["parameters"] == 40 * 2 * 16, "plan --vocabulary", small, large)
    deep = ask(*plan, "--vocabulary", 50, "--set", "model.layers=2")
    # Two norms, four products and their biases, and a part with 64 in the middle.
    layer = 2 * 32 + 4 * (16 * 16 + 16) + 2 * 16 * 64 + 64 + 16
    check(deep["parameters"] - small["parameters"] == layer, "plan --set", small, deep)
    cache = ask(*plan, "--vocabulary", 50, "--context", 1000)
    check(cache["kv_bytes"] == 1000 * 2 * 16 * 4, "plan --context", cache["kv_bytes"])  # keys, values
    for more in (1 << 20, 2 << 20):  # than the program itself takes
        base = ask(*plan, "--vocabulary", 50)
        besides = base["process_peak_bytes"]["total"] - base["peak_bytes"]["total"]
        batch = ask(*plan, "--vocabulary", 50, "--memory", besides + more)["largest_batch"]
        fits, too_much = (ask(*plan, "--vocabulary", 50, "--set", f"train.batch={b}")["peak_bytes"]["total"]
                          for b in (batch, batch + 1))
        # What the program takes besides is measured, and moves by some pages from run to run.
        check(fits <= 1.5 * more and too_much > more / 2, "plan --memory", more, batch, fits, too_much)
    d = ask("check", "language.toml", "--set", "model.attention.kv_heads=1")
    check(d["pass"] and d["model"]["kv_heads"] == 1, "check --set", d["model"])


@row("train --recipe", "data --recipe", "plan --recipe", "check --recipe")
def shipped_recipes():
    few = [f"--set={x}" for x in ("data.text=text.txt", "train.steps=2", "train.warmup=0",
                                  "model.layers=1", "train.batch=2", "data.context=16")]
    heddle("train", "--recipe", "char-gpt", *few)
    check("tied = true" in (WORK / "runs/char-gpt/recipe.toml").read_text(), "train --recipe")
    check(ask("data", "--recipe", "char-gpt", *few)["sizes"]["context"] == 16, "data --recipe")
    named, given = (ask("plan", *which, "--vocabulary", 50) for which in (("--recipe", "char-gpt"), ("char-gpt",)))
    check(named["parameters"] == given["parameters"] > 500_000, "plan --recipe", named)
    named, given = (ask("check", *which) for which in (("--recipe", "rnn-lm"), ("rnn-lm",)))
    check(named["model"] == given["model"] and named["model"]["kind"] == "rnn", "check --recipe", named["model"])
    check(b"both" in run("plan", "char-gpt", "--recipe", "char-gpt").stderr, "a recipe twice")


@row("data get --from", "data get --to", "data list --json")
def data_sets():
    (WORK / "copy").mkdir(exist_ok=True)
    (WORK / "copy/input.txt").write_text("First Citizen: before we proceed")
    done = run("data", "get", "tinyshakespeare", "--from", "copy", "--to", "kept")
    check((WORK / "kept/tinyshakespeare.txt").exists(), "data get --from --to", done.stderr)
    names = [d["name"] for d in ask("data", "list")["data"]]
    check("kjv" in names and "multi30k" in names, "data list --json", names)


@row("init --data", "init --path", "init --size", "init --force", "init --base", "version --json")
def first_recipes():
    heddle("init", "first.toml", "--data", "tags", "--path", "tags.tsv", "--size", "tiny")
    for part in ('task = "tag"', '"tags.tsv"', "layers = 2"):
        check(part in (WORK / "first.toml").read_text(), "init", part)
    done = run("init", "first.toml")
    check(done.returncode == 2 and b"--force" in done.stderr, "init over a file", done.stderr)
    heddle("init", "first.toml", "--force")
    check('kind = "decoder"' in (WORK / "first.toml").read_text(), "init --force")
    derived_recipe(WORK, heddle, ask, check)
    check(re.fullmatch(r"\d+\.\d+\.\d+", ask("version")["version"]), "version --json")


@row("report --out", "watch --serve", "watch --bind")
def pages_of_runs():
    show_pages_of_runs(sys.modules[__name__])


@row("compare --recipe", "compare --vary", "compare --also", "compare --set", "compare --seeds",
     "compare --budget", "compare --out", "compare --json")
def compare_options():
    show_comparisons(sys.modules[__name__])


# ---- Generation. Scores of the next token are asked for by another command.

def next_scores(prompt):
    return ask("logits", "language", "--prompt", prompt)["logits"][-1]


@row("generate --prompt", "generate --tokens", "generate --temperature", "generate --top-k",
     "generate --top-p", "generate --min-p", "generate --repetition-penalty", "generate --seed",
     "generate --samples")
def drawing():
    def one_token(*options, prompt="ant b", samples=300):
        d = ask("generate", "language", "--prompt", prompt, "--tokens", 1, "--samples", samples,
                *options, *(() if "--seed" in options else ("--seed", 0)))
        return [s["tokens"][0] for s in d.get("samples", [d])]
    scores = next_scores("ant b")
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    exps = [math.exp(s - max(scores)) for s in scores]
    shares = [e / sum(exps) for e in exps]
    plain = one_token()
    check(len(plain) == 300, "generate --samples", len(plain))
    for token in order[:2]:  # about as often as its probability says
        share = plain.count(token) / 300
        check(abs(share - shares[token]) < 5 * math.sqrt(shares[token] / 300), "shares", share, shares)
    check(set(one_token("--temperature", 0, samples=3)) == {order[0]}, "generate --temperature 0")
    cold = [math.exp(4 * (s - max(scores))) for s in scores]
    share = one_token("--temperature", 0.25).count(order[0]) / 300
    check(abs(share - 1 / sum(cold)) < 0.15, "generate --temperature 0.25", share, 1 / sum(cold))
    check(set(one_token("--top-k", 2)) == set(order[:2]), "generate --top-k")
    p = shares[order[0]] + shares[order[1]] / 2  # the second is needed to reach it
    check(set(one_token("--top-p", p)) == set(order[:2]), "generate --top-p")
    least = (shares[order[2]] + shares[order[3]]) / 2 / shares[order[0]]
    check(set(one_token("--min-p", least)) == set(order[:3]), "generate --min-p")
    check(one_token("--seed", 1) != one_token("--seed", 2), "generate --seed")
    other = next_scores("bee ")
    check(one_token("--temperature", 0, prompt="bee ", samples=1)[0] == other.index(max(other)),
          "generate --prompt")
    d = ask("generate", "language", "--prompt", "ant", "--tokens", 9)
    check(len(d["tokens"]) == 9 and d["prompt_tokens"] == 3, "generate --tokens", d)
    # A score that is positive is divided by it, one that is negative is multiplied.
    seen = json.loads(heddle("tokenize", "language", text="ant\n"))
    greedy = ask("generate", "language", "--prompt", "ant", "--tokens", 6, "--temperature", 0,
                 "--repetition-penalty", 3)["tokens"]
    for token in greedy:
        scores = ask("logits", "language", "--tokens", ",".join(map(str, seen)))["logits"][-1]
        scores = [s if i not in seen else s / 3 if s > 0 else s * 3 for i, s in enumerate(scores)]
        check(token == scores.index(max(scores)), "generate --repetition-penalty", greedy, token)
        seen.append(token)


@row("generate --stop", "generate --slide", "generate --no-cache", "generate --beam",
     "generate --length-penalty", "generate --norm", "generate --best")
def texts():
    plain = ("generate", "language", "--prompt", "ant", "--temperature", 0, "--tokens", 12)
    text = heddle(*plain)
    stop = text[6:8]
    check(heddle(*plain, "--stop", stop).rstrip("\n") == text[:text.index(stop, 3)].rstrip("\n"),
          "generate --stop", text, stop)
    check(heddle(*plain, "--no-cache") == text, "generate --no-cache gives the same text")
    # What the cache saves: 600 steps of one token, or of 300 in the mean.
    long = ("generate", "language", "--prompt", "ant", "--temperature", 0, "--tokens", 600)
    with_cache, without = (min(ask(*long, *o)["seconds"] for _ in range(2)) for o in ((), ("--no-cache",)))
    check(without > 2 * with_cache, "generate --no-cache", with_cache, without)
    # Learned positions end with the context.
    heddle("train", "language.toml", "--set", "model.attention.position=learned", "--out", "learned")
    far = ("generate", "learned", "--prompt", "ant", "--temperature", 0, "--tokens", 60)
    check(run(*far).returncode == 2 and len(ask(*far, "--slide")["tokens"]) == 60, "generate --slide")
    beam = ("generate", "language", "--prompt", "ant", "--tokens", 3, "--beam")
    best = [b["score"] for b in ask(*beam, 4, "--best", 3)["best"]]
    check(len(best) == 3 and best == sorted(best, reverse=True), "generate --best", best)
    check(len(heddle(*beam, 4, "--best", 3).splitlines()) == 3, "generate --best for people")
    # Three tokens: the sum of their log-probabilities, divided by 3^p or by (8 / 6)^p.
    for given, by in [(("--length-penalty", 0), 1), (("--length-penalty", 1), 3),
                      (("--length-penalty", 2), 9),
                      (("--length-penalty", 2, "--norm", "gnmt"), (8 / 6) ** 2)]:
        d = ask(*beam, 4, *given)
        check(abs(d["score"] - d["log_probability"] / by) < 1e-6, "--length-penalty, --norm", given, d)
    # Of all texts of three tokens a beam as wide as all finds the most probable one.
    one, all_texts = (ask(*beam, b)["log_probability"] for b in (1, 400))
    check(all_texts > one - 1e-6, "generate --beam", one, all_texts)
    check(abs(one - greedy_log_probability("ant", 3)) < 1e-4, "generate --beam 1 is greedy", one)


def greedy_log_probability(prompt, tokens):
    """By the scores that another command tells."""
    ids, total = json.loads(heddle("tokenize", "language", text=prompt + "\n")), 0
    for _ in range(tokens):
        scores = ask("logits", "language", "--tokens", ",".join(map(str, ids)))["logits"][-1]
        ids.append(scores.index(max(scores)))
        total -= math.log(sum(math.exp(s - max(scores)) for s in scores))
    return total


@row("translate --beam", "translate --length-penalty", "translate --norm", "translate --best",
     "translate --batch", "translate --longest-ratio", "translate --longest-extra")
def translating():
    lines = "ant bee cat\ndog\neel ant\n"
    many = heddle("translate", "reverse", "--best", 3, "--beam", 4, text="ant bee\n").split("\n")
    check(len([line for line in many if "\t" in line]) == 3, "translate --best", many)
    best = ("translate", "reverse", "--best", 2)
    differs(best, "--length-penalty", 0, lines)
    plain, _ = differs((*best, "--length-penalty", 2), "--norm", "gnmt", lines)
    check(heddle(*best, "--length-penalty", 2, "--batch", 1, text=lines) == plain, "translate --batch")
    done = run("translate", "reverse", "--batch", 0, text=lines)
    check(done.returncode == 2 and b"batch" in done.stderr, "translate --batch 0", done.stderr)
    narrow, wide = (float(heddle("translate", "reverse", "--best", 2, "--length-penalty", 0, "--beam", b,
                                 text="ant bee\n").split("\t")[0]) for b in (2, 30))
    check(wide >= narrow, "translate --beam", narrow, wide)
    check(len(heddle(*best, "--beam", 2, text="ant\n")) > 0
          and run(*best, "--beam", 1, text="ant\n").returncode == 2, "translate --best is of the beam")
    # Nothing was learned, so it may write as much as it is allowed to: 0 · tokens + 1.
    short = ("translate", "reverse", "--beam", 1, "--longest-ratio", 0, "--longest-extra")
    for extra in (1, 3):
        for line in heddle(*short, extra, text=lines).splitlines():
            check(len(line.split()) <= extra, "translate --longest-extra", extra, line)
    longest = max(len(x.split()) for x in heddle("translate", "reverse", "--beam", 1,
                                                 "--longest-ratio", 3, "--longest-extra", 1,
                                                 text=lines).splitlines())
    check(longest > 1, "translate --longest-ratio", longest)


@row("tag --input", "tag --batch", "classify --batch")
def labelling():
    lines = heddle("tag", "tagger", text="ant bee\ncat\n")
    check(heddle("tag", "tagger", "--input", "words", text="ant\nbee\n\ncat\n") == lines, "tag --input")
    # As lines the same input is three sentences of a word.
    check(heddle("tag", "tagger", text="ant\nbee\n\ncat\n").count("\n\n") > lines.count("\n\n"),
          "tag --input lines")
    check(heddle("tag", "tagger", "--batch", 1, text="ant bee\ncat\n") == lines, "tag --batch")
    done = run("tag", "tagger", "--batch", 0, text="ant\n")
    check(done.returncode == 2 and b"batch" in done.stderr, "tag --batch 0", done.stderr)
    moods = [ask("classify", "mood", "--batch", n, text="ant\nbee cat\ndog\n") for n in (1, 64)]
    check(json.dumps(moods[0])[:60] == json.dumps(moods[1])[:60], "classify --batch", moods)
    done = run("classify", "mood", "--batch", 0, text="ant\n")
    check(done.returncode == 2 and b"batch" in done.stderr, "classify --batch 0", done.stderr)


@row("eval --split", "eval --data", "eval --set", "eval --batch", "eval --beam",
     "eval --length-penalty", "eval --norm", "eval --no-bleu")
def evaluating():
    # A window predicts all of a text but its first character.
    size = {name: len((WORK / f"{name}.txt").read_text()) - 1 for name in ("text", "other", "third")}
    check(ask("eval", "language")["tokens"] == size["other"], "eval")
    check(ask("eval", "language", "--split", "test")["tokens"] == size["third"], "eval --split")
    check(ask("eval", "language", "--data", "text.txt")["tokens"] == size["text"], "eval --data")
    check(ask("eval", "language", "--split", "test", "--set", "data.test=text.txt")["tokens"]
          == size["text"], "eval --set")
    losses = [ask("eval", "language", "--batch", n)["loss"] for n in (1, 16)]
    check(abs(losses[0] - losses[1]) < 1e-5, "eval --batch", losses)
    done = run("eval", "language", "--batch", 0)
    check(done.returncode == 2 and b"--batch" in done.stderr, "eval --batch 0", done.stderr)
    scored = ask("eval", "reverse")
    check("bleu" in scored and "bleu" not in ask("eval", "reverse", "--no-bleu"), "eval --no-bleu", scored)
    # Its parts are those of the translations that `translate` writes with the same options.
    pairs = [line.split("\t") for line in (WORK / "pairs.v.tsv").read_text().splitlines()]
    wanted = [target.split() for _, target in pairs]
    length = sum(map(len, wanted))
    for options in (("--beam", 1, "--length-penalty", 0), ("--beam", 4, "--length-penalty", 0),
                    ("--beam", 4, "--length-penalty", 3, "--norm", "gnmt")):
        lines = [line.split() for line in
                 heddle("translate", "reverse", *options, text="".join(s + "\n" for s, _ in pairs))
                 .splitlines()]
        words = sum(map(len, lines))
        hits = sum(min(line.count(w), target.count(w)) for line, target in zip(lines, wanted, strict=True)
                   for w in set(line))
        told = ask("eval", "reverse", *options)
        check(abs(told["bleu_precisions"][0] - 100 * hits / words) < 1e-6, f"eval {options}", hits, words,
              told)
        check(abs(told["brevity_penalty"] - min(1, math.exp(1 - length / words))) < 1e-6,
              f"eval {options}: brevity", length, words, told)


@row("logits --tokens", "logits --prompt", "logits --target", "logits --npy", "logits --prefix")
def scores():
    ids = json.loads(heddle("tokenize", "language", text="cat\n"))
    by_text = ask("logits", "language", "--prompt", "cat")
    check(ask("logits", "language", "--tokens", ",".join(map(str, ids)))["logits"] == by_text["logits"],
          "logits --tokens")
    check(ask("logits", "language", "--prompt", "dog")["logits"] != by_text["logits"], "logits --prompt")
    (WORK / "l.npy").unlink(missing_ok=True)
    heddle("logits", "language", "--prompt", "cat", "--npy", "l.npy")
    values = struct.unpack(f"<{3 * len(by_text['logits'][0])}f", (WORK / "l.npy").read_bytes()[128:])
    flat = [x for r in by_text["logits"] for x in r]
    check(all(abs(x - y) < 1e-5 for x, y in zip(values, flat, strict=True)), "logits --npy")
    rows = [ask("logits", "reverse", "--prompt", "ant bee", *target)["shape"][0]
            for target in ((), ("--target", "1,2,3"))]
    check(rows == [1, 3], "logits --target", rows)
    differs(("logits", "prefix", "--prompt", "ant"), "--prefix", 1)


@row("inspect --prompt", "inspect --target", "inspect --image", "inspect --index", "inspect --layer",
     "inspect --head", "inspect --rows", "inspect --out", "inspect --beam", "inspect --length-penalty",
     "inspect --norm", "inspect --against")
def inspecting():
    heddle("train", "language.toml", "--set", "model.layers=2", "--out", "deep")
    d = ask("inspect", "deep", "--prompt", "ant bee", "--layer", "1", "--head", "1", "--rows", "2:4")
    part, = d["weights"]
    check(part["layer"] == "1" and part["head"] == 1 and part["first_row"] == 2
          and len(part["rows"]) == 2, "inspect --layer, --head, --rows", part)
    check(len(d["tokens"]["source"]) == 7, "inspect --prompt", d["tokens"])
    heddle("inspect", "deep", "--prompt", "ant", "--out", "look.html")
    check("<html" in (WORK / "look.html").read_text(), "inspect --out")
    check("sides" in ask("inspect", "deep", "--against", "language", "--prompt", "a"), "inspect --against")
    images = [ask("inspect", "halves", "--image", "images.idx", "--index", i) for i in (0, 3)]
    check(images[0]["layers"] != images[1]["layers"], "inspect --image, --index")
    given = ask("inspect", "reverse", "--prompt", "ant bee", "--target", "dog")
    check(given["tokens"]["target"][1:] == ["dog"], "inspect --target", given["tokens"])
    for options in (("--beam", 1, "--length-penalty", 0), ("--beam", 4, "--length-penalty", 0),
                    ("--beam", 4, "--length-penalty", 3, "--norm", "gnmt")):
        told = ask("inspect", "reverse", "--prompt", "ant bee cat", *options)["answer"]
        wanted = heddle("translate", "reverse", *options, text="ant bee cat\n").rstrip("\n")
        check(told == wanted, f"inspect {options}", told, wanted)


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


def time_of_children():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


BENCHES = ("roofline", "attention", "train", "decode")


@row(*[f"bench {b} {o}" for b in BENCHES for o in ("--json", "--quick", "--rounds", "--torch")],
     "bench roofline --dtype", "bench attention --dtype", "bench train --model", "bench decode --model",
     "bench train --torch-mode")
def benches():
    for name in ("roofline", "attention"):
        seconds = []
        for rounds in (1, 6):
            before = time_of_children()
            done = run("bench", name, "--quick", "--rounds", rounds, "--dtype", "f32", "--json")
            seconds.append(time_of_children() - before)
        cases = json.loads(done.stdout)["gemm" if name == "roofline" else "cases"]
        check(cases and {c["dtype"] for c in cases} == {"f32"}, f"bench {name} --dtype", cases[:1])
        check(seconds[1] > 1.5 * seconds[0], f"bench {name} --rounds", seconds)
        largest = max(c.get("n", 0) for c in cases)
        check(largest <= 4096, f"bench {name} --quick", largest)
    for name in ("train", "decode"):
        for few in (("--quick",), ("--model", "tiny")):  # either leaves the large model out
            done = run("bench", name, *few, "--rounds", 1, "--json")
            cases = json.loads(done.stdout)["cases"]
            check({c["name"] for c in cases} == {"tiny"}, f"bench {name} {few[0]}", cases)
            check("round 1" in done.stderr.decode() and "round 2" not in done.stderr.decode(),
                  f"bench {name} --rounds", done.stderr)
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
    global DROPPED
    for name, function in ROWS.items():
        if not name.startswith(start):
            continue
        before = len(FAILURES)
        DROPPED = name
        clean()
        show(function)
        DROPPED = None
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
    for failure in FAILURES:
        print("FAIL", failure)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
