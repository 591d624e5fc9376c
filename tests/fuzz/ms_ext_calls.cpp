// The kernels in the manner of MindSpore's tutorial, and what they have to give.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device.h"
#include "results.h"

extern "C" {
fuzz::Kernel NegateTensors;
fuzz::Kernel NegateSlots;
fuzz::Kernel AddTransposed;
fuzz::Kernel Misuse;
fuzz::Kernel NegateOnTheCpu;
fuzz::Kernel CopyFromTheCpu;
}

namespace fuzz {
namespace {

Operands choose_matrices(Choices& choices) {
  const Type type = choices.of(kAllTypes);
  const Ints sizes = {choices.below(4), choices.below(4)};
  return {choose_tensor(choices, type, sizes), choose_tensor(choices, type, sizes)};
}
Operands choose_with_number(Choices& choices) {
  Operands inputs = choose<1>(choices);
  inputs.push_back(choose_tensor(choices, Type::kI64, {}));
  const int how = choices.below(8);
  set_numbers(inputs[1], [&](std::size_t /*i*/) { return how; });
  return inputs;
}

Expected expect_negated(const Operands& inputs, const Operator& /*of*/) {
  const Operand& x = inputs[0];
  if (x.is_none || !is_known(x.type) || (x.type == Type::kBool && x.numel() == 0)) {
    return {};
  }
  if (x.type == Type::kBool) {
    return kError;
  }
  return value({map({x}, [](const auto& row) { return -row[0]; })});
}

Expected expect_sum(const Operands& inputs, const Operator& /*of*/) {
  if (inputs[0].is_none || inputs[1].is_none || !is_known(inputs[0].type)) {
    return {};
  }
  return value({sum_of(inputs)});
}

Expected expect_copied(const Operands& inputs, const Operator& /*of*/) {
  if (inputs[0].is_none || inputs[1].is_none) {
    return {};
  }
  const auto how = static_cast<int>(number_of(inputs[1]).integer);
  if (how == 2) {
    return {};  // no dtype that the dense ones have not
  }
  return how == 0 || how == 7 ? Expected{Outcome::kValue, {inputs[0]}} : kError;
}

/// What is in memory of the one is not in that of the other.
Expected expect_of_the_cpu(const Operands& inputs, const Operator& of) {
  const bool is_empty = inputs[0].is_none || inputs[0].numel() == 0;
  return device::other_memory() == nullptr ? expect_negated(inputs, of)
         : is_empty                        ? Expected{}
                                           : kError;
}

}  // namespace

const std::vector<KernelUnderTest>& kernels() {
  const auto bare = [](const char* name, Kernel* call, auto choose, auto expect,
                       unsigned int traits) {
    return KernelUnderTest{name,    call,    nullptr, nullptr, nullptr,
                           nullptr, nullptr, choose,  expect,  traits | kIsRaw | kIsBare};
  };
  static const std::vector<KernelUnderTest> kernels = {
      bare("NegateTensors", NegateTensors, choose<1>, expect_negated, kWritesAny),
      bare("NegateSlots", NegateSlots, choose<1>, expect_negated, kTrustsOutputs),
      bare("AddTransposed", AddTransposed, choose_matrices, expect_sum, kTrustsOutputs),
      bare("Misuse", Misuse, choose_with_number, expect_copied, kTrustsOutputs),
      bare("NegateOnTheCpu", NegateOnTheCpu, choose<1>, expect_of_the_cpu, kTrustsOutputs),
      bare("CopyFromTheCpu", CopyFromTheCpu, choose<1>, expect_of_the_cpu, kTrustsOutputs),
  };
  return kernels;
}

}  // namespace fuzz
