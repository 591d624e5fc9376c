// expect: aten_bridge: a host's class has a constructor of the operator's name, a `const char*`,
// and of what the host's C function gets.
#define ATEN_BRIDGE_ENTRY_BESIDE(Name) \
  const char* Name##Mine(int size) { return aten_bridge_kernel_##Name.call<MyCall>(size); }
#include <aten_bridge.h>

namespace {
struct MyCall : aten_bridge::HostCallDefaults {
  using Result = const char*;
  static constexpr aten_bridge::HostMessages kMessages = {};
  explicit MyCall(const char* /*operator_name*/) {}
  int size() const { return 0; }
  void describe(aten_bridge::OperandDescs /*operands*/) const {}
  static const char* succeed() { return nullptr; }
  static const char* fail(const aten_bridge::Failure& /*failure*/,
                          aten_bridge::ErrorMode /*mode*/) {
    return "";
  }
};
void kernel(const at::Tensor& x, at::Tensor& y) { y.copy_(x); }
}  // namespace
ATEN_BRIDGE_EXPORT(Kernel, kernel);
