#!/usr/bin/env python3
"""Small random models as llama.cpp's own converter writes them: Heddle's scores against transformers'.

    check_gguf.py --heddle PROGRAM --llama-cpp SOURCES [--only FAMILY] [--keep DIRECTORY]

SOURCES is a checkout of llama.cpp: its convert_hf_to_gguf.py makes the files, so that names, keys,
the order of rows and what is added to gains are theirs. The logits of random tokens in float32 must
agree to 1e-4 of their size with those of the model that was converted. Exits with 1 when they do not.
"""

import argparse
import json
import logging
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import transformers

from check_models import VOCABULARY, byte_tokenizer, judge_logits, random_model
from families import FAMILIES, Family, GEMMA, GEMMA3, ROPE


def without(family, *options):
    """The family's variants but for those that a GGUF file cannot say: with these options."""
    return [v for v in family.variants if not set(v) & set(options)]


def by_name(name):
    return next(f for f in FAMILIES if f.name == name)


def converted_families():
    """What the converter writes down; it drops the other options in silence."""
    gpt2, neox, bloom, falcon = map(by_name, ("gpt2", "gpt_neox", "bloom", "falcon"))
    scaled = dict(query_pre_attn_scalar=12)
    return [
        Family("gpt2", gpt2.config, gpt2.model, dict(gpt2.defaults),
               [dict(layer_norm_epsilon=1e-3), dict(tie_word_embeddings=False)]),
        by_name("llama"),
        Family("mixtral", "MixtralConfig", "MixtralForCausalLM",
               dict(by_name("mixtral").defaults, sliding_window=None),
               [dict(num_local_experts=3, num_experts_per_tok=1)]),
        Family("qwen2", "Qwen2Config", "Qwen2ForCausalLM", by_name("qwen2").defaults,
               [v for v in without(by_name("qwen2"), "sliding_window") if v != ROPE[1]]),
        Family("qwen3", "Qwen3Config", "Qwen3ForCausalLM", by_name("qwen3").defaults,
               without(by_name("qwen3"), "sliding_window")),
        phi3(), smollm3(),
        Family("gemma", "GemmaConfig", "GemmaForCausalLM", GEMMA, [dict(num_key_value_heads=1)]),
        Family("gemma2", "Gemma2Config", "Gemma2ForCausalLM", dict(GEMMA, sliding_window=6, **scaled),
               [dict(attn_logit_softcapping=2.0), dict(final_logit_softcapping=5.0),
                dict(num_hidden_layers=46, hidden_size=36, query_pre_attn_scalar=6)]),
        Family("gemma3_text", "Gemma3TextConfig", "Gemma3ForCausalLM",
               dict(GEMMA3, vocab_size=257, **scaled),
               [dict(num_hidden_layers=2), by_name("gemma3_text").variants[-1]]),
        Family("olmo2", "Olmo2Config", "Olmo2ForCausalLM", by_name("olmo2").defaults,
               by_name("olmo2").variants + ROPE[:1]),
        Family("gpt_neox", neox.config, neox.model, neox.defaults,
               without(neox, "attention_bias", "hidden_act", "tie_word_embeddings")),
        bloom,
        Family("falcon", falcon.config, falcon.model, falcon.defaults,
               [v for v in falcon.variants if v.get("new_decoder_architecture")]),
    ]


def phi3():
    family = by_name("phi3")
    plain = dict(rope_theta=10000.0, rope_type="default", original_max_position_embeddings=96)
    return Family("phi3", family.config, family.model, dict(family.defaults, rope_parameters=plain),
                  [dict(num_key_value_heads=6), dict(sliding_window=6),
                   dict(rope_parameters=dict(plain, partial_rotary_factor=0.5)),
                   family.variants[-1]])


def smollm3():
    family = by_name("smollm3")
    return Family("smollm3", family.config, family.model, family.defaults,
                  [dict(num_hidden_layers=8), dict(attention_bias=True)])


def as_it_asks(config):
    """The keys that old files of a family have, and the converter asks for."""
    if config["model_type"] == "falcon" and not config["new_decoder_architecture"]:
        config["num_kv_heads"] = 1
    if config["model_type"] == "gpt2":
        config["n_ctx"] = config["n_positions"]
    if config["model_type"] == "gpt_neox":
        config["rotary_pct"] = config["rope_parameters"].get("partial_rotary_factor", 0.25)
    return config


def converter(sources):
    """llama.cpp's converter, for a tokenizer of bytes that it does not know."""
    sys.path[:0] = [sources, str(Path(sources) / "gguf-py")]
    import conversion
    import gguf

    conversion.logger.setLevel(logging.ERROR)
    logging.getLogger("gguf").setLevel(logging.ERROR)

    def convert(folder, file):
        hparams = as_it_asks(conversion.ModelBase.load_hparams(folder, False))
        name = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
        base = conversion.get_model_class(name)
        made = type(base.__name__, (base,), dict(
            model_arch=base.model_arch, set_vocab=lambda self: self._set_vocab_gpt2(),
            get_vocab_base_pre=lambda self, tokenizer: "gpt-2"))
        with torch.inference_mode():
            made(Path(folder), gguf.LlamaFileType.ALL_F32, Path(file), hparams=hparams).write()

    return convert


def judge(options, convert, family, changed, folder):
    model = random_model(family, changed)
    model.save_pretrained(folder)
    byte_tokenizer(folder)
    (folder / "tokenizer_config.json").write_text(
        json.dumps(dict(tokenizer_class="PreTrainedTokenizerFast")))
    file = folder / "model.gguf"
    convert(folder, file)
    most = min(VOCABULARY, model.config.vocab_size)
    generator = numpy.random.default_rng(5)
    for length in (1, 7, 40):
        tokens = generator.integers(0, most, length).tolist()
        complaint = judge_logits(options.heddle, file, model, tokens)
        if complaint:
            return f"{length} tokens: {complaint}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--llama-cpp", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", help="directory for models that differ")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    convert = converter(options.llama_cpp)
    bad = judged = 0
    for family in converted_families():
        if options.only and options.only != family.name:
            continue
        for changed in [{}, *family.variants]:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(options.keep or temporary) / family.name
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    complaint = judge(options, convert, family, changed, folder)
                except RuntimeError as error:
                    complaint = str(error)
            judged += 1
            bad += complaint is not None
            print(f"{family.name:12} {json.dumps(changed)}: {complaint or 'same'}", flush=True)
            if complaint and options.keep:
                return 1
    print(f"{judged} configurations, {bad} differ")
    return 1 if bad or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
