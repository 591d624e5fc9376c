// Calls without end: many threads, kernels and shapes alternately, errors between. Each call has to
// do what the first of its kind did, and memory must not grow.
//
//   soak_test [seconds [threads [calls of each thread]]]  at least so long, and so many
//
// The threads stay; in each round another thread is born, calls and ends, and operators are made
// again. Memory is what is allocated, by the allocator's own count, and what the process has
// resident, between two rounds.
#include <aten_bridge/testing.h>
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using aten_bridge::testing::HostFunction;
using aten_bridge::testing::InitFunction;
using aten_bridge::testing::detail::Attributes;
using aten_bridge::testing::detail::Extra;
using aten_bridge::testing::detail::Value;
using Bytes = std::vector<unsigned char>;
using Sizes = std::vector<int64_t>;

//===--- what is called ---===//

struct Operand {
  const char* dtype;
  Sizes sizes;
};

const Operand kNone{"none", {}};

Operand floats(Sizes sizes) { return {"float32", std::move(sizes)}; }
Operand ints(Sizes sizes) { return {"int64", std::move(sizes)}; }

template <class T>
Attributes attribute(const char* name, T value) {
  Attributes attributes;
  attributes.emplace(name, Value(value));
  return attributes;
}

/// A kind of call: a kernel with its operands, and what comes of it.
struct Kind {
  const char* library;
  const char* name;
  Attributes attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::vector<Bytes> results;  // the first call's
  std::string error;           // the first call's
};

/// All kinds, for tensors of these sizes.
void add_kinds(const Sizes& sizes, std::vector<Kind>& kinds) {
  const Operand x = floats(sizes);
  const Attributes slope = attribute("negative_slope", 0.25F);
  kinds.insert(kinds.end(),
               {{TEST_GRADIENTS, "LeakyRelu", slope, {x}, {x}, {}, {}},
                {TEST_GRADIENTS, "LeakyReluGrad", slope, {x, x}, {x}, {}, {}},
                {TEST_GRADIENTS, "CubeGrad", {}, {x, x}, {x}, {}, {}},
                {TEST_GRADIENTS, "Cumsum", attribute("dim", int64_t{-1}), {x}, {x}, {}, {}},
                {TEST_KERNELS, "Copy", {}, {x}, {x}, {}, {}},
                {TEST_KERNELS, "Negate", {}, {x}, {x}, {}, {}},
                {TEST_KERNELS, "AddSubtract", {}, {x, x}, {x, x}, {}, {}},
                {TEST_KERNELS, "AddIfGiven", {}, {x, kNone}, {x}, {}, {}},
                {TEST_KERNELS, "AddIfGiven", {}, {x, x}, {x}, {}, {}},
                {TEST_KERNELS, "ThrowRuntimeError", {}, {x}, {x}, {}, {}},
                {TEST_KERNELS, "ThrowInt", {}, {x}, {x}, {}, {}},
                {TEST_KERNELS, "ThrowAten", {}, {x}, {x}, {}, {}},
                {TEST_KERNELS, "Assign", {}, {x}, {x}, {}, {}},
                {TEST_KERNELS, "ReplaceStorage", {}, {x}, {x}, {}, {}},
                {TEST_KERNELS, "Resize", {}, {x}, {floats({0})}, {}, {}},
                {TEST_KERNELS, "Copy", {}, {{"float24", sizes}}, {x}, {}, {}},
                {TEST_KERNELS, "Copy", {}, {x, x}, {x}, {}, {}},
                {TEST_KERNELS, "Spoil", {}, {x}, {ints({11})}, {}, {}}});  // without its attribute
}

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (const Sizes& sizes : {Sizes{4, 4}, Sizes{2, 3, 5}, Sizes{1}, Sizes{0, 3}, Sizes{64}}) {
    add_kinds(sizes, kinds);
  }
  const Operand x = floats({3, 4});
  kinds.insert(kinds.end(),
               {{TEST_GRADIENTS, "Cat", {}, {x, floats({1, 4})}, {floats({4, 4})}, {}, {}},
                {TEST_GRADIENTS, "Cat", {}, {x, x, x}, {floats({9, 4})}, {}, {}},
                {TEST_GRADIENTS,
                 "Topk",
                 attribute("k", int64_t{2}),
                 {x},
                 {floats({3, 2}), ints({3, 2})},
                 {},
                 {}},
                {TEST_KERNELS, "Transpose", {}, {floats({2, 2})}, {floats({2, 2})}, {}, {}},
                {TEST_TYPED, "WorkspaceOfAConstant", {}, {}, {ints({2})}, {}, {}}});
  return kinds;
}

template <class Function>
Function find(const Kind& kind, const std::string& suffix = "") {
  void* const library = dlopen(kind.library, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(
      aten_bridge::testing::detail::required_symbol(library, kind.name + suffix));
}

/// An operator at one call site of a network, with memory of its own.
class CallSite {
 public:
  explicit CallSite(const Kind& kind)
      : kind_(&kind), call_(find<HostFunction>(kind)), init_(find<InitFunction>(kind, "Init")) {
    std::mt19937 random(1);  // the same numbers at each site
    for (const auto* operands : {&kind.inputs, &kind.outputs}) {
      for (const Operand& operand : *operands) {
        const bool is_none = operand.dtype == kNone.dtype;
        std::size_t bytes = is_none ? 0 : std::strcmp(operand.dtype, "int64") == 0 ? 8 : 4;
        for (const int64_t size : operand.sizes) {
          bytes *= static_cast<std::size_t>(size);
        }
        memory_.emplace_back(bytes);
        for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
          const float value = static_cast<float>(random() % 17) - 8;
          std::memcpy(&memory_.back()[i], &value, 4);
        }
        sizes_.push_back(operand.sizes);
        ndims_.push_back(static_cast<int>(operand.sizes.size()));
        dtypes_.push_back(operand.dtype);
      }
    }
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      shapes_.push_back(sizes_[i].data());
      params_.push_back(memory_[i].empty() ? nullptr : memory_[i].data());
    }
    make();
  }

  /// Another operator at this site, at the same address: a thread keeps views for up to 1,024
  /// addresses of operators of one type, and a run that has not met so many would seem to leak.
  void make() {
    extra_.emplace(kind_->attributes);
    init_(ndims_.data(), shapes_.data(), dtypes_.data(), &*extra_);
    workspaces_.clear();
    params_.resize(memory_.size());
    for (const std::size_t bytes : extra_->workspaces) {
      workspaces_.emplace_back(bytes);
      params_.push_back(workspaces_.back().data());
    }
  }

  /// Writes what comes of a call.
  void call(std::vector<Bytes>& results, std::string& error) {
    error.clear();
    spoil_outputs();
    try {
      call_(static_cast<int>(params_.size()), params_.data(), ndims_.data(), shapes_.data(),
            dtypes_.data(), /*stream=*/nullptr, &*extra_);
    } catch (const std::exception& failure) {
      error = failure.what();
    }
    results.assign(memory_.begin() + static_cast<std::ptrdiff_t>(kind_->inputs.size()),
                   memory_.end());
  }

  /// Whether a call does what the first of its kind did.
  bool call_again() {
    spoil_outputs();
    try {
      call_(static_cast<int>(params_.size()), params_.data(), ndims_.data(), shapes_.data(),
            dtypes_.data(), /*stream=*/nullptr, &*extra_);
    } catch (const std::exception& failure) {
      return kind_->error == failure.what();
    }
    return kind_->error.empty() &&
           std::equal(kind_->results.begin(), kind_->results.end(),
                      memory_.begin() + static_cast<std::ptrdiff_t>(kind_->inputs.size()));
  }

  const Kind& kind() const { return *kind_; }

 private:
  /// So that a call that writes nothing is seen.
  void spoil_outputs() {
    for (std::size_t i = kind_->inputs.size(); i < memory_.size(); ++i) {
      std::fill(memory_[i].begin(), memory_[i].end(), static_cast<unsigned char>(0x55));
    }
  }

  const Kind* kind_;
  HostFunction call_;
  InitFunction init_;
  std::optional<Extra> extra_;
  std::vector<Bytes> memory_;
  std::vector<Sizes> sizes_;
  std::vector<int> ndims_;
  std::vector<int64_t*> shapes_;
  std::vector<const char*> dtypes_;
  std::vector<void*> params_;
  std::vector<Bytes> workspaces_;
};

/// The first call of each kind.
void call_first(std::vector<Kind>& kinds) {
  for (Kind& kind : kinds) {
    CallSite(kind).call(kind.results, kind.error);
    if (!kind.error.empty() && kind.error.rfind(kind.name + std::string(": "), 0) != 0) {
      std::printf("soak: expected a text that begins with %s, got: %s\n", kind.name,
                  kind.error.c_str());
      std::exit(1);
    }
  }
}

//===--- callers ---===//

/// A thread's operators, and how often they were called.
class Caller {
 public:
  Caller(const std::vector<Kind>& kinds, unsigned int seed) : random_(seed) {
    for (const Kind& kind : kinds) {
      sites_.emplace_back(kind);
    }
  }

  void call(int64_t times) {
    for (int64_t i = 0; i < times; ++i) {
      CallSite& site = sites_[random_() % sites_.size()];
      if (!site.call_again()) {
        std::printf("soak: %s in %s did something else than in its first call\n", site.kind().name,
                    site.kind().library);
        std::_Exit(1);
      }
      if (i % 1000 == 0) {
        site.make();
      }
    }
  }

 private:
  std::mt19937 random_;
  std::deque<CallSite> sites_;
};

/// Threads that call in rounds.
class Crew {
 public:
  Crew(const std::vector<Kind>& kinds, int threads, int64_t calls) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, &kinds, i, calls] {
        Caller caller(kinds, static_cast<unsigned int>(i));
        for (int64_t round = 1; wait_for(round); ++round) {
          caller.call(calls);
          const std::lock_guard<std::mutex> lock(mutex_);
          ++done_;
          changed_.notify_all();
        }
      });
    }
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    start(/*round=*/-1);
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  /// Lets all call, and waits for them.
  void work() {
    start(round_ + 1);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ == threads_.size(); });
  }

 private:
  void start(int64_t round) {
    const std::lock_guard<std::mutex> lock(mutex_);
    round_ = round;
    done_ = 0;
    changed_.notify_all();
  }

  /// False where there is none any more.
  bool wait_for(int64_t round) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return round_ == round || round_ < 0; });
    return round_ >= 0;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t round_ = 0;
  std::size_t done_ = 0;
  std::vector<std::thread> threads_;
};

//===--- memory ---===//

/// Bytes of the process at one time, by two counts.
struct Sample {
  double calls;
  double allocated;  // by malloc and not freed
  double resident;   // after what is not in use was given back
};

Sample sample(double calls) {
  malloc_trim(0);
  const struct mallinfo2 heap = mallinfo2();
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages >> pages;
  return {calls, static_cast<double>(heap.uordblks + heap.hblkhd),
          static_cast<double>(pages * sysconf(_SC_PAGESIZE))};
}

/// Bytes for each call, by least squares over the later half.
double slope(const std::vector<Sample>& samples, double Sample::*bytes) {
  const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  const auto count = static_cast<double>(samples.end() - begin);
  double mean_calls = 0;
  double mean_bytes = 0;
  for (auto sample = begin; sample != samples.end(); ++sample) {
    mean_calls += sample->calls / count;
    mean_bytes += (*sample).*bytes / count;
  }
  double above = 0;
  double below = 0;
  for (auto sample = begin; sample != samples.end(); ++sample) {
    above += (sample->calls - mean_calls) * ((*sample).*bytes - mean_bytes);
    below += (sample->calls - mean_calls) * (sample->calls - mean_calls);
  }
  return below > 0 ? above / below : 0;
}

/// How many bytes more may be there after so many calls: what goes up and down, and a slope.
/// Without the first a short run fails by chance, without a small second a long one leaks
/// gigabytes.
struct MostGrowth {
  double bytes;
  double slope;
  constexpr double after(double calls) const { return bytes + slope * calls; }
};

// What is allocated goes up and down by what threads keep of freed memory; the slope is that of an
// object of 32 bytes in 16,000 calls. Pages go up and down by much more.
constexpr MostGrowth kMostAllocated{0x1p18, 0.002};
constexpr MostGrowth kMostResident{0x1p22, 0.01};

// Ten hours of a slow machine that leak as much fail; more calls only make a leak plainer.
constexpr double kLaterHalf = 1.3e9;
static_assert(0.0025 * kLaterHalf > kMostAllocated.after(kLaterHalf));
static_assert(0.02 * kLaterHalf > kMostResident.after(kLaterHalf));

// A sanitizer keeps memory of what is freed, and of what threads did.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SOAK_IS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SOAK_IS_SANITIZED
#endif
#endif
#ifdef SOAK_IS_SANITIZED
constexpr bool kLooksAtMemory = false;
constexpr double kSecondsOfATest = 30;
#else
constexpr bool kLooksAtMemory = true;
constexpr double kSecondsOfATest = 120;
#endif

/// Whether it stays within the limit; prints what it is.
bool report(const std::vector<Sample>& samples, double Sample::*bytes, const MostGrowth& most,
            const char* name) {
  const double growth = slope(samples, bytes);
  std::printf("%.1f MiB %s, %+.4f bytes a call\n", samples.back().*bytes / 0x1p20, name, growth);
  const double later = samples.back().calls / 2;
  if (!kLooksAtMemory || growth * later <= most.after(later)) {
    return true;
  }
  std::printf("soak: expected up to %.2f MiB more %s after the later half, got %.2f\n",
              most.after(later) / 0x1p20, name, growth * later / 0x1p20);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : kSecondsOfATest;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 16;
  const int64_t least_calls = argc > 3 ? std::atoll(argv[3]) : 100'000;
  constexpr int64_t kRounds = 32;  // at least
  const int64_t calls = std::max<int64_t>(least_calls / kRounds, 1);

  std::vector<Kind> kinds = all_kinds();
  call_first(kinds);
  std::vector<Sample> samples;
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  {
    Crew crew(kinds, threads, calls);
    double printed = 0;
    for (int64_t round = 1; round <= kRounds || elapsed() < seconds; ++round) {
      crew.work();
      std::thread([&] { Caller(kinds, static_cast<unsigned int>(round)).call(1000); }).join();
      samples.push_back(sample(static_cast<double>(round * (threads * calls + 1000))));
      if (elapsed() - printed >= 60) {
        printed = elapsed();
        std::printf("%.0f s: %.0f calls, %.1f MiB allocated, %.1f MiB resident\n", printed,
                    samples.back().calls, samples.back().allocated / 0x1p20,
                    samples.back().resident / 0x1p20);
        std::fflush(stdout);
      }
    }
  }
  std::printf("%.0f calls of %zu kinds in %d threads, %.0f s\n", samples.back().calls, kinds.size(),
              threads, elapsed());
  const bool keeps_allocated = report(samples, &Sample::allocated, kMostAllocated, "allocated");
  const bool keeps_resident = report(samples, &Sample::resident, kMostResident, "resident");
  return keeps_allocated && keeps_resident ? 0 : 1;
}
