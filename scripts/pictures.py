#!/usr/bin/env python3
"""The pictures of the READMEs, out of pages that Heddle made: docs/images/*.png, docs/images/zh/*.png.

    scripts/pictures.py INSPECT.html COMPARE.html [FOLDER]        FOLDER: docs/images, or docs/images/zh for pages in Chinese

INSPECT.html is a page of `heddle inspect`, COMPARE.html the index.html of `heddle compare`. Needs Chromium
(tests/pages/browser.py).
"""

import base64
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/pages"))
from browser import Browser, chromium_or_skip  # noqa: E402

LAYER, HEAD = 2, 2  # one that is easy to read


def picture(page, first, last, path):
    """From the top of one part of the page to the bottom of another."""
    box = page.evaluate("(() => { const a = document.querySelectorAll('section')[%d].getBoundingClientRect();"
                        " const b = document.querySelectorAll('%s')[0].getBoundingClientRect();"
                        " return [a.left - 8, a.top + scrollY - 8, a.width + 16, b.bottom - a.top + 16]; })()"
                        % (first, last))
    shot = page.send("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                     clip=dict(zip(("x", "y", "width", "height"), box), scale=1))
    path.write_bytes(base64.b64decode(shot["data"]))
    print(path, path.stat().st_size, "bytes", page.complaints or "")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    folder = Path(sys.argv[3]) if sys.argv[3:] else ROOT / "docs/images"
    folder.mkdir(exist_ok=True)
    inspect, compare = (str(Path(p).resolve()) for p in sys.argv[1:3])
    with Browser(chromium_or_skip()) as browser:
        page = browser.open(inspect, width=760, height=900)
        page.click(f".thumb[data-layer='{LAYER}'][data-head='{HEAD}']")
        picture(page, 1, "#map", folder / "inspect.png")
        page = browser.open(compare, width=760, height=900)
        picture(page, 0, "section:nth-of-type(3)", folder / "compare.png")


if __name__ == "__main__":
    main()
