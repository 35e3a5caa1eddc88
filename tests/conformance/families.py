"""The families that check_models.py builds: a small configuration of each, and what is varied."""

from dataclasses import dataclass, field


@dataclass
class Family:
    name: str
    config: str
    model: str  # the class; a variant may have another under "model"
    defaults: dict
    variants: list = field(default_factory=list)
    never: tuple = ()  # tokens that texts do not have: the model takes them for padding


LLAMA = dict(vocab_size=259, hidden_size=48, intermediate_size=80, num_hidden_layers=3,
             num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=96,
             bos_token_id=None, eos_token_id=None, pad_token_id=None)


def rope(**more):
    return dict(rope_parameters=dict(rope_theta=10000.0, **more))


ROPE = [
    rope(rope_type="linear", factor=4.0),
    rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
         original_max_position_embeddings=32),
    rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=24),
]

QWEN = dict(LLAMA, head_dim=8)
GEMMA = dict(LLAMA, head_dim=12, tie_word_embeddings=True)
# Windows by layer, and the bases of both kinds of layers.
GEMMA3 = dict(GEMMA, num_hidden_layers=7, sliding_window=6, query_pre_attn_scalar=16)
NEOX = dict(vocab_size=259, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
            num_attention_heads=4, max_position_embeddings=96, bos_token_id=None,
            eos_token_id=None)
FALCON = dict(vocab_size=259, hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
              max_position_embeddings=96, bos_token_id=None, eos_token_id=None)


def heads(stem, *options):
    """The four ends of an encoder, each plain and with the options."""
    ends = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
    return [dict(more, model=stem + end) for more in ({}, *options) for end in ends]


# Ids around a text are those of check_models.py's tokenizer.
BERT = dict(vocab_size=259, hidden_size=48, intermediate_size=80, num_hidden_layers=3,
            num_attention_heads=3, max_position_embeddings=64)
ROBERTA = dict(BERT, max_position_embeddings=66, type_vocab_size=1, bos_token_id=None,
               eos_token_id=None)
DISTILBERT = dict(vocab_size=259, dim=48, hidden_dim=80, n_layers=3, n_heads=3,
                  max_position_embeddings=64)
MODERNBERT = dict(vocab_size=259, hidden_size=48, intermediate_size=40, num_hidden_layers=5,
                  num_attention_heads=3, max_position_embeddings=96, local_attention=8,
                  pad_token_id=0, bos_token_id=None, eos_token_id=None, cls_token_id=None,
                  sep_token_id=None)
LABELS = dict(id2label={i: f"L{i}" for i in range(7)}, label2id={f"L{i}": i for i in range(7)})

# Rotary positions as the published models have them, and none of their stretching.
GPT_OSS = dict(LLAMA, head_dim=8, num_local_experts=5, num_experts_per_tok=2, sliding_window=6,
               num_hidden_layers=4, rope_parameters=dict(
                   rope_type="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
                   original_max_position_embeddings=24, rope_theta=150000.0))
VIT = dict(hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=40,
           image_size=24, patch_size=6)
DINO = dict(hidden_size=24, num_hidden_layers=3, num_attention_heads=3, image_size=24,
            patch_size=6, layerscale_value=0.5)

FAMILIES = [
    Family("vit", "ViTConfig", "ViTModel", VIT,
           [dict(model="ViTForImageClassification"),
            dict(LABELS, model="ViTForImageClassification", hidden_act="gelu_new",
                 num_attention_heads=4, layer_norm_eps=1e-5),
            dict(model="ViTForImageClassification", qkv_bias=False, num_channels=1),
            dict(model="ViTForImageClassification", image_size=[12, 30], hidden_act="relu"),
            dict(patch_size=24, num_hidden_layers=1), dict(patch_size=[4, 4])]),
    Family("deit", "DeiTConfig", "DeiTModel", VIT,
           [dict(LABELS, model="DeiTForImageClassification"),
            dict(LABELS, model="DeiTForImageClassificationWithTeacher"),
            dict(model="DeiTForImageClassificationWithTeacher", qkv_bias=False,
                 num_attention_heads=1),
            dict(hidden_act="quick_gelu", layer_norm_eps=1e-3)]),
    Family("dinov2", "Dinov2Config", "Dinov2Model", DINO,
           [dict(use_swiglu_ffn=True), dict(mlp_ratio=2, hidden_act="gelu_new"),
            dict(LABELS, model="Dinov2ForImageClassification"),
            dict(model="Dinov2ForImageClassification", use_swiglu_ffn=True, mlp_ratio=3),
            dict(image=[18, 30]), dict(image=[42, 42]), dict(use_mask_token=False),
            dict(LABELS, image=[30, 12], model="Dinov2ForImageClassification", qkv_bias=False)]),
    Family("gpt_oss", "GptOssConfig", "GptOssForCausalLM", GPT_OSS,
           [dict(num_key_value_heads=6), dict(num_key_value_heads=1, head_dim=16),
            dict(attention_bias=False), dict(tie_word_embeddings=True), dict(swiglu_limit=0.75),
            dict(num_local_experts=8, num_experts_per_tok=4), dict(num_experts_per_tok=1),
            dict(layer_types=["full_attention"] * 4), dict(rms_norm_eps=1e-3),
            dict(sliding_window=1), dict(hidden_size=64, intermediate_size=32, mxfp4=True),
            rope(rope_type="default"), dict(hidden_size=32, intermediate_size=64, mxfp4=True)]),
    Family("bert", "BertConfig", "BertModel", BERT,
           [*heads("Bert", dict(hidden_act="gelu_new", layer_norm_eps=1e-5),
                   dict(LABELS, hidden_act="relu", num_attention_heads=6, type_vocab_size=1)),
            dict(model="BertForPreTraining"), dict(hidden_act="silu", model="BertForMaskedLM"),
            dict(tie_word_embeddings=False, model="BertForMaskedLM")]),
    Family("roberta", "RobertaConfig", "RobertaModel", ROBERTA,
           [*heads("Roberta", dict(LABELS, type_vocab_size=2, hidden_act="gelu_new")),
            dict(tie_word_embeddings=False, model="RobertaForMaskedLM")], never=(1,)),
    Family("xlm-roberta", "XLMRobertaConfig", "XLMRobertaModel", ROBERTA,
           heads("XLMRoberta", dict(LABELS, num_attention_heads=4)), never=(1,)),
    Family("distilbert", "DistilBertConfig", "DistilBertModel", DISTILBERT,
           [*heads("DistilBert", dict(LABELS, activation="relu", n_heads=4)),
            dict(sinusoidal_pos_embds=True),
            dict(tie_word_embeddings=False, model="DistilBertForMaskedLM")]),
    Family("modernbert", "ModernBertConfig", "ModernBertModel", MODERNBERT,
           [*heads("ModernBert", dict(LABELS, classifier_pooling="mean", norm_bias=True,
                                      classifier_bias=True, attention_bias=True, mlp_bias=True)),
            dict(hidden_activation="silu"), dict(local_attention=2), dict(num_hidden_layers=1),
            dict(layer_types=["sliding_attention", "full_attention", "full_attention",
                              "sliding_attention", "sliding_attention"]),
            dict(rope_parameters=dict(
                full_attention=dict(rope_type="linear", factor=4.0, rope_theta=160000.0),
                sliding_attention=dict(rope_type="default", rope_theta=10000.0))),
            dict(norm_eps=1e-3, classifier_activation="relu", model="ModernBertForMaskedLM"),
            dict(decoder_bias=False, tie_word_embeddings=False, model="ModernBertForMaskedLM")]),
    Family("gpt2", "GPT2Config", "GPT2LMHeadModel",
           dict(vocab_size=259, n_embd=48, n_layer=3, n_head=3, n_positions=64, bos_token_id=None,
                eos_token_id=None),
           [dict(n_inner=100), dict(activation_function="relu"), dict(activation_function="gelu"),
            dict(scale_attn_weights=False), dict(tie_word_embeddings=False),
            dict(layer_norm_epsilon=1e-3)]),
    Family("llama", "LlamaConfig", "LlamaForCausalLM", LLAMA,
           [dict(tie_word_embeddings=True), dict(head_dim=10), dict(num_key_value_heads=6),
            dict(num_key_value_heads=1), dict(attention_bias=True, mlp_bias=True),
            dict(attention_bias=True), dict(mlp_bias=True), dict(rms_norm_eps=1e-3), *ROPE]),
    Family("mistral", "MistralConfig", "MistralForCausalLM", LLAMA,
           [dict(sliding_window=None), dict(sliding_window=5), dict(sliding_window=1),
            dict(head_dim=12, sliding_window=9)]),
    Family("mixtral", "MixtralConfig", "MixtralForCausalLM",
           dict(LLAMA, num_local_experts=4, num_experts_per_tok=2),
           [dict(num_local_experts=3, num_experts_per_tok=1), dict(sliding_window=7)]),
    Family("qwen2", "Qwen2Config", "Qwen2ForCausalLM", LLAMA,
           [dict(tie_word_embeddings=True), dict(num_key_value_heads=3),
            dict(use_sliding_window=True, sliding_window=5, max_window_layers=1), *ROPE]),
    Family("qwen3", "Qwen3Config", "Qwen3ForCausalLM", QWEN,
           [dict(tie_word_embeddings=True), dict(attention_bias=True), dict(head_dim=16),
            dict(use_sliding_window=True, sliding_window=4, max_window_layers=2)]),
    Family("phi3", "Phi3Config", "Phi3ForCausalLM", LLAMA,
           [dict(num_key_value_heads=6), dict(sliding_window=6),
            dict(rope_parameters=dict(rope_theta=10000.0, rope_type="default",
                                      partial_rotary_factor=0.5)),
            dict(rope_parameters=dict(rope_theta=10000.0, rope_type="longrope",
                                      short_factor=[1.0, 1.1, 1.3, 1.7],
                                      long_factor=[1.0, 2.0, 4.0, 8.0],
                                      original_max_position_embeddings=48),
                 original_max_position_embeddings=48)]),
    Family("smollm3", "SmolLM3Config", "SmolLM3ForCausalLM", dict(LLAMA, num_hidden_layers=5),
           [dict(no_rope_layer_interval=2), dict(no_rope_layers=[1, 0, 0, 1, 1]),
            dict(attention_bias=True), dict(mlp_bias=True)]),
    Family("gemma", "GemmaConfig", "GemmaForCausalLM", GEMMA,
           [dict(num_key_value_heads=1), dict(attention_bias=True)]),
    Family("gemma2", "Gemma2Config", "Gemma2ForCausalLM", dict(GEMMA, sliding_window=6),
           [dict(query_pre_attn_scalar=32), dict(attn_logit_softcapping=2.0),
            dict(final_logit_softcapping=None), dict(attn_logit_softcapping=None),
            dict(layer_types=["full_attention", "sliding_attention", "sliding_attention"])]),
    Family("gemma3_text", "Gemma3TextConfig", "Gemma3ForCausalLM", GEMMA3,
           [dict(num_hidden_layers=2), dict(query_pre_attn_scalar=8),
            dict(rope_parameters=dict(
                full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
                sliding_attention=dict(rope_type="default", rope_theta=10000.0)))]),
    Family("olmo2", "Olmo2Config", "Olmo2ForCausalLM", LLAMA,
           [dict(num_key_value_heads=6), dict(attention_bias=True),
            dict(tie_word_embeddings=True)]),
    Family("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", NEOX,
           [dict(use_parallel_residual=False), dict(attention_bias=False),
            dict(hidden_act="gelu_new"), dict(tie_word_embeddings=True),
            dict(rope_parameters=dict(rope_theta=10000.0, rope_type="default",
                                      partial_rotary_factor=1.0))]),
    Family("bloom", "BloomConfig", "BloomForCausalLM",
           dict(vocab_size=259, hidden_size=48, n_layer=3, n_head=4, bos_token_id=None,
                eos_token_id=None),
           [dict(n_head=6), dict(n_head=3), dict(tie_word_embeddings=False)]),
    Family("falcon", "FalconConfig", "FalconForCausalLM", FALCON,
           [dict(bias=True), dict(multi_query=False), dict(parallel_attn=False),
            dict(new_decoder_architecture=True, num_kv_heads=2),
            dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1)]),
]
