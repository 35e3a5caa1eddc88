"""Rows of options.py about recipes: train, data, plan, check, init, report, watch, compare."""

import json
import re
import shutil
import subprocess

import option_table
from option_models import derived_recipe
from option_pages import show_comparisons, show_pages_of_runs
from option_table import HEDDLE, WORK, ask, check, heddle, row, run


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
     "plan --context", "plan --ranks", "plan --link", "plan --latency", "plan --flops", "check --set")
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
    for more in (4 << 20, 8 << 20):  # than the program itself takes
        base = ask(*plan, "--vocabulary", 50)
        besides = base["process_peak_bytes"]["total"] - base["peak_bytes"]["total"]
        batch = ask(*plan, "--vocabulary", 50, "--memory", besides + more)["largest_batch"]
        fits, too_much = (ask(*plan, "--vocabulary", 50, "--set", f"train.batch={b}")["peak_bytes"]["total"]
                          for b in (batch, batch + 1))
        # What the program takes besides is measured, and moves by a megabyte from run to run: which
        # pages of its code are mapped depends on what else the machine has in memory.
        check(fits <= 1.5 * more and too_much > more / 2, "plan --memory", more, batch, fits, too_much)
    ranks = [ask(*plan, "--vocabulary", 50, *more)["peak_bytes"]["optimizer"] for more in ((), ("--ranks", 2))]
    check(abs(ranks[1] / ranks[0] - 0.5) < 0.2, "plan --ranks", ranks)  # each has its half of the state
    link = lambda *more: ask(*plan, "--vocabulary", 50, "--ranks", 2, *more)
    slow, fast = link("--link", "1M"), link("--link", "2M")
    sent = 8 * slow["sent_bytes_per_step"]
    same = lambda a, b: abs(a - b) <= 1e-6 * abs(b)
    check(same(slow["communication_seconds"] - fast["communication_seconds"], sent / 1e6 - sent / 2e6), "plan --link", slow)
    late = link("--link", "1M", "--latency", "1s")
    check(late["communication_seconds"] > slow["communication_seconds"] + 2, "plan --latency", late)
    known = link("--link", "1M", "--flops", "1G")
    check(same(known["compute_seconds"], known["flops_per_step"] / 1e9), "plan --flops", known)
    check(same(known["step_seconds"], known["compute_seconds"] + known["communication_seconds"]), "a step", known)
    check(known["pays_to_ranks"] == 1 and known["communication_share"] > 0.5, "ranks that pay", known)
    d = ask("check", "language.toml", "--set", "model.attention.kv_heads=1")
    check(d["pass"] and d["model"]["kv_heads"] == 1, "check --set", d["model"])


@row("train --recipe", "data --recipe", "plan --recipe", "check --recipe")
def shipped_recipes():
    few = [f"--set={x}" for x in ("data.text=text.txt", "train.steps=2", "train.warmup=0",
                                  "model.layers=1", "train.batch=2", "data.context=16")]
    done = run("train", "--recipe", "char-gpt", *few)
    check(b"recipe: char-gpt, from inside this program" in done.stderr, "where a recipe came from", done.stderr)
    check("tied = true" in (WORK / "runs/char-gpt/recipe.toml").read_text(), "train --recipe")
    check(ask("data", "--recipe", "char-gpt", *few)["sizes"]["context"] == 16, "data --recipe")
    named, given = (ask("plan", *which, "--vocabulary", 50) for which in (("--recipe", "char-gpt"), ("char-gpt",)))
    check(named["parameters"] == given["parameters"] > 500_000, "plan --recipe", named)
    named, given = (ask("check", *which) for which in (("--recipe", "rnn-lm"), ("rnn-lm",)))
    check(named["model"] == given["model"] and named["model"]["kind"] == "rnn", "check --recipe", named["model"])
    check(b"two recipes" in run("plan", "char-gpt", "--recipe", "char-gpt").stderr, "a recipe twice")
    alone = WORK / "alone"  # the program without a file beside it
    alone.mkdir(exist_ok=True)
    shutil.copy(HEDDLE, alone / "heddle")
    done = subprocess.run([alone / "heddle", "plan", "rope-gqa", "--vocabulary", "50", "--json"], cwd=alone,
                          capture_output=True, timeout=60)
    check(done.returncode == 0, "a shipped recipe of a program that was copied", done.stderr)


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
    version = ask("version")
    check(re.fullmatch(r"\d+\.\d+\.\d+", version["version"]), "version --json", version)
    check(version["isa_in_use"] in version["isa"] and version["isa"][0] == "generic", "version --json", version)
    check(version["commit"] is None or re.fullmatch("[0-9a-f]{12}", version["commit"]), "version --json", version)
    first, second, third = heddle("--version").splitlines()
    named = f" ({version['commit']})" if version["commit"] else ""
    check(first == f"heddle {version['version']}{named}", "heddle --version", first)
    check(all(isa in second for isa in version["isa"]), "heddle --version", second)
    check(third.endswith(version["isa_in_use"]), "heddle --version", third)


@row("report --out", "watch --serve", "watch --bind")
def pages_of_runs():
    show_pages_of_runs(option_table)


@row("compare --recipe", "compare --vary", "compare --also", "compare --set", "compare --seeds",
     "compare --budget", "compare --out", "compare --json")
def compare_options():
    show_comparisons(option_table)
