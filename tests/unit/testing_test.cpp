// The simulated host itself, over functions written here: no PyTorch, no bridge.
#include <aten_bridge/testing.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <utility>
#include <vector>

// MindSpore's AotExtra as a kernel declares it. In a namespace with a name: in one without, a
// compiler may conclude that nobody implements it.
namespace host {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

struct Extra {
  virtual ~Extra() = default;
  virtual bool has_attr(std::string name) = 0;
  virtual bool get_attr_bool(std::string name) = 0;
  virtual int64_t get_attr_int(std::string name) = 0;
  virtual float get_attr_float(std::string name) = 0;
  virtual std::string get_attr_str(std::string name) = 0;
  virtual Ints get_attr_int_vec(std::string name) = 0;
  virtual Floats get_attr_float_vec(std::string name) = 0;
  virtual std::vector<Ints> get_attr_int_2d_vec(std::string name) = 0;
  virtual std::vector<Floats> get_attr_float_2d_vec(std::string name) = 0;
};

// The members of `extra`: its workspaces at 8, its kernel data at 32.
inline std::vector<std::size_t>& workspaces(void* extra) {
  return *reinterpret_cast<std::vector<std::size_t>*>(static_cast<char*>(extra) + 8);
}
inline void*& kernel_data(void* extra) {
  return *reinterpret_cast<void**>(static_cast<char*>(extra) + 32);
}

}  // namespace host

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Functions;
using aten_bridge::testing::InferFunction;
using aten_bridge::testing::Inferred;
using aten_bridge::testing::Library;
using aten_bridge::testing::Result;
using host::Floats;
using host::Ints;

// The text of the exception that `body` throws; "" for none.
template <class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// What the last call of `record` saw.
struct Seen {
  int nparam;
  std::vector<void*> params;
  std::vector<int> ndims;
  std::vector<int64_t> first_sizes;  // 0 for a null shape
  std::vector<std::string> dtypes;
  void* stream;
  void* extra;
  std::thread::id thread;
} seen;

int record(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
           void* stream, void* extra) {
  const int described = nparam - 1;  // one workspace
  std::vector<int64_t> first_sizes;
  first_sizes.reserve(described);
  for (int i = 0; i < described; ++i) {
    first_sizes.push_back(shapes[i] == nullptr ? 0 : shapes[i][0]);
  }
  seen = {nparam,
          std::vector<void*>(params, params + nparam),
          std::vector<int>(ndims, ndims + described),
          first_sizes,
          std::vector<std::string>(dtypes, dtypes + described),
          stream,
          extra,
          std::this_thread::get_id()};
  return 0;
}

TEST(SimulatedHostTest, CallsAsTheRealHostDoes) {
  Call call(&record);
  call.input<float>({2, 1}, {1, 2})
      .input<int64_t>({}, {3})
      .input_none()
      .input<float>({0}, {})
      .input_again(0)
      .output<double>({2})
      .workspace(10);
  EXPECT_EQ(call.run().error(), "");
  EXPECT_EQ(seen.nparam, 7);
  EXPECT_EQ(seen.ndims, (std::vector<int>{2, 0, 0, 1, 2, 1}));
  EXPECT_EQ(seen.first_sizes, (std::vector<int64_t>{2, 0, 0, 0, 2, 2}));
  EXPECT_EQ(seen.dtypes, (std::vector<std::string>{"float32", "int64", "none", "float32", "float32",
                                                   "float64"}));
  EXPECT_EQ(seen.params[2], nullptr);
  EXPECT_NE(seen.params[3], nullptr) << "an empty tensor has a pointer";
  EXPECT_EQ(seen.params[4], seen.params[0]);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(seen.params[5]) % 64, 16);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(seen.params[6]) % 64, 16);
  EXPECT_EQ(seen.stream, nullptr);
  EXPECT_NE(seen.extra, nullptr);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
}

TEST(SimulatedHostTest, RunHereStaysInTheCallingThread) {
  Call call(&record);
  call.workspace(1).run_here();
  EXPECT_EQ(seen.thread, std::this_thread::get_id());
}

int do_nothing(int, void**, int*, int64_t**, const char**, void*, void*) { return 0; }
int return_seven(int, void**, int*, int64_t**, const char**, void*, void*) { return 7; }
int throw_text(int, void**, int*, int64_t**, const char**, void*, void*) {
  throw std::runtime_error("text");
}

TEST(SimulatedHostTest, OutputsThatAreNotWrittenAreSeen) {
  const Result result = Call(&do_nothing).output<std::int8_t>({2}).run();
  EXPECT_EQ(result.output<std::int8_t>(0), (std::vector<std::int8_t>{-1, -1}));
}

TEST(SimulatedHostTest, ReturnCodesAndExceptionsComeBack) {
  const Result returned = Call(&return_seven).run();
  EXPECT_FALSE(returned.ok());
  EXPECT_EQ(returned.code(), 7);
  EXPECT_EQ(returned.error(), "return code 7");
  const Result thrown = Call(&throw_text).run();
  EXPECT_FALSE(thrown.ok());
  EXPECT_EQ(thrown.code(), 0);
  EXPECT_EQ(thrown.error(), "text");
}

// AddressSanitizer stops the process at the write itself.
#ifndef ATEN_BRIDGE_TESTING_ASAN
int write_behind(int, void** params, int*, int64_t**, const char**, void*, void*) {
  std::memset(params[0], 0, 5);
  return 0;
}
int write_in_front(int, void** params, int*, int64_t**, const char**, void*, void*) {
  static_cast<char*>(params[0])[-1] = 0;
  return 0;
}

TEST(SimulatedHostTest, WritesBesideABufferAreFound) {
  Call behind(&write_behind);
  behind.output<float>({1});
  EXPECT_EQ(message_of([&] { behind.run(); }),
            "the kernel wrote to memory that is not its own: output 0, behind its last byte");
  Call in_front(&write_in_front);
  in_front.input<float>({1}, {1});
  EXPECT_EQ(message_of([&] { in_front.run(); }),
            "the kernel wrote to memory that is not its own: input 0, in front of its first byte");
}
#endif

TEST(SimulatedHostTest, MistakesInTheDescriptionAreErrors) {
  EXPECT_THROW(Call(&do_nothing).input<float>({2}, {1}), std::logic_error);
  const Result result = Call(&do_nothing).output<float>({1}).run();
  EXPECT_THROW(result.output<double>(0), std::logic_error);
  EXPECT_THROW(result.output<float>(1), std::out_of_range);
}

TEST(SimulatedHostTest, MissingLibrariesAndFunctionsAreErrors) {
  try {
    Library library("./no_such_library.so");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "./no_such_library.so: cannot open shared object file: No such file or directory");
  }
  EXPECT_THROW(Library("libc.so.6").call("no_such_function"), std::runtime_error);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

int record_extra(int, void**, int*, int64_t**, const char**, void*, void* extra) {
  seen.extra = extra;
  return 0;
}

// `extra` as the kernel `record_extra` gets it; valid as long as the call.
void* extra_of(Call& call) {
  EXPECT_EQ(call.run().error(), "");
  return seen.extra;
}

// What a kernel reads of attribute "k". no_sanitize: the object is of the host's class.
template <class T>
__attribute__((no_sanitize("vptr"))) T read(void* extra, T (host::Extra::*get)(std::string)) {
  return (static_cast<host::Extra*>(extra)->*get)("k");
}

template <class T>
std::string read_error(void* extra, T (host::Extra::*get)(std::string)) {
  return message_of([&] { read(extra, get); });
}

// The same of an attribute of `value`, in a call of its own.
template <class T, class V>
T read_value(const V& value, T (host::Extra::*get)(std::string)) {
  Call call(&record_extra);
  return read(extra_of(call.attribute("k", value)), get);
}

template <class T, class V>
std::string read_value_error(const V& value, T (host::Extra::*get)(std::string)) {
  Call call(&record_extra);
  return read_error(extra_of(call.attribute("k", value)), get);
}

TEST(SimulatedAttributesTest, AreReadThroughTheHostsVirtualTable) {
  using host::Extra;
  EXPECT_TRUE(read_value(true, &Extra::has_attr));
  EXPECT_TRUE(read_value(true, &Extra::get_attr_bool));
  EXPECT_EQ(read_value(int64_t{1} << 62, &Extra::get_attr_int), int64_t{1} << 62);
  EXPECT_EQ(read_value(0.1, &Extra::get_attr_float), 0.1F);
  EXPECT_EQ(read_value("text", &Extra::get_attr_str), "text");
  EXPECT_EQ(read_value(Ints{1, 2}, &Extra::get_attr_int_vec), (Ints{1, 2}));
  EXPECT_EQ(read_value(std::vector<double>{0.1}, &Extra::get_attr_float_vec), Floats{0.1F});
  EXPECT_EQ(read_value(std::vector<Ints>{{1, 2}, {}}, &Extra::get_attr_int_2d_vec),
            (std::vector<Ints>{{1, 2}, {}}));
  EXPECT_EQ(read_value(std::vector<std::vector<double>>{{0.5}}, &Extra::get_attr_float_2d_vec),
            std::vector<Floats>{{0.5F}});
}

TEST(SimulatedAttributesTest, HaveTheTypeThatIsWritten) {
  using host::Extra;
  EXPECT_EQ(read_value(1, &Extra::get_attr_int), 1);
  EXPECT_EQ(read_value(1U, &Extra::get_attr_int), 1);
  EXPECT_EQ(read_value(1.5F, &Extra::get_attr_float), 1.5F);
  EXPECT_EQ(read_value(std::string(), &Extra::get_attr_str), "");
  EXPECT_EQ(read_value(std::vector<int>{1}, &Extra::get_attr_int_vec), Ints{1});
  EXPECT_EQ(read_value(Floats{0.5F}, &Extra::get_attr_float_vec), Floats{0.5F});
}

TEST(SimulatedAttributesTest, NothingIsConverted) {
  using host::Extra;
  EXPECT_EQ(read_value_error(7, &Extra::get_attr_float),
            "Cast failed, original value: 7, type: Int64Imm");
  EXPECT_EQ(read_value_error(true, &Extra::get_attr_int),
            "Cast failed, original value: true, type: BoolImm");
  EXPECT_EQ(read_value_error(1, &Extra::get_attr_bool),
            "Cast failed, original value: 1, type: Int64Imm");
  EXPECT_EQ(read_value_error(0.1, &Extra::get_attr_int),
            "Cast failed, original value: 0.1, type: FP32Imm");
  EXPECT_EQ(read_value_error("text", &Extra::get_attr_bool),
            "Cast failed, original value: text, type: StringImm");
  EXPECT_EQ(read_value_error(Ints{1, 2}, &Extra::get_attr_float_vec),
            "Cast failed, original value: 1, type: Int64Imm");
  EXPECT_EQ(read_value_error(Ints{1, 2}, &Extra::get_attr_int),
            "Cast failed, original value: [1, 2], type: ValueList");
  EXPECT_EQ(read_value_error(std::vector<Ints>{{1, 2}, {3}}, &Extra::get_attr_int_vec),
            "Cast failed, original value: [1, 2], type: ValueList");
  EXPECT_EQ(
      read_value_error(7, &Extra::get_attr_int_vec),
      std::string("Error GetValue for value: 7, type: vector<") + typeid(int64_t).name() + '>');
}

TEST(SimulatedAttributesTest, AnEmptyListIsAListOfAnything) {
  const std::vector<double> empty;
  EXPECT_EQ(read_value(empty, &host::Extra::get_attr_int_vec), Ints());
  EXPECT_EQ(read_value(empty, &host::Extra::get_attr_float_2d_vec), std::vector<Floats>());
}

TEST(SimulatedAttributesTest, MissingOnesAreErrors) {
  Call call(&record_extra);
  void* extra = extra_of(call);
  EXPECT_FALSE(read(extra, &host::Extra::has_attr));
  EXPECT_EQ(read_error(extra, &host::Extra::get_attr_str),
            "For 'Custom, there is no attribute called k!");
}

//===----------------------------------------------------------------------===//
// Instances
//===----------------------------------------------------------------------===//

// What Init and the destructor of its kernel data count; set back by `counting`.
struct Counts {
  int made;
  int destroyed;
} counts;

class Data {  // no relation of the simulated host's class
 public:
  explicit Data(int init_number) : number(init_number) {}
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  virtual ~Data() { ++counts.destroyed; }
  int number;
};

int make_data(int*, int64_t**, const char**, void* extra) {
  host::kernel_data(extra) = new Data(++counts.made);
  return 0;
}

__attribute__((no_sanitize("vptr"))) int return_number(int, void** params, int*, int64_t**,
                                                       const char**, void*, void* extra) {
  std::memcpy(params[0], &static_cast<Data*>(host::kernel_data(extra))->number, sizeof(int));
  return 0;
}

// A kernel whose output is the number of its instance.
Call counting() {
  counts = {};
  Functions functions;
  functions.kernel = &return_number;
  functions.init = &make_data;
  return Call(functions).output<std::int32_t>({1});
}

int number_of(Call& call) { return call.run().output<std::int32_t>(0).at(0); }

TEST(SimulatedInstanceTest, LivesFromTheFirstRunToTheEndOfTheCall) {
  {
    Call call = counting();
    EXPECT_EQ(counts.made, 0);
    EXPECT_EQ(number_of(call), 1);
    EXPECT_EQ(number_of(call), 1);
    EXPECT_EQ(call.run_here().output<std::int32_t>(0), std::vector<std::int32_t>{1});
    EXPECT_EQ(counts.destroyed, 0);
  }
  EXPECT_EQ(counts.made, 1);
  EXPECT_EQ(counts.destroyed, 1);
}

TEST(SimulatedInstanceTest, CopiesHaveTheirOwn) {
  {
    Call call = counting();
    EXPECT_EQ(number_of(call), 1);
    Call copy = call;
    EXPECT_EQ(number_of(copy), 2);
    EXPECT_EQ(number_of(call), 1);
    copy = call;
    EXPECT_EQ(counts.destroyed, 1) << "the copy's";
    EXPECT_EQ(number_of(copy), 3);
    const Call moved = std::move(call);
    EXPECT_EQ(counts.destroyed, 1);
  }
  EXPECT_EQ(counts.made, 3);
  EXPECT_EQ(counts.destroyed, 3);
}

TEST(SimulatedInstanceTest, OtherAttributesMakeAnotherOne) {
  Call call = counting();
  EXPECT_EQ(number_of(call), 1);
  call.attribute("k", 1);
  EXPECT_EQ(counts.destroyed, 1);
  EXPECT_EQ(number_of(call), 2);
}

TEST(SimulatedInstanceTest, OtherOperandsDoNot) {
  Call call = counting();
  EXPECT_EQ(number_of(call), 1);
  call.clear_operands().output<std::int32_t>({3});
  EXPECT_EQ(call.run().output<std::int32_t>(0), (std::vector<std::int32_t>{1, -1, -1}));
}

// What the last call of `record_init` saw, and what it reads of `extra`.
struct SeenByInit {
  std::vector<Ints> sizes;
  std::vector<std::string> dtypes;
  std::vector<bool> null_shapes;
  int64_t attribute;
  std::thread::id thread;
} seen_by_init;

// For three operands with an attribute.
int record_init(int* ndims, int64_t** shapes, const char** dtypes, void* extra) {
  seen_by_init = {};
  for (int i = 0; i < 3; ++i) {
    seen_by_init.sizes.emplace_back(shapes[i], shapes[i] + ndims[i]);
    seen_by_init.dtypes.emplace_back(dtypes[i]);
    seen_by_init.null_shapes.push_back(shapes[i] == nullptr);
  }
  seen_by_init.attribute = read(extra, &host::Extra::get_attr_int);
  seen_by_init.thread = std::this_thread::get_id();
  return 0;
}

TEST(SimulatedInstanceTest, InitSeesInputsThenOutputsInTheCallingThread) {
  Functions functions;
  functions.kernel = &do_nothing;
  functions.init = &record_init;
  Call call(functions);
  call.attribute("k", 5).input<float>({2, 1}, {1, 2}).input_none().output<double>({3});
  EXPECT_EQ(call.run().error(), "");
  EXPECT_EQ(seen_by_init.sizes, (std::vector<Ints>{{2, 1}, {}, {3}}));
  EXPECT_EQ(seen_by_init.dtypes, (std::vector<std::string>{"float32", "none", "float64"}));
  EXPECT_EQ(seen_by_init.null_shapes, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(seen_by_init.attribute, 5);
  EXPECT_EQ(seen_by_init.thread, std::this_thread::get_id());
}

TEST(SimulatedInstanceTest, InitSeesWhatIsKnown) {
  Functions functions;
  functions.kernel = &record;
  functions.init = &record_init;
  Call call(functions);
  call.attribute("k", 5).input<float>({2, 1}, {1, 2}).input_number(3).output<float>({2});
  call.known_sizes(0, {-1, 1}).known_output_sizes(0, {-2}).workspace(1);
  EXPECT_EQ(call.run().error(), "");
  EXPECT_EQ(seen_by_init.sizes, (std::vector<Ints>{{-1, 1}, {}, {-2}}));
  EXPECT_EQ(seen.first_sizes, (Ints{2, 0, 2})) << "the kernel sees real sizes";
}

int fail_init(int*, int64_t**, const char**, void* extra) {
  host::kernel_data(extra) = new Data(++counts.made);
  return 9;
}
int throw_in_init(int*, int64_t**, const char**, void*) { throw std::runtime_error("lost"); }
int throw_int_in_init(int*, int64_t**, const char**, void*) {
  throw 5;  // NOLINT(hicpp-exception-baseclass): the point of the test
}
const char* last_error() { return "kept"; }

TEST(SimulatedInstanceTest, FailuresOfInitFailTheRun) {
  counts = {};
  Functions functions;
  functions.name = "Op";
  functions.kernel = [](int, void**, int*, int64_t**, const char**, void*, void*) -> int {
    throw std::logic_error("called");
  };
  functions.last_error = &last_error;
  functions.init = &fail_init;
  Call call(functions);
  EXPECT_EQ(call.run().error(), "OpInit failed");
  EXPECT_EQ(counts.destroyed, 1) << "what Init made before it failed";
  EXPECT_EQ(call.run_here().error(), "OpInit failed") << "and is called again";
  EXPECT_EQ(counts.made, 2);

  functions.init = &throw_in_init;
  const Result thrown = Call(functions).run();
  EXPECT_FALSE(thrown.ok());
  EXPECT_EQ(thrown.error(), "OpInit failed");
  EXPECT_EQ(thrown.last_error(), "kept");
  functions.init = &throw_int_in_init;
  EXPECT_EQ(Call(functions).run().error(), "Error occurred. Exception name: i");
}

TEST(SimulatedInstanceTest, OlderHostsDoNotCallInit) {
  counts = {};
  Functions functions;
  functions.kernel = &do_nothing;
  functions.init = &make_data;
  EXPECT_EQ(Call(functions).without_init().run().error(), "");
  EXPECT_EQ(counts.made, 0);
}

// The workspaces that the last call of `record_workspaces` saw.
std::vector<std::size_t> seen_workspaces;

int record_workspaces(int nparam, void** params, int*, int64_t**, const char**, void*,
                      void* extra) {
  seen.params.assign(params, params + nparam);
  seen_workspaces = host::workspaces(extra);
  host::workspaces(extra) = {1};  // too late
  return 0;
}

TEST(SimulatedInstanceTest, WorkspacesOfInitAreThereInEveryRun) {
  Functions functions;
  functions.kernel = &record_workspaces;
  functions.init = [](int*, int64_t**, const char**, void* extra) {
    host::workspaces(extra) = {100, 0};
    return 0;
  };
  Call call(functions);
  call.output<float>({1}).workspace(8);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(call.run().error(), "");
    EXPECT_EQ(seen_workspaces, (std::vector<std::size_t>{100, 0, 8}));
    ASSERT_EQ(seen.params.size(), 4);
    EXPECT_EQ(std::count(seen.params.begin(), seen.params.end(), nullptr), 0);
  }
}

#ifndef ATEN_BRIDGE_TESTING_ASAN
TEST(SimulatedInstanceTest, WritesBesideAWorkspaceOfInitAreFound) {
  Functions functions;
  functions.kernel = &write_behind;
  functions.init = [](int*, int64_t**, const char**, void* extra) {
    host::workspaces(extra) = {4};
    return 0;
  };
  EXPECT_EQ(message_of([&] { Call(functions).run(); }),
            "the kernel wrote to memory that is not its own: workspace 0, behind its last byte");
}
#endif

//===----------------------------------------------------------------------===//
// Infer hooks
//===----------------------------------------------------------------------===//

// What the last call of an infer hook below saw, for two tensors.
struct SeenByInfer {
  std::vector<Ints> sizes;
  bool null_shape;
  std::vector<int> ids;
  void* kernel_data;
  int64_t attribute;
} seen_by_infer;

Ints infer_shape(int* ndims, int64_t** shapes, void* extra) {
  seen_by_infer = {};
  for (int i = 0; i < 2; ++i) {
    seen_by_infer.sizes.emplace_back(shapes[i], shapes[i] + ndims[i]);
  }
  seen_by_infer.null_shape = shapes[1] == nullptr;
  seen_by_infer.kernel_data = host::kernel_data(extra);
  seen_by_infer.attribute = read(extra, &host::Extra::get_attr_int);
  return {shapes[0][0], seen_by_infer.attribute};
}

// The host's ids are an enumeration; a kernel may declare one of its own.
enum TypeId : int {};

TypeId infer_type(std::vector<TypeId> ids, void*) {
  seen_by_infer.ids.assign(ids.begin(), ids.end());
  return ids[1];
}

template <class Shape, class Type>
Call inferring(Shape shape, Type type) {
  Functions functions;
  functions.name = "Op";
  functions.infer_shape = reinterpret_cast<InferFunction>(shape);
  functions.infer_type = reinterpret_cast<InferFunction>(type);
  return Call(functions);
}

TEST(SimulatedInferTest, HooksSeeTensorsOnly) {
  Call call = inferring(&infer_shape, &infer_type);
  call.attribute("k", 5)
      .input_none()
      .input<float>({2, 3}, {1, 2, 3, 4, 5, 6})
      .input_number(1)
      .input_number(0.5)
      .input_number(true)
      .input_bytes("string", {}, {'k', 0})
      .input<int64_t>({}, {4})
      .output<float>({9});
  const Inferred inferred = call.infer();
  EXPECT_TRUE(inferred.ok()) << inferred.error();
  EXPECT_EQ(inferred.sizes(), (std::vector<Ints>{{2, 5}}));
  EXPECT_EQ(inferred.dtypes(), std::vector<std::string>{"int64"});
  EXPECT_EQ(seen_by_infer.sizes, (std::vector<Ints>{{2, 3}, {}}));
  EXPECT_TRUE(seen_by_infer.null_shape);
  EXPECT_EQ(seen_by_infer.ids, (std::vector<int>{43, 35}));
  EXPECT_EQ(seen_by_infer.kernel_data, nullptr);
}

TEST(SimulatedInferTest, NumbersAreInputsOfTheKernel) {
  Call call(&record);
  call.input_number(7).input_number(0.1).input_number(false).workspace(1);
  EXPECT_EQ(call.run().error(), "");
  EXPECT_EQ(seen.ndims, (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(seen.dtypes, (std::vector<std::string>{"int64", "float32", "bool"}));
  EXPECT_EQ(call.input_now(0), (std::vector<unsigned char>{7, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(SimulatedInferTest, HooksSeeWhatIsKnown) {
  Call call = inferring(&infer_shape, &infer_type);
  call.attribute("k", 5).input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input<float>({1}, {1});
  call.known_sizes(0, {-1, 3}).known_sizes(1, {-2});
  EXPECT_EQ(call.infer().sizes(), (std::vector<Ints>{{-1, 5}}));
  EXPECT_EQ(seen_by_infer.sizes, (std::vector<Ints>{{-1, 3}, {-2}}));
}

std::vector<Ints> infer_shapes(int*, int64_t**, void*) { return {{1, 2}, {}}; }
std::vector<TypeId> infer_types(std::vector<TypeId>, void*) { return {TypeId{30}, TypeId{51}}; }

TEST(SimulatedInferTest, SeveralOutputsAreLists) {
  Call call = inferring(&infer_shapes, &infer_types);
  const Inferred inferred = call.multi_output(true).infer();
  EXPECT_EQ(inferred.sizes(), (std::vector<Ints>{{1, 2}, {}}));
  EXPECT_EQ(inferred.dtypes(), (std::vector<std::string>{"bool", "TypeId 51"}));
  EXPECT_EQ(call.type_id("complex64", 51).infer_type_only().dtypes().at(1), "complex64");
  EXPECT_EQ(call.infer_shape_only().dtypes(), std::vector<std::string>());
}

TEST(SimulatedInferTest, NumberOfOutputsIsAnAttribute) {
  Functions functions;
  functions.infer_shape = reinterpret_cast<InferFunction>(+[](int*, int64_t**, void* extra) {
    auto* host = static_cast<aten_bridge::testing::detail::Extra*>(extra);
    return Ints{static_cast<int64_t>(host->get_bool("multi_output"))};
  });
  EXPECT_EQ(Call(functions).infer_shape_only().sizes(), std::vector<Ints>{{0}});
}

Ints throw_in_infer_shape(int*, int64_t**, void*) { throw std::runtime_error("no such axis"); }
TypeId throw_int_in_infer_type(std::vector<TypeId>, void*) {
  throw 5;  // NOLINT(hicpp-exception-baseclass): the point of the test
}

TEST(SimulatedInferTest, ExceptionsComeBack) {
  Call call = inferring(&throw_in_infer_shape, &throw_int_in_infer_type);
  const Inferred inferred = call.infer();
  EXPECT_FALSE(inferred.ok());
  EXPECT_EQ(inferred.error(), "no such axis");
  EXPECT_EQ(inferred.sizes(), std::vector<Ints>());
  EXPECT_EQ(call.infer_type_only().error(), "Error occurred. Exception name: i");
}

TEST(SimulatedInferTest, DtypesWithoutAnIdAreErrors) {
  Call call = inferring(&infer_shape, &infer_type);
  call.input_bytes("bfloat16", {1}, {0, 0});
  EXPECT_EQ(message_of([&] { call.infer_type_only(); }),
            "no TypeId for bfloat16: give it with type_id()");
  call.input<float>({1}, {1}).type_id("bfloat16", 45).infer_type_only();
  EXPECT_EQ(seen_by_infer.ids, (std::vector<int>{45, 43}));
}

TEST(SimulatedInferTest, MissingHooksAreErrors) {
  const std::string error = message_of([] { Library("libc.so.6").call("abs").infer(); });
  const std::string expected = ": undefined symbol: absInferShape";
  ASSERT_GT(error.size(), expected.size());
  EXPECT_EQ(error.substr(error.size() - expected.size()), expected);
}

}  // namespace
