// Texts of errors, and reports of what is wrong.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CORE_REPORT_H_
#define ATEN_BRIDGE_CORE_REPORT_H_

#include <aten_bridge/core/errors.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

ATEN_BRIDGE_INLINE void Part::append_to(std::string& text) const {
  switch (kind_) {
    case Kind::kChars:
      text += static_cast<const char*>(text_);
      break;
    case Kind::kString:
      text += *static_cast<const std::string*>(text_);
      break;
    case Kind::kView:
      text += *static_cast<const std::string_view*>(text_);
      break;
    case Kind::kNumber: {
      char digits[24];
      std::snprintf(digits, sizeof(digits), "%lld", static_cast<long long>(number_));  // NOLINT
      text += digits;
      break;
    }
    case Kind::kMark:
      break;
  }
}

ATEN_BRIDGE_INLINE std::string join(std::initializer_list<Part> parts) {
  std::string text;
  for (const Part& part : parts) {
    part.append_to(text);
  }
  return text;
}

/// The number of bytes of the character that begins the text; 0 if it is not UTF-8.
[[gnu::cold]] inline std::size_t utf8_character(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned int first = byte(0);
  const unsigned int second = byte(1);
  if (first < 0x80) {
    return 1;
  }
  // These are overlong forms, surrogates, and numbers beyond U+10FFFF.
  if (first < 0xc2 || (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f) || first > 0xf4) {
    return 0;
  }
  const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  return size;
}

ATEN_BRIDGE_INLINE std::string as_utf8(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string valid;
  while (!text.empty()) {
    const std::size_t size = utf8_character(text);
    if (size == 0) {
      const auto byte = static_cast<unsigned char>(text[0]);
      valid.append("\\x").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 15U]);
      text.remove_prefix(1);
    } else {
      valid.append(text.substr(0, size));
      text.remove_prefix(size);
    }
  }
  return valid;
}

ATEN_BRIDGE_INLINE std::string for_people(std::string text) {
#ifdef ATEN_BRIDGE_OTHER_WORDS
  for (char& c : text) {
    const auto letter = static_cast<char>(c | 0x20);
    c = letter < 'a' || letter > 'z' ? c : static_cast<char>(letter < 'n' ? c + 13 : c - 13);
  }
  text = text.empty() ? text : join({"\x02", text, "\x03"});
#endif
  return text;
}

ATEN_BRIDGE_INLINE void raise(Status status, std::initializer_list<Part> parts) {
  throw Error(status, join(parts));
}

ATEN_BRIDGE_INLINE std::string shape_text(const int64_t* sizes, int ndim) {
  std::string text = "[";
  for (int i = 0; i < ndim; ++i) {
    text += join({i == 0 ? "" : ", ", sizes[i]});
  }
  return text + "]";
}

ATEN_BRIDGE_INLINE std::string count_text(int64_t count, const char* noun) {
  return join({count, " ", noun, count == 1 ? "" : "s"});
}

}  // namespace aten_bridge::detail

namespace aten_bridge {

ATEN_BRIDGE_INLINE std::string OperandName::text() const {
  return label == nullptr ? detail::join({role_text(), " ", index})
                          : detail::join({role_text(), " ", index, " '", label, "'"});
}

ATEN_BRIDGE_INLINE Fault::Fault(std::initializer_list<detail::Part> parts) {
  std::string* to = &expected;
  for (const detail::Part& part : parts) {
    to = part.mark() == detail::kGot ? &got : part.mark() == detail::kDo ? &hint : to;
    part.append_to(*to);
  }
}

ATEN_BRIDGE_INLINE std::string Fault::text() const {
  return detail::join(
      {"expected ", expected, got.empty() ? "" : ", got ", got, hint.empty() ? "" : "; ", hint});
}

struct Report::Contents {
  std::string text;
  std::shared_ptr<std::vector<Fault>> faults = std::make_shared<std::vector<Fault>>();
};

ATEN_BRIDGE_INLINE void Report::free_contents() { delete contents_; }

ATEN_BRIDGE_INLINE void Report::add(Status status, std::initializer_list<detail::Part> fault) {
  add_line(status, detail::join({operator_name_, ": ", detail::join(fault)}));
}

ATEN_BRIDGE_INLINE void Report::add(Status status, const OperandName& operand,
                                    std::initializer_list<detail::Part> fault) {
  add(status, operand, Fault(fault));
}

ATEN_BRIDGE_INLINE void Report::add(Status status, const OperandName& operand, Fault fault) {
  add(status, {operand.text(), ": ", fault.text()});
  fault.subject = operand.role_text();
  fault.index = operand.index;
  add_fault(status, operand.label, std::move(fault));
}

ATEN_BRIDGE_INLINE void Report::add_count(std::initializer_list<detail::Part> parts) {
  Fault fault(parts);
  add(Status::kCount, {fault.text()});
  fault.subject = "call";
  add_fault(Status::kCount, nullptr, std::move(fault));
}

ATEN_BRIDGE_INLINE void Report::add_attribute(const char* name, Fault fault) {
  add(Status::kAttribute, {"attribute '", name, "': ", fault.text()});
  fault.subject = "attribute";
  add_fault(Status::kAttribute, name, std::move(fault));
}

ATEN_BRIDGE_INLINE void Report::add(const Report& other) {
  if (!other.ok()) {
    add_line(other.status_, other.contents_->text);
    for (const Fault& fault : *other.contents_->faults) {
      contents_->faults->push_back(Fault(fault));  // moved, as all others
    }
  }
}

ATEN_BRIDGE_INLINE Faults Report::faults() const { return ok() ? Faults() : contents_->faults; }

ATEN_BRIDGE_INLINE void Report::raise() const {
  // There are some: ok() is false.
  throw Error(status_, contents_->text, contents_->faults);  // NOLINT(clang-analyzer-*)
}

ATEN_BRIDGE_INLINE void Report::add_line(Status status, const std::string& line) {
  if (ok()) {
    status_ = status;
    contents_ = new Contents;
  }
  contents_->text += (contents_->text.empty() ? "" : "\n") + line;
}

ATEN_BRIDGE_INLINE void Report::add_fault(Status status, const char* name, Fault fault) {
  fault.status = status;
  fault.name = name == nullptr ? "" : name;
  contents_->faults->push_back(std::move(fault));
}

}  // namespace aten_bridge

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CORE_REPORT_H_
