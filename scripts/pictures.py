#!/usr/bin/env python3
"""The pictures of the README, out of pages that Heddle made: docs/images/*.png.

    scripts/pictures.py INSPECT.html COMPARE.html

    heddle inspect RUN --prompt "And God said, Let there be light" --out INSPECT.html
    heddle compare ... --out DIR      (COMPARE.html is DIR/index.html)

Needs Chromium (tests/pages/browser.py).
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/pages"))
from browser import Browser, chromium_or_skip  # noqa: E402

WIDTH, HEIGHT = 900, 760


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder = ROOT / "docs/images"
    folder.mkdir(exist_ok=True)
    with Browser(chromium_or_skip()) as browser:
        for source, name in zip(sys.argv[1:], ("inspect", "compare")):
            page = browser.open(str(Path(source).resolve()), width=WIDTH, height=HEIGHT)
            page.screenshot(folder / f"{name}.png", whole=False)
            print(folder / f"{name}.png", (folder / f"{name}.png").stat().st_size, "bytes", page.complaints or "")


if __name__ == "__main__":
    main()
