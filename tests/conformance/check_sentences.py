#!/usr/bin/env python3
"""Vectors of sentences by a real model, against sentence-transformers' from the same directory.

    check_sentences.py --heddle PROGRAM DIRECTORY

DIRECTORY is a model as sentence-transformers saves it, such as all-MiniLM-L6-v2. Every number of
every vector must agree to 1e-5, many texts at a time and one by one, which must have the same bits.
Exits with 1 when one does not.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
from sentence_transformers import SentenceTransformer

TOLERANCE = 1e-5

SENTENCES = """
A cat sat on the mat.
The kitten lay down on the rug.
Interest rates were raised by a quarter of a point.
x

   spaces    in many   places
ALL CAPITALS, AND: PUNCTUATION!?
e-mail@example.org, https://example.org/a?b=c&d=1 and 3.14159
naïve café, Ångström, straße, İstanbul, ﬁne ligature
Zażółć gęślą jaźń.
Příliš žluťoučký kůň úpěl ďábelské ódy.
Ein Satz mit Donaudampfschifffahrtsgesellschaftskapitän darin.
El ingenioso hidalgo don Quijote de la Mancha
Il était une fois une petite maison au bord de la mer.
O vento sopra onde quer; ouves a sua voz.
Nel mezzo del cammin di nostra vita
Hver dag er en god dag at lære noget nyt.
Η γρήγορη καφέ αλεπού πηδάει πάνω από τον τεμπέλη σκύλο.
Съешь же ещё этих мягких французских булок, да выпей чаю.
Їжак їсть яблуко під старим дубом.
Արագ շագանակագույն աղվեսը
სწრაფი ყავისფერი მელა
השועל החום המהיר קופץ מעל הכלב העצלן
الثعلب البني السريع يقفز فوق الكلب الكسول
سلام دنیا، حال شما چطور است؟
तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है।
দ্রুত বাদামী শিয়াল অলস কুকুরের উপর লাফ দেয়
வேகமான பழுப்பு நரி
రేపు ఉదయం వర్షం పడవచ్చు
สวัสดีชาวโลก วันนี้อากาศดี
Con cáo nâu nhanh nhẹn nhảy qua con chó lười.
敏捷的棕色狐狸跳过懒狗。
臺灣的茶很好喝，我每天都喝。
素早い茶色の狐はのろまな犬を飛び越える。
カタカナとひらがなと漢字が混ざった文です
다람쥐 헌 쳇바퀴에 타고파
ᓄᓇᕗᑦ ᐃᓄᒃᑎᑐᑦ
🙂 emoji 👩‍👩‍👧‍👦 and flags 🇩🇰🇯🇵
∀x ∈ ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β
for (int i = 0; i < n; ++i) sum += a[i] * b[i];
SELECT name FROM people WHERE age > 30 ORDER BY name;
[CLS] written out [SEP] is text, not a token [MASK]
combining: é vs é, Å vs Å
zero​width and soft­hyphen
tab	separated	words
One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen.
Mitochondria are the powerhouse of the cell.
How do I reset the password of my account?
I cannot log in because I forgot my password.
The proof is left as an exercise for the reader.
Rain is expected in the north, with sunny spells later in the day.
supercalifragilisticexpialidocious antidisestablishmentarianism pneumonoultramicroscopic
""".strip("\n").split("\n")
LONG = " ".join(["The quick brown fox jumps over the lazy dog, and the dog does not mind."] * 12)


def special_as_text(model, text):
    """A text that spells a special token is plain text here; sentence-transformers makes it one."""
    return not any(token in text for token in model.tokenizer.all_special_tokens)


def vectors(program, directory, texts, batch, folder):
    file = Path(folder) / "vectors.npy"
    lines = "".join(text + "\n" for text in texts)
    done = subprocess.run([program, "embed", directory, "--batch", str(batch), "--npy", str(file)],
                          input=lines.encode(), capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
    return numpy.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("directory")
    options = parser.parse_args()
    model = SentenceTransformer(options.directory, device="cpu")
    texts = [text for text in (*SENTENCES, LONG) if special_as_text(model, text)]
    theirs = model.encode(texts, batch_size=8)
    with tempfile.TemporaryDirectory() as folder:
        ours = [vectors(options.heddle, options.directory, texts, batch, folder)
                for batch in (1, 7, 64)]
    worst = numpy.abs(ours[0] - theirs).max(1)
    alike = all((other == ours[0]).all() for other in ours)
    for text, error in zip(texts, worst):
        if not error <= TOLERANCE:
            print(f"differs by {error:.2e}: {text[:60]}")
    print(f"{len(texts)} sentences, largest difference {worst.max():.2e}, "
          f"{'the same' if alike else 'NOT the same'} bits in any batch")
    return 0 if alike and (worst <= TOLERANCE).all() and len(texts) >= 50 else 1


if __name__ == "__main__":
    sys.exit(main())
