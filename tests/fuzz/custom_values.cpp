// Kernels that write what they are given as a text: attributes, and numbers from inputs.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "operator.h"
#include "text.h"

FUZZ_DECLARE(Values)
FUZZ_DECLARE(OptionalValues)
FUZZ_DECLARE(DefaultValues)
FUZZ_DECLARE(Bools)
FUZZ_DECLARE(Integers)
FUZZ_DECLARE(Reals)
FUZZ_DECLARE(Scalars)

namespace fuzz {
namespace {

std::vector<Operand> choose_any(Choices& choices) {
  return {choose_tensor(choices, choices.of(kAllTypes), choose_sizes(choices))};
}

Expected text_output(const std::string& text) {
  Operand output;
  output.type = Type::kU8;
  output.sizes = {kTextBytes};
  output.bytes.assign(text.begin(), text.end());
  output.bytes.resize(static_cast<std::size_t>(kTextBytes));
  return {Outcome::kValue, {output}};
}

//===--- attributes ---===//

/// An attribute's type, by its place in `Attribute`; two more that are not in it.
enum Wanted {
  kBool,
  kInt,
  kFloat,
  kString,
  kInts,
  kFloats,
  kIntLists,
  kFloatLists,
  kBools,
  kStrings,
  kDtype,
  kNumber
};
struct WantedAttribute {
  const char* name;
  Wanted type;
  const char* fallback;  // what DefaultValues has
};
const WantedAttribute kWanted[] = {
    {"flag", kBool, "true"},
    {"integer", kInt, "-2"},
    {"real", kFloat, "3"},
    {"string", kString, "\"text\""},
    {"integers", kInts, "[4, 5]"},
    {"reals", kFloats, "[0.5, 1.5]"},
    {"integer_lists", kIntLists, "[[1, 2], [3]]"},
    {"real_lists", kFloatLists, "[[0.5], []]"},
    {"dtype", kDtype, "5"},
    {"number", kNumber, "0.25"},
    {"flags", kBools, "[true, false]"},
    {"strings", kStrings, "[]"},
    {"maybe", kInts, "none"},  // DefaultValues alone has it
};

constexpr float kFloatValues[] = {0.0F,   1.0F,  0.1F,        -2.5F,       1e-20F,
                                  0.3F,   1e30F, 16777217.0F, 1.2345678F,  3.4028235e38F,
                                  -1e-6F, 0.7F,  123456.0F,   0.33333334F, 3.3895314e38F};

std::vector<double> widened_list(const Floats& values) {
  std::vector<double> list;
  for (const float value : values) {
    list.push_back(widened(value));
  }
  return list;
}

Attribute choose_attribute(Wanted type, Choices& choices) {
  const auto integer = [&] { return int64_t{choices.byte()} - 100; };
  const auto real = [&] { return choices.of(kFloatValues); };
  const auto list = [&](auto element) {
    std::vector<decltype(element())> list(static_cast<std::size_t>(choices.below(3)));
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i] = element();
    }
    return list;
  };
  const auto string = [&] {
    static const std::string kTexts[] = {"", "a", "none;7:\"", std::string(40, 'x')};
    return choices.of(kTexts);
  };
  switch (type) {
    case kBool:
      return choices.one_in(2);
    case kInt:
      return integer();
    case kFloat:
      return real();
    case kString:
      return string();
    case kInts:
      return list(integer);
    case kFloats:
      return list(real);
    case kIntLists:
      return list([&] { return list(integer); });
    case kFloatLists:
      return list([&] { return list(real); });
    case kBools:
      return list([&] { return choices.one_in(2); });
    case kStrings:
      return list(string);
    case kDtype:
      return std::string(info(choices.of(kAllTypes)).name);
    case kNumber:
      break;
  }
  return choose_attribute(static_cast<Wanted>(choices.below(3)), choices);
}

/// One that the kernel does not take.
Attribute choose_wrong_attribute(Wanted type, Choices& choices) {
  static const std::string kNoStrings[] = {"3:ab", "2ab", ":", "x", "9999999999:a"};
  if (type == kBools && choices.one_in(2)) {
    return Ints{0, 2};
  }
  if (type == kStrings && choices.one_in(2)) {
    return choices.of(kNoStrings);
  }
  // MindSpore has no lists of bools and of strings but as these.
  const auto carrier = [](int of) { return of == kBools ? kInts : of == kStrings ? kString : of; };
  int other = choices.below(kDtype);
  const int right = type == kDtype ? kString : static_cast<int>(type);
  while (carrier(other) == carrier(right) || (type == kNumber && other <= kFloat)) {
    other = (other + 1) % kDtype;
  }
  if (type == kDtype && choices.one_in(2)) {
    return std::string("float31");
  }
  return choose_attribute(static_cast<Wanted>(other), choices);
}

void set_values_of(Extra& extra, Choices& choices, bool all) {
  for (const WantedAttribute& wanted : kWanted) {
    if (all || choices.one_in(2)) {
      extra.attributes[wanted.name] = choose_attribute(wanted.type, choices);
    }
  }
  if (choices.one_in(4)) {
    const WantedAttribute& wanted = choices.of(kWanted);
    if (choices.one_in(4)) {
      extra.attributes.erase(wanted.name);
    } else {
      extra.attributes[wanted.name] = choose_wrong_attribute(wanted.type, choices);
    }
  }
}
void set_all(Extra& extra, Choices& choices) { set_values_of(extra, choices, /*all=*/true); }
void set_some(Extra& extra, Choices& choices) { set_values_of(extra, choices, /*all=*/false); }

std::string attribute_text(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, float>) {
          return value_text(widened(value));
        } else if constexpr (std::is_same_v<T, Floats>) {
          return value_text(widened_list(value));
        } else if constexpr (std::is_same_v<T, std::vector<Floats>>) {
          std::vector<std::vector<double>> lists;
          for (const Floats& list : value) {
            lists.push_back(widened_list(list));
          }
          return value_text(lists);
        } else {
          return value_text(value);
        }
      },
      attribute);
}

/// The text of an attribute that is wanted; none if it is another.
std::optional<std::string> wanted_text(Wanted type, const Attribute& attribute) {
  const auto index = static_cast<int>(attribute.index());
  if (type == kDtype) {
    const auto* name = std::get_if<std::string>(&attribute);
    const TypeInfo* found = name == nullptr ? nullptr : find_type(*name);
    return found == nullptr ? std::nullopt : std::optional(std::to_string(found->scalar_type));
  }
  const bool is_right = type == kNumber ? index <= kFloat : index == type;
  return is_right ? std::optional(attribute_text(attribute)) : std::nullopt;
}

template <class Fallback>
Expected expect_values(const Operator& of, std::size_t count, Fallback fallback) {
  std::string text;
  bool is_right = true;
  for (std::size_t i = 0; i < count; ++i) {
    const WantedAttribute& wanted = kWanted[i];
    const auto found = of.extra->attributes.find(wanted.name);
    const std::optional<std::string> value = found == of.extra->attributes.end()
                                                 ? fallback(wanted)
                                                 : wanted_text(wanted.type, found->second);
    is_right = is_right && value.has_value();
    text += value.value_or("") + ";";
  }
  return is_right ? text_output(text) : Expected{Outcome::kError, {}};
}

constexpr std::size_t kAll = std::size(kWanted) - 1;

template <class Fallback>
Expected expect_of_tensor(const std::vector<Operand>& inputs, const Operator& of, std::size_t count,
                          Fallback fallback) {
  return inputs[0].is_none ? Expected{Outcome::kError, {}} : expect_values(of, count, fallback);
}
Expected expect_all(const std::vector<Operand>& inputs, const Operator& of) {
  return expect_of_tensor(inputs, of, kAll, [](const WantedAttribute& /*wanted*/) {
    return std::optional<std::string>();
  });
}
Expected expect_optional(const std::vector<Operand>& inputs, const Operator& of) {
  return expect_of_tensor(inputs, of, kAll, [](const WantedAttribute& /*wanted*/) {
    return std::optional<std::string>("none");
  });
}
Expected expect_defaults(const std::vector<Operand>& inputs, const Operator& of) {
  return expect_of_tensor(inputs, of, kAll + 1, [](const WantedAttribute& wanted) {
    return std::optional<std::string>(wanted.fallback);
  });
}

//===--- numbers ---===//

Operand choose_number(Choices& choices) {
  const Type type = choices.of(kAllTypes);
  Operand number = choose_tensor(choices, type, {});
  constexpr double kNumbers[] = {0, 1, 2, 2.5, -1, 1e300, 0x1p63, 0x1p62};
  const int which = choices.below(16);
  if (which < 8) {
    const double value = kNumbers[which];
    const bool fits = type == Type::kF64 || is_complex(type) ||
                      (type == Type::kU64 && value >= 0 && value <= 0x1p63) ||
                      (type == Type::kF32 && value < 1e300) || (value >= 0 && value <= 1);
    set_numbers(number, [&](std::size_t /*i*/) { return fits && type != Type::kC64 ? value : 0; });
  }
  if (choices.one_in(8)) {
    static const Ints kSizes[] = {{1}, {1, 1}, {2}, {0}};
    number = choose_tensor(choices, type, choices.of(kSizes));
  }
  return number;
}

std::vector<Operand> choose_numbers(Choices& choices) {
  std::vector<Operand> inputs = choose_any(choices);
  inputs.push_back(choose_number(choices));
  inputs.push_back(choose_number(choices));
  inputs.back().is_none = choices.one_in(2);
  return inputs;
}

std::optional<std::string> as_integer(const Number& number) {
  const double real = number.real.real();
  if (number.is_complex) {
    return std::nullopt;
  }
  if (number.is_integer) {
    return number.integer > std::numeric_limits<int64_t>::max()
               ? std::nullopt
               : std::optional(value_text(static_cast<int64_t>(number.integer)));
  }
  return std::abs(real) < 0x1p63 && real == std::trunc(real)
             ? std::optional(value_text(static_cast<int64_t>(real)))
             : std::nullopt;
}
std::optional<std::string> as_bool(const Number& number) {
  const std::optional<std::string> integer = as_integer(number);
  return integer == "0"   ? std::optional<std::string>("false")
         : integer == "1" ? std::optional<std::string>("true")
                          : std::nullopt;
}
std::optional<std::string> as_real(const Number& number) {
  return number.is_complex ? std::nullopt : std::optional(value_text(number.real.real()));
}
std::optional<std::string> as_scalar(const Number& number) {
  return number.is_complex   ? std::optional(value_text(number.real.real()) + "+" +
                                             value_text(number.real.imag()) + "j")
         : number.is_bool    ? as_bool(number)
         : number.is_integer ? as_integer(number)
                             : as_real(number);
}

template <std::optional<std::string> (*as)(const Number&)>
Expected expect_numbers(const std::vector<Operand>& inputs, const Operator& /*of*/) {
  std::string text;
  bool is_right = !inputs[0].is_none && !inputs[1].is_none;
  for (std::size_t i = 1; i < inputs.size() && is_right; ++i) {
    const Operand& input = inputs[i];
    const auto value = input.is_none        ? std::optional<std::string>("none")
                       : input.numel() == 1 ? as(number_of(input))
                                            : std::nullopt;
    is_right = value.has_value();
    text += value.value_or("") + ";";
  }
  return is_right ? text_output(text) : Expected{Outcome::kError, {}};
}

}  // namespace

std::vector<KernelUnderTest> kernels_of_values() {
  return {
      {FUZZ_FUNCTIONS(Values), choose_any, expect_all, kHasMeta, set_all},
      {FUZZ_FUNCTIONS(OptionalValues), choose_any, expect_optional, kHasMeta, set_some},
      {FUZZ_FUNCTIONS(DefaultValues), choose_any, expect_defaults, kHasMeta, set_some},
      {FUZZ_FUNCTIONS(Bools), choose_numbers, expect_numbers<as_bool>, kHasMeta},
      {FUZZ_FUNCTIONS(Integers), choose_numbers, expect_numbers<as_integer>, kHasMeta},
      {FUZZ_FUNCTIONS(Reals), choose_numbers, expect_numbers<as_real>, kHasMeta},
      {FUZZ_FUNCTIONS(Scalars), choose_numbers, expect_numbers<as_scalar>, kHasMeta},
  };
}

}  // namespace fuzz
