// The kernels whose calls are timed.
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/zero.h>
#include <aten_bridge.h>
#include <aten_bridge/tensors/scope.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

// The lower bound: what any C function called through the loader costs.
extern "C" ATEN_BRIDGE_PUBLIC int EmptyCall(int /*nparam*/, void** /*params*/, int* /*ndims*/,
                                            int64_t** /*shapes*/, const char** /*dtypes*/,
                                            void* /*stream*/, void* /*extra*/) {
  return 0;
}

// What a call enters around its body.
extern "C" ATEN_BRIDGE_PUBLIC int Guards(int /*nparam*/, void** /*params*/, int* /*ndims*/,
                                         int64_t** /*shapes*/, const char** /*dtypes*/,
                                         void* /*stream*/, void* /*extra*/) {
  const aten_bridge::detail::KernelScope scope;
  return 0;
}

// Kernels that do nothing, with so many inputs and one output.
template <std::size_t>
using Input = const at::Tensor&;
template <class>
struct Body;
template <std::size_t... I>
struct Body<std::index_sequence<I...>> {
  static void take(Input<I>... /*inputs*/, at::Tensor& /*y*/) {}
};
ATEN_BRIDGE_EXPORT(Views1, Body<std::make_index_sequence<0>>::take);
ATEN_BRIDGE_EXPORT(Views2, Body<std::make_index_sequence<1>>::take);
ATEN_BRIDGE_EXPORT(Views8, Body<std::make_index_sequence<7>>::take);
ATEN_BRIDGE_EXPORT(Views32, Body<std::make_index_sequence<31>>::take);

// Operators of one tensor, of two and of any number.
ATEN_BRIDGE_EXPORT(Zero, [](at::Tensor& y) { y.zero_(); });
ATEN_BRIDGE_EXPORT(Cat, [](at::TensorList inputs, at::Tensor& y) { at::cat_out(y, inputs); });
ATEN_BRIDGE_EXPORT(LeakyRelu, [](const at::Tensor& x, at::Tensor& y) { at::leaky_relu_out(y, x); });

// The same with two attributes, and with checks.
ATEN_BRIDGE_EXPORT(
    TypedLeakyRelu,
    [](const at::Tensor& x, double slope, bool /*inplace*/, at::Tensor& y) {
      at::leaky_relu_out(y, x, slope);
    },
    aten_bridge::attr("negative_slope", 0.01), aten_bridge::attr("inplace", false),
    aten_bridge::meta());
ATEN_BRIDGE_EXPORT(
    CheckedLeakyRelu, [](const at::Tensor& x, at::Tensor& y) { at::leaky_relu_out(y, x); },
    aten_bridge::input("x").dtype(aten_bridge::kFloatingPoint).sizes("N", "C"),
    aten_bridge::output("y").sizes("N", "C"));

// Gradients: by autograd, which calls the function once more, and by hand.
static at::Tensor leaky_relu(const at::Tensor& x) { return at::leaky_relu(x); }
ATEN_BRIDGE_EXPORT_GRAD(LeakyReluGrad, leaky_relu);
ATEN_BRIDGE_EXPORT(HandwrittenLeakyReluGrad,
                   [](const at::Tensor& x, const at::Tensor& dy, at::Tensor& dx) {
                     at::leaky_relu_backward_out(dx, dy, x, 0.01, /*self_is_result=*/false);
                   });
static at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight) {
  return at::conv2d(x, weight, /*bias=*/std::nullopt, /*stride=*/1, /*padding=*/1);
}
ATEN_BRIDGE_EXPORT(Conv2d, conv2d);
ATEN_BRIDGE_EXPORT_GRAD(Conv2dGrad, conv2d);

// What glue written by hand does: a dtype table made for each operand, sizes copied to a vector,
// at::from_blob. Nothing is checked, and the operator runs through the autograd keys.
static at::ScalarType handwritten_dtype(const std::string& name) {
  const std::unordered_map<std::string, at::ScalarType> dtypes = {
      {"uint8", at::kByte},    {"int8", at::kChar},     {"int16", at::kShort},
      {"int32", at::kInt},     {"int64", at::kLong},    {"float16", at::kHalf},
      {"float32", at::kFloat}, {"float64", at::kDouble}};
  const auto found = dtypes.find(name);
  return found == dtypes.end() ? at::kFloat : found->second;
}

static std::vector<at::Tensor> handwritten_tensors(int nparam, void** params, int* ndims,
                                                   int64_t** shapes, const char** dtypes) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < nparam; ++i) {
    std::vector<int64_t> sizes;
    for (int j = 0; j < ndims[i]; ++j) {
      sizes.push_back(shapes[i][j]);
    }
    const auto options = at::TensorOptions().dtype(handwritten_dtype(dtypes[i])).device(at::kCPU);
    tensors.push_back(at::from_blob(params[i], sizes, options));
  }
  return tensors;
}

extern "C" ATEN_BRIDGE_PUBLIC int HandwrittenViews(int nparam, void** params, int* ndims,
                                                   int64_t** shapes, const char** dtypes,
                                                   void* /*stream*/, void* /*extra*/) {
  handwritten_tensors(nparam, params, ndims, shapes, dtypes);
  return 0;
}

// at::from_blob alone, of a dtype that is known.
extern "C" ATEN_BRIDGE_PUBLIC int FromBlob(int nparam, void** params, int* ndims, int64_t** shapes,
                                           const char** /*dtypes*/, void* /*stream*/,
                                           void* /*extra*/) {
  c10::SmallVector<at::Tensor, 32> tensors;
  for (int i = 0; i < nparam; ++i) {
    const at::IntArrayRef sizes(shapes[i], static_cast<std::size_t>(ndims[i]));
    tensors.push_back(at::from_blob(params[i], sizes, at::kFloat));
  }
  return 0;
}

extern "C" ATEN_BRIDGE_PUBLIC int HandwrittenLeakyRelu(int nparam, void** params, int* ndims,
                                                       int64_t** shapes, const char** dtypes,
                                                       void* /*stream*/, void* /*extra*/) {
  const std::vector<at::Tensor> tensors =
      handwritten_tensors(nparam, params, ndims, shapes, dtypes);
  at::Tensor output = tensors[1];
  at::leaky_relu_out(output, tensors[0]);
  return 0;
}
