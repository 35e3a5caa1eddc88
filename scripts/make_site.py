#!/usr/bin/env python3
"""The documents as one site, in English and Chinese: build/site/index.html opens it, from a disk too.

    scripts/make_site.py [--out FOLDER] [--api FOLDER]

Sphinx makes it of the Markdown in this repository, as docs/site/ says; it is installed into build/site-env when
docs/site/requirements.txt has changed. --api: pages of the public headers as `make docs` leaves them (default
build/release/docs/html; without them the site has no link to them). A document that no page shows, a warning of
Sphinx, a link that leads nowhere, and anything that a page would fetch from another host fail it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "docs/site"
sys.path.insert(0, str(SITE))
import pages  # noqa: E402

ENVIRONMENT = ROOT / "build/site-env"
WORK = ROOT / "build/site-src"


def install():
    """The packages, unless they are there."""
    wanted = (SITE / "requirements.txt").read_text()
    stamp = ENVIRONMENT / "installed.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)])
    if made.returncode != 0:
        sys.exit("site: no virtual environment; on Debian it needs the package python3-venv")
    subprocess.run([str(ENVIRONMENT / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--only-binary", ":all:", "-r", str(SITE / "requirements.txt")], check=True)
    stamp.write_text(wanted)


def write_sources():
    """Empty files that stand for the pages, and the theme's texts in Chinese as Sphinx wants them."""
    shutil.rmtree(WORK, ignore_errors=True)
    for language in pages.LANGUAGES:
        folder = WORK / language
        folder.mkdir(parents=True)
        for page in pages.all_pages():
            (folder / f"{page}.md").touch()
        (folder / "images").symlink_to(ROOT / "docs/images")
    texts = WORK / "texts/zh_CN/LC_MESSAGES"
    texts.mkdir(parents=True)
    subprocess.run([str(ENVIRONMENT / "bin/pybabel"), "--quiet", "compile", "-l", "zh_CN",
                    "-i", str(SITE / "zh_CN.po"), "-o", str(texts / "sphinx.mo")], check=True)


def start_sphinx(language, out, api):
    folder = out if language == "en" else out / language
    environment = {**os.environ, "HEDDLE_SITE_LANGUAGE": language, "HEDDLE_SITE_TEXTS": str(WORK / "texts"),
                   "HEDDLE_SITE_API": "1" if api else "", "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-q", "-E", "-a", "-W", "--keep-going", "-b", "html", "-c", SITE, "-d", WORK / f"{language}.doctrees"]
    command = [ENVIRONMENT / "bin/sphinx-build", *options, WORK / language, folder]
    return subprocess.Popen([str(word) for word in command], env=environment)


class Page(HTMLParser):
    """What a page has: names that links may lead to, links, and what a browser fetches to show it."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.fetched = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names.update(value for key in ("id", "name") if (value := values.get(key)))
        if "src" in values:
            self.fetched.append(values["src"] or "")
        if "srcset" in values:
            self.fetched += [part.split()[0] for part in values["srcset"].split(",")]
        if "href" in values:
            (self.links if tag == "a" else self.fetched).append(values["href"] or "")
        self.fetched += fetched_by_style(values.get("style") or "")

    def handle_data(self, data):
        self.fetched += fetched_by_style(data) if self.cdata_elem == "style" else []


def fetched_by_style(text):
    return [a or b for a, b in re.findall(r"url\(\s*[\"']?([^\"')\s]+)|@import\s+[\"']([^\"']+)", text)]


def elsewhere(address):
    return not address.startswith(("data:", "javascript:")) and bool(urlsplit(address).scheme or address.startswith("//"))


def page_faults(out):
    """Links of the built pages that lead nowhere, and what would be fetched from other hosts."""
    found = {file: Page(file.read_text(encoding="utf-8", errors="replace")) for file in sorted(out.rglob("*.html"))}
    for file, page in found.items():
        name = file.relative_to(out)
        yield from (f"{name}: would fetch {address}" for address in page.fetched if elsewhere(address))
        for address in page.links + page.fetched:
            parts = urlsplit(address)
            if parts.scheme or address.startswith("//"):
                continue
            to = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not to.is_file():
                yield f"{name}: leads nowhere: {address}"
            # Doxygen links to parts of pages that it then leaves out.
            elif (parts.fragment and to in found and file.parent != out / "api"
                  and unquote(parts.fragment) not in found[to].names):
                yield f"{name}: no such place on the page: {address}"
    for file in sorted(out.rglob("*.css")):
        fetched = fetched_by_style(file.read_text(encoding="utf-8", errors="replace"))
        yield from (f"{file.relative_to(out)}: would fetch {address}" for address in fetched if elsewhere(address))


def build(out, api):
    install()
    write_sources()
    shutil.rmtree(out, ignore_errors=True)
    if any([process.wait() for process in [start_sphinx(language, out, api) for language in pages.LANGUAGES]]):
        sys.exit("site: Sphinx complains, see above")
    if api:
        shutil.copytree(api, out / "api")
    for folder in (out, out / "zh"):
        for name in (".buildinfo", "objects.inv"):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / "_sources", ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/site")
    parser.add_argument("--api", type=Path, default=ROOT / "build/release/docs/html")
    arguments = parser.parse_args()
    start = time.monotonic()
    if complaints := list(pages.faults()):
        sys.exit("\n".join(complaints))
    out, api = arguments.out.resolve(), arguments.api.resolve()
    build(out, api if (api / "index.html").exists() else None)
    if complaints := list(page_faults(out)):
        sys.exit("\n".join(complaints))
    print(f"{out}/index.html: {len(list(out.rglob('*.html')))} pages, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
