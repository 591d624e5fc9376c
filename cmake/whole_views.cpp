// MindSpore's own kernels get whole tensors. Part of each library with HOST MINDSPORE_PLUGIN.
//
// They read an input as if its elements lay one behind the other. MindSpore 2.10 makes views whole
// before them, but not where MS_OP_PLUGIN_PATH is set, whoever runs the operator: then they read a
// view's memory as a whole tensor's, silently. (In PyNative mode in libmindspore_pynative.so, in
// graph mode in NeedCheckInputContiguous() of libmindspore_ms_backend.so.)
//
// Each of its kernels is launched, in both modes, through NativeCpuKernelMod::Launch() with four
// arguments, which calls the kernel's own with three. When MindSpore opens this library, that entry
// of the kernels' virtual tables is bound to launch_whole() below, as the dynamic linker would have
// bound it, had the library been there first. The library's own kernels, which read views as they
// are, keep theirs. Where a MindSpore is of another make nothing is changed.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace {

//===--- What is taken of MindSpore 2.10: test_whole_views.py compares it with its headers ---===//

struct StorageInfo {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::size_t offset;  // in elements, as the strides
  std::vector<int64_t> base_sizes;
  std::vector<int64_t> base_strides;
  bool is_contiguous;
};
struct DeviceAddress;
struct KernelMod;

// Of a KernelTensor only the places of three members are known; its own functions do the rest.
constexpr std::size_t kSizeOfKernelTensor = 392;
constexpr std::size_t kDeviceAddress = 200;
constexpr std::size_t kTypeId = 240;
constexpr std::size_t kStorageInfo = 376;
constexpr std::size_t kSizeOfDeviceAddress = 128;
struct alignas(std::max_align_t) KernelTensor {
  template <class T>
  const T& member(std::size_t place) const {
    return *reinterpret_cast<const T*>(bytes + place);
  }
  const std::shared_ptr<StorageInfo>& storage() const {
    return member<std::shared_ptr<StorageInfo>>(kStorageInfo);
  }
  int type_id() const { return member<int>(kTypeId); }

  std::byte bytes[kSizeOfKernelTensor];
};

using KernelTensors = std::vector<KernelTensor*>;
using Launch = bool (*)(KernelMod*, const KernelTensors& inputs, const KernelTensors& workspaces,
                        const KernelTensors& outputs, void* stream);

constexpr const char* kLaunch =
    "_ZN9mindspore6kernel18NativeCpuKernelMod6LaunchERKSt6vectorIPNS0_12KernelTensorESaIS4_EES8_S8_"
    "Pv";
constexpr const char* kPluginKernel =
    "_ZTVN9mindspore6kernel9op_plugin26CustomOpPluginCpuKernelModE";

/// MindSpore's functions, found by their names.
struct MindSpore {
  Launch launch;
  const std::byte* plugin_kernel;  // the virtual table
  void (*copy)(KernelTensor* to, const KernelTensor& from);
  void (*make)(KernelTensor*, const std::shared_ptr<DeviceAddress>&,
               const std::shared_ptr<StorageInfo>&, int type_id, const std::vector<int64_t>& sizes,
               const std::shared_ptr<void>& user_data);
  void (*destroy)(KernelTensor*);
  void (*set_address)(KernelTensor*, const std::shared_ptr<DeviceAddress>&);
  const std::shared_ptr<DeviceAddress>& (*address)(const KernelTensor*);
  void (*make_address)(void* address, void* data, std::size_t bytes, int device, uint32_t stream);
  void (*destroy_address)(void* address);
  void* (*data)(const DeviceAddress*);
  std::size_t (*item_size)(int type_id);

  /// False if any is missing.
  bool find();
};

MindSpore mindspore;

bool MindSpore::find() {
  // It depends on the libraries that have the others. Not opened here: MindSpore has.
  void* library = dlopen("libmindspore_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    return false;
  }
  bool all = true;
  const auto look_up = [&](const char* name, auto& function) {
    void* found = dlsym(library, name);
    std::memcpy(&function, &found, sizeof(found));
    all = all && found != nullptr;
  };
  look_up(kLaunch, launch);
  look_up(kPluginKernel, plugin_kernel);
  look_up("_ZN9mindspore6kernel12KernelTensorC1ERKS1_", copy);
  look_up(
      "_ZN9mindspore6kernel12KernelTensorC1ERKSt10shared_ptrINS_6device13DeviceAddressEERKS2_INS_"
      "17TensorStorageInfoEENS_6TypeIdERKSt6vectorIlSaIlEERKS2_INS_8UserDataEE",
      make);
  look_up("_ZN9mindspore6kernel12KernelTensorD1Ev", destroy);
  look_up(
      "_ZN9mindspore6kernel12KernelTensor18set_device_addressERKSt10shared_ptrINS_6device13"
      "DeviceAddressEE",
      set_address);
  look_up("_ZNK9mindspore6kernel12KernelTensor14device_addressEv", address);
  look_up("_ZN9mindspore6device13DeviceAddressC1EPvmNS0_10DeviceTypeEj", make_address);
  look_up("_ZN9mindspore6device13DeviceAddressD1Ev", destroy_address);
  look_up("_ZNK9mindspore6device13DeviceAddress6GetPtrEv", data);
  look_up("_ZN9mindspore15UnitSizeInBytesENS_6TypeIdE", item_size);
  dlclose(library);
  return all;
}

/// An address of the CPU, of memory that somebody else owns.
std::shared_ptr<DeviceAddress> address_of(void* data, std::size_t bytes) {
  struct alignas(std::max_align_t) Object {
    Object(void* data, std::size_t bytes) { mindspore.make_address(this, data, bytes, 1, 0); }
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    ~Object() { mindspore.destroy_address(this); }
    std::byte object[kSizeOfDeviceAddress];
  };
  auto object = std::make_shared<Object>(data, bytes);
  return {object, reinterpret_cast<DeviceAddress*>(object->object)};
}

/// Whether a tensor that MindSpore makes has its members where they are looked for.
bool has_known_layout() {
  constexpr int kFloat32 = 43;
  const auto address = address_of(nullptr, 8);
  const auto storage = std::make_shared<StorageInfo>();
  KernelTensor tensor{};
  mindspore.make(&tensor, address, storage, kFloat32, {2}, nullptr);
  const bool known = tensor.member<std::shared_ptr<DeviceAddress>>(kDeviceAddress) == address &&
                     tensor.storage() == storage && tensor.type_id() == kFloat32 &&
                     mindspore.item_size(kFloat32) == 4;
  mindspore.destroy(&tensor);
  return known;
}

//===--- Views made whole for one launch ---===//

// A type of as many bytes: what the elements mean does not matter to a copy.
at::ScalarType type_of(std::size_t item_size) {
  switch (item_size) {
    case 1:
      return at::kByte;
    case 2:
      return at::kShort;
    case 4:
      return at::kInt;
    case 8:
      return at::kLong;
    case 16:
      return at::kComplexDouble;
    default:
      return at::ScalarType::Undefined;
  }
}

bool is_view(const KernelTensor* tensor) {
  return tensor != nullptr && tensor->storage() != nullptr;
}

std::atomic<int64_t> views_made_whole = 0;

/// A copy of a tensor that is a view, whole and in memory of its own.
class WholeTensor {
 public:
  explicit WholeTensor(const KernelTensor& view) {
    const StorageInfo& storage = *view.storage();
    const at::ScalarType type = type_of(mindspore.item_size(view.type_id()));
    TORCH_CHECK(type != at::ScalarType::Undefined, "MindSpore's kernel: a view of elements of ",
                mindspore.item_size(view.type_id()), " bytes cannot be made whole");
    auto* base = static_cast<std::byte*>(mindspore.data(mindspore.address(&view).get()));
    const std::size_t item_size = at::elementSize(type);
    view_ = at::from_blob(base + storage.offset * item_size, storage.sizes, storage.strides, type);
    whole_ = at::empty(storage.sizes, type);
    whole_.copy_(view_);
    mindspore.copy(&tensor_, view);
    set_storage(nullptr);
    mindspore.set_address(&tensor_, address_of(whole_.data_ptr(), whole_.nbytes()));
    views_made_whole.fetch_add(1, std::memory_order_relaxed);
  }
  WholeTensor(const WholeTensor&) = delete;
  WholeTensor& operator=(const WholeTensor&) = delete;
  ~WholeTensor() { mindspore.destroy(&tensor_); }

  KernelTensor* tensor() { return &tensor_; }

  /// What a kernel has written to the copy goes where it was meant to.
  void write_back() { view_.copy_(whole_); }

 private:
  void set_storage(std::shared_ptr<StorageInfo> storage) {
    const_cast<std::shared_ptr<StorageInfo>&>(tensor_.storage()) = std::move(storage);
  }

  KernelTensor tensor_;
  at::Tensor view_;
  at::Tensor whole_;
};

[[gnu::noinline, gnu::cold]] bool launch_with_copies(KernelMod* kernel, const KernelTensors& inputs,
                                                     const KernelTensors& workspaces,
                                                     const KernelTensors& outputs, void* stream) {
  const c10::impl::ExcludeDispatchKeyGuard below_autograd(c10::autograd_dispatch_keyset);
  std::vector<std::unique_ptr<WholeTensor>> copies;
  const auto make_whole = [&copies](KernelTensors tensors) {
    for (KernelTensor*& tensor : tensors) {
      if (is_view(tensor)) {
        copies.push_back(std::make_unique<WholeTensor>(*tensor));
        tensor = copies.back()->tensor();
      }
    }
    return tensors;
  };
  const KernelTensors whole_inputs = make_whole(inputs);
  const std::size_t input_count = copies.size();
  const KernelTensors whole_outputs = make_whole(outputs);
  const bool done = mindspore.launch(kernel, whole_inputs, workspaces, whole_outputs, stream);
  for (std::size_t i = input_count; i < copies.size(); ++i) {
    copies[i]->write_back();
  }
  return done;
}

/// In the place of NativeCpuKernelMod::Launch().
bool launch_whole(KernelMod* kernel, const KernelTensors& inputs, const KernelTensors& workspaces,
                  const KernelTensors& outputs, void* stream) {
  if (std::any_of(inputs.begin(), inputs.end(), is_view) ||
      std::any_of(outputs.begin(), outputs.end(), is_view)) {
    return launch_with_copies(kernel, inputs, workspaces, outputs, stream);
  }
  return mindspore.launch(kernel, inputs, workspaces, outputs, stream);
}

//===--- Binding a symbol anew ---===//

#if defined(__x86_64__)
constexpr auto kAbsoluteAddress = R_X86_64_64;
#elif defined(__aarch64__)
constexpr auto kAbsoluteAddress = R_AARCH64_ABS64;
#endif

/// The relocations of one loaded library.
struct Relocations {
  explicit Relocations(const dl_phdr_info& library) : base(library.dlpi_addr) {
    for (int i = 0; i < library.dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = library.dlpi_phdr[i];
      if (header.p_type == PT_GNU_RELRO) {
        read_only_begin = base + header.p_vaddr;
        read_only_end = read_only_begin + header.p_memsz;
      } else if (header.p_type == PT_DYNAMIC) {
        read(reinterpret_cast<const ElfW(Dyn)*>(base + header.p_vaddr));
      }
    }
  }

  // The dynamic linker has turned these into addresses.
  void read(const ElfW(Dyn) * entry) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_SYMTAB) {
        symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
      } else if (entry->d_tag == DT_STRTAB) {
        names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
      } else if (entry->d_tag == DT_RELA) {
        begin = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
      } else if (entry->d_tag == DT_RELASZ) {
        count = entry->d_un.d_val / sizeof(ElfW(Rela));
      }
    }
  }

  /// Calls `visit` with each place that holds the address of the symbol `name`.
  template <class Visit>
  void for_each_place_of(std::string_view name, const Visit& visit) const {
    for (std::size_t i = 0; i < count; ++i) {
      const ElfW(Rela)& relocation = begin[i];
      if (ELF64_R_TYPE(relocation.r_info) == kAbsoluteAddress && relocation.r_addend == 0 &&
          name == names + symbols[ELF64_R_SYM(relocation.r_info)].st_name) {
        visit(reinterpret_cast<std::byte*>(base + relocation.r_offset));
      }
    }
  }

  ElfW(Addr) base;
  ElfW(Addr) read_only_begin = 0;
  ElfW(Addr) read_only_end = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * begin = nullptr;
  std::size_t count = 0;
};

/// Writes a pointer to memory that the dynamic linker has made read-only after it was done.
bool write(std::byte* place, Launch value, bool is_read_only) {
  const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* page = place - reinterpret_cast<std::uintptr_t>(place) % page_size;
  if (is_read_only && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  __atomic_store_n(reinterpret_cast<Launch*>(place), value, __ATOMIC_RELEASE);
  return !is_read_only || mprotect(page, page_size, PROT_READ) == 0;
}

/// Whether a place is in the virtual table of the kernels of plugins.
bool is_in_plugin_kernel(const std::byte* place) {
  Dl_info found;
  return dladdr(place, &found) != 0 && found.dli_saddr == mindspore.plugin_kernel;
}

/// Binds the entry in the virtual table of one library's kernels. Returns 1 for an error.
int bind_in_library(dl_phdr_info* library, std::size_t /*size*/, void* /*data*/) {
  if (std::string_view(library->dlpi_name).find("libmindspore_") == std::string_view::npos) {
    return 0;
  }
  const Relocations relocations(*library);
  int failed = 0;
  relocations.for_each_place_of(kLaunch, [&](std::byte* place) {
    Launch bound;
    std::memcpy(&bound, place, sizeof(bound));
    if (bound == mindspore.launch && !is_in_plugin_kernel(place)) {
      const auto address = reinterpret_cast<ElfW(Addr)>(place);
      const bool is_read_only =
          address >= relocations.read_only_begin && address < relocations.read_only_end;
      failed |= write(place, launch_whole, is_read_only) ? 0 : 1;
    }
  });
  return failed;
}

/// Whether MindSpore's own kernels get whole tensors. Warns once where there are such kernels, but
/// not as they are known.
bool bind() {
  if (mindspore.find() && has_known_layout() && dl_iterate_phdr(bind_in_library, nullptr) == 0) {
    return true;
  }
  if (void* library = dlopen("libmindspore_core.so", RTLD_LAZY | RTLD_NOLOAD)) {
    dlclose(library);
    std::fputs(
        "aten_bridge: WARNING: this MindSpore is not 2.10.0 as PyPI has it. Beside a library of "
        "kernels (MS_OP_PLUGIN_PATH) its own kernels take views (transposed, sliced) for whole "
        "tensors, and give wrong results: use MindSpore 2.10.0, or give x.contiguous() to "
        "functions "
        "that the library has no kernel for.\n",
        stderr);
  }
  return false;
}

const bool is_bound = bind();

}  // namespace

/// How many views have been made whole for MindSpore's own kernels so far; -1 if none can be, since
/// there is no MindSpore in the process or another one than 2.10.0.
extern "C" __attribute__((visibility("default"))) int64_t aten_bridge_views_made_whole() {
  return is_bound ? views_made_whole.load(std::memory_order_relaxed) : -1;
}
