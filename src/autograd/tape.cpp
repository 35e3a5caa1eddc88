#include "heddle/tape.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "autograd/accumulate.h"
#include "autograd/nested.h"
#include "autograd/observe.h"
#include "autograd/receive.h"
#include "autograd/record.h"
#include "backend/routine.h"
#include "tensor/storage.h"

namespace heddle {

namespace {
thread_local const autograd::OpObserver* active_observer = nullptr;
thread_local const autograd::GradientReceiver* active_receiver = nullptr;
thread_local autograd::NoteLeaves* active_notes = nullptr;

// Takes what a pointer of the thread points to, and puts it back.
template <class T>
struct Unset {
  explicit Unset(const T*& at) : value(std::exchange(at, nullptr)), place(at) {}
  ~Unset() { place = value; }
  Unset(const Unset&) = delete;
  Unset& operator=(const Unset&) = delete;

  const T* const value;
  const T*& place;
};
}  // namespace

// A slot stands for one tensor on the tape; an entry for one recorded op, with its input and output
// slots in `edges` (inputs first; -1: an input without gradient).
struct TapeState {
  struct Slot {
    Tensor grad;
    std::shared_ptr<TensorImpl> leaf;  // null for outputs of ops
    Shape shape;
    DType dtype = DType::f32;
  };
  struct Entry {
    const char* op = "";
    std::size_t first_edge = 0;
    std::size_t first_slot = 0;  // those of tensors that it is the first to use, or to give
    int inputs = 0;
    int outputs = 0;
    std::unique_ptr<autograd::Vjp> vjp;
  };

  std::uint64_t serial = 0;
  bool spent = false;
  TapeState* outer = nullptr;
  std::vector<Slot> slots;
  std::vector<Entry> entries;
  std::vector<std::int32_t> edges;

  std::int32_t new_slot(TensorImpl& tensor, std::shared_ptr<TensorImpl> leaf) {
    tensor.tape_serial = serial;
    tensor.op_output = leaf == nullptr;
    tensor.tape_slot = static_cast<std::int32_t>(slots.size());
    slots.push_back({Tensor(), std::move(leaf), tensor.shape, tensor.dtype});
    return tensor.tape_slot;
  }

  bool knows(const TensorImpl& t) const { return t.tape_slot >= 0 && t.tape_serial == serial; }

  std::int32_t input_slot(const std::shared_ptr<TensorImpl>& t) {
    if (t == nullptr) return -1;
    if (knows(*t)) return t->tape_slot;
    return t->requires_grad ? new_slot(*t, t) : -1;
  }

  bool has_cotangent(const Entry& e) const {
    for (int i = 0; i < e.outputs; ++i)
      if (slots[output_slot(e, i)].grad.defined()) return true;
    return false;
  }

  std::size_t output_slot(const Entry& e, int i) const {
    return static_cast<std::size_t>(edges[e.first_edge + static_cast<std::size_t>(e.inputs + i)]);
  }

  void add(const Entry& e, int input, const Tensor& grad) {
    const std::int32_t at = edges[e.first_edge + static_cast<std::size_t>(input)];
    if (at < 0) return;
    Slot& slot = slots[static_cast<std::size_t>(at)];
    if (grad.shape() != slot.shape || grad.dtype() != slot.dtype)
      fail(ErrorCode::autograd, e.op,
           "its gradient of input " + std::to_string(input) + " does not fit the input",
           std::string(to_string(slot.dtype)) + " " + to_string(slot.shape), grad.describe());
    slot.grad = autograd::accumulated(std::move(slot.grad), grad);
    if (slot.leaf != nullptr) book_as_gradient(slot.grad);
  }

  // Memory is compared by purpose: what will be a leaf's gradient counts as one from the start.
  static void book_as_gradient(const Tensor& grad) {
    if (grad.impl()->storage.use_count() == 1)
      grad.impl()->storage->set_purpose(Purpose::gradients);
  }

  // Hands a leaf's gradient over, as a contiguous tensor that nothing else writes to.
  static void deliver(Slot& slot) {
    Tensor leaf(slot.leaf);
    if (Tensor sum = leaf.grad(); sum.defined()) {
      slot.leaf->grad = nullptr;  // so that the sum can be made in place
      leaf.set_grad(autograd::accumulated(std::move(sum), slot.grad));
    } else {
      Tensor grad = slot.grad;
      slot.grad = Tensor();
      const bool shared = grad.impl().use_count() > 1 || grad.impl()->storage.use_count() > 1;
      if (shared || !grad.contiguous()) {
        const PurposeScope scope(Purpose::gradients);
        Tensor copy = Tensor::zeros(grad.shape(), grad.dtype(), grad.device());
        grad = autograd::accumulated(std::move(copy), grad);
      }
      grad.impl()->storage->set_purpose(Purpose::gradients);
      leaf.set_grad(grad);
    }
    slot.grad = Tensor();
  }

  void show_gradients(const Entry& e, std::size_t number) const {
    autograd::OpEvent event{e.op, number, true, {}, {}};
    for (int i = 0; i < e.inputs; ++i) {
      const std::int32_t at = edges[e.first_edge + static_cast<std::size_t>(i)];
      const Slot* slot = at < 0 ? nullptr : &slots[static_cast<std::size_t>(at)];
      event.inputs.push_back(slot != nullptr && slot->leaf ? Tensor(slot->leaf) : Tensor());
      event.values.push_back(slot != nullptr ? slot->grad : Tensor());
    }
    (*active_observer)(event);
  }

  // Leaves whose first use is an op that has been differentiated: nothing more can arrive.
  void tell_complete(const autograd::GradientReceiver& receiver, std::size_t begin,
                     std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Slot& slot = slots[i];
      if (slot.leaf == nullptr) continue;
      if (slot.grad.defined()) deliver(slot);
      Tensor leaf(slot.leaf);
      receiver(leaf);
    }
  }

  void run() {
    // Tapes of recomputed regions begin within this pass, and have no receiver.
    const Unset<autograd::GradientReceiver> receiver(active_receiver);
    std::size_t told = slots.size();
    for (std::size_t i = entries.size(); i-- > 0;) {
      Entry& e = entries[i];
      if (has_cotangent(e)) {
        VjpContext context(*this, i);
        e.vjp->run(context);
        if (active_observer != nullptr) show_gradients(e, i);
      }
      e.vjp = nullptr;  // releases what the op had saved
      for (int o = 0; o < e.outputs; ++o) slots[output_slot(e, o)].grad = Tensor();
      if (receiver.value == nullptr) continue;
      tell_complete(*receiver.value, e.first_slot, told);
      told = e.first_slot;
    }
    if (receiver.value != nullptr) tell_complete(*receiver.value, 0, told);
    for (Slot& slot : slots)
      if (slot.leaf != nullptr && slot.grad.defined()) deliver(slot);
  }
};

namespace {

thread_local TapeState* active_tape = nullptr;
thread_local int no_grad_depth = 0;
std::atomic<std::uint64_t> last_serial{0};  // across threads: leaves may meet several tapes

// The constructor that nested_tape() calls; set by the first Tape.
std::unique_ptr<Tape> (*make_tape)() = nullptr;

// Once for the process.
void open_for_tapes() {
  static const bool opened = [] {
    backend::open_training();
    make_tape = [] { return std::make_unique<Tape>(); };
    return true;
  }();
  (void)opened;
}

// The innermost tape that is not used up: an outer one goes on where an inner one is done.
TapeState* recorder() {
  if (no_grad_depth > 0) return nullptr;
  TapeState* tape = active_tape;
  while (tape != nullptr && tape->spent) tape = tape->outer;
  return tape;
}

// A tensor computed on another tape would be a constant on this one, without anybody noticing.
void refuse_foreign(const TensorImpl& t) {
  if (t.op_output)
    fail(ErrorCode::autograd, "tape", "the output of an op on another tape is used on this one",
         "a tensor of this tape, or detach() where no gradient is wanted",
         "one of an outer tape, or of one that is gone");
}

bool on_tape(const TapeState& tape, const Tensor* t) {
  if (t == nullptr || !t->defined()) return false;
  if (t->impl()->requires_grad || tape.knows(*t->impl())) return true;
  refuse_foreign(*t->impl());
  return false;
}

}  // namespace

Tape::Tape() : state_(std::make_unique<TapeState>()) {
  open_for_tapes();
  state_->serial = ++last_serial;
  state_->outer = active_tape;
  active_tape = state_.get();
}

Tape::~Tape() {
  // As a rule the innermost goes first; tapes that are held by pointers may go in any order.
  for (TapeState** link = &active_tape; *link != nullptr; link = &(*link)->outer)
    if (*link == state_.get()) {
      *link = state_->outer;
      return;
    }
}

std::size_t Tape::recorded_ops() const noexcept { return state_->entries.size(); }

void Tape::backward(const Tensor& loss) {
  if (loss.elements() != 1)
    fail(ErrorCode::autograd, "backward", "only a single number has a gradient without a cotangent",
         "a tensor with one element, or cotangents", loss.describe());
  const Tensor one = Tensor::full(loss.shape(), 1.0, loss.dtype(), loss.device());
  backward(std::span(&loss, 1), std::span(&one, 1));
}

void Tape::backward(std::span<const Tensor> outputs, std::span<const Tensor> cotangents) {
  TapeState& s = *state_;
  if (s.spent)
    fail(ErrorCode::autograd, "backward", "this tape has already been used for a backward pass",
         "one backward() per tape: compute the loss again on a new Tape", "a second backward()");
  if (outputs.size() != cotangents.size())
    fail(ErrorCode::autograd, "backward", "outputs and cotangents do not pair up",
         std::to_string(outputs.size()) + " cotangents", std::to_string(cotangents.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    if (!y.defined() || s.input_slot(y.impl()) < 0)
      fail(ErrorCode::autograd, "backward", "the tensor was not computed on this tape",
           "an output of a recorded op (did anything it depends on require a gradient?)",
           y.describe());
    if (cotangents[i].shape() != y.shape() || cotangents[i].dtype() != y.dtype() ||
        cotangents[i].device() != y.device())
      fail(ErrorCode::autograd, "backward", "the cotangent does not fit its output", y.describe(),
           cotangents[i].describe());
  }
  const NoGrad no_grad;
  s.spent = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    TapeState::Slot& slot = s.slots[static_cast<std::size_t>(outputs[i].impl()->tape_slot)];
    slot.grad = autograd::accumulated(std::move(slot.grad), cotangents[i]);
  }
  s.run();
  s.entries.clear();
  s.slots.clear();
  s.edges.clear();
}

NoGrad::NoGrad() noexcept { ++no_grad_depth; }
NoGrad::~NoGrad() { --no_grad_depth; }

const Tensor& VjpContext::cotangent(int i) const {
  return tape_.slots[tape_.output_slot(tape_.entries[entry_], i)].grad;
}

bool VjpContext::needs(int input) const {
  const auto& e = tape_.entries[entry_];
  return tape_.edges[e.first_edge + static_cast<std::size_t>(input)] >= 0;
}

Tensor VjpContext::take_sum(int input) {
  if (!needs(input)) return {};
  const auto& e = tape_.entries[entry_];
  const std::int32_t at = tape_.edges[e.first_edge + static_cast<std::size_t>(input)];
  Tensor& sum = tape_.slots[static_cast<std::size_t>(at)].grad;
  if (!sum.defined() || !autograd::sole_owner(sum)) return {};
  return std::exchange(sum, Tensor());
}

void VjpContext::add(int input, const Tensor& grad) {
  tape_.add(tape_.entries[entry_], input, grad);
}

namespace autograd {

namespace {

void show_outputs(const char* op, std::size_t number, Inputs inputs, Outputs outputs) {
  OpEvent event{op, number, false, {}, {}};
  for (const Tensor* t : inputs) event.inputs.push_back(t == nullptr ? Tensor() : *t);
  for (const Tensor* t : outputs) event.values.push_back(*t);
  (*active_observer)(event);
}

}  // namespace

ObserveOps::ObserveOps(OpObserver observer)
    : observer_(std::move(observer)), outer_(std::exchange(active_observer, &observer_)) {}
ObserveOps::~ObserveOps() { active_observer = outer_; }

ReceiveGradients::ReceiveGradients(GradientReceiver receiver)
    : receiver_(std::move(receiver)), outer_(std::exchange(active_receiver, &receiver_)) {}
ReceiveGradients::~ReceiveGradients() { active_receiver = outer_; }

NoteLeaves::NoteLeaves() : outer_(std::exchange(active_notes, this)) {}
NoteLeaves::~NoteLeaves() { active_notes = outer_; }

void NoteLeaves::note(const Tensor& tensor) {
  const auto known = [&tensor](const Tensor& t) { return t.impl() == tensor.impl(); };
  if (std::ranges::none_of(leaves_, known)) leaves_.push_back(tensor);
}

const Tensor& Saved::get() const {
  if (tensor_.defined() && tensor_.version() != version_)
    fail(ErrorCode::autograd, "backward",
         "a tensor that the backward pass needs was changed in place: " + tensor_.describe(),
         "version " + std::to_string(version_), "version " + std::to_string(tensor_.version()));
  return tensor_;
}

GradAgain::GradAgain() noexcept : depth_(std::exchange(no_grad_depth, 0)) {}
GradAgain::~GradAgain() { no_grad_depth = depth_; }

std::unique_ptr<Tape> nested_tape() { return make_tape(); }

bool recording() noexcept { return recorder() != nullptr; }

// A tape that runs its backward pass is spent, and may record again within it.
bool taping() noexcept { return active_tape != nullptr; }

bool tracked(std::initializer_list<const Tensor*> inputs) {
  return tracked(Inputs(inputs.begin(), inputs.size()));
}

bool tracked(Inputs inputs) {
  if (active_notes != nullptr)
    for (const Tensor* t : inputs)
      if (t != nullptr && t->defined() && t->impl()->requires_grad) active_notes->note(*t);
  const TapeState* tape = recorder();
  if (tape == nullptr) return false;
  bool any = false;
  for (const Tensor* t : inputs) any = on_tape(*tape, t) || any;
  return any;
}

void record_vjp(const char* op, Inputs inputs, Outputs outputs, std::unique_ptr<Vjp> vjp) {
  TapeState* tape = recorder();
  if (tape == nullptr) return;
  TapeState::Entry e;
  e.op = op;
  e.first_edge = tape->edges.size();
  e.first_slot = tape->slots.size();
  e.inputs = static_cast<int>(inputs.size());
  e.outputs = static_cast<int>(outputs.size());
  e.vjp = std::move(vjp);
  for (const Tensor* t : inputs)
    tape->edges.push_back(t == nullptr ? -1 : tape->input_slot(t->impl()));
  for (Tensor* t : outputs) tape->edges.push_back(tape->new_slot(*t->impl(), nullptr));
  tape->entries.push_back(std::move(e));
  if (active_observer != nullptr) show_outputs(op, tape->entries.size() - 1, inputs, outputs);
}

void record_without_gradient(const char* op, std::initializer_list<const Tensor*> inputs,
                             std::initializer_list<Tensor*> outputs) {
  if (!tracked(inputs)) return;
  record(op, inputs, outputs, [op](VjpContext&) {
    fail(ErrorCode::autograd, op, "this op has no gradient",
         "detach() around it where none is wanted", "backward() through it");
  });
}

}  // namespace autograd
}  // namespace heddle
