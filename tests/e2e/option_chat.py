"""Rows of options.py about `heddle chat`, and a conversation in a terminal: Ctrl-C, commands, history."""

import json
import math
import os
import pty
import random
import re
import select
import signal
import struct
import time

from option_table import HEDDLE, WORK, ask, check, heddle, row, run

PLAIN = "{% for m in messages %}{{ m.content }} {% endfor %}"


def chat(*options, text="ant\n", template=PLAIN):
    (WORK / "plain.jinja").write_text(template)
    seed = () if "--seed" in options else ("--seed", 0)
    return ask("chat", "language", "--template", "plain.jinja", *seed, *options, text=text)


@row("chat --template", "chat --system", "chat --show-prompt", "chat --json", "chat --tokens",
     "chat --seed", "chat --stop")
def conversation():
    d = chat("--tokens", 3, "--show-prompt", text="ant\nbee\n")
    check([m["role"] for m in d["messages"]] == ["user", "assistant"] * 2, "chat --json", d)
    check([len(a["tokens"]) for a in d["answers"]] == [3, 3], "chat --tokens", d)
    sent = ["".join(t["text"] for t in a["prompt"]) for a in d["answers"]]
    check(sent == ["ant ", f"ant {d['answers'][0]['text']} bee "], "chat --show-prompt", sent)
    check("prompt" not in chat("--tokens", 3)["answers"][0], "without --show-prompt")
    shown = run("chat", "language", "--template", "plain.jinja", "--show-prompt", "--tokens", 1,
                "--seed", 0, text="bee\n").stderr.decode()
    check([line.split("\t")[1] for line in shown.splitlines()] == ['"b"', '"e"', '"e"', '" "'],
          "chat --show-prompt for people", shown)
    d = chat("--system", "dog", "--tokens", 1)
    check(d["messages"][0] == {"role": "system", "content": "dog"} and d["answers"][0]["prompt_tokens"] == 8,
          "chat --system", d)
    check(chat("--tokens", 1, template="{{ messages[0].content }}")["answers"][0]["prompt_tokens"] == 3,
          "chat --template")
    check(run("chat", "language", text="ant\n").returncode == 2, "chat without a template is refused")
    check(chat("--tokens", 8)["answers"] and chat("--tokens", 8)["seed"] == 0
          and len({chat("--tokens", 8, "--seed", s)["answers"][0]["text"] for s in (1, 2, 3, 4)}) > 1,
          "chat --seed")
    text = chat("--tokens", 8)["answers"][0]["text"]
    stopped = chat("--tokens", 8, "--stop", text[2:4])["answers"][0]
    check(text.startswith(stopped["text"]) and len(stopped["text"]) <= 2 and stopped["finish"] == "stop",
          "chat --stop", text, stopped)
    done = run("chat", "language", "--template", "plain.jinja", text="ant bee cat dog eel\n")
    check(done.returncode == 2 and b"20 tokens" in done.stderr and b"16" in done.stderr,
          "chat: a context that is too short is told with both numbers", done.stderr)


@row("chat --temperature", "chat --top-k", "chat --top-p", "chat --min-p", "chat --repetition-penalty",
     "chat --presence-penalty", "chat --frequency-penalty", "chat --logit-bias", "chat --no-defaults",
     "chat --precision", "chat --weights", "chat --device")
def same_options():
    """What `generate` draws after the same tokens, with the same options."""
    for options in [("--temperature", 0), ("--temperature", 2), ("--top-k", 2), ("--top-p", 0.5),
                    ("--min-p", 0.3), ("--repetition-penalty", 9), ("--presence-penalty", 9),
                    ("--frequency-penalty", 9), ("--logit-bias", "3=99"), ("--precision", "bf16"),
                    ("--weights", "bf16")]:
        told = [chat("--tokens", 10, "--seed", s, *options)["answers"][0]["tokens"] for s in range(4)]
        written = [ask("generate", "language", "--prompt", "ant ", "--tokens", 10, "--seed", s, *options)["tokens"]
                   for s in range(4)]
        check(told == written, f"chat {options[0]}", told, written)
        plain = [chat("--tokens", 10, "--seed", s)["answers"][0]["tokens"] for s in range(4)]
        check(options[0] in ("--precision", "--weights") or told != plain, f"chat {options[0]} does something", told)
    settings = WORK / "language" / "generation_config.json"
    settings.write_text(json.dumps({"do_sample": False}))
    try:
        told = [chat("--tokens", 10, "--seed", s)["answers"][0]["tokens"] for s in (1, 2, 3)]
        drawn = [chat("--tokens", 10, "--seed", s, "--no-defaults")["answers"][0]["tokens"] for s in (1, 2, 3)]
        check(len(set(map(tuple, told))) == 1 and len(set(map(tuple, drawn))) > 1, "chat --no-defaults", told, drawn)
    finally:
        settings.unlink()
    done = run("chat", "language", "--template", "plain.jinja", "--device", "tpu", text="ant\n")
    check(done.returncode != 0 and b"cpu, cuda" in done.stderr, "chat --device", done.stderr)
    for option in ("--precision", "--weights"):
        done = run("chat", "language", "--template", "plain.jinja", option, "f16", text="a\n")
        check(done.returncode == 2 and option.encode() in done.stderr, f"chat {option}", done.stderr)


@row("generate --presence-penalty", "generate --frequency-penalty", "generate --logit-bias",
     "generate --no-defaults", "generate --prompts", "generate --batch", "generate --lookup")
def generation():
    def tokens(*options):
        return ask("generate", "language", "--prompt", "ant", "--tokens", 8, "--temperature", 0, *options)["tokens"]
    first = tokens()[0]
    check(first not in tokens("--logit-bias", f"{first}=-inf"), "generate --logit-bias", first)
    check(len(set(tokens("--presence-penalty", 1e6))) == 8, "generate --presence-penalty")
    check(len(set(tokens("--frequency-penalty", 1e6))) == 8, "generate --frequency-penalty")
    check(tokens("--presence-penalty", 1e6)[0] == first, "the prompt's own tokens are not penalised")
    settings = WORK / "language" / "generation_config.json"
    settings.write_text(json.dumps({"do_sample": True, "top_k": 1, "max_new_tokens": 5}))
    try:
        ways = [tuple(ask("generate", "language", "--prompt", "ant", "--seed", s)["tokens"]) for s in (1, 2, 3)]
        check(len(set(ways)) == 1 and len(ways[0]) == 5, "generation_config.json", ways)
        told = run("generate", "language", "--prompt", "ant", "--seed", 1).stderr.decode()
        check("--top-k 1" in told and "--tokens 5" in told, "defaults are told", told)
        ways = [tuple(ask("generate", "language", "--prompt", "ant", "--seed", s, "--no-defaults", "--tokens", 9)
                      ["tokens"]) for s in (1, 2, 3)]
        check(len(set(ways)) > 1, "generate --no-defaults", ways)
    finally:
        settings.unlink()
    (WORK / "prompts.txt").write_text("ant\nbee cat\n")
    (WORK / "prompts.jsonl").write_text('{"prompt": "ant"}\n"bee cat"\n')
    alone = [ask("generate", "language", "--prompt", p, "--tokens", 8, "--seed", 1)["tokens"]
             for p in ("ant", "bee cat")]
    for name in ("prompts.txt", "prompts.jsonl"):
        d = ask("generate", "language", "--prompts", name, "--tokens", 8, "--seed", 1)
        check([t["tokens"] for t in d["texts"]] == alone, f"generate --prompts {name}", d, alone)
    d = ask("generate", "language", "--prompts", "prompts.txt", "--tokens", 8, "--seed", 1, "--batch", 1)
    check([t["tokens"] for t in d["texts"]] == alone, "generate --batch 1", d, alone)
    done = run("generate", "language", "--prompts", "prompts.txt", "--batch", 0)
    check(done.returncode == 2 and b"--batch" in done.stderr, "generate --batch 0", done.stderr)
    wrong = WORK / "bad.txt"
    wrong.write_text("ant\nbee cat\nant Ω\n")
    for more in ((), ("--beam", 2), ("--samples", 2)):
        done = run("generate", "language", "--prompts", "bad.txt", "--tokens", 3, *more)
        told = done.stderr.decode()
        check(done.returncode == 2 and "bad.txt:3: " in told, f"--prompts names the line {more}", told)
    again = "ant bee ant bee"
    plain, tried = [ask("generate", "language", "--prompt", again, "--tokens", 12, "--temperature", 0, *more)
                    for more in ((), ("--lookup", 4))]
    check(plain["tokens"] == tried["tokens"] and tried["lookup"]["tried"] > 0, "generate --lookup", plain, tried)


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *arguments):
        self.child, self.file = pty.fork()
        self.screen = b""
        if self.child == 0:
            os.chdir(WORK)
            os.environ.update(TERM="xterm", COLUMNS="80", HEDDLE_THREADS="1")
            os.execv(str(HEDDLE), [str(HEDDLE), *map(str, arguments)])

    def type(self, text):
        os.write(self.file, text.encode())

    def wait_for(self, text, seconds=60):
        """Everything that came up to the text, without control sequences."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            shown = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]|\r", b"", self.screen).decode(errors="replace")
            if text in shown:
                self.screen = shown.split(text, 1)[1].encode()
                return shown.split(text, 1)[0]
            if select.select([self.file], [], [], 0.1)[0]:
                try:
                    self.screen += os.read(self.file, 65536)
                except OSError:
                    break
        check(False, f"a terminal that shows {text!r}", self.screen[-500:])
        return ""

    def ended_by(self, key):
        """The status with which the program ends. A key that comes before the editor has set up the
        terminal is another one to it, so an empty line and the key are typed again."""
        for _ in range(6):
            self.type(key)
            for _ in range(50):
                done, status = os.waitpid(self.child, os.WNOHANG)
                if done:
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.1)
            self.type("\x03")
            time.sleep(0.5)
        os.kill(self.child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])


def write_endless(folder):
    """A model of others with random weights and a context that no answer fills before Ctrl-C."""
    folder.mkdir(exist_ok=True)
    heddle("tokenizer", "train", "text.txt", "--spec", "byte", "--out", folder / "tokenizer.json")
    (folder / "chat_template.jinja").write_text("ant ")
    width, hidden, words = 16, 24, 256
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_size": width, "intermediate_size": hidden, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": words, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 1000000, "rope_theta": 10000, "tie_word_embeddings": True}))
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [words, width], "model.norm.weight": [width],
              layer + "input_layernorm.weight": [width], layer + "post_attention_layernorm.weight": [width],
              **{f"{layer}self_attn.{n}_proj.weight": [width, width] for n in "qkvo"},
              layer + "mlp.gate_proj.weight": [hidden, width], layer + "mlp.up_proj.weight": [hidden, width],
              layer + "mlp.down_proj.weight": [width, hidden]}
    header, data, draw = {}, b"", random.Random(1)
    for name, shape in shapes.items():
        values = struct.pack(f"<{math.prod(shape)}f", *(draw.gauss(0, 0.1) for _ in range(math.prod(shape))))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    words = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(words)) + words + data)


def in_terminal():
    write_endless(WORK / "endless")
    t = Terminal("chat", "endless", "--seed", 1)
    t.wait_for("> ")
    t.type("bee\n")
    t.wait_for("bee\n")
    time.sleep(0.5)
    t.type("\x03")  # Ctrl-C: the answer ends, the program does not
    t.wait_for("(stopped)")
    t.wait_for("> ")
    t.type("half a line\x03")
    t.wait_for("Ctrl-D ends")
    t.wait_for("> ")
    t.type("/save saved.json\n")
    t.wait_for("2 messages")
    saved = json.loads((WORK / "saved.json").read_text())["messages"]
    check(saved[0] == {"role": "user", "content": "bee"} and saved[1]["role"] == "assistant"
          and saved[1]["content"], "/save", saved)
    t.wait_for("> ")
    t.type("/reset\n")
    t.wait_for("A new conversation.")
    t.type("/save saved.json\n")
    t.wait_for("0 messages")
    check(json.loads((WORK / "saved.json").read_text()) == {"messages": []}, "/reset")
    t.type("/what\n")
    t.wait_for("no command /what")
    t.type("/help\n")
    t.wait_for("/quit")
    t.wait_for("> ")
    check(t.ended_by("\x04") == 0, "Ctrl-D ends the program with 0")
