"""How Sphinx makes the site. scripts/make_site.py calls it once for each language; pages.py says what the pages are.

The folder that Sphinx reads has an empty file for each page, which stands for a document of the repository: its
text is taken from there, with its links turned, when Sphinx asks for it.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import pages  # noqa: E402
from search_zh import SearchChinese  # noqa: E402

READERS_LANGUAGE = os.environ["HEDDLE_SITE_LANGUAGE"]
CHINESE = READERS_LANGUAGE == "zh"
SOURCES = set()  # files of the repository that pages link to

project = "Heddle"
language = "zh_CN" if CHINESE else "en"
locale_dirs = [os.environ["HEDDLE_SITE_TEXTS"]]  # what the theme says in Chinese, compiled from zh_CN.po
extensions = ["myst_parser"]
root_doc = pages.HOME
smartquotes = False
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]  # excerpts need not be whole programs
myst_heading_anchors = 6
myst_url_schemes = {"http": None, "https": None, "mailto": None, "site": {"url": "{{path}}"}}

html_theme = "furo"
html_title = "Heddle"
html_show_copyright = html_show_sphinx = html_show_sourcelink = html_copy_source = False
html_use_index = False
html_search_language = READERS_LANGUAGE
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
templates_path = [str(HERE / "templates")]
html_sidebars = {"**": ["sidebar/brand.html", "sidebar/languages.html", "sidebar/search.html",
                        "sidebar/scroll-start.html", "sidebar/navigation.html", "sidebar/api.html",
                        "sidebar/scroll-end.html"]}
html_context = {"chinese": CHINESE, "api_pages": bool(os.environ.get("HEDDLE_SITE_API"))}
html_theme_options = {"top_of_page_buttons": []}
pygments_style, pygments_dark_style = "tango", "github-dark"


def read_document(_app, page, text):
    text[0], linked = pages.page_text(page, READERS_LANGUAGE)
    SOURCES.update(linked)


def source_pages(app):
    """A page for each file that is linked to, with its text."""
    for name in sorted(SOURCES):
        text = (pages.ROOT / name).read_text(encoding="utf-8")
        kind = {".h": "cpp", ".cpp": "cpp", ".cu": "cpp", ".py": "python", ".toml": "toml"}.get(Path(name).suffix, "none")
        body = app.builder.highlighter.highlight_block(text, kind, force=True)
        yield f"sources/{name}", {"title": name, "body": f"<h1>{name}</h1>{body}", "furo_hide_toc": True}, "page.html"


def setup(app):
    app.add_search_language(SearchChinese)
    app.connect("source-read", read_document)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
