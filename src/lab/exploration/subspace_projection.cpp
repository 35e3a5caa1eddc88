// subspace-projection: which matrix takes v_a out of s = v_a + v_b?
#include <cmath>

#include "lab/experiments.h"
#include "lab/findings.h"
#include "lab/tools.h"
#include "lab/topics.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/matmul/matmul.h"
#include "ops/view/view.h"

namespace heddle::lab::subspace_projection {

namespace {

constexpr std::int64_t kSize = 8, kOfA = 3, kOfB = 4;

// U·Uᵀ·s: the part of s in the space that U's columns span.
Tensor projected(const Tensor& u, const Tensor& s) {
  return ops::matmul(u, ops::matmul(ops::transpose(u, 0, 1), s));
}

void run(Findings& f) {
  // Seven orthonormal vectors: three span the space of v_a, four that of v_b.
  const Tensor basis = f.fault("not-orthonormal") ? normal({kSize, kOfA + kOfB}, 21)
                                                  : orthonormal_columns(kSize, kOfA + kOfB, 21);
  const Tensor a = ops::slice(basis, 1, 0, kOfA), b = ops::slice(basis, 1, kOfA, kOfA + kOfB);
  const Tensor c = normal({kOfA, 1}, 22), d = normal({kOfB, 1}, 23);
  const Tensor v_a = ops::matmul(a, c), v_b = ops::matmul(b, d);
  const Tensor s = f.fault("vb-left-out") ? v_a : ops::add(v_a, v_b);

  const Tensor at = ops::transpose(a, 0, 1);
  const Tensor coordinates = ops::matmul(at, s);  // [3, 1]
  const Tensor recovered = projected(a, s);       // [8, 1]
  // The three numbers of Aᵀs beside the first three of v_a: a vector of 8 they are not.
  const Tensor filled = ops::concat(
      std::vector<Tensor>{coordinates, Tensor::zeros({kSize - kOfA, 1}, DType::f64)}, 0);

  const double to_coordinates = largest_difference(coordinates, c);
  const double transpose_off = largest_difference(filled, v_a);
  const auto off = [&](const Tensor& part) {
    return largest_difference(f.fault("va-twice") ? v_a : part, v_a);
  };
  const double product_off = off(recovered);
  f.number("length_of_s", kSize, tr("numbers in s, v_a and v_b"));
  f.number("length_of_at_s", static_cast<double>(coordinates.elements()), tr("numbers in Aᵀs"));
  f.number("at_s_minus_c", to_coordinates, tr("Aᵀs − c (the coordinates)"));
  f.number("at_s_minus_va", transpose_off, tr("Aᵀs, filled with zeros, − v_a"));
  f.number("aat_s_minus_va", product_off, "A·Aᵀs − v_a");
  f.number("at_vb", largest(ops::matmul(at, v_b)), "Aᵀv_b");

  report::HeatMap map;
  map.y_label = "";
  for (const auto& [name, vector] : {std::pair<const char*, const Tensor&>{"v_a", v_a},
                                     {"Aᵀs", coordinates},
                                     {"c", c},
                                     {"A·Aᵀs", recovered}}) {
    map.rows.emplace_back(name);
    map.values.push_back(vector.to_vector<double>());
  }
  f.figure(map, tr("Aᵀs is c, three numbers in the basis of A; A·Aᵀs is v_a itself."));

  const bool gives_va =
      f.check(tr("distance of Aᵀs from v_a"), transpose_off, Relation::less, 1e-12);
  f.control(tr("distance of Aᵀs from the coordinates c"), to_coordinates, Relation::less, 1e-12);
  f.control(tr("size of v_b in s"), largest_difference(s, v_a), Relation::greater, 0.1);
  f.control(tr("what Aᵀ leaves of v_b"), largest(ops::matmul(at, v_b)), Relation::less, 1e-12);
  f.control(tr("B·Bᵀs, the other projection: distance from v_a"), off(projected(b, s)),
            Relation::greater, 0.1);
  f.control(tr("distance of A·Aᵀs from v_a"), product_off, Relation::less, 1e-12);
  f.verdict(gives_va ? Verdict::holds : Verdict::refuted);
}

}  // namespace

Experiment experiment() {
  return {
      .name = "subspace-projection",
      .topic = topics::exploration,
      .title = mark("Taking one vector out of a sum"),
      .claim = mark("For v_a = A·c and v_b = B·d with orthonormal columns that are orthogonal to "
                    "each other, M = Aᵀ gives M(v_a + v_b) = v_a."),
      .formula = "v_a = A c quad v_b = B d quad M (v_a + v_b) = v_a",
      .source = mark("Document 001, (b): asks for M·s = v_a, arrives at M·v_a = c and takes it for "
                     "the answer."),
      .method = mark("Random orthonormal A (8 × 3) and B (8 × 4), random c and d; Aᵀs and A·Aᵀs "
                     "against c and v_a."),
      .threshold = mark("1e-12: the products here round by less than 1e-14."),
      .expected = Verdict::refuted,
      .because =
          mark("Aᵀ gives the coordinates c of v_a in the basis A: a vector of another length. What "
               "gives v_a itself is the projection A·Aᵀ. Both remove v_b, because AᵀB = 0. As an "
               "input of a following layer c is as good as v_a, but it is not v_a."),
      .faults = {{"not-orthonormal", mark("A and B are any matrices")},
                 {"vb-left-out", mark("s is v_a alone")},
                 {"va-twice", mark("v_a is compared with itself")}},
      .run = run,
  };
}

}  // namespace heddle::lab::subspace_projection
