// Attributes of MindSpore's operators, read from its `extra`.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_ATTRIBUTES_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_ATTRIBUTES_H_

#include <aten_bridge/hosts/mindspore/abi.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Gets values from `extra`; each function is false where there is none, or one of another type.
class AotExtraReader {
 public:
  explicit AotExtraReader(AotExtra* extra) : extra_(extra) {}

  bool has(const char* name) const {
    bool found = false;
    return call(name, found, &AotExtra::has) && found;
  }

  bool read(const char* name, bool& to) const { return call(name, to, &AotExtra::get_bool); }
  bool read(const char* name, int64_t& to) const { return call(name, to, &AotExtra::get_int); }
  bool read(const char* name, double& to) const { return call(name, to, &AotExtra::get_float); }
  bool read(const char* name, std::string& to) const {
    return call(name, to, &AotExtra::get_string);
  }
  bool read(const char* name, std::vector<int64_t>& to) const {
    return call(name, to, &AotExtra::get_ints);
  }
  bool read(const char* name, std::vector<double>& to) const {
    return call(name, to, &AotExtra::get_floats);
  }
  bool read(const char* name, std::vector<std::vector<int64_t>>& to) const {
    return call(name, to, &AotExtra::get_int_lists);
  }
  bool read(const char* name, std::vector<std::vector<double>>& to) const {
    return call(name, to, &AotExtra::get_float_lists);
  }
  // MindSpore has no functions for these two: aten_bridge.mindspore, the Python module, passes
  // bools as ints, and strs as one of them.
  bool read(const char* name, std::vector<bool>& to) const {
    std::vector<int64_t> integers;
    return read(name, integers) && to_bools(integers, to);
  }
  bool read(const char* name, std::vector<std::string>& to) const {
    std::string text;
    return read(name, text) && split_strings(text, to);
  }

 private:
  // no_sanitize: the dynamic type of `extra` is a class of the host's, unknown here.
  template <class T, class R>
  [[gnu::cold]] __attribute__((no_sanitize("vptr"))) bool call(
      const char* name, T& value, R (AotExtra::*getter)(HostString&)) const {
    if (extra_ == nullptr) {
      return false;
    }
    HostString host_name(name);
    try {
      if constexpr (std::is_same_v<R, HostStringResult>) {
        alignas(HostStringResult) unsigned char memory[sizeof(HostStringResult)];
        std::memset(memory, 0xff, sizeof(memory));  // kUntouched
        // What memory held before an object's birth does not count, so that the compiler would
        // drop the memset.
        asm volatile("" : : "r"(memory) : "memory");
        auto* result = new (memory) HostStringResult((extra_->*getter)(host_name));
        value = result->text();
        result->free();
      } else if constexpr (std::is_same_v<R, T>) {
        value = (extra_->*getter)(host_name);
      } else {
        value = widen((extra_->*getter)(host_name));
      }
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  AotExtra* extra_;
};

[[gnu::cold]] ATEN_BRIDGE_INLINE bool MindSporeAttributes::has(const char* name) const {
  return AotExtraReader(extra_).has(name);
}

[[gnu::cold]] ATEN_BRIDGE_INLINE bool MindSporeAttributes::get_as(AttributeType type,
                                                                  const char* name,
                                                                  void* value) const {
  const AotExtraReader reader(extra_);
  return visit_attribute_type(type, value, [&](auto* to) { return reader.read(name, *to); });
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_ATTRIBUTES_H_
