// Runs of a few steps, for tests of what programs do with a trained model.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "data/test_support.h"
#include "run/recipe_file.h"
#include "train/job.h"

namespace heddle {

class TrainedTest : public testing::Test {
 protected:
  // The directory of a run of a small model.
  std::string trained(const std::string& name, const std::string& model, const std::string& data) {
    const std::string recipe =
        dir_.file(name + ".toml", "[model]\nlayers = 1\nwidth = 8\n" + model + "[data]\n" + data +
                                      "[train]\nsteps = 3\nbatch = 4\n");
    train::Job job = train::Job::begin(run::load_recipe(recipe, {}), dir_.file(name));
    job.run({});
    return dir_.file(name);
  }
  std::string decoder() {
    return trained("decoder", "kind = \"decoder\"\nattention.position = \"learned\"\n",
                   "text = \"" + data_.file("text.txt") +
                       "\"\ncontext = 12\ntokenizer = \"char\"\nvalidation_share = 0.2\n");
  }
  std::string translator() {
    return trained("translator", "kind = \"encoder-decoder\"\n",
                   words("pairs", "pairs.tsv") + "max_length = 16\n");
  }
  std::string tagger() {
    return trained("tagger", "kind = \"encoder\"\ntask = \"tag\"\n", words("tags", "tags.tsv"));
  }
  std::string reviews() {
    return trained("reviews", "kind = \"encoder\"\ntask = \"classify\"\n",
                   words("labelled", "labelled.tsv") + "max_length = 6\n");
  }
  std::string pictures() {
    return trained("pictures", "kind = \"vit\"\npatch = 2\n",
                   "images = \"" + data_.file("images.idx") + "\"\nlabels = \"" +
                       data_.file("labels.idx") + "\"\nvalidation_share = 0.2\n");
  }

  data::SampleData data_;
  io::TempDir dir_;

 private:
  std::string words(const std::string& key, const std::string& file) const {
    return key + " = \"" + data_.file(file) + "\"\nvalidation_share = 0.2\ntokenizer = \"word\"\n";
  }
};

}  // namespace heddle
