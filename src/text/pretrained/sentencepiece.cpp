#include "text/pretrained/sentencepiece.h"

#include <bit>
#include <cmath>
#include <utility>

#include "io/errors.h"
#include "text/pretrained/protobuf.h"
#include "text/tokenizer.h"

namespace heddle::text {

namespace {

using Wire = ProtoField::Wire;

// Numbers of fields, of sentencepiece_model.proto.
struct ModelField {
  static constexpr std::uint32_t pieces = 1, trainer = 2, normalizer = 3, denormalizer = 5;
};
struct PieceField {
  static constexpr std::uint32_t name = 1, score = 2, kind = 3;
};
struct TrainerField {
  static constexpr std::uint32_t kind = 3, space_is_suffix = 24, byte_fallback = 35;
};
struct NormalizerField {
  static constexpr std::uint32_t charsmap = 2, prefix_space = 3, extra_spaces = 4, escape = 5;
};

class SentencePieceReader {
 public:
  explicit SentencePieceReader(std::string_view where) : where_(where) {}

  SentencePieceModel read(std::string_view file) {
    ProtoReader reader(file, where_);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case ModelField::pieces: read_piece(message(*field)); break;
        case ModelField::trainer: read_trainer(message(*field)); break;
        case ModelField::normalizer: read_normalizer(message(*field)); break;
        case ModelField::denormalizer: read_denormalizer(message(*field)); break;
        default: break;  // tests of itself
      }
    }
    if (model_.pieces.empty())
      io::fail_io(where_, "not a SentencePiece model", "pieces", "a message without any");
    return std::move(model_);
  }

 private:
  std::string_view message(const ProtoField& field) const {
    if (field.wire != Wire::bytes)
      io::fail_io(where_, "field " + std::to_string(field.number), "a message", "a number");
    return field.bytes;
  }
  bool boolean(const ProtoField& field) const { return number(field) != 0; }
  std::uint64_t number(const ProtoField& field) const {
    if (field.wire != Wire::integer)
      io::fail_io(where_, "field " + std::to_string(field.number), "an integer", "something else");
    return field.value;
  }

  void read_piece(std::string_view bytes) {
    if (model_.pieces.size() == static_cast<std::size_t>(kMaxVocabulary))
      io::fail_io(where_, "pieces", "at most " + std::to_string(kMaxVocabulary), "more");
    SentencePiece piece;
    ProtoReader reader(bytes, where_);
    while (const auto field = reader.next()) {
      if (field->number == PieceField::name) piece.name = message(*field);
      if (field->number == PieceField::score && field->wire == Wire::four_bytes)
        piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
      if (field->number == PieceField::kind) piece.kind = kind_of(number(*field), piece.name);
    }
    if (!std::isfinite(piece.score))
      io::fail_io(where_, "the score of " + io::shown(piece.name), "a number",
                  std::to_string(piece.score));
    model_.pieces.push_back(std::move(piece));
  }

  SentencePiece::Kind kind_of(std::uint64_t number, std::string_view name) const {
    using Kind = SentencePiece::Kind;
    if (number < static_cast<std::uint64_t>(Kind::normal) ||
        number > static_cast<std::uint64_t>(Kind::byte))
      io::fail_io(where_, "the type of the piece " + io::shown(name), "from 1 to 6",
                  std::to_string(number));
    return static_cast<Kind>(number);
  }

  void read_trainer(std::string_view bytes) {
    ProtoReader reader(bytes, where_);
    while (const auto field = reader.next()) {
      if (field->number == TrainerField::kind) {
        const std::uint64_t kind = number(*field);
        if (kind != 1 && kind != 2)
          io::fail_io(where_, "model_type", "1 (unigram) or 2 (BPE)", std::to_string(kind));
        model_.kind = static_cast<SentencePieceModel::Kind>(kind);
      }
      if (field->number == TrainerField::byte_fallback) model_.byte_fallback = boolean(*field);
      if (field->number == TrainerField::space_is_suffix && boolean(*field))
        io::fail_io(where_, "treat_whitespace_as_suffix", "false, as the other is not supported",
                    "true");
    }
  }

  void read_normalizer(std::string_view bytes) {
    ProtoReader reader(bytes, where_);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case NormalizerField::charsmap: model_.charsmap = message(*field); break;
        case NormalizerField::prefix_space: model_.add_prefix_space = boolean(*field); break;
        case NormalizerField::extra_spaces: model_.remove_extra_spaces = boolean(*field); break;
        case NormalizerField::escape: model_.escape_spaces = boolean(*field); break;
        default: break;  // names, and the rules that the map was made of
      }
    }
  }

  void read_denormalizer(std::string_view bytes) {
    ProtoReader reader(bytes, where_);
    while (const auto field = reader.next())
      if (field->number == NormalizerField::charsmap && !message(*field).empty())
        io::fail_io(where_, "denormalizer_spec", "no map of characters, which is not supported",
                    std::to_string(field->bytes.size()) + " bytes");
  }

  std::string_view where_;
  SentencePieceModel model_;
};

}  // namespace

SentencePieceModel read_sentencepiece(std::string_view file, std::string_view where) {
  return SentencePieceReader(where).read(file);
}

}  // namespace heddle::text
