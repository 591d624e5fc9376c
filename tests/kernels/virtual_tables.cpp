// Virtual tables like those of MindSpore's CPU kernels, under MindSpore's names: what
// cmake/package/patch_mindspore.cpp finds and replaces.
#include <vector>

namespace mindspore::kernel {

class KernelTensor;
using KernelTensors = std::vector<KernelTensor*>;

class NativeCpuKernelMod {
 public:
  virtual ~NativeCpuKernelMod() = default;
  virtual int GetKernelModType() const;
  virtual bool Launch(const KernelTensors& inputs, const KernelTensors& workspaces,
                      const KernelTensors& outputs, void* stream);
  virtual int key() const { return 0; }
};

int NativeCpuKernelMod::GetKernelModType() const { return 7; }
bool NativeCpuKernelMod::Launch(const KernelTensors& /*inputs*/,
                                const KernelTensors& /*workspaces*/,
                                const KernelTensors& /*outputs*/, void* stream) {
  *static_cast<const char**>(stream) = "inherited";
  return true;
}

namespace op_plugin {

class CustomOpPluginCpuKernelMod : public NativeCpuKernelMod {
 public:
  int key() const override;
};
int CustomOpPluginCpuKernelMod::key() const { return 1; }

}  // namespace op_plugin

namespace {

struct Inherits : NativeCpuKernelMod {
  int key() const override { return 2; }
};

struct HasItsOwn : NativeCpuKernelMod {
  bool Launch(const KernelTensors& /*inputs*/, const KernelTensors& /*workspaces*/,
              const KernelTensors& /*outputs*/, void* stream) override {
    *static_cast<const char**>(stream) = "own";
    return false;
  }
};

}  // namespace
}  // namespace mindspore::kernel

// An object of each class that has such a table beside the base.
extern "C" void* plugin_kernel() {
  static mindspore::kernel::op_plugin::CustomOpPluginCpuKernelMod kernel;
  return &kernel;
}
extern "C" void* inheriting_kernel() {
  static mindspore::kernel::Inherits kernel;
  return &kernel;
}
extern "C" void* own_kernel() {
  static mindspore::kernel::HasItsOwn kernel;
  return &kernel;
}
