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


def trained(name, model):
    """One step with the text of the tiny models."""
    recipe = WORK / f"{name}.toml"
    recipe.write_text(f"""
        [model]
        {model}
        [data]
        text = {json.dumps(str(MODELS / "text.txt"))}
        tokenizer = "char"
        context = 32
        [train]
        steps = 1
        batch = 2
        """)
    done = run("train", recipe, "--out", WORK / name)
    check(done.returncode == 0, f"train {name}", done.stderr.decode())
    return WORK / name


def deep_model():
    return trained("deep", """
        kind = "decoder"
        layers = 2
        width = 16
        [model.attention]
        heads = 2
        position = "learned"
        """)


def two_sides():
    one, two = (json.loads(inspect("language", "--prompt", text, "--json", "--head", "1"))
                for text in ("the quick", "the brown"))
    d = json.loads(inspect("language", "--prompt", "the quick", "--prompt", "the brown", "--json",
                           "--head", "1"))
    check(d == {"sides": [one, two]}, "two prompts are two documents", d.keys())
    d = json.loads(inspect("language", "--against", "language", "--prompt", "the quick", "--json",
                           "--head", "1"))
    check(d == {"sides": [one, one]}, "a model against itself", d.keys())
    d = json.loads(inspect("reverse", "--prompt", "ant bee", "--target", "ant", "--target", "dog bee",
                           "--json"))
    check([s["tokens"]["target"][1:] for s in d["sides"]] == [["ant"], ["dog", "bee"]],
          "one prompt, two targets", d["sides"])
    d = json.loads(inspect("halves", "--image", "images.idx", "--index", "0", "--index", "3", "--json"))
    check([s["answer"].split()[0] for s in d["sides"]] == ["left", "right"], "two images of a file",
          [s["answer"] for s in d["sides"]])


def refusals():
    trained("recurrent", """
        kind = "rnn"
        layers = 1
        width = 8
        """)
    refused(WORK / "recurrent", "--prompt", "the", "--json",
            saying=["no attention", "encoder-decoder", "rnn-seq2seq"])
    ask = ("language", "--prompt", "the quick")
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
    refused(*ask, "--prompt", "a", "--prompt", "b", "--json", saying=["--prompt", "twice", "3 times"])
    refused(*ask, "--against", "halves", "--json", saying=["--image"])
    refused(*ask, "--against", "nothing", "--json", saying=["nothing"])
    for rows in ("5:3", "0:99", "x", "-1:2"):
        refused(*ask, f"--rows={rows}", "--json", saying=["--rows", "FIRST:END"])


def opened(browser, name, *arguments, dark=False, width=1100, height=1400):
    path = WORK / f"{name}.html"
    inspect(*arguments, "--out", path)
    page = browser.open(path, dark=dark, width=width, height=height)
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
    page = opened(browser, "cross", "reverse", "--prompt", "ant bee cat dog")
    check("Cross-attention" in page.evaluate("document.getElementById('head-title').textContent"),
          "a translation opens its cross-attention")
    check("Cross-attention" in page.evaluate("document.querySelector('.parts h3').textContent"),
          "which comes first")
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


# Planted weights: all of the class token's goes to the first patch. Colours in the middle of that
# patch and of the last.
HEAT = """(() => { heddleInspect.current().exact.set([0, 1, 0, 0, 0]);
  heddleInspect.choose(heddleInspect.sides[0], 0);
  const c = document.getElementById('image-heat'), g = c.getContext('2d');
  return [0.25, 0.75].map(at => [...g.getImageData(at * c.width, at * c.height, 1, 1).data].slice(0, 3)); })()"""


def heat_on_any_picture(browser):
    for shade in ("black", "white"):
        page = opened(browser, shade, "halves", "--image", f"{shade}.png")
        page.wait_for(COLOURS % "#image-heat" + " > 2")
        hot, cold = page.evaluate(HEAT)
        check(sum(abs(h - c) for h, c in zip(hot, cold)) > 250, "heat is seen on any picture", shade, hot, cold)
        check(hot[0] - hot[2] > 60 and sum(hot) > 450, "and has its colour", shade, hot)
        finish(page, shade)


SIZE = "(() => { const b = document.querySelector('%s').getBoundingClientRect(); return [b.width, b.height]; })()"


def page_uses_its_width(browser):
    page = opened(browser, "wide", "language", "--prompt", "the quick brown fox", width=1600, height=900)
    w, h = page.evaluate(SIZE % "#map")
    check(h > 700 and w > 700, "19 tokens fill a large window", w, h)
    phone = browser.open(WORK / "wide.html", width=390, height=800)
    phone.wait_for("document.body.dataset.ready === 'yes'")
    check(phone.evaluate("document.documentElement.scrollWidth") <= 390, "nothing is cut off on a phone",
          phone.evaluate("document.documentElement.scrollWidth"))
    # Names of tokens, by what the canvas was told to write.
    long = " ".join(["ant", "bee"] * 30)
    for width, wanted in ((1600, 60), (1100, 60)):
        page = opened(browser, f"long-{width}", "mood", "--prompt", long, width=width, height=900)
        page.evaluate("""(() => { window.written = []; const own = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
            const { e, f } = this.getTransform(); written.push([text, this.font, rest[1] + f, e]);
            return own.call(this, text, ...rest); };
          dispatchEvent(new Event('resize')); })()""")
        names = [w for w in page.evaluate("written") if w[0] in ("ant", "bee")]
        check(len(names) >= 2 * wanted, f"names of 60 tokens on both axes at {width}", len(names))
        check(all(float(n[1].split("px")[0]) >= 10 for n in names), "which can be read", names[:1])
        rows = sorted({round(n[2], 2) for n in names})
        finish(page, f"long-{width}")
        check(len(rows) >= wanted, "each row has its own line", len(rows))


def pages_of_two(browser):
    text = "the quick brown fox"
    page = opened(browser, "two-prompts", "language", "--prompt", text, "--prompt", "the lazy dog",
                  width=1600, height=900)
    check(page.evaluate("[...document.querySelectorAll('.grid-side .side-name')].map(e => e.textContent)")
          == [f"A · {text}", "B · the lazy dog"], "two prompts have names")
    check(page.evaluate("document.getElementById('map-difference').closest('figure').hidden"),
          "other tokens have no difference")
    check(page.evaluate("document.getElementById('scale').value") == "one", "one scale of colours")
    finish(page, "two-prompts")
    deep = deep_model()
    page = opened(browser, "two-models", "language", "--against", deep, "--prompt", text,
                  width=1600, height=900)
    a, b = (json.loads(inspect(m, "--prompt", text, "--json", "--layer", "0", "--head", "1", "--rows", "12"))
            ["weights"][0]["rows"][0][3] for m in ("language", deep))
    page.click(".thumb[data-side='1'][data-layer='0'][data-head='1']")
    check(page.evaluate("heddleInspect.sides.map(s => [s.state.layer, s.state.head])")
          == [[0, 1], [0, 1]], "a click opens the head on both sides")
    d = page.evaluate("new heddleInspect.Difference().value(12, 3)")
    check(abs(d - (b - a)) < 1e-6, "the difference of two models", d, b - a)
    check(page.evaluate(COLOURS % "#map-difference") > 20, "which is drawn")
    page.click("#map-1", 0.6, 0.6)
    queries = page.evaluate("heddleInspect.sides.map(s => s.state.query)")
    check(queries[0] == queries[1] > 0, "one query on both sides", queries)
    columns = "['map', 'map-1', 'map-difference'].map(id => +document.getElementById(id).dataset.columns)"
    page.click("[data-zoom='1.6']")
    seen = page.evaluate(columns)
    check(seen[0] == seen[1] == seen[2] < 19, "all maps are zoomed together", seen)
    page.click("[data-zoom='fit']")
    page.evaluate("(() => { const s = document.getElementById('layer-1'); s.value = 1;"
                  " s.dispatchEvent(new Event('change')); })()")
    check(page.evaluate("heddleInspect.sides.map(s => s.state.layer)") == [0, 1],
          "a side's own head can be chosen")
    finish(page, "two-models")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    if WHAT == "numbers":
        numbers()
        two_sides()
        refusals()
    else:
        with Browser(chromium_or_skip()) as browser:
            page_of_text(browser)
            page_of_translation(browser)
            page_of_image(browser)
            heat_on_any_picture(browser)
            page_uses_its_width(browser)
            pages_of_two(browser)
    for failure in FAILURES:
        print(failure, file=sys.stderr)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
