// One maker per kind of model; build_model() chooses. Each has its file.
#pragma once

#include <memory>

#include "model/model.h"

namespace heddle::model {

using OwnedParameters = std::unique_ptr<nn::Parameters>;

std::unique_ptr<Model> make_decoder(const ModelConfig& config, OwnedParameters parameters);
std::unique_ptr<Model> make_encoder(const ModelConfig& config, OwnedParameters parameters);
std::unique_ptr<Model> make_encoder_decoder(const ModelConfig& config, OwnedParameters parameters);
std::unique_ptr<Model> make_vit(const ModelConfig& config, OwnedParameters parameters);
std::unique_ptr<Model> make_rnn(const ModelConfig& config, OwnedParameters parameters);
std::unique_ptr<Model> make_birnn(const ModelConfig& config, OwnedParameters parameters);
std::unique_ptr<Model> make_rnn_seq2seq(const ModelConfig& config, OwnedParameters parameters);

// Checks the recurrent kinds' requirements on a configuration; part of validate().
void validate_recurrent(const ModelConfig& config);

// nn::validate() of attention as the model has it: errors name the keys of the recipe.
void validate_attention(const nn::AttentionConfig& config);

}  // namespace heddle::model
