// What PyTorch says, and the bridge has to understand: one test for each phrase, named for it.
// tests/pytorch/test_pytorch_texts.py has those of PyTorch's Python part.
#include <ATen/ATen.h>
#include <aten_bridge/core/report.h>
#include <aten_bridge/tensors/pytorch_texts.h>
#include <aten_bridge/tensors/torch.h>
#include <c10/util/Backtrace.h>
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <string>
#include <string_view>

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

/// PyTorch says the phrase, by which alone the function knows an error.
template <class Function>
void expect_phrase(const Function& knows, const std::string& phrase, const std::string& text) {
  EXPECT_NE(text.find(phrase), std::string::npos) << text;
  EXPECT_TRUE(knows(phrase)) << phrase;
  EXPECT_TRUE(knows(text)) << text;
}

// ===--- meta tensors ---===

TEST(PyTorchTextsTest, TheValueOfAMetaTensor) {
  expect_phrase(detail::is_about_data, "aten::_local_scalar_dense",
                error_of([] { at::empty({}, meta_options).item(); }));
}

TEST(PyTorchTextsTest, ACopyOfAMetaTensor) {
  expect_phrase(detail::is_about_data, "meta tensor",
                error_of([] { at::empty({2}, meta_options).to(at::kCPU); }));
}

TEST(PyTorchTextsTest, DataOfAFakeTensor) {
#if PYTORCH_MINOR < 4
  GTEST_SKIP() << "PyTorch 2.4 and newer say so";
#else
  const at::Tensor fake = at::empty({2});
  fake.storage().unsafeGetStorageImpl()->set_throw_on_mutable_data_ptr();
  expect_phrase(detail::is_about_data, "(e.g. FakeTensor",
                error_of([&] { fake.mutable_data_ptr(); }));
#endif
}

TEST(PyTorchTextsTest, DataOfATensorWithoutAStorage) {
  const at::Tensor sparse = at::empty({2}).to_sparse();
  expect_phrase(detail::is_about_meta, "data pointer", error_of([&] { sparse.data_ptr(); }));
}

TEST(PyTorchTextsTest, TheStorageOfATensorWithoutOne) {
  const at::Tensor sparse = at::empty({2}).to_sparse();
  expect_phrase(detail::is_about_meta, "storage", error_of([&] { sparse.storage(); }));
}

TEST(PyTorchTextsTest, AMetaTensorBesideAnother) {
  expect_phrase(detail::is_about_meta, "meta", error_of([] {
                  at::empty({2, 2}, meta_options).add(at::ones({2, 2}));
                }));
}

TEST(PyTorchTextsTest, AnOperatorWithoutAFunctionForMetaTensors) {
  const std::string text =
      error_of([] { at::bincount(at::empty({2}, meta_options.dtype(at::kLong))); });
  EXPECT_EQ(detail::operator_without_meta(text), "aten::bincount") << text;
  expect_phrase(detail::is_about_meta, "Meta", text);
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

// ===--- outputs ---===

TEST(PyTorchTextsTest, AnOutputThatIsCopiedTo) {
  const auto knows = [](std::string_view text) { return detail::is_about_shape(text, "[7]"); };
  expect_phrase(knows, "(0) must match", error_of([] {
                  at::empty({0, 0}).copy_(at::ones({2, 3}));
                }));
}

TEST(PyTorchTextsTest, AnOutputThatIsComputedInPlace) {
  const auto knows = [](std::string_view text) { return detail::is_about_shape(text, "[1, 0]"); };
  expect_phrase(knows, "[1, 0]", error_of([] { at::empty({1, 0}).add_(at::ones({2, 3, 1})); }));
}

// ===--- symbols as sizes ---===

TEST(PyTorchTextsTest, SizesThatOnlyATensorOfPythonsCanTell) {
#if PYTORCH_MINOR < 11
  GTEST_SKIP() << "PyTorch 2.11 says so; 2.4 reads a null pointer instead";
#else
  const at::Tensor tensor = at::empty({2});
  tensor.unsafeGetTensorImpl()->set_python_dispatch(true);
  tensor.unsafeGetTensorImpl()->set_python_custom_sizes_strides(
      c10::TensorImpl::SizesStridesPolicy::CustomSizes);
  const std::string text = error_of([&] { tensor.sizes(); });
#if PYTORCH_MINOR < 13
  EXPECT_NE(text.find("interpreter"), std::string::npos) << text;
  EXPECT_NE(text.find("INTERNAL ASSERT"), std::string::npos) << text;
  EXPECT_TRUE(detail::asks_for_numbers(text)) << text;
#else
  // Any tensor asks the Python of the process, which makes numbers of symbols. It has none here.
  EXPECT_EQ(text,
            "PyTorch was compiled without Python support. Cannot access Python interpreter from "
            "C++.");
  EXPECT_FALSE(detail::asks_for_numbers(text)) << text;
#endif
#endif
}

// ===--- others ---===

TEST(PyTorchTextsTest, ADtypeWithoutAKernel) {
  expect_phrase(detail::lacks_kernel, "\" not implemented for '",
                error_of([] { at::bitwise_and(at::ones({2}), at::ones({2})); }));
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

// ===--- CUDA, without a GPU ---===

/// A library of PyTorch's beside the one of c10.
std::string library_of_pytorch(const char* name) {
  Dl_info c10{};
  dladdr(reinterpret_cast<const void*>(&c10::get_backtrace), &c10);
  const std::string path = c10.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + name;
}

/// What PyTorch says of an error of CUDA's by its number.
class CudaTextsTest : public testing::Test {
 protected:
  using Check = void(int error, const char* file, const char* function, unsigned line,
                     bool asserts);
  using CheckWithLog = void(int error, const char* file, const char* function, unsigned line,
                            bool asserts, void* log);

  void SetUp() override {
    void* const library = dlopen(library_of_pytorch("libc10_cuda.so").c_str(), RTLD_NOW);
    if (library == nullptr) {
      GTEST_SKIP() << "PyTorch has no CUDA: " << dlerror();
    }
    // A line is an int in PyTorch 2.4, unsigned in 2.11; a log of CUDA's follows in 2.14.
    const std::string name = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_";
    for (const char* line : {"j", "i"}) {
      if (void* const function = dlsym(library, (name + line + "b").c_str())) {
        check_ = reinterpret_cast<Check*>(function);
      }
    }
    if (void* const function = dlsym(library, (name + "jbPNS0_19CUDAErrorLogCaptureE").c_str())) {
      check_with_log_ = reinterpret_cast<CheckWithLog*>(function);
    }
    ASSERT_TRUE(check_ != nullptr || check_with_log_ != nullptr);
  }

  std::string text_of(int error) const {
    return error_of([&] {
      if (check_with_log_ != nullptr) {
        check_with_log_(error, __FILE__, "", 1, false, nullptr);
      } else {
        check_(error, __FILE__, "", 1, false);
      }
    });
  }

 private:
  Check* check_ = nullptr;
  CheckWithLog* check_with_log_ = nullptr;
};

TEST_F(CudaTextsTest, AnErrorOfCuda) {
  const std::string text = text_of(/*cudaErrorInvalidValue*/ 1);
  expect_phrase(detail::is_of_cuda, "CUDA", text);
  EXPECT_FALSE(detail::is_of_cuda("no " + text));
  EXPECT_FALSE(detail::is_about_capture(text)) << text;
}

TEST_F(CudaTextsTest, AStreamThatIsCaptured) {
  expect_phrase(detail::is_about_capture, "stream is capturing",
                text_of(/*cudaErrorStreamCaptureUnsupported*/ 900));
}

TEST_F(CudaTextsTest, ACaptureThatHasFailed) {
  expect_phrase(detail::is_about_capture, "during capture",
                text_of(/*cudaErrorStreamCaptureInvalidated*/ 901));
}

TEST_F(CudaTextsTest, AnOperatorThatCannotBeCaptured) {
  // What says so needs a GPU before; the texts lie in the library.
  const int file = open(library_of_pytorch("libtorch_cuda.so").c_str(), O_RDONLY);
  struct stat status = {};
  ASSERT_EQ(fstat(file, &status), 0);
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const content = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(content, MAP_FAILED);
  const std::string text = " during CUDA graph capture. If you need this call to be captured";
  EXPECT_NE(memmem(content, size, text.data(), text.size()), nullptr);
  munmap(content, size);
  close(file);
  expect_phrase(detail::is_about_capture, "graph capture", text);
}

}  // namespace
