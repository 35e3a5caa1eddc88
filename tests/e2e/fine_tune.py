#!/usr/bin/env python3
"""Fine-tunes a tiny Llama, as others would publish it, on conversations, and uses what came of it.

    fine_tune.py HEDDLE WORK

The directory of the model is written here, byte by byte: config.json, model.safetensors, a
tokenizer with a special token, a chat template. Exits with 1 when something is not as it should be.
"""

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

from program import HEDDLE, WORK, check, heddle, refused, run_steps

WIDTH, FFN, LAYERS, ROWS = 16, 24, 2, 260  # three rows more than there are tokens

TEMPLATE = ("{% for m in messages %}[{{ m.role }}]{{ m.content }}<|end|>\n{% endfor %}"
            "{% if add_generation_prompt %}[assistant]{% endif %}")

RECIPE = """
    [data]
    chat = "chat.jsonl"
    validation_share = 0.2
    [train]
    from = "llama"
    steps = 60
    batch = 4
    learning_rate = 1e-2
    eval_every = 30
    save_every = 10
    """


def tensors():
    draw = random.Random(1)
    shapes = {"model.embed_tokens.weight": (ROWS, WIDTH), "lm_head.weight": (ROWS, WIDTH),
              "model.norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            shapes[f"{name}self_attn.{part}.weight"] = (WIDTH, WIDTH)
        shapes[name + "mlp.gate_proj.weight"] = shapes[name + "mlp.up_proj.weight"] = (FFN, WIDTH)
        shapes[name + "mlp.down_proj.weight"] = (WIDTH, FFN)
        for part in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{name}{part}.weight"] = (WIDTH,)
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        numbers = [1.0] * count if len(shape) == 1 else [draw.gauss(0, 0.2) for _ in range(count)]
        yield name, shape, struct.pack(f"<{count}f", *numbers)


def write_safetensors(path):
    header, body = {}, b""
    for name, shape, data in tensors():
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def tiny_llama():
    folder = WORK / "llama"
    folder.mkdir()
    write_safetensors(folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(
        {"model_type": "llama", "hidden_size": WIDTH, "intermediate_size": FFN,
         "num_hidden_layers": LAYERS, "num_attention_heads": 2, "vocab_size": ROWS,
         "rms_norm_eps": 1e-5, "max_position_embeddings": 128, "tie_word_embeddings": False}))
    (WORK / "any.txt").write_text("any text")
    heddle("tokenizer", "train", "--spec", "byte", "--out", "llama/tokenizer.json", "any.txt")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [{"id": 256, "content": "<|end|>", "special": True,
                                  "single_word": False, "lstrip": False, "rstrip": False,
                                  "normalized": False}]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|end|>", "chat_template": TEMPLATE}))


def conversation(question, answer):
    return json.dumps({"messages": [{"role": "user", "content": question},
                                    {"role": "assistant", "content": answer}]}) + "\n"


def fine_tuning():
    (WORK / "chat.jsonl").write_text("".join(conversation("ab" * (1 + i % 4), "yes")
                                             for i in range(20)))
    (WORK / "r.toml").write_text(RECIPE)
    shown = heddle("data", "r.toml")
    check("20 conversations" not in shown and "16 conversations" in shown, "data: splits", shown)
    check("· y e s <|end|>" in shown, "data shows what counts", shown)
    plan = json.loads(heddle("plan", "r.toml", "--json"))
    check(plan["fits"] is True, "plan", plan)
    before = json.loads(heddle("eval", "llama", "--data", "chat.jsonl", "--json"))
    check(before["tokens"] == 20 * 4, "eval counts answers alone", before)
    heddle("train", "r.toml", "--out", "run")
    after = json.loads(heddle("eval", "run", "--data", "chat.jsonl", "--json"))
    check(after["tokens"] == 20 * 4 and after["loss"] < 0.3 * before["loss"], "loss", before, after)


def kill_and_resume():
    """Killed in the middle, with the model that it began with gone."""
    process = subprocess.Popen([str(HEDDLE), "train", "r.toml", "--out", "killed"], cwd=WORK,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    saved = WORK / "killed" / "checkpoints"
    for _ in range(3000):
        if saved.is_dir() and any(x.name.endswith(".safetensors") for x in saved.iterdir()):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    os.rename(WORK / "llama", WORK / "away")
    heddle("train", "killed", "--resume")
    same = (WORK / "killed/model.safetensors").read_bytes() == (WORK / "run/model.safetensors").read_bytes()
    check(same, "a killed run ends as an undisturbed one")
    refused("train", "r.toml", "--out", "other", saying=["train.from", "llama", "--resume"])
    os.rename(WORK / "away", WORK / "llama")


def a_whole_run():
    """The run knows what the files knew."""
    answer = heddle("generate", "run", "--prompt", "[user]ab\n[assistant]y", "--temperature", 0,
                    "--tokens", 2)
    check(answer.startswith("[user]ab"), "generate", answer)
    tokens = json.loads(heddle("tokenize", "run/tokenizer.json", text="<|end|>\n"))
    check(tokens, "tokenize", tokens)
    (WORK / "further.toml").write_text(RECIPE.replace("llama", "run").replace("steps = 60", "steps = 2"))
    heddle("train", "further.toml", "--out", "further")


def mistakes():
    for line, said in ((conversation("a", "b")[:-2], ["JSON"]),
                       ('{"messages": [{"role": "user", "content": "x"}]}', ["no answer"]),
                       (conversation("q" * 200, "b"), ["too long", "128", "skip_long"])):
        (WORK / "bad.jsonl").write_text(conversation("a", "b") + line + "\n")
        refused("data", "r.toml", "--set", "data.chat=bad.jsonl", saying=["bad.jsonl:2", *said])
    refused("data", "r.toml", "--set", "data.text=chat.jsonl", saying=["data.text"])
    refused("data", "r.toml", "--set", "data.context=8", saying=["data.context"])
    (WORK / "no_from.toml").write_text(RECIPE.replace('from = "llama"', ""))
    refused("data", "no_from.toml", saying=["model.kind"])


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    return run_steps([tiny_llama, fine_tuning, kill_and_resume, a_whole_run, mistakes])


if __name__ == "__main__":
    sys.exit(main())
