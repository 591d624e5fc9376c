// Errors: what leaves the C function, in throw mode and in return mode, and the output contract.
#include <gtest/gtest.h>
#include <torch/version.h>

#include <complex>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "libraries.h"

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Result;

// A call with one float32 [2, 2] input and one output of the same kind.
Call square_call(Call call) {
  call.input<float>({2, 2}, {1, -2, 3, -4}).output<float>({2, 2});
  return call;
}

std::string error_of(const std::string& name) { return square_call(kernel(name)).run().error(); }

constexpr const char* kOperands = " (input 0: float32 [2, 2]; output 0: float32 [2, 2])";

//===--- exceptions ---===//

TEST(ErrorsTest, AtenErrorWithoutItsBacktraceAndWithTheOperands) {
  EXPECT_EQ(error_of("ThrowAten"), std::string("ThrowAten: rank 2 is not seven") + kOperands);
}

TEST(ErrorsTest, AtenErrorWithItsBacktraceOnRequest) {
  setenv("TORCH_SHOW_CPP_STACKTRACES", "1", /*overwrite=*/1);
  const std::string text = error_of("ThrowAten");
  unsetenv("TORCH_SHOW_CPP_STACKTRACES");
  EXPECT_EQ(text.find("ThrowAten: rank 2 is not seven\nException raised from "), 0) << text;
}

TEST(ErrorsTest, StandardException) {
  EXPECT_EQ(error_of("ThrowRuntimeError"),
            std::string("ThrowRuntimeError: thrown by the kernel") + kOperands);
}

TEST(ErrorsTest, ObjectsThatAreNoExceptions) {
  EXPECT_EQ(error_of("ThrowInt"),
            std::string("ThrowInt: the kernel threw an object of type int, which is not a "
                        "std::exception") +
                kOperands);
  EXPECT_EQ(error_of("ThrowStruct"),
            std::string("ThrowStruct: the kernel threw an object of type (anonymous "
                        "namespace)::NotAnException, which is not a std::exception") +
                kOperands);
}

TEST(ErrorsTest, BytesThatAreNotUtf8AreWrittenAsNumbers) {
  const std::string expected =
      std::string("ThrowLatin1: cannot read m\\xfcller.bin, of M\xc3\xbcller") + kOperands;
  EXPECT_EQ(error_of("ThrowLatin1"), expected);
  EXPECT_EQ(square_call(kernel("ThrowLatin1")).run().last_error(), expected);
}

TEST(ErrorsTest, ExceptionWithoutAText) {
  EXPECT_EQ(error_of("ThrowSpeechless"), std::string("ThrowSpeechless: ") + kOperands);
}

TEST(ErrorsTest, ExceptionOfAThreadOfTheKernel) {
  EXPECT_EQ(error_of("ThrowInParallel"),
            std::string("ThrowInParallel: thrown by a thread of the kernel") + kOperands);
}

TEST(ErrorsTest, NothingButRuntimeErrorLeavesTheFunction) {
  float x = 0;
  float y = 0;
  void* params[2] = {&x, &y};
  int ndims[2] = {0, 0};
  int64_t* shapes[2] = {nullptr, nullptr};
  const char* dtypes[2] = {"float32", "float32"};
  for (const char* name :
       {"Assign", "ThrowAten", "ThrowRuntimeError", "ThrowSpeechless", "ThrowInt", "ThrowStruct"}) {
    try {
      kernel(name).function()(2, params, ndims, shapes, dtypes, nullptr, nullptr);
      FAIL() << name;
    } catch (const std::exception& error) {
      EXPECT_EQ(typeid(error), typeid(std::runtime_error)) << name;
      EXPECT_EQ(std::string(error.what()).find(name), 0) << error.what();
    }
  }
}

TEST(ErrorsTest, LibraryBuiltWithAnotherPyTorch) {
  const Result result = square_call(other_pytorch_kernel("FromAnotherSource")).run();
  EXPECT_EQ(result.error(),
            "FromAnotherSource: expected PyTorch 1.99.x, with which this library was built, got " +
                std::string(TORCH_VERSION) +
                ", which the process had loaded before; build the library with the PyTorch that "
                "the program imports");
  EXPECT_EQ(result.bytes(0), std::vector<unsigned char>(16, 0xff));
}

TEST(ErrorsTest, AllWrongOperandsAreReportedTogetherAndNothingIsTouched) {
  const Result result = kernel("AddSubtract")
                            .input_bytes("hifloat8", {2}, {0, 0})
                            .input<float>({}, {1})
                            .output<float>({2})
                            .output_bytes("int4", {2, 1}, 1)
                            .run();
  const std::string dtypes =
      "bool|uint8|int8|uint16|int16|uint32|int32|uint64|int64|float16|bfloat16|float32|float64|"
      "complex64|complex128|float8e4m3fn|float8e5m2";
  EXPECT_EQ(result.error(),
            "AddSubtract: input 0: expected " + dtypes + ", got \"hifloat8\" with shape [2]\n" +
                "AddSubtract: output 1: expected " + dtypes + ", got \"int4\" with shape [2, 1]");
  EXPECT_EQ(result.bytes(0), std::vector<unsigned char>(8, 0xff));
}

TEST(ErrorsTest, LastErrorHasTheFullTextInBothModes) {
  const std::string expected = std::string("ThrowAten: rank 2 is not seven") + kOperands;
  EXPECT_EQ(square_call(kernel("ThrowAten")).run().last_error(), expected);
  EXPECT_EQ(square_call(returning_kernel("ThrowAten")).run().last_error(), expected);
}

TEST(ErrorsTest, LastErrorIsEachThreadsOwn) {
  square_call(kernel("ThrowInt")).run_here();
  EXPECT_EQ(square_call(kernel("Copy")).run().last_error(), "");
}

TEST(ErrorsTest, ReturnModeReturnsTheClassAndPrintsTheText) {
  testing::internal::CaptureStderr();
  const Result result = square_call(returning_kernel("ThrowInt")).run();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), result.last_error() + "\n");
  EXPECT_EQ(result.code(), 11);
  EXPECT_EQ(result.error(), "return code 11");
}

TEST(ErrorsTest, ReturnModeHasACodeForEachClass) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(square_call(returning_kernel("Copy")).run().code(), 0);
  EXPECT_EQ(returning_kernel("Copy").output<float>({1}).run().code(), 1);
  EXPECT_EQ(returning_kernel("Copy").input_none().output<float>({1}).run().code(), 2);
  EXPECT_EQ(
      returning_kernel("Copy").input_bytes("float32", {-1}, {}).output<float>({1}).run().code(), 3);
  void* null_pointers[2] = {nullptr, nullptr};
  int ndims[2] = {0, 0};
  int64_t* shapes[2] = {nullptr, nullptr};
  const char* dtypes[2] = {"float32", "float32"};
  EXPECT_EQ(returning_kernel("Copy").function()(2, null_pointers, ndims, shapes, dtypes, nullptr,
                                                nullptr),
            5);
  EXPECT_EQ(square_call(returning_kernel("Assign")).run().code(), 7);
  EXPECT_EQ(square_call(returning_kernel("ThrowAten")).run().code(), 8);
  EXPECT_EQ(square_call(returning_kernel("ThrowRuntimeError")).run().code(), 10);
  testing::internal::GetCapturedStderr();
}

//===--- the output contract ---===//

TEST(OutputContractTest, ResizedToMoreElements) {
  const Result result =
      kernel("Resize").input<float>({2, 2}, {1, 2, 3, 4}).output<float>({3}).run();
  EXPECT_EQ(result.error(),
            "Resize: output 0: expected float32 [3] as out_shape and out_dtype or the meta "
            "function say, got float32 "
            "[2, 2] because the kernel resized it; let out_shape return the shape of the result");
  EXPECT_EQ(result.bytes(0), std::vector<unsigned char>(12, 0xff));
}

TEST(OutputContractTest, ResizedWithinTheBuffer) {
  EXPECT_EQ(kernel("Resize").input<float>({2}, {1, 2}).output<float>({2, 2}).run().error(),
            "Resize: output 0: expected float32 [2, 2] as out_shape and out_dtype or the meta "
            "function say, got float32 "
            "[2] because the kernel resized it; let out_shape return the shape of the result");
}

TEST(OutputContractTest, EmptyOutputResized) {
  EXPECT_EQ(kernel("Resize").input<float>({2}, {1, 2}).output<float>({0}).run().error(),
            "Resize: output 0: expected float32 [0] as out_shape and out_dtype or the meta "
            "function say, got float32 "
            "[2] because the kernel resized it; let out_shape return the shape of the result");
}

TEST(OutputContractTest, AnotherTensorAssigned) {
  const std::string text =
      ": output 0: expected the result in the host's memory, got another tensor assigned to the "
      "parameter; write with an _out function or with copy_()";
  for (const std::string name :
       {"Assign", "AssignUndefined", "AssignSparse", "AssignOpaque", "AssignBatched"}) {
    EXPECT_EQ(error_of(name), name + text);
  }
}

TEST(OutputContractTest, AliasAssignedIsTheSameMemory) {
  const Result result = square_call(kernel("AssignAlias")).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (std::vector<float>{1, -2, 3, -4}));
}

TEST(OutputContractTest, LazyConjugateAssigned) {
  Call call = kernel("AssignConjugate");
  call.input<std::complex<float>>({1}, {{1, 2}}).output<std::complex<float>>({1});
  EXPECT_EQ(call.run().error(),
            "AssignConjugate: output 0: expected the result in the host's memory, got another "
            "tensor assigned to the parameter; write with an _out function or with copy_()");
}

TEST(OutputContractTest, StorageReplaced) {
  EXPECT_EQ(error_of("ReplaceStorage"),
            "ReplaceStorage: output 0: expected the result in the host's memory, got other memory "
            "because the kernel replaced the tensor's storage; write with an _out function or with "
            "copy_()");
}

TEST(OutputContractTest, LayoutChanged) {
  EXPECT_EQ(error_of("Transpose"),
            "Transpose: output 0: expected row-major values, got strides [1, 2] because the kernel "
            "changed the tensor's layout; write with an _out function or with copy_()");
}

TEST(OutputContractTest, ConjugatedInPlace) {
  Call call = kernel("ConjugateInPlace");
  call.input<std::complex<float>>({1}, {{1, 2}}).output<std::complex<float>>({1});
  EXPECT_EQ(call.run().error(),
            "ConjugateInPlace: output 0: expected row-major values, got strides [1] and a pending "
            "conjugation or negation because the kernel changed the tensor's layout; write with an "
            "_out function or with copy_()");
}

TEST(OutputContractTest, DtypeChanged) {
  EXPECT_EQ(error_of("ChangeDtype"),
            "ChangeDtype: output 0: expected float32 [2, 2] as out_shape and out_dtype or the meta "
            "function say, got "
            "int32 [2, 2] because the kernel changed its dtype; let out_dtype return the dtype of "
            "the result");
}

TEST(OutputContractTest, AllBrokenOutputsAreReported) {
  Call call = kernel("TwoFaults");
  call.input<float>({1}, {1}).output<float>({1}).output<float>({1});
  const std::string text =
      ": expected the result in the host's memory, got another tensor assigned to the parameter; "
      "write with an _out function or with copy_()";
  EXPECT_EQ(call.run().error(), "TwoFaults: output 0" + text + "\nTwoFaults: output 1" + text);
}

TEST(OutputContractTest, ReferenceToAnotherTensorReturned) {
  EXPECT_EQ(error_of("ReturnAnother"),
            "ReturnAnother: expected the kernel to return its output parameter, got a reference to "
            "another tensor; return at::Tensor by value, or write the parameter");
}

TEST(OutputContractTest, UndefinedResult) {
  EXPECT_EQ(error_of("UndefinedResult"),
            "UndefinedResult: output 0: expected float32 [2, 2] as out_shape and out_dtype or the "
            "meta function say, "
            "got an undefined tensor from the kernel");
}

TEST(OutputContractTest, WrongResultsAreReportedTogetherAndNothingIsCopied) {
  const Result result = kernel("WrongResults")
                            .input<float>({2, 1}, {1, 2})
                            .output<float>({2, 1})
                            .output<float>({2, 1})
                            .run();
  EXPECT_EQ(result.error(),
            "WrongResults: output 0: expected float32 [2, 1] as out_shape and out_dtype or the "
            "meta function say, got "
            "float64 [2, 1] from the kernel\n"
            "WrongResults: output 1: expected float32 [2, 1] as out_shape and out_dtype or the "
            "meta function say, got "
            "float32 [2] from the kernel");
  EXPECT_EQ(result.bytes(0), std::vector<unsigned char>(8, 0xff));
}

}  // namespace
