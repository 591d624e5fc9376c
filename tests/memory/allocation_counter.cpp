// Counts allocations of memory below a kernel library: loaded with LD_PRELOAD, it stands before
// glibc's functions, and looks at the stack of each allocation while it is asked to.
//
// An allocation is the library's where its code asked for the memory, through the C++ library or
// PyTorch's small vectors too, and others' where they asked for it and the library called them.
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool has(const void* address) const {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return begin <= number && number < end;
  }
};

/// Where a loaded library lies. `name`: how its path ends.
Range find(const char* name) {
  struct Search {
    const char* name;
    Range range;
  } search{name, {}};
  const auto look = [](dl_phdr_info* info, std::size_t /*size*/, void* data) {
    auto& of = *static_cast<Search*>(data);
    const std::size_t size = std::strlen(info->dlpi_name);
    const std::size_t wanted = std::strlen(of.name);
    if (size < wanted || std::strcmp(info->dlpi_name + size - wanted, of.name) != 0) {
      return 0;
    }
    of.range.begin = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      if (header.p_type == PT_LOAD) {
        const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
        of.range.begin = begin < of.range.begin ? begin : of.range.begin;
        of.range.end =
            begin + header.p_memsz > of.range.end ? begin + header.p_memsz : of.range.end;
      }
    }
    return 1;
  };
  dl_iterate_phdr(look, &search);
  return search.range;
}

Range library;
std::array<Range, 3> passed_through;  // libc, the C++ library, and this
std::atomic<bool> is_counting{false};
std::atomic<bool> shows{false};
std::atomic<std::int64_t> of_library{0};
std::atomic<std::int64_t> of_others{0};
thread_local bool is_looking __attribute__((tls_model("initial-exec"))) = false;

bool is_passed_through(const void* address) {
  for (const Range& range : passed_through) {
    if (range.has(address)) {
      return true;
    }
  }
  Dl_info symbol{};
  return dladdr(address, &symbol) != 0 && symbol.dli_sname != nullptr &&
         std::strstr(symbol.dli_sname, "SmallVectorBase") != nullptr;
}

void show(void* const* frames, int count) {
  std::fputs("allocation of the library:\n", stderr);
  for (int i = 0; i < count; ++i) {
    Dl_info symbol{};
    dladdr(frames[i], &symbol);
    std::fprintf(stderr, "  %s+%#tx %s\n", symbol.dli_fname,
                 static_cast<char*>(frames[i]) - static_cast<char*>(symbol.dli_fbase),
                 symbol.dli_sname == nullptr ? "" : symbol.dli_sname);
  }
}

void count() {
  if (!is_counting.load(std::memory_order_relaxed) || is_looking) {
    return;
  }
  is_looking = true;
  const int error = errno;
  std::array<void*, 64> frames;  // NOLINT: all that are read are written
  const int size = backtrace(frames.data(), static_cast<int>(frames.size()));
  const bool is_below = std::any_of(frames.data(), frames.data() + size,
                                    [](const void* frame) { return library.has(frame); });
  if (is_below) {  // else nobody asks for names, which takes milliseconds in large libraries
    const auto* const asked = std::find_if_not(
        frames.data(), frames.data() + size, [](void* frame) { return is_passed_through(frame); });
    const bool is_own = library.has(*asked);
    ++(is_own ? of_library : of_others);
    if (is_own && shows) {
      show(frames.data(), size);
    }
  }
  errno = error;
  is_looking = false;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
  count();
  return __libc_malloc(size);
}

void* calloc(std::size_t number, std::size_t size) {
  count();
  return __libc_calloc(number, size);
}

void* realloc(void* memory, std::size_t size) {
  count();
  return __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  count();
  void* const found = __libc_memalign(alignment, size);
  if (found == nullptr) {
    return ENOMEM;
  }
  *memory = found;
  return 0;
}

/// Counts below the loaded library whose path ends so, from now on; false where there is none.
bool allocation_counter_start(const char* path, bool shows_stacks) {
  std::array<void*, 4> frames{};
  backtrace(frames.data(), 4);  // loads the unwinder, once
  library = find(path);
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&allocation_counter_start), &self);
  passed_through = {find("libc.so.6"), find("libstdc++.so.6"), find(self.dli_fname)};
  shows = shows_stacks;
  of_library = 0;
  of_others = 0;
  is_counting = library.end != 0;
  return is_counting;
}

/// Stops, and writes how often the library asked for memory, and others that it called.
void allocation_counter_stop(std::int64_t* of_the_library, std::int64_t* of_the_others) {
  is_counting = false;
  *of_the_library = of_library;
  *of_the_others = of_others;
}
}
