#!/usr/bin/env python3
"""`heddle inspect` on tiny models: its numbers, what it refuses, and its pages in Chromium.

    inspect.py HEDDLE MODELS WORK numbers|pages [--shots]

MODELS is where tests/e2e/use_models.py has trained its models; WORK a directory for what is made.
`pages` needs Chromium and is skipped without it (exit status 77). --shots leaves pictures of the
pages in WORK. Exits with 1 when something is not as it should be.
"""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import Browser, chromium_or_skip  # noqa: E402

HEDDLE, MODELS, WORK = (Path(p).resolve() for p in sys.argv[1:4])
WHAT = sys.argv[4]
SHOTS = "--shots" in sys.argv[5:]
FAILURES = []


def check(ok, what, *seen):
    if not ok:
        FAILURES.append(f"{what}: {' '.join(map(repr, seen))}")


def run(*arguments):
    return subprocess.run([str(HEDDLE), *map(str, arguments)], cwd=MODELS, capture_output=True,
                          timeout=120)


def inspect(*arguments):
    done = run("inspect", *arguments)
    if done.returncode != 0:
        FAILURES.append(f"inspect {arguments}: exit {done.returncode} {done.stderr.decode()}")
        return ""
    return done.stdout.decode()


def refused(*arguments, saying):
    done = run("inspect", *arguments)
    message = done.stderr.decode()
    check(done.returncode == 2 and not done.stdout, f"inspect {arguments} is refused",
          done.returncode, message)
    for part in saying:
        check(part in message, f"inspect {arguments} says {part!r}", message)


def numbers():
    d = json.loads(inspect("language", "--prompt", "the quick brown", "--json", "--layer", "0",
                           "--head", "1", "--rows", "4:6"))
    check([len(d["tokens"]["source"]), d["layers"][0]["queries"], len(d["layers"][0]["heads"])]
          == [15, 15, 2], "tokens and heads", d["layers"])
    check(d["loss"] < 1, "loss of a text that was learned", d["loss"])
    part, = d["weights"]
    check(part["layer"] == "0" and part["head"] == 1 and part["first_row"] == 4
          and len(part["rows"]) == 2, "the rows that were asked for", part)
    for i, row in enumerate(part["rows"], 4):
        check(abs(sum(row) - 1) < 1e-5 and not any(row[i + 1:]), "a causal row", row)
    # The statistics, a second time from the whole map.
    whole = json.loads(inspect("language", "--prompt", "the quick brown", "--json", "--head", "1"))
    rows = whole["weights"][0]["rows"]
    entropy = sum(-sum(w * math.log2(w) for w in r if w > 0) for r in rows[1:]) / 14
    distance = sum(sum(w * abs(i - j) for j, w in enumerate(r)) for i, r in enumerate(rows) if i) / 14
    s = whole["layers"][0]["heads"][1]
    check(abs(s["entropy_bits"] - entropy) < 1e-4 and abs(s["distance"] - distance) < 1e-4,
          "entropy and distance", s, entropy, distance)

    d = json.loads(inspect("reverse", "--prompt", "ant bee cat", "--json"))
    check(d["answer"] == "cat bee ant" and d["tokens"]["target"][1:] == d["tokens"]["written"][:-1],
          "a translation", d["answer"], d["tokens"])
    parts = {l["name"]: (l["queries"], l["keys"]) for l in d["layers"]}
    check(parts == {"encoder.0": (4, 4), "decoder.0": (4, 4), "cross.0": (4, 4)}, "layers", parts)
    d = json.loads(inspect("reverse", "--prompt", "ant bee cat", "--target", "dog", "--json"))
    check({l["name"]: (l["queries"], l["keys"]) for l in d["layers"]}["cross.0"] == (2, 4)
          and "answer" not in d,
          "a target that is given", d["layers"])
    d = json.loads(inspect("reverse", "--prompt", "ant bee cat", "--target", "dog", "--json",
                           "--rows", "3:4"))
    check({w["layer"] for w in d["weights"]} == {"encoder.0"}, "rows that only the source has")
    d = json.loads(inspect("halves", "--image", "left.png", "--json"))
    check(d["patches"] == [2, 2] and d["layers"][0]["queries"] == 5 and "left" in d["answer"],
          "an image", d)
    d = json.loads(inspect("halves", "--image", "images.idx", "--index", "3", "--json"))
    check("right" in d["answer"], "an image of an IDX file", d["answer"])
    for model, text in [("tagger", "bcdo fgga"), ("mood", "ant nice cat")]:
        d = json.loads(inspect(model, "--prompt", text, "--json"))
        check(len(d["layers"]) == 1 and d["layers"][0]["part"] == "self", model, d["layers"])


def refusals():
    recipe = WORK / "recurrent.toml"
    recipe.write_text(f"""
        [model]
        kind = "rnn"
        layers = 1
        width = 8
        [data]
        text = {json.dumps(str(MODELS / "text.txt"))}
        tokenizer = "char"
        context = 16
        [train]
        steps = 1
        batch = 2
        """)
    done = run("train", recipe, "--out", WORK / "recurrent")
    check(done.returncode == 0, "train a recurrent model", done.stderr.decode())
    refused(WORK / "recurrent", "--prompt", "the", "--json",
            saying=["no attention", "encoder-decoder", "rnn-seq2seq"])
    ask = ("language", "--prompt", "the quick")
    refused(*ask, saying=["--out", "--json"])
    refused("language", "--prompt", "the quick " * 4, "--json", saying=["32", "positions"])
    refused("language", "--json", saying=["--prompt"])
    refused("language", "--prompt", "the €", "--json", saying=["--prompt", "€"])
    refused("language", "--image", "left.png", "--json", saying=["--prompt"])
    refused("halves", "--prompt", "a", "--json", saying=["--image"])
    refused("halves", "--image", "small.png", "--json", saying=["small.png", "8"])
    refused("halves", "--image", "images.idx", "--index", 120, "--json", saying=["0 to 119"])
    refused(*ask, "--target", "a", "--json", saying=["translates"])
    refused(*ask, "--beam", 2, "--json", saying=["--beam", "translates"])
    refused(*ask, "--index", 2, "--json", saying=["--image"])
    refused("reverse", "--prompt", "ant", "--target", "ant", "--beam", 2, "--json",
            saying=["--beam", "--target"])
    refused(*ask, "--layer", "7", "--json", saying=["--layer", "one of 0"])
    refused(*ask, "--head", "2", "--json", saying=["--head", "0 to 1"])
    for rows in ("5:3", "0:99", "x", "-1:2"):
        refused(*ask, f"--rows={rows}", "--json", saying=["--rows", "FIRST:END"])


def opened(browser, name, *arguments, dark=False):
    path = WORK / f"{name}.html"
    inspect(*arguments, "--out", path)
    page = browser.open(path, dark=dark)
    page.wait_for("document.body.dataset.ready === 'yes'")
    return page


def finish(page, name):
    if SHOTS:
        page.screenshot(WORK / f"{name}.png")
        page.set_dark(True)
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.screenshot(WORK / f"{name}-dark.png")
    check(page.complaints == [], f"{name}: complaints of the page", page.complaints)


# Colours of a canvas: a page that draws nothing has one.
COLOURS = """(() => { const c = document.querySelector('%s');
  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
  for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
  return seen.size; })()"""


def page_of_text(browser):
    prompt = "the quick brown fox"
    page = opened(browser, "text", "language", "--prompt", prompt)
    check(page.evaluate("document.querySelectorAll('.thumb').length") == 2, "two heads in the grid")
    check(page.evaluate(COLOURS % ".thumb canvas") > 5, "thumbnails are drawn")
    check(page.evaluate(COLOURS % "#map") > 20, "the map is drawn")
    page.click(".thumb[data-head='1']")
    check("head 1" in page.evaluate("document.getElementById('head-title').textContent"),
          "a click opens a head")
    page.hover("#map", 0.4, 0.9)
    reading = page.evaluate("document.getElementById('reading').textContent")
    check("query" in reading and ("0." in reading or "hidden" in reading), "hovering tells", reading)
    # What is told is what the model computed.
    w = page.evaluate("heddleInspect.current().value(12, 3)")
    d = json.loads(inspect("language", "--prompt", prompt, "--json", "--head", "1", "--rows", "12"))
    check(abs(w - d["weights"][0]["rows"][0][3]) < 1e-7, "weights of the page", w)

    columns = "+document.getElementById('map').dataset.columns"
    before = page.evaluate(columns)
    page.evaluate("document.activeElement.blur()")
    page.wheel("#map", -400)
    check(page.evaluate(columns) == before, "the wheel scrolls the page until the map is clicked")
    page.click("#map", 0.6, 0.6)
    page.wheel("#map", -400, 0.6, 0.6)
    page.wait_for(f"{columns} < {before}")
    page.drag("#map", (0.5, 0.5), (0.7, 0.7))
    page.click("[data-zoom='fit']")
    check(page.evaluate(columns) == before, "the whole map again")
    page.click("[data-zoom='1.6']")
    check(page.evaluate(columns) < before, "zoom by the button")

    page.click(".token:nth-child(6)")
    check(page.evaluate("heddleInspect.state.query") == 5, "a click on a token chooses it")
    check("looks at" in page.evaluate("document.getElementById('strongest').textContent"),
          "where it looks, in words")
    page.click("#stats th:nth-child(3) button")
    check(page.evaluate("document.querySelector('#stats th:nth-child(3)').ariaSort")
          == "descending", "the table is sorted")
    page.click("[data-zoom='fit']")
    finish(page, "text")


def page_of_translation(browser):
    page = opened(browser, "translation", "reverse", "--prompt", "ant bee cat dog", "--layer",
                  "cross.0", "--head", "2")
    check(page.evaluate("document.querySelectorAll('.thumb').length") == 12, "heads of three parts")
    check("Cross-attention" in page.evaluate("document.getElementById('head-title').textContent"),
          "opens what was asked for")
    check("pooled" not in page.evaluate("document.getElementById('exactness').textContent"),
          "which is exact")
    check(not page.evaluate("document.getElementById('queries-box').hidden"), "two texts")
    page.click("#queries-text .token:nth-child(2)")
    check(page.evaluate("heddleInspect.state.query") == 1, "a query of the target")
    page.click(".thumb[data-layer='0'][data-head='0']")
    check("pooled" in page.evaluate("document.getElementById('exactness').textContent"),
          "what was not asked for is pooled, and says so")
    page.evaluate("heddleInspect.open(2, 2)")
    finish(page, "translation")


def page_of_image(browser):
    page = opened(browser, "image", "halves", "--image", "left.png", dark=True)
    page.wait_for(COLOURS % "#image-heat" + " > 5")
    page.click("#image-plain", 0.75, 0.25)
    check(page.evaluate("heddleInspect.state.query") == 2, "a click on a patch chooses it")
    page.click("#class-query")
    check(page.evaluate("heddleInspect.state.query") == 0, "back to the class token")
    page.hover("#image-heat", 0.25, 0.75)
    check("row 2, column 1" in page.evaluate("document.getElementById('reading').textContent"),
          "hovering over a patch")
    finish(page, "image")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    if WHAT == "numbers":
        numbers()
        refusals()
    else:
        with Browser(chromium_or_skip()) as browser:
            page_of_text(browser)
            page_of_translation(browser)
            page_of_image(browser)
    for failure in FAILURES:
        print(failure, file=sys.stderr)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
