// The bridge's declarations of XLA's structures beside those of a jaxlib: compiled, not run.
#include <aten_bridge/hosts/jax/abi.h>
#include <xla/ffi/api/c_api.h>

#include <cstddef>
#include <type_traits>

#if XLA_FFI_API_MINOR >= 4  // since jaxlib 0.11 some have other names
using XLA_FFI_Extension_Base = XLA_FFI_InternalExtension;
using XLA_FFI_Error_GetMessage_Args = XLA_FFI_Error_GetDetails_Args;
#define XLA_FFI_Error_GetMessage XLA_FFI_Error_GetDetails
#endif

namespace {

namespace xla = aten_bridge::detail::xla;

// XLA's may have more at its end.
#define SAME_MEMBER(ours, our_member, theirs, their_member)                             \
  static_assert(offsetof(xla::ours, our_member) == offsetof(theirs, their_member), ""); \
  static_assert(sizeof(xla::ours::our_member) == sizeof(theirs::their_member), "");     \
  static_assert(sizeof(xla::ours) <= sizeof(theirs), "")

SAME_MEMBER(Extension, type, XLA_FFI_Extension_Base, type);
SAME_MEMBER(Extension, next, XLA_FFI_Extension_Base, next);
static_assert(xla::Extension::kMetadata == XLA_FFI_Extension_Metadata, "");

SAME_MEMBER(MetadataExtension, base, XLA_FFI_Metadata_Extension, extension_base);
SAME_MEMBER(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME_MEMBER(Metadata, struct_size, XLA_FFI_Metadata, struct_size);
SAME_MEMBER(Metadata, version, XLA_FFI_Metadata, api_version);
SAME_MEMBER(Metadata, traits, XLA_FFI_Metadata, traits);

SAME_MEMBER(Version, struct_size, XLA_FFI_Api_Version, struct_size);
SAME_MEMBER(Version, extensions, XLA_FFI_Api_Version, extension_start);
SAME_MEMBER(Version, major, XLA_FFI_Api_Version, major_version);
SAME_MEMBER(Version, minor, XLA_FFI_Api_Version, minor_version);
static_assert(XLA_FFI_API_MAJOR == 0 && XLA_FFI_API_MINOR >= 1, "");

SAME_MEMBER(ErrorCreateArgs, struct_size, XLA_FFI_Error_Create_Args, struct_size);
SAME_MEMBER(ErrorCreateArgs, extensions, XLA_FFI_Error_Create_Args, extension_start);
SAME_MEMBER(ErrorCreateArgs, message, XLA_FFI_Error_Create_Args, message);
SAME_MEMBER(ErrorCreateArgs, code, XLA_FFI_Error_Create_Args, errc);
static_assert(xla::ErrorCreateArgs::kInvalidArgument == XLA_FFI_Error_Code_INVALID_ARGUMENT, "");

SAME_MEMBER(ErrorGetMessageArgs, extensions, XLA_FFI_Error_GetMessage_Args, extension_start);
SAME_MEMBER(ErrorGetMessageArgs, error, XLA_FFI_Error_GetMessage_Args, error);
SAME_MEMBER(ErrorGetMessageArgs, message, XLA_FFI_Error_GetMessage_Args, message);
SAME_MEMBER(ErrorDestroyArgs, extensions, XLA_FFI_Error_Destroy_Args, extension_start);
SAME_MEMBER(ErrorDestroyArgs, error, XLA_FFI_Error_Destroy_Args, error);

SAME_MEMBER(StreamGetArgs, extensions, XLA_FFI_Stream_Get_Args, extension_start);
SAME_MEMBER(StreamGetArgs, context, XLA_FFI_Stream_Get_Args, ctx);
SAME_MEMBER(StreamGetArgs, stream, XLA_FFI_Stream_Get_Args, stream);

SAME_MEMBER(Api, struct_size, XLA_FFI_Api, struct_size);
SAME_MEMBER(Api, extensions, XLA_FFI_Api, extension_start);
SAME_MEMBER(Api, version, XLA_FFI_Api, api_version);
SAME_MEMBER(Api, create_error, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME_MEMBER(Api, get_error_message, XLA_FFI_Api, XLA_FFI_Error_GetMessage);
SAME_MEMBER(Api, destroy_error, XLA_FFI_Api, XLA_FFI_Error_Destroy);
SAME_MEMBER(Api, get_stream, XLA_FFI_Api, XLA_FFI_Stream_Get);

SAME_MEMBER(Buffer, struct_size, XLA_FFI_Buffer, struct_size);
SAME_MEMBER(Buffer, extensions, XLA_FFI_Buffer, extension_start);
SAME_MEMBER(Buffer, dtype, XLA_FFI_Buffer, dtype);
SAME_MEMBER(Buffer, data, XLA_FFI_Buffer, data);
SAME_MEMBER(Buffer, rank, XLA_FFI_Buffer, rank);
SAME_MEMBER(Buffer, sizes, XLA_FFI_Buffer, dims);
static_assert(xla::Args::kBuffer == XLA_FFI_ArgType_BUFFER, "");
static_assert(xla::Args::kBuffer == XLA_FFI_RetType_BUFFER, "");

// These two are members of the frame, and cannot grow.
SAME_MEMBER(Args, size, XLA_FFI_Args, size);
SAME_MEMBER(Args, types, XLA_FFI_Args, types);
SAME_MEMBER(Args, items, XLA_FFI_Args, args);
SAME_MEMBER(Args, items, XLA_FFI_Rets, rets);
static_assert(sizeof(xla::Args) == sizeof(XLA_FFI_Args), "");
static_assert(sizeof(xla::Args) == sizeof(XLA_FFI_Rets), "");
SAME_MEMBER(Attributes, size, XLA_FFI_Attrs, size);
SAME_MEMBER(Attributes, types, XLA_FFI_Attrs, types);
SAME_MEMBER(Attributes, names, XLA_FFI_Attrs, names);
SAME_MEMBER(Attributes, items, XLA_FFI_Attrs, attrs);
static_assert(sizeof(xla::Attributes) == sizeof(XLA_FFI_Attrs), "");
static_assert(xla::Attributes::kArray == static_cast<int>(XLA_FFI_AttrType_ARRAY), "");
static_assert(xla::Attributes::kDictionary == static_cast<int>(XLA_FFI_AttrType_DICTIONARY), "");
static_assert(xla::Attributes::kScalar == static_cast<int>(XLA_FFI_AttrType_SCALAR), "");
static_assert(xla::Attributes::kString == static_cast<int>(XLA_FFI_AttrType_STRING), "");

// These have no size of their own.
SAME_MEMBER(ByteSpan, data, XLA_FFI_ByteSpan, ptr);
SAME_MEMBER(ByteSpan, size, XLA_FFI_ByteSpan, len);
SAME_MEMBER(Scalar, dtype, XLA_FFI_Scalar, dtype);
SAME_MEMBER(Scalar, value, XLA_FFI_Scalar, value);
SAME_MEMBER(Array, dtype, XLA_FFI_Array, dtype);
SAME_MEMBER(Array, size, XLA_FFI_Array, size);
SAME_MEMBER(Array, data, XLA_FFI_Array, data);

SAME_MEMBER(CallFrame, struct_size, XLA_FFI_CallFrame, struct_size);
SAME_MEMBER(CallFrame, extensions, XLA_FFI_CallFrame, extension_start);
SAME_MEMBER(CallFrame, api, XLA_FFI_CallFrame, api);
SAME_MEMBER(CallFrame, context, XLA_FFI_CallFrame, ctx);
SAME_MEMBER(CallFrame, stage, XLA_FFI_CallFrame, stage);
SAME_MEMBER(CallFrame, inputs, XLA_FFI_CallFrame, args);
SAME_MEMBER(CallFrame, outputs, XLA_FFI_CallFrame, rets);
SAME_MEMBER(CallFrame, attributes, XLA_FFI_CallFrame, attrs);
static_assert(xla::CallFrame::kExecute == XLA_FFI_ExecutionStage_EXECUTE, "");

#undef SAME_MEMBER

constexpr bool is(int number, const char* name, aten_bridge::DType dtype) {
  return xla::kDTypes[number].name == name && xla::kDTypes[number].dtype == dtype;
}
using aten_bridge::DType;
static_assert(is(XLA_FFI_DataType_INVALID, "invalid", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_PRED, "bool", DType::kBool), "");
static_assert(is(XLA_FFI_DataType_S8, "int8", DType::kInt8), "");
static_assert(is(XLA_FFI_DataType_S16, "int16", DType::kInt16), "");
static_assert(is(XLA_FFI_DataType_S32, "int32", DType::kInt32), "");
static_assert(is(XLA_FFI_DataType_S64, "int64", DType::kInt64), "");
static_assert(is(XLA_FFI_DataType_U8, "uint8", DType::kUInt8), "");
static_assert(is(XLA_FFI_DataType_U16, "uint16", DType::kUInt16), "");
static_assert(is(XLA_FFI_DataType_U32, "uint32", DType::kUInt32), "");
static_assert(is(XLA_FFI_DataType_U64, "uint64", DType::kUInt64), "");
static_assert(is(XLA_FFI_DataType_F16, "float16", DType::kFloat16), "");
static_assert(is(XLA_FFI_DataType_F32, "float32", DType::kFloat32), "");
static_assert(is(XLA_FFI_DataType_F64, "float64", DType::kFloat64), "");
static_assert(is(XLA_FFI_DataType_BF16, "bfloat16", DType::kBFloat16), "");
static_assert(is(XLA_FFI_DataType_C64, "complex64", DType::kComplex64), "");
static_assert(is(XLA_FFI_DataType_C128, "complex128", DType::kComplex128), "");
static_assert(is(XLA_FFI_DataType_TOKEN, "token", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_F8E5M2, "float8_e5m2", DType::kFloat8E5M2), "");
static_assert(is(XLA_FFI_DataType_F8E4M3FN, "float8_e4m3fn", DType::kFloat8E4M3FN), "");
static_assert(is(XLA_FFI_DataType_S4, "int4", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_U4, "uint4", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_F8E4M3B11FNUZ, "float8_e4m3b11fnuz", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_F8E5M2FNUZ, "float8_e5m2fnuz", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_F8E4M3FNUZ, "float8_e4m3fnuz", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_S2, "int2", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_U2, "uint2", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_F8E4M3, "float8_e4m3", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_F8E3M4, "float8_e3m4", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_S1, "int1", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_U1, "uint1", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_F4E2M1FN, "float4_e2m1fn", DType::kNone), "");
static_assert(is(XLA_FFI_DataType_F8E8M0FNU, "float8_e8m0fnu", DType::kNone), "");

}  // namespace
