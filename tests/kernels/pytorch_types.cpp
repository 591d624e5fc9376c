// Kernels that PyTorch calls, in the types of its tutorials; attributes that may be None.
#include <torch/types.h>

#include <aten_bridge.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace {

using aten_bridge::attr;

torch::Tensor muladd(torch::Tensor a, torch::Tensor b, double c) {  // NOLINT: as tutorials have it
  TORCH_CHECK(a.dtype() == torch::kFloat32, "expected a in float32");
  TORCH_CHECK(a.sizes() == b.sizes(), "expected a and b of one size");
  auto result = torch::empty_like(a);
  torch::mul_out(result, a, b);
  return result.add_(torch::full({}, c, torch::dtype(torch::kFloat32)));
}
ATEN_BRIDGE_EXPORT(Muladd, muladd, attr("c"), aten_bridge::meta());
ATEN_BRIDGE_EXPORT(MuladdGrad, [](torch::Tensor a, torch::Tensor b, torch::Tensor grad) {
  return std::tuple<torch::Tensor, torch::Tensor>(grad * b, grad * a);
});

ATEN_BRIDGE_EXPORT(
    Product, [](const torch::Tensor& a, const torch::Tensor& b) { return torch::mm(a, b); },
    aten_bridge::composite());

std::string words(bool value) { return value ? "yes" : "no"; }
std::string words(int64_t value) { return std::to_string(value); }
std::string words(double value) { return std::to_string(value); }
std::string words(const at::Scalar& value) { return words(value.toDouble()); }
std::string words(std::string_view value) { return std::string(value); }
std::string words(at::ScalarType value) { return c10::toString(value); }
template <class T>
std::string words(const std::vector<T>& list) {
  std::string text = "[";
  for (const auto& element : list) {
    text += (text.size() > 1 ? " " : "") + words(static_cast<T>(element));
  }
  return text + ']';
}
std::string words(at::IntArrayRef list) { return words(list.vec()); }

// All kinds of attributes that may be None, as a text.
torch::Tensor describe_maybe(const torch::Tensor& x, std::optional<bool> flag,
                             std::optional<int64_t> number, std::optional<double> real,
                             std::optional<at::Scalar> any, std::optional<std::string_view> text,
                             std::optional<at::ScalarType> type, at::OptionalIntArrayRef ints,
                             const std::optional<std::vector<double>>& reals,
                             const std::optional<std::vector<bool>>& flags,
                             const std::optional<std::vector<std::string>>& texts,
                             const std::optional<std::vector<std::vector<int64_t>>>& rows,
                             const std::optional<std::vector<std::vector<double>>>& real_rows) {
  std::string all;
  const auto add = [&](const auto& value) {
    all += (all.empty() ? "" : ", ") + (value.has_value() ? words(*value) : "None");
  };
  add(flag);
  add(number);
  add(real);
  add(any);
  add(text);
  add(type);
  add(ints);
  add(reals);
  add(flags);
  add(texts);
  add(rows);
  add(real_rows);
  torch::Tensor characters = x.new_empty({static_cast<int64_t>(all.size())}, torch::kByte);
  std::copy(all.begin(), all.end(), characters.mutable_data_ptr<uint8_t>());
  return characters;
}
ATEN_BRIDGE_EXPORT(DescribeMaybe, describe_maybe, attr("flag"), attr("number", 3), attr("real"),
                   attr("any"), attr("text", "word"), attr("type"), attr("ints"), attr("reals"),
                   attr("flags"), attr("texts"), attr("rows"), attr("real_rows"));

}  // namespace
