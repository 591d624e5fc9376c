// Random numbers, by PyTorch's distributions. The state is the host's: a seed and an offset, which
// MindSpore moves on with each call.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/randperm.h>

#include <algorithm>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

// One of the state alone: the same seed and offset give the same numbers.
at::Generator generator(int64_t seed, int64_t offset) {
  // 2^64 divided by the golden ratio: states that follow each other give seeds far apart.
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  return at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(seed) +
                                                  static_cast<std::uint64_t>(offset) * kStep);
}

// What dropout leaves of a tensor, as PyTorch computes it: the mask is scaled first.
Tensor scaled(const Tensor& x, const Tensor& kept, double p) {
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return x.mul(kept.view(x.sizes()).to(x.scalar_type()).mul_(scale));
}

}  // namespace

ATEN_BRIDGE_EXPORT(BernoulliExt, [](const Tensor& p, int64_t seed, int64_t offset) {
  return at::bernoulli(p, generator(seed, offset));
});
// The mask for the gradient is of bits, the lowest of a byte first.
ATEN_BRIDGE_EXPORT(DropoutExt, [](const Tensor& x, double p, int64_t seed, int64_t offset,
                                  Tensor& y, Tensor& mask) {
  const Tensor kept = at::empty({x.numel()}, at::kBool).bernoulli_(1 - p, generator(seed, offset));
  const bool* bits = kept.const_data_ptr<bool>();
  mask.zero_();
  auto* bytes = mask.mutable_data_ptr<std::uint8_t>();
  for (int64_t i = 0; i < std::min(x.numel(), 8 * mask.numel()); ++i) {
    bytes[i / 8] |= static_cast<std::uint8_t>(bits[i] ? 1 << i % 8 : 0);
  }
  y.copy_(scaled(x, kept, p));
});
ATEN_BRIDGE_EXPORT(DropoutGradExt, [](const Tensor& dy, const Tensor& mask, double p) {
  const Tensor kept = at::empty({dy.numel()}, at::kBool);
  TORCH_CHECK(dy.numel() <= 8 * mask.numel(), "expected a mask with a bit for each of ", dy.numel(),
              " elements, got ", mask.numel(), " bytes");
  const Tensor row_major = mask.contiguous();
  const auto* bytes = row_major.const_data_ptr<std::uint8_t>();
  auto* bits = kept.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < dy.numel(); ++i) {
    bits[i] = (bytes[i / 8] >> i % 8 & 1) != 0;
  }
  return scaled(dy, kept, p);
});
ATEN_BRIDGE_EXPORT(InplaceNormal,
                   [](const Tensor& x, double mean, double std, int64_t seed, int64_t offset) {
                     x.normal_(mean, std, generator(seed, offset));
                   });
ATEN_BRIDGE_EXPORT(InplaceUniform,
                   [](const Tensor& x, double from, double to, int64_t seed, int64_t offset) {
                     x.uniform_(from, to, generator(seed, offset));
                   });
// What Tensor.uniform() calls.
ATEN_BRIDGE_EXPORT(UniformExt,
                   [](const Tensor&, double from, double to, int64_t seed, int64_t offset,
                      Tensor& y) { y.uniform_(from, to, generator(seed, offset)); });
ATEN_BRIDGE_EXPORT(InplaceBernoulliScalar,
                   [](const Tensor& x, double p, int64_t seed, int64_t offset) {
                     x.bernoulli_(p, generator(seed, offset));
                   });
ATEN_BRIDGE_EXPORT(MultinomialExt, [](const Tensor& x, int64_t samples, bool replacement,
                                      int64_t seed, int64_t offset) {
  return at::multinomial(x, samples, replacement, generator(seed, offset));
});
ATEN_BRIDGE_EXPORT(NormalFloatFloat,
                   [](double mean, double std, IntArrayRef, int64_t seed, int64_t offset,
                      Tensor& y) { y.normal_(mean, std, generator(seed, offset)); });
ATEN_BRIDGE_EXPORT(RandpermExt,
                   [](int64_t n, int64_t seed, int64_t offset, OptionalDtype, Tensor& y) {
                     y.copy_(at::randperm(n, generator(seed, offset), at::kLong));
                   });

ATEN_BRIDGE_EXPORT(InplaceRandom,
                   [](const Tensor& x, int64_t from, OptionalInt to, int64_t seed, int64_t offset) {
                     x.random_(from, to, generator(seed, offset));
                   });
ATEN_BRIDGE_EXPORT(NormalFloatTensor,
                   [](double mean, const Tensor& std, int64_t seed, int64_t offset) {
                     return at::normal(mean, std, generator(seed, offset));
                   });
ATEN_BRIDGE_EXPORT(NormalTensorFloat,
                   [](const Tensor& mean, double std, int64_t seed, int64_t offset) {
                     return at::normal(mean, std, generator(seed, offset));
                   });
ATEN_BRIDGE_EXPORT(NormalTensorTensor,
                   [](const Tensor& mean, const Tensor& std, int64_t seed, int64_t offset) {
                     return at::normal(mean, std, generator(seed, offset));
                   });
ATEN_BRIDGE_EXPORT(RandLikeExt,
                   [](const Tensor&, int64_t seed, int64_t offset, OptionalDtype, OptionalInt,
                      Tensor& y) { y.uniform_(0, 1, generator(seed, offset)); });
ATEN_BRIDGE_EXPORT(RandnLike,
                   [](const Tensor&, int64_t seed, int64_t offset, OptionalDtype, OptionalInt,
                      Tensor& y) { y.normal_(0, 1, generator(seed, offset)); });
ATEN_BRIDGE_EXPORT(RandIntLike, [](const Tensor&, int64_t low, int64_t high, int64_t seed,
                                   int64_t offset, OptionalDtype, OptionalInt,
                                   Tensor& y) { y.random_(low, high, generator(seed, offset)); });

//===--- of a given shape; in graph mode only ---===//

ATEN_BRIDGE_EXPORT(RandExt,
                   [](IntArrayRef, int64_t seed, int64_t offset, OptionalDtype, OptionalInt,
                      Tensor& y) { y.uniform_(0, 1, generator(seed, offset)); });
ATEN_BRIDGE_EXPORT(RandInt, [](int64_t low, int64_t high, IntArrayRef, int64_t seed, int64_t offset,
                               OptionalDtype, OptionalInt,
                               Tensor& y) { y.random_(low, high, generator(seed, offset)); });
ATEN_BRIDGE_EXPORT(Randn, [](IntArrayRef, int64_t seed, int64_t offset, OptionalDtype, OptionalInt,
                             Tensor& y) { y.normal_(0, 1, generator(seed, offset)); });
