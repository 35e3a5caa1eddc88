"""Search in Chinese without a dictionary of words: what is looked for is every two characters that stand together.

Sphinx asks a package for the words of a Chinese text, and its page cannot ask it about what a reader types. Pairs
need none: 注意力头 is 注意, 意力 and 力头 in the index and in the query, and a page must have all of them. Single
characters are indexed too, for those who type only one. What is not Chinese is English: words, by their stems.
"""

import re

from sphinx.search.en import SearchEnglish

HAN = "\u3400-\u9fff"


def pairs(run):
    return [run[i:i + 2] for i in range(len(run) - 1)]


class SearchChinese(SearchEnglish):
    lang = "zh"
    js_splitter_code = r"""
function splitQuery(query) {
  const runs = query.match(/[㐀-鿿]+|(?:(?![㐀-鿿])[\p{L}\p{N}_])+/gu) || [];
  return runs.flatMap((run) => /[㐀-鿿]/.test(run) && run.length > 1
    ? Array.from({ length: run.length - 1 }, (_, at) => run.slice(at, at + 2)) : [run]);
}
"""

    def split(self, input):
        runs = re.findall(f"[{HAN}]+|(?:(?![{HAN}])\\w)+", input)
        return [word for run in runs for word in ([*run, *pairs(run)] if re.match(f"[{HAN}]", run) else [run])]
