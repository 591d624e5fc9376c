// A host of fewer than a hundred lines, to show what an adapter takes:
// include/aten_bridge/call/host.h says what each member is for. It calls
//
//   const char* Name(const ToyTensor* tensors, int count);
//
// with inputs and outputs, and gets null or the text of an error.
#ifndef ATEN_BRIDGE_TESTS_KERNELS_TOY_HOST_H_
#define ATEN_BRIDGE_TESTS_KERNELS_TOY_HOST_H_

#include <cstdint>

struct ToyTensor {
  void* data;
  const char* dtype;
  const int64_t* sizes;
  int ndim;
};

#ifdef ATEN_BRIDGE_HOST  // for kernels; a test includes it for the structure

#include <aten_bridge.h>

#include <algorithm>
#include <string>

namespace {  // hidden, as all of the bridge

class ToyHost : public aten_bridge::detail::HostCallDefaults {
 public:
  using Result = const char*;
  static constexpr aten_bridge::detail::HostMessages kMessages = {
      "the toy's tensors", "give it an output of that shape", "give it an output of that dtype",
      "the tensors with the kernel"};

  template <class K>
  struct Requirements {
    static_assert(!K::kTraits.is_raw, "the toy has no call that a kernel could take as it comes");
  };

  ToyHost(const char* /*operator_name*/, const ToyTensor* tensors, int count)
      : tensors_(tensors), count_(count) {}

  int size() const { return count_; }
  static void* stream() { return nullptr; }

  bool read(int i, const aten_bridge::OperandName& name, aten_bridge::OperandDesc& desc,
            aten_bridge::Report& report) const {
    const ToyTensor& tensor = tensors_[i];
    const aten_bridge::detail::DTypeInfo* info = aten_bridge::detail::find_dtype(tensor.dtype);
    if (info == nullptr) {
      report.add(aten_bridge::Status::kDtype,
                 {name.text(), ": expected a dtype of the toy's, got \"", tensor.dtype, "\""});
      return false;
    }
    desc = {tensor.data, tensor.sizes, tensor.ndim, 1, info->dtype};
    for (int d = 0; d < tensor.ndim; ++d) {
      desc.numel *= tensor.sizes[d];
    }
    return true;
  }

  bool matches_cached(int i, aten_bridge::DType dtype, const int64_t* sizes, int ndim) const {
    const ToyTensor& tensor = tensors_[i];
    return tensor.dtype == aten_bridge::dtype_name(dtype) && tensor.ndim == ndim &&
           std::equal(sizes, sizes + ndim, tensor.sizes);
  }
  void* data(int i) const { return tensors_[i].data; }
  const int64_t* sizes(int i) const { return tensors_[i].sizes; }

  static const char* succeed() { return nullptr; }
  static const char* fail(const aten_bridge::detail::Failure& failure,
                          aten_bridge::detail::ErrorMode /*mode*/) {
    thread_local std::string text;
    text = failure.text;
    return text.c_str();
  }

 private:
  const ToyTensor* tensors_;
  int count_;
};

}  // namespace

#endif

#endif  // ATEN_BRIDGE_TESTS_KERNELS_TOY_HOST_H_
