// JAX as a host, without JAX: kernels are called with call frames of XLA's, right ones and others.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "arithmetic.h"
#include "jax_frame.h"

namespace {

namespace xla = aten_bridge::detail::xla;

using jax_frame::Floats;
using jax_frame::Sizes;

void* library() {
  static void* const opened = dlopen(TEST_PYTORCH, RTLD_LAZY | RTLD_LOCAL);
  return opened;
}

class Frame : public jax_frame::Frame {
 public:
  explicit Frame(const std::string& kernel) : jax_frame::Frame(library(), kernel) {}
};

TEST(JaxTest, CallsAKernelOnTheHostsMemory) {
  for (int times = 0; times < 3; ++times) {  // those after the first have the views of the first
    Floats x = {-2, 4};
    Floats y = {0, 0};
    EXPECT_EQ(Frame("LeakyRelu").input(x).output(y).run(), "");
    EXPECT_EQ(y, (Floats{-0.02F, 4}));
    EXPECT_EQ(
        Frame("LeakyRelu").input(x).output(y).scalar("negative_slope", xla::kFloat64, 0.5).run(),
        "");
    EXPECT_EQ(y, (Floats{-1, 4}));
  }
}

TEST(JaxTest, KeepsDenormalNumbersWhereTheThreadTakesThemForZeros) {
  const ThreadArithmetic before;
  before.set(/*flushes=*/true);
  const ThreadArithmetic flushing;  // like the one before in valgrind
  Floats x = {-1e-40F, 1e-40F};
  Floats y = {0, 0};
  const std::string error =
      Frame("LeakyRelu").input(x).output(y).scalar("negative_slope", xla::kFloat64, 0.5).run();
  const ThreadArithmetic after;
  before.set(/*flushes=*/false);
  EXPECT_EQ(error, "");
  EXPECT_EQ(y, (Floats{-5e-41F, 1e-40F}));
  EXPECT_TRUE(after == flushing);
}

TEST(JaxTest, AStateThatKeepsItsInputIsRefused) {
  Floats x = {1, 2};
  Floats y = {0, 0};
  EXPECT_EQ(Frame("Difference").input(x).output(y).run(),
            "Difference: input 0: expected no reference to this tensor after the call, because its "
            "memory belongs to the host, got one that the kernel keeps (the tensor or a view of "
            "it); keep a clone() instead");
}

TEST(JaxTest, ResultsMayBeWrittenToTheMemoryOfEachOthersInputs) {
  Floats x = {1, 2};
  Floats y = {3, 4};
  EXPECT_EQ(Frame("Swap").input(x).input(y).output(x).output(y).run(), "");
  EXPECT_EQ(x, (Floats{3, 4}));
  EXPECT_EQ(y, (Floats{1, 2}));
}

TEST(JaxTest, TakesEmptyTensorsAndThoseOfRank0) {
  Floats one = {-3};
  Floats y = {0};
  EXPECT_EQ(Frame("LeakyRelu").input(one.data(), {}).output(y.data(), {}).run(), "");
  EXPECT_FLOAT_EQ(y[0], -0.03F);
  EXPECT_EQ(Frame("LeakyRelu").input(nullptr, {0, 3}).output(nullptr, {0, 3}).run(), "");
}

TEST(JaxTest, TakesListsAndNones) {
  Floats a = {1, 2};
  Floats b = {3};
  Floats all = {0, 0, 0};
  EXPECT_EQ(Frame("Cat").input(a).input(b).output(all).run(), "");
  EXPECT_EQ(all, (Floats{1, 2, 3}));

  Floats x = {1, 3};
  Floats y = {0, 0};
  Floats bias = {10, 20};
  const auto norm = [&](bool has_bias) {
    Frame frame("LayerNorm");
    frame.input(x).output(y).scalar("eps", xla::kFloat64, 0.0);
    if (has_bias) {
      frame.input(bias);
    }
    frame.array<int64_t>("aten_bridge_none", xla::kInt64, has_bias ? Sizes{1} : Sizes{1, 2});
    return frame.run();
  };
  EXPECT_EQ(norm(false), "");
  EXPECT_EQ(y, (Floats{-1, 1}));
  EXPECT_EQ(norm(true), "");
  EXPECT_EQ(y, (Floats{9, 21}));
}

TEST(JaxTest, MakesAStateOnceForEachSetOfAttributes) {
  const auto count = [](int64_t first) {
    Floats x = {0};
    Floats y = {0};
    EXPECT_EQ(Frame("Count").input(x).output(y).scalar("first", xla::kInt64, first).run(), "");
    return y[0];
  };
  EXPECT_EQ(count(100), 100);
  EXPECT_EQ(count(200), 200);
  EXPECT_EQ(count(100), 101);
  for (int64_t first = 1000; first < 1200; ++first) {
    EXPECT_EQ(count(first), static_cast<float>(first));
  }
  EXPECT_EQ(count(100), 102);
}

TEST(JaxTest, AttributesAreOfTheirTypes) {
  Floats x = {0};
  Floats y = {0};
  const auto sum = [&](const auto& add) {
    Frame frame("SumOf");
    frame.input(x).output(y);
    add(frame);
    return frame.run();
  };
  EXPECT_EQ(sum([](jax_frame::Frame& f) {
              f.scalar("first", xla::kFloat32, 0.5F)
                  .array<double>("list", xla::kFloat64, {1, 2})
                  .array<double>("rows", xla::kFloat64, {4, 8, 16})
                  .array<int64_t>("aten_bridge_rows_rows", xla::kInt64, {1, 0, 2});
            }),
            "");
  EXPECT_EQ(y[0], 31.5);
  EXPECT_EQ(sum([](jax_frame::Frame& f) {
              f.scalar("first", xla::kInt64, int64_t{1})
                  .array<int64_t>("list", xla::kInt64, {1})
                  .array<double>("rows", xla::kFloat64, {1, 2})
                  .array<int64_t>("aten_bridge_rows_rows", xla::kInt64, {1, 2});
            }),
            "SumOf: attribute 'first': expected a float, such as 1.0, got the int 1\n"
            "SumOf: attribute 'list': expected a list of floats, such as [1.0, 2.0], got the list "
            "of ints [1]\n"
            "SumOf: attribute 'rows': expected a list of lists of floats, such as [[1.0], [2.0, "
            "3.0]], got something that is "
            "none of bool, int, float, str, and lists of ints or of floats");
  EXPECT_EQ(jax_frame::raised_code, 3);
  EXPECT_EQ(sum([](jax_frame::Frame& f) {
              f.attribute("first", xla::Attributes::kDictionary, &f)
                  .attribute("list", xla::Attributes::kScalar, nullptr)
                  .array<double>("rows", 21, {});  // int4
            }),
            "SumOf: attribute 'first': expected a bool, an int, a float, a str or a list of these, "
            "got something else\n"
            "SumOf: attribute 'list': expected a bool, an int, a float, a str or a list of these, "
            "got something else\n"
            "SumOf: attribute 'rows': expected a bool, an int, a float, a str or a list of these, "
            "got something else");
  EXPECT_EQ(sum([](jax_frame::Frame& f) {
              f.array<int64_t>("aten_bridge_none", xla::kInt64, {1, 1});
            }),
            "SumOf: attribute 'aten_bridge_none': expected which inputs are None, in their order, "
            "got something else");
  EXPECT_EQ(
      sum([](jax_frame::Frame& f) { f.array<int64_t>("aten_bridge_none", xla::kInt64, {7}); }),
      "SumOf: attribute 'aten_bridge_none': expected inputs below 2, got 7");
}

TEST(JaxTest, AnswersWhatItIsAndOtherStages) {
  Frame frame("LeakyRelu");
  frame.complete();
  struct {
    xla::Metadata known;
    int64_t more;
  } metadata = {};
  metadata.known.struct_size = sizeof(metadata);
  metadata.more = 7;
  xla::MetadataExtension asked = {{sizeof(asked), xla::Extension::kMetadata, nullptr},
                                  &metadata.known};
  xla::Extension other = {sizeof(other), 99, &asked.base};
  frame.call->extensions = &other;
  EXPECT_EQ(frame.run_as_it_is(), "");
  EXPECT_EQ(metadata.known.version.major, 0);
  EXPECT_EQ(metadata.known.version.minor, 1);
  EXPECT_EQ(metadata.known.traits, 0U);
  EXPECT_EQ(metadata.more, 7);

  frame.call->extensions = nullptr;
  for (const int stage : {0, 1, 2, 4}) {
    frame.call->stage = stage;
    EXPECT_EQ(frame.run_as_it_is(), "");
  }
}

TEST(JaxTest, RefusesOperandsThatAreWrong) {
  Floats x = {1, 2};
  Floats y = {0, 0};
  EXPECT_EQ(Frame("LeakyRelu").input(x).run(),
            "LeakyRelu: expected 1 input and 1 output, got 1 and 0; compare the arguments of the "
            "call with the kernel");
  EXPECT_EQ(Frame("LeakyRelu").output(y).output(y).run(),
            "LeakyRelu: expected 1 input and 1 output, got 0 and 2; compare the arguments of the "
            "call with the kernel");
  EXPECT_EQ(Frame("Cat").run(),
            "Cat: expected at least 0 inputs and 1 output, got 0 and 0; compare the arguments of "
            "the call with the kernel");
  EXPECT_EQ(Frame("CatGrad").input(x).input(y).output(y).output(y).run(),
            "CatGrad: expected at least 1 input and 0 outputs, got 2 and 2; compare the arguments "
            "of the call with the kernel");
  EXPECT_EQ(Frame("LeakyRelu").input(x.data(), {2}, 21).output(y.data(), {2}, 99).run(),
            "LeakyRelu: input 0 'x': expected "
            "bool|uint8|int8|uint16|int16|uint32|int32|uint64|int64|float16|bfloat16|float32|"
            "float64|complex64|complex128|float8e4m3fn|float8e5m2, got \"int4\" with shape [2]\n"
            "LeakyRelu: output 0 'y': expected "
            "bool|uint8|int8|uint16|int16|uint32|int32|uint64|int64|float16|bfloat16|float32|"
            "float64|complex64|complex128|float8e4m3fn|float8e5m2, got \"number 99\" with shape "
            "[2]");
  EXPECT_EQ(Frame("LeakyRelu").input(x.data(), {-1}).output(nullptr, {2}).run(),
            "LeakyRelu: input 0 'x': expected sizes of 0 or more, got float32 [-1]\n"
            "LeakyRelu: output 0 'y': expected a pointer to 2 elements, got null with float32 [2]");
  EXPECT_EQ(Frame("LeakyRelu").input(x).output(y.data(), {1, 2}).run(),
            "LeakyRelu: output 0 'y': expected float32 [1, 2] as out or the meta function say, got "
            "float32 [2] because the kernel resized it; let out tell the shape of the result");
}

TEST(JaxTest, RefusesFramesThatContradictThemselves) {
  Floats x = {1, 2};
  Floats y = {0, 0};
  const auto fault = [&](const auto& change) {
    Frame frame("LeakyRelu");
    frame.input(x).output(y).scalar("negative_slope", xla::kFloat64, 0.5).complete();
    EXPECT_EQ(frame.run_as_it_is(), "");  // its views are kept
    change(frame);
    return frame.run_as_it_is();
  };
  const std::string contradicts =
      ", whose arrays contradict that; report it with the version of jaxlib";
  EXPECT_EQ(fault([](jax_frame::Frame& f) { f.call->inputs.items = nullptr; }),
            "LeakyRelu: expected a call frame of XLA's FFI, got one of 232 bytes with inputs (1 "
            "operand in a structure of 40 bytes), outputs (1 operand in a structure of 40 bytes) "
            "and attributes (1 operand in a structure of 48 bytes)" +
                contradicts);
  for (const auto& change : std::vector<void (*)(jax_frame::Frame&)>{
           [](jax_frame::Frame& f) { f.call->struct_size = sizeof(xla::CallFrame) - 8; },
           [](jax_frame::Frame& f) { f.call->inputs.size = -1; },
           [](jax_frame::Frame& f) { f.call->outputs.size = int64_t{1} << 40; },
           [](jax_frame::Frame& f) { f.call->outputs.types = nullptr; },
           [](jax_frame::Frame& f) { f.call->outputs.struct_size = 8; },
           [](jax_frame::Frame& f) { f.call->attributes.size = -2; },
           [](jax_frame::Frame& f) { f.call->attributes.names = nullptr; },
           [](jax_frame::Frame& f) { f.call->attributes.items = nullptr; },
           [](jax_frame::Frame& f) { f.call->attributes.struct_size = 0; },
       }) {
    const std::string text = fault(change);
    EXPECT_EQ(text.find("LeakyRelu: expected a call frame of XLA's FFI, got one of "), 0U) << text;
    EXPECT_NE(text.find(contradicts), std::string::npos) << text;
  }
  EXPECT_EQ(fault([](jax_frame::Frame& f) { f.inputs.items[0] = nullptr; }),
            "LeakyRelu: input 0 'x': expected a buffer of XLA's, got none");
  EXPECT_EQ(fault([](jax_frame::Frame& f) { f.outputs.types[0] = 9; }),
            "LeakyRelu: output 0 'y': expected a buffer of XLA's, got none");
  EXPECT_EQ(fault([](jax_frame::Frame& f) { f.buffer(0).struct_size = 8; }),
            "LeakyRelu: input 0 'x': expected a buffer of XLA's, got none");
  EXPECT_EQ(fault([](jax_frame::Frame& f) { f.buffer(0).rank = -1; }),
            "LeakyRelu: input 0 'x': expected a rank from 0 to 64, got -1");
  EXPECT_EQ(fault([](jax_frame::Frame& f) { f.buffer(0).rank = int64_t{1} << 32; }),
            "LeakyRelu: input 0 'x': expected a rank from 0 to 64, got 4294967296");
  EXPECT_EQ(fault([](jax_frame::Frame& f) { f.buffer(0).sizes = nullptr; }),
            "LeakyRelu: input 0 'x': expected 1 size, got a null shape");
  EXPECT_EQ(fault([](jax_frame::Frame& f) { f.names[0] = nullptr; }),
            "");  // no attribute of the kernel's
}

TEST(JaxTest, ThrowsNothing) {
  Floats x = {1, 2};
  Floats y = {0, 0};
  EXPECT_EQ(Frame("Throws").input(x).output(y).scalar("how", xla::kInt64, int64_t{4}).run(),
            "Throws: the kernel threw an object of type int, which is not a std::exception (input "
            "0: float32 [2]; output 0: float32 [2])");
  EXPECT_EQ(Frame("Throws").input(x).output(y).scalar("how", xla::kInt64, int64_t{0}).run(),
            "Throws: index (input 0: float32 [2]; output 0: float32 [2])");
}

}  // namespace
