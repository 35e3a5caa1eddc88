"""Encoder-decoders for check_models.py: what is built of each family, scores of pairs, and texts by
greedy and by beam search beside transformers' generate().

A full beam (--beam-kind full) with early_stopping="never" there is the same search. With forced_eos_token_id
both end a text at the limit of tokens at no cost; without it both rank the unfinished ones by their score.
"""

import json
import subprocess

import numpy
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from families import Family

VOCABULARY = 259
WORDS = 250  # of the tokenizer: the tables have more rows
PAD, END, BEGIN = 0, 1, 2
LIMIT = 24  # tokens of a text

T5 = dict(vocab_size=VOCABULARY, d_model=48, d_kv=10, d_ff=80, num_layers=3, num_decoder_layers=2, num_heads=3,
          pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=PAD)
BART = dict(vocab_size=VOCABULARY, d_model=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=3,
            decoder_attention_heads=3, encoder_ffn_dim=80, decoder_ffn_dim=80, max_position_embeddings=64,
            pad_token_id=PAD, eos_token_id=END, bos_token_id=BEGIN, decoder_start_token_id=END,
            forced_eos_token_id=END)
MARIAN = dict(BART, bos_token_id=None, decoder_start_token_id=PAD, activation_function="swish",
              scale_embedding=True)

FAMILIES = [
    Family("t5", "T5Config", "T5ForConditionalGeneration", T5,
           [dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
            dict(feed_forward_proj="gated-gelu"), dict(feed_forward_proj="gated-silu"),
            dict(feed_forward_proj="gelu"), dict(num_heads=5, d_kv=7), dict(num_decoder_layers=None),
            dict(relative_attention_num_buckets=8, relative_attention_max_distance=20),
            dict(layer_norm_epsilon=1e-3), dict(tie_word_embeddings=False)]),
    Family("bart", "BartConfig", "BartForConditionalGeneration", BART,
           [dict(scale_embedding=True), dict(activation_function="relu"), dict(tie_word_embeddings=False),
            dict(encoder_attention_heads=1, decoder_attention_heads=1), dict(encoder_ffn_dim=50, decoder_ffn_dim=50),
            dict(forced_bos_token_id=BEGIN), dict(forced_eos_token_id=None), dict(decoder_layers=1)]),
    Family("mbart", "MBartConfig", "MBartForConditionalGeneration", BART,
           [dict(scale_embedding=True), dict(activation_function="gelu_new"), dict(forced_bos_token_id=5)]),
    Family("marian", "MarianConfig", "MarianMTModel", MARIAN,
           [dict(scale_embedding=False), dict(activation_function="gelu"),
            dict(share_encoder_decoder_embeddings=False, decoder_vocab_size=VOCABULARY),
            dict(share_encoder_decoder_embeddings=False, decoder_vocab_size=281),
            dict(tie_word_embeddings=False), dict(encoder_attention_heads=4, decoder_attention_heads=4),
            dict(forced_eos_token_id=None), dict(bad_words_ids=[[PAD], [7], [30]])]),
]


def name(token):
    return {PAD: "<pad>", END: "</s>", BEGIN: "<s>"}.get(token, f"w{token}")


def word_tokenizer(folder, begin):
    """A word for every token: texts are the same exactly where tokens are."""
    tokenizer = Tokenizer(models.WordLevel({name(i): i for i in range(WORDS)}, unk_token="w3"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    specials = [name(i) for i in (PAD, END, BEGIN)]
    tokenizer.add_special_tokens(specials)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>" if begin else "$A </s>",
        special_tokens=[(s, tokenizer.token_to_id(s)) for s in specials])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        dict(pad_token="<pad>", eos_token="</s>", bos_token="<s>")))
    return tokenizer


def waves(model):
    """Marian's are parameters there, and in no file."""
    with torch.no_grad():
        for part in model.modules():
            if hasattr(part, "create_weight"):
                part.weight.copy_(part.create_weight())


def prepare(model, options):
    """What the files of such models say, and ends that come now and then."""
    generator = torch.Generator().manual_seed(3)
    waves(model)
    with torch.no_grad():
        if hasattr(model, "final_logits_bias"):
            bias = torch.randn(model.final_logits_bias.shape, generator=generator)
            bias[0, END] += 2.0
            model.final_logits_bias.copy_(bias)
        elif options.get("tie_word_embeddings") is False:
            model.lm_head.weight = torch.nn.Parameter(
                torch.randn(model.lm_head.weight.shape, generator=generator) * 0.2)
        if "bad_words_ids" in options:
            model.generation_config.bad_words_ids = options["bad_words_ids"]
        for key in ("forced_bos_token_id", "forced_eos_token_id"):
            if key in options:
                setattr(model.generation_config, key, options[key])
    return model


def scores_of(heddle, program, folder, model, pair, precision):
    """Ours and theirs."""
    file, (source, target) = folder / "logits.npy", pair
    text = lambda ids: ",".join(map(str, ids))
    heddle(program, "logits", folder, "--tokens", text(source), "--target", text(target), "--npy", file,
           "--precision", precision)
    with torch.no_grad():
        theirs = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0].numpy()
    return numpy.load(file), theirs


def judge_search(program, folder, model, tokenizer, sources, beams, penalty):
    """All sources at once, of different lengths: batches have padding."""
    done = subprocess.run([program, "translate", str(folder), "--json", "--beam", str(beams), "--beam-kind", "full",
                           "--length-penalty", str(penalty), "--longest-ratio", "0", "--longest-extra", str(LIMIT)],
                          input="".join(s + "\n" for s in sources), capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    ours = [t["text"] for t in json.loads(done.stdout)["translations"]]
    unknown = list(range(WORDS, model.get_output_embeddings().weight.shape[0]))
    for source, text in zip(sources, ours):
        ids = tokenizer.encode(source).ids
        with torch.no_grad():
            written = model.generate(torch.tensor([ids]), num_beams=beams, do_sample=False, max_new_tokens=LIMIT,
                                     early_stopping="never" if beams > 1 else False, length_penalty=penalty,
                                     suppress_tokens=unknown, use_cache=True)
        theirs = tokenizer.decode(written[0].tolist(), skip_special_tokens=True)
        if text != theirs:
            return f"beam {beams}, penalty {penalty}: {source!r}: {text!r}, theirs {theirs!r}"
    return None


def judge(heddle, compare, in_all_precisions, program, family, options, model, folder):
    model = prepare(model, options)
    model.save_pretrained(folder)
    tokenizer = word_tokenizer(folder, family.name in ("bart", "mbart"))
    draw = numpy.random.default_rng(5)
    written = model.get_output_embeddings().weight.shape[0]
    pairs = [(draw.integers(0, VOCABULARY, length).tolist(), draw.integers(0, written, length // 2 + 1).tolist())
             for length in (1, 7, 40)]

    def judged(own, precision):
        waves(own)
        for pair in pairs:
            complaint = compare(*scores_of(heddle, program, folder, own, pair, precision), "logits", precision)
            if complaint:
                return f"{len(pair[0])} tokens: {complaint}"
        return None

    complaint = in_all_precisions(model, judged)
    if complaint:
        return complaint
    sources = [" ".join(name(i) for i in draw.integers(3, WORDS, n)) for n in (1, 5, 9, 9, 14, 30)]
    for beams, penalty in ((1, 1.0), (4, 1.0), (4, 0.0), (3, 2.0)):
        complaint = judge_search(program, folder, model, tokenizer, sources, beams, penalty)
        if complaint:
            return complaint
    return None
