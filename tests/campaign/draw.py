"""A random recipe: every axis of the grammar, and numbers that are extreme but may be legal.

Some of what is drawn makes no sense; the program refuses that with a reason. Sizes are small: three
steps of training take a fraction of a second.
"""

import random

TASKS = {"decoder": ["language"], "rnn": ["language"], "encoder-decoder": ["translate"],
         "rnn-seq2seq": ["translate"], "vit": ["classify"],
         "encoder": ["tag", "classify", "masked"], "birnn": ["tag", "language"]}
# Half of all recipes are decoders or encoders, which have the most choices.
KINDS = ["decoder"] * 5 + ["encoder"] * 4 + ["encoder-decoder"] * 2 + [
    "vit", "rnn", "birnn", "rnn-seq2seq"]


FFN = ["relu", "relu2", "gelu", "gelu-tanh", "quick-gelu", "silu", "swiglu", "geglu", "geglu-tanh",
       "swiglu-clamped"]


class Recipe:
    def __init__(self, kind, task):
        self.kind, self.task = kind, task
        self.tables = {}
        self.prompt = "the quick"
        self.tokens = 4  # to generate
        self.pixels = (0, 0)
        self.image = "valid/dark/0.png"

    def text(self):
        lines = []
        for name, table in self.tables.items():
            lines.append(f"[{name}]")
            lines += [f"{key} = {literal(value)}" for key, value in table.items()]
        return "\n".join(lines) + "\n"


def literal(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return f"{value:.6e}"
    if isinstance(value, list):
        return "[" + ", ".join(literal(one) for one in value) + "]"
    return str(value)


class Chance(random.Random):
    def some(self, share):
        return self.random() < share

    def logarithmic(self, low, high):
        """A number whose size is drawn evenly."""
        return low * (high / low) ** self.random()

    def whole(self, low, high):
        return round(self.logarithmic(low, high))


def heads_and_width(c, table, attention):
    """1 to 64 heads, widths 1 to 300; rarely ones that do not fit each other."""
    heads = c.choice([1, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 33, 64])
    if c.some(0.25):
        attention["head_width"] = c.whole(1, 40)
        width = c.whole(1, 300)
    else:
        width = heads * c.whole(1, max(1, 300 // heads))
        if c.some(0.02):
            width += 1
    table["width"] = min(max(width, 1), 300)
    if heads > 1 or c.some(0.2):
        attention["heads"] = heads
    divisors = [d for d in range(1, heads + 1) if heads % d == 0]
    if c.some(0.4):
        attention["kv_heads"] = c.choice(divisors)


def position(c, attention, kind):
    name = c.choice(["none", "sinusoidal", "learned", "t5", "alibi", "rope", "rope"])
    if name == "none" and c.some(0.5):
        return
    attention["position"] = name
    if name == "sinusoidal" and c.some(0.4):
        attention["sinusoidal_halves"] = True
    if name == "t5":
        if c.some(0.4):
            attention["t5_shared"] = True
        if c.some(0.5):
            attention["t5_buckets"] = 2 * c.whole(1, 16)
        if c.some(0.5):
            attention["t5_max_distance"] = c.whole(2, 300)
    if name == "rope":
        if c.some(0.4):
            attention["rope_base"] = c.logarithmic(2.0, 1e6)
        if c.some(0.3):
            attention["rope_width"] = 2 * c.whole(1, 16)
        if c.some(0.4):
            attention["rope_pairing"] = c.choice(["half", "interleaved"])


def rope_scaling(c):
    kind = c.choice(["linear", "ntk", "yarn", "llama3"])
    table = {"kind": kind, "factor": c.logarithmic(1.0, 32.0)}
    if kind in ("yarn", "llama3"):
        table["original_positions"] = c.whole(4, 64)
    return table


def pattern(c, recipe, attention):
    """Layers that differ: names, and a table for each."""
    names = ["near", "far", "own"][:c.randint(1, 3)]
    attention["pattern"] = [c.choice(names) for _ in range(c.randint(1, 4))]
    for name in sorted(set(attention["pattern"])):
        own = {}
        if c.some(0.5):
            own["look_back"] = c.whole(1, 40) - 1
        if c.some(0.2):
            own["softcap"] = c.logarithmic(1e-1, 1e2)
        if c.some(0.2):
            own["scale"] = c.logarithmic(1e-2, 1e1)
        if attention.get("position") not in ("learned", "sinusoidal") and c.some(0.5):
            own["position"] = c.choice(["none", "alibi", "rope"])
        if own.get("position") == "rope" and c.some(0.5):
            own["rope_base"] = c.logarithmic(2.0, 1e6)
        recipe.tables[f"model.attention.{name}"] = own


def attention_of(c, recipe, table):
    attention = {}
    heads_and_width(c, table, attention)
    if c.some(0.6):
        attention["score"] = c.choice(["scaled-dot", "multiplicative", "concat", "additive"])
    if attention.get("score") == "additive" and c.some(0.4):
        attention["score_width"] = c.whole(1, 40)
    if c.some(0.08):
        attention["normaliser"] = "relu"
    if c.some(0.4):
        attention["scale"] = c.logarithmic(1e-3, 1e3)
    if c.some(0.3):
        attention["softcap"] = c.logarithmic(1e-2, 1e3)
    if c.some(0.15):
        attention["dropout"] = c.uniform(0.0, 0.6)
    if c.some(0.25):
        attention["sinks"] = True
    if recipe.kind != "rnn-seq2seq":
        if c.some(0.35):
            attention["look_back"] = c.whole(1, 40) - 1
        if recipe.kind in ("encoder", "vit") and c.some(0.3):
            attention["look_ahead"] = c.whole(1, 40) - 1
        if recipe.kind == "decoder" and c.some(0.25):
            attention["prefix"] = True
        position(c, attention, recipe.kind)
    return attention


def feed_forward(c, table):
    if c.some(0.75):
        table["ffn"] = c.choice(FFN + ["moe"] * 4)
    if c.some(0.4):
        table["ffn_width"] = c.whole(1, 300)
    if table.get("ffn") == "swiglu-clamped" and c.some(0.5):
        table["ffn_clamp"] = c.logarithmic(0.1, 10.0)
    if table.get("ffn") != "moe":
        return None
    experts = c.whole(1, 12)
    moe = {"experts": experts, "active": c.randint(1, min(experts, 4)),
           "expert": c.choice(FFN)}
    if c.some(0.3):
        moe["capacity"] = c.uniform(0.5, 2.0)
    if c.some(0.3):
        moe["shared"] = c.randint(1, 2)
    if c.some(0.3):
        moe["balance"] = c.logarithmic(1e-3, 1.0)
    for key in ("router_bias", "router_correction"):
        if c.some(0.2):
            moe[key] = True
    if c.some(0.3):
        moe["router"] = c.choice(["softmax", "sigmoid"])
    if c.some(0.2):
        moe["renormalise"] = False
    if c.some(0.2):
        moe["routed_scale"] = c.logarithmic(0.1, 10.0)
    if moe.get("shared") and c.some(0.5):
        moe["shared_gate"] = True
    if c.some(0.2):
        moe["dense_layers"] = c.randint(1, 2)
        if c.some(0.5):
            moe["dense_width"] = c.whole(1, 60)
    table.setdefault("ffn_width", c.whole(1, 60))
    return moe


def norms(c, table, places):
    if c.some(0.5):
        table["norm"] = c.choice(["layer", "rms"])
    if c.some(0.5):
        table["norm_place"] = c.choice(places)
    if c.some(0.2):
        table["norm_epsilon"] = c.logarithmic(1e-8, 1e-2)


def stack(c, table):
    """Choices of a Transformer's layers."""
    if c.some(0.15):
        table["last_norm"] = False
    if c.some(0.2):
        table["embedding_norm"] = True
    if table.get("norm_place", "pre") == "pre" and c.some(0.15):
        table["first_norm"] = False
    if c.some(0.2):
        table["head_transform"] = c.choice(["tanh", "relu", "gelu", "gelu-tanh", "quick-gelu",
                                            "silu"])
        if c.some(0.3):
            table["head_transform_bias"] = c.some(0.5)
        if c.some(0.4):
            table["head_norm"] = True
    if c.some(0.3):
        table["qk_norm"] = c.choice(["head", "full"])
    if c.some(0.2):
        table["parallel"] = c.choice(["one-norm", "two-norms"])
    for key in ("qkv_bias", "key_bias", "out_bias", "ffn_bias"):
        if c.some(0.15):
            table[key] = c.some(0.5)
    if table.get("norm", "layer") == "layer" and c.some(0.15):
        table["norm_bias"] = c.some(0.5)
    if c.some(0.15):
        table["residual_scale"] = c.logarithmic(0.1, 2.0)
    if c.some(0.15):
        table["layer_scale"] = c.logarithmic(1e-2, 1.0)


def ends(c, recipe, table):
    """The ways in and out of any model."""
    if c.some(0.15):
        table["head_bias"] = c.some(0.5)
    if c.some(0.15):
        table["logit_scale"] = c.logarithmic(0.1, 4.0)
    if c.some(0.15):
        table["logit_softcap"] = c.logarithmic(1.0, 50.0)
    if recipe.kind != "vit" and "scale_embedding" not in table and c.some(0.15):
        table["embedding_scale"] = c.logarithmic(0.1, 10.0)


def model_of(c, recipe):
    table = {"kind": recipe.kind, "layers": c.choice([1, 1, 2, 2, 3])}
    recipe.tables["model"] = table
    recurrent = recipe.kind in ("rnn", "birnn", "rnn-seq2seq")
    if len(TASKS[recipe.kind]) > 1:
        table["task"] = recipe.task
    if recipe.kind in ("encoder-decoder", "rnn-seq2seq") and c.some(0.3):
        table["decoder_layers"] = c.randint(1, 3)
    if recipe.kind in ("encoder-decoder", "rnn-seq2seq") and c.some(0.2):
        table["shared_embedding"] = c.some(0.5)
    attention, moe = {}, None
    if recipe.kind in ("rnn", "birnn"):
        table["width"] = c.whole(1, 300)
    else:
        attention = attention_of(c, recipe, table)
    if recurrent:
        table["residual"] = c.some(0.5)
        if table["residual"]:
            norms(c, table, ["pre", "post"])
    else:
        norms(c, table, ["pre", "post", "branch", "sandwich"])
        stack(c, table)
        moe = feed_forward(c, table)
    for key, share in (("dropout", 0.25), ("embedding_dropout", 0.15)):
        if c.some(share):
            table[key] = c.uniform(0.0, 0.6)
    for key, share in (("bias", 0.3), ("tied", 0.25), ("scale_embedding", 0.2)):
        if c.some(share) and (key != "tied" or recipe.task not in ("tag", "classify")):
            table[key] = c.some(0.5)
    ends(c, recipe, table)
    if recipe.task == "classify" and c.some(0.5):
        other = ["first-token"] if recipe.kind != "vit" else ["class-mean", "class-extra"]
        table["pooling"] = c.choice(["class-token", "mean", *other])
    if c.some(0.3):
        table["init"] = c.choice(["fan-in", "normal", "xavier"])
    if recipe.kind == "vit":
        table["patch"] = c.randint(1, 4)
        if table.get("pooling") == "class-extra" or c.some(0.2):
            table["extra_tokens"] = c.randint(1, 3)
        recipe.pixels = (table["patch"] * c.randint(1, 4), table["patch"] * c.randint(1, 4))
    if attention:
        recipe.tables["model.attention"] = attention
    if attention and not recurrent and c.some(0.25):
        pattern(c, recipe, attention)
    if attention.get("position") == "rope" and c.some(0.3):
        recipe.tables["model.attention.rope_scaling"] = rope_scaling(c)
    if moe:
        recipe.tables["model.moe"] = moe


def data_of(c, recipe):
    tokenizer = c.choice(["char", "char", "byte", "word", "bpe:280"])
    if recipe.kind == "vit":
        recipe.tables["data"] = {"image_folder": "images", "validation_image_folder": "valid"}
        return
    if recipe.task in ("language", "masked"):
        # A context of 1 has no second token to score, and a prompt of its own.
        context = c.choice([1, 2, 3, 5, 6, 7, 8, 13, 16, 24, 40])
        table = {"text": "text.txt", "validation_share": 0.25, "tokenizer": tokenizer,
                 "context": context}
        if c.some(0.15):
            table["documents"] = c.choice(["line", "blank-line"])
        recipe.prompt = "t" if tokenizer != "word" else "the"
        if tokenizer != "word" and context > 6:
            recipe.prompt = "the "
        # Prompt and text fit the context, so that nothing has to slide.
        recipe.tokens = max(1, min(8, context - len(recipe.prompt)))
    elif recipe.task == "translate":
        table = {"pairs": "pairs.tsv", "validation_pairs": "valid.tsv", "tokenizer": tokenizer,
                 "max_length": 64}
        if c.some(0.3):
            table["target_tokenizer"] = c.choice(["char", "word"])
    elif recipe.task == "tag":
        table = {"tags": "tags.tsv", "validation_tags": "valid.tsv", "tokenizer": tokenizer,
                 "max_length": 64}
    else:
        table = {"labelled": "labelled.tsv", "validation_labelled": "valid.tsv",
                 "tokenizer": tokenizer, "max_length": c.choice([3, 20, 64])}
        if table["max_length"] == 3:
            recipe.prompt = "the"
    recipe.tables["data"] = table


def train_of(c, recipe):
    table = {"steps": 3, "batch": c.randint(1, 4), "warmup": 1, "seed": c.randint(1, 9)}
    if c.some(0.4):
        table["precision"] = c.choice(["fp32", "bf16"])
    if c.some(0.3):
        table["optimizer"] = c.choice(["adamw", "sgd"])
    if c.some(0.2):
        table["recompute"] = True
    if c.some(0.2):
        table["accumulate"] = c.randint(1, 2)
    if c.some(0.2):
        table["label_smoothing"] = c.uniform(0.0, 0.4)
    if c.some(0.2):
        table["schedule"] = c.choice(["cosine", "linear", "inverse-sqrt", "constant"])
    recipe.tables["train"] = table


def recipe(seed, number, attempt):
    c = Chance(f"{seed} {number} {attempt}")
    kind = c.choice(KINDS)
    drawn = Recipe(kind, c.choice(TASKS[kind]))
    model_of(c, drawn)
    data_of(c, drawn)
    train_of(c, drawn)
    return drawn
