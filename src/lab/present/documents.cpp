#include "lab/present/documents.h"

namespace heddle::lab {

const std::vector<Document>& documents() {
  static const std::vector<Document> all = {
      {"000", mark("Homework on language models"),
       mark("Theory questions of a course with the answers of a student and of a language model "
            "beside each other, which differ in places: Elman networks, two-way networks as "
            "language models, four scores of attention and what each can compute, symmetry, one "
            "head against two, and the cost of a sliding window with two programs for it.")},
      {"001", mark("Attention exploration, first solution"),
       mark("Short handwritten derivations: when attention copies a value, how to take one vector "
            "out of a sum, the mean of two values, and what keys of uncertain length do to one "
            "head.")},
      {"002", mark("Lecture notes: attention and Transformers"),
       mark("From recurrent networks to the Transformer: self-attention as four matrix products, "
            "masks and heads, Flash Attention, vision models, pre-norm and mixtures of experts.")},
      {"003", mark("Attention exploration, second solution"),
       mark("The questions of 001 answered again with full proofs, two heads instead of one, and "
            "positions: why attention alone does not know an order, and whether sinusoidal codes "
            "ever repeat.")},
      {"004", mark("Notes on the whole Transformer"),
       mark("One part after the other: embeddings, positions (sinusoidal, RoPE, ALiBi, T5), "
            "self-attention step by step, masks, heads, residuals, norms, teacher forcing and the "
            "cache of keys and values.")},
  };
  return all;
}

std::vector<std::string> documents_of(const Experiment& experiment) {
  std::vector<std::string> found;
  for (const Document& d : documents())
    if (experiment.source.find(d.number) != std::string::npos) found.push_back(d.number);
  return found;
}

}  // namespace heddle::lab
