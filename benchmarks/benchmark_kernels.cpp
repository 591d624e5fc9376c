// The kernels whose calls are timed.
#include <ATen/ops/conv2d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <aten_bridge.h>

#include <string>
#include <unordered_map>
#include <vector>

// The floor: what any C function called through the loader costs.
extern "C" ATEN_BRIDGE_PUBLIC int EmptyCall(int /*nparam*/, void** /*params*/, int* /*ndims*/,
                                            int64_t** /*shapes*/, const char** /*dtypes*/,
                                            void* /*stream*/, void* /*extra*/) {
  return 0;
}

ATEN_BRIDGE_EXPORT(TwoViews, [](const at::Tensor& /*x*/, at::Tensor& /*y*/) {});
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

extern "C" ATEN_BRIDGE_PUBLIC int HandwrittenTwoViews(int nparam, void** params, int* ndims,
                                                      int64_t** shapes, const char** dtypes,
                                                      void* /*stream*/, void* /*extra*/) {
  handwritten_tensors(nparam, params, ndims, shapes, dtypes);
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
