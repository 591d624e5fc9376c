// What PyTorch says, and the bridge has to understand: one test for each phrase, named for it.
#include <ATen/ATen.h>
#include <aten_bridge/tensors/pytorch_texts.h>
#include <aten_bridge/tensors/torch.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace {

namespace detail = aten_bridge::detail;

const at::TensorOptions meta_options = at::TensorOptions().device(at::kMeta);

/// What PyTorch says of what `call` does.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

TEST(PyTorchTextsTest, TheValueOfAMetaTensor) {
  const std::string text = error_of([] { at::empty({}, meta_options).item(); });
  EXPECT_TRUE(detail::is_about_data(text)) << text;
  EXPECT_TRUE(detail::is_about_meta(text)) << text;
}

TEST(PyTorchTextsTest, ACopyOfAMetaTensor) {
  const std::string text = error_of([] { at::empty({2}, meta_options).to(at::kCPU); });
  EXPECT_TRUE(detail::is_about_data(text)) << text;
}

TEST(PyTorchTextsTest, AnOperatorWithoutAFunctionForMetaTensors) {
  const std::string text =
      error_of([] { at::bincount(at::empty({2}, meta_options.dtype(at::kLong))); });
  EXPECT_EQ(detail::operator_without_meta(text), "aten::bincount") << text;
  EXPECT_TRUE(detail::is_about_meta(text)) << text;
}

TEST(PyTorchTextsTest, AConvolutionOfMetaTensors) {
  const std::string text = error_of([] {
    at::conv2d(at::empty({1, 1, 4, 4}, meta_options), at::empty({1, 1, 2, 2}, meta_options));
  });
  EXPECT_EQ(detail::operator_without_meta(text), "convolution_overrideable") << text;
}

TEST(PyTorchTextsTest, ShapesThatAreWrongAreAboutNoneOfThese) {
  const std::string text = error_of([] {
    at::mm(at::empty({2, 3}, meta_options), at::empty({2}, meta_options));
  });
  EXPECT_NE(text, "nothing");
  EXPECT_FALSE(detail::is_about_data(text)) << text;
  EXPECT_FALSE(detail::is_about_shape(text, "[0, 0]")) << text;
  EXPECT_EQ(detail::operator_without_meta(text), "") << text;
}

TEST(PyTorchTextsTest, AnOutputThatIsCopiedTo) {
  const std::string text = error_of([] { at::empty({0, 0}).copy_(at::ones({2, 3})); });
  EXPECT_TRUE(detail::is_about_shape(text, "[0, 0]")) << text;
}

TEST(PyTorchTextsTest, AnOutputThatIsComputedInPlace) {
  const std::string text = error_of([] { at::empty({1, 0}).add_(at::ones({2, 3, 1})); });
  EXPECT_TRUE(detail::is_about_shape(text, "[1, 0]")) << text;
}

TEST(PyTorchTextsTest, ADtypeWithoutAKernel) {
  const std::string text = error_of([] { at::bitwise_and(at::ones({2}), at::ones({2})); });
  EXPECT_TRUE(detail::lacks_kernel(text)) << text;
}

TEST(PyTorchTextsTest, AnArgumentThatCannotBeDifferentiated) {
  const at::Tensor samples = at::full({1, 1, 2}, 0.5).set_requires_grad(true);
  const std::string text = error_of([&] {
    at::fractional_max_pool2d(at::ones({1, 1, 4, 4}), {2, 2}, {1, 1}, samples);
  });
  EXPECT_EQ(detail::refused_argument(text).rfind("random_samples'", 0), 0) << text;
}

TEST(PyTorchTextsTest, ATracebackOfPythons) {
  EXPECT_EQ(detail::without_traceback("ValueError: no\n\nAt:\n  a.py(3): f"), "ValueError: no");
  EXPECT_EQ(detail::without_traceback("ValueError: no"), "ValueError: no");
}

}  // namespace
