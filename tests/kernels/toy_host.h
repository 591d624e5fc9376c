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

#ifdef ATEN_BRIDGE_ENTRY_BESIDE  // for kernels; a test includes it for the structure

#include <aten_bridge.h>

#include <string>

namespace {  // hidden, as all of the bridge

class ToyCall : public aten_bridge::HostCallDefaults {
 public:
  using Result = const char*;
  static constexpr aten_bridge::HostMessages kMessages = {
      "the toy's tensors", "give it an output of that shape", "give it an output of that dtype",
      "the tensors with the kernel"};

  ToyCall(const char* /*operator_name*/, const ToyTensor* tensors, int count)
      : tensors_(tensors), count_(count) {}

  int size() const { return count_; }

  void describe(aten_bridge::OperandDescs operands) const {
    for (int i = 0; i < operands.size(); ++i) {
      const ToyTensor& tensor = tensors_[i];
      aten_bridge::DType dtype;
      if (!aten_bridge::find_dtype(tensor.dtype, dtype)) {
        operands.refuse(i).add(aten_bridge::Status::kDtype,
                               {operands.name(i).text(), ": expected a dtype of the toy's, got \"",
                                tensor.dtype, "\""});
      } else {
        operands.set(i, tensor.data, dtype, tensor.sizes, tensor.ndim);
      }
    }
  }

  static const char* succeed() { return nullptr; }
  static const char* fail(const aten_bridge::Failure& failure, aten_bridge::ErrorMode /*mode*/) {
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
