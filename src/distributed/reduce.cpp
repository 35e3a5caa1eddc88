#include "distributed/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "autograd/accumulate.h"
#include "base/divide.h"
#include "base/parallel.h"
#include "heddle/memory.h"

namespace heddle::distributed {

namespace {

constexpr const char* kGradients = "summing gradients";
constexpr const char* kWeights = "gathering weights";
constexpr const char* kState = "the optimiser's state";

// A buffer for the ranks, or for the nodes of a sum: rows of `row` floats. It is a tensor, so that
// its bytes are counted, on the device that a plan is made on too.
struct Buffer {
  Tensor tensor;
  std::int64_t row = 0;

  Buffer(std::int64_t rows, std::int64_t width, Device device) : row(width) {
    const PurposeScope purpose(Purpose::workspace);
    tensor = Tensor::empty({rows * width}, DType::f32, device);
  }

  float* at(std::int64_t i) { return tensor.mutable_data<float>() + i * row; }
  MutableBytes bytes(std::int64_t i, std::int64_t rows, std::int64_t count) {
    return std::as_writable_bytes(std::span(at(i), static_cast<std::size_t>(rows * count)));
  }
};

// Where an owner's shard is cut: piece `turn` of so many elements.
Range turn_of(const Range& shard, std::int64_t turn, std::int64_t width) {
  const std::int64_t begin = std::min(shard.begin + turn * width, shard.end);
  return {begin, std::min(begin + width, shard.end)};
}

void pack(const Shards& shards, const Range& range, const std::vector<Tensor>& tensors,
          float* out) {
  for (const Slice& s : shards.slices(range)) {
    const float* from = tensors[s.tensor].data<float>() + s.begin;
    std::memcpy(out, from, static_cast<std::size_t>(s.count()) * sizeof(float));
    out += s.count();
  }
}

void unpack(const Shards& shards, const Range& range, const float* in,
            std::vector<Tensor>& tensors) {
  for (const Slice& s : shards.slices(range)) {
    float* to = tensors[s.tensor].mutable_data<float>() + s.begin;
    std::memcpy(to, in, static_cast<std::size_t>(s.count()) * sizeof(float));
    in += s.count();
  }
}

Tensor part_of(const Tensor& flat, std::int64_t begin, std::int64_t count) {
  return views::slice(flat, 0, begin, begin + count);
}

// The nodes of each rank, and where those of a rank begin in the row of all.
struct AllNodes {
  std::vector<std::vector<Node>> of;
  std::vector<std::int64_t> start{0};
  std::int64_t most = 0;

  AllNodes(int ranks, std::int64_t parts) {
    for (int rank = 0; rank < ranks; ++rank) {
      of.push_back(nodes_of(parts_of(rank, ranks, parts), parts));
      const auto count = static_cast<std::int64_t>(of.back().size());
      most = std::max(most, count);
      start.push_back(start.back() + count);
    }
  }

  std::int64_t count() const { return start.back(); }
};

// One exchange of a sum: every rank gives each owner a piece of its nodes.
class Reduction {
 public:
  Reduction(Communicator& group, const Shards& shards, std::int64_t parts, const PartialSums& mine)
      : group_(group),
        shards_(shards),
        parts_(parts),
        mine_(mine),
        nodes_(shards.ranks(), parts),
        width_(std::clamp<std::int64_t>(
            kBufferElements / std::max(nodes_.count(), shards.ranks() * nodes_.most), 1,
            std::max<std::int64_t>(shards.largest(), 1))),
        device_(mine.empty() ? Device::cpu : mine.front().second.front().device()),
        out_(shards.ranks() * static_cast<std::int64_t>(mine.size()), width_, device_),
        in_(nodes_.count(), width_, device_) {}

  std::int64_t turns() const { return ceil_div(shards_.largest(), width_); }

  void run(std::int64_t turn, Tensor& sum) {
    std::vector<Bytes> sends;
    std::vector<MutableBytes> receives;
    const Range own = turn_of(shards_.of(group_.rank()), turn, width_);
    const auto count = static_cast<std::int64_t>(mine_.size());
    for (int rank = 0; rank < shards_.ranks(); ++rank) {
      const Range theirs = turn_of(shards_.of(rank), turn, width_);
      float* row = out_.at(rank * count);
      for (const auto& [node, tensors] : mine_) {
        pack(shards_, theirs, tensors, row);
        row += theirs.count();
      }
      sends.push_back(out_.bytes(rank * count, count, theirs.count()));
      const std::int64_t first = nodes_.start[static_cast<std::size_t>(rank)];
      receives.push_back(
          in_.bytes(first, nodes_.start[static_cast<std::size_t>(rank) + 1] - first, own.count()));
    }
    group_.all_to_all(sends, receives, kGradients);
    if (own.count() > 0) add_up(own, sum);
  }

 private:
  void add_up(const Range& own, Tensor& sum) {
    TreeSum<Tensor> tree(parts_);
    for (std::size_t rank = 0; rank < nodes_.of.size(); ++rank)
      for (std::size_t i = 0; i < nodes_.of[rank].size(); ++i)
        tree.push(
            nodes_.of[rank][i],
            part_of(in_.tensor,
                    nodes_.start[rank] * width_ + static_cast<std::int64_t>(i) * own.count(),
                    own.count()),
            [](Tensor& left, const Tensor& right) { autograd::copy_values(left, right, true); });
    Tensor place = part_of(sum, own.begin - shards_.of(group_.rank()).begin, own.count());
    autograd::copy_values(place, tree.held().front().second, false);
  }

  Communicator& group_;
  const Shards& shards_;
  std::int64_t parts_;
  const PartialSums& mine_;
  AllNodes nodes_;
  std::int64_t width_;
  Device device_;
  Buffer out_, in_;
};

// Buffers of a rank for what goes from owners to others: as much as one of them takes.
std::int64_t width_of(const Shards& shards) {
  return std::clamp<std::int64_t>(kBufferElements / shards.ranks(), 1,
                                  std::max<std::int64_t>(shards.largest(), 1));
}

std::vector<Slice> slices_of(const Communicator& group, const Shards& shards) {
  return shards.slices(shards.of(group.rank()));
}

}  // namespace

void add_tensors(std::vector<Tensor>& sum, const std::vector<Tensor>& term) {
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] = autograd::accumulated(std::move(sum[i]), term[i]);
}

std::vector<Tensor> reduce_scatter(Communicator& group, const Shards& shards, std::int64_t parts,
                                   PartialSums mine) {
  std::vector<Tensor> result;
  if (group.alone()) {
    for (const Slice& s : slices_of(group, shards))
      result.push_back(slice_of(mine.front().second[s.tensor], s));
    return result;
  }
  const Range own = shards.of(group.rank());
  const Device device = mine.empty() ? Device::cpu : mine.front().second.front().device();
  Tensor sum;
  {
    const PurposeScope purpose(Purpose::gradients);
    sum = Tensor::empty({own.count()}, DType::f32, device);
  }
  {
    Reduction reduction(group, shards, parts, mine);
    for (std::int64_t turn = 0; turn < reduction.turns() && !device.is_meta(); ++turn)
      reduction.run(turn, sum);
  }
  mine.clear();
  std::int64_t at = 0;
  for (const Slice& s : slices_of(group, shards)) {
    result.push_back(part_of(sum, at, s.count()));
    at += s.count();
  }
  return result;
}

void all_gather(Communicator& group, const Shards& shards, std::vector<Tensor>& tensors) {
  if (group.alone() || tensors.empty()) return;
  const std::int64_t width = width_of(shards);
  const Device device = tensors.front().device();
  Buffer out(1, width, device), in(shards.ranks(), width, device);
  if (device.is_meta()) return;
  for (std::int64_t turn = 0; turn * width < shards.largest(); ++turn) {
    const Range own = turn_of(shards.of(group.rank()), turn, width);
    pack(shards, own, tensors, out.at(0));
    std::vector<Bytes> sends;
    std::vector<MutableBytes> receives;
    for (int rank = 0; rank < shards.ranks(); ++rank) {
      sends.push_back(out.bytes(0, 1, own.count()));
      receives.push_back(in.bytes(rank, 1, turn_of(shards.of(rank), turn, width).count()));
    }
    group.all_to_all(sends, receives, kWeights);
    for (int rank = 0; rank < shards.ranks(); ++rank)
      if (rank != group.rank())
        unpack(shards, turn_of(shards.of(rank), turn, width), in.at(rank), tensors);
  }
}

namespace {

// The slices of this rank, whole: `at` counts from the start of its shard.
void copy_slices(const std::vector<Tensor>& slices, std::int64_t at, std::int64_t count,
                 const auto& each) {
  std::int64_t start = 0;
  for (const Tensor& slice : slices) {
    const std::int64_t begin = std::max(at, start),
                       end = std::min(at + count, start + slice.elements());
    if (begin < end) each(slice, begin - start, end - begin, begin - at);
    start += slice.elements();
  }
}

}  // namespace

void gather(Communicator& group, const Shards& shards, const std::vector<Tensor>& slices,
            std::vector<Tensor>& whole) {
  const std::int64_t width = width_of(shards);
  const Range own = shards.of(group.rank());
  Buffer out(1, width, Device::cpu), in(group.is_first() ? shards.ranks() : 0, width, Device::cpu);
  for (std::int64_t turn = 0; turn * width < shards.largest(); ++turn) {
    const Range mine = turn_of(own, turn, width);
    float* row = out.at(0);
    copy_slices(slices, mine.begin - own.begin, mine.count(),
                [row](const Tensor& s, std::int64_t from, std::int64_t count, std::int64_t to) {
                  std::memcpy(row + to, s.data<float>() + from,
                              static_cast<std::size_t>(count) * sizeof(float));
                });
    std::vector<Bytes> sends(static_cast<std::size_t>(shards.ranks()));
    std::vector<MutableBytes> receives(static_cast<std::size_t>(shards.ranks()));
    sends.front() = out.bytes(0, 1, mine.count());
    for (int rank = 0; group.is_first() && rank < shards.ranks(); ++rank)
      receives[static_cast<std::size_t>(rank)] =
          in.bytes(rank, 1, turn_of(shards.of(rank), turn, width).count());
    group.all_to_all(sends, receives, kState);
    for (int rank = 0; group.is_first() && rank < shards.ranks(); ++rank)
      unpack(shards, turn_of(shards.of(rank), turn, width), in.at(rank), whole);
  }
}

void scatter(Communicator& group, const Shards& shards, std::vector<Tensor>& slices,
             const std::vector<Tensor>& whole) {
  const std::int64_t width = width_of(shards);
  const Range own = shards.of(group.rank());
  Buffer out(group.is_first() ? shards.ranks() : 0, width, Device::cpu), in(1, width, Device::cpu);
  for (std::int64_t turn = 0; turn * width < shards.largest(); ++turn) {
    std::vector<Bytes> sends(static_cast<std::size_t>(shards.ranks()));
    std::vector<MutableBytes> receives(static_cast<std::size_t>(shards.ranks()));
    for (int rank = 0; group.is_first() && rank < shards.ranks(); ++rank) {
      const Range theirs = turn_of(shards.of(rank), turn, width);
      pack(shards, theirs, whole, out.at(rank));
      sends[static_cast<std::size_t>(rank)] = out.bytes(rank, 1, theirs.count());
    }
    const Range mine = turn_of(own, turn, width);
    receives.front() = in.bytes(0, 1, mine.count());
    group.all_to_all(sends, receives, kState);
    const float* row = in.at(0);
    copy_slices(slices, mine.begin - own.begin, mine.count(),
                [row](Tensor s, std::int64_t to, std::int64_t count, std::int64_t from) {
                  std::memcpy(s.mutable_data<float>() + to, row + from,
                              static_cast<std::size_t>(count) * sizeof(float));
                });
  }
}

void broadcast(Communicator& group, std::vector<Tensor>& tensors) {
  if (group.alone()) return;
  for (Tensor& tensor : tensors) {
    const std::span all(static_cast<std::byte*>(tensor.mutable_raw()), tensor.bytes());
    constexpr std::size_t kMost = kBufferElements * sizeof(float);
    for (std::size_t at = 0; at < all.size(); at += kMost)
      group.broadcast(all.subspan(at, std::min(kMost, all.size() - at)), 0, kWeights);
  }
}

namespace {

// Sums of squares of the pieces of a slice, one after the other.
void add_squares(const Tensor& slice, std::vector<double>& all) {
  const float* x = slice.data<float>();
  const std::int64_t count = slice.elements(), pieces = ceil_div(count, kPiece);
  const std::size_t first = all.size();
  all.resize(first + static_cast<std::size_t>(pieces));
  parallel_ranges(pieces, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      std::array<double, 8> sums{};
      const std::int64_t last = std::min(count, (piece + 1) * kPiece);
      std::int64_t i = piece * kPiece;
      for (; i + 8 <= last; i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) {
          const double v = x[i + static_cast<std::int64_t>(lane)];
          sums[lane] += v * v;
        }
      for (; i < last; ++i) sums[0] += double{x[i]} * double{x[i]};
      double sum = 0;
      for (const double s : sums) sum += s;
      all[first + static_cast<std::size_t>(piece)] = sum;
    }
  });
}

// Calls place(n, piece) for each piece of the rank: its n-th one, and where that is among all.
void each_piece(std::span<const Shards> buckets, int rank, const auto& place) {
  std::size_t n = 0;
  for (const Shards& shards : buckets)
    for (const Slice& s : shards.slices(shards.of(rank)))
      for (std::int64_t i = 0; i < ceil_div(s.count(), kPiece); ++i)
        place(n++, static_cast<std::size_t>(shards.piece_of(s) + i));
}

}  // namespace

double sum_of_squares(Communicator& group, std::span<const Shards> buckets,
                      const std::vector<Tensor>& slices) {
  if (!slices.empty() && slices.front().device().is_meta()) return 0;
  std::vector<double> mine;
  for (const Tensor& slice : slices) add_squares(slice, mine);
  std::vector<std::vector<double>> theirs(static_cast<std::size_t>(group.size()));
  std::vector<MutableBytes> receives;
  for (int rank = 0; rank < group.size(); ++rank) {
    auto& numbers = theirs[static_cast<std::size_t>(rank)];
    each_piece(buckets, rank, [&](std::size_t n, std::size_t) { numbers.resize(n + 1); });
    receives.push_back(std::as_writable_bytes(std::span(numbers)));
  }
  const std::vector<Bytes> sends(static_cast<std::size_t>(group.size()),
                                 std::as_bytes(std::span(mine)));
  group.all_to_all(sends, receives, "the length of the gradient");
  std::vector<double> all(static_cast<std::size_t>(buckets.front().pieces()));
  for (int rank = 0; rank < group.size(); ++rank)
    each_piece(buckets, rank, [&](std::size_t n, std::size_t piece) {
      all[piece] = theirs[static_cast<std::size_t>(rank)][n];
    });
  double sum = 0;
  for (const double s : all) sum += s;
  return sum;
}

}  // namespace heddle::distributed
