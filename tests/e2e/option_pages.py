"""What `compare`, `report` and `watch` do with tiny models: rows of options.py, whose functions are `t`."""

import subprocess
import urllib.request

from option_models import LANGUAGE


def show_pages_of_runs(t):
    t.heddle("train", "language.toml", "--out", "reported")
    (t.WORK / "reported/report.html").unlink()
    path = t.heddle("report", "reported").strip()
    t.check(path.endswith("reported/report.html") and (t.WORK / path).exists(), "report", path)
    t.heddle("report", "reported", "--out", "look.html")
    look = t.WORK / "look.html"
    t.check(look.exists() and "Training reported" in look.read_text(), "report --out")
    text = t.heddle("watch", "reported")
    t.check("step 6 of 6" in text and "finished" in text, "watch", text)
    done = t.run("watch", "no-such")
    t.check(done.returncode == 2 and b"no-such" in done.stderr, "watch of nothing", done.stderr)
    done = t.run("watch", "reported", "--serve", 0, "--bind", "nowhere") if not t.DROPPED else None
    t.check(not done or b"no IP address" in done.stderr, "watch --bind", done and done.stderr)
    show_served(t, "http://127.0.0.1:")
    show_served(t, "http://127.0.0.2:", "--bind", "127.0.0.2")


def show_served(t, where, *more):
    watch = subprocess.Popen([str(t.HEDDLE), *t.without_dropped(["watch", "reported", "--serve", "0", *more])],
                             cwd=t.WORK, stdout=subprocess.PIPE)
    try:
        url = watch.stdout.readline().decode().strip()
        t.check(url.startswith(where), "watch --serve", url)
        if url.startswith("http"):
            page = urllib.request.urlopen(url, timeout=20).read().decode()
            t.check("Training reported" in page and "setInterval(renew" in page, "watch --serve", page[:99])
            version = urllib.request.urlopen(url + "version", timeout=20).read()
            t.check(version.startswith(b"6 "), "watch --serve: version", version)
    finally:
        watch.send_signal(2)
        ending = watch.wait(timeout=20)
    t.check(ending == 130, "watch --serve ends with Ctrl-C", ending)


def show_comparisons(t):
    (t.WORK / "rms.toml").write_text(LANGUAGE.replace("[data]", 'norm = "rms"\n[data]', 1))
    d = t.ask("compare", "language.toml", "--vary", "model.width=16,24", "--also", "rms.toml", "--set",
            "train.batch=2", "--seeds", 2, "--budget", "steps=10", "--out", "compared")
    names = [v["name"] for v in d["variants"]]
    t.check(len(names) == 3 and "16" in names[0] and "24" in names[1], "compare --vary, --also", names)
    t.check((t.WORK / "compared/results.json").exists(), "compare --out")
    recipes = sorted((t.WORK / "compared/runs").glob("*/*/recipe.toml"))
    t.check(len(recipes) == 6, "compare --seeds", recipes)
    for recipe in recipes:
        text = recipe.read_text()
        t.check("batch = 2" in text and "steps = 10" in text, "compare --set, --budget", text)
    done = t.run("compare", "--recipe", "no-such", "--vary", "model.width=16,24", "--out", "x")
    t.check(done.returncode == 2 and b"no-such" in done.stderr, "compare --recipe", done.stderr)
    done = t.run("compare", "--recipe", "rope-gqa", "--set", "data.text=text.txt", "--vary",
               "model.attention.kv_headz=1,2", "--out", "x")
    t.check(b"kv_headz" in done.stderr and b"no recipe" not in done.stderr, "compare --recipe finds one",
          done.stderr)
    (t.WORK / "compared/index.html").unlink()
    page = t.heddle("report", "compared").strip()
    t.check(page.endswith("compared/index.html") and (t.WORK / page).exists(), "report of a comparison", page)
    done = t.run("watch", "compared")
    t.check(done.returncode == 2 and b"is a comparison" in done.stderr, "watch of a comparison", done.stderr)
