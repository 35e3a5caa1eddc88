"""Rows of options.py about trained models: generate, translate, tag, classify, embed, eval, logits, inspect."""

import json
import math
import struct

from option_table import WORK, ask, check, differs, heddle, row, run


# ---- Generation. Scores of the next token are asked for by another command.

def next_scores(prompt):
    return ask("logits", "language", "--prompt", prompt)["logits"][-1]


@row("generate --prompt", "generate --tokens", "generate --temperature", "generate --top-k",
     "generate --top-p", "generate --min-p", "generate --repetition-penalty", "generate --seed",
     "generate --samples")
def drawing():
    def one_token(*options, prompt="ant b", samples=300):
        d = ask("generate", "language", "--prompt", prompt, "--tokens", 1, "--samples", samples,
                *options, *(() if "--seed" in options else ("--seed", 0)))
        return [s["tokens"][0] for s in d.get("samples", [d])]
    scores = next_scores("ant b")
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    exps = [math.exp(s - max(scores)) for s in scores]
    shares = [e / sum(exps) for e in exps]
    plain = one_token()
    check(len(plain) == 300, "generate --samples", len(plain))
    for token in order[:2]:  # about as often as its probability says
        share = plain.count(token) / 300
        check(abs(share - shares[token]) < 5 * math.sqrt(shares[token] / 300), "shares", share, shares)
    check(set(one_token("--temperature", 0, samples=3)) == {order[0]}, "generate --temperature 0")
    cold = [math.exp(4 * (s - max(scores))) for s in scores]
    share = one_token("--temperature", 0.25).count(order[0]) / 300
    check(abs(share - 1 / sum(cold)) < 0.15, "generate --temperature 0.25", share, 1 / sum(cold))
    check(set(one_token("--top-k", 2)) == set(order[:2]), "generate --top-k")
    p = shares[order[0]] + shares[order[1]] / 2  # the second is needed to reach it
    check(set(one_token("--top-p", p)) == set(order[:2]), "generate --top-p")
    least = (shares[order[2]] + shares[order[3]]) / 2 / shares[order[0]]
    check(set(one_token("--min-p", least)) == set(order[:3]), "generate --min-p")
    check(one_token("--seed", 1) != one_token("--seed", 2), "generate --seed")
    other = next_scores("bee ")
    check(one_token("--temperature", 0, prompt="bee ", samples=1)[0] == other.index(max(other)),
          "generate --prompt")
    d = ask("generate", "language", "--prompt", "ant", "--tokens", 9)
    check(len(d["tokens"]) == 9 and d["prompt_tokens"] == 3, "generate --tokens", d)
    # A score that is positive is divided by it, one that is negative is multiplied.
    seen = json.loads(heddle("tokenize", "language", text="ant\n"))
    greedy = ask("generate", "language", "--prompt", "ant", "--tokens", 6, "--temperature", 0,
                 "--repetition-penalty", 3)["tokens"]
    for token in greedy:
        scores = ask("logits", "language", "--tokens", ",".join(map(str, seen)))["logits"][-1]
        scores = [s if i not in seen else s / 3 if s > 0 else s * 3 for i, s in enumerate(scores)]
        check(token == scores.index(max(scores)), "generate --repetition-penalty", greedy, token)
        seen.append(token)


@row("generate --stop", "generate --slide", "generate --no-cache", "generate --beam",
     "generate --beam-kind", "generate --length-penalty", "generate --norm", "generate --best")
def texts():
    plain = ("generate", "language", "--prompt", "ant", "--temperature", 0, "--tokens", 12)
    text = heddle(*plain)
    stop = text[6:8]
    check(heddle(*plain, "--stop", stop).rstrip("\n") == text[:text.index(stop, 3)].rstrip("\n"),
          "generate --stop", text, stop)
    check(heddle(*plain, "--no-cache") == text, "generate --no-cache gives the same text")
    # What the cache saves: 600 steps of one token, or of 300 in the mean.
    long = ("generate", "language", "--prompt", "ant", "--temperature", 0, "--tokens", 600)
    with_cache, without = (min(ask(*long, *o)["seconds"] for _ in range(2)) for o in ((), ("--no-cache",)))
    check(without > 2 * with_cache, "generate --no-cache", with_cache, without)
    # Learned positions end with the context.
    heddle("train", "language.toml", "--set", "model.attention.position=learned", "--out", "learned")
    far = ("generate", "learned", "--prompt", "ant", "--temperature", 0, "--tokens", 60)
    check(run(*far).returncode == 2 and len(ask(*far, "--slide")["tokens"]) == 60, "generate --slide")
    beam = ("generate", "language", "--prompt", "ant", "--tokens", 3, "--beam")
    best = [b["score"] for b in ask(*beam, 4, "--best", 3)["best"]]
    check(len(best) == 3 and best == sorted(best, reverse=True), "generate --best", best)
    check(len(heddle(*beam, 4, "--best", 3).splitlines()) == 3, "generate --best for people")
    # Three tokens: the sum of their log-probabilities, divided by 3^p or by (8 / 6)^p.
    for given, by in [(("--length-penalty", 0), 1), (("--length-penalty", 1), 3),
                      (("--length-penalty", 2), 9),
                      (("--length-penalty", 2, "--norm", "gnmt"), (8 / 6) ** 2)]:
        d = ask(*beam, 4, *given)
        check(abs(d["score"] - d["log_probability"] / by) < 1e-6, "--length-penalty, --norm", given, d)
    # Of all texts of three tokens a beam as wide as all finds the most probable one.
    one, all_texts = (ask(*beam, b)["log_probability"] for b in (1, 400))
    check(all_texts > one - 1e-6, "generate --beam", one, all_texts)
    check(abs(one - greedy_log_probability("ant", 3)) < 1e-4, "generate --beam 1 is greedy", one)
    # Without an end token nothing finishes, and both kinds are the same.
    kinds = [ask(*beam, 4, "--beam-kind", kind)["log_probability"] for kind in ("narrowing", "full")]
    check(kinds[0] == kinds[1] and run(*beam, 4, "--beam-kind", "wide").returncode != 0,
          "generate --beam-kind", kinds)


def greedy_log_probability(prompt, tokens):
    """By the scores that another command tells."""
    ids, total = json.loads(heddle("tokenize", "language", text=prompt + "\n")), 0
    for _ in range(tokens):
        scores = ask("logits", "language", "--tokens", ",".join(map(str, ids)))["logits"][-1]
        ids.append(scores.index(max(scores)))
        total -= math.log(sum(math.exp(s - max(scores)) for s in scores))
    return total


@row("translate --beam", "translate --beam-kind", "translate --length-penalty", "translate --norm", "translate --best",
     "translate --batch", "translate --longest-ratio", "translate --longest-extra")
def translating():
    lines = "ant bee cat\ndog\neel ant\n"
    many = heddle("translate", "reverse", "--best", 3, "--beam", 4, text="ant bee\n").split("\n")
    check(len([line for line in many if "\t" in line]) == 3, "translate --best", many)
    best = ("translate", "reverse", "--best", 2)
    differs(best, "--length-penalty", 0, lines)
    plain, _ = differs((*best, "--length-penalty", 2), "--norm", "gnmt", lines)
    check(heddle(*best, "--length-penalty", 2, "--batch", 1, text=lines) == plain, "translate --batch")
    done = run("translate", "reverse", "--batch", 0, text=lines)
    check(done.returncode == 2 and b"batch" in done.stderr, "translate --batch 0", done.stderr)
    narrow, wide = (float(heddle("translate", "reverse", "--best", 2, "--length-penalty", 0, "--beam", b,
                                 text="ant bee\n").split("\t")[0]) for b in (2, 30))
    check(wide >= narrow, "translate --beam", narrow, wide)
    # A full beam goes on beside the texts that have ended; as wide as all texts it is the same.
    differs(("translate", "reverse", "--best", 3, "--beam", 3, "--length-penalty", 1), "--beam-kind", "full",
            lines)
    check(len(heddle(*best, "--beam", 2, text="ant\n")) > 0
          and run(*best, "--beam", 1, text="ant\n").returncode == 2, "translate --best is of the beam")
    # Nothing was learned, so it may write as much as it is allowed to: 0 · tokens + 1.
    short = ("translate", "reverse", "--beam", 1, "--longest-ratio", 0, "--longest-extra")
    for extra in (1, 3):
        for line in heddle(*short, extra, text=lines).splitlines():
            check(len(line.split()) <= extra, "translate --longest-extra", extra, line)
    longest = max(len(x.split()) for x in heddle("translate", "reverse", "--beam", 1,
                                                 "--longest-ratio", 3, "--longest-extra", 1,
                                                 text=lines).splitlines())
    check(longest > 1, "translate --longest-ratio", longest)


@row("tag --input", "tag --batch", "classify --batch")
def labelling():
    lines = heddle("tag", "tagger", text="ant bee\ncat\n")
    check(heddle("tag", "tagger", "--input", "words", text="ant\nbee\n\ncat\n") == lines, "tag --input")
    # As lines the same input is three sentences of a word.
    check(heddle("tag", "tagger", text="ant\nbee\n\ncat\n").count("\n\n") > lines.count("\n\n"),
          "tag --input lines")
    check(heddle("tag", "tagger", "--batch", 1, text="ant bee\ncat\n") == lines, "tag --batch")
    done = run("tag", "tagger", "--batch", 0, text="ant\n")
    check(done.returncode == 2 and b"batch" in done.stderr, "tag --batch 0", done.stderr)
    moods = [ask("classify", "mood", "--batch", n, text="ant\nbee cat\ndog\n") for n in (1, 64)]
    check(json.dumps(moods[0])[:60] == json.dumps(moods[1])[:60], "classify --batch", moods)
    done = run("classify", "mood", "--batch", 0, text="ant\n")
    check(done.returncode == 2 and b"batch" in done.stderr, "classify --batch 0", done.stderr)


@row("embed --pool", "embed --normalise", "embed --no-normalise", "embed --batch", "embed --npy")
def embedding():
    text = "ant\nbee cat\ndog\n"
    plain = ask("embed", "mood", text=text)
    check(plain["pool"] == "class" and not plain["normalised"], "embed", plain)
    lines = [json.loads(line) for line in heddle("embed", "mood", text=text).splitlines()]
    near = all(abs(x - y) < 1e-6 for line, vector in zip(lines, plain["vectors"]) for x, y in zip(line, vector))
    check(near and len(lines) == 3, "embed for people", lines)
    mean = ask("embed", "mood", "--pool", "mean", text=text)
    check(mean["pool"] == "mean" and mean["vectors"] != plain["vectors"], "embed --pool", mean)
    whole = ask("embed", "mood", "--normalise", text=text)
    for raw, unit in zip(plain["vectors"], whole["vectors"]):
        length = math.sqrt(sum(x * x for x in raw))
        check(all(abs(x / length - y) < 1e-6 for x, y in zip(raw, unit)), "embed --normalise", unit)
    same = ask("embed", "mood", "--no-normalise", "--batch", 1, text=text)
    check(same == plain, "embed --batch, --no-normalise", same)
    done = run("embed", "mood", "--normalise", "--no-normalise", text=text)
    check(done.returncode == 2 and b"--no-normalise" in done.stderr, "embed", done.stderr)
    done = run("embed", "mood", "--batch", 0, text=text)
    check(done.returncode == 2 and b"--batch" in done.stderr, "embed --batch 0", done.stderr)
    exact = ask("embed", "mood", "--precision", "fp64", text=text)["vectors"]
    flat = [x for row in exact for x in row]
    short = [struct.unpack("<f", struct.pack("<f", x))[0] for x in flat]
    check(flat != short, "embed --precision fp64 has digits that f32 does not have", flat[:3])
    lines64 = [json.loads(line) for line in heddle("embed", "mood", "--precision", "fp64", text=text).splitlines()]
    check(lines64 == exact, "embed --precision fp64 for people", lines64[0][:3], exact[0][:3])
    check(heddle("embed", "mood", "--npy", "vectors.npy", text=text) == "", "embed --npy")
    data = (WORK / "vectors.npy").read_bytes()
    rows = struct.unpack(f"<{3 * len(lines[0])}f", data[-12 * len(lines[0]):])
    check(all(abs(x - y) < 1e-6 for x, y in zip(rows, sum(lines, []))), "embed --npy", rows[:3])
    done = run("embed", "mood", text="ant " * 5000 + "\n")
    check(done.returncode == 2 and b"line 1" in done.stderr and b"5000" in done.stderr, "embed: too long", done.stderr)
    done = run("embed", "language", text=text)
    check(done.returncode == 2 and b"encoder" in done.stderr, "embed of a decoder", done.stderr)


@row("eval --text", "eval --window", "eval --stride", "eval --skip")
def reading_in_windows():
    length = len((WORK / "other.txt").read_text())
    text = ("eval", "language", "--text", "other.txt", "--window", 6)
    halves = ask(*text)
    check(halves["tokens"] == length and halves["counted"] == length - 1, "eval --text", halves)
    for stride in (3, 2):
        told = ask(*text, "--stride", stride)
        check(told["windows"] == 1 + -(-(length - 6) // stride), "eval --stride", told)
        check((told["loss"] == halves["loss"]) == (stride == 3), "eval --stride", told, halves)
    whole = ask(*text, "--stride", 6, "--skip", 4)
    check(whole["windows"] == length // 6 and whole["counted"] == length // 6 * 2, "eval --skip", whole)
    check(ask("eval", "language", "--text", "other.txt", "--window", 4)["loss"] != halves["loss"],
          "eval --window")


@row("eval --split", "eval --data", "eval --set", "eval --batch", "eval --beam",
     "eval --beam-kind", "eval --length-penalty", "eval --norm", "eval --no-bleu")
def evaluating():
    # A window predicts all of a text but its first character.
    size = {name: len((WORK / f"{name}.txt").read_text()) - 1 for name in ("text", "other", "third")}
    check(ask("eval", "language")["tokens"] == size["other"], "eval")
    check(ask("eval", "language", "--split", "test")["tokens"] == size["third"], "eval --split")
    check(ask("eval", "language", "--data", "text.txt")["tokens"] == size["text"], "eval --data")
    check(ask("eval", "language", "--split", "test", "--set", "data.test=text.txt")["tokens"]
          == size["text"], "eval --set")
    for model in (("language",), ("reverse", "--no-bleu")):  # the same bits
        losses = [ask("eval", *model, "--batch", n)["loss"] for n in (1, 3, 16)]
        check(len(set(losses)) == 1, "eval --batch", model, losses)
    done = run("eval", "language", "--batch", 0)
    check(done.returncode == 2 and b"--batch" in done.stderr, "eval --batch 0", done.stderr)
    scored = ask("eval", "reverse")
    check("bleu" in scored and "bleu" not in ask("eval", "reverse", "--no-bleu"), "eval --no-bleu", scored)
    # Its parts are those of the translations that `translate` writes with the same options.
    pairs = [line.split("\t") for line in (WORK / "pairs.v.tsv").read_text().splitlines()]
    wanted = [target.split() for _, target in pairs]
    length = sum(map(len, wanted))
    for options in (("--beam", 1, "--length-penalty", 0), ("--beam", 4, "--length-penalty", 0),
                    ("--beam", 4, "--length-penalty", 3, "--norm", "gnmt", "--beam-kind", "full")):
        lines = [line.split() for line in
                 heddle("translate", "reverse", *options, text="".join(s + "\n" for s, _ in pairs))
                 .splitlines()]
        words = sum(map(len, lines))
        hits = sum(min(line.count(w), target.count(w)) for line, target in zip(lines, wanted, strict=True)
                   for w in set(line))
        told = ask("eval", "reverse", *options)
        check(abs(told["bleu_precisions"][0] - 100 * hits / words) < 1e-6, f"eval {options}", hits, words,
              told)
        check(abs(told["brevity_penalty"] - min(1, math.exp(1 - length / words))) < 1e-6,
              f"eval {options}: brevity", length, words, told)


@row("logits --tokens", "logits --prompt", "logits --target", "logits --npy", "logits --prefix")
def scores():
    ids = json.loads(heddle("tokenize", "language", text="cat\n"))
    by_text = ask("logits", "language", "--prompt", "cat")
    check(ask("logits", "language", "--tokens", ",".join(map(str, ids)))["logits"] == by_text["logits"],
          "logits --tokens")
    check(ask("logits", "language", "--prompt", "dog")["logits"] != by_text["logits"], "logits --prompt")
    (WORK / "l.npy").unlink(missing_ok=True)
    heddle("logits", "language", "--prompt", "cat", "--npy", "l.npy")
    values = struct.unpack(f"<{3 * len(by_text['logits'][0])}f", (WORK / "l.npy").read_bytes()[128:])
    flat = [x for r in by_text["logits"] for x in r]
    check(all(abs(x - y) < 1e-5 for x, y in zip(values, flat, strict=True)), "logits --npy")
    rows = [ask("logits", "reverse", "--prompt", "ant bee", *target)["shape"][0]
            for target in ((), ("--target", "1,2,3"))]
    check(rows == [1, 3], "logits --target", rows)
    differs(("logits", "prefix", "--prompt", "ant"), "--prefix", 1)


@row("logits --image")
def scores_of_an_image():
    every = (WORK / "images.idx").read_bytes()
    count, height, width = struct.unpack(">III", every[4:16])
    guesses = ask("classify", "halves", "images.idx")["predictions"]
    check(len(guesses) == count, "classify", guesses)
    for i in (1, 2):
        at = 16 + i * height * width
        (WORK / "one.idx").write_bytes(every[:4] + struct.pack(">III", 1, height, width) + every[at:at + height * width])
        powers = [math.exp(x) for x in ask("logits", "halves", "--image", "one.idx")["logits"][0]]
        check(all(abs(p / sum(powers) - guesses[i]["probabilities"][str(c)]) < 1e-5 for c, p in enumerate(powers)),
              "logits --image", powers, guesses[i])


@row("inspect --prompt", "inspect --target", "inspect --image", "inspect --index", "inspect --layer",
     "inspect --head", "inspect --rows", "inspect --out", "inspect --beam", "inspect --beam-kind",
     "inspect --length-penalty", "inspect --norm", "inspect --against")
def inspecting():
    heddle("train", "language.toml", "--set", "model.layers=2", "--out", "deep")
    d = ask("inspect", "deep", "--prompt", "ant bee", "--layer", "1", "--head", "1", "--rows", "2:4")
    part, = d["weights"]
    check(part["layer"] == "1" and part["head"] == 1 and part["first_row"] == 2
          and len(part["rows"]) == 2, "inspect --layer, --head, --rows", part)
    check(len(d["tokens"]["source"]) == 7, "inspect --prompt", d["tokens"])
    heddle("inspect", "deep", "--prompt", "ant", "--out", "look.html")
    check("<html" in (WORK / "look.html").read_text(), "inspect --out")
    said = heddle("inspect", "deep", "--prompt", "ant")
    check(said.startswith("deep/inspect.html: ") and "<html" in (WORK / "deep/inspect.html").read_text(),
          "inspect without --out", said)
    check("sides" in ask("inspect", "deep", "--against", "language", "--prompt", "a"), "inspect --against")
    images = [ask("inspect", "halves", "--image", "images.idx", "--index", i) for i in (0, 3)]
    check(images[0]["layers"] != images[1]["layers"], "inspect --image, --index")
    given = ask("inspect", "reverse", "--prompt", "ant bee", "--target", "dog")
    check(given["tokens"]["target"][1:] == ["dog"], "inspect --target", given["tokens"])
    for options in (("--beam", 1, "--length-penalty", 0), ("--beam", 4, "--length-penalty", 0),
                    ("--beam", 4, "--length-penalty", 3, "--norm", "gnmt", "--beam-kind", "full")):
        told = ask("inspect", "reverse", "--prompt", "ant bee cat", *options)["answer"]
        wanted = heddle("translate", "reverse", *options, text="ant bee cat\n").rstrip("\n")
        check(told == wanted, f"inspect {options}", told, wanted)


@row("export --to", "export --out", "export --type", "export --json")
def exports():
    """The same scores out of what is written, and a fourth of the bytes in q8_0."""
    train_to_export()
    scores = ask("logits", "exported", "--tokens", "1,2,3")["logits"]
    made = ask("export", "exported", "--to", "hf", "--out", "as-hf")
    check(made["family"] == "llama" and made["tensors"] > 10, "export --json", made)
    check((WORK / "as-hf/config.json").exists(), "export --to hf --out")
    check(ask("logits", "as-hf", "--tokens", "1,2,3")["logits"] == scores, "export --to hf", scores)
    sizes = []
    for kind in ("f32", "q8_0"):
        heddle("export", "exported", "--to", "gguf", "--out", f"{kind}.gguf", "--type", kind)
        sizes.append((WORK / f"{kind}.gguf").stat().st_size)
    check(sizes[1] < 0.6 * sizes[0], "export --type", sizes)
    found = ask("logits", "f32.gguf", "--tokens", "1,2,3")["logits"]
    check(all(abs(x - y) < 1e-4 for a, b in zip(found, scores) for x, y in zip(a, b)),
          "export --to gguf", found, scores)


def train_to_export():
    (WORK / "exported.toml").write_text("""
[model]
kind = "decoder"
layers = 2
width = 64
norm = "rms"
ffn = "swiglu"
ffn_width = 96
bias = false
[model.attention]
heads = 4
kv_heads = 2
position = "rope"
[data]
text = "text.txt"
tokenizer = "bpe:280"
context = 16
[train]
steps = 3
batch = 4
""")
    heddle("train", "exported.toml", "--out", "exported")
