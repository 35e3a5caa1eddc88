#!/usr/bin/env python3
"""The site of the documents as people use it: opened from a disk, in both languages, light and dark, on a phone.

    site.py FOLDER          what scripts/make_site.py made

Types into the search of both languages, follows the switch between them, and looks whether a page is wider than a
phone or asks for anything from elsewhere. Needs Chromium and is skipped without it (exit status 77). Exits with 1
when something is not as it should be.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import Browser, PageError, chromium_or_skip  # noqa: E402

SITE = Path(sys.argv[1]).resolve()
FAILURES = []
PHONE = 390

# What a reader types, and pages that must be found; an empty list: nothing may be. Chinese words may stand beside
# each other without a space, may be one character, and may be English.
SEARCHES = {
    "": [("sliding window", ["lab", "generate"]), ("RoPE", ["attention", "reference"]), ("beams", ["generate"]),
         ("perplexity", ["generate"]), ("checkpoints killed", ["training"]), ("weftless", [])],
    "zh": [("注意力", ["attention", "inspect"]), ("注意力头", ["inspect"]), ("困惑度", ["generate"]),
           ("分词器", ["tokenizers"]), ("RoPE", ["attention"]), ("微调", ["training"]), ("束", ["generate"]),
           ("头意力注", []), ("麒麟", [])],
}
RESULTS = "[...document.querySelectorAll('#search-results li a')].map(a => a.getAttribute('href').split(/[.?#]/)[0])"
FINISHED = "document.querySelector('#search-results p.search-summary')?.innerText.length > 0"


def expect(condition, what):
    if not condition:
        FAILURES.append(what)


def heard(page, name):
    expect(page.complaints == [], f"{name}: {page.complaints}")


def arrives(page, script, seconds=20):
    """Whether an expression becomes true on the page that a link or a form leads to."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if page.evaluate(script):
                return True
        except PageError:  # the page that was asked is just being left
            pass
        time.sleep(0.05)
    return False


def check_search(browser, language):
    for query, wanted in SEARCHES[language]:
        page = browser.open(SITE / language / "index.html")
        page.click(".sidebar-search")
        page.send("Input.insertText", text=query)
        page.send("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", text="\r",
                  windowsVirtualKeyCode=13)
        if not arrives(page, f"location.pathname.endsWith('/search.html') && {FINISHED}"):
            FAILURES.append(f"{language or 'en'}: the search for {query} never ends")
            continue
        found = page.evaluate(RESULTS)
        expect(set(wanted) <= set(found) if wanted else not found, f"{language or 'en'}: {query} was found in {found}")
        heard(page, f"search for {query}")


def check_switch(browser):
    page = browser.open(SITE / "recipes.html")
    for language, title in (("zh", "配方"), ("en", "Recipes"), ("zh", "配方")):
        page.click(f".languages a[lang='{language}']")
        expect(arrives(page, "document.readyState === 'complete' && "
                             f"document.querySelector('h1')?.innerText.startsWith('{title}')"), f"no {title}")
        expect(page.evaluate("document.documentElement.lang").startswith(language), f"{title}: another language")
    heard(page, "the switch of languages")


def check_link(browser):
    """The first tutorial, from the text of the home page and from the navigation."""
    for language in SEARCHES:
        for where in ("article", ".sidebar-tree"):
            page = browser.open(SITE / language / "index.html")
            # Not by the mouse: pages scroll slowly, so a place on the screen is soon another.
            page.evaluate(f"document.querySelector(\"{where} a[href='tutorial-learner.html']\").click()")
            expect(arrives(page, "location.pathname.endsWith('tutorial-learner.html') && "
                                 "document.readyState === 'complete'"), f"{language}: {where} leads nowhere")
            heard(page, f"{language}/tutorial-learner")


def check_colours(browser):
    shades = []
    for dark in (False, True):
        page = browser.open(SITE / "index.html", dark=dark)
        shades.append([int(v) for v in page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)")])
    expect(min(shades[0]) > 220 and max(shades[1]) < 40, f"light and dark: {shades}")


def check_width(browser):
    """No page can be moved sideways on a phone; what is wider is scrolled where it is."""
    pages = sorted(file for file in SITE.rglob("*.html") if "api" not in file.relative_to(SITE).parts)
    expect(len(pages) > 60, f"only {len(pages)} pages")
    page = browser.open(SITE / "index.html", width=PHONE, height=844)
    for file in pages:
        page.load(file.as_uri())
        width = page.evaluate("Math.max(document.documentElement.scrollWidth, "
                              "document.querySelector('.article-container').scrollWidth)")
        expect(width <= PHONE, f"{file.relative_to(SITE)}: {width} wide on a phone")
        expect(page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth)"),
               f"{file.relative_to(SITE)}: an image that does not show")
        heard(page, file.relative_to(SITE))
        page.complaints.clear()


def main():
    with Browser(chromium_or_skip()) as browser:
        for language in SEARCHES:
            check_search(browser, language)
        check_switch(browser)
        check_link(browser)
        check_colours(browser)
        check_width(browser)
    for failure in FAILURES:
        print("FAIL", failure)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
