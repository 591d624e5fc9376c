// MindSpore's C++ classes, without PyTorch: what `extra` is, and the numbers of its dtypes.
//
// MindSpore is built with the old C++ ABI or with the new one, in which a std::string is another
// class, and a kernel with the one of its libtorch. `HostString` and `HostStringResult` are what a
// std::string argument and result look like from either side.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_ABI_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_ABI_H_

#include <aten_bridge/core/attributes.h>
#include <aten_bridge/core/operand_desc.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

// The header in front of the characters of an old std::string.
struct OldStringHeader {
  std::size_t length;
  std::size_t capacity;
  int owners;  // beyond the first; negative: must not be shared, a copy has its own characters
};

// The old ABI's empty strings all point behind this; it is not theirs to free.
extern "C" __attribute__((weak, visibility("default"))) char
    _ZNSs4_Rep20_S_empty_rep_storageE[];  // NOLINT: the name is libstdc++'s

/// An argument: the address of it is that of a valid std::string of both ABIs, which differ in
/// what they read of it.
class HostString {
 public:
  explicit HostString(std::string_view text)
      : length_(text.size()),
        capacity_(text.size()),
        block_(sizeof(OldStringHeader) / sizeof(std::size_t) + text.size() / sizeof(std::size_t) +
               1) {
    const OldStringHeader header{length_, capacity_, -1};
    std::memcpy(block_.data(), &header, sizeof(header));
    char* chars = reinterpret_cast<char*>(block_.data()) + sizeof(header);
    std::memcpy(chars, text.data(), text.size());
    chars_ = chars;
  }
  HostString(const HostString&) = delete;
  HostString& operator=(const HostString&) = delete;

  /// The characters, which a null ends.
  const char* c_str() const noexcept { return chars_; }

 private:
  const char* chars_;     // old and new
  std::size_t length_;    // new
  std::size_t capacity_;  // new
  [[maybe_unused]] std::size_t unused_ = 0;
  std::vector<std::size_t> block_;
};

/// A result. A function of the old ABI writes one word of it, one of the new ABI two or more.
class HostStringResult {
 public:
  HostStringResult(const HostStringResult&) = delete;  // hence returned in memory, as strings are
  HostStringResult& operator=(const HostStringResult&) = delete;

  bool is_new() const { return length_ != kUntouched; }
  std::string text() const { return {chars_, is_new() ? length_ : header()->length}; }

  void free() {
    if (is_new()) {
      if (chars_ != reinterpret_cast<char*>(local_)) {
        ::operator delete(chars_);
      }
    } else if (reinterpret_cast<char*>(header()) != _ZNSs4_Rep20_S_empty_rep_storageE &&
               __atomic_fetch_add(&header()->owners, -1, __ATOMIC_ACQ_REL) <= 0) {
      ::operator delete(header());
    }
  }

  static constexpr std::size_t kUntouched = ~std::size_t{0};

 private:
  OldStringHeader* header() const { return reinterpret_cast<OldStringHeader*>(chars_) - 1; }

  char* chars_;
  std::size_t length_;
  std::size_t local_[2];  // a short new string's characters, or the capacity of a long one
};

/// The class of MindSpore's `extra`, AotExtra (2.10): the order of its virtual functions and of
/// its members. A get throws a std::exception if the attribute is not there or of another type.
/// Visible, or whole-program optimisation would conclude that nobody implements it.
struct __attribute__((visibility("default"))) AotExtra {
  virtual ~AotExtra() = default;
  virtual bool has(HostString& name) = 0;
  virtual bool get_bool(HostString& name) = 0;
  virtual int64_t get_int(HostString& name) = 0;
  virtual float get_float(HostString& name) = 0;
  virtual HostStringResult get_string(HostString& name) = 0;
  virtual std::vector<int64_t> get_ints(HostString& name) = 0;
  virtual std::vector<float> get_floats(HostString& name) = 0;
  virtual std::vector<std::vector<int64_t>> get_int_lists(HostString& name) = 0;
  virtual std::vector<std::vector<float>> get_float_lists(HostString& name) = 0;

  std::vector<std::size_t> workspaces;  // bytes of each; the host allocates them for each call
  void* kernel_data = nullptr;          // the host deletes it, see `Instance`
};

/// What MindSpore's op plugins are told of the shape of a result that is known after the run only.
struct PluginShapes {
  std::vector<std::vector<int64_t>> sizes;
  std::vector<bool> is_known;
};

/// The class of the last argument of a kernel of MindSpore's op plugin, KernelInputInfo (2.10), as
/// `AotExtra` is that of the other entry point.
struct __attribute__((visibility("default"))) PluginInputs {
  virtual ~PluginInputs() = default;
  virtual bool is_scalar(std::size_t index) = 0;  // a value of Python's, not a tensor
  virtual std::size_t count() = 0;
  virtual bool get_bool(std::size_t index) = 0;
  virtual int64_t get_int(std::size_t index) = 0;
  virtual double get_float(std::size_t index) = 0;
  virtual HostStringResult get_string(std::size_t index) = 0;
  virtual std::vector<int64_t> get_ints(std::size_t index) = 0;
  virtual std::vector<double> get_floats(std::size_t index) = 0;
  virtual std::vector<std::vector<int64_t>> get_int_lists(std::size_t index) = 0;
  virtual std::vector<std::vector<double>> get_float_lists(std::size_t index) = 0;
  virtual int type_id(std::size_t index) = 0;
  virtual std::optional<Layout> layout(std::size_t index) = 0;  // nullopt: row-major, dense
  virtual PluginShapes* shapes() = 0;
  virtual void set_shapes(std::unique_ptr<PluginShapes> shapes) = 0;

  std::vector<std::size_t> workspaces;
};

/// The attributes behind MindSpore's `extra`; none behind null (hosts before about 1.9).
class MindSporeAttributes final : public Attributes {
 public:
  explicit MindSporeAttributes(void* extra) : extra_(static_cast<AotExtra*>(extra)) {}

  ATEN_BRIDGE_INLINE bool has(const char* name) const override;
  std::string advice(const char* name) const override {
    return join({"set it where the operator is made, as in add_prim_attr(\"", name, "\", ...)"});
  }

 private:
  [[gnu::cold]] ATEN_BRIDGE_INLINE bool get_as(AttributeType type, const char* name,
                                               void* value) const override;

  AotExtra* extra_;
};

/// MindSpore's number of a dtype.
struct TypeId {
  DType dtype;
  int id;
};

// Those of 2.10; up to the last of all versions they are the same in each.
inline constexpr int kLastTypeIdOfAll = 44;
inline constexpr TypeId kTypeIds[] = {
    {DType::kBool, 30},      {DType::kInt8, 32},         {DType::kInt16, 33},
    {DType::kInt32, 34},     {DType::kInt64, 35},        {DType::kUInt8, 37},
    {DType::kUInt16, 38},    {DType::kUInt32, 39},       {DType::kUInt64, 40},
    {DType::kFloat16, 42},   {DType::kFloat32, 43},      {DType::kFloat64, 44},
    {DType::kBFloat16, 45},  {DType::kFloat8E4M3FN, 46}, {DType::kFloat8E5M2, 47},
    {DType::kComplex64, 51}, {DType::kComplex128, 52}};
static_assert(has_each_dtype(kTypeIds),
              "aten_bridge: kTypeIds of hosts/mindspore/abi.h has one entry for each dtype.");

/// The dtype with that TypeId of 2.10; kNone for none.
inline DType dtype_of_new_id(int64_t id) {
  for (const TypeId& type : kTypeIds) {
    if (type.id == id) {
      return type.dtype;
    }
  }
  return DType::kNone;
}

[[noreturn, gnu::cold]] inline void refuse_type_id(const std::string& name,
                                                   const std::string& given) {
  raise(Status::kDtype,
        {name, ": expected bool, an integer, float16, float32 or float64, got ", given,
         "; make the operator with aten_bridge.mindspore.kernel, or give out_dtype"});
}

[[gnu::cold]] inline int type_id(DType dtype, const std::string& name) {
  for (const TypeId& type : kTypeIds) {
    if (type.dtype == dtype && type.id <= kLastTypeIdOfAll) {
      return type.id;
    }
  }
  refuse_type_id(name,
                 join({dtype_name(dtype), ", whose number differs between versions of MindSpore"}));
}

[[gnu::cold]] inline DType dtype_of_id(int id, const std::string& name) {
  const DType dtype = id > kLastTypeIdOfAll ? DType::kNone : dtype_of_new_id(id);
  if (dtype == DType::kNone) {
    refuse_type_id(name,
                   join({"MindSpore's type ", id, ", whose number differs between its versions"}));
  }
  return dtype;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_ABI_H_
