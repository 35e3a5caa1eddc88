#!/usr/bin/env python3
"""`heddle check` on every recipe that ships, on bad input, and with a planted fault.

    check_recipes.py HEDDLE FAULTY_HEDDLE RECIPES
"""

import json
import subprocess
import sys
from pathlib import Path

HEDDLE, FAULTY, RECIPES = sys.argv[1], sys.argv[2], Path(sys.argv[3])
KEYS = {"path", "dtype", "isa", "threads", "error", "tolerance", "pass"}
FAILURES = []


def expect(ok, what):
    if not ok:
        FAILURES.append(what)
        print(f"WRONG: {what}", flush=True)


def check(program, recipe, *arguments):
    return subprocess.run([program, "check", str(recipe), *arguments], capture_output=True, text=True)


def recipes():
    info = subprocess.run([HEDDLE, "info", "--json"], capture_output=True, text=True)
    sets = set(json.loads(info.stdout)["isa"])
    found = sorted(RECIPES.glob("*.toml"))
    expect(found, f"there are recipes in {RECIPES}")
    for recipe in found:
        result = check(HEDDLE, recipe, "--json")
        expect(result.returncode == 0, f"{recipe.name}: status {result.returncode}\n{result.stderr}")
        report = json.loads(result.stdout)
        cases = report["cases"]
        # A machine with more instruction sets has more to compare.
        expect(len(cases) > 40 * len(sets), f"{recipe.name}: {len(cases)} cases")
        expect(sets <= {c["isa"] for c in cases}, f"{recipe.name}: instruction sets")
        for case in cases:
            expect(KEYS <= case.keys(), f"{recipe.name}: keys of {case}")
            expect(case["pass"] == (case["error"] <= case["tolerance"]), f"verdict of {case}")
            expect(case["pass"], f"{recipe.name}: {case}")
        expect({"f64", "f32", "bf16"} <= {c["dtype"] for c in cases}, f"{recipe.name}: types")
        expect({1, 2, 3} <= {c["threads"] for c in cases}, f"{recipe.name}: threads")
        print(f"{recipe.name}: {len(cases)} cases", flush=True)


def planted_fault():
    recipe = RECIPES / "char-gpt.toml"
    result = check(FAULTY, recipe)
    expect(result.returncode == 1, f"planted fault: status {result.returncode}")
    expect("WRONG" in result.stdout and "by differences" in result.stdout, result.stdout)
    result = check(FAULTY, recipe, "--json")
    expect(result.returncode == 1, f"planted fault as JSON: status {result.returncode}")
    expect(any(not c["pass"] for c in json.loads(result.stdout)["cases"]), "a case that failed")


def bad_input():
    recipe = RECIPES / "char-gpt.toml"
    for arguments, word in [(["--set", "model.attention.heads=7"], "heads"),
                            (["--set", "model.nrom=rms"], "norm")]:
        result = check(HEDDLE, recipe, *arguments)
        expect(result.returncode == 2, f"{arguments}: status {result.returncode}")
        expect(word in result.stderr, f"{arguments}: {result.stderr}")
    expect(check(HEDDLE, RECIPES / "none.toml").returncode == 2, "a recipe that is not there")


recipes()
planted_fault()
bad_input()
sys.exit(1 if FAILURES else 0)
