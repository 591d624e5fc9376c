// PyTorch's generator of random numbers for the CPU, and what uses it for a while.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_GENERATOR_H_
#define ATEN_BRIDGE_OPERATORS_GENERATOR_H_

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <mutex>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// Keeps PyTorch's random numbers as they are. What another thread draws meanwhile is drawn again.
class KeptGenerator {
 public:
  KeptGenerator() : generator_(at::detail::getDefaultCPUGenerator()), kept_(state()) {}
  ~KeptGenerator() {
    try {
      set_state(kept_);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): of no memory
    }
  }
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;

  at::Tensor state() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    return generator_.get_state();
  }
  void set_state(const at::Tensor& state) {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(state);
  }

 private:
  at::Generator generator_;
  at::Tensor kept_;
};

/// Only one program at a time has PyTorch's own generator.
inline std::mutex& generator_mutex() {
  static auto* const mutex = new std::mutex;  // never destroyed: threads may outlive it
  return *mutex;
}

/// The random numbers of one run, which follow from a seed.
class RandomState {
 public:
  explicit RandomState(std::uint64_t seed)
      : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}

  const at::Generator& generator() const { return generator_; }

  /// Makes a call that takes its numbers from PyTorch's own generator. What another thread draws
  /// from that meanwhile are numbers of this run, which then has others.
  template <typename Call>
  void lend(Call call) {
    const std::lock_guard<std::mutex> lock(generator_mutex());
    KeptGenerator own;
    own.set_state(generator_.get_state());
    call();
    generator_.set_state(own.state());
  }

 private:
  at::Generator generator_;
};

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_GENERATOR_H_
