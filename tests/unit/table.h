// The table of a library, as hosts/introspection/introspection.h has it, for tests without PyTorch.
#ifndef ATEN_BRIDGE_TESTS_UNIT_TABLE_H_
#define ATEN_BRIDGE_TESTS_UNIT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>

struct PythonInput {
  const char* text;
  int ndim;
  const int64_t* sizes;
};
struct PythonAttribute {
  const char* name;
  int type;
  int64_t size;
  const void* data;
};
struct PythonQuestion {
  const char* results;
  const char* operands;
  bool is_exact;
  const PythonInput* inputs;
  int input_count;
  const PythonAttribute* attributes;
  int attribute_count;
};
struct LibraryTable {
  int interface;
  const char* version;
  void (*release)(const char* qualified_name, int device);
  const char* (*describe)();
  const char* (*infer)(int kernel, const PythonQuestion* question, int* status);
  const char* (*register_with_pytorch)(int replace);
  const char* (*failures)();

  /// The number of a kernel, which has to be there.
  int number_of(const std::string& kernel) const {
    const std::string text = describe();
    const std::size_t end = text.find("{\"name\": \"" + kernel + "\"");
    int number = 0;
    for (std::size_t at = 0; (at = text.find("{\"name\": ", at)) < end; ++at) {
      ++number;
    }
    return end == std::string::npos ? -1 : number;
  }

  /// What is said of the kernel of a number.
  std::string description(int number) const {
    const std::string begin = "{\"name\": ";
    std::string text = describe();
    for (; number >= 0; --number) {
      text = text.substr(text.find(begin, 1));
    }
    const std::size_t end = text.find(", " + begin);
    return text.substr(0, end == std::string::npos ? text.size() - 2 : end);
  }
};

#endif  // ATEN_BRIDGE_TESTS_UNIT_TABLE_H_
