// Where the tokenizers of pretrained models come from, besides tokenizer.json. Each of the files
// becomes the text of a tokenizer.json.
#pragma once

#include <filesystem>
#include <string>

#include "io/gguf/gguf_metadata.h"
#include "text/pretrained/pretrained.h"
#include "text/pretrained/tokenizer_config.h"

namespace heddle::text {

// tokenizer.model or spiece.model. The class of the tokenizer says what stands around
// a text; one whose ids are not those of the file is refused.
std::string sentencepiece_file_json(const std::string& path, TokenizerConfig& config);

// vocab.json and merges.txt: byte-level BPE. The pattern that cuts words is that of the class.
std::string vocabulary_and_merges_json(const std::string& vocabulary, const std::string& merges,
                                       TokenizerConfig& config);

// Marian's source.spm and target.spm, with the ids of both in vocab.json, or those of the target in
// target_vocab.json.
PretrainedTokenizer load_marian(const std::filesystem::path& directory, TokenizerConfig config);

// vocab.txt, a token a line: WordPiece.
std::string word_piece_file_json(const std::string& path, TokenizerConfig& config);

// The keys tokenizer.ggml.* and tokenizer.chat_template.
PretrainedTokenizer load_gguf_tokenizer(const io::GgufMetadata& metadata, const std::string& path);

}  // namespace heddle::text
