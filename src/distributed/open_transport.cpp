#include "distributed/open_transport.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "distributed/plugin.h"
#include "heddle/error.h"

namespace heddle::distributed {

namespace {

constexpr const char* kPlugin = "libheddle_mpi.so";
constexpr const char* kVariable = "HEDDLE_MPI";

using Message = std::array<char, 512>;

class PluginTransport final : public Transport {
 public:
  PluginTransport(const HeddleTransport& plugin, std::string path)
      : plugin_(plugin), path_(std::move(path)) {
    call([this](char* error, std::size_t room) {
      return plugin_.join(&rank_, &size_, error, room);
    });
    const auto ranks = static_cast<std::size_t>(size_);
    sends_.resize(ranks);
    receives_.resize(ranks);
    flags_.resize(ranks);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string engine() const override { return plugin_.engine; }

  void begin(std::span<const Bytes> sends, std::span<const MutableBytes> receives) override {
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      // The engine's interface is older than const; it only reads.
      sends_[i] = {const_cast<std::byte*>(sends[i].data()), sends[i].size()};
      receives_[i] = {receives[i].data(), receives[i].size()};
    }
    call([this](char* error, std::size_t room) {
      return plugin_.begin(sends_.data(), receives_.data(), error, room);
    });
  }

  bool test() override {
    int done = 0;
    call([&](char* error, std::size_t room) {
      return plugin_.test(&done, flags_.data(), error, room);
    });
    return done != 0;
  }

  const std::vector<int>& awaited() const override {
    awaited_.clear();
    for (std::size_t i = 0; i < flags_.size(); ++i)
      if (flags_[i] != 0) awaited_.push_back(static_cast<int>(i));
    return awaited_;
  }

  void leave() override {
    call([this](char* error, std::size_t room) { return plugin_.leave(error, room); });
  }

 private:
  template <class Function>
  void call(const Function& function) const {
    Message error{};
    if (function(error.data(), error.size() - 1) != 0)
      throw RankLost(ErrorCode::failed, path_, error.data(), "", "");
  }

  const HeddleTransport& plugin_;
  std::string path_;
  int rank_ = 0, size_ = 1;
  std::vector<HeddleBuffer> sends_, receives_;
  std::vector<unsigned char> flags_;
  mutable std::vector<int> awaited_;
};

std::string program_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : path.string();
}

struct Opened {
  void* library = nullptr;
  std::string path, problems;
};

// The engine has parts of its own that it opens later: they look for it among what is global.
Opened open_first(const std::vector<std::string>& places) {
  Opened opened;
  for (const std::string& place : places) {
    const bool by_name = place.find('/') == std::string::npos;
    if (!by_name && !std::filesystem::exists(place)) continue;
    opened.library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (opened.library != nullptr) {
      opened.path = place;
      return opened;
    }
    if (const char* why = dlerror(); why != nullptr && !by_name)
      opened.problems += (opened.problems.empty() ? "" : "; ") + std::string(why);
  }
  return opened;
}

}  // namespace

std::vector<std::string> plugin_places(const Environment& environment, const std::string& program) {
  if (const char* named = environment(kVariable); named != nullptr && *named != '\0')
    return {std::string(named).find('/') == std::string::npos ? "./" + std::string(named) : named};
  std::vector<std::string> places;
  if (!program.empty()) {
    const std::filesystem::path folder = std::filesystem::path(program).parent_path();
    places.push_back((folder / kPlugin).string());
    for (const char* library : {"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"})
      places.push_back((folder.parent_path() / library / kPlugin).string());
  }
  places.emplace_back(kPlugin);
  return places;
}

std::unique_ptr<Transport> open_transport(const Launch& launch) {
  if (!launch.can_join)
    fail(ErrorCode::unsupported, launch.by,
         "has started rank " + std::to_string(launch.rank) + " of " + std::to_string(launch.size) +
             ", but no MPI",
         "mpirun -np " + std::to_string(launch.size) +
             " heddle train …, or srun --mpi=pmix; unset RANK and WORLD_SIZE where one process is "
             "meant");
  const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
  const Opened opened = open_first(plugin_places(environment, program_path()));
  if (opened.library == nullptr)
    fail(
        ErrorCode::unsupported, kPlugin,
        "is needed for the " + std::to_string(launch.size) + " ranks that " + launch.by +
            " started, and could not be opened",
        "the plug-in beside the program or in its library folder, or its path in HEDDLE_MPI; it is "
        "built where MPI is found (Debian: libopenmpi-dev; cmake -D HEDDLE_MPI=ON)",
        opened.problems);
  // POSIX lets a symbol's address be a function.
  const auto function =
      reinterpret_cast<HeddleTransportFunction>(dlsym(opened.library, kHeddleTransportSymbol));
  const HeddleTransport* plugin = function == nullptr ? nullptr : function();
  if (plugin == nullptr || plugin->version != kHeddleTransportVersion)
    fail(ErrorCode::unsupported, opened.path, "is not the plug-in of this version of Heddle",
         "interface " + std::to_string(kHeddleTransportVersion) +
             ": the one that was built with the program",
         plugin == nullptr ? "no interface" : "interface " + std::to_string(plugin->version));
  auto transport = std::make_unique<PluginTransport>(*plugin, opened.path);
  if (transport->rank() != launch.rank || transport->size() != launch.size)
    fail(
        ErrorCode::unsupported, opened.path,
        transport->engine() + " finds rank " + std::to_string(transport->rank()) + " of " +
            std::to_string(transport->size()),
        "rank " + std::to_string(launch.rank) + " of " + std::to_string(launch.size) + ", as " +
            launch.by +
            " says: the launcher of the same MPI that the plug-in was built with (with SLURM: srun "
            "--mpi=pmix)");
  return transport;
}

}  // namespace heddle::distributed
