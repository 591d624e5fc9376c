// What JAX's compiler, XLA, calls kernels with: the structures of its FFI, of C, declared here.
//
// XLA grows them at their ends: each says in its first member how many bytes it has, which may be
// more than here. tests/jax/c_api.cpp compares them with xla/ffi/api/c_api.h of a jaxlib.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_JAX_ABI_H_
#define ATEN_BRIDGE_HOSTS_JAX_ABI_H_

#include <aten_bridge/core/dtypes.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail::xla {

struct Error;    // XLA's own
struct Context;  // the same

/// Something more that a structure comes with.
struct Extension {
  static constexpr int kMetadata = 1;

  std::size_t struct_size;
  int type;
  Extension* next;
};

/// A call that has this among its extensions asks what the handler is, and runs nothing.
struct MetadataExtension {
  Extension base;
  struct Metadata* metadata;
};

struct Version {
  std::size_t struct_size;
  Extension* extensions;
  int major;
  int minor;
};

struct Metadata {
  std::size_t struct_size;
  Version version;
  std::uint32_t traits;
};

struct ErrorCreateArgs {
  static constexpr int kInvalidArgument = 3;

  std::size_t struct_size;
  Extension* extensions;
  const char* message;
  int code;
};

struct ErrorGetMessageArgs {
  std::size_t struct_size;
  Extension* extensions;
  Error* error;
  const char* message;  // is written; the error's own
};

struct ErrorDestroyArgs {
  std::size_t struct_size;
  Extension* extensions;
  Error* error;
};

struct StreamGetArgs {
  std::size_t struct_size;
  Extension* extensions;
  Context* context;
  void* stream;  // is written
};

/// XLA's functions that the bridge calls, and the places of those between them.
struct Api {
  std::size_t struct_size;
  Extension* extensions;
  Version version;
  const void* internal;
  Error* (*create_error)(ErrorCreateArgs* arguments);
  void (*get_error_message)(ErrorGetMessageArgs* arguments);
  void (*destroy_error)(ErrorDestroyArgs* arguments);
  void (*register_handler)();
  Error* (*get_stream)(StreamGetArgs* arguments);
};

struct Buffer {
  std::size_t struct_size;
  Extension* extensions;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* sizes;
};

/// Inputs, or outputs, all of which are buffers.
struct Args {
  static constexpr int kBuffer = 1;

  std::size_t struct_size;
  Extension* extensions;
  int64_t size;
  int* types;
  void** items;
};

struct ByteSpan {
  const char* data;
  std::size_t size;
};

struct Scalar {
  int dtype;
  void* value;
};

struct Array {
  int dtype;
  std::size_t size;
  void* data;
};

struct Attributes {
  enum Type : int { kArray = 1, kDictionary = 2, kScalar = 3, kString = 4 };

  std::size_t struct_size;
  Extension* extensions;
  int64_t size;
  int* types;
  ByteSpan** names;
  void** items;  // an Array, Attributes, a Scalar or a ByteSpan
};

struct CallFrame {
  static constexpr int kExecute = 3;  // the other stages are before a program's first run

  std::size_t struct_size;
  Extension* extensions;
  const Api* api;
  Context* context;
  int stage;
  Args inputs;
  Args outputs;
  Attributes attributes;
};

/// Whether what a frame says of its arrays can be true. More operands than 2^20 are taken for
/// garbage.
inline bool is_well_formed(const CallFrame& frame) noexcept {
  constexpr int64_t kMostOperands = 1 << 20;
  const auto is_list = [](const auto& list, void** items) {
    return list.struct_size >= sizeof(list) && list.size >= 0 && list.size <= kMostOperands &&
           (list.size == 0 || (list.types != nullptr && items != nullptr));
  };
  return frame.struct_size >= sizeof(frame) && is_list(frame.inputs, frame.inputs.items) &&
         is_list(frame.outputs, frame.outputs.items) &&
         is_list(frame.attributes, frame.attributes.items) &&
         (frame.attributes.size == 0 || frame.attributes.names != nullptr);
}

/// A dtype of XLA's; `dtype` is kNone for those that PyTorch lacks.
struct XlaDType {
  std::string_view name;  // JAX's
  DType dtype;
};

inline constexpr int kBool = 1;
inline constexpr int kInt32 = 4;
inline constexpr int kInt64 = 5;
inline constexpr int kFloat32 = 11;
inline constexpr int kFloat64 = 12;

// By XLA's numbers.
inline constexpr XlaDType kDTypes[] = {
    {"invalid", DType::kNone},
    {"bool", DType::kBool},
    {"int8", DType::kInt8},
    {"int16", DType::kInt16},
    {"int32", DType::kInt32},
    {"int64", DType::kInt64},
    {"uint8", DType::kUInt8},
    {"uint16", DType::kUInt16},
    {"uint32", DType::kUInt32},
    {"uint64", DType::kUInt64},
    {"float16", DType::kFloat16},
    {"float32", DType::kFloat32},
    {"float64", DType::kFloat64},
    {"tuple", DType::kNone},
    {"opaque", DType::kNone},
    {"complex64", DType::kComplex64},
    {"bfloat16", DType::kBFloat16},
    {"token", DType::kNone},
    {"complex128", DType::kComplex128},
    {"float8_e5m2", DType::kFloat8E5M2},
    {"float8_e4m3fn", DType::kFloat8E4M3FN},
    {"int4", DType::kNone},
    {"uint4", DType::kNone},
    {"float8_e4m3b11fnuz", DType::kNone},
    {"float8_e5m2fnuz", DType::kNone},
    {"float8_e4m3fnuz", DType::kNone},
    {"int2", DType::kNone},
    {"uint2", DType::kNone},
    {"float8_e4m3", DType::kNone},
    {"float8_e3m4", DType::kNone},
    {"int1", DType::kNone},
    {"uint1", DType::kNone},
    {"float4_e2m1fn", DType::kNone},
    {"float8_e8m0fnu", DType::kNone},
};

static_assert(has_each_dtype(kDTypes),
              "aten_bridge: kDTypes of hosts/jax/abi.h has one entry for each dtype.");
static_assert(kDTypes[kBool].dtype == DType::kBool && kDTypes[kInt32].dtype == DType::kInt32 &&
                  kDTypes[kInt64].dtype == DType::kInt64 &&
                  kDTypes[kFloat32].dtype == DType::kFloat32 &&
                  kDTypes[kFloat64].dtype == DType::kFloat64,
              "aten_bridge: kDTypes of hosts/jax/abi.h has each dtype at its number.");

inline bool is_known(int number) noexcept {
  return number >= 0 && static_cast<std::size_t>(number) < sizeof(kDTypes) / sizeof(kDTypes[0]);
}

/// kNone for a dtype that PyTorch lacks.
inline DType dtype_of(int number) noexcept {
  return is_known(number) ? kDTypes[number].dtype : DType::kNone;
}

/// "int4", or "number 99" of a dtype that was not there when this was written.
[[gnu::cold]] inline std::string dtype_text(int number) {
  return is_known(number) ? std::string(kDTypes[number].name) : "number " + std::to_string(number);
}

}  // namespace aten_bridge::detail::xla

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_JAX_ABI_H_
