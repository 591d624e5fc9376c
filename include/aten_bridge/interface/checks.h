// Checks: what a kernel accepts, stated after its function and checked before the body:
//
//   using namespace aten_bridge;
//   ATEN_BRIDGE_EXPORT(Prelu, prelu, input("x").dtype(kFloatingPoint).sizes("N", "C", "..."),
//                      input("weight").sizes("C"));
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_INTERFACE_CHECKS_H_
#define ATEN_BRIDGE_INTERFACE_CHECKS_H_

#include <aten_bridge/core/operand_desc.h>
#include <aten_bridge/tensors/views.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

/// A set of dtypes: one, or several joined by `|`.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  /// A dtype that no host has is in no tensor either.
  constexpr DTypeSet(at::ScalarType type)  // NOLINT(*-explicit-*)
      : bits_(1U << static_cast<unsigned int>(detail::dtype_of(type))) {}
  constexpr DTypeSet operator|(DTypeSet other) const {
    other.bits_ |= bits_;
    return other;
  }
  /// Whether there is no condition.
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool contains(DType dtype) const {
    return (bits_ >> static_cast<unsigned int>(dtype) & 1U) != 0;
  }

  /// One of them, float32 where it is possible; kNone if there is none.
  constexpr DType any() const {
    if (contains(DType::kFloat32)) {
      return DType::kFloat32;
    }
    for (const detail::DTypeInfo& info : detail::kDTypes) {
      if (info.dtype != DType::kNone && contains(info.dtype)) {
        return info.dtype;
      }
    }
    return DType::kNone;
  }

  /// "float32|float64".
  [[gnu::cold, gnu::noinline]] std::string text() const {
    std::string text;
    if (bits_ == kNobody) {
      return "a dtype that the host does not have";
    }
    for (const detail::DTypeInfo& info : detail::kDTypes) {
      if (contains(info.dtype)) {
        text.append(text.empty() ? "" : "|").append(info.name());
      }
    }
    return text;
  }

 private:
  static constexpr std::uint32_t kNobody = 1U << static_cast<unsigned int>(DType::kNone);

  std::uint32_t bits_ = 0;  // by `DType`
  static_assert(std::size(detail::kDTypes) <= 32, "DTypeSet needs a bit for each dtype");
};

/// float16, bfloat16, float32, float64.
inline constexpr DTypeSet kFloatingPoint =
    DTypeSet(at::kHalf) | at::kBFloat16 | at::kFloat | at::kDouble;
/// int8 to int64 and uint8; not bool.
inline constexpr DTypeSet kIntegral =
    DTypeSet(at::kByte) | at::kChar | at::kShort | at::kInt | at::kLong;
/// complex64, complex128.
inline constexpr DTypeSet kComplex = DTypeSet(at::kComplexFloat) | at::kComplexDouble;

/// One size in `CheckOption::sizes`: a number; -1, for any size; a name, which stands for the same
/// size wherever a kernel's checks have it; or once "...", for any number of any sizes.
struct SizeCheck {
  const char* name = nullptr;  // null: a number
  int64_t number = 0;

  constexpr SizeCheck() = default;
  constexpr SizeCheck(const char* any) : name(any) {}  // NOLINT(*-explicit-*)
  constexpr SizeCheck(int64_t size) : number(size) {}  // NOLINT(*-explicit-*)
  constexpr SizeCheck(int size) : number(size) {}      // NOLINT(*-explicit-*)

  constexpr bool is_rest() const { return name != nullptr && std::string_view(name) == "..."; }
  std::string text() const { return name != nullptr ? name : detail::join({number}); }
};

/// What a kernel accepts as one operand. None and sizes that are not known yet pass.
class OperandCheck {
 public:
  static constexpr std::size_t kMaxSizes = 8;

  constexpr Role role() const { return role_; }
  constexpr const char* name() const { return name_; }
  constexpr DTypeSet dtypes() const { return dtypes_; }

 protected:
  friend class CheckRun;

  constexpr OperandCheck(Role role, const char* name) : role_(role), name_(name) {}

  Role role_;
  const char* name_;
  DTypeSet dtypes_;  // empty: any
  int least_ndim_ = 0;
  int most_ndim_ = detail::kMaxNdim;
  bool has_sizes_ = false;
  std::size_t size_count_ = 0;
  std::array<SizeCheck, kMaxSizes> sizes_ = {};
};

/// An option that states what a kernel accepts as an input, or as an output. Each member function
/// adds a condition and returns the result.
template <Role kRole>
class CheckOption : public OperandCheck {
 public:
  explicit constexpr CheckOption(const char* name) : OperandCheck(kRole, name) {}

  /// Any of these: `dtype(at::kFloat, at::kDouble)`, `dtype(kFloatingPoint | kComplex)`.
  template <class... T>
  constexpr CheckOption dtype(T... types) const {
    CheckOption check = *this;
    check.dtypes_ = (DTypeSet() | ... | DTypeSet(types));
    return check;
  }

  constexpr CheckOption rank(int ndim) const { return rank(ndim, ndim); }
  constexpr CheckOption rank(int least, int most) const {
    CheckOption check = *this;
    check.least_ndim_ = least;
    check.most_ndim_ = most;
    return check;
  }

  /// The sizes, one by one: `sizes("N", 3, "H", "W")`, `sizes("...", "C")`.
  template <class... S>
  constexpr CheckOption sizes(S... sizes) const {
    static_assert(sizeof...(S) <= kMaxSizes,
                  "aten_bridge: sizes() takes up to 8 sizes; leave the others to \"...\".");
    CheckOption check = *this;
    check.has_sizes_ = true;
    check.size_count_ = sizeof...(S);
    check.sizes_ = {SizeCheck(sizes)...};
    return check;
  }
};

/// States the next input of a kernel, in the order of its parameters; for an at::TensorList, each
/// of its tensors. `name` is what error texts call it, beside its number.
constexpr CheckOption<Role::kInput> input(const char* name) {
  return CheckOption<Role::kInput>(name);
}

/// States the next output.
constexpr CheckOption<Role::kOutput> output(const char* name) {
  return CheckOption<Role::kOutput>(name);
}

/// The checks of one call, which share the sizes' names.
class CheckRun {
 public:
  explicit CheckRun(Report& report) : report_(report) {}

  /// Adds to the report how the operand differs from `check`. A size of -1, a rank of -1 and a
  /// dtype of kNone are not known.
  void operator()(const OperandCheck& check, const OperandName& name, const OperandDesc& desc) {
    if (!check.dtypes_.empty() && desc.dtype != DType::kNone &&
        !check.dtypes_.contains(desc.dtype)) {
      add_dtype_fault(check, name, desc);
    }
    if (desc.ndim < 0) {
      return;
    }
    if (desc.ndim < check.least_ndim_ || desc.ndim > check.most_ndim_) {
      add_rank_fault(check, name, desc);
    } else if (check.has_sizes_) {
      match_sizes(check, name, desc);
    }
  }

 private:
  struct NamedSize {
    const char* name;
    int64_t size;
    OperandName operand;
  };

  [[gnu::cold]] static std::string described(const OperandDesc& desc) {
    return desc.dtype == DType::kNone ? detail::shape_text(desc.sizes, desc.ndim) : desc.text();
  }

  void match_sizes(const OperandCheck& check, const OperandName& name, const OperandDesc& desc) {
    const auto* begin = check.sizes_.data();
    const auto* end = begin + check.size_count_;
    const auto* rest = end;
    for (const auto* size = begin; size != end; ++size) {
      if (size->is_rest()) {
        if (rest != end) {
          add_pattern_fault(check, name);
          return;
        }
        rest = size;
      }
    }
    const int front = static_cast<int>(rest - begin);
    const int back = rest == end ? 0 : static_cast<int>(end - rest) - 1;
    bool fits = rest == end ? desc.ndim == front : desc.ndim >= front + back;
    std::string because;
    if (fits) {
      for (int i = 0; i < front; ++i) {
        fits = match_size(begin[i], desc.sizes[i], name, because) && fits;
      }
      for (int i = 0; i < back; ++i) {
        fits = match_size(rest[1 + i], desc.sizes[desc.ndim - back + i], name, because) && fits;
      }
    }
    if (!fits) {
      add_sizes_fault(check, name, desc, because);
    }
  }

  [[gnu::cold, gnu::noinline]] void add_dtype_fault(const OperandCheck& check,
                                                    const OperandName& name,
                                                    const OperandDesc& desc) {
    report_.add(Status::kDtype, name,
                {check.dtypes_.text(), detail::kGot, "\"", dtype_name(desc.dtype), "\" with shape ",
                 detail::shape_text(desc.sizes, desc.ndim)});
  }

  [[gnu::cold, gnu::noinline]] void add_rank_fault(const OperandCheck& check,
                                                   const OperandName& name,
                                                   const OperandDesc& desc) {
    const int least = check.least_ndim_;
    const int most = check.most_ndim_;
    const std::string ranks = least == most ? detail::join({"rank ", least})
                                            : detail::join({"a rank from ", least, " to ", most});
    report_.add(Status::kShape, name, {ranks, detail::kGot, described(desc)});
  }

  [[gnu::cold]] static std::string pattern(const OperandCheck& check) {
    std::string text;
    for (std::size_t i = 0; i < check.size_count_; ++i) {
      text.append(text.empty() ? "" : ", ").append(check.sizes_[i].text());
    }
    return '[' + text + ']';
  }

  [[gnu::cold, gnu::noinline]] void add_sizes_fault(const OperandCheck& check,
                                                    const OperandName& name,
                                                    const OperandDesc& desc,
                                                    const std::string& because) {
    report_.add(Status::kShape, name,
                {"sizes ", pattern(check), because, detail::kGot, described(desc)});
  }

  [[gnu::cold, gnu::noinline]] void add_pattern_fault(const OperandCheck& check,
                                                      const OperandName& name) {
    report_.add(Status::kShape, name,
                {"\"...\" once in the sizes of its check", detail::kGot, pattern(check),
                 detail::kDo, "correct the kernel's export"});
  }

  /// Whether a size is what its check says; adds to `because` what a name stands for.
  bool match_size(const SizeCheck& check, int64_t size, const OperandName& operand,
                  std::string& because) {
    if (size < 0) {
      return true;
    }
    if (check.name == nullptr) {
      return check.number < 0 || check.number == size;
    }
    for (const NamedSize& named : names_) {
      if (std::strcmp(named.name, check.name) == 0) {
        if (named.size != size) {
          because.append(because.empty() ? " with " : " and ")
              .append(check.name)
              .append(detail::join({" = ", named.size, " as in ", named.operand.text()}));
        }
        return named.size == size;
      }
    }
    names_.push_back({check.name, size, operand});
    return true;
  }

  Report& report_;
  c10::SmallVector<NamedSize, 8> names_;
};

}  // namespace aten_bridge

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_INTERFACE_CHECKS_H_
