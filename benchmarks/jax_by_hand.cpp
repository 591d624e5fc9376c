// LeakyRelu for JAX, written without the bridge: XLA's own header, and views of ATen's at each
// call. It calls the operator as the bridge does, below autograd.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/leaky_relu.h>
#include <xla/ffi/api/ffi.h>

namespace {

namespace ffi = xla::ffi;

ffi::Error leaky_relu(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y, double slope) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto sizes = x.dimensions();
  const at::IntArrayRef shape(sizes.begin(), sizes.size());
  const at::Tensor input = at::from_blob(x.typed_data(), shape, at::kFloat);
  at::Tensor output = at::from_blob(y->typed_data(), shape, at::kFloat);
  at::leaky_relu_out(output, input, slope);
  return ffi::Error::Success();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* LeakyReluByHand(
    XLA_FFI_CallFrame* frame) {
  static const auto* const handler = ffi::Ffi::Bind()
                                         .Arg<ffi::Buffer<ffi::F32>>()
                                         .Ret<ffi::Buffer<ffi::F32>>()
                                         .Attr<double>("negative_slope")
                                         .To(&leaky_relu)
                                         .release();
  return handler->Call(frame);
}
