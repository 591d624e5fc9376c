// Attributes, numbers from inputs, optional tensors and lists of tensors.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "typed.h"

namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
using Bytes = std::vector<unsigned char>;

constexpr int64_t kLine = 256;  // bytes that kernels print to

//===--- attributes ---===//

// A call of Values or of a kernel with the same attributes, all set.
Call values(const char* name) {
  Call call = typed(name);
  call.output<std::uint8_t>({kLine})
      .attribute("flag", true)
      .attribute("integer", -7)
      .attribute("real", 0.5)
      .attribute("string", "text")
      .attribute("integers", Ints{1, 2})
      .attribute("reals", Doubles{0.1, 2})
      .attribute("integer_lists", std::vector<Ints>{{1}, {2, 3}, {}})
      .attribute("real_lists", std::vector<Doubles>{{}, {0.5}})
      .attribute("dtype", "int64")
      .attribute("number", 2.5);
  return call;
}

const std::string values_of_all =
    "true -7 0.5 \"text\" [1, 2] [0.10000000000000001, 2] [[1], [2, 3], []] [[], [0.5]] Long "
    "float 2.5";

TEST(AttributeTest, OfEveryTypeIsReadFromTheOperator) {
  for (const char* name : {"Values", "Defaults", "Optional", "OptionalDefaults"}) {
    EXPECT_EQ(printed(values(name).run()), values_of_all) << name;
  }
}

TEST(AttributeTest, ThatTheOperatorDoesNotSetHasItsDefault) {
  Call call = typed("Defaults");
  EXPECT_EQ(printed(call.output<std::uint8_t>({kLine}).run()),
            "true -2 3 \"text\" [4, 5] [0.5, 1.5] [[6], []] [[2.5]] Half float 0.25");
}

TEST(AttributeTest, ThatIsOptionalMayBeMissing) {
  Call call = typed("Optional");
  EXPECT_EQ(printed(call.output<std::uint8_t>({kLine}).run()),
            "none none none none none none none none none none");
}

TEST(AttributeTest, ThatIsOptionalMayHaveADefault) {
  Call call = typed("OptionalDefaults");
  EXPECT_EQ(printed(call.output<std::uint8_t>({kLine}).run()),
            "false 2 0.5 \"text\" [4, 5] [0.5] none none Int int 7");
}

TEST(AttributeTest, ThatIsNeitherSetNorOptionalIsAnErrorAndAllAreReported) {
  const auto missing = [](const std::string& name, const std::string& expected) {
    return "Values: attribute '" + name + "': expected " + expected +
           ", got nothing; set it where the operator is made, as in add_prim_attr(\"" + name +
           "\", ...)";
  };
  Call call = typed("Values");
  EXPECT_EQ(call.output<std::uint8_t>({kLine}).run().error(),
            missing("flag", "a bool") + '\n' + missing("integer", "an int") + '\n' +
                missing("real", "a float, such as 1.0") + '\n' + missing("string", "a str") + '\n' +
                missing("integers", "a list of ints") + '\n' +
                missing("reals", "a list of floats, such as [1.0, 2.0]") + '\n' +
                missing("integer_lists", "a list of lists of ints") + '\n' +
                missing("real_lists", "a list of lists of floats, such as [[1.0], [2.0, 3.0]]") +
                '\n' + missing("dtype", "the name of a dtype, such as \"float32\"") + '\n' +
                missing("number", "a number"));
}

TEST(AttributeTest, OfAnotherTypeIsAnErrorWhateverTheDefault) {
  for (const std::string name : {"Values", "Defaults", "Optional", "OptionalDefaults"}) {
    const auto wrong = [&](const char* attribute, const char* fault) {
      return name + ": attribute '" + attribute + "': expected " + fault;
    };
    Call call = values(name.c_str());
    call.attribute("flag", 1)
        .attribute("integer", 1.5)
        .attribute("real", 1)
        .attribute("string", Ints{1, 2})
        .attribute("integers", Doubles{1.5, 2})
        .attribute("reals", Ints{1})
        .attribute("integer_lists", Ints{1})
        .attribute("real_lists", std::vector<Ints>{{1}, {2, 3}})
        .attribute("dtype", "float31")
        .attribute("number", "one");
    EXPECT_EQ(
        call.run().error(),
        wrong("flag", "a bool, got the int 1") + '\n' +
            wrong("integer", "an int, got the float 1.5") + '\n' +
            wrong("real", "a float, such as 1.0, got the int 1") + '\n' +
            wrong("string", "a str, got the list of ints [1, 2]") + '\n' +
            wrong("integers", "a list of ints, got the list of floats [1.5, 2]") + '\n' +
            wrong("reals", "a list of floats, such as [1.0, 2.0], got the list of ints [1]") +
            '\n' + wrong("integer_lists", "a list of lists of ints, got the list of ints [1]") +
            '\n' +
            wrong("real_lists",
                  "a list of lists of floats, such as [[1.0], [2.0, 3.0]], got the list of lists "
                  "of ints [[1], [2, 3]]") +
            '\n' +
            wrong("dtype", "the name of a dtype, such as \"float32\", got the str \"float31\"") +
            '\n' + wrong("number", "a number, got the str \"one\""));
  }
}

TEST(AttributeTest, OfAnotherTypeIsNamedWithItsValue) {
  const auto fault = [](const auto& value) {
    Call call = values("Values");
    return call.attribute("string", value).run().error();
  };
  const std::string expected = "Values: attribute 'string': expected a str, got ";
  EXPECT_EQ(fault(true), expected + "the bool True");
  EXPECT_EQ(fault(false), expected + "the bool False");
  EXPECT_EQ(fault(INT64_MIN), expected + "the int -9223372036854775808");
  EXPECT_EQ(fault(0.1), expected + "the float 0.1");
  EXPECT_EQ(fault(std::nan("")), expected + "the float nan");
  EXPECT_EQ(fault(Doubles{-0.5}), expected + "the list of floats [-0.5]");
  EXPECT_EQ(fault(std::vector<Doubles>{{0.5}, {}}),
            expected + "the list of lists of floats [[0.5], []]");
  EXPECT_EQ(
      fault(std::vector<std::string>{"a"}),
      expected + "something that is none of bool, int, float, str, and lists of ints or of floats");
}

TEST(AttributeTest, DtypeIsOneThatATensorCanHave) {
  for (const std::string name : {"none", "string", "Float", ""}) {
    Call call = values("Values");
    EXPECT_EQ(call.attribute("dtype", name).run().error(),
              "Values: attribute 'dtype': expected the name of a dtype, such as \"float32\", got "
              "the str \"" +
                  name + '"');
  }
}

TEST(AttributeTest, ScalarIsABoolAnIntOrAFloat) {
  const auto number = [](const auto& value) {
    Call call = values("Values");
    const std::string line = printed(call.attribute("number", value).run());
    return line.substr(line.find("Long ") + 5);
  };
  EXPECT_EQ(number(true), "bool true");
  EXPECT_EQ(number(3), "int 3");
  EXPECT_EQ(number(3.0), "float 3");
}

TEST(AttributeTest, EmptyListsAndStringsAreValues) {
  Call call = values("Optional");
  call.attribute("string", "")
      .attribute("integers", Ints{})
      .attribute("reals", Doubles{})
      .attribute("integer_lists", std::vector<Ints>{})
      .attribute("real_lists", std::vector<Doubles>{});
  EXPECT_EQ(printed(call.run()), "true -7 0.5 \"\" [] [] [] [] Long float 2.5");
}

TEST(AttributeTest, StringsOfAnyLengthArrive) {
  for (const std::size_t length : {1, 15, 16, 100}) {
    Call call = values("Values");
    const std::string string(length, 'x');
    EXPECT_NE(printed(call.attribute("string", string).run()).find('"' + string + '"'),
              std::string::npos);
  }
}

TEST(AttributeTest, ViewsReferToWhatTheInstanceKeeps) {
  Call call = typed("AttributeViews");
  call.output<std::uint8_t>({kLine});
  EXPECT_EQ(printed(call.run()),
            "[1, 2] [0.5] \"a string that is too long to be kept in place\" none none");
  call.attribute("integers", Ints{3})
      .attribute("reals", Doubles{1.5})
      .attribute("string", "short")
      .attribute("maybe_integers", Ints{4, 5})
      .attribute("maybe", "another string that is too long to be kept in place");
  EXPECT_EQ(printed(call.run()),
            "[3] [1.5] \"short\" [4, 5] \"another string that is too long to be kept in place\"");
}

TEST(AttributeTest, FunctionsOfAtenAreExportedAsTheyAre) {
  Call call = typed("LeakyRelu");
  call.input<float>({2}, {-4, 3}).output<float>({2});
  EXPECT_EQ(call.run().output<float>(0), (std::vector<float>{-0.04F, 3}));
  call.attribute("negative_slope", 0.5);
  EXPECT_EQ(call.run().output<float>(0), (std::vector<float>{-2, 3}));
  call.attribute("negative_slope", "1");
  EXPECT_EQ(call.run().error(),
            "LeakyRelu: attribute 'negative_slope': expected a number, got the str \"1\"");
}

// The host keeps 32 bits of a float; the kernel gets the double that a reader of the Python code
// would expect.
TEST(AttributeTest, FloatIsTheDoubleOfItsShortestDecimal) {
  const auto kernel_gets = [](double value) {
    Call call = typed("Real");
    return call.attribute("real", value).output<double>({}).run().output<double>(0)[0];
  };
  for (const double value : {0.0, 0.01, 0.1, -1e-5, 1e-6, 123456.7, 1e30, 65504.0, 16777216.0}) {
    EXPECT_EQ(kernel_gets(value), value);
  }
  EXPECT_EQ(kernel_gets(1.0 / 3), 0.33333334);
  EXPECT_EQ(kernel_gets(16777217), 16777216);
  EXPECT_EQ(kernel_gets(FLT_MAX), FLT_MAX);  // its shortest decimal lies beyond it
  EXPECT_EQ(kernel_gets(-FLT_MAX), -FLT_MAX);
  EXPECT_EQ(static_cast<float>(kernel_gets(1e-45)), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(kernel_gets(std::numeric_limits<double>::infinity()),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(kernel_gets(std::nan(""))));
  EXPECT_TRUE(std::signbit(kernel_gets(-0.0)));
}

TEST(AttributeTest, FloatsOfListsAreWidenedToo) {
  Call call = typed("Reals");
  call.attribute("reals", Doubles{0.01, 16777217}).output<std::uint8_t>({kLine});
  EXPECT_EQ(printed(call.run()), "[0.01, 16777216]");
}

//===--- when attributes are read ---===//

CountingExtra::Attributes default_values() {
  return {{"flag", CountingExtra::Attributes::mapped_type(true)},
          {"number", CountingExtra::Attributes::mapped_type(0.5)},
          {"string", CountingExtra::Attributes::mapped_type(std::string("text"))}};
}

TEST(AttributeTest, AreReadOnceByInitAndNotByCalls) {
  CountingExtra extra(default_values());
  Bytes line(kLine);
  HandCall call;
  call.operand(line.data(), {kLine}, "uint8");
  ASSERT_EQ(call.init("Optional", &extra), 0);
  const std::map<std::string, int> once = {{"flag", 1}, {"number", 1}, {"string", 1}};
  EXPECT_EQ(extra.reads, once);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(call.run("Optional", &extra), "");
    EXPECT_STREQ(reinterpret_cast<const char*>(line.data()),
                 "true none none \"text\" none none none none none float 0.5");
  }
  EXPECT_EQ(extra.reads, once);
}

TEST(AttributeTest, SecondInitOfAnInstanceReadsNothing) {
  CountingExtra extra(default_values());
  Bytes line(kLine);
  HandCall call;
  call.operand(line.data(), {kLine}, "uint8");
  ASSERT_EQ(call.init("Optional", &extra), 0);
  void* const instance = extra.kernel_data;
  ASSERT_EQ(call.init("Optional", &extra), 0);
  EXPECT_EQ(extra.kernel_data, instance);
  EXPECT_EQ(extra.reads.at("flag"), 1);
}

TEST(AttributeTest, AreReadAtEachCallWhereThereWasNoInit) {
  CountingExtra extra(default_values());
  Bytes line(kLine);
  HandCall call;
  call.operand(line.data(), {kLine}, "uint8");
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(call.run("Optional", &extra), "");
    EXPECT_EQ(extra.reads.at("flag"), i);
  }
  EXPECT_EQ(extra.kernel_data, nullptr);
}

TEST(AttributeTest, DefaultsMayBeListsOfListsAndEmpty) {
  Call call = typed("ListDefaults");
  EXPECT_EQ(printed(call.output<std::uint8_t>({128}).run()), "[] [] [[1, 2], [3]] [[0.5], []]");
}

TEST(AttributeTest, HaveTheirDefaultsInAHostWithoutAttributes) {
  Bytes line(kLine);
  HandCall call;
  call.operand(line.data(), {kLine}, "uint8");
  EXPECT_EQ(call.init("Optional", nullptr), 0);
  EXPECT_EQ(call.run("Optional", nullptr), "");
  EXPECT_STREQ(reinterpret_cast<const char*>(line.data()),
               "none none none none none none none none none none");
  EXPECT_EQ(call.run("Real", nullptr),
            "Real: attribute 'real': expected a float, such as 1.0, got nothing; set it where the "
            "operator is made, as in add_prim_attr(\"real\", ...)");
}

TEST(AttributeTest, WhatInitFindsWrongIsReportedByEachCall) {
  CountingExtra extra;
  double real = 0;
  HandCall call;
  call.operand(&real, {}, "float64");
  EXPECT_EQ(call.init("Real", &extra), 0) << "the host would drop the text";
  EXPECT_EQ(extra.kernel_data, nullptr);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(call.run("Real", &extra),
              "Real: attribute 'real': expected a float, such as 1.0, got nothing; set it where "
              "the operator is made, as in add_prim_attr(\"real\", ...)");
  }
}

TEST(AttributeTest, AreReportedWithTheOperandsThatAreWrong) {
  Call call = typed("TopK");
  call.attribute("k", 1.5).input<float>({1}, {1}).output<float>({1}).output_bytes("int5", {1}, 8);
  const std::string attribute = "TopK: attribute 'k': expected an int, got the float 1.5";
  EXPECT_EQ(call.run().error(),
            attribute +
                "\nTopK: output 1: expected bool|uint8|int8|uint16|int16|uint32|int32|uint64|int64|"
                "float16|bfloat16|float32|float64|complex64|complex128|float8e4m3fn|float8e5m2, "
                "got \"int5\" with shape [1]");
  EXPECT_EQ(call.clear_operands().output<float>({1}).run().error(),
            attribute +
                "\nTopK: expected 1 input and 2 outputs, got 1 slot; compare the arguments of the "
                "call, out_shape and out_dtype with the kernel");
}

//===--- numbers ---===//

template <class T>
Result number(const char* kernel, T value) {
  Call call = typed(kernel);
  call.input<T>({}, {value});
  return call.output<std::uint8_t>({kLine}).run();
}
Result number(const char* kernel, const char* dtype, const Bytes& bytes) {
  Call call = typed(kernel);
  return call.input_bytes(dtype, {}, bytes).output<std::uint8_t>({kLine}).run();
}

TEST(NumberTest, OfEveryDtypeIsReadAsEveryType) {
  struct {
    const char* dtype;
    Bytes one;
    const char* scalar;
  } const cases[] = {
      {"bool", {1}, "bool true"},
      {"uint8", {1}, "int 1"},
      {"int8", {1}, "int 1"},
      {"uint16", {1, 0}, "int 1"},
      {"int16", {1, 0}, "int 1"},
      {"uint32", {1, 0, 0, 0}, "int 1"},
      {"int32", {1, 0, 0, 0}, "int 1"},
      {"uint64", {1, 0, 0, 0, 0, 0, 0, 0}, "int 1"},
      {"int64", {1, 0, 0, 0, 0, 0, 0, 0}, "int 1"},
      {"float16", {0, 0x3c}, "float 1"},
      {"bfloat16", {0x80, 0x3f}, "float 1"},
      {"float32", {0, 0, 0x80, 0x3f}, "float 1"},
      {"float64", {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, "float 1"},
      {"float8e4m3fn", {0x38}, "float 1"},
      {"float8e5m2", {0x3c}, "float 1"},
  };
  for (const auto& c : cases) {
    for (const std::string optional : {"", "Optional"}) {
      const auto read = [&](const std::string& type) {
        const std::string name = std::string("To").append(optional).append(type);
        return printed(number(name.c_str(), c.dtype, c.one));
      };
      EXPECT_EQ(read("Bool"), "true") << c.dtype;
      EXPECT_EQ(read("Int"), "1") << c.dtype;
      EXPECT_EQ(read("Double"), "1") << c.dtype;
      EXPECT_EQ(read("Scalar"), c.scalar) << c.dtype;
    }
  }
}

TEST(NumberTest, SignAndWidthAreKept) {
  EXPECT_EQ(printed(number<std::int8_t>("ToInt", -128)), "-128");
  EXPECT_EQ(printed(number<std::uint8_t>("ToInt", 255)), "255");
  EXPECT_EQ(printed(number<std::int16_t>("ToInt", -32768)), "-32768");
  EXPECT_EQ(printed(number<std::uint16_t>("ToInt", 65535)), "65535");
  EXPECT_EQ(printed(number<std::int32_t>("ToInt", INT32_MIN)), "-2147483648");
  EXPECT_EQ(printed(number<std::uint32_t>("ToInt", UINT32_MAX)), "4294967295");
  EXPECT_EQ(printed(number<int64_t>("ToInt", INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(printed(number<std::uint64_t>("ToInt", INT64_MAX)), "9223372036854775807");
  EXPECT_EQ(printed(number<int64_t>("ToScalar", INT64_MAX)), "int 9223372036854775807");
  EXPECT_EQ(printed(number<double>("ToDouble", 1e300)), "1.0000000000000001e+300");
  EXPECT_EQ(printed(number<float>("ToDouble", 0.1F)), "0.10000000149011612");
  EXPECT_EQ(printed(number("ToBool", "bool", {2})), "true");
}

TEST(NumberTest, ComplexNumberIsAScalarOnly) {
  const std::complex<float> complex(1, -2);
  EXPECT_EQ(printed(number("ToScalar", complex)), "complex 1 -2");
  EXPECT_EQ(printed(number("ToScalar", std::complex<double>(0.5, 2))), "complex 0.5 2");
  EXPECT_EQ(number("ToDouble", complex).error(),
            "ToDouble: input 0: expected a real number, got the complex64 1-2j");
  EXPECT_EQ(number("ToInt", complex).error(),
            "ToInt: input 0: expected an integer that an int64 can hold, got the complex64 1-2j");
  EXPECT_EQ(number("ToBool", std::complex<double>(1, 0)).error(),
            "ToBool: input 0: expected a bool, 0 or 1, got the complex128 1+0j");
}

TEST(NumberTest, WhatAnIntCannotHoldIsAnError) {
  const std::string expected = "ToInt: input 0: expected an integer that an int64 can hold, got ";
  EXPECT_EQ(printed(number<float>("ToInt", 2)), "2");
  EXPECT_EQ(printed(number<double>("ToInt", -0x1p63)), "-9223372036854775808");
  EXPECT_EQ(number<float>("ToInt", 2.5).error(), expected + "the float32 2.5");
  EXPECT_EQ(number<double>("ToInt", 1e300).error(),
            expected + "the float64 1.0000000000000001e+300");
  EXPECT_EQ(number<double>("ToInt", 0x1p63).error(),
            expected + "the float64 9.2233720368547758e+18");
  EXPECT_EQ(number<double>("ToInt", std::nan("")).error(), expected + "the float64 nan");
  EXPECT_EQ(number<double>("ToInt", INFINITY).error(), expected + "the float64 inf");
  EXPECT_EQ(number<std::uint64_t>("ToInt", std::uint64_t{1} << 63).error(),
            expected + "the uint64 9.2233720368547758e+18");
  EXPECT_EQ(number<float>("ToOptionalInt", 2.5).error(),
            "ToOptionalInt: input 0: expected an integer that an int64 can hold, got the float32 "
            "2.5");
}

TEST(NumberTest, BoolIsZeroOrOne) {
  const std::string expected = "ToBool: input 0: expected a bool, 0 or 1, got ";
  EXPECT_EQ(printed(number<int64_t>("ToBool", 0)), "false");
  EXPECT_EQ(printed(number<float>("ToBool", 1)), "true");
  EXPECT_EQ(number<int64_t>("ToBool", 2).error(), expected + "the int64 2");
  EXPECT_EQ(number<int64_t>("ToBool", -1).error(), expected + "the int64 -1");
  EXPECT_EQ(number<float>("ToBool", 0.5).error(), expected + "the float32 0.5");
  EXPECT_EQ(number<float>("ToBool", NAN).error(), expected + "the float32 nan");
}

TEST(NumberTest, LargestUnsignedNumbersAreReal) {
  const std::uint64_t big = std::uint64_t{1} << 63;
  EXPECT_EQ(printed(number("ToDouble", big)), "9.2233720368547758e+18");
  EXPECT_EQ(number("ToScalar", big).error(),
            "ToScalar: input 0: expected a number that an at::Scalar can hold, got the uint64 "
            "9.2233720368547758e+18");
}

TEST(NumberTest, IsATensorOfOneElement) {
  const auto of_sizes = [](const char* kernel, Ints sizes, const std::vector<float>& elements) {
    Call call = typed(kernel);
    return printed(
        call.input<float>(std::move(sizes), elements).output<std::uint8_t>({kLine}).run());
  };
  EXPECT_EQ(of_sizes("ToInt", {1}, {3}), "3");
  EXPECT_EQ(of_sizes("ToInt", {1, 1, 1}, {3}), "3");
  EXPECT_EQ(of_sizes("ToBool", {2}, {1, 1}),
            "ToBool: input 0: expected a bool, 0 or 1 as one element, got float32 [2]");
  EXPECT_EQ(of_sizes("ToInt", {1, 2}, {3, 4}),
            "ToInt: input 0: expected an integer that an int64 can hold as one element, got "
            "float32 [1, 2]");
  EXPECT_EQ(of_sizes("ToDouble", {0}, {}),
            "ToDouble: input 0: expected a real number as one element, got float32 [0]");
  EXPECT_EQ(of_sizes("ToOptionalScalar", {2, 0}, {}),
            "ToOptionalScalar: input 0: expected a number that an at::Scalar can hold as one "
            "element, got float32 [2, 0]");
}

TEST(NumberTest, MayLieAtAnyAddress) {
  for (const char* kernel : {"ToInt", "ToOptionalInt"}) {
    Call call = typed(kernel);
    call.input_alignment(17).input<int64_t>({}, {INT64_MAX}).output<std::uint8_t>({kLine});
    EXPECT_EQ(printed(call.run()), "9223372036854775807");
  }
}

TEST(NumberTest, NoneIsAnErrorUnlessItIsOptional) {
  const auto none = [](const char* kernel) {
    Call call = typed(kernel);
    return printed(call.input_none().output<std::uint8_t>({kLine}).run());
  };
  for (const std::string type : {"Bool", "Int", "Double", "Scalar"}) {
    EXPECT_EQ(none(("ToOptional" + type).c_str()), "none");
    EXPECT_EQ(none(("To" + type).c_str()), "To" + type + ": input 0: expected a number, got None");
  }
}

//===--- optional tensors ---===//

TEST(OptionalTest, TensorsMayStandAnywhere) {
  const auto sums = [](bool a, bool c, bool d) {
    Call call = typed("Anywhere");
    const auto add = [&call](bool given, float value) {
      if (given) {
        call.input<float>({1}, {value});
      } else {
        call.input_none();
      }
    };
    add(a, 1);
    add(true, 2);
    add(c, 3);
    add(d, 4);
    return printed(call.output<std::uint8_t>({kLine}).run());
  };
  EXPECT_EQ(sums(true, true, true), "1 2 3 4");
  EXPECT_EQ(sums(false, true, true), "none 2 3 4");
  EXPECT_EQ(sums(true, false, true), "1 2 none 4");
  EXPECT_EQ(sums(true, true, false), "1 2 3 none");
  EXPECT_EQ(sums(false, false, false), "none 2 none none");
}

TEST(OptionalTest, EmptyTensorIsNotNone) {
  Call call = typed("Anywhere");
  call.input<float>({0}, {}).input<float>({1}, {2}).input_none().input_none();
  EXPECT_EQ(printed(call.output<std::uint8_t>({kLine}).run()), "0 2 none none");
}

TEST(OptionalTest, NoneElsewhereIsAnError) {
  Call call = typed("Anywhere");
  call.input_none().input_none().input_none().input_none().output<std::uint8_t>({kLine});
  EXPECT_EQ(call.run().error(), "Anywhere: input 1: expected a tensor, got None");
}

TEST(OptionalTest, NoneAsAnOutputIsAnError) {
  Call call = typed("Real");
  call.attribute("real", 1.0).output_bytes("none", {}, 0);
  EXPECT_EQ(call.run().error(), "Real: output 0: expected a tensor, got None");
}

//===--- lists of tensors ---===//

TEST(ListTest, TakesAnyNumberOfTensors) {
  for (const int count : {0, 1, 2, 40}) {
    Call call = typed("List");
    std::string expected = "[";
    for (int i = 0; i < count; ++i) {
      call.input<float>({2}, {static_cast<float>(i), 1});
      expected += (i == 0 ? "" : ", ") + std::to_string(i + 1);
    }
    EXPECT_EQ(printed(call.output<std::uint8_t>({kLine}).run()), expected + ']');
  }
}

// print_around(first, Y, name, LIST, bias, Z, number): the inputs are first, list, bias, number.
Call around(int count, bool bias) {
  Call call = typed("Around");
  call.input<float>({1}, {100});
  for (int i = 1; i <= count; ++i) {
    call.input<float>({1}, {static_cast<float>(i)});
  }
  if (bias) {
    call.input<float>({1}, {-1});
  } else {
    call.input_none();
  }
  call.input_number(7).output<std::uint8_t>({kLine}).output<int64_t>({1});
  return call;
}

TEST(ListTest, StandsBetweenOtherParameters) {
  EXPECT_EQ(printed(around(0, true).run()), "100 \"list\" [] -1 7");
  EXPECT_EQ(printed(around(0, false).run()), "100 \"list\" [] none 7");
  EXPECT_EQ(printed(around(1, true).run()), "100 \"list\" [1] -1 7");
  EXPECT_EQ(printed(around(3, false).run()), "100 \"list\" [1, 2, 3] none 7");
  EXPECT_EQ(around(3, false).run().output<int64_t>(1), Ints{7});
}

TEST(ListTest, MayHaveAnotherLengthAtTheNextCall) {
  Call call = typed("List");
  EXPECT_EQ(printed(call.input<float>({1}, {1}).output<std::uint8_t>({kLine}).run()), "[1]");
  call.clear_operands().input<float>({1}, {2}).input<float>({}, {3});
  EXPECT_EQ(printed(call.output<std::uint8_t>({kLine}).run()), "[2, 3]");
}

TEST(ListTest, WithTooFewOperandsIsAnError) {
  Call call = typed("Around");
  call.input<float>({1}, {1}).input_none().output<std::uint8_t>({kLine}).output<int64_t>({1});
  EXPECT_EQ(call.run().error(),
            "Around: expected at least 3 inputs and 2 outputs, got 4 slots; compare the arguments "
            "of the call, out_shape and out_dtype with the kernel");
  Call empty = typed("List");
  EXPECT_EQ(empty.run().error(),
            "List: expected at least 0 inputs and 1 output, got 0 slots; compare the arguments of "
            "the call, out_shape and out_dtype with the kernel");
}

TEST(ListTest, FaultsNameInputsByTheirPositionInTheCall) {
  Call list = typed("List");
  list.input<float>({1}, {1}).input_none().input_bytes("string", {}, {0});
  EXPECT_EQ(list.output<std::uint8_t>({kLine}).run().error(),
            "List: input 1: expected a tensor, got None\n"
            "List: input 2: expected a tensor, got \"string\", a str");

  Call call = typed("Around");
  call.input<float>({1}, {1}).input_none().input<float>({1}, {1}).input_none();
  call.input_number(2.5).output<std::uint8_t>({kLine}).output<int64_t>({1});
  EXPECT_EQ(call.run().error(),
            "Around: input 1: expected a tensor, got None\n"
            "Around: input 4: expected an integer that an int64 can hold, got the float32 2.5");
}

TEST(ListTest, OperandsAreNamedWhereTheKernelThrows) {
  Call call = typed("List");
  call.input<float>({1}, {1}).input<float>({2}, {1, 2}).output<std::uint8_t>({2});
  const std::string error = call.run().error();
  EXPECT_NE(error.find(" (input 0: float32 [1]; input 1: float32 [2]; output 0: uint8 [2])"),
            std::string::npos)
      << error;
}

}  // namespace
