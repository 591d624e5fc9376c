// The part of aten_bridge.h that needs no PyTorch: calling convention, errors, dtypes, operands,
// attributes.
#define ATEN_BRIDGE_CORE_ONLY
#include <aten_bridge.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cfenv>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "abi/abi.h"
#include "arithmetic.h"

#ifdef C10_MACROS_EXPORT_H_
#error "The core must not include PyTorch."
#endif

namespace {

using aten_bridge::CallFrame;
using aten_bridge::DType;
using aten_bridge::Error;
using aten_bridge::OperandDesc;
using aten_bridge::OperandName;
using aten_bridge::Report;
using aten_bridge::Role;
using aten_bridge::Status;
using aten_bridge::detail::as_utf8;
using aten_bridge::detail::kDo;
using aten_bridge::detail::kGot;

// The text and the status of the Error that `body` throws.
template <class Body>
std::pair<Status, std::string> error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.status(), error.what()};
  }
  return {Status::kOk, ""};
}

using Failure = std::pair<Status, std::string>;

//===--- errors ---===//

TEST(ReportTest, WithoutFaultsNothingIsRaised) {
  const Report report("Op");
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(error_of([&] { report.raise_if_failed(); }), Failure(Status::kOk, ""));
}

TEST(ReportTest, AllFaultsAreRaisedAtOnceALineEachWithTheStatusOfTheFirst) {
  Report report("Op");
  report.add(Status::kShape, {"input 0", ": wrong"});
  report.add(Status::kDtype, {"output 1: wrong too"});
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(error_of([&] { report.raise_if_failed(); }),
            Failure(Status::kShape, "Op: input 0: wrong\nOp: output 1: wrong too"));
}

TEST(ReportTest, FaultsOfOperandsAndAttributesKeepTheirParts) {
  Report other("Op");
  other.add_attribute("k", {"an int", kGot, "nothing"});
  Report report("Op");
  report.add(Status::kShape, {"a line of another kind"});
  report.add(Status::kDtype, {Role::kInput, 1, "x"},
             {"float", 32, kGot, "\"int", 8, "\"", kDo, "convert", " it"});
  report.add(Status::kCount, {Role::kSlot, 2}, {"one of the call's ", 2});
  report.add(other);
  try {
    report.raise();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::kShape);
    EXPECT_STREQ(error.what(),
                 "Op: a line of another kind\n"
                 "Op: input 1 'x': expected float32, got \"int8\"; convert it\n"
                 "Op: slot 2: expected one of the call's 2\n"
                 "Op: attribute 'k': expected an int, got nothing");
    ASSERT_NE(error.faults(), nullptr);
    const std::vector<aten_bridge::Fault>& faults = *error.faults();
    ASSERT_EQ(faults.size(), 3U);
    EXPECT_EQ(faults[0].status, Status::kDtype);
    EXPECT_STREQ(faults[0].subject, "input");
    EXPECT_EQ(faults[0].index, 1);
    EXPECT_EQ(faults[0].name, "x");
    EXPECT_EQ(faults[0].expected, "float32");
    EXPECT_EQ(faults[0].got, "\"int8\"");
    EXPECT_EQ(faults[0].hint, "convert it");
    EXPECT_EQ(faults[1].status, Status::kCount);
    EXPECT_STREQ(faults[1].subject, "slot");
    EXPECT_EQ(faults[1].name, "");
    EXPECT_EQ(faults[1].got, "");
    EXPECT_EQ(faults[2].status, Status::kAttribute);
    EXPECT_STREQ(faults[2].subject, "attribute");
    EXPECT_EQ(faults[2].index, -1);
    EXPECT_EQ(faults[2].name, "k");
    EXPECT_EQ(faults[2].hint, "");
  }
}

TEST(OperandNameTest, NamesRoleAndPosition) {
  EXPECT_EQ((OperandName{Role::kInput, 0}.text()), "input 0");
  EXPECT_EQ((OperandName{Role::kOutput, 12}.text()), "output 12");
  EXPECT_EQ((OperandName{Role::kSlot, 3}.text()), "slot 3");
}

TEST(LastErrorTest, IsEmptyBeforeTheFirstFailure) { EXPECT_STREQ(aten_bridge_last_error(), ""); }

TEST(Utf8Test, CharactersOfEachLengthStay) {
  for (const std::string text :
       {"", "plain\n", "\xc2\x80\xdf\xbf", "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80",
        "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(as_utf8(text), text);
  }
  EXPECT_EQ(as_utf8(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Utf8Test, OtherBytesAreWrittenAsNumbers) {
  EXPECT_EQ(as_utf8("m\xfcller"), "m\\xfcller");
  EXPECT_EQ(as_utf8("\xc3"), "\\xc3");                      // the text ends
  EXPECT_EQ(as_utf8("\xe2\x82|\xff"), "\\xe2\\x82|\\xff");  // a character ends
  EXPECT_EQ(as_utf8("\x80\xc1\xbf"), "\\x80\\xc1\\xbf");    // longer than need be
  EXPECT_EQ(as_utf8("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");    // the same
  EXPECT_EQ(as_utf8("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf");
  EXPECT_EQ(as_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(as_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(as_utf8("\xf5\xbf\xbf\xbf"), "\\xf5\\xbf\\xbf\\xbf");
}

//===--- dtypes ---===//

struct Named {
  const char* name;
  DType dtype;
  std::size_t itemsize;
};

TEST(DTypeTest, EveryNameOfTheHostIsKnownWithItsSize) {
  const Named expected[] = {
      {"bool", DType::kBool, 1},
      {"uint8", DType::kUInt8, 1},
      {"int8", DType::kInt8, 1},
      {"uint16", DType::kUInt16, 2},
      {"int16", DType::kInt16, 2},
      {"uint32", DType::kUInt32, 4},
      {"int32", DType::kInt32, 4},
      {"uint64", DType::kUInt64, 8},
      {"int64", DType::kInt64, 8},
      {"float16", DType::kFloat16, 2},
      {"bfloat16", DType::kBFloat16, 2},
      {"float32", DType::kFloat32, 4},
      {"float64", DType::kFloat64, 8},
      {"complex64", DType::kComplex64, 8},
      {"complex128", DType::kComplex128, 16},
      {"float8e4m3fn", DType::kFloat8E4M3FN, 1},
      {"float8e5m2", DType::kFloat8E5M2, 1},
      {"none", DType::kNone, 0},
  };
  EXPECT_EQ(std::size(expected), std::size(aten_bridge::detail::kDTypes));
  for (const Named& named : expected) {
    const auto* info = aten_bridge::detail::find_dtype(named.name);
    ASSERT_NE(info, nullptr) << named.name;
    EXPECT_EQ(info->dtype, named.dtype) << named.name;
    EXPECT_EQ(aten_bridge::dtype_name(named.dtype), named.name);
    EXPECT_EQ(aten_bridge::dtype_itemsize(named.dtype), named.itemsize) << named.name;
  }
}

TEST(DTypeTest, OlderHostsMeanThirtyTwoBitsWithoutAWidth) {
  EXPECT_EQ(aten_bridge::detail::find_dtype("int")->dtype, DType::kInt32);
  EXPECT_EQ(aten_bridge::detail::find_dtype("uint")->dtype, DType::kUInt32);
  EXPECT_EQ(aten_bridge::detail::find_dtype("float")->dtype, DType::kFloat32);
}

TEST(DTypeTest, NothingIsGuessed) {
  for (const char* name : {"hifloat8", "int4", "string", "typetype", "double", "half", "Float32",
                           "float3", "float320", "", " int8", "complex"}) {
    EXPECT_EQ(aten_bridge::detail::find_dtype(name), nullptr) << name;
  }
}

TEST(DTypeTest, TableOfAHostHasEachDtypeOnce) {
  Named table[std::size(aten_bridge::detail::kDTypes)] = {};  // with one entry for no tensor
  for (std::size_t i = 0; i < std::size(table); ++i) {
    EXPECT_EQ(aten_bridge::detail::kDTypes[i].dtype, static_cast<DType>(i));
    table[i].dtype = static_cast<DType>(i);
  }
  EXPECT_TRUE(aten_bridge::detail::has_each_dtype(table));
  table[1].dtype = DType::kFloat8E5M2;
  EXPECT_FALSE(aten_bridge::detail::has_each_dtype(table)) << "no bool, and two of another";
  table[1].dtype = DType::kNone;
  EXPECT_FALSE(aten_bridge::detail::has_each_dtype(table)) << "no bool";
}

//===--- the call frame ---===//

// A call of two operands: float32 [2, 3] and a scalar int64.
class CallFrameTest : public testing::Test {
 protected:
  // As MindSpore's AotExtra: a virtual table, then a std::vector.
  struct Extra {
    const void* virtual_table = nullptr;
    std::vector<std::size_t> workspaces;
  };

  CallFrame frame(int nparam, void* extra = nullptr) {
    return {"Op", nparam, params, ndims, shapes, dtypes, /*stream=*/&stream, extra};
  }

  // Reads operand 0 after a test has changed it.
  Failure fault_of_first() {
    Report report("Op");
    OperandDesc desc;
    const bool sound = frame(2).read(0, {Role::kInput, 0}, desc, report);
    EXPECT_EQ(sound, report.ok());
    return error_of([&] { report.raise_if_failed(); });
  }

  float values[6] = {};
  int64_t scalar = 7;
  int stream = 0;
  void* params[4] = {values, &scalar, nullptr, nullptr};
  int ndims[2] = {2, 0};
  int64_t sizes[2] = {2, 3};
  int64_t* shapes[2] = {sizes, nullptr};
  const char* dtypes[2] = {"float32", "int64"};
};

TEST_F(CallFrameTest, ReadsWhatTheHostPasses) {
  const CallFrame call = frame(2);
  EXPECT_EQ(call.size(), 2);
  EXPECT_EQ(call.workspace_count(), 0);
  EXPECT_EQ(call.stream(), &stream);
  EXPECT_STREQ(call.operator_name(), "Op");

  Report report("Op");
  OperandDesc desc;
  ASSERT_TRUE(call.read(0, {Role::kInput, 0}, desc, report));
  EXPECT_EQ(desc.data, values);
  EXPECT_EQ(desc.sizes, sizes);
  EXPECT_EQ(desc.ndim, 2);
  EXPECT_EQ(desc.numel, 6);
  EXPECT_EQ(desc.dtype, DType::kFloat32);
  EXPECT_EQ(desc.text(), "float32 [2, 3]");
}

TEST_F(CallFrameTest, ScalarHasANullShapeAndOneElement) {
  Report report("Op");
  OperandDesc desc;
  ASSERT_TRUE(frame(2).read(1, {Role::kInput, 1}, desc, report));
  EXPECT_EQ(desc.ndim, 0);
  EXPECT_EQ(desc.numel, 1);
  EXPECT_EQ(desc.text(), "int64 []");
}

TEST_F(CallFrameTest, EmptyTensorMayHaveANullPointer) {
  sizes[1] = 0;
  params[0] = nullptr;
  Report report("Op");
  OperandDesc desc;
  ASSERT_TRUE(frame(2).read(0, {Role::kInput, 0}, desc, report));
  EXPECT_EQ(desc.numel, 0);
}

TEST_F(CallFrameTest, NoneIsAnOperandOfItsOwn) {
  dtypes[1] = "none";
  params[1] = nullptr;
  Report report("Op");
  OperandDesc desc;
  ASSERT_TRUE(frame(2).read(1, {Role::kInput, 1}, desc, report));
  EXPECT_TRUE(desc.is_none());
  EXPECT_EQ(desc.text(), "None");
}

TEST_F(CallFrameTest, WorkspacesAreNotCountedAsOperands) {
  Extra extra;
  extra.workspaces = {100, 0};
  params[2] = values;
  const CallFrame call = frame(4, &extra);
  EXPECT_EQ(call.size(), 2);
  EXPECT_EQ(call.workspace_count(), 2);
  EXPECT_EQ(call.workspace(0), values);
  EXPECT_EQ(call.workspace_bytes(0), 100);
  EXPECT_EQ(call.workspace_bytes(1), 0);
}

TEST_F(CallFrameTest, ExtraWithoutWorkspacesIsOrdinary) {
  Extra extra;
  EXPECT_EQ(frame(2, &extra).size(), 2);
}

TEST_F(CallFrameTest, NoOperandsAtAllNeedNoArrays) {
  EXPECT_EQ(CallFrame("Op", 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr).size(), 0);
}

TEST_F(CallFrameTest, NegativeCountIsAnError) {
  EXPECT_EQ(error_of([&] { frame(-1); }),
            Failure(Status::kCount, "Op: expected 0 or more slots, got -1"));
}

TEST_F(CallFrameTest, MoreWorkspacesThanSlotsIsAnError) {
  Extra extra;
  extra.workspaces = {1, 2, 3};
  EXPECT_EQ(error_of([&] { frame(2, &extra); }),
            Failure(Status::kCount,
                    "Op: expected `extra` to list the workspaces of a call with 2 slots, got "
                    "something else than MindSpore 2.10 passes"));
}

TEST_F(CallFrameTest, ForeignExtraIsAnError) {
  void* words[3] = {nullptr, reinterpret_cast<void*>(0x7), reinterpret_cast<void*>(0x3)};
  EXPECT_EQ(error_of([&] { frame(1, static_cast<void*>(words)); }),
            Failure(Status::kCount,
                    "Op: expected `extra` to list the workspaces of a call with 1 slot, got "
                    "something else than MindSpore 2.10 passes"));
}

TEST_F(CallFrameTest, NullParamsIsAnError) {
  EXPECT_EQ(
      error_of([&] { CallFrame("Op", 2, nullptr, ndims, shapes, dtypes, nullptr, nullptr); }),
      Failure(Status::kNullPointer, "Op: expected pointers to the operands, got a null `params`"));
}

TEST_F(CallFrameTest, NullMetadataIsAnError) {
  const Failure expected(Status::kNullPointer,
                         "Op: expected `ndims`, `shapes` and `dtypes`, got a null pointer");
  EXPECT_EQ(
      error_of([&] { CallFrame("Op", 2, params, nullptr, shapes, dtypes, nullptr, nullptr); }),
      expected);
  EXPECT_EQ(error_of([&] { CallFrame("Op", 2, params, ndims, nullptr, dtypes, nullptr, nullptr); }),
            expected);
  EXPECT_EQ(error_of([&] { CallFrame("Op", 2, params, ndims, shapes, nullptr, nullptr, nullptr); }),
            expected);
}

//===--- one operand ---===//

TEST_F(CallFrameTest, NegativeRankIsAnError) {
  ndims[0] = -1;
  EXPECT_EQ(fault_of_first(),
            Failure(Status::kShape, "Op: input 0: expected a rank from 0 to 64, got -1"));
}

TEST_F(CallFrameTest, GarbageRankIsAnErrorBeforeAnySizeIsRead) {
  ndims[0] = 1678780352;
  shapes[0] = reinterpret_cast<int64_t*>(0x21);
  EXPECT_EQ(fault_of_first(),
            Failure(Status::kShape, "Op: input 0: expected a rank from 0 to 64, got 1678780352"));
}

TEST_F(CallFrameTest, RanksUpToSixtyFourAreRead) {
  std::vector<int64_t> ones(64, 1);
  ndims[0] = 64;
  shapes[0] = ones.data();
  EXPECT_EQ(fault_of_first(), Failure(Status::kOk, ""));
  ndims[0] = 65;
  EXPECT_EQ(fault_of_first().first, Status::kShape);
}

TEST_F(CallFrameTest, NullShapeOfATensorIsAnError) {
  shapes[0] = nullptr;
  EXPECT_EQ(fault_of_first(),
            Failure(Status::kShape, "Op: input 0: expected 2 sizes, got a null shape"));
}

TEST_F(CallFrameTest, NegativeSizeIsAnError) {
  sizes[1] = -1;
  EXPECT_EQ(
      fault_of_first(),
      Failure(Status::kShape, "Op: input 0: expected sizes of 0 or more, got float32 [2, -1]"));
}

TEST_F(CallFrameTest, OverflowingProductIsAnError) {
  sizes[0] = sizes[1] = int64_t{1} << 32;
  EXPECT_EQ(fault_of_first(),
            Failure(Status::kShape,
                    "Op: input 0: expected fewer than 2^63 bytes, got float32 [4294967296, "
                    "4294967296]"));
}

TEST_F(CallFrameTest, LargestProductThatFitsIsRead) {
  dtypes[0] = "int8";
  sizes[0] = INT64_MAX;
  sizes[1] = 1;
  EXPECT_EQ(fault_of_first(), Failure(Status::kOk, ""));
  dtypes[0] = "int16";
  EXPECT_EQ(fault_of_first().first, Status::kShape);
}

TEST_F(CallFrameTest, SizeOfZeroDoesNotHideOverflowingStrides) {
  int64_t huge[3] = {0, int64_t{1} << 32, int64_t{1} << 32};
  ndims[0] = 3;
  shapes[0] = huge;
  EXPECT_EQ(fault_of_first().first, Status::kShape);
}

TEST_F(CallFrameTest, NullPointerToElementsIsAnError) {
  params[0] = nullptr;
  EXPECT_EQ(fault_of_first(),
            Failure(Status::kNullPointer,
                    "Op: input 0: expected a pointer to 6 elements, got null with float32 [2, 3]"));
}

TEST_F(CallFrameTest, DtypesOutsideTheTableAreErrorsThatNameThem) {
  for (const std::string name : {"hifloat8", "int4", "foo", ""}) {
    dtypes[0] = name.c_str();
    EXPECT_EQ(fault_of_first(),
              Failure(Status::kDtype,
                      "Op: input 0: expected bool|uint8|int8|uint16|int16|uint32|int32|uint64|"
                      "int64|float16|bfloat16|float32|float64|complex64|complex128|float8e4m3fn|"
                      "float8e5m2, got \"" +
                          name + "\" with shape [2, 3]"));
  }
}

TEST_F(CallFrameTest, ArgumentsThatAreNoTensorsAreErrors) {
  dtypes[0] = "string";
  EXPECT_EQ(fault_of_first(),
            Failure(Status::kDtype, "Op: input 0: expected a tensor, got \"string\", a str"));
  dtypes[0] = "typetype";
  EXPECT_EQ(fault_of_first(),
            Failure(Status::kDtype, "Op: input 0: expected a tensor, got \"typetype\", a dtype"));
}

TEST_F(CallFrameTest, NullDtypeIsAnError) {
  dtypes[0] = nullptr;
  EXPECT_EQ(fault_of_first(),
            Failure(Status::kDtype, "Op: input 0: expected a dtype, got null with shape [2, 3]"));
}

//===--- arithmetic ---===//

using aten_bridge::detail::Arithmetic;

// Whether this thread computes with denormal numbers, and does not take them for zeros.
bool denormals_are_kept() {
  volatile float smallest = FLT_TRUE_MIN;
  return smallest * 1.0F != 0.0F;
}

TEST(ArithmeticTest, RestoresRoundingAndTheTreatmentOfDenormalNumbers) {
  for (const bool flushes : {false, true}) {
    const ThreadArithmetic before;
    before.set(flushes);
    const ThreadArithmetic wanted;
    const Arithmetic arithmetic;
    before.set(!flushes);
    std::fesetround(FE_UPWARD);
    const ThreadArithmetic changed;
    arithmetic.restore();
    const ThreadArithmetic restored;
    before.set(/*flushes=*/false);
    EXPECT_TRUE(changed != wanted);
    EXPECT_TRUE(restored == wanted);
  }
}

TEST(ArithmeticTest, WhatHasHappenedStays) {
  const Arithmetic arithmetic;
  std::fesetround(FE_UPWARD);
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_DIVBYZERO);
  const int happened = std::fetestexcept(FE_ALL_EXCEPT);  // nothing in valgrind
  arithmetic.restore();
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), happened);
  std::feclearexcept(FE_ALL_EXCEPT);
}

TEST(ArithmeticTest, DenormalNumbersAreKeptWhereTheyWereTakenForZeros) {
  const ThreadArithmetic before;
  before.set(/*flushes=*/true);
  Arithmetic::keep_denormals();
  const bool are_kept = denormals_are_kept();
  const ThreadArithmetic after;
  before.set(/*flushes=*/false);
  EXPECT_TRUE(are_kept);
  EXPECT_TRUE(after == before);
}

//===--- attributes ---===//

using aten_bridge::detail::MindSporeAttributes;

TEST(AttributesTest, HostWithoutExtraHasNone) {
  const MindSporeAttributes attributes(nullptr);
  int64_t integer = 5;
  EXPECT_FALSE(attributes.has("k"));
  EXPECT_FALSE(attributes.get("k", integer));
  EXPECT_EQ(integer, 5);
}

TEST(AttributesTest, ListsOfStringsComeAsOne) {
  using aten_bridge::detail::split_strings;
  std::vector<std::string> strings = {"of before"};
  EXPECT_TRUE(split_strings("", strings));
  EXPECT_EQ(strings, std::vector<std::string>());
  EXPECT_TRUE(split_strings("2:ab0:3:1:c12:twelve bytes", strings));
  EXPECT_EQ(strings, (std::vector<std::string>{"ab", "", "1:c", "twelve bytes"}));
  for (const char* text : {"abc", "3:ab", "1a:x", ":", "2:ab1", "-1:a", " 1:a", "9999999999:x"}) {
    EXPECT_FALSE(split_strings(text, strings)) << text;
  }
}

TEST(AttributesTest, WideningNamesTheFloatAndNoOther) {
  using aten_bridge::detail::widen;
  EXPECT_EQ(widen(0.01F), 0.01);
  EXPECT_EQ(widen(0.1F), 0.1);
  EXPECT_EQ(widen(-2.5F), -2.5);
  EXPECT_EQ(widen(0.000123F), 0.000123);
  EXPECT_EQ(widen(1e-5F), 1e-5);
  EXPECT_EQ(widen(1e-8F), 1e-8);
  EXPECT_EQ(widen(123.456F), 123.456);
  EXPECT_EQ(widen(999999.0F), 999999);
  EXPECT_TRUE(std::signbit(widen(-0.0F)));
  EXPECT_EQ(widen(1.0F / 3), 0.33333334);
  EXPECT_EQ(widen(16777217.0F), 16777216);
  EXPECT_EQ(widen(FLT_MAX), FLT_MAX);  // its shortest decimal lies beyond it
  EXPECT_EQ(widen(INFINITY), INFINITY);
  EXPECT_EQ(widen(-INFINITY), -INFINITY);
  EXPECT_TRUE(std::isnan(widen(NAN)));
  for (std::uint64_t bits = 1; bits < 0x7f800000; bits += 999'983) {
    const auto pattern = static_cast<std::uint32_t>(bits);
    float value;
    std::memcpy(&value, &pattern, sizeof(value));
    EXPECT_EQ(static_cast<float>(widen(value)), value) << bits;
    EXPECT_EQ(widen(-value), -widen(value)) << bits;
  }
}

// MindSpore is built with the old C++ ABI, most kernels with the new one; neither is for sure.
struct AbiCase {
  const char* name;
  void* (*make_host)();
  void (*delete_host)(void*);
  const char* (*names_of_host)(void*);
  const char* (*read_all)(void*);
  int (*read_often)(void*, int);
};

const AbiCase abi_cases[] = {
    {"OldHostOldKernel", make_host_0, delete_host_0, names_of_host_0, read_all_0, read_often_0},
    {"OldHostNewKernel", make_host_0, delete_host_0, names_of_host_0, read_all_1, read_often_1},
    {"NewHostOldKernel", make_host_1, delete_host_1, names_of_host_1, read_all_0, read_often_0},
    {"NewHostNewKernel", make_host_1, delete_host_1, names_of_host_1, read_all_1, read_often_1},
};

class AbiTest : public testing::TestWithParam<AbiCase> {
 public:
  AbiTest(const AbiTest&) = delete;
  AbiTest& operator=(const AbiTest&) = delete;

 protected:
  AbiTest() : host(GetParam().make_host()) {}
  ~AbiTest() override { GetParam().delete_host(host); }

  void* host;
};

INSTANTIATE_TEST_SUITE_P(All, AbiTest, testing::ValuesIn(abi_cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(AbiTest, AttributesOfEveryKindAreRead) {
  const std::string expected =
      R"("bool": the bool True
"int": the int 7
"float": the float 0.1
"": the str ""
"name of 15 long": the str ")" +
      std::string(15, 'x') + R"("
"name of 16 chars": the str ")" +
      std::string(16, 'y') + "\"\n\"" + std::string(40, 'a') + R"(": the str ")" +
      std::string(100, 'z') + R"("
"shared": the str ")" +
      std::string(40, 'a') + R"("
"ints": the list of ints [1, 2]
"floats": the list of floats [0.5]
"int lists": the list of lists of ints [[1], [], [2, 3]]
"float lists": the list of lists of floats [[0.5], []]
"mixed": something that is none of bool, int, float, str, and lists of ints or of floats
"missing": nothing
left alone
left alone
left alone
)";
  EXPECT_EQ(GetParam().read_all(host), expected);
  EXPECT_EQ(GetParam().read_all(host), expected) << "the second time";
}

TEST_P(AbiTest, NamesThatTheHostKeepsAreItsOwn) {
  GetParam().read_all(host);
  const std::string name = "another that is not there, with a long name;";
  EXPECT_EQ(GetParam().names_of_host(host), name + name + name);
}

TEST_P(AbiTest, ReadingOftenLosesNoMemory) {
  EXPECT_EQ(GetParam().read_often(host, 10), 0);
  const std::size_t before = mallinfo2().uordblks;
  EXPECT_EQ(GetParam().read_often(host, 100'000), 0);
  EXPECT_EQ(mallinfo2().uordblks, before);
}

}  // namespace
