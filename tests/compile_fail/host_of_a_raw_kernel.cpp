// expect: aten_bridge: a kernel over a CallFrame is for MindSpore alone, whose call it is.
#define ATEN_BRIDGE_ENTRY_BESIDE(Name) \
  const char* Name##Mine() { return aten_bridge_kernel_##Name.call<MyCall>(); }
#include <aten_bridge.h>

namespace {
struct MyCall : aten_bridge::HostCallDefaults {
  using Result = const char*;
  static constexpr aten_bridge::HostMessages kMessages = {};
  explicit MyCall(const char* /*operator_name*/) {}
  int size() const { return 0; }
  void describe(aten_bridge::OperandDescs /*operands*/) const {}
  static const char* succeed() { return nullptr; }
  static const char* fail(const aten_bridge::Failure&, aten_bridge::ErrorMode) { return ""; }
};
void kernel(const aten_bridge::CallFrame& /*frame*/) {}
}  // namespace
ATEN_BRIDGE_EXPORT(Kernel, kernel);
