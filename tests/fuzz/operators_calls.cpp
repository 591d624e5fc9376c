// PyTorch's operators by name and programs of them, and what they have to give. The text that names
// one is right, or has letters changed, with which a call may do anything that an operator does.
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "results.h"
#include "text.h"

extern "C" {
const char* aten_bridge_last_error();
const char* aten_bridge_operator_describe(const char* text, int* status);
const char* aten_bridge_operator_infer(const PythonQuestion* question, int* status);
const char* aten_bridge_operator_overloads(const char* name, int* status);
const char* aten_bridge_program_add(const char* key, const char* text, const char* part,
                                    int* status);
fuzz::Kernel AtenOperator;
fuzz::Kernel AtenOperators;
fuzz::Init AtenOperatorInit;
fuzz::Init AtenOperatorsInit;
fuzz::Ints AtenOperatorInferShape(int*, int64_t**, void*);
std::vector<fuzz::Ints> AtenOperatorsInferShape(int*, int64_t**, void*);
int AtenOperatorInferType(std::vector<int>, void*);
std::vector<int> AtenOperatorsInferType(std::vector<int>, void*);
}

namespace fuzz {
namespace {

constexpr const char* kAttribute = "aten_bridge_operator";

//===--- texts that name an operator ---===//

const std::string kMulScalar = list_text({"aten::mul.Scalar", "0", "other", "i-3"});
const std::string kMulScalarGrad = list_text({"aten::mul.Scalar", "1/1", "other", "i-3"});
const std::string kAdd = list_text({"aten::add.Tensor", "0", "alpha", "i2"});
const std::string kMulGrad = list_text({"aten::mul.Tensor", "1/2"});
const std::string kMulGradGrad = list_text({"aten::mul.Tensor", "2/2"});
const std::string kCat = list_text({"aten::cat", "0", "dim", "i0"});
const std::string kSum = list_text({"aten::sum.dim_IntList", "0", "dim", "I1", "keepdim", "b0"});
const std::string kAminmax = list_text({"aten::aminmax", "0"});
const std::string kSizes = list_text({"aten::nonzero", "sizes"});
const std::string kPadded = list_text({"aten::nonzero", "padded"});
const std::string kClamp =
    list_text({"aten::clamp", "0", "min", "i1", "max", "f4611686018427387904"});
const std::string kStd =
    list_text({"aten::std.correction", "0", "dim", "I0,1", "correction", "i1"});
const std::string kSoftmax =
    list_text({"aten::softmax.int", "0", "dim", "i-1", "dtype", "sfloat64"});

const std::string kOther;  // instead of these: another one in each operator

//===--- programs, each known by its text ---===//

std::string key_text(const std::string& program) {
  return list_text({"aten_bridge::program", "0", "key", 's' + program});
}
std::string load_program(const std::string& text) {
  int status = -1;
  if (const std::string fault = aten_bridge_program_add(text.c_str(), text.c_str(), "", &status);
      status != 0) {
    fail("a program is refused:", fault.c_str());
  }
  return key_text(text);
}

const std::string kProgram = load_program(
    "aten_bridge program 1\nsymbol n 0 -\nsymbol m - 8\nguard mod(n, 2) == 0\n"
    "input %x float32 [n, m]\n%y = aten::mul.Scalar(%x, -3)\noutput %y float32 [n, m]");
const std::string kSplitProgram = load_program(
    "aten_bridge program 1\nsymbol n 1 -\ninput %x float32 [n, 2]\n"
    "(%a, %b) = aten::split.Tensor(%x, 1, 1)\noutput %b float32 [n, 1]\noutput %a float32 [n, 1]");
const std::string kOtherProgram;  // instead of these: another one in each operator

/// Lines that may fit together.
std::string choose_program(Choices& choices) {
  static const std::string kHeads[] = {"symbol n 0 -\n", "symbol n 2 3\nsymbol m - 4\n",
                                       "symbol n - -\nguard floordiv(4, n) < 3\n",
                                       "symbol n 0 8\nguard pow(n, add(n, -2)) != sqrt(9)\n"};
  static const std::string kForms[] = {"float32 [n, 2]", "int64 [n, 2]", "float32 [mul(n, 2)]",
                                       "float32 [n, m]", "float32 []",   "bool [n]"};
  static const std::string kCalls[] = {"aten::mul.Tensor(%v, n)",
                                       "aten::sum.dim_IntList(%v, [0, -1], True)",
                                       "aten::cat([%v, %x], dim=1)",
                                       "aten::t(%v)",
                                       "aten::reshape(%v, [-1, n])",
                                       "aten::index.Tensor(%v, [None, %x])",
                                       "aten::_to_copy(%v, dtype=float64)",
                                       "aten::div.Tensor_mode(%v, %x, rounding_mode=\"floor\")",
                                       "aten::clamp(%v, None, truediv(n, 4))",
                                       "aten::softmax.int(%v, -1, None)"};
  static const std::string kPairs[] = {
      "%b, _ = aten::max.dim(%v, 1)", "(%b, %c) = aten::split.Tensor(%v, floordiv(n, 2))",
      "%b, %c = aten::aminmax(%v, dim=0)", "(_, %b) = aten::unbind.int(%v, 1)"};
  static const std::string kValues[] = {"%x", "%y", "%a", "%b", "%c", "%d", "%e"};
  const auto with_value = [&](std::string line) {
    for (std::size_t at = line.find("%v"); at != line.npos; at = line.find("%v")) {
      line.replace(at, 2, choices.of(kValues));
    }
    return line + '\n';
  };
  std::string text = "aten_bridge program 1\n" + choices.of(kHeads);
  text += "input %x " + choices.of(kForms) + '\n';
  text += choices.one_in(2) ? "input %y " + choices.of(kForms) + '\n' : "";
  text += with_value("%a = " + choices.of(kCalls));
  text += choices.one_in(2) ? with_value(choices.of(kPairs)) : "";
  static const std::string kBranches[] = {
      "when %v, %d = ", "unless %v, %d = ", "when %v, unless %v, %d = "};
  if (choices.one_in(2)) {
    text += with_value(choices.of(kBranches) + choices.of(kCalls));
    text += choices.one_in(2) ? with_value("%e = choose(%v, %d, %v)") : "";
  }
  text += with_value("output %v " + choices.of(kForms));
  text += choices.one_in(3) ? with_value("output %v " + choices.of(kForms)) : "";
  return text;
}

/// Up to three letters changed, left out or added, or the end cut off.
std::string other_text(Choices& choices, std::string text) {
  for (int changes = 1 + choices.below(3); changes > 0 && !text.empty(); --changes) {
    if (choices.one_in(4)) {
      text.resize(static_cast<std::size_t>(choices.below(255)) % text.size());
    } else {
      text = choices.changed(std::move(text));
    }
  }
  return text;
}

void choose_other_text(Extra& extra, Choices& choices) {
  static const std::string* const kBases[] = {&kMulScalar, &kMulScalarGrad, &kAdd,   &kMulGrad,
                                              &kCat,       &kSum,           &kStd,   &kAminmax,
                                              &kSizes,     &kPadded,        &kClamp, &kSoftmax};
  const std::string text = other_text(choices, *choices.of(kBases));
  int status = -1;
  aten_bridge_operator_describe(text.c_str(), &status);
  const std::string name = choices.one_in(2) ? "aten::mul" : other_text(choices, "aten::mul");
  const std::string overloads = aten_bridge_operator_overloads(name.c_str(), &status);
  if (status != 0 ||
      (name == "aten::mul" && overloads.find("aten::mul.Scalar") == overloads.npos)) {
    fail("no overloads of a name:", overloads.c_str());
  }
  extra.attributes[kAttribute] = text;
}

void choose_other_program(Extra& extra, Choices& choices) {
  std::string text = choose_program(choices);
  if (choices.one_in(2)) {
    text = other_text(choices, text);
  }
  text = text.substr(0, text.find('\0'));
  int status = -1;
  const std::string fault = aten_bridge_program_add(text.c_str(), text.c_str(), "", &status);
  if ((status == 0) != fault.empty() || (status != 0 && fault.rfind("AtenProgram: ", 0) != 0)) {
    fail("an error of a program:", fault.c_str());
  }
  extra.attributes[kAttribute] = key_text(text);
}

//===--- C functions, whose errors begin with the name of the operator ---===//

/// The name in front of an operator's errors, which its text begins with; "" for any.
std::string name_in(const std::string& text) {
  const std::string name = text.empty() ? "" : text.substr(text.find(':') + 1, std::stoul(text));
  return name == "aten_bridge::program" ? "AtenProgram" : name;
}

/// The error with this name in front, by which the host knows it.
std::string renamed(const char* name, const std::string& error, const std::string& expected) {
  if (error.find(": ") == std::string::npos ||
      (!expected.empty() && error.rfind(expected + ": ", 0) != 0)) {
    fail("an error without the operator's name:", error.c_str());
  }
  return std::string(name) + ": " + error;
}

template <const std::string& kText, class F>
auto with_name(const char* name, const void* extra, F f) {
  try {
    return f();
  } catch (const std::exception& error) {
    if (std::string(error.what()) != aten_bridge_last_error()) {
      fail("aten_bridge_last_error() is another text than", error.what());
    }
    throw std::runtime_error(
        renamed(name, error.what(), extra == nullptr ? "AtenOperator" : name_in(kText)));
  }
}

constexpr char kOne[] = "AtenOperator";
constexpr char kSeveral[] = "AtenOperators";

/// One of the two that hosts call, with this text.
template <const char* kName, const std::string& kText>
KernelUnderTest entry(Operands (*choose)(Choices&),
                      Expected (*expect)(const Operands&, const Operator&),
                      unsigned int traits = kHasMeta | kWritesAny, int outputs = 1) {
  static constexpr bool kIsOne = kName == kOne;
  static constexpr bool kIsOther = &kText == &kOther || &kText == &kOtherProgram;
  KernelUnderTest kernel = {};
  kernel.name = kName;
  kernel.call = [](int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                   void* stream, void* extra) {
    return with_name<kText>(kName, extra, [&] {
      return (kIsOne ? AtenOperator : AtenOperators)(count, params, ndims, shapes, dtypes, stream,
                                                     extra);
    });
  };
  kernel.init = kIsOne ? AtenOperatorInit : AtenOperatorsInit;
  kernel.infer_shapes = [](int* ndims, int64_t** shapes, void* extra) {
    // A hook has to trust that it is given as many inputs as the operator takes, unless it is told
    // of them: another text may mean another operator.
    auto& attributes = static_cast<Extra*>(extra)->attributes;
    if (kIsOther && attributes.count("aten_bridge_inputs") == 0) {
      attributes["aten_bridge_inputs"] = std::string("float32");
    }
    return with_name<kText>(kName, extra, [&] {
      return kIsOne ? as_lists(AtenOperatorInferShape(ndims, shapes, extra))
                    : as_lists(AtenOperatorsInferShape(ndims, shapes, extra));
    });
  };
  kernel.infer_types = [](std::vector<int> types, void* extra) {
    return with_name<kText>(kName, extra, [&] {
      return kIsOne ? as_list(AtenOperatorInferType(std::move(types), extra))
                    : as_list(AtenOperatorsInferType(std::move(types), extra));
    });
  };
  kernel.infer = [](const PythonQuestion* question, int* status) {
    static std::string answer;
    answer = aten_bridge_operator_infer(question, status);
    if (*status != 0) {
      answer = renamed(kName, answer, name_in(kText));
    }
    return answer.c_str();
  };
  kernel.describe = [] {
    int status = -1;
    return aten_bridge_operator_describe((kIsOther ? kAdd : kText).c_str(), &status);
  };
  kernel.choose = choose;
  kernel.expect = expect;
  kernel.traits = traits | kIsBare;
  kernel.set_attributes = &kText == &kOther ? choose_other_text : choose_other_program;
  if constexpr (!kIsOther) {
    kernel.set_attributes = [](Extra& extra, Choices& /*choices*/) {
      extra.attributes[kAttribute] = kText;
    };
  }
  kernel.outputs = outputs;
  return kernel;
}

//===--- operands, and what comes of them ---===//

Operands choose_parts(Choices& choices) {
  const Type type = choices.of(kAllTypes);
  Operands inputs;
  for (int i = 1 + choices.below(4); i > 0; --i) {
    inputs.push_back(choose_tensor(choices, type, {choices.below(4), 2}));
  }
  return inputs;
}
Operands choose_matrix(Choices& choices) {
  const Ints sizes = {1 + choices.below(3), 1 + choices.below(3)};
  return {choose_tensor(choices, choices.of(kAllTypes), sizes)};
}
Operands choose_any(Choices& choices) {
  Operands inputs = choose<1>(choices);
  for (int i = choices.below(3); i > 0; --i) {
    inputs.push_back(choices.one_in(4) ? choose<1>(choices)[0]
                                       : choose_tensor(choices, inputs[0].type, inputs[0].sizes));
  }
  return inputs;
}

/// Whether small products fit, and have the type of their factors.
bool has_products(Type type) { return is_known(type) && type != Type::kBool && type != Type::kU8; }
bool have_none(const Operands& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Operand& x) { return x.is_none; });
}

/// Sizes and types of programs.
Operands choose_for_program(Choices& choices) {
  static constexpr Type kTypes[] = {Type::kF32, Type::kF32, Type::kI64, Type::kBool};
  static const Ints kShapes[] = {{2, 2}, {4, 2}, {3, 2}, {4}, {}, {0, 2}};
  const Type type = choices.one_in(8) ? choices.of(kAllTypes) : choices.of(kTypes);
  Operands inputs;
  for (int i = 1 + choices.below(2); i > 0; --i) {
    inputs.push_back(choose_tensor(choices, type, choices.of(kShapes)));
  }
  return inputs;
}

Operand times_minus_three(const Operand& x) {
  return map({x}, [](const auto& row) {
    using T = typename std::decay_t<decltype(row)>::value_type;
    return static_cast<T>(-3) * row[0];
  });
}

Expected expect_scaled(const Operands& inputs, const Operator& /*of*/) {
  const Operand& x = inputs[0];
  return x.is_none ? kError : has_products(x.type) ? value({times_minus_three(x)}) : Expected{};
}
/// Sizes and dtypes that are not the program's are refused.
Expected expect_program(const Operands& inputs, const Operator& /*of*/) {
  const Operand& x = inputs[0];
  const bool fits = !x.is_none && x.type == Type::kF32 && x.sizes[0] % 2 == 0;
  return fits ? value({times_minus_three(x)}) : kError;
}
Expected expect_columns(const Operands& inputs, const Operator& /*of*/) {
  const Operand& x = inputs[0];
  if (x.is_none || x.type != Type::kF32 || x.sizes[1] != 2) {
    return kError;
  }
  Expected expected = value({x, x});
  const std::vector<float> elements = values<float>(x);
  for (std::size_t column = 0; column < 2; ++column) {
    std::vector<float> kept;
    for (std::size_t i = 1 - column; i < elements.size(); i += 2) {
      kept.push_back(elements[i]);
    }
    expected.outputs[column].sizes = {x.sizes[0], 1};
    set_values(expected.outputs[column], kept);
  }
  return expected;
}
Expected expect_scaled_gradient(const Operands& inputs, const Operator& /*of*/) {
  const bool is_right = !have_none(inputs) && is_float(inputs[0].type);
  return is_right ? value({times_minus_three(inputs[1])}) : Expected{};
}
/// The sum of x and twice y.
Expected expect_sum(const Operands& inputs, const Operator& /*of*/) {
  return have_none(inputs)              ? kError
         : has_products(inputs[0].type) ? value({sum_of({inputs[0], inputs[1], inputs[1]})})
                                        : Expected{};
}
Expected expect_parts(const Operands& inputs, const Operator& /*of*/) {
  if (have_none(inputs) || !is_known(inputs[0].type)) {
    return {};
  }
  Operand all = inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    all.sizes[0] += inputs[i].sizes[0];
    all.bytes.insert(all.bytes.end(), inputs[i].bytes.begin(), inputs[i].bytes.end());
  }
  return value({all});
}
Expected expect_sums_of_rows(const Operands& inputs, const Operator& /*of*/) {
  const Operand& x = inputs[0];
  if (x.is_none) {
    return kError;
  }
  if (!is_float(x.type)) {
    return {};
  }
  Operand sums = x;
  sums.sizes = {x.sizes[0]};
  with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> elements = values<T>(x);
    std::vector<T> of_rows(static_cast<std::size_t>(x.sizes[0]));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const std::size_t row = i / static_cast<std::size_t>(x.sizes[1]);
      of_rows[row] = static_cast<T>(of_rows[row] + elements[i]);
    }
    set_values(sums, of_rows);
    return 0;
  });
  return value({sums});
}
Expected expect_extremes(const Operands& inputs, const Operator& /*of*/) {
  const Operand& x = inputs[0];
  if (x.is_none || x.numel() == 0) {
    return kError;
  }
  if (!is_known(x.type) || is_complex(x.type) || x.type == Type::kBool) {
    return {};
  }
  Expected expected = value({x, x});
  for (Operand& output : expected.outputs) {
    output.sizes = {};
  }
  with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_arithmetic_v<T>) {
      const std::vector<T> elements = values<T>(x);
      T least = elements[0];
      T most = elements[0];
      for (const T element : elements) {
        least = std::min(least, element);
        most = std::max(most, element);
      }
      set_values(expected.outputs[0], std::vector<T>{least});
      set_values(expected.outputs[1], std::vector<T>{most});
    }
    return 0;
  });
  return expected;
}

/// Where elements of the known types are not 0.
int64_t count_nonzero(const Operand& x) {
  int64_t count = 0;
  with_type(x.type, [&](auto zero) {
    for (const auto element : values<decltype(zero)>(x)) {
      count += element != decltype(zero)() ? 1 : 0;
    }
    return 0;
  });
  return count;
}

Operand integers(Ints numbers, Ints sizes) {
  Operand operand;
  operand.type = Type::kI64;
  operand.sizes = std::move(sizes);
  set_values(operand, numbers);
  return operand;
}

/// What is told of the indices of the elements that are not 0: their dtype, rank and sizes.
Expected expect_sizes(const Operands& inputs, const Operator& /*of*/) {
  const Operand& x = inputs[0];
  if (x.is_none) {
    return kError;
  }
  if (!is_known(x.type)) {
    return {};
  }
  constexpr int64_t kNumberOfInt64 = 9;
  Ints row(66);
  row[0] = kNumberOfInt64;
  row[1] = 2;
  row[2] = count_nonzero(x);
  row[3] = static_cast<int64_t>(x.sizes.size());
  return value({integers(std::move(row), {1, 66})});
}

/// The same indices in the begin of room for all, and how many there are.
Expected expect_padded(const Operands& inputs, const Operator& /*of*/) {
  const Operand& x = inputs[0];
  if (x.is_none || !is_known(x.type)) {
    return {};
  }
  const auto rank = static_cast<int64_t>(x.sizes.size());
  Ints indices(static_cast<std::size_t>(x.numel() * rank));
  const int64_t count = count_nonzero(x);
  std::size_t at = 0;
  with_type(x.type, [&](auto zero) {
    const auto elements = values<decltype(zero)>(x);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (elements[i] == decltype(zero)()) {
        continue;
      }
      auto rest = static_cast<int64_t>(i);
      for (std::size_t d = x.sizes.size(); d-- > 0;) {
        indices[at + d] = rest % x.sizes[d];
        rest /= x.sizes[d];
      }
      at += x.sizes.size();
    }
    return 0;
  });
  Expected expected =
      value({integers(std::move(indices), {x.numel(), rank}), integers({count, rank}, {2})});
  expected.is_inferred = false;
  return expected;
}

Expected expect_anything(const Operands& /*inputs*/, const Operator& /*of*/) { return {}; }

class Silent final : public c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

}  // namespace

const std::vector<KernelUnderTest>& kernels() {
  // PyTorch warns of each output that has other sizes than its results.
  static Silent silent;
  c10::WarningUtils::set_warning_handler(&silent);
  static const std::vector<KernelUnderTest> kernels = {
      entry<kOne, kMulScalar>(choose<1>, expect_scaled),
      entry<kOne, kMulScalarGrad>(choose<2>, expect_scaled_gradient),
      entry<kOne, kAdd>(choose<2>, expect_sum),
      entry<kOne, kCat>(choose_parts, expect_parts),
      entry<kOne, kSum>(choose_matrix, expect_sums_of_rows),
      entry<kOne, kSizes>(choose<1>, expect_sizes),
      entry<kSeveral, kMulGrad>(choose<3>, expect_product_gradient, kHasMeta | kWritesAny, 2),
      entry<kSeveral, kMulGradGrad>(choose<5>, expect_second_gradient, kHasMeta | kWritesAny, 3),
      entry<kSeveral, kAminmax>(choose<1>, expect_extremes, kHasMeta | kWritesAny, 2),
      entry<kSeveral, kPadded>(choose<1>, expect_padded, kPlain, 2),
      entry<kOne, kProgram>(choose_matrix, expect_program),
      entry<kSeveral, kSplitProgram>(choose_matrix, expect_columns, kHasMeta | kWritesAny, 2),
      entry<kOne, kOtherProgram>(choose_for_program, expect_anything, kPlain),
      entry<kSeveral, kOtherProgram>(choose_for_program, expect_anything, kPlain, 2),
      entry<kOne, kOther>(choose_any, expect_anything, kPlain),
      entry<kSeveral, kOther>(choose_any, expect_anything, kPlain, 2),
  };
  return kernels;
}

}  // namespace fuzz
