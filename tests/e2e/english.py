"""Finds English in a text that should be Chinese.

Left aside: commands to type, paths, keys of recipes, options, numbers with their units, what is all capitals
(JSON, FILE), what names a line of a list, titles 「in English」, and NAMES, which are the same in Chinese. Every other word of three
letters or more is English that somebody forgot.
"""

import re

# Names of things, and the values that recipes have for them.
NAMES = set("""
heddle Heddle shell cuda NVIDIA token nat bleu logits relu softmax kFLOP FLOPs Transformer RoPE ALiBi GitHub Debian PyTorch Python one-hot
decoder encoder encoder-decoder vit char word byte bpe generic transformers gguf
""".split())

LISTED = re.compile(r"^ {2,}[a-z0-9-]+(?= {2,})|\bapt-get install [a-z0-9-]+|「[!-~ ]*」")
COMMAND = re.compile(r"\bheddle(?: [!-~]+)+")
# What has more than letters in it.
NO_WORD = re.compile(r"[A-Za-z0-9~-]*(?:[/_=+0-9<%$]|\.(?=\w))[!-~]*|(?<![\w-])--?[a-z][a-z-]*")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]{2,}")


def english_in(text, also=()):
    """The words of a line, each once, in their order; `also`: further names that are no English here."""
    for part in (LISTED, COMMAND, NO_WORD):
        text = part.sub(" ", text)
    words = dict.fromkeys(WORD.findall(text))
    return [w for w in words if not (w.isupper() or w in NAMES or w in also)]


def check_itself():
    """A check that finds nothing shows nothing."""
    for text, words in (("第 3 步：validation loss 2.5", ["validation", "loss"]),
                        ("继续：heddle train runs/x --resume", []),
                        ("  --lang VALUE   语言", []),
                        ("写入 runs/text/report.html，max_length，12 MB", []),
                        ("stopped.", ["stopped"]),
                        ("  window-mask   成立   the window (best)", ["the", "window", "best"])):
        found = english_in(text)
        assert found == words, (text, found, words)


check_itself()
