// Sequences of calls through the entry point of MindSpore's op plugins, whose inputs lie in memory
// in any way: right ones, whose results are computed without PyTorch, and such as differ from them
// in one thing.
#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "../unit/plugin_host.h"
#include "operand.h"
#include "text.h"

extern "C" {
using Kernel = int(int, void**, int*, int64_t**, const char**, void*, void*);
Kernel Negate;
Kernel Add;
Kernel InplaceAdd;
Kernel Cat;
Kernel NonZero;
Kernel Cast;
Kernel AddIfGiven;
Kernel Sum;
Kernel PrintValues;
int GetRegisteredOpCount();
const char** GetAllRegisteredOps();
int GetComputeDependOpCount();
const char** GetAllOpPluginComputeDependOps();
const char* aten_bridge_last_error();
}

namespace {

using fuzz::Choices;
using fuzz::Ints;
using fuzz::Operand;
using fuzz::Outcome;
using fuzz::Type;
using plugin_host::Layout;
using plugin_host::Shapes;

//===--- MindSpore's side ---===//

class Inputs final : public plugin_host::KernelInputInfo {
 public:
  std::vector<bool> scalars;
  std::vector<std::optional<Layout>> layouts;
  std::unique_ptr<Shapes> found;
  std::size_t told = 0;

  bool is_scalar(std::size_t index) override { return scalars.at(index); }
  std::size_t count() override { return told; }
  bool get_bool(std::size_t /*index*/) override { return false; }
  int64_t get_int(std::size_t /*index*/) override { return 0; }
  double get_float(std::size_t /*index*/) override { return 0; }
  std::string get_string(std::size_t /*index*/) override { return {}; }
  Ints get_ints(std::size_t /*index*/) override { return {}; }
  std::vector<double> get_floats(std::size_t /*index*/) override { return {}; }
  std::vector<Ints> get_int_lists(std::size_t /*index*/) override { return {}; }
  std::vector<std::vector<double>> get_float_lists(std::size_t /*index*/) override { return {}; }
  int type_id(std::size_t /*index*/) override { return 0; }
  std::optional<Layout> layout(std::size_t index) override { return layouts.at(index); }
  Shapes* shapes() override { return found.get(); }
  void set_shapes(std::unique_ptr<Shapes> shapes) override { found = std::move(shapes); }
};

//===--- tensors that lie in memory in any way ---===//

struct Input {
  Operand operand;  // its values, row-major
  std::optional<Layout> layout;
  fuzz::Bytes memory;  // the memory of the tensor that it is a view of
  bool is_scalar = false;
};

/// Where element `index` of a row-major tensor is in memory.
std::size_t place(const Ints& sizes, const Layout& layout, int64_t index) {
  auto at = static_cast<int64_t>(layout.offset);
  for (std::size_t i = sizes.size(); i-- > 0;) {
    at += index % sizes[i] * layout.strides[i];
    index /= sizes[i];
  }
  return static_cast<std::size_t>(at);
}

Input input_of(Operand operand) {
  Input input;
  input.memory = operand.bytes;
  input.operand = std::move(operand);
  return input;
}

/// The same values as a view: transposed, stepped, with an offset, or, of the first row, repeated.
Input choose_view(Choices& choices, Operand operand, bool may_repeat = true) {
  Input input = input_of(std::move(operand));
  Operand& values = input.operand;
  const std::size_t itemsize = fuzz::info(values.type).size;
  if (values.is_none || values.sizes.empty() || choices.one_in(2)) {
    return input;
  }
  Layout layout = {};
  const bool is_transposed = choices.one_in(2);
  const int64_t step = 1 + choices.below(3);
  const bool is_repeated = may_repeat && choices.one_in(4) && values.numel() > 0;
  layout.offset = static_cast<std::size_t>(choices.below(4));
  layout.strides.resize(values.sizes.size());
  int64_t stride = step;
  for (std::size_t i = 0; i < layout.strides.size(); ++i) {
    const std::size_t axis = is_transposed ? i : layout.strides.size() - 1 - i;
    layout.strides[axis] = stride;
    stride *= std::max<int64_t>(values.sizes[axis], 1);
  }
  if (is_repeated) {
    layout.strides[0] = 0;
    const int64_t row = values.numel() / values.sizes[0];
    for (int64_t i = row; i < values.numel(); ++i) {
      std::memcpy(values.bytes.data() + static_cast<std::size_t>(i) * itemsize,
                  values.bytes.data() + static_cast<std::size_t>(i % row) * itemsize, itemsize);
    }
  }
  std::size_t end = layout.offset;
  for (int64_t i = 0; i < values.numel(); ++i) {
    end = std::max(end, place(values.sizes, layout, i) + 1);
  }
  input.memory.assign(end * itemsize, 0x3c);
  for (int64_t i = 0; i < values.numel(); ++i) {
    std::memcpy(input.memory.data() + place(values.sizes, layout, i) * itemsize,
                values.bytes.data() + static_cast<std::size_t>(i) * itemsize, itemsize);
  }
  input.layout = std::move(layout);
  return input;
}

Input number_of(int64_t value) {
  Operand operand;
  operand.type = Type::kI64;
  fuzz::set_values(operand, Ints{value});
  Input input = input_of(std::move(operand));
  input.is_scalar = true;
  return input;
}

Input none() {
  Operand operand;
  operand.is_none = true;
  Input input = input_of(std::move(operand));
  input.is_scalar = true;
  return input;
}

Operand choose_operand(Choices& choices) {
  const Type type = choices.of(fuzz::kAllTypes);
  return fuzz::choose_tensor(choices, type, fuzz::choose_sizes(choices));
}

//===--- what a call has to give ---===//

struct Call {
  Kernel* kernel = nullptr;
  const char* name = "";
  std::vector<Input> inputs;
  Outcome outcome = Outcome::kAny;
  Operand output;             // what is expected; of an in-place kernel, of its first input
  std::optional<Ints> sizes;  // none where sizes are known only after the run
  // How many of the elements at the end of the first input the second has in the same memory.
  int64_t shared = 0;
};

template <class F>
Operand elementwise(const Operand& x, const Operand& y, F f) {
  Operand output = x;
  fuzz::with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> a = fuzz::values<T>(x);
    const std::vector<T> b = fuzz::values<T>(y);
    std::vector<T> results(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      results[i] = static_cast<T>(f(static_cast<T>(a[i]), static_cast<T>(b[i])));
    }
    fuzz::set_values(output, results);
    return 0;
  });
  return output;
}

Operand sum_of(const Operand& x, const Operand& y) {
  return elementwise(x, y, [](auto a, auto b) { return a + b; });
}

/// Values of a call, and their text.
Call choose_values(Choices& choices) {
  constexpr float kFloats[] = {0.0F, 0.1F, -2.5F, 1e-20F, 3.4028235e38F};
  Call call = {PrintValues, "PrintValues", {}, Outcome::kValue, {}, {}};
  std::string text;
  const auto add = [&](Input input, const std::string& as_text) {
    call.inputs.push_back(std::move(input));
    text += as_text + ";";
  };
  const auto list_of = [&](Type type, auto values) {
    Operand operand;
    operand.type = type;
    operand.sizes = {static_cast<int64_t>(values.size())};
    fuzz::set_values(operand, values);
    Input input = choose_view(choices, std::move(operand), /*may_repeat=*/false);
    input.is_scalar = true;
    return input;
  };
  const auto choose_ints = [&] {
    Ints ints(static_cast<std::size_t>(choices.below(4)));
    for (int64_t& number : ints) {
      number = int64_t{choices.byte()} - 100;
    }
    return ints;
  };
  const Ints ints = choose_ints();
  add(list_of(Type::kI64, ints), fuzz::value_text(ints));
  const Ints maybe = choose_ints();
  if (choices.one_in(2)) {
    add(none(), "none");
  } else {
    add(list_of(Type::kI64, maybe), fuzz::value_text(maybe));
  }
  std::vector<float> floats(static_cast<std::size_t>(choices.below(4)));
  std::vector<double> reals;
  for (float& number : floats) {
    number = choices.of(kFloats);
    reals.push_back(fuzz::widened(number));
  }
  add(choices.one_in(2) ? list_of(Type::kF32, floats) : list_of(Type::kF64, reals),
      fuzz::value_text(reals));
  const float real = choices.of(kFloats);
  add(list_of(Type::kF32, std::vector<float>{real}), fuzz::value_text(fuzz::widened(real)));
  call.inputs.back().operand.sizes.clear();
  if (call.inputs.back().layout) {
    call.inputs.back().layout->strides.clear();
  }
  if (choices.one_in(4)) {  // a tensor's number is what it is
    call.inputs.back().is_scalar = false;
    text.erase(text.rfind(';', text.size() - 2) + 1);
    text += fuzz::value_text(static_cast<double>(real)) + ";";
  }
  if (choices.one_in(2)) {
    add(none(), "none");
  } else {
    const bool is_float = choices.one_in(2);
    add(number_of(is_float ? 43 : 35), is_float ? "6" : "4");
  }
  if (choices.one_in(8)) {  // what is no such value
    const auto at = static_cast<std::size_t>(choices.below(5));
    Operand wrong;
    wrong.type = Type::kC64;
    wrong.sizes = {1};
    fuzz::set_numbers(wrong, [](std::size_t /*i*/) { return 1; });
    call.inputs[at] = input_of(std::move(wrong));
    call.outcome = Outcome::kError;
  }
  call.output.type = Type::kU8;
  call.output.sizes = {fuzz::kTextBytes};
  call.output.bytes.assign(text.begin(), text.end());
  call.output.bytes.resize(static_cast<std::size_t>(fuzz::kTextBytes));
  return call;
}

Call choose_call(Choices& choices) {
  Call call;
  Operand x = choose_operand(choices);
  const bool is_known = fuzz::is_known(x.type);
  const Operand y = fuzz::choose_tensor(choices, x.type, x.sizes);
  switch (choices.below(9)) {
    case 0:
      call = {Negate, "Negate", {choose_view(choices, x)}, Outcome::kAny, {}, {}};
      if (x.type == Type::kBool) {
        call.outcome = Outcome::kError;
      }
      if (is_known && x.type != Type::kBool) {
        call.outcome = Outcome::kValue;
        const Operand& values = call.inputs[0].operand;
        call.output = elementwise(values, values, [](auto a, auto /*b*/) { return -a; });
      }
      break;
    case 1: {
      const int64_t alpha = 1;
      call = {Add,
              "Add",
              {choose_view(choices, x), choose_view(choices, y), number_of(alpha)},
              Outcome::kAny,
              {},
              {}};
      break;
    }
    case 2:
      call = {InplaceAdd,
              "InplaceAdd",
              {choose_view(choices, x, /*may_repeat=*/false), choose_view(choices, y)},
              Outcome::kAny,
              {},
              {}};
      if (choices.one_in(4) && is_known && x.numel() > 0) {
        Operand last = x;
        if (choices.one_in(2)) {
          last.sizes = {};
          last.bytes.erase(last.bytes.begin(),
                           last.bytes.end() - static_cast<std::ptrdiff_t>(last.byte_count()));
        }
        call.shared = last.numel();
        call.inputs = {input_of(x), input_of(last)};
        call.outcome = Outcome::kValue;
        Operand repeated = x;
        fuzz::with_type(x.type, [&](auto zero) {
          using T = decltype(zero);
          const std::vector<T> elements = fuzz::values<T>(x);
          fuzz::set_values(repeated, std::vector<T>(elements.size(), elements.back()));
          return 0;
        });
        call.output = sum_of(x, call.shared == 1 ? repeated : x);
      }
      break;
    case 3:
      call = {AddIfGiven,    "AddIfGiven", {choose_view(choices, x), choose_view(choices, y)},
              Outcome::kAny, {},           {}};
      if (choices.one_in(2)) {
        call.inputs[1] = none();
        call.outcome = Outcome::kValue;
        call.output = call.inputs[0].operand;
      }
      break;
    case 4: {
      const bool is_scalar = x.sizes.empty();
      call = {Cat, "Cat", {}, is_scalar ? Outcome::kError : Outcome::kValue, x, {}};
      call.output.bytes.clear();
      int64_t rows = 0;
      for (int more = 1 + choices.below(3); more > 0; --more) {
        call.inputs.push_back(choose_view(choices, x));
        const fuzz::Bytes& bytes = call.inputs.back().operand.bytes;
        call.output.bytes.insert(call.output.bytes.end(), bytes.begin(), bytes.end());
        rows += is_scalar ? 0 : x.sizes[0];
      }
      if (!is_scalar) {
        call.output.sizes[0] = rows;
      }
      if (x.sizes == Ints{0} || !is_known) {
        call.outcome = Outcome::kAny;  // cat leaves such tensors out
      }
      call.inputs.push_back(number_of(0));
      break;
    }
    case 5: {
      call = {NonZero, "NonZero", {choose_view(choices, x)}, Outcome::kAny, {}, {}};
      const Operand& values = call.inputs[0].operand;
      Ints found;
      const std::size_t itemsize = fuzz::info(x.type).size;
      const fuzz::Bytes zero(itemsize, 0);
      for (int64_t i = 0; i < values.numel(); ++i) {
        if (std::memcmp(values.bytes.data() + static_cast<std::size_t>(i) * itemsize, zero.data(),
                        itemsize) == 0) {
          continue;
        }
        Ints index(x.sizes.size());
        int64_t rest = i;
        for (std::size_t axis = x.sizes.size(); axis-- > 0;) {
          index[axis] = rest % x.sizes[axis];
          rest /= x.sizes[axis];
        }
        found.insert(found.end(), index.begin(), index.end());
      }
      const auto rank = static_cast<int64_t>(x.sizes.size());
      call.output.type = Type::kI64;
      call.output.sizes = {values.numel(), rank};
      fuzz::set_values(call.output, found);
      if (rank > 0 && is_known) {
        call.outcome = Outcome::kValue;
        call.sizes = Ints{static_cast<int64_t>(found.size()) / rank, rank};
      }
      break;
    }
    case 6: {
      call = {Cast, "Cast", {choose_view(choices, x), number_of(43)}, Outcome::kAny, {}, {}};
      call.output.sizes = x.sizes;
      std::vector<float> floats;
      fuzz::with_type(x.type, [&](auto zero) {
        using T = decltype(zero);
        for (const T value : fuzz::values<T>(call.inputs[0].operand)) {
          if constexpr (std::is_arithmetic_v<T>) {
            floats.push_back(static_cast<float>(value));
          }
        }
        call.outcome = is_known && std::is_arithmetic_v<T> ? Outcome::kValue : Outcome::kAny;
        return 0;
      });
      fuzz::set_values(call.output, floats);
      if (choices.one_in(8)) {
        call.inputs[1] = number_of(1000);  // a number that is no dtype
        call.outcome = Outcome::kError;
      }
      break;
    }
    case 7:
      call = choose_values(choices);
      break;
    default:
      call = {Sum, "Sum", {choose_view(choices, x), none(), number_of(0)}, Outcome::kAny, {}, {}};
      call.output.type = x.type;
      if (is_known && x.type != Type::kBool) {
        call.outcome = Outcome::kValue;
        fuzz::with_type(x.type, [&](auto zero) {
          using T = decltype(zero);
          T sum{};
          for (const T value : fuzz::values<T>(call.inputs[0].operand)) {
            sum = static_cast<T>(sum + value);
          }
          fuzz::set_values(call.output, std::vector<T>{sum});
          return 0;
        });
      }
  }
  if (call.outcome == Outcome::kAny && is_known && call.inputs.size() > 1 &&
      (call.kernel == Add || call.kernel == InplaceAdd || call.kernel == AddIfGiven)) {
    call.outcome = Outcome::kValue;
    call.output = sum_of(call.inputs[0].operand, call.inputs[1].operand);
  }
  if (call.output.sizes.empty() && call.output.bytes.empty()) {
    call.output = x;
  }
  return call;
}

//===--- one call ---===//

struct Arrays {
  std::vector<void*> params;
  std::vector<int> ndims;
  std::vector<int64_t*> shapes;
  std::vector<const char*> dtypes;
};

constexpr int kFaults = 11;

void run(const Call& call, int fault, fuzz::Memory& memory, Choices& choices) {
  Arrays arrays;
  Inputs inputs;
  const auto add = [&](const Operand& operand, const fuzz::Bytes& bytes, bool is_scalar) {
    const char* name = operand.is_none ? "none" : fuzz::info(operand.type).name;
    const auto shift = static_cast<std::size_t>(choices.one_in(8) ? choices.below(9) : 0);
    arrays.params.push_back(operand.is_none ? nullptr
                                            : memory.take(bytes.data(), bytes.size(), shift));
    arrays.ndims.push_back(static_cast<int>(operand.sizes.size()));
    arrays.shapes.push_back(operand.is_none ? nullptr : memory.take(operand.sizes));
    arrays.dtypes.push_back(static_cast<char*>(memory.take(name, std::strlen(name) + 1)));
    inputs.scalars.push_back(is_scalar);
  };
  for (const Input& input : call.inputs) {
    add(input.operand, input.memory, input.is_scalar);
    inputs.layouts.push_back(input.layout);
  }
  inputs.told = call.inputs.size();
  const bool is_in_place = call.kernel == InplaceAdd;
  Operand output = call.output;
  if (is_in_place) {
    output = call.inputs[0].operand;
  }
  output.bytes.assign(output.byte_count(), 0xff);
  Outcome outcome = call.outcome;
  if (fault == 1) {
    const Type before = output.type;
    output.type = choices.of(fuzz::kAllTypes);
    output.bytes.assign(output.byte_count(), 0xff);
    outcome = output.type == before || outcome == Outcome::kAny ? outcome : Outcome::kError;
  }
  if (!is_in_place) {
    add(output, output.bytes, false);
  } else if (fault == 1) {
    outcome = call.outcome;
  }
  if (call.shared > 0) {
    arrays.params[1] = static_cast<char*>(arrays.params[0]) + call.inputs[0].memory.size() -
                       call.inputs[1].memory.size();
  }
  if (is_in_place && fault == 0 && choices.one_in(4)) {  // MindSpore's outputs of such a kernel
    const bool is_input = !choices.one_in(4) || output.numel() == 0;
    add(output, output.bytes, false);
    arrays.params.back() = is_input ? arrays.params[0] : arrays.params.back();
    outcome = is_input ? outcome : Outcome::kError;
  }
  const std::size_t slots = arrays.params.size();
  const auto at = static_cast<std::size_t>(choices.below(static_cast<int>(slots)));
  const std::vector<void*> params = arrays.params;
  const Operand& of_fault = at < call.inputs.size() ? call.inputs[at].operand : output;
  bool has_extra = true;
  switch (fault) {
    case 2:
      arrays.dtypes[at] = static_cast<char*>(memory.take("floaty", 7));
      outcome = Outcome::kError;
      break;
    case 3:
      arrays.dtypes[at] = nullptr;
      outcome = Outcome::kError;
      break;
    case 4:
      arrays.ndims[at] = choices.one_in(2) ? -1 : INT_MAX;
      outcome = Outcome::kError;
      break;
    case 5:
      arrays.params[at] = nullptr;
      if (of_fault.numel() > 0) {
        outcome = Outcome::kError;
      }
      break;
    case 6:
      arrays.shapes[at] = nullptr;
      if (!of_fault.is_none && !of_fault.sizes.empty()) {
        outcome = Outcome::kError;
      }
      break;
    case 7:
      has_extra = false;
      outcome = Outcome::kError;
      break;
    case 8:
      inputs.told = static_cast<std::size_t>(choices.byte());
      inputs.scalars.resize(256);
      inputs.layouts.resize(256);
      if (inputs.told != call.inputs.size()) {
        outcome = call.kernel == Cat ? Outcome::kAny : Outcome::kError;
      }
      break;
    case 9: {
      Ints sizes = of_fault.sizes;
      if (!sizes.empty() && of_fault.numel() > 0) {
        // There could be as many bytes.
        sizes[0] = choices.one_in(2) || fuzz::info(of_fault.type).size == 1 ? -1 : INT64_MAX;
        arrays.shapes[at] = memory.take(sizes);
        outcome = Outcome::kError;
      }
      break;
    }
    case 10:
      if (at < call.inputs.size() && inputs.layouts[at].has_value() && of_fault.numel() > 1) {
        Ints& strides = inputs.layouts[at]->strides;
        if (strides.size() > 1 && choices.one_in(2)) {
          strides.pop_back();
        } else {
          strides.push_back(1);
        }
        outcome = Outcome::kError;
      }
      break;
    default:
      break;
  }
  fuzz::scene() = std::string(call.name) + " of";
  for (const Input& input : call.inputs) {
    fuzz::scene() += ' ' + fuzz::text(input.operand) + (input.layout ? " (a view)" : "");
  }
  fuzz::scene() += " to " + fuzz::text(output) + ", fault " + std::to_string(fault) + " of slot " +
                   std::to_string(at);
  std::optional<std::string> error;
  const auto run_kernel = [&] {
    try {
      call.kernel(static_cast<int>(slots), memory.take(arrays.params), memory.take(arrays.ndims),
                  memory.take(arrays.shapes), memory.take(arrays.dtypes), nullptr,
                  has_extra ? &inputs : nullptr);
    } catch (const std::runtime_error& caught) {
      error = caught.what();
      fuzz::check_text(*error, call.name);
      if (*error != aten_bridge_last_error()) {
        fuzz::fail("aten_bridge_last_error() is another text than", error->c_str());
      }
    }
  };
  if (choices.one_in(64)) {  // as MindSpore does in PyNative mode
    std::thread(run_kernel).join();
  } else {
    run_kernel();
  }
  if (error && outcome == Outcome::kValue) {
    fuzz::fail("an error of a right call:", error->c_str());
  }
  if (!error && outcome == Outcome::kError) {
    fuzz::fail("no error of", call.name);
  }
  if (!error && outcome == Outcome::kValue) {
    if (call.sizes &&
        (inputs.found == nullptr || inputs.found->sizes != std::vector<Ints>{*call.sizes})) {
      fuzz::fail("wrong sizes of", call.name);
    }
    Operand found = call.output;
    if (is_in_place) {
      const Input& x = call.inputs[0];
      const std::size_t itemsize = fuzz::info(x.operand.type).size;
      for (int64_t i = 0; x.layout && i < x.operand.numel(); ++i) {
        std::memcpy(
            found.bytes.data() + static_cast<std::size_t>(i) * itemsize,
            static_cast<const char*>(params[0]) + place(x.operand.sizes, *x.layout, i) * itemsize,
            itemsize);
      }
      if (x.layout ? !fuzz::has_values(found.bytes.data(), call.output)
                   : !fuzz::has_values(params[0], call.output)) {
        fuzz::fail("a wrong value of", call.name);
      }
    } else if (!fuzz::has_values(params.back(), call.output)) {
      fuzz::fail("a wrong value of", call.name);
    }
  }
  for (std::size_t i = 0; i < call.inputs.size() && call.shared == 0; ++i) {
    fuzz::Bytes bytes = call.inputs[i].memory;
    if (is_in_place && i == 0) {  // its elements may be other ones, and nothing between them
      const Operand& x = call.inputs[0].operand;
      const std::size_t itemsize = fuzz::info(x.type).size;
      for (int64_t element = 0; element < x.numel(); ++element) {
        const std::size_t at_element =
            itemsize * (call.inputs[0].layout ? place(x.sizes, *call.inputs[0].layout, element)
                                              : static_cast<std::size_t>(element));
        std::memcpy(bytes.data() + at_element, static_cast<const char*>(params[0]) + at_element,
                    itemsize);
      }
    }
    if (!bytes.empty() && std::memcmp(params[i], bytes.data(), bytes.size()) != 0) {
      fuzz::fail("an input was written by", call.name);
    }
  }
}

/// What MindSpore asks a plugin when it opens it.
bool check_operators() {
  const char** names = GetAllRegisteredOps();
  const bool is_right = GetRegisteredOpCount() == 9 && std::strcmp(names[0], "Negate") == 0 &&
                        std::strcmp(names[8], "PrintValues") == 0 &&
                        GetComputeDependOpCount() == 1 &&
                        std::strcmp(GetAllOpPluginComputeDependOps()[0], "NonZero") == 0;
  if (!is_right) {
    fuzz::fail("the plugin has other operators");
  }
  return is_right;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::Memory memory;
  [[maybe_unused]] static const bool are_right = check_operators();
  Choices choices(data, size);
  std::vector<Call> usual;
  for (int i = 0; i < 3; ++i) {
    usual.push_back(choose_call(choices));
  }
  for (int calls = 0; calls < 64 && choices.are_left(); ++calls) {
    Call& call = usual[static_cast<std::size_t>(choices.below(3))];
    if (choices.one_in(4)) {
      call = choose_call(choices);
    }
    const int fault = choices.one_in(4) ? choices.below(kFaults) : 0;
    run(call, fault, memory, choices);
    memory.release();
  }
  return 0;
}
