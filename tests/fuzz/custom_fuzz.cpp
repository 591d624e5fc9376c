// Sequences of calls through the entry point of ops.Custom, hooks and aten_bridge.mindspore's
// questions among them. A call is right, or differs from a right one in one thing; each has the
// result of a computation without PyTorch, or ends in an error, and nothing beside its arrays is
// touched.
#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../unit/arithmetic.h"
#include "device.h"
#include "operand.h"
#include "operator.h"

extern "C" const char* aten_bridge_last_error();

namespace {

using fuzz::Choices;
using fuzz::Expected;
using fuzz::Extra;
using fuzz::Ints;
using fuzz::KernelUnderTest;
using fuzz::Operand;
using fuzz::Operator;
using fuzz::Outcome;

/// Arrays that describe the operands, which lie in memory of the CPU on each device.
fuzz::Memory& descriptions() {
  static fuzz::Memory memory;
  return memory;
}

//===--- operands ---===//

/// What is wrong with a call; most have nothing.
enum class Fault {
  kNone,
  kUnknownDtype,
  kNullDtype,
  kNegativeRank,
  kHugeRank,
  kNegativeSize,
  kHugeSize,
  kNullData,
  kNullShape,
  kOneSlotLess,
  kNoExtra,
  kNullParams,
  kNullNdims,
  kNullShapes,
  kNullDtypes,
  kNegativeCount,
  kOtherMemory,
  kNoSlots,
  kFaults
};

struct Arrays {
  std::vector<void*> params;
  std::vector<int> ndims;
  std::vector<int64_t*> shapes;
  std::vector<const char*> dtypes;

  void add(const Operand& operand, std::size_t shift = 0) {
    const char* name = operand.is_none ? "none" : fuzz::info(operand.type).name;
    params.push_back(operand.is_none ? nullptr
                                     : fuzz::device::memory().take(operand.bytes.data(),
                                                                   operand.bytes.size(), shift));
    ndims.push_back(operand.is_none ? 0 : static_cast<int>(operand.sizes.size()));
    shapes.push_back(operand.is_none ? nullptr : descriptions().take(operand.sizes));
    dtypes.push_back(descriptions().take(name));
  }
};

/// Applies a fault to the operand at `at`. False if this call cannot have it.
bool spoil(Arrays& arrays, Fault fault, std::size_t at, const Operand& operand) {
  Ints sizes = operand.sizes;
  switch (fault) {
    case Fault::kUnknownDtype: {
      constexpr const char* kNames[] = {"float31", "string", "typetype", ""};
      arrays.dtypes[at] = descriptions().take(kNames[at % std::size(kNames)]);
      return true;
    }
    case Fault::kNullDtype:
      arrays.dtypes[at] = nullptr;
      return true;
    case Fault::kNegativeRank:
      arrays.ndims[at] = -1;
      return true;
    case Fault::kHugeRank:
      arrays.ndims[at] = INT_MAX;
      return true;
    case Fault::kNegativeSize:
    case Fault::kHugeSize:
      if (sizes.empty() || operand.is_none || operand.numel() == 0) {
        return false;
      }
      // There could be as many bytes.
      sizes[0] = fault == Fault::kNegativeSize || fuzz::info(operand.type).size == 1 ? INT64_MIN
                                                                                     : INT64_MAX;
      arrays.shapes[at] = descriptions().take(sizes);
      return true;
    case Fault::kNullData:
      arrays.params[at] = nullptr;
      return !operand.is_none && operand.numel() > 0;
    case Fault::kNullShape:
      arrays.shapes[at] = nullptr;
      return !operand.is_none && !sizes.empty();
    case Fault::kOtherMemory:
      if (fuzz::device::other_memory() == nullptr || operand.is_none || operand.numel() == 0) {
        return false;
      }
      arrays.params[at] =
          fuzz::device::other_memory()->take(operand.bytes.data(), operand.bytes.size());
      return true;
    default:
      return true;
  }
}

std::string text_of(const Operand& operand) {
  return operand.is_none ? "none"
         : operand.is_number
             ? "#int64=" + std::to_string(static_cast<int64_t>(fuzz::number_of(operand).integer))
             : fuzz::info(operand.type).name;
}

/// The operator's inputs, as aten_bridge.mindspore tells the hooks of them.
std::string described(const std::vector<Operand>& inputs) {
  std::string text;
  for (const Operand& input : inputs) {
    text.append(text.empty() ? "" : ";").append(text_of(input));
  }
  return text;
}

std::string as_json(const std::vector<Operand>& outputs) {
  std::string json = "[";
  for (const Operand& output : outputs) {
    json.append(json.size() == 1 ? "[\"" : ", [\"").append(fuzz::info(output.type).name);
    json += "\", [";
    for (std::size_t i = 0; i < output.sizes.size(); ++i) {
      json.append(i == 0 ? "" : ", ").append(std::to_string(output.sizes[i]));
    }
    json += "]]";
  }
  return json + "]";
}

/// Whether sizes are the given ones, as far as they are known.
bool agree(const Ints& sizes, const Ints& given) {
  if (sizes == Ints{-2}) {
    return true;
  }
  bool are = sizes.size() == given.size();
  for (std::size_t i = 0; are && i < sizes.size(); ++i) {
    are = sizes[i] == given[i] || sizes[i] == -1;
  }
  return are;
}

/// Makes sizes of one input unknown, or its rank.
bool forget(Ints& sizes, Choices& choices) {
  if (choices.one_in(4)) {
    sizes = {-2};
    return true;
  }
  bool forgot = false;
  for (int64_t& size : sizes) {
    if (choices.one_in(2)) {
      size = -1;
      forgot = true;
    }
  }
  return forgot;
}

//===--- questions before a call ---===//

/// An attribute as Python has it.
PythonAttribute as_python(const std::string& name, const fuzz::Attribute& attribute) {
  fuzz::Memory& memory = descriptions();
  PythonAttribute python = {memory.take(name.c_str()), static_cast<int>(attribute.index()), 1,
                            nullptr};
  const auto put = [&](const auto& values) {
    python.size = static_cast<int64_t>(values.size());
    python.data = memory.take(values);
  };
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_integral_v<T>) {
          python.data = memory.take(Ints{value});
        } else if constexpr (std::is_same_v<T, float>) {
          python.data = memory.take(std::vector<double>{value});
        } else if constexpr (std::is_same_v<T, std::string>) {
          put(std::vector<char>(value.begin(), value.end()));
        } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
          put(Ints(value.begin(), value.end()));
        } else if constexpr (std::is_same_v<T, Ints>) {
          put(value);
        } else if constexpr (std::is_same_v<T, fuzz::Floats>) {
          put(std::vector<double>(value.begin(), value.end()));
        } else {  // lists of others
          std::vector<PythonAttribute> elements;
          for (const auto& element : value) {
            elements.push_back(as_python("", element));
          }
          put(elements);
        }
      },
      attribute);
  return python;
}

/// What aten_bridge.mindspore asks.
void ask(const Operator& of, const std::vector<Operand>& inputs, const Expected& expected,
         Choices& choices) {
  const KernelUnderTest& kernel = *of.kernel;
  if (kernel.infer == nullptr) {
    return;
  }
  fuzz::Memory& memory = descriptions();
  const std::string description = kernel.describe();
  if (description.rfind("{\"name\": \"", 0) != 0 || description.back() != '}') {
    fuzz::fail("a wrong description:", description.c_str());
  }
  bool is_changed = false;
  std::vector<PythonInput> given;
  for (const Operand& input : inputs) {
    const std::string text = text_of(input);
    Ints sizes = input.sizes;
    is_changed = (choices.one_in(16) && forget(sizes, choices)) || is_changed;
    given.push_back(
        {memory.take(text.c_str()), static_cast<int>(sizes.size()), memory.take(sizes)});
  }
  const int change = choices.below(16);
  int count = static_cast<int>(given.size());
  if (change == 0) {
    --count;
  } else if (change == 1) {
    given.push_back(given.front());
    ++count;
  } else if (change == 2) {
    count = -1;  // the question is about the attributes alone
  } else if (change == 3 && given[0].ndim > 0) {
    given[0].sizes = memory.take(Ints(static_cast<std::size_t>(given[0].ndim), -3));
  }
  is_changed = is_changed || change < 4;
  std::vector<PythonAttribute> attributes;
  for (const auto& [name, value] : of.extra->attributes) {
    attributes.push_back(as_python(name, value));
  }
  int status = -1;
  const PythonQuestion question = {"out_shape and out_dtype",
                                   "the call",
                                   /*is_exact=*/false,
                                   memory.take(given),
                                   count,
                                   memory.take(attributes),
                                   static_cast<int>(attributes.size())};
  const std::string answer = kernel.infer(&question, &status);
  if (status != 0) {
    fuzz::check_text(answer, kernel.name);
  }
  if (kernel.is(fuzz::kHasMeta) && !is_changed && expected.is_inferred &&
      expected.outcome == Outcome::kValue && (status != 0 || answer != as_json(expected.outputs))) {
    fuzz::fail("inferred:", answer.c_str());
  }
}

/// The two hooks. `described` is what the Python module adds.
void ask_hooks(const Operator& of, const std::vector<Operand>& inputs, const Expected& expected,
               Choices& choices) {
  const KernelUnderTest& kernel = *of.kernel;
  if (kernel.infer_shapes == nullptr) {
    return;
  }
  Extra& extra = *of.extra;
  const bool is_described = !choices.one_in(8);
  if (is_described) {
    extra.attributes["aten_bridge_inputs"] = described(inputs);
  }
  const int multi_output = choices.below(16);
  if (multi_output < 2) {
    extra.attributes["multi_output"] = multi_output == 1;
  }
  Arrays arrays;
  std::vector<int> ids;
  bool is_right = is_described && multi_output >= 2 && expected.is_inferred &&
                  expected.outcome == Outcome::kValue;
  bool has_id = true;
  for (const Operand& input : inputs) {
    if (!input.is_none && !input.is_number) {
      arrays.add(input);
      ids.push_back(fuzz::info(input.type).id);
      has_id = has_id && ids.back() != 0;
    }
  }
  for (const Operand& output : expected.outputs) {
    has_id = has_id && fuzz::info(output.type).id != 0;
  }
  bool is_forgotten = false;
  if (!ids.empty()) {
    const auto at = static_cast<std::size_t>(choices.below(static_cast<int>(ids.size())));
    const auto fault = static_cast<Fault>(choices.one_in(4) ? choices.below(12) : 0);
    if (fault != Fault::kNone) {
      Operand of_fault;
      of_fault.sizes = Ints(static_cast<std::size_t>(std::max(arrays.ndims[at], 0)), 1);
      spoil(arrays, fault, at, of_fault);
      is_right = false;
    } else if (choices.one_in(4)) {
      Ints sizes(arrays.shapes[at], arrays.shapes[at] + arrays.ndims[at]);
      is_forgotten = forget(sizes, choices);
      arrays.ndims[at] = static_cast<int>(sizes.size());
      arrays.shapes[at] = descriptions().take(sizes);
    }
    if (choices.one_in(16)) {
      ids.push_back(43);
      is_right = false;
    }
  }
  // Where the inputs are not described a kernel has to trust that all are tensors.
  const bool may_ask = is_described || described(inputs).find_first_of("#n") == std::string::npos;
  if (may_ask) {
    const bool has_null = choices.one_in(32);
    is_right = is_right && !has_null;
    try {
      const std::vector<Ints> sizes =
          kernel.infer_shapes(has_null ? nullptr : descriptions().take(arrays.ndims),
                              descriptions().take(arrays.shapes), &extra);
      for (std::size_t i = 0; is_right && i < sizes.size(); ++i) {
        if (!agree(sizes[i], expected.outputs[i].sizes) ||
            (!is_forgotten && sizes[i] != expected.outputs[i].sizes)) {
          fuzz::fail("the hook for shapes is wrong of", kernel.name);
        }
      }
      const std::vector<int> found = kernel.infer_types(ids, &extra);
      for (std::size_t i = 0; is_right && i < found.size(); ++i) {
        if (found[i] != fuzz::info(expected.outputs[i].type).id) {
          fuzz::fail("the hook for dtypes is wrong of", kernel.name);
        }
      }
    } catch (const std::runtime_error& error) {
      fuzz::check_text(error.what(), kernel.name);
      if (kernel.is(fuzz::kHasMeta) && is_right && !is_forgotten && has_id) {
        fuzz::fail("a hook failed:", error.what());
      }
    }
  }
  extra.attributes.erase("aten_bridge_inputs");
  extra.attributes.erase("multi_output");
}

//===--- a call ---===//

void call(Operator& of, const std::vector<Operand>& inputs, Expected expected, Fault fault,
          Choices& choices) {
  const KernelUnderTest& kernel = *of.kernel;
  std::vector<Operand> outputs = expected.outputs;
  if (outputs.empty()) {
    Operand output = inputs[0];
    output.is_none = output.is_number = false;
    output.bytes.resize(output.byte_count());
    outputs.assign(kernel.is(fuzz::kGivesOneEach) ? inputs.size() - 1
                                                  : static_cast<std::size_t>(kernel.outputs),
                   output);
  }
  if (choices.one_in(16) &&
      !kernel.is(fuzz::kTrustsOutputs)) {  // an output that is not what the kernel gives
    Operand& output = outputs[0];
    const Operand before = output;
    if (choices.one_in(2)) {
      output.type = choices.of(fuzz::kAllTypes);
    } else {
      output.sizes = fuzz::choose_sizes(choices);
    }
    output.bytes.assign(output.byte_count(), 0);
    if (output.type != before.type || output.sizes != before.sizes) {
      const bool is_any =
          kernel.is(fuzz::kWritesAny) || expected.outcome == Outcome::kAny || !expected.is_inferred;
      expected = {is_any && expected.outcome != Outcome::kError ? Outcome::kAny : Outcome::kError,
                  {}};
    }
  }
  const auto choose_shift = [&](const Operand& operand) {
    const std::size_t shift = choices.one_in(8) ? static_cast<std::size_t>(choices.below(9)) : 0;
    if (shift > 0 && operand.type == fuzz::Type::kC128 && !fuzz::device::takes_any_address() &&
        expected.outcome == Outcome::kValue) {
      expected.outcome = Outcome::kAny;
    }
    return shift;
  };
  Arrays arrays;
  for (const Operand& input : inputs) {
    arrays.add(input, choose_shift(input));
    const char* older_name = fuzz::info(input.type).older_name;
    if (older_name != nullptr && !input.is_none && choices.one_in(16)) {
      arrays.dtypes.back() = descriptions().take(older_name);
    }
  }
  for (Operand& output : outputs) {
    std::fill(output.bytes.begin(), output.bytes.end(), static_cast<unsigned char>(0xff));
    arrays.add(output, choose_shift(output));
  }
  const auto slots = arrays.params.size();
  const std::size_t at = static_cast<std::size_t>(choices.below(static_cast<int>(slots)));
  const std::vector<void*> params = arrays.params;
  bool has_fault = fault != Fault::kNone;
  if (has_fault) {
    has_fault =
        spoil(arrays, fault, at, at < inputs.size() ? inputs[at] : outputs[at - inputs.size()]);
  }
  Extra* extra = of.extra.get();
  if (fault == Fault::kNoExtra) {
    extra = nullptr;
    has_fault = false;
    expected = {};  // attributes have their defaults
  } else {
    for (const std::size_t bytes : extra->workspaces) {
      const std::vector<unsigned char> unset(bytes, 0x5a);
      arrays.params.push_back(fuzz::device::memory().take(unset));
    }
  }
  bool keeps_inputs = true;
  if (fault == Fault::kOneSlotLess) {
    arrays.params.pop_back();
    expected = {};
    has_fault = false;
    keeps_inputs = false;  // the last of them is an output now
  }
  if (has_fault) {
    const bool is_counted = fault == Fault::kNoSlots || fault == Fault::kNegativeCount;
    // A number may be in memory of the CPU on all devices; some do not look at each slot.
    const bool is_any = kernel.is(fuzz::kTrustsOutputs) ||
                        (kernel.is(fuzz::kIsRaw) && expected.outcome != Outcome::kError) ||
                        (fault == Fault::kOtherMemory && at < inputs.size() &&
                         inputs[at].numel() == 1 && expected.outcome != Outcome::kError);
    expected = {is_any && !is_counted ? Outcome::kAny : Outcome::kError, {}};
  }
  if (kernel.is(fuzz::kIsRaw) && inputs[0].type == fuzz::Type::kC128 &&
      expected.outcome == Outcome::kValue) {
    expected.outcome = Outcome::kAny;  // it takes its operands as they lie
  }
  if (kernel.is(fuzz::kIsSparse) && !fuzz::device::has_sparse_tensors() &&
      expected.outcome == Outcome::kValue) {
    expected.outcome = Outcome::kAny;
  }
  const int count = fault == Fault::kNegativeCount ? INT_MIN
                    : fault == Fault::kNoSlots     ? 0
                                                   : static_cast<int>(arrays.params.size());
  void* const stream = fuzz::device::choose_stream(choices);
  const bool is_captured = choices.one_in(8) && fuzz::device::begin_capture(stream);
  if (is_captured && expected.outcome == Outcome::kValue) {
    expected.outcome = Outcome::kAny;  // some wait, which cannot be captured
  }
  fuzz::scene() = std::string(kernel.name) + " of " + as_json(inputs) + " to " + as_json(outputs) +
                  ", fault " + std::to_string(static_cast<int>(fault)) + " of slot " +
                  std::to_string(at) + (is_captured ? ", captured" : "");
  const ThreadArithmetic before;
  std::optional<std::string> error;
  try {
    fuzz::Memory& memory = descriptions();
    const int status = kernel.call(
        count, fault == Fault::kNullParams ? nullptr : memory.take(arrays.params),
        fault == Fault::kNullNdims ? nullptr : memory.take(arrays.ndims),
        fault == Fault::kNullShapes ? nullptr : memory.take(arrays.shapes),
        fault == Fault::kNullDtypes ? nullptr : memory.take(arrays.dtypes), stream, extra);
    if (status != 0) {
      fuzz::fail("a status without an error of", kernel.name);
    }
  } catch (const std::exception& caught) {
    error = caught.what();
    if (!kernel.is(fuzz::kIsBare)) {
      fuzz::check_text(*error, kernel.name);
      if (*error != aten_bridge_last_error()) {
        fuzz::fail("aten_bridge_last_error() is another text than", error->c_str());
      }
    }
  }
  if (before != ThreadArithmetic()) {
    fuzz::fail("the thread computes in another way after", kernel.name);
  }
  const bool has_run = !is_captured || fuzz::device::end_capture(stream);
  fuzz::device::wait();
  if (error && expected.outcome == Outcome::kValue) {
    fuzz::fail("an error of a right call:", error->c_str());
  }
  if (!error && expected.outcome == Outcome::kError) {
    fuzz::fail("no error of", kernel.name);
  }
  if (!error && has_run) {
    for (std::size_t i = 0; i < expected.outputs.size(); ++i) {
      if (!fuzz::has_values(params[inputs.size() + i], expected.outputs[i])) {
        fuzz::fail("a wrong value of", kernel.name);
      }
    }
  }
  for (std::size_t i = 0; keeps_inputs && i < inputs.size(); ++i) {
    if (!inputs[i].bytes.empty() && params[i] != nullptr &&
        std::memcmp(params[i], inputs[i].bytes.data(), inputs[i].bytes.size()) != 0) {
      fuzz::fail("an input was written by", kernel.name);
    }
  }
  if (kernel.is(fuzz::kCountsCalls)) {
    if (error || extra == nullptr) {
      of.count.reset();  // it may have run before an output was refused
    } else if (of.count && extra->kernel_data != nullptr) {
      ++*of.count;
    }
  }
}

void prepare(Operator& of, const std::vector<Operand>& inputs, Choices& choices) {
  of.is_prepared = true;
  if (of.kernel->init == nullptr || choices.one_in(8)) {
    return;
  }
  if (choices.one_in(2)) {
    of.extra->attributes["aten_bridge_counted"] = true;
  }
  Arrays arrays;
  for (const Operand& input : inputs) {
    arrays.add(input);
  }
  Operand output = inputs[0];
  output.is_none = false;
  arrays.add(output);
  const Fault fault = choices.one_in(4) ? static_cast<Fault>(choices.below(9)) : Fault::kNone;
  spoil(arrays, fault, 0, inputs[0]);
  fuzz::Memory& memory = descriptions();
  of.kernel->init(memory.take(arrays.ndims), memory.take(arrays.shapes), memory.take(arrays.dtypes),
                  of.extra.get());
  of.extra->attributes.erase("aten_bridge_counted");
  for (const std::size_t bytes : of.extra->workspaces) {
    if (bytes > 4096) {
      fuzz::fail("a workspace of more than is needed");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  // Few operators and few shapes, so that one call meets what another has left.
  std::vector<Operator> network(3);
  std::vector<std::vector<Operand>> usual(network.size());
  for (std::size_t i = 0; i < network.size(); ++i) {
    const auto& kernels = fuzz::kernels();
    network[i].kernel =
        &kernels[static_cast<std::size_t>(choices.below(static_cast<int>(kernels.size())))];
    network[i].extra = std::make_unique<Extra>();
    if (network[i].kernel->set_attributes != nullptr) {
      network[i].kernel->set_attributes(*network[i].extra, choices);
    }
    usual[i] = network[i].kernel->choose(choices);
  }
  for (int calls = 0; calls < 64 && choices.are_left(); ++calls) {
    const auto i = static_cast<std::size_t>(choices.below(static_cast<int>(network.size())));
    Operator& of = network[i];
    if (choices.one_in(4)) {
      usual[i] = of.kernel->choose(choices);
    }
    std::vector<Operand> inputs = usual[i];
    if (choices.one_in(16)) {
      inputs[static_cast<std::size_t>(choices.below(static_cast<int>(inputs.size())))].is_none =
          true;
    }
    for (Operand& input : inputs) {
      if (input.is_none) {
        input.bytes.clear();
        input.sizes.clear();
        input.is_number = false;
      }
    }
    if (!of.is_prepared) {
      fuzz::scene() = std::string("Init of ") + of.kernel->name + " for " + as_json(inputs);
      prepare(of, inputs, choices);
    }
    const Expected expected = of.kernel->expect(inputs, of);
    fuzz::scene() = std::string("questions about ") + of.kernel->name + " of " + as_json(inputs);
    if (choices.one_in(4)) {
      ask(of, inputs, expected, choices);
    }
    if (choices.one_in(4)) {
      ask_hooks(of, inputs, expected, choices);
    }
    const int fault = choices.one_in(4) ? choices.below(static_cast<int>(Fault::kFaults)) : 0;
    call(of, inputs, expected, static_cast<Fault>(fault), choices);
    descriptions().release();
    fuzz::device::memory().release();
    if (fuzz::device::other_memory() != nullptr) {
      fuzz::device::other_memory()->release();
    }
  }
  return 0;
}
