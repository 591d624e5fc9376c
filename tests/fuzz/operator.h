// Operators of a network, as the fuzzer calls them: a kernel's C functions, what is handed to it,
// and what it has to give.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_OPERATOR_H_
#define ATEN_BRIDGE_TESTS_FUZZ_OPERATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../unit/table.h"
#include "extra.h"
#include "operand.h"

extern "C" const LibraryTable* aten_bridge_library();

namespace fuzz {

using Kernel = int(int, void**, int*, int64_t**, const char**, void*, void*);
using Init = int(int*, int64_t**, const char**, void*);
using Infer = const char*(const PythonQuestion*, int*);
using Describe = const char*();

/// The two hooks of MindSpore's, which return other types for one output than for several.
using InferShapes = std::vector<Ints>(int*, int64_t**, void*);
using InferTypes = std::vector<int>(std::vector<int>, void*);

inline std::vector<Ints> as_lists(Ints of_one) { return {std::move(of_one)}; }
inline std::vector<Ints> as_lists(std::vector<Ints> of_several) { return of_several; }
inline std::vector<int> as_list(int of_one) { return {of_one}; }
inline std::vector<int> as_list(std::vector<int> of_several) { return of_several; }

struct Expected {
  Outcome outcome = Outcome::kAny;
  std::vector<Operand> outputs;
  bool is_inferred = true;  // whether it can be told before a call
};

struct Operator;

/// What the fuzzer has to know of a kernel beside its results.
enum Trait : unsigned int {
  kPlain = 0,
  kHasMeta = 1,
  kWritesAny = 2,       // outputs of other dtypes and shapes are right, too
  kIsRaw = 4,           // takes its operands as they lie
  kCountsCalls = 8,     // its results differ from call to call
  kIsBare = 16,         // a C function of its own, whose errors have other names
  kTrustsOutputs = 32,  // writes as much as it has to give, whatever the outputs are
  kGivesOneEach = 64,   // has as many outputs as inputs, but for the last of these
  kIsSparse = 128       // computes with sparse tensors
};

struct KernelUnderTest {
  const char* name;
  Kernel* call;
  Init* init;
  InferShapes* infer_shapes;
  InferTypes* infer_types;
  Infer* infer;
  Describe* describe;
  std::vector<Operand> (*choose)(Choices&);  // inputs
  Expected (*expect)(const std::vector<Operand>&, const Operator&);
  unsigned int traits = kPlain;
  void (*set_attributes)(Extra&, Choices&) = nullptr;
  int outputs = 1;

  bool is(Trait trait) const { return (traits & trait) != 0; }
};

/// One operator of a network: a kernel with its attributes and what the host keeps for it.
struct Operator {
  const KernelUnderTest* kernel = nullptr;
  std::unique_ptr<Extra> extra;
  bool is_prepared = false;
  std::optional<int64_t> count = 0;  // how many calls; none if it is not known
};

/// A fuzz target's.
const std::vector<KernelUnderTest>& kernels();

/// Those of attributes and numbers; part of the above.
std::vector<KernelUnderTest> kernels_of_values();

}  // namespace fuzz

/// Declares the C functions of a kernel.
#define FUZZ_DECLARE(Name)                                        \
  extern "C" fuzz::Kernel Name;                                   \
  extern "C" fuzz::Init Name##Init;                               \
  extern "C" fuzz::Ints Name##InferShape(int*, int64_t**, void*); \
  extern "C" int Name##InferType(std::vector<int>, void*);
/// The same of one with several outputs.
#define FUZZ_DECLARE_SEVERAL(Name)                                             \
  extern "C" fuzz::Kernel Name;                                                \
  extern "C" fuzz::Init Name##Init;                                            \
  extern "C" std::vector<fuzz::Ints> Name##InferShape(int*, int64_t**, void*); \
  extern "C" std::vector<int> Name##InferType(std::vector<int>, void*);
/// What KernelUnderTest begins with.
#define FUZZ_FUNCTIONS(Name) \
#Name, Name, Name##Init,                                                                      \
      [](int* ndims, int64_t** shapes, void* extra) {                                           \
        return fuzz::as_lists(Name##InferShape(ndims, shapes, extra));                          \
      },                                                                                        \
      [](std::vector<int> types, void* extra) {                                                 \
        return fuzz::as_list(Name##InferType(std::move(types), extra));                         \
      },                                                                                        \
      [](const PythonQuestion* question, int* status) {                                         \
        static const int number = aten_bridge_library()->number_of(#Name);                      \
        return aten_bridge_library()->infer(number, question, status);                          \
      },                                                                                        \
      [] {                                                                                      \
        static const std::string description = aten_bridge_library()->description(              \
            aten_bridge_library()->number_of(#Name));                                           \
        return description.c_str();                                                             \
      }

#endif  // ATEN_BRIDGE_TESTS_FUZZ_OPERATOR_H_
