// What a kernel under one of the two C++ ABIs reads of a host's attributes.
//
// The header is here a second time in the program, for another std::string: under another name.
#define aten_bridge ABI_NAME(aten_bridge_)
#define aten_bridge_last_error ABI_NAME(aten_bridge_last_error_)
#define ATEN_BRIDGE_CORE_ONLY
#include "abi.h"
// clang-format off
#include <aten_bridge.h>
// clang-format on

#include <string>
#include <vector>

namespace {

using aten_bridge::detail::MindSporeAttributes;

// Every getter, so that all but one or none meet an exception of the host's.
std::string all_of(const MindSporeAttributes& attributes, const char* name) {
  return '"' + std::string(name) + "\": " +
         (attributes.has(name) ? aten_bridge::detail::attribute_text(attributes, name) : "nothing");
}

// Whether no getter finds the attribute, or touches what it is given.
bool leaves_alone(const MindSporeAttributes& attributes, const char* name) {
  bool flag = true;
  int64_t integer = 5;
  double real = 0.5;
  std::string string = "before";
  std::vector<int64_t> integers = {1};
  return !attributes.get(name, flag) && !attributes.get(name, integer) &&
         !attributes.get(name, real) && !attributes.get(name, string) &&
         !attributes.get(name, integers) && flag && integer == 5 && real == 0.5 &&
         string == "before" && integers.size() == 1;
}

}  // namespace

extern "C" const char* ABI_NAME(read_all_)(void* extra) {
  static std::string text;
  const MindSporeAttributes attributes(extra);
  const std::string long_name(40, 'a');
  text.clear();
  for (const char* name :
       {"bool", "int", "float", "", "name of 15 long", "name of 16 chars", long_name.c_str(),
        "shared", "ints", "floats", "int lists", "float lists", "mixed", "missing"}) {
    text += all_of(attributes, name) + '\n';
  }
  for (const char* name : {"missing", "mixed", "another that is not there, with a long name"}) {
    text += leaves_alone(attributes, name) ? "left alone\n" : "touched\n";
  }
  return text.c_str();
}

extern "C" int ABI_NAME(read_often_)(void* extra, int times) {
  const MindSporeAttributes attributes(extra);
  int wrong = 0;
  for (int i = 0; i < times; ++i) {
    int64_t integer = 0;
    std::string empty = "not yet";
    std::string string;
    std::string shared;
    std::string null_inside;
    std::vector<int64_t> integers;
    const bool found =
        attributes.get("int", integer) && attributes.get("", empty) &&
        attributes.get("name of 15 long", string) && attributes.get("shared", shared) &&
        attributes.get("null inside", null_inside) && attributes.get("ints", integers);
    wrong += !found || attributes.has("missing") || integer != 7 || !empty.empty() ||
             string.size() != 15 || shared.size() != 40 || null_inside.size() != 3 ||
             integers.size() != 2;
  }
  return wrong;
}
