// Errors: what failed, and the texts, which name the operator and every operand that is wrong.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CORE_ERRORS_H_
#define ATEN_BRIDGE_CORE_ERRORS_H_

#include <aten_bridge/core/config.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

/// Classes of failure: the codes that a kernel returns under ATEN_BRIDGE_ERRORS_RETURN.
enum class Status : int {
  kOk = 0,
  kCount = 1,          ///< more or fewer operands than the kernel has
  kDtype = 2,          ///< an operand's dtype
  kShape = 3,          ///< an operand's rank or sizes
  kDevice = 4,         ///< memory of another device than the kernel was built for
  kNullPointer = 5,    ///< no memory where there should be some
  kAttribute = 6,      ///< an attribute is missing or of another type
  kOutput = 7,         ///< the kernel did not leave its result in the host's buffer
  kAten = 8,           ///< ATen refused: a c10::Error
  kCuda = 9,           ///< a CUDA call or launch failed
  kException = 10,     ///< another std::exception
  kUnknown = 11,       ///< something thrown that is not a std::exception
  kPyTorch = 12,       ///< the process has another PyTorch than the library was built with
  kValues = 13,        ///< the sizes of the results depend on values
  kMetaInPython = 14,  ///< PyTorch's Python part may know the shapes of the results: import torch
};

/// How a failure reaches a host that knows two ways: by a std::runtime_error or by a `Status`.
enum class ErrorMode : bool { kThrow, kReturn };

}  // namespace aten_bridge

namespace aten_bridge::detail {

/// Stands between the parts of a `Fault`: before what was got, or before what to do.
enum class Mark : std::uint8_t { kNone, kGot, kDo };
inline constexpr Mark kGot = Mark::kGot;
inline constexpr Mark kDo = Mark::kDo;

/// A part of a text: another text or a whole number below 2^63. Every place that can fail makes a
/// list of parts, so that a part is two machine words, and what reads it is out of line. It refers
/// to the object of the text, which must outlive it.
class Part {
 public:
  // NOLINTBEGIN(*-explicit-*)
  Part(const char* text) : text_(text), kind_(Kind::kChars) {}
  Part(const std::string& text) : text_(&text), kind_(Kind::kString) {}
  Part(const std::string_view& text) : text_(&text), kind_(Kind::kView) {}
  template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer> &&
                                                    !std::is_same_v<Integer, bool> &&
                                                    !std::is_same_v<Integer, char>>>
  Part(Integer number) : number_(static_cast<int64_t>(number)), kind_(Kind::kNumber) {}
  Part(Mark mark) : number_(static_cast<int64_t>(mark)), kind_(Kind::kMark) {}
  // NOLINTEND(*-explicit-*)

  Mark mark() const { return kind_ == Kind::kMark ? static_cast<Mark>(number_) : Mark::kNone; }

  [[gnu::cold]] ATEN_BRIDGE_INLINE void append_to(std::string& text) const;

 private:
  enum class Kind : std::uint8_t { kChars, kString, kView, kNumber, kMark };

  union {
    const void* text_;
    int64_t number_;
  };
  Kind kind_;
};

/// The parts, one after the other.
[[gnu::cold]] ATEN_BRIDGE_INLINE std::string join(std::initializer_list<Part> parts);

/// The text with "\xfc" for each byte that is not UTF-8, such as those of a file's name in Latin-1:
/// Python raises a UnicodeDecodeError instead of an error whose text is something else.
[[gnu::cold]] ATEN_BRIDGE_INLINE std::string as_utf8(std::string_view text);

/// A text as it leaves the bridge. A build for tests replaces the words of each text: code that
/// depends on them, instead of on a status or a structure, fails there. Control characters mark
/// where texts begin and end, so that tests, and only they, can read them.
[[gnu::cold]] ATEN_BRIDGE_INLINE std::string for_people(std::string text);

}  // namespace aten_bridge::detail

namespace aten_bridge {

/// Whether an operand is read or written. `kSlot` is for kernels that take the operands as they
/// come and do not say which are inputs.
enum class Role : std::uint8_t { kInput, kOutput, kSlot };

/// How error texts name an operand: "input 0", "output 1", "slot 2", "input 1 'weight'".
struct OperandName {
  Role role = Role::kSlot;
  int index = 0;
  const char* label = nullptr;  ///< the author's name for it, from the kernel's checks

  const char* role_text() const {
    return role == Role::kInput ? "input" : (role == Role::kOutput ? "output" : "slot");
  }
  [[gnu::cold]] ATEN_BRIDGE_INLINE std::string text() const;
};

/// What is wrong with one operand or attribute. An error has it as "input 0 'x': expected float32,
/// got None; ...".
struct Fault {
  Fault() = default;
  /// What was expected, kGot and what was got, kDo and what to do; the last two are optional.
  [[gnu::cold]] ATEN_BRIDGE_INLINE Fault(std::initializer_list<detail::Part> parts);

  /// The same without the operand or attribute.
  [[gnu::cold]] ATEN_BRIDGE_INLINE std::string text() const;

  Status status = Status::kOk;
  const char* subject = "";  ///< "input", "output", "slot" or "attribute"; "call": their number
  int index = -1;            ///< the operand's; -1 if it is no operand
  std::string name;          ///< an attribute's, or the one that a check gives an operand
  std::string expected;
  std::string got;
  std::string hint;  ///< what to do
};

/// The faults of an error; null if there are none.
using Faults = std::shared_ptr<const std::vector<Fault>>;

/// What the bridge throws. The text names the operator and every operand that is wrong.
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  Error(Status status, const std::string& text, Faults faults)
      : std::runtime_error(text), status_(status), faults_(std::move(faults)) {}
  Status status() const noexcept { return status_; }

  /// What is wrong with operands and attributes: those lines of the text, in their order.
  const Faults& faults() const { return faults_; }

 private:
  Status status_;
  Faults faults_;
};

/// Collects the faults of one call, so that all of them are reported at once, a line each.
class Report {
 public:
  /// `operator_name` opens every line; it must outlive the report.
  explicit Report(const char* operator_name) noexcept : operator_name_(operator_name) {}
  ~Report() {
    if (contents_ != nullptr) {
      free_contents();
    }
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  /// Adds "<operator name>: <fault>". The first fault gives the report its status.
  [[gnu::cold]] ATEN_BRIDGE_INLINE void add(Status status,
                                            std::initializer_list<detail::Part> fault);

  /// Adds "<operator name>: <operand>: <fault>".
  [[gnu::cold]] ATEN_BRIDGE_INLINE void add(Status status, const OperandName& operand,
                                            std::initializer_list<detail::Part> fault);
  [[gnu::cold]] ATEN_BRIDGE_INLINE void add(Status status, const OperandName& operand, Fault fault);

  /// Adds "<operator name>: <fault>", which is about the number of operands.
  [[gnu::cold]] ATEN_BRIDGE_INLINE void add_count(std::initializer_list<detail::Part> parts);

  /// Adds "<operator name>: attribute '<name>': <fault>".
  [[gnu::cold]] ATEN_BRIDGE_INLINE void add_attribute(const char* name, Fault fault);

  /// Adds the faults of another report.
  [[gnu::cold]] ATEN_BRIDGE_INLINE void add(const Report& other);

  bool ok() const noexcept { return status_ == Status::kOk; }

  /// The faults of operands and attributes that were added.
  [[gnu::cold]] ATEN_BRIDGE_INLINE Faults faults() const;

  /// Throws `Error` with all that was added.
  [[noreturn, gnu::cold]] ATEN_BRIDGE_INLINE void raise() const;

  /// The same if anything was added.
  void raise_if_failed() const {
    if (!ok()) {
      raise();
    }
  }

 private:
  struct Contents;

  [[gnu::cold]] ATEN_BRIDGE_INLINE void free_contents();
  [[gnu::cold]] ATEN_BRIDGE_INLINE void add_line(Status status, const std::string& line);
  [[gnu::cold]] ATEN_BRIDGE_INLINE void add_fault(Status status, const char* name, Fault fault);

  const char* operator_name_;
  Status status_ = Status::kOk;
  Contents* contents_ = nullptr;  // null while ok(): a report is made in each call
};

}  // namespace aten_bridge

namespace aten_bridge::detail {

/// Throws an error with the parts as its text, one after the other.
[[noreturn, gnu::cold]] ATEN_BRIDGE_INLINE void raise(Status status,
                                                      std::initializer_list<Part> parts);

/// Text of the last failure in this thread and this library; empty before the first.
inline std::string& last_error_text() {
  thread_local std::string text;
  return text;
}

/// "[2, 3]"; "[]" for a scalar.
[[gnu::cold]] ATEN_BRIDGE_INLINE std::string shape_text(const int64_t* sizes, int ndim);

/// "1 input", "2 outputs".
[[gnu::cold]] ATEN_BRIDGE_INLINE std::string count_text(int64_t count, const char* noun);

}  // namespace aten_bridge::detail

/// The full text of the last failure in the calling thread, whatever the host made of it; "" if
/// there was none. Each kernel library exports its own. Valid until the next failure.
extern "C" ATEN_BRIDGE_PUBLIC inline const char* aten_bridge_last_error() {
  return aten_bridge::detail::last_error_text().c_str();
}

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CORE_ERRORS_H_
