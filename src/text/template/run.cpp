#include "text/template/run.h"

#include <utility>

namespace heddle::text::chat {
namespace {

[[noreturn]] void over_limit(const Run& run, std::string_view what, std::uint64_t most,
                             std::uint64_t found) {
  run.refuse(what, "at most " + std::to_string(most), found > most ? std::to_string(found) : "more",
             ErrorCode::out_of_range);
}

}  // namespace

std::string template_place(std::string_view where, std::size_t line) {
  return std::string(where) + ", line " + std::to_string(line);
}

Run::~Run() {
  for (const auto& space : namespaces_) space->entries.clear();
}

void Run::refuse(std::string_view problem, std::string_view expected, std::string_view found,
                 ErrorCode code) const {
  fail(code, template_place(where_, line), problem, expected, found);
}

void Run::unsupported(std::string_view construct) const {
  refuse(std::string(construct) + " is not supported in chat templates", {}, {},
         ErrorCode::unsupported);
}

void Run::step(std::uint64_t count) {
  if (count > limits_.steps - steps_) over_limit(*this, "steps of the rendering", limits_.steps, 0);
  steps_ += count;
}

void Run::search(std::size_t bytes) {
  if (bytes > limits_.work_bytes - work_bytes_)
    over_limit(*this, "bytes of all strings that the rendering makes", limits_.work_bytes, 0);
  work_bytes_ += bytes;
}

void Run::make_string(std::size_t bytes) {
  if (bytes > limits_.string_bytes)
    over_limit(*this, "bytes of a string", limits_.string_bytes, bytes);
  search(bytes);
}

void Run::make_list(std::size_t items) {
  if (items > limits_.list_items) over_limit(*this, "items of a list", limits_.list_items, items);
  step(items);
}

void Run::output(std::size_t bytes) {
  if (bytes > limits_.output_bytes - output_bytes_)
    over_limit(*this, "bytes of output", limits_.output_bytes, 0);
  output_bytes_ += bytes;
}

void Run::enter() {
  if (depth_ >= limits_.run_depth)
    over_limit(*this, "levels of the evaluation (macros that call macros)", limits_.run_depth, 0);
  ++depth_;
}

Value Run::make_namespace(std::shared_ptr<Attributes> attributes) {
  if (namespaces_.size() >= limits_.namespaces)
    over_limit(*this, "namespaces", limits_.namespaces, 0);
  namespaces_.push_back(attributes);
  return Value::attributes(std::move(attributes), Kind::name_space);
}

}  // namespace heddle::text::chat
