#!/usr/bin/env python3
"""Small random models as llama.cpp's own converter writes them: Heddle's scores against transformers'.

    check_gguf.py --heddle PROGRAM --llama-cpp SOURCES [--only FAMILY] [--keep DIRECTORY]

SOURCES is a checkout of llama.cpp: its convert_hf_to_gguf.py makes the files, so that names, keys,
the order of rows and what is added to gains are theirs. The logits of random tokens in float32 must
agree to 1e-4 of their size with those of the model that was converted. Of encoders it is the vectors of
texts, with the tokenizer in the file, and of T5 the scores of pairs and greedy texts. Exits with 1 when
something differs.
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

import mxfp4
import seq2seq
from check_models import (VOCABULARY, byte_tokenizer, complaint_of, heddle, judge_logits, judge_vectors,
                          random_model)
from families import BERT, DISTILBERT, FAMILIES, Family, GEMMA, GEMMA3, GPT_OSS, ROBERTA, ROPE


PIECES = 100  # of T5's tokenizer: the table has more rows


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
        Family("gpt_oss", "GptOssConfig", "GptOssForCausalLM", GPT_OSS,
               [dict(num_key_value_heads=6), dict(attention_bias=False), dict(sliding_window=1),
                dict(num_local_experts=8, num_experts_per_tok=4), dict(tie_word_embeddings=True),
                dict(rope_parameters=dict(rope_theta=10000.0, rope_type="default")),
                dict(hidden_size=64, intermediate_size=32, mxfp4=True)]),
        Family("bert", "BertConfig", "BertModel", BERT,
               [dict(type_vocab_size=1), dict(num_attention_heads=6, layer_norm_eps=1e-5), dict(pooling="cls"),
                dict(pooling="mean")]),
        Family("roberta", "RobertaConfig", "RobertaModel", ROBERTA, [dict(type_vocab_size=2)]),
        Family("distilbert", "DistilBertConfig", "DistilBertModel", DISTILBERT, [dict(n_heads=4)]),
        Family("t5", "T5Config", "T5ForConditionalGeneration", seq2seq.T5,
               [dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False), dict(num_heads=5, d_kv=7),
                dict(num_decoder_layers=None), dict(relative_attention_num_buckets=8),
                dict(layer_norm_epsilon=1e-3)]),
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

    def convert(folder, file, own_tokenizer=True):
        hparams = as_it_asks(conversion.ModelBase.load_hparams(folder, False))
        name = conversion.get_model_architecture(hparams, conversion.ModelType.TEXT)
        base = conversion.get_model_class(name)
        changed = dict(model_arch=base.model_arch, get_vocab_base_pre=lambda self, tokenizer: "gpt-2")
        if own_tokenizer:
            changed["set_vocab"] = lambda self: self._set_vocab_gpt2()
        elif name.startswith("Roberta"):  # with the tokenizer of BERT, whose framing says all
            changed["set_vocab"] = conversion.get_model_class("BertModel").set_vocab
        made = type(base.__name__, (base,), changed)
        with torch.inference_mode():
            made(Path(folder), gguf.LlamaFileType.ALL_F32, Path(file), hparams=hparams).write()

    return convert


def letters(folder):
    """A tokenizer of BERT's kind: words of letters, which are tokens of their own."""
    alphabet = [*"abcdefghijklmnopqrstuvwxyzü漢字,.", "some", "words"]
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *alphabet, *("##" + a for a in alphabet)]
    (folder / "vocab.txt").write_text("\n".join(names) + "\n")
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    return tokenizer.backend_tokenizer


def judge_encoder(options, convert, family, changed, folder):
    pooling = changed.get("pooling")
    model = random_model(family, {k: v for k, v in changed.items() if k != "pooling"})
    model.save_pretrained(folder)
    tokenizer = letters(folder)
    model.resize_token_embeddings(tokenizer.get_vocab_size())  # the file says no other size
    model.save_pretrained(folder)
    if pooling:
        (folder / "modules.json").write_text(json.dumps([
            dict(idx=0, name="0", path="", type="sentence_transformers.models.Transformer"),
            dict(idx=1, name="1", path="1_Pooling", type="sentence_transformers.models.Pooling")]))
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({
            "pooling_mode_cls_token": pooling == "cls", "pooling_mode_mean_tokens": pooling == "mean"}))
    file = folder / "model.gguf"
    convert(folder, file, own_tokenizer=False)
    said = json.loads(heddle(options.heddle, "embed", file, "--json", given="some words\n"))["pool"]
    if said != {"cls": "class"}.get(pooling, "mean"):
        return f"pool {said}"
    return judge_vectors(options.heddle, file, model, tokenizer, "fp32")


def greedy(model, ids):
    with torch.no_grad():
        written = model.generate(torch.tensor([ids]), do_sample=False, num_beams=1, max_new_tokens=seq2seq.LIMIT,
                                 suppress_tokens=list(range(PIECES, VOCABULARY)))
    return [i for i in written[0].tolist() if i > seq2seq.BEGIN]


def judge_t5(options, convert, family, changed, folder):
    import sentencepiece

    model = seq2seq.prepare(random_model(family, changed), changed)
    model.save_pretrained(folder)
    text = " ".join(chr(97 + i % 26) + chr(97 + i * i % 26) + chr(97 + i // 7 % 26) for i in range(3000))
    (folder / "text.txt").write_text("\n".join(text[i:i + 60] for i in range(0, len(text), 60)))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / "spiece"), vocab_size=PIECES, pad_id=0, eos_id=1,
        unk_id=2, bos_id=-1, minloglevel=2)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    file = folder / "model.gguf"
    convert(folder, file, own_tokenizer=False)
    draw = numpy.random.default_rng(5)
    for length in (1, 7, 40):
        source, target = draw.integers(0, VOCABULARY, length).tolist(), draw.integers(0, VOCABULARY, length).tolist()
        npy, name = folder / "logits.npy", lambda ids: ",".join(map(str, ids))
        heddle(options.heddle, "logits", file, "--tokens", name(source), "--target", name(target), "--npy", npy)
        with torch.no_grad():
            theirs = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]
        complaint = complaint_of(numpy.load(npy), theirs.numpy(), "logits")
        if complaint:
            return f"{length} tokens: {complaint}"
    for line in ("ab cd", "some words", "x"):
        told = json.loads(heddle(options.heddle, "translate", file, "--json", "--beam", 1, "--longest-ratio", 0,
                                 "--longest-extra", seq2seq.LIMIT, given=line + "\n"))
        theirs = pieces.decode(greedy(model, [*pieces.encode(line), seq2seq.END]))
        if told["translations"][0]["text"] != theirs:
            return f"{line!r}: {told['translations'][0]['text']!r}, theirs {theirs!r}"
    return None


def judge(options, convert, family, changed, folder):
    if family.name == "t5":
        return judge_t5(options, convert, family, changed, folder)
    if family.name in ("bert", "roberta", "distilbert"):
        return judge_encoder(options, convert, family, changed, folder)
    model = random_model(family, changed)
    if changed.get("mxfp4"):
        mxfp4.save(model, folder)
    else:
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
