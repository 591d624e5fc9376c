// Patches the virtual tables of MindSpore's CPU kernels, in the running process, so that they get
// contiguous tensors beside a library of kernels. Part of a library for which
// aten_bridge_add_kernel() has PATCH_MINDSPORE.
//
// The kernels read an input as if its elements lay one behind the other. MindSpore 2.10 copies
// views before it calls them, but not where MS_OP_PLUGIN_PATH is set, whatever runs the operator:
// then they read a view's memory as that of a contiguous tensor, silently. (In PyNative mode in
// libmindspore_pynative.so, in graph mode in NeedCheckInputContiguous() of
// libmindspore_ms_backend.so.)
//
// MindSpore launches each of its kernels, in both modes, through the virtual function
// NativeCpuKernelMod::Launch() with four arguments; all but two classes leave it as it is. When
// MindSpore asks this library for its operators, that entry of the kernels' virtual tables is
// replaced by functions below. The tables lie in memory that the dynamic linker has made read-only:
// each page is made writable, and read-only again afterwards. The library's own kernels, which read
// views as they are, keep theirs.
//
// Before anything is written: all twelve functions are found by name, a KernelTensor that MindSpore
// makes has its members at the offsets below, Launch() stands in a table that is known, and each
// entry holds a function of MindSpore's. Otherwise nothing is changed, and a warning is printed.
// ATEN_BRIDGE_PATCH_MINDSPORE=0 leaves the tables as they are.
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
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace {

//===--- What is taken of MindSpore 2.10: test_patch_mindspore.py compares it with its headers
//---===//

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

// Only the places of three members of a KernelTensor are known; its own functions do the rest. It
// has a mutex, of 40 bytes on x86-64 and 48 on AArch64.
constexpr std::size_t kSizeOfKernelTensor = 352 + sizeof(std::mutex);
constexpr std::size_t kDeviceAddress = 200;
constexpr std::size_t kTypeId = 240;
constexpr std::size_t kStorageInfo = 336 + sizeof(std::mutex);
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
// The same virtual tables have these, and all have the same.
constexpr const char* kGetKernelModType =
    "_ZNK9mindspore6kernel18NativeCpuKernelMod16GetKernelModTypeEv";
constexpr const char* kPluginKernel =
    "_ZTVN9mindspore6kernel9op_plugin26CustomOpPluginCpuKernelModE";

/// MindSpore's functions, found by their names.
struct MindSpore {
  Launch launch;
  void* get_kernel_mod_type;
  const std::byte* plugin_kernel;  // the virtual table of the kernels of plugins
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
  look_up(kGetKernelModType, get_kernel_mod_type);
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
    std::byte object[2 * kSizeOfDeviceAddress];  // another MindSpore's may be larger
  };
  auto object = std::make_shared<Object>(data, bytes);
  return {object, reinterpret_cast<DeviceAddress*>(object->object)};
}

/// Whether a tensor that MindSpore makes has its members where they are looked for.
bool has_known_layout() {
  constexpr int kFloat32 = 43;
  const auto address = address_of(nullptr, 8);
  const auto storage = std::make_shared<StorageInfo>();
  KernelTensor tensors[2] = {};  // another MindSpore's may be larger than one of these
  KernelTensor& tensor = tensors[0];
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

// Inputs that a kernel only asks for their sizes may have no memory.
bool is_view(const KernelTensor* tensor) {
  if (tensor == nullptr || tensor->storage() == nullptr) {
    return false;
  }
  const std::shared_ptr<DeviceAddress>& address = mindspore.address(tensor);
  return address != nullptr && mindspore.data(address.get()) != nullptr;
}

std::atomic<int64_t> contiguous_copies = 0;

/// A tensor that is a view as a whole one: in memory of its own, unless its elements lie one behind
/// the other already.
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
    whole_ = view_;
    if (!view_.is_contiguous()) {
      whole_ = at::empty(storage.sizes, type);
      whole_.copy_(view_);
      contiguous_copies.fetch_add(1, std::memory_order_relaxed);
    }
    mindspore.copy(&tensor_, view);
    set_storage(nullptr);
    mindspore.set_address(&tensor_, address_of(whole_.data_ptr(), whole_.nbytes()));
  }
  WholeTensor(const WholeTensor&) = delete;
  WholeTensor& operator=(const WholeTensor&) = delete;
  ~WholeTensor() { mindspore.destroy(&tensor_); }

  KernelTensor* tensor() { return &tensor_; }

  /// What a kernel has written to the copy goes where it was meant to.
  void flush_aligned_copies() {
    if (!whole_.is_same(view_)) {
      view_.copy_(whole_);
    }
  }

 private:
  void set_storage(std::shared_ptr<StorageInfo> storage) {
    const_cast<std::shared_ptr<StorageInfo>&>(tensor_.storage()) = std::move(storage);
  }

  KernelTensor tensor_;
  at::Tensor view_;
  at::Tensor whole_;
};

/// Outputs are written back. Inputs are not: MindSpore refuses views in its operators that write
/// them ("Not support view input for inplace op"), and its own copies are not written back either.
[[gnu::noinline, gnu::cold]] bool launch_with_copies(Launch launch, KernelMod* kernel,
                                                     const KernelTensors& inputs,
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
  const bool done = launch(kernel, whole_inputs, workspaces, whole_outputs, stream);
  for (std::size_t i = input_count; i < copies.size(); ++i) {
    copies[i]->flush_aligned_copies();
  }
  return done;
}

bool launch_whole(Launch launch, KernelMod* kernel, const KernelTensors& inputs,
                  const KernelTensors& workspaces, const KernelTensors& outputs, void* stream) {
  if (std::any_of(inputs.begin(), inputs.end(), is_view) ||
      std::any_of(outputs.begin(), outputs.end(), is_view)) {
    return launch_with_copies(launch, kernel, inputs, workspaces, outputs, stream);
  }
  return launch(kernel, inputs, workspaces, outputs, stream);
}

/// Replaces NativeCpuKernelMod::Launch().
bool launch_inherited(KernelMod* kernel, const KernelTensors& inputs,
                      const KernelTensors& workspaces, const KernelTensors& outputs, void* stream) {
  return launch_whole(mindspore.launch, kernel, inputs, workspaces, outputs, stream);
}

/// Where the virtual tables have Launch(), in bytes: behind GetKernelModType(), and behind where an
/// object points to.
std::ptrdiff_t launch_behind_type = 0;
std::ptrdiff_t launch_in_table = 0;

/// The Launch() of classes that have their own, by the place in the virtual table. Complete before
/// it is read.
std::vector<std::pair<const std::byte*, Launch>> own_launches;

/// Replaces those.
bool launch_own(KernelMod* kernel, const KernelTensors& inputs, const KernelTensors& workspaces,
                const KernelTensors& outputs, void* stream) {
  const std::byte* place = *reinterpret_cast<const std::byte* const*>(kernel) + launch_in_table;
  const auto found = std::find_if(own_launches.begin(), own_launches.end(),
                                  [place](const auto& own) { return own.first == place; });
  return launch_whole(found->second, kernel, inputs, workspaces, outputs, stream);
}

//===--- The entries of the virtual tables ---===//

#if defined(__x86_64__)
constexpr auto kAbsoluteAddress = R_X86_64_64;
#elif defined(__aarch64__)
constexpr auto kAbsoluteAddress = R_AARCH64_ABS64;
#else
#error "PATCH_MINDSPORE knows the relocations of x86-64 and AArch64 only."
#endif

std::uintptr_t page_size() { return static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)); }

/// The relocations of one loaded library.
struct Relocations {
  explicit Relocations(const dl_phdr_info& library) : base(library.dlpi_addr) {
    for (int i = 0; i < library.dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = library.dlpi_phdr[i];
      if (header.p_type == PT_GNU_RELRO) {
        read_only_begin = base + header.p_vaddr;
        // The dynamic linker leaves a page that is read-only in part as it is.
        read_only_end = read_only_begin + header.p_memsz;
        read_only_end -= read_only_end % page_size();
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
  auto* page = place - reinterpret_cast<std::uintptr_t>(place) % page_size();
  if (is_read_only && mprotect(page, page_size(), PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  __atomic_store_n(reinterpret_cast<Launch*>(place), value, __ATOMIC_RELEASE);
  return !is_read_only || mprotect(page, page_size(), PROT_READ) == 0;
}

Launch launch_at(const std::byte* place) {
  Launch launch;
  std::memcpy(&launch, place, sizeof(launch));
  return launch;
}

bool is_of_mindspore(std::string_view library) {
  return library.find("libmindspore_") != std::string_view::npos;
}

/// Finds Launch() in the virtual table of the kernels of plugins, whose place is known.
bool find_in_table() {
  constexpr std::ptrdiff_t kEntry = sizeof(void*);
  constexpr std::ptrdiff_t kFirst = 2 * kEntry;  // behind the offset to the top and the type
  std::ptrdiff_t launch = 0;
  std::ptrdiff_t type = 0;
  for (std::ptrdiff_t i = kFirst; i < 64 * kEntry && (launch == 0 || type == 0); i += kEntry) {
    const Launch entry = launch_at(mindspore.plugin_kernel + i);
    if (entry == mindspore.launch) {
      launch = i;
    } else if (std::memcmp(&entry, &mindspore.get_kernel_mod_type, sizeof(entry)) == 0) {
      type = i;
    }
  }
  launch_behind_type = launch - type;
  launch_in_table = launch - kFirst;
  return launch != 0 && type != 0;
}

/// The entries to replace, of all of MindSpore's libraries.
struct Patch {
  struct Entry {
    std::byte* place;
    bool is_read_only;
  };
  std::vector<Entry> inherited;
  std::vector<Entry> own;
  bool was_patched = false;  // by another library with this source

  static int find_in_library(dl_phdr_info* library, std::size_t /*size*/, void* patch) {
    if (is_of_mindspore(library->dlpi_name)) {
      const Relocations relocations(*library);
      relocations.for_each_place_of(kGetKernelModType, [&](std::byte* type) {
        const auto address = reinterpret_cast<ElfW(Addr)>(type + launch_behind_type);
        static_cast<Patch*>(patch)->add(
            {type + launch_behind_type,
             address >= relocations.read_only_begin && address < relocations.read_only_end});
      });
    }
    return 0;
  }

  void add(const Entry& entry) {
    Dl_info table;
    Dl_info launch;
    const auto address = launch_at(entry.place);
    if (dladdr(entry.place, &table) != 0 && table.dli_saddr == mindspore.plugin_kernel) {
      return;
    }
    if (address == mindspore.launch) {
      inherited.push_back(entry);
    } else if (dladdr(reinterpret_cast<void*>(address), &launch) != 0 &&
               is_of_mindspore(launch.dli_fname)) {
      own.push_back(entry);
    } else {
      was_patched = true;
    }
  }

  bool apply() const {
    for (const Entry& entry : own) {
      own_launches.emplace_back(entry.place, launch_at(entry.place));
    }
    const auto replace_all = [](const std::vector<Entry>& entries, Launch launch) {
      return std::all_of(entries.begin(), entries.end(), [launch](const Entry& entry) {
        return write(entry.place, launch, entry.is_read_only);
      });
    };
    return replace_all(own, launch_own) && replace_all(inherited, launch_inherited) &&
           (was_patched || !inherited.empty());
  }
};

std::atomic<bool> is_patched = false;

bool patch_mindspore() {
  Patch patch;
  return mindspore.find() && has_known_layout() && find_in_table() &&
         dl_iterate_phdr(Patch::find_in_library, &patch) == 0 && patch.apply();
}

}  // namespace

/// Called when MindSpore asks for the library's operators, before any kernel runs. Does its work
/// once; prints a warning where MindSpore's kernels are not as they are known, or are left alone.
extern "C" __attribute__((visibility("hidden"))) void aten_bridge_patch_mindspore() {
  void* library = dlopen("libmindspore_core.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    return;  // somebody else asks
  }
  dlclose(library);
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const wanted = std::getenv("ATEN_BRIDGE_PATCH_MINDSPORE");
    const bool is_left_alone = wanted != nullptr && std::string_view(wanted) == "0";
    is_patched = !is_left_alone && patch_mindspore();
    if (!is_patched) {
      std::fprintf(
          stderr,
          "aten_bridge: WARNING: %s. Beside a library of kernels (MS_OP_PLUGIN_PATH) its own "
          "kernels "
          "take views (transposed, sliced) for whole tensors, and give wrong results: %s, or give "
          "x.contiguous() to functions that the library has no kernel for.\n",
          is_left_alone ? "MindSpore is not patched, since ATEN_BRIDGE_PATCH_MINDSPORE is 0"
                        : "this MindSpore is neither 2.9.0 nor 2.10.0 as PyPI has them",
          is_left_alone ? "unset the variable" : "use MindSpore 2.10.0");
    }
  });
}

/// How many views have been copied for MindSpore's own kernels so far; -1 if none can be, since
/// MindSpore has not asked for the library's operators, is not one of those, or is left alone.
extern "C" __attribute__((visibility("default"))) int64_t aten_bridge_contiguous_copies() {
  return is_patched ? contiguous_copies.load(std::memory_order_relaxed) : -1;
}
