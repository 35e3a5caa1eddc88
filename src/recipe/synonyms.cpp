#include "recipe/synonyms.h"

#include <array>

namespace heddle::recipe {

namespace {

struct Synonym {
  std::string_view theirs, ours;
  std::string_view remark = {};
};

constexpr std::string_view kSteps =
    "a run has so many steps; an epoch is the number of windows, pairs or images divided by "
    "train.batch";
constexpr std::string_view kLookBack =
    "look_back counts earlier tokens, without the token itself: a window of w tokens is "
    "look_back = w - 1";
constexpr std::string_view kAttentionBias =
    "of queries, keys and values; model.out_bias is that of the projection back";
constexpr std::string_view kVocabulary =
    "the tokenizer decides it: data.tokenizer = \"bpe:8000\" has 8000 tokens";

// GPT-2's, nanoGPT's, Llama's, PyTorch's and Hugging Face's words.
constexpr std::array kSynonyms = {
    Synonym{"n_layer", "model.layers"},
    Synonym{"n_layers", "model.layers"},
    Synonym{"num_layers", "model.layers"},
    Synonym{"num_hidden_layers", "model.layers"},
    Synonym{"depth", "model.layers"},
    Synonym{"d_model", "model.width"},
    Synonym{"n_embd", "model.width"},
    Synonym{"dim", "model.width"},
    Synonym{"hidden_size", "model.width"},
    Synonym{"hidden_dim", "model.width"},
    Synonym{"embed_dim", "model.width"},
    Synonym{"d_ff", "model.ffn_width"},
    Synonym{"dim_feedforward", "model.ffn_width"},
    Synonym{"intermediate_size", "model.ffn_width"},
    Synonym{"activation", "model.ffn"},
    Synonym{"hidden_act", "model.ffn"},
    Synonym{"norm_first", "model.norm_place"},
    Synonym{"rms_norm_eps", "model.norm_epsilon"},
    Synonym{"layer_norm_eps", "model.norm_epsilon"},
    Synonym{"layer_norm_epsilon", "model.norm_epsilon"},
    Synonym{"use_qk_norm", "model.qk_norm"},
    Synonym{"use_parallel_residual", "model.parallel"},
    Synonym{"parallel_attn", "model.parallel"},
    Synonym{"attention_bias", "model.qkv_bias", kAttentionBias},
    Synonym{"use_qkv_bias", "model.qkv_bias"},
    Synonym{"mlp_bias", "model.ffn_bias"},
    Synonym{"lm_head_bias", "model.head_bias"},
    Synonym{"swiglu_limit", "model.ffn_clamp"},
    Synonym{"final_logit_softcapping", "model.logit_softcap"},
    Synonym{"logits_scaling", "model.logit_scale",
            "logit_scale multiplies: it is 1 / logits_scaling"},
    Synonym{"residual_multiplier", "model.residual_scale"},
    Synonym{"embedding_multiplier", "model.embedding_scale"},
    Synonym{"layerscale_value", "model.layer_scale"},
    Synonym{"tie_word_embeddings", "model.tied"},
    Synonym{"tie_embeddings", "model.tied"},
    Synonym{"share_encoder_decoder_embeddings", "model.shared_embedding"},
    Synonym{"patch_size", "model.patch"},
    Synonym{"dropout_rate", "model.dropout"},
    Synonym{"n_head", "model.attention.heads"},
    Synonym{"n_heads", "model.attention.heads"},
    Synonym{"nhead", "model.attention.heads"},
    Synonym{"num_heads", "model.attention.heads"},
    Synonym{"num_attention_heads", "model.attention.heads"},
    Synonym{"n_kv_head", "model.attention.kv_heads"},
    Synonym{"n_kv_heads", "model.attention.kv_heads"},
    Synonym{"num_kv_heads", "model.attention.kv_heads"},
    Synonym{"num_key_value_heads", "model.attention.kv_heads"},
    Synonym{"head_dim", "model.attention.head_width"},
    Synonym{"d_head", "model.attention.head_width"},
    Synonym{"window", "model.attention.look_back", kLookBack},
    Synonym{"window_size", "model.attention.look_back", kLookBack},
    Synonym{"sliding_window", "model.attention.look_back", kLookBack},
    Synonym{"rope_theta", "model.attention.rope_base"},
    Synonym{"position_embedding", "model.attention.position"},
    Synonym{"pos_encoding", "model.attention.position"},
    Synonym{"attention_dropout", "model.attention.dropout"},
    Synonym{"attn_pdrop", "model.attention.dropout"},
    Synonym{"attn_logit_softcapping", "model.attention.softcap"},
    Synonym{"layer_types", "model.attention.pattern"},
    Synonym{"norm_topk_prob", "model.moe.renormalise"},
    Synonym{"routed_scaling_factor", "model.moe.routed_scale"},
    Synonym{"first_k_dense_replace", "model.moe.dense_layers"},
    Synonym{"n_shared_experts", "model.moe.shared"},
    Synonym{"num_experts", "model.moe.experts"},
    Synonym{"num_local_experts", "model.moe.experts"},
    Synonym{"num_experts_per_tok", "model.moe.active"},
    Synonym{"top_k", "model.moe.active"},
    Synonym{"block_size", "data.context"},
    Synonym{"seq_len", "data.context"},
    Synonym{"seq_length", "data.context"},
    Synonym{"max_seq_len", "data.context"},
    Synonym{"context_length", "data.context"},
    Synonym{"n_ctx", "data.context"},
    Synonym{"max_position_embeddings", "data.context"},
    Synonym{"vocab_size", "data.tokenizer", kVocabulary},
    Synonym{"vocabulary", "data.tokenizer", kVocabulary},
    Synonym{"dataset", "data.text"},
    Synonym{"train_file", "data.text"},
    Synonym{"val_split", "data.validation_share"},
    Synonym{"lr", "train.learning_rate"},
    Synonym{"max_lr", "train.learning_rate"},
    Synonym{"min_lr", "train.final_share"},
    Synonym{"lr_scheduler", "train.schedule"},
    Synonym{"lr_scheduler_type", "train.schedule"},
    Synonym{"batch_size", "train.batch"},
    Synonym{"per_device_train_batch_size", "train.batch"},
    Synonym{"gradient_accumulation_steps", "train.accumulate"},
    Synonym{"grad_accum", "train.accumulate"},
    Synonym{"epochs", "train.steps", kSteps},
    Synonym{"num_epochs", "train.steps", kSteps},
    Synonym{"num_train_epochs", "train.steps", kSteps},
    Synonym{"max_steps", "train.steps"},
    Synonym{"max_iters", "train.steps"},
    Synonym{"iterations", "train.steps"},
    Synonym{"warmup_steps", "train.warmup"},
    Synonym{"warmup_iters", "train.warmup"},
    Synonym{"wd", "train.weight_decay"},
    Synonym{"grad_clip", "train.clip"},
    Synonym{"max_grad_norm", "train.clip"},
    Synonym{"gradient_checkpointing", "train.recompute"},
    Synonym{"dtype", "train.precision"},
    Synonym{"torch_dtype", "train.precision"},
    Synonym{"optim", "train.optimizer"},
    Synonym{"eval_interval", "train.eval_every"},
    Synonym{"eval_steps", "train.eval_every"},
    Synonym{"save_steps", "train.save_every"},
    Synonym{"log_interval", "train.log_every"},
    Synonym{"logging_steps", "train.log_every"},
    Synonym{"early_stopping_patience", "train.patience"},
};

// Heddle's own keys that are asked for as options (--layers 4).
constexpr std::array kOwn = {
    Synonym{"layers", "model.layers"},
    Synonym{"width", "model.width"},
    Synonym{"norm", "model.norm"},
    Synonym{"ffn", "model.ffn"},
    Synonym{"dropout", "model.dropout"},
    Synonym{"heads", "model.attention.heads"},
    Synonym{"kv_heads", "model.attention.kv_heads"},
    Synonym{"look_back", "model.attention.look_back"},
    Synonym{"position", "model.attention.position"},
    Synonym{"score", "model.attention.score"},
    Synonym{"data", "data.text"},
    Synonym{"text", "data.text"},
    Synonym{"tokenizer", "data.tokenizer"},
    Synonym{"context", "data.context"},
    Synonym{"steps", "train.steps"},
    Synonym{"batch", "train.batch"},
    Synonym{"learning_rate", "train.learning_rate"},
    Synonym{"precision", "train.precision"},
    Synonym{"optimizer", "train.optimizer"},
    Synonym{"warmup", "train.warmup"},
    Synonym{"seed", "train.seed"},
};

}  // namespace

std::string recipe_key(std::string_view name) {
  for (const Synonym& s : kOwn)
    if (s.theirs == name) return std::string(s.ours);
  for (const Synonym& s : kSynonyms)
    if (s.theirs == name) return std::string(s.ours);
  return {};
}

const io::KeyHabits& key_habits() {
  static const io::KeyHabits habits = [] {
    io::KeyHabits all;
    for (const Synonym& s : kSynonyms)
      all[std::string(s.theirs)] = {std::string(s.ours), std::string(s.remark)};
    return all;
  }();
  return habits;
}

}  // namespace heddle::recipe
