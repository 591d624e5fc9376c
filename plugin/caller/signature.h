// What calls with inputs of the same shapes and dtypes have in common.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_SIGNATURE_H_
#define ATEN_BRIDGE_CALLER_SIGNATURE_H_

#include "operands.h"

#include <utils/custom_aot_extra.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace aten_bridge::caller {

class Extra final : public mindspore::AotExtraImpl {
 public:
  explicit Extra(const mindspore::PrimitivePtr& primitive) { SetKernelPrim(primitive); }
};

struct Gradient;
struct SizesCall;
struct Step;
struct Signature;

/// A signature of the backward program of a step, and the key of the calls that it is for.
struct BackwardSignature {
  Key key;
  std::shared_ptr<Signature> signature;
};

/// What calls with inputs of the same shapes and dtypes have in common.
struct Signature {
  Extra extra;  // with a state of its own, as in ops.Custom
  std::weak_ptr<Gradient> gradient;
  std::shared_ptr<const SizesCall> sizes_call;  // null where sizes are known before a call
  std::shared_ptr<const Step> step;             // null where it belongs to no step
  std::vector<std::size_t> written;             // inputs in whose memory the first outputs are
  std::array<BackwardSignature, 2> backwards;   // a step's; the interpreter's lock guards them
  std::vector<Kind> kinds;                      // one for each input
  std::vector<ShapeVector> sizes;               // the inputs', then the outputs'
  std::vector<int> ndims;
  std::vector<int64_t*> shapes;
  std::vector<const char*> dtypes;
  std::vector<TypeId> output_types;
  std::vector<std::size_t> workspaces;
  std::atomic<bool> is_short{false};  // the last call took less than to wake another thread
  bool is_of_step = false;            // one of its two programs': long, and alone

  explicit Signature(const mindspore::PrimitivePtr& primitive) : extra(primitive) {}
  Signature(const Signature&) = delete;
  Signature& operator=(const Signature&) = delete;
  ~Signature() { extra.DestructKernelData(); }

  void add(const char* dtype, ShapeVector shape) {
    dtypes.push_back(dtype);
    sizes.push_back(std::move(shape));
  }

  /// False if kernels lack one of the dtypes.
  bool add_inputs(const Key& key) {
    for (std::size_t i = 0; i < key.size();) {
      const auto kind = static_cast<Kind>(key[i] & 0xff);
      if (kind == kTensor) {
        const char* dtype = type_name(static_cast<TypeId>(key[i] >> 8 & 0xffffff));
        const auto* begin = key.data() + i + 1;
        i += static_cast<std::size_t>(key[i] >> 32);
        if (dtype == nullptr) {
          return false;
        }
        add(dtype, {begin, key.data() + i + 1});
      } else if (kind == kNone) {
        add("none", {});
      } else if (kind != kTuple) {
        add(kind == kBool ? "bool" : kind == kInt ? "int64" : "float32", {});
        ++i;  // its value
      }
      if (kind != kTuple) {
        kinds.push_back(kind);
      }
      ++i;
    }
    return true;
  }

  /// The operand's dtype and shape, from which MindSpore makes zeros for a missing gradient.
  mindspore::AbstractBasePtr abstract(std::size_t operand) const {
    return std::make_shared<mindspore::abstract::AbstractTensor>(
        mindspore::TypeIdToType(type_of_name(dtypes[operand])), sizes[operand]);
  }

  /// As MindSpore does: the shape of a tensor of rank 0 is a null pointer.
  void finish() {
    for (ShapeVector& shape : sizes) {
      ndims.push_back(static_cast<int>(shape.size()));
      shapes.push_back(shape.empty() ? nullptr : shape.data());
    }
  }
};

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_SIGNATURE_H_
