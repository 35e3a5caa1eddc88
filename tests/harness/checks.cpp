#include <cmath>
#include <cstring>

#include "backend/cpu/settings.h"
#include "harness/harness.h"
#include "harness/values.h"
#include "heddle/cost.h"
#include "heddle/memory.h"
#include "mock/mock.h"
#include "tensor/engine.h"

namespace heddle::harness {

namespace {

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0x1p-23;
    case DType::bf16: return 0x1p-8;
    case DType::f16: return 0x1p-10;
    default: return 0x1p-52;
  }
}

double rms(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return v.empty() ? 0 : std::sqrt(sum / static_cast<double>(v.size()));
}

// Rounding once to the output's type, plus what sums of `reduction` terms in the compute type lose.
double tolerance(const Case& c, DType activations, DType output) {
  const double compute = epsilon(activations == DType::f64 ? DType::f64 : DType::f32);
  const bool narrow = activations == DType::bf16 || activations == DType::f16;
  const double stored = narrow ? epsilon(activations) : 0;
  const double terms = std::sqrt(static_cast<double>(c.reduction));
  return c.slack * (4 * epsilon(output) + 2 * stored + 16 * compute * terms);
}

void compare(const std::string& what, const Tensor& got, const Tensor& want, double tol,
             Faults& faults) {
  if (!got.defined() || !want.defined()) {
    if (got.defined() != want.defined()) faults.push_back(what + ": there, or not there");
    return;
  }
  if (got.shape() != want.shape()) {
    faults.push_back(what + ": " + got.describe() + " instead of " + want.describe());
    return;
  }
  const std::vector<double> a = to_doubles(got);
  const std::vector<double> b = to_doubles(want);
  const double scale = rms(b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double limit = tol * (std::abs(b[i]) + scale);
    if (!(std::abs(a[i] - b[i]) <= limit)) {  // NaN fails
      faults.push_back(what + ": element " + std::to_string(i) + " is " + std::to_string(a[i]) +
                       " instead of " + std::to_string(b[i]) + ", off by " +
                       std::to_string(std::abs(a[i] - b[i]) / (limit / tol)) + " relative, " +
                       std::to_string(tol) + " allowed");
      return;
    }
  }
}

// The expected results for inputs of type `dtype`: outputs by the definition, gradients by the op
// in float64 (which check_gradient() proves).
struct Truth {
  Tensors outputs;
  Tensors grads;
};

Truth truth(const Case& c, DType dtype) {
  const auto values = case_values(c, dtype);
  Tensors inputs = make_inputs(c, DType::f64, values, Layout::contiguous);
  Truth t;
  {
    const NoGrad no_grad;
    t.outputs = c.reference(inputs);
  }
  if (c.gradient) t.grads = evaluate(c, inputs, DType::f64).grads;
  return t;
}

void compare_all(const std::string& where, const Case& c, DType dtype, const Evaluation& e,
                 const Truth& t, Faults& faults) {
  if (e.outputs.size() != t.outputs.size()) {
    faults.push_back(where + ": another number of outputs than the definition");
    return;
  }
  for (std::size_t i = 0; i < e.outputs.size(); ++i) {
    const Tensor& y = e.outputs[i];
    compare(where + " output " + std::to_string(i), y, t.outputs[i], tolerance(c, dtype, y.dtype()),
            faults);
  }
  for (std::size_t i = 0; i < e.grads.size(); ++i)
    if (e.grads[i].defined() || t.grads[i].defined())
      compare(where + " gradient " + std::to_string(i), e.grads[i], t.grads[i],
              tolerance(c, dtype, e.grads[i].defined() ? e.grads[i].dtype() : dtype), faults);
}

std::vector<DType> kernel_dtypes(const Case& c) {
  return c.bf16 ? std::vector{DType::f32, DType::bf16} : std::vector{DType::f32};
}

// And f16, which is widened where a new tensor is made.
std::vector<DType> all_dtypes(const Case& c) {
  std::vector<DType> all = kernel_dtypes(c);
  if (c.bf16 && c.f16 && c.strided) all.push_back(DType::f16);
  return all;
}

double dot(const Tensors& outputs) {
  double sum = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!is_floating(outputs[i].dtype())) continue;
    const auto y = to_doubles(outputs[i]);
    const auto w = cotangent_values(outputs[i], i);
    for (std::size_t j = 0; j < y.size(); ++j) sum += y[j] * w[j];
  }
  return sum;
}

// Σ w·reference(x + step·v) with input `which` moved.
double moved(const Case& c, const std::vector<std::vector<double>>& values, std::size_t which,
             const std::vector<double>& direction, double step) {
  auto shifted = values;
  for (std::size_t j = 0; j < direction.size(); ++j) shifted[which][j] += step * direction[j];
  const NoGrad no_grad;
  return dot(c.reference(make_inputs(c, DType::f64, shifted, Layout::contiguous)));
}

// Central difference, improved once by Richardson: error of order step⁴.
double difference(const Case& c, const std::vector<std::vector<double>>& values, std::size_t which,
                  const std::vector<double>& direction) {
  const auto central = [&](double h) {
    return (moved(c, values, which, direction, h) - moved(c, values, which, direction, -h)) /
           (2 * h);
  };
  const double h = c.step / std::sqrt(1.0 + static_cast<double>(direction.size()) / 16);
  return (4 * central(h / 2) - central(h)) / 3;
}

bool same_bytes(const Tensor& first, const Tensor& second) {
  if (!first.defined() || !second.defined()) return first.defined() == second.defined();
  if (first.shape() != second.shape() || first.dtype() != second.dtype()) return false;
  if (!first.contiguous() || !second.contiguous()) return to_doubles(first) == to_doubles(second);
  const Tensor a = first.to(Device::cpu), b = second.to(Device::cpu);
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

void compare_bits(const std::string& where, const Evaluation& e, const Evaluation& first,
                  Faults& faults) {
  for (std::size_t i = 0; i < e.outputs.size(); ++i)
    if (!same_bytes(e.outputs[i], first.outputs[i]))
      faults.push_back(where + "output " + std::to_string(i) + " has other bits");
  for (std::size_t i = 0; i < e.grads.size(); ++i)
    if (!same_bytes(e.grads[i], first.grads[i]))
      faults.push_back(where + "gradient " + std::to_string(i) + " has other bits");
}

struct Use {
  std::int64_t peak = 0;
  Cost cost;
};

Use use_of(Device device, const std::function<void()>& body) {
  reset_peak_memory(device);
  const std::int64_t before = memory_use(device).live;
  const CostMeter meter;
  body();
  return {memory_use(device).peak - before, meter.cost()};
}

struct GuardScope {
  GuardScope() { set_guard_mode(true); }
  ~GuardScope() { set_guard_mode(false); }
};

void check_layouts(const Case& c, const std::string& where, DType dtype, const Truth& t,
                   Faults& faults) {
  const auto values = case_values(c, dtype);
  for (const Layout layout :
       {Layout::contiguous, Layout::offset, Layout::transposed, Layout::strided}) {
    const bool gaps = layout == Layout::transposed || layout == Layout::strided;
    if (gaps && !c.strided) continue;
    const std::int64_t before = guard_violations();
    {
      const GuardScope guard;
      const Evaluation e = evaluate(c, make_inputs(c, dtype, values, layout), dtype);
      compare_all(where + " " + to_string(layout), c, dtype, e, t, faults);
    }
    if (guard_violations() != before)
      faults.push_back(where + " " + to_string(layout) + ": wrote outside of its arrays");
  }
}

}  // namespace

Faults check_float64(const Case& c) {
  Faults faults;
  const auto values = case_values(c, DType::f64);
  const Evaluation e =
      evaluate(c, make_inputs(c, DType::f64, values, Layout::contiguous), DType::f64);
  Truth t = truth(c, DType::f64);
  t.grads = e.grads;
  compare_all("f64", c, DType::f64, e, t, faults);
  return faults;
}

Faults check_gradient(const Case& c) {
  Faults faults;
  if (!c.gradient) return faults;
  const auto values = case_values(c, DType::f64);
  const Evaluation e =
      evaluate(c, make_inputs(c, DType::f64, values, Layout::contiguous), DType::f64);
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    if (!e.grads[i].defined()) {
      const bool wanted = c.inputs[i].differentiable && c.inputs[i].fill != Fill::given;
      if (wanted) faults.push_back("gradient " + std::to_string(i) + " is missing");
      continue;
    }
    const auto g = to_doubles(e.grads[i]);
    for (std::uint64_t trial = 0; trial < 3; ++trial) {
      const auto v = normals(static_cast<std::int64_t>(g.size()), 77 + trial);
      double analytic = 0;
      for (std::size_t j = 0; j < g.size(); ++j) analytic += g[j] * v[j];
      const double numeric = difference(c, values, i, v);
      // The size a sum of random terms g·v has, so that a sum that happens to be small passes.
      const double size = rms(g) * std::sqrt(static_cast<double>(g.size()));
      if (!(std::abs(analytic - numeric) <= 1e-6 * std::max(std::abs(numeric), size) + 1e-10))
        faults.push_back("gradient " + std::to_string(i) + ": directional derivative " +
                         std::to_string(analytic) + " instead of " + std::to_string(numeric));
    }
  }
  return faults;
}

std::string Target::name() const {
  return isa ? std::string(cpu::to_string(*isa)) : heddle::to_string(device);
}

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const cpu::Isa isa : cpu::available_isas()) all.push_back({Device::cpu, isa});
  all.push_back({mock::device()});
  for (int i = 0; has_engine(Device::cuda(i)); ++i) all.push_back({Device::cuda(i)});
  return all;
}

namespace {

// A device other than the CPU: unwritten memory is NaN there, and a second run has the same bits.
void check_device(const Case& c, const Target& target, DType dtype, const Truth& t,
                  Faults& faults) {
  const std::string where = target.name() + " " + std::string(to_string(dtype));
  const GuardScope guard;
  const auto run = [&] {
    const Tensors here = make_inputs(c, dtype, case_values(c, dtype), Layout::contiguous);
    return evaluate(c, inputs_on(target.device, here), dtype);
  };
  const Evaluation e = run();
  compare_all(where, c, dtype, e, t, faults);
  if (target.device.kind == DeviceKind::cuda)
    compare_bits(where + " a second time: ", run(), e, faults);
}

}  // namespace

Faults check_kernels(const Case& c) {
  Faults faults;
  const cpu::SettingsScope restore;
  for (const DType dtype : all_dtypes(c)) {
    const Truth t = truth(c, dtype);
    for (const Target& target : targets()) {
      const std::string where = target.name() + " " + std::string(to_string(dtype));
      if (!target.isa) {
        check_device(c, target, dtype, t, faults);
        continue;
      }
      if (dtype == DType::f16 && target.isa != cpu::available_isas().back()) continue;  // casts
      cpu::set_isa(*target.isa);
      check_layouts(c, where, dtype, t, faults);
    }
  }
  return faults;
}

// The levels below the best one share most of their code with it: one other number will do.
Faults check_threads(const Case& c) {
  Faults faults;
  const cpu::SettingsScope restore;
  for (const DType dtype : kernel_dtypes(c)) {
    const auto values = case_values(c, dtype);
    for (const cpu::Isa isa : cpu::available_isas()) {
      cpu::set_isa(isa);
      const bool best = isa == cpu::available_isas().back();
      Evaluation first;
      for (const int threads : best ? std::vector{1, 2, 3, 8} : std::vector{1, 3}) {
        cpu::set_threads(threads);
        Evaluation e = evaluate(c, make_inputs(c, dtype, values, Layout::contiguous), dtype);
        if (threads == 1)
          first = std::move(e);
        else
          compare_bits(std::string(cpu::to_string(isa)) + " " + std::string(to_string(dtype)) +
                           " with " + std::to_string(threads) + " threads: ",
                       e, first, faults);
      }
    }
  }
  return faults;
}

namespace {

// The meta device's forecast of a case on the device that it imitates.
void check_plan(const Case& c, Device device, DType dtype, Faults& faults) {
  const std::string where = "meta of " + heddle::to_string(device) + ": ";
  const Tensors here = make_inputs(c, dtype, case_values(c, dtype), Layout::contiguous);
  const Tensors real = inputs_on(device, here);
  const Device meta = Device::meta_like(device);
  const Tensors shapes = inputs_on(meta, here);
  Evaluation computed;
  Evaluation planned;
  const auto used = use_of(device, [&] { computed = evaluate(c, real, dtype); });
  const auto expected = use_of(meta, [&] { planned = evaluate(c, shapes, dtype); });
  for (std::size_t i = 0; i < computed.outputs.size(); ++i)
    if (planned.outputs[i].shape() != computed.outputs[i].shape() ||
        planned.outputs[i].dtype() != computed.outputs[i].dtype())
      faults.push_back(where + "output " + std::to_string(i) + " is " +
                       planned.outputs[i].describe() + " instead of " +
                       computed.outputs[i].describe());
  for (std::size_t i = 0; i < computed.grads.size(); ++i)
    if (planned.grads[i].defined() != computed.grads[i].defined())
      faults.push_back(where + "gradient " + std::to_string(i) + " there, or not there");
  if (used.peak != expected.peak)
    faults.push_back(where + "predicts " + std::to_string(expected.peak) + " bytes at the peak, " +
                     std::to_string(used.peak) + " were used");
  if (c.cost_by_shape &&
      (used.cost.flops != expected.cost.flops || used.cost.bytes != expected.cost.bytes))
    faults.push_back(where + "predicts " + std::to_string(expected.cost.flops) +
                     " operations and " + std::to_string(expected.cost.bytes) +
                     " bytes moved, counted were " + std::to_string(used.cost.flops) + " and " +
                     std::to_string(used.cost.bytes));
}

}  // namespace

Faults check_meta(const Case& c) {
  Faults faults;
  for (const DType dtype : all_dtypes(c))
    for (const Target& target : targets())
      if (!target.isa || target.isa == cpu::current_isa())
        check_plan(c, target.device, dtype, faults);
  return faults;
}

}  // namespace heddle::harness
