// Sequences of calls through the door of ops.Custom, hooks and aten_bridge.mindspore's questions
// among them. A call is right, or differs from a right one in one thing; each has the result of a
// computation without PyTorch, or ends in an error, and nothing beside its arrays is touched.
#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "operand.h"

//===--- the kernels' C functions, as MindSpore knows them ---===//

extern "C" {
struct PythonInput {
  const char* text;
  int ndim;
  const int64_t* sizes;
};
struct PythonAttribute {
  const char* name;
  int type;
  int64_t size;
  const void* data;
};
using Kernel = int(int, void**, int*, int64_t**, const char**, void*, void*);
using Init = int(int*, int64_t**, const char**, void*);
using InferShape = std::vector<int64_t>(int*, int64_t**, void*);
using InferType = int(std::vector<int>, void*);
using Infer = const char*(const PythonInput*, int, const PythonAttribute*, int, int*);
#define DECLARE(Name)          \
  Kernel Name;                 \
  Init Name##Init;             \
  InferShape Name##InferShape; \
  InferType Name##InferType;   \
  Infer Name##Infer;
DECLARE(Negate)
DECLARE(Scale)
DECLARE(Linear)
DECLARE(SumOfAll)
DECLARE(AddNumber)
DECLARE(Spoil)
DECLARE(Count)
DECLARE(WithWorkspace)
DECLARE(Product)
DECLARE(CountSlots)
Kernel ProductGrad;
#undef DECLARE
const char* aten_bridge_last_error();
}

namespace {

using fuzz::Choices;
using fuzz::Ints;
using fuzz::Operand;
using fuzz::Outcome;
using fuzz::Type;

//===--- MindSpore's side: attributes, and what it keeps for an operator ---===//

struct AotExtra {  // by the order of its virtual functions, from MindSpore 2.10
  virtual ~AotExtra() = default;
  virtual bool has(std::string name) = 0;
  virtual bool get_bool(std::string name) = 0;
  virtual int64_t get_int(std::string name) = 0;
  virtual float get_float(std::string name) = 0;
  virtual std::string get_string(std::string name) = 0;
  virtual Ints get_ints(std::string name) = 0;
  virtual std::vector<float> get_floats(std::string name) = 0;
  virtual std::vector<Ints> get_int_lists(std::string name) = 0;
  virtual std::vector<std::vector<float>> get_float_lists(std::string name) = 0;
  std::vector<std::size_t> workspaces;
  void* kernel_data = nullptr;
};
struct KernelData {
  virtual ~KernelData() = default;
};

class Extra final : public AotExtra {
 public:
  // no_sanitize: the class behind it is the kernel's.
  __attribute__((no_sanitize("vptr"))) ~Extra() override {
    delete static_cast<KernelData*>(kernel_data);
  }
  Extra() = default;
  Extra(const Extra&) = delete;
  Extra& operator=(const Extra&) = delete;

  std::map<std::string, bool> bools;
  std::map<std::string, int64_t> ints;
  std::map<std::string, float> floats;
  std::map<std::string, std::string> strings;

  bool has(std::string name) override {
    return bools.count(name) + ints.count(name) + floats.count(name) + strings.count(name) > 0;
  }
  bool get_bool(std::string name) override { return of(bools, name); }
  int64_t get_int(std::string name) override { return of(ints, name); }
  float get_float(std::string name) override { return of(floats, name); }
  std::string get_string(std::string name) override { return of(strings, name); }
  Ints get_ints(std::string /*name*/) override { throw std::runtime_error("no such ints"); }
  std::vector<float> get_floats(std::string /*name*/) override {
    throw std::runtime_error("no such floats");
  }
  std::vector<Ints> get_int_lists(std::string /*name*/) override {
    throw std::runtime_error("no such lists");
  }
  std::vector<std::vector<float>> get_float_lists(std::string /*name*/) override {
    throw std::runtime_error("no such lists");
  }

 private:
  template <class T>
  static T of(const std::map<std::string, T>& values, const std::string& name) {
    const auto found = values.find(name);
    if (found == values.end()) {
      throw std::runtime_error("no such attribute");
    }
    return found->second;
  }
};

//===--- what a call has to give ---===//

struct Expected {
  Outcome outcome = Outcome::kAny;
  std::vector<Operand> outputs;
};

struct Operator;

struct KernelUnderTest {
  const char* name;
  Kernel* call;
  Init* init;
  InferShape* infer_shape;
  InferType* infer_type;
  Infer* infer;
  bool has_meta;
  std::vector<Operand> (*choose)(Choices&);  // inputs
  Expected (*expect)(const std::vector<Operand>&, Operator&);
};

/// One operator of a network: a kernel with its attributes and what the host keeps for it.
struct Operator {
  const KernelUnderTest* kernel = nullptr;
  std::unique_ptr<Extra> extra;
  bool is_prepared = false;
  std::optional<int64_t> count = 0;  // of Count's calls; none if it is not known
};

/// What `f` makes of the elements of the inputs.
template <class F>
Expected elementwise(const std::vector<Operand>& inputs, F f) {
  Operand output = inputs[0];
  fuzz::with_type(output.type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<std::vector<T>> columns;
    for (const Operand& input : inputs) {
      columns.push_back(fuzz::values<T>(input));
    }
    std::vector<T> results(columns[0].size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::vector<T> row;
      for (const auto& column : columns) {
        row.push_back(column[i]);
      }
      results[i] = static_cast<T>(f(row));
    }
    fuzz::set_values(output, results);
    return 0;
  });
  return {Outcome::kValue, {output}};
}

bool is_float(Type type) { return type == Type::kF32 || type == Type::kF64; }
bool is_complex(Type type) { return type == Type::kC64 || type == Type::kC128; }
bool are_alike(const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    if (operand.is_none || operand.type != operands[0].type || operand.sizes != operands[0].sizes) {
      return false;
    }
  }
  return true;
}

std::vector<Operand> choose_one(Choices& choices) {
  const Type type = choices.of(fuzz::kAllTypes);
  return {fuzz::choose_tensor(choices, type, fuzz::choose_sizes(choices))};
}

std::vector<Operand> choose_number_behind(Choices& choices) {
  std::vector<Operand> inputs = choose_one(choices);
  constexpr Type kTypes[] = {Type::kI64, Type::kI64, Type::kF32, Type::kI32, Type::kBool};
  inputs.push_back(fuzz::choose_tensor(choices, choices.of(kTypes), {}));
  inputs.back().is_number = inputs.back().type == Type::kI64 && choices.one_in(2);
  return inputs;
}

int64_t number(const Operand& operand) {
  return fuzz::with_type(operand.type, [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<int64_t>(fuzz::values<T>(operand)[0]);
    }
    return 0;
  });
}

Expected expect_negated(const std::vector<Operand>& inputs, Operator& /*of*/) {
  if (inputs[0].is_none || inputs[0].type == Type::kBool) {
    return {Outcome::kError, {}};
  }
  return fuzz::is_known(inputs[0].type)
             ? elementwise({inputs[0]}, [](const auto& row) { return -row[0]; })
             : Expected{};
}

/// `x + number`, in the dtype that the sum has.
Expected plus(Operand x, int64_t number) {
  if (x.is_none) {
    return {Outcome::kError, {}};
  }
  if (!fuzz::is_known(x.type)) {
    return {};
  }
  if (x.type == Type::kBool) {
    const std::vector<bool> bools = fuzz::values<bool>(x);
    x.type = Type::kI64;
    fuzz::set_values(x, Ints(bools.begin(), bools.end()));
  }
  return elementwise({x}, [&](const auto& row) {
    using T = std::decay_t<decltype(row[0])>;
    return row[0] + static_cast<T>(number);
  });
}

Expected expect_scaled(const std::vector<Operand>& inputs, Operator& of) {
  const Extra& extra = *of.extra;
  if (extra.bools.count("factor") + extra.strings.count("shift") > 0) {
    return {Outcome::kError, {}};
  }
  const double factor = extra.floats.count("factor") > 0 ? extra.floats.at("factor") : 2;
  const int64_t shift = extra.ints.count("shift") > 0 ? extra.ints.at("shift") : 1;
  Operand x = inputs[0];
  if (x.is_none) {
    return {Outcome::kError, {}};
  }
  if (!fuzz::is_known(x.type)) {
    return {};
  }
  if (!is_float(x.type) && !is_complex(x.type)) {
    fuzz::with_type(x.type, [&](auto zero) {
      using T = decltype(zero);
      std::vector<float> floats;
      if constexpr (std::is_arithmetic_v<T>) {
        for (const T value : fuzz::values<T>(x)) {
          floats.push_back(static_cast<float>(value));
        }
      }
      x.type = Type::kF32;
      fuzz::set_values(x, floats);
      return 0;
    });
  }
  return elementwise({x}, [&](const auto& row) {
    using T = std::decay_t<decltype(row[0])>;
    return row[0] * static_cast<T>(factor) + static_cast<T>(shift);
  });
}

std::vector<Operand> choose_linear(Choices& choices) {
  const Type type = choices.one_in(8) ? choices.of(fuzz::kAllTypes)
                                      : (choices.one_in(2) ? Type::kF64 : Type::kF32);
  const int64_t n = choices.below(4);
  const int64_t c = choices.below(4);
  const int64_t m = choices.below(4);
  return {fuzz::choose_tensor(choices, type, {n, c}),
          fuzz::choose_tensor(choices, choices.one_in(8) ? choices.of(fuzz::kAllTypes) : type,
                              {m, choices.one_in(8) ? c + 1 : c})};
}

Expected expect_linear(const std::vector<Operand>& inputs, Operator& /*of*/) {
  const Operand& x = inputs[0];
  const Operand& w = inputs[1];
  if (x.is_none || w.is_none || x.sizes.size() != 2 || w.sizes.size() != 2 ||
      x.sizes[1] != w.sizes[1]) {
    return {Outcome::kError, {}};
  }
  if (!is_float(x.type) || x.type != w.type) {
    return {};
  }
  Operand y;
  y.type = x.type;
  y.sizes = {x.sizes[0], w.sizes[0]};
  fuzz::with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> a = fuzz::values<T>(x);
    const std::vector<T> b = fuzz::values<T>(w);
    std::vector<T> sums;
    const auto c = static_cast<std::size_t>(x.sizes[1]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(x.sizes[0]); ++i) {
      for (std::size_t j = 0; j < static_cast<std::size_t>(w.sizes[0]); ++j) {
        T sum{};
        for (std::size_t k = 0; k < c; ++k) {
          sum += a[i * c + k] * b[j * c + k];
        }
        sums.push_back(sum);
      }
    }
    fuzz::set_values(y, sums);
    return 0;
  });
  return {Outcome::kValue, {y}};
}

std::vector<Operand> choose_several(Choices& choices) {
  std::vector<Operand> inputs = choose_one(choices);
  for (int more = choices.below(4); more > 0; --more) {
    inputs.push_back(fuzz::choose_tensor(choices, inputs[0].type, inputs[0].sizes));
  }
  inputs.back().is_none = choices.one_in(4);
  return inputs;
}

Expected expect_sum(const std::vector<Operand>& inputs, Operator& /*of*/) {
  std::vector<Operand> given = inputs;
  if (given.back().is_none) {
    given.pop_back();
  }
  if (given.empty()) {
    return {Outcome::kError, {}};
  }
  if (!are_alike(given)) {
    return {};  // some are broadcast, some are None
  }
  if (!fuzz::is_known(given[0].type)) {
    return {};
  }
  return elementwise(given, [](const auto& row) {
    auto sum = row[0];
    for (std::size_t i = 1; i < row.size(); ++i) {
      sum = static_cast<decltype(sum)>(sum + row[i]);  // of bools: or
    }
    return sum;
  });
}

Expected expect_number_added(const std::vector<Operand>& inputs, Operator& /*of*/) {
  const Operand& n = inputs[1];
  if (inputs[0].is_none || n.is_none || n.numel() != 1) {
    return {Outcome::kError, {}};
  }
  if (is_complex(n.type) || !fuzz::is_known(n.type)) {
    return {};
  }
  return plus(inputs[0], number(n));
}

Expected expect_spoiled(const std::vector<Operand>& inputs, Operator& of) {
  const Operand& n = inputs[1];
  if (inputs[0].is_none || n.is_none || n.numel() != 1) {
    return {Outcome::kError, {}};
  }
  if (is_complex(n.type) || !fuzz::is_known(n.type)) {
    return {};
  }
  Expected expected = expect_negated({inputs[0]}, of);
  const int64_t how = number(n);
  if (how == 5 || how == 11 || how == 13) {
    expected.outcome = Outcome::kError;
  } else if (how != 0 && how != 1 && how != 3 && how != 9) {
    expected.outcome = expected.outcome == Outcome::kValue ? Outcome::kAny : expected.outcome;
  }
  return expected;
}

Expected expect_counted(const std::vector<Operand>& inputs, Operator& of) {
  if (of.extra->ints.count("begin") == 0) {
    return {Outcome::kError, {}};
  }
  if (!of.count) {
    return {};
  }
  const int64_t begin = of.extra->ints.at("begin");
  return plus(inputs[0], begin + (of.extra->kernel_data == nullptr ? 0 : *of.count));
}

Expected expect_with_workspace(const std::vector<Operand>& inputs, Operator& /*of*/) {
  return plus(inputs[0], 7);
}

std::vector<Operand> choose_two(Choices& choices) {
  std::vector<Operand> inputs = choose_one(choices);
  inputs.push_back(fuzz::choose_tensor(choices, inputs[0].type, inputs[0].sizes));
  return inputs;
}

Expected multiplied(const std::vector<Operand>& inputs) {
  return elementwise(inputs, [](const auto& row) { return row[0] * row[1]; });
}

Expected expect_product(const std::vector<Operand>& inputs, Operator& /*of*/) {
  return are_alike(inputs) && fuzz::is_known(inputs[0].type) ? multiplied(inputs) : Expected{};
}

std::vector<Operand> choose_three(Choices& choices) {
  std::vector<Operand> inputs = choose_two(choices);
  inputs.push_back(fuzz::choose_tensor(choices, inputs[0].type, inputs[0].sizes));
  return inputs;
}

Expected expect_gradient(const std::vector<Operand>& inputs, Operator& /*of*/) {
  if (!are_alike(inputs) || !is_float(inputs[0].type)) {
    return {};
  }
  Expected expected = multiplied({inputs[1], inputs[2]});
  expected.outputs.push_back(multiplied({inputs[0], inputs[2]}).outputs[0]);
  return expected;
}

Expected expect_slots(const std::vector<Operand>& inputs, Operator& /*of*/) {
  Operand last = inputs[0];
  if (last.is_none || !fuzz::is_known(last.type)) {
    return {};
  }
  const auto count = static_cast<int>(inputs.size() + 1);
  return elementwise(
      {last}, [&](const auto& row) { return static_cast<std::decay_t<decltype(row[0])>>(count); });
}

#define ALL_OF(Name) #Name, Name, Name##Init, Name##InferShape, Name##InferType, Name##Infer
const KernelUnderTest kKernels[] = {
    {ALL_OF(Negate), true, choose_one, expect_negated},
    {ALL_OF(Scale), true, choose_one, expect_scaled},
    {ALL_OF(Linear), true, choose_linear, expect_linear},
    {ALL_OF(SumOfAll), true, choose_several, expect_sum},
    {ALL_OF(AddNumber), true, choose_number_behind, expect_number_added},
    {ALL_OF(Spoil), false, choose_number_behind, expect_spoiled},
    {ALL_OF(Count), true, choose_one, expect_counted},
    {ALL_OF(WithWorkspace), true, choose_one, expect_with_workspace},
    {ALL_OF(Product), true, choose_two, expect_product},
    {ALL_OF(CountSlots), false, choose_several, expect_slots},
    {"ProductGrad", ProductGrad, nullptr, nullptr, nullptr, nullptr, false, choose_three,
     expect_gradient},
};
#undef ALL_OF

//===--- one call ---===//

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
  kFaults
};

struct Arrays {
  std::vector<void*> params;
  std::vector<int> ndims;
  std::vector<int64_t*> shapes;
  std::vector<const char*> dtypes;

  void add(fuzz::Memory& memory, const Operand& operand, std::size_t shift) {
    const char* name = operand.is_none ? "none" : fuzz::info(operand.type).name;
    params.push_back(
        operand.is_none ? nullptr : memory.take(operand.bytes.data(), operand.bytes.size(), shift));
    ndims.push_back(operand.is_none ? 0 : static_cast<int>(operand.sizes.size()));
    shapes.push_back(operand.is_none ? nullptr : memory.take(operand.sizes));
    dtypes.push_back(static_cast<char*>(memory.take(name, std::strlen(name) + 1)));
  }
};

/// Applies a fault to the operand at `at`. False if this call cannot have it.
bool spoil(Arrays& arrays, fuzz::Memory& memory, Fault fault, std::size_t at,
           const Operand& operand) {
  Ints sizes = operand.sizes;
  switch (fault) {
    case Fault::kUnknownDtype:
      arrays.dtypes[at] = static_cast<char*>(memory.take("float31", 8));
      return true;
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
      // Of bytes there could be as many.
      sizes[0] = fault == Fault::kNegativeSize || fuzz::info(operand.type).size == 1 ? INT64_MIN
                                                                                     : INT64_MAX;
      arrays.shapes[at] = memory.take(sizes);
      return true;
    case Fault::kNullData:
      arrays.params[at] = nullptr;
      return !operand.is_none && operand.numel() > 0;
    case Fault::kNullShape:
      arrays.shapes[at] = nullptr;
      return !operand.is_none && !sizes.empty();
    default:
      return true;
  }
}

std::string text_of(const Operand& operand) {
  return operand.is_none     ? "none"
         : operand.is_number ? std::string("#int64=") + std::to_string(number(operand))
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

void ask(const Operator& of, const std::vector<Operand>& inputs, const Expected& expected,
         fuzz::Memory& memory, Choices& choices) {
  const KernelUnderTest& kernel = *of.kernel;
  if (kernel.infer == nullptr) {
    return;
  }
  std::vector<PythonInput> given;
  for (const Operand& input : inputs) {
    const std::string text = text_of(input);
    given.push_back({static_cast<char*>(memory.take(text.c_str(), text.size() + 1)),
                     static_cast<int>(input.sizes.size()), memory.take(input.sizes)});
  }
  const bool has_count = !choices.one_in(8);
  if (!has_count && choices.one_in(2)) {
    given.pop_back();
  } else if (!has_count) {
    given.push_back(given.front());
  }
  std::vector<PythonAttribute> attributes;
  const auto add = [&](const std::string& name, int type, const void* data) {
    attributes.push_back(
        {static_cast<char*>(memory.take(name.c_str(), name.size() + 1)), type, 1, data});
  };
  for (const auto& [name, value] : of.extra->ints) {
    add(name, 1, memory.take(&value, sizeof(value)));
  }
  for (const auto& [name, value] : of.extra->floats) {
    const double widened = value;
    add(name, 2, memory.take(&widened, sizeof(widened)));
  }
  int failed = -1;
  const std::string answer =
      kernel.infer(memory.take(given), static_cast<int>(given.size()), memory.take(attributes),
                   static_cast<int>(attributes.size()), &failed);
  if (failed != 0) {
    fuzz::check_text(answer, kernel.name);
  }
  const bool has_wrong_type = of.extra->bools.size() + of.extra->strings.size() > 0;
  if (kernel.has_meta && has_count && !has_wrong_type && expected.outcome == Outcome::kValue &&
      (failed != 0 || answer != as_json(expected.outputs))) {
    fuzz::fail("inferred:", answer.c_str());
  }
}

/// The two hooks. `described` is what the Python module adds.
void ask_hooks(const Operator& of, const std::vector<Operand>& inputs, const Expected& expected,
               fuzz::Memory& memory, Choices& choices) {
  const KernelUnderTest& kernel = *of.kernel;
  if (kernel.infer_shape == nullptr) {
    return;
  }
  Extra& extra = *of.extra;
  const bool is_described = !choices.one_in(8);
  if (is_described) {
    extra.strings["aten_bridge_inputs"] = described(inputs);
  }
  Arrays arrays;
  std::vector<int> ids;
  bool has_id = true;
  for (const Operand& input : inputs) {
    if (!input.is_none && !input.is_number) {
      arrays.add(memory, input, 0);
      ids.push_back(fuzz::info(input.type).id);
      has_id = has_id && ids.back() != 0;
    }
  }
  const std::size_t at =
      arrays.ndims.empty()
          ? 0
          : static_cast<std::size_t>(choices.below(static_cast<int>(arrays.ndims.size())));
  const auto fault = static_cast<Fault>(choices.one_in(4) ? choices.below(12) : 0);
  const bool is_faulty = fault != Fault::kNone;
  if (is_faulty && !arrays.ndims.empty()) {
    Operand of_fault;
    of_fault.sizes = Ints(static_cast<std::size_t>(std::max(arrays.ndims[at], 0)), 1);
    spoil(arrays, memory, fault, at, of_fault);
  }
  // Where the inputs are not described a kernel has to trust that all are tensors.
  const bool may_ask = is_described || described(inputs).find_first_of("#n") == std::string::npos;
  if (may_ask) {
    try {
      const std::vector<int64_t> sizes =
          kernel.infer_shape(memory.take(arrays.ndims), memory.take(arrays.shapes), &extra);
      if (!is_faulty && is_described && expected.outcome == Outcome::kValue &&
          sizes != expected.outputs[0].sizes) {
        fuzz::fail("the hook for shapes is wrong of", kernel.name);
      }
      const int id = kernel.infer_type(ids, &extra);
      if (!is_faulty && is_described && expected.outcome == Outcome::kValue &&
          id != fuzz::info(expected.outputs[0].type).id) {
        fuzz::fail("the hook for dtypes is wrong of", kernel.name);
      }
    } catch (const std::runtime_error& error) {
      fuzz::check_text(error.what(), kernel.name);
      if (kernel.has_meta && !is_faulty && is_described && has_id &&
          expected.outcome == Outcome::kValue && fuzz::info(expected.outputs[0].type).id != 0) {
        fuzz::fail("a hook failed:", error.what());
      }
    }
  }
  extra.strings.erase("aten_bridge_inputs");
}

void call(Operator& of, const std::vector<Operand>& inputs, Expected expected, Fault fault,
          fuzz::Memory& memory, Choices& choices) {
  const KernelUnderTest& kernel = *of.kernel;
  std::vector<Operand> outputs = expected.outputs;
  if (outputs.empty()) {
    outputs.assign(kernel.call == ProductGrad ? 2 : 1, inputs[0]);
    outputs[0].is_none = false;
    outputs[0].bytes.resize(outputs[0].byte_count());
  }
  const bool is_writer = kernel.call == Spoil || kernel.call == CountSlots;
  if (choices.one_in(16)) {  // an output that is not what the kernel gives
    Operand& output = outputs[0];
    const Operand before = output;
    if (choices.one_in(2)) {
      output.type = choices.of(fuzz::kAllTypes);
    } else {
      output.sizes = fuzz::choose_sizes(choices);
    }
    output.bytes.assign(output.byte_count(), 0);
    if (output.type != before.type || output.sizes != before.sizes) {
      const bool is_any = is_writer || expected.outcome == Outcome::kAny;
      expected = {is_any ? Outcome::kAny : Outcome::kError, {}};
    }
  }
  Arrays arrays;
  for (const Operand& input : inputs) {
    arrays.add(memory, input, choices.one_in(8) ? static_cast<std::size_t>(choices.below(9)) : 0);
  }
  for (Operand& output : outputs) {
    std::fill(output.bytes.begin(), output.bytes.end(), static_cast<unsigned char>(0xff));
    arrays.add(memory, output, choices.one_in(8) ? static_cast<std::size_t>(choices.below(9)) : 0);
  }
  const auto slots = arrays.params.size();
  const std::size_t at = static_cast<std::size_t>(choices.below(static_cast<int>(slots)));
  const std::vector<void*> params = arrays.params;
  bool has_fault = fault != Fault::kNone;
  if (has_fault) {
    has_fault = spoil(arrays, memory, fault, at,
                      at < inputs.size() ? inputs[at] : outputs[at - inputs.size()]);
  }
  Extra* extra = of.extra.get();
  if (fault == Fault::kNoExtra) {
    extra = nullptr;
    has_fault = false;
    expected.outcome = Outcome::kAny;  // attributes have their defaults
    expected.outputs.clear();
  } else {
    const std::vector<unsigned char> unset(2048, 0x5a);
    for (const std::size_t bytes : extra->workspaces) {
      arrays.params.push_back(memory.take(unset.data(), bytes));
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
    expected = {kernel.call == CountSlots ? Outcome::kAny : Outcome::kError, {}};
  }
  if (kernel.call == CountSlots && inputs[0].type == Type::kC128 &&
      expected.outcome == Outcome::kValue) {
    expected.outcome = Outcome::kAny;  // it takes its operands as they lie
  }
  const bool runs = fault != Fault::kNegativeCount;
  fuzz::scene() = std::string(kernel.name) + " of " + as_json(inputs) + " to " + as_json(outputs) +
                  ", fault " + std::to_string(static_cast<int>(fault)) + " of slot " +
                  std::to_string(at);
  std::optional<std::string> error;
  try {
    const int status = kernel.call(
        runs ? static_cast<int>(arrays.params.size()) : INT_MIN,
        fault == Fault::kNullParams ? nullptr : memory.take(arrays.params),
        fault == Fault::kNullNdims ? nullptr : memory.take(arrays.ndims),
        fault == Fault::kNullShapes ? nullptr : memory.take(arrays.shapes),
        fault == Fault::kNullDtypes ? nullptr : memory.take(arrays.dtypes), nullptr, extra);
    if (status != 0) {
      fuzz::fail("a status without an error of", kernel.name);
    }
  } catch (const std::runtime_error& caught) {
    error = caught.what();
    fuzz::check_text(*error, kernel.name);
    if (*error != aten_bridge_last_error()) {
      fuzz::fail("aten_bridge_last_error() is another text than", error->c_str());
    }
  }
  if (error && expected.outcome == Outcome::kValue) {
    fuzz::fail("an error of a right call:", error->c_str());
  }
  if (!error && expected.outcome == Outcome::kError) {
    fuzz::fail("no error of", kernel.name);
  }
  if (!error && !expected.outputs.empty()) {
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
  if (kernel.call == Count) {
    if (error || extra == nullptr) {
      of.count.reset();  // it may have run before an output was refused
    } else if (of.count && extra->kernel_data != nullptr) {
      ++*of.count;
    }
  }
}

void prepare(Operator& of, const std::vector<Operand>& inputs, fuzz::Memory& memory,
             Choices& choices) {
  of.is_prepared = true;
  if (of.kernel->init == nullptr || choices.one_in(8)) {
    return;
  }
  if (choices.one_in(2)) {
    of.extra->bools["aten_bridge_counted"] = true;
  }
  Arrays arrays;
  for (const Operand& input : inputs) {
    arrays.add(memory, input, 0);
  }
  Operand output = inputs[0];
  output.is_none = false;
  arrays.add(memory, output, 0);
  const Fault fault = choices.one_in(4) ? static_cast<Fault>(choices.below(9)) : Fault::kNone;
  spoil(arrays, memory, fault, 0, inputs[0]);
  of.kernel->init(memory.take(arrays.ndims), memory.take(arrays.shapes), memory.take(arrays.dtypes),
                  of.extra.get());
  of.extra->bools.erase("aten_bridge_counted");
  for (const std::size_t bytes : of.extra->workspaces) {
    if (bytes > 2048) {
      fuzz::fail("a workspace of more than is needed");
    }
  }
}

std::unique_ptr<Extra> choose_attributes(Choices& choices) {
  auto extra = std::make_unique<Extra>();
  if (choices.one_in(2)) {
    extra->floats["factor"] = static_cast<float>(choices.below(4));
    extra->ints["shift"] = choices.below(4);
  }
  if (!choices.one_in(8)) {
    extra->ints["begin"] = choices.below(4);
  }
  if (choices.one_in(16)) {
    extra->floats.erase("factor");
    extra->bools["factor"] = true;
  }
  if (choices.one_in(16)) {
    extra->ints.erase("shift");
    extra->strings["shift"] = "two";
  }
  return extra;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::Memory memory;
  Choices choices(data, size);
  // Few operators and few shapes, so that one call meets what another has left.
  std::vector<Operator> network(3);
  std::vector<std::vector<Operand>> usual(network.size());
  for (std::size_t i = 0; i < network.size(); ++i) {
    network[i].kernel = &choices.of(kKernels);
    network[i].extra = choose_attributes(choices);
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
      prepare(of, inputs, memory, choices);
    }
    const Expected expected = of.kernel->expect(inputs, of);
    fuzz::scene() = std::string("questions about ") + of.kernel->name + " of " + as_json(inputs);
    if (choices.one_in(4)) {
      ask(of, inputs, expected, memory, choices);
    }
    if (choices.one_in(4)) {
      ask_hooks(of, inputs, expected, memory, choices);
    }
    const int fault = choices.one_in(4) ? choices.below(static_cast<int>(Fault::kFaults)) : 0;
    call(of, inputs, expected, static_cast<Fault>(fault), memory, choices);
    memory.release();
  }
  return 0;
}
