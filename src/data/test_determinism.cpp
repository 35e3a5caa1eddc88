// A batch is a function of (seed, step, batch size): nothing else may reach it.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "data/test_support.h"
#include "heddle/runtime.h"

namespace heddle::data {
namespace {

constexpr std::int64_t kSteps = 30;  // more than two epochs of all samples

std::vector<std::string> batches_in_order(const Dataset& data) {
  std::vector<std::string> all(static_cast<std::size_t>(kSteps));
  for (std::int64_t step = 0; step < kSteps; ++step)
    all[static_cast<std::size_t>(step)] = bytes_of(data.training_batch(step, 7, 42));
  return all;
}

TEST(DataDeterminism, TheOrderOfCallsDoesNotMatter) {
  const SampleData files;
  for (const Sample& sample : files.all()) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    const std::vector<std::string> expected = batches_in_order(*data);
    for (std::int64_t step = kSteps - 1; step >= 0; --step) {
      // Something else in between: another seed, another batch size.
      data->training_batch(step, 7, 1);
      data->training_batch(step / 3, 3, 42);
      EXPECT_EQ(bytes_of(data->training_batch(step, 7, 42)),
                expected[static_cast<std::size_t>(step)])
          << "step " << step;
    }
  }
}

TEST(DataShape, IsThatOfTheBatch) {
  const SampleData files;
  std::vector<Sample> samples = files.all();
  samples.push_back(files.language());
  samples.back().config.documents = Documents::line;
  for (const Sample& sample : samples) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    for (const std::int64_t batch : {1, 7, 200})  // the last is more than there are examples
      for (std::int64_t step = 0; step < kSteps; ++step) {
        const model::Batch made = data->training_batch(step, batch, 42);
        const BatchShape shape = data->training_shape(step, batch, 42);
        const auto columns = [](const Tensor& t) { return t.defined() ? t.size(1) : 0; };
        EXPECT_EQ(shape.sequences, made.targets.size(0));
        EXPECT_EQ(shape.tokens, columns(made.tokens));
        EXPECT_EQ(shape.target_tokens, columns(made.target_tokens));
        EXPECT_EQ(shape.documents, made.documents.defined());
      }
  }
  // A text has windows for any batch; this one would be 64 TB.
  const BatchShape shape = files.language().open()->training_shape(0, std::int64_t{1} << 40, 42);
  EXPECT_EQ(shape.sequences, std::int64_t{1} << 40);
}

TEST(DataDeterminism, ThreadsDoNotMatter) {
  const SampleData files;
  const int before = threads();
  for (const Sample& sample : files.all()) {
    SCOPED_TRACE(sample.name);
    set_threads(1);
    const auto one = sample.open();
    const std::vector<std::string> expected = batches_in_order(*one);
    for (const int count : {2, 3, 8}) {
      set_threads(count);
      const auto other = sample.open();
      EXPECT_EQ(batches_in_order(*other), expected);
      EXPECT_EQ(other->summary(), one->summary());
    }
  }
  set_threads(before);
}

TEST(DataDeterminism, BatchesMayBeMadeOnManyThreads) {
  const SampleData files;
  for (const Sample& sample : files.all()) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    const std::vector<std::string> expected = batches_in_order(*data);
    std::vector<std::string> got(static_cast<std::size_t>(kSteps));
    std::vector<std::thread> workers;
    workers.reserve(3);
    for (std::int64_t worker = 0; worker < 3; ++worker)
      workers.emplace_back([&, worker] {
        for (std::int64_t step = worker; step < kSteps; step += 3)
          got[static_cast<std::size_t>(step)] = bytes_of(data->training_batch(step, 7, 42));
      });
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(got, expected);
  }
}

TEST(DataDeterminism, SeedsAndStepsDiffer) {
  const SampleData files;
  for (const Sample& sample : files.all()) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    const std::set<std::string> distinct = {
        bytes_of(data->training_batch(0, 7, 1)), bytes_of(data->training_batch(0, 7, 2)),
        bytes_of(data->training_batch(1, 7, 1)),
        bytes_of(data->training_batch(data->epoch_steps(7), 7, 1))};
    EXPECT_EQ(distinct.size(), 4u);
  }
}

TEST(DataDeterminism, ASavedCodecGivesTheSameBatches) {
  const SampleData files;
  for (const Sample& sample : files.all()) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    const io::TempDir run;
    data->codec().save(run.path());
    OpenOptions options;
    options.codec = Codec::load(run.path());
    const auto again = sample.open(options);
    EXPECT_EQ(batches_in_order(*again), batches_in_order(*data));
    EXPECT_EQ(bytes_of(again->validation_batch(0, 3)), bytes_of(data->validation_batch(0, 3)));
  }
}

TEST(DataDeterminism, WrongNumbersAreRefused) {
  const SampleData files;
  for (const Sample& sample : files.all()) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    EXPECT_THROW(data->training_batch(-1, 4, 0), Error);
    EXPECT_THROW(data->training_batch(0, 0, 0), Error);
    EXPECT_THROW(data->epoch_steps(0), Error);
    EXPECT_THROW(data->validation_batch(-1, 4), Error);
    EXPECT_THROW(data->validation_batch(data->validation_batches(4), 4), Error);
    EXPECT_FALSE(data->has_test());
    EXPECT_THROW(data->test_batches(4), Error);
    EXPECT_THROW(data->test_batch(0, 4), Error);
  }
}

// The validation data are the same whichever way they are cut into batches, and no part of them is
// in the training data.
TEST(DataDeterminism, TargetsOfAnEvaluationDoNotDependOnTheBatchSize) {
  const SampleData files;
  for (const Sample& sample : files.all()) {
    SCOPED_TRACE(sample.name);
    const auto data = sample.open();
    const auto counted = [&](std::int64_t batch) {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < data->validation_batches(batch); ++i)
        sum += data->validation_batch(i, batch).counted;
      return sum;
    };
    EXPECT_GT(counted(3), 0);
    EXPECT_EQ(counted(3), counted(1));  // a batch may have no target: most windows hide few tokens
    EXPECT_EQ(counted(3), counted(8));
    EXPECT_EQ(counted(3), counted(1000));
  }
}

}  // namespace
}  // namespace heddle::data
