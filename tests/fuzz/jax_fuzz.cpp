// Sequences of calls with frames of XLA's: right ones, whose results are computed without PyTorch,
// and such as differ from them in one thing, which end in an error and touch nothing.
#include <dlfcn.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../unit/jax_frame.h"
#include "memory.h"
#include "text.h"

namespace {

namespace xla = aten_bridge::detail::xla;

using fuzz::Choices;
using jax_frame::Floats;
using jax_frame::Frame;
using jax_frame::Sizes;

void* open(const char* path) {
  void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    fuzz::fail("the library cannot be opened:", dlerror());
  }
  return opened;
}

void* library() {
  static void* const opened = open(JAX_KERNELS);
  return opened;
}

fuzz::Memory& memory() {
  static fuzz::Memory kept;
  return kept;
}

std::size_t count_of(const Sizes& sizes) {
  std::size_t count = 1;
  for (const int64_t size : sizes) {
    count *= static_cast<std::size_t>(size);
  }
  return count;
}

/// A call, and what it has to write.
struct Call {
  explicit Call(const char* kernel, void* of = library())
      : frame(std::make_unique<Frame>(of, kernel)) {}

  /// Values among so many whole numbers around 0.
  Floats input(Choices& choices, const Sizes& sizes, int numbers = 32) {
    Floats values(count_of(sizes));
    for (float& value : values) {
      value = static_cast<float>(choices.below(numbers) - numbers / 2);
    }
    frame->input(memory().take(values), sizes);
    return values;
  }

  void output(Floats values, const Sizes& sizes) {
    written = memory().take(Floats(values.size(), 77));
    frame->output(written, sizes);
    expected = std::move(values);
  }

  std::unique_ptr<Frame> frame;
  float* written = nullptr;
  Floats expected;
  bool may_fail = false;  // or give something else
};

Sizes choose_sizes(Choices& choices) {
  static const Sizes kSizes[] = {{2, 3}, {4}, {}, {1}, {0}, {2, 0}, {3, 2, 2}, {64}};
  return choices.of(kSizes);
}

Call leaky_relu(Choices& choices) {
  Call call("LeakyRelu");
  const Sizes sizes = choose_sizes(choices);
  Floats values = call.input(choices, sizes);
  // More sets of attributes than are kept for good.
  const double slope = choices.one_in(3) ? 0.01 : std::ldexp(choices.below(200), -2);
  for (float& value : values) {
    value = value > 0 ? value : value * static_cast<float>(slope);
  }
  call.output(std::move(values), sizes);
  if (slope != 0.01 || choices.one_in(2)) {
    call.frame->scalar("negative_slope", xla::kFloat64, slope);
  }
  return call;
}

Call cat(Choices& choices) {
  Call call("Cat");
  Floats all;
  const int count = 1 + choices.below(4);
  for (int i = 0; i < count; ++i) {
    const Floats part = call.input(choices, {choices.below(4)});
    all.insert(all.end(), part.begin(), part.end());
  }
  const auto size = static_cast<int64_t>(all.size());
  call.output(std::move(all), {size});
  return call;
}

Call add_bias(Choices& choices) {
  Call call("LayerNorm");                      // one 0 gives 0 and the bias
  call.input(choices, {2, 1}, /*numbers=*/1);  // for others PyTorch 2.1 gives 0.0002 now and then
  Floats bias = {0};
  if (choices.one_in(2)) {
    bias = call.input(choices, {1});
    call.frame->array<int64_t>("aten_bridge_none", xla::kInt64, {1});
  } else {
    call.frame->array<int64_t>("aten_bridge_none", xla::kInt64, {1, 2});
  }
  call.output({bias[0], bias[0]}, {2, 1});
  return call;
}

Call sum_of(Choices& choices) {
  Call call("SumOf");
  const Sizes sizes = choose_sizes(choices);
  call.input(choices, sizes);
  double sum = choices.below(100);
  call.frame->scalar("first", xla::kFloat64, sum);
  std::vector<double> list;
  Sizes rows;
  for (int i = choices.below(4); i > 0; --i) {
    list.push_back(choices.below(100));
    sum += 2 * list.back();
    rows.insert(rows.end(), {1, 0});
  }
  call.frame->array("list", xla::kFloat64, list);
  call.frame->array("rows", xla::kFloat64, list);
  call.frame->array("aten_bridge_rows_rows", xla::kInt64, rows);
  call.output(Floats(count_of(sizes), static_cast<float>(sum)), sizes);
  return call;
}

/// Attributes of each kind, of right types and others.
Call describe(Choices& choices) {
  Call call("Describe");
  call.input(choices, {1});
  call.output({}, {0});
  call.may_fail = true;  // its result has as many letters as its words
  struct Name {
    const char* of;
    const char* of_rows;
  };
  static const Name kNames[] = {
      {"flag", "aten_bridge_rows_flag"},   {"number", "aten_bridge_rows_number"},
      {"real", "aten_bridge_rows_real"},   {"any", "aten_bridge_rows_any"},
      {"text", "aten_bridge_rows_text"},   {"type", "aten_bridge_rows_type"},
      {"ints", "aten_bridge_rows_ints"},   {"reals", "aten_bridge_rows_reals"},
      {"flags", "aten_bridge_rows_flags"}, {"texts", "aten_bridge_rows_texts"},
      {"rows", "aten_bridge_rows_rows"},   {"maybe", "aten_bridge_rows_maybe"}};
  for (const auto& [name, rows_name] : kNames) {
    Frame& frame = *call.frame;
    const int number = choices.below(4) - 1;
    Sizes list(static_cast<std::size_t>(choices.below(4)), number);
    switch (choices.below(9)) {
      case 0:
        frame.scalar(name, xla::kBool, number > 0);
        break;
      case 1:
        frame.scalar(name, xla::kInt32, number);
        break;
      case 2:
        frame.scalar(name, xla::kInt64, int64_t{number});
        break;
      case 3:
        frame.scalar(name, xla::kFloat32, static_cast<float>(number) / 4);
        break;
      case 4:
        frame.scalar(name, xla::kFloat64, static_cast<double>(number) / 4);
        break;
      case 5:
        frame.text(name, number < 0 ? "" : number == 0 ? "float16" : "1:a1:b");
        break;
      case 6:
        frame.array(name, xla::kFloat64, std::vector<double>(list.begin(), list.end()));
        break;
      case 7:
        frame.array(name, xla::kInt64, std::move(list));
        break;
      default:  // its default
        break;
    }
    if (choices.one_in(4)) {
      frame.array(rows_name, xla::kInt64,
                  Sizes(static_cast<std::size_t>(choices.below(3)), choices.below(3)));
    }
  }
  return call;
}

#ifdef OPERATORS
/// Operators of PyTorch's by name.
Call by_name(Choices& choices) {
  static void* const operators = open(OPERATORS);
  const bool is_cat = choices.one_in(3);
  Call call(choices.one_in(2) ? "AtenOperator" : "AtenOperators", operators);
  std::string text;
  if (is_cat) {
    text = fuzz::list_text({"aten::cat", "0", "dim", "i0"});
    Floats all = call.input(choices, {2});
    const Floats more = call.input(choices, {3});
    all.insert(all.end(), more.begin(), more.end());
    call.output(std::move(all), {5});
  } else {
    const Sizes sizes = choose_sizes(choices);
    Floats values = call.input(choices, sizes);
    const double slope = std::ldexp(choices.below(8), -2);
    for (float& value : values) {
      value = value > 0 ? value : value * static_cast<float>(slope);
    }
    call.output(std::move(values), sizes);
    int64_t bits = 0;
    std::memcpy(&bits, &slope, sizeof(bits));
    text = fuzz::list_text({"aten::leaky_relu", "0", "negative_slope", 'f' + std::to_string(bits)});
  }
  if (choices.one_in(8)) {                    // an error costs as much as many calls
    text = choices.changed(std::move(text));  // a call with it may be right
    call.may_fail = true;
  }
  call.frame->text("aten_bridge_operator", std::move(text));
  return call;
}
#endif

/// Makes one thing of a right call wrong. Says whether it has to end in an error: some are
/// harmless.
bool spoil(Choices& choices, Frame& frame) {
  xla::CallFrame& call = *frame.call;
  xla::Args& operands = choices.one_in(2) ? call.inputs : call.outputs;
  const bool has_operand = operands.size != 0;
  const auto index = has_operand ? static_cast<std::size_t>(choices.below(255)) %
                                       static_cast<std::size_t>(operands.size)
                                 : 0;
  auto* const buffer = has_operand ? static_cast<xla::Buffer*>(operands.items[index]) : nullptr;
  const bool has_attribute = call.attributes.size != 0;
  switch (choices.below(18)) {
    case 0:
      call.struct_size = static_cast<std::size_t>(choices.below(160));
      return true;
    case 1:
      operands.size = choices.one_in(2) ? -1 - choices.below(9) : INT64_MIN;
      return true;
    case 2:
      operands.size = (int64_t{1} << 21) << choices.below(40);
      return true;
    case 3:
      operands.items = nullptr;
      return has_operand;
    case 4:
      operands.types = nullptr;
      return has_operand;
    case 5:
      operands.struct_size = static_cast<std::size_t>(choices.below(40));
      return true;
    case 6:
      call.attributes.names = nullptr;
      return has_attribute;
    case 7:
      call.attributes.struct_size = static_cast<std::size_t>(choices.below(48));
      return true;
    case 8:
      call.attributes.size = choices.one_in(2) ? -1 : int64_t{1} << 40;
      return true;
    case 9:
      operands.items[index] = nullptr;
      return true;
    case 10:
      operands.types[index] = choices.below(9) + 2;
      return true;
    case 11:
      buffer->struct_size = static_cast<std::size_t>(choices.below(48));
      return true;
    case 12: {
      static const int kNumbers[] = {0, 13, 14, 17, 21, 33, 34, 99, -1, INT32_MAX, INT32_MIN};
      buffer->dtype = choices.of(kNumbers);
      return true;
    }
    case 13: {
      static const int64_t kRanks[] = {-1, 65, INT64_MIN, INT64_MAX, int64_t{1} << 32};
      buffer->rank = choices.of(kRanks);
      return true;
    }
    case 14:
      if (buffer->rank == 0) {
        return false;
      }
      buffer->sizes = nullptr;
      return true;
    case 15: {
      if (buffer->rank == 0) {
        return false;
      }
      static const int64_t kSizes[] = {-1, INT64_MIN, INT64_MAX};
      buffer->sizes[0] = choices.of(kSizes);
      return true;
    }
    case 16: {
      const bool is_empty = count_of({buffer->sizes, buffer->sizes + buffer->rank}) == 0;
      buffer->data = nullptr;
      return !is_empty;
    }
    default:
      if (!has_attribute) {
        return false;
      }
      call.attributes.items[0] = nullptr;
      return true;
  }
}

void call_one(Choices& choices) {
  Call (*const kinds[])(Choices&) = {
      &leaky_relu, &cat, &add_bias, &sum_of, &describe,
#ifdef OPERATORS
      &by_name,
#endif
  };
  Call call = choices.of(kinds)(choices);
  call.frame->complete();
  const bool is_spoilt = choices.one_in(2);
  const bool must_fail = is_spoilt && spoil(choices, *call.frame);
  const std::string error = call.frame->run_as_it_is();
  if (call.may_fail && (error.empty() || !must_fail)) {
    memory().release();
    return;
  }
  if (must_fail != !error.empty()) {
    fuzz::fail(must_fail ? "a call that is wrong passed" : "a right call failed:", error.c_str());
  }
  const Floats untouched(call.expected.size(), 77);
  const Floats& wanted = must_fail ? untouched : call.expected;
  if (!wanted.empty() &&
      std::memcmp(call.written, wanted.data(), wanted.size() * sizeof(float)) != 0) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (call.written[i] != wanted[i]) {  // -0 is 0
        fuzz::fail("another result");
      }
    }
  }
  memory().release();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  while (choices.are_left()) {
    call_one(choices);
  }
  return 0;
}
