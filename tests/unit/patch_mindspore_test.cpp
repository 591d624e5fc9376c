// The patch of MindSpore's virtual tables, on a library of the same kind of tables: relocations and
// pages of memory are those of the machine that the tests are built for.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "../../cmake/package/patch_mindspore.cpp"  // NOLINT(bugprone-suspicious-include)

namespace {

void* library() {
  static void* const opened = dlopen(TEST_VIRTUAL_TABLES, RTLD_NOW | RTLD_LOCAL);
  return opened;
}

template <class T>
T look_up(const char* name) {
  void* const found = dlsym(library(), name);
  T as{};
  std::memcpy(&as, &found, sizeof(found));
  return as;
}

KernelMod* kernel(const char* name) {
  return static_cast<KernelMod*>(look_up<void* (*)()>(name)());
}

std::byte* table_of(KernelMod* kernel) { return *reinterpret_cast<std::byte**>(kernel); }

// What a call through the virtual table of a kernel writes.
std::string launch(KernelMod* kernel) {
  const char* text = "";
  launch_at(table_of(kernel) + launch_in_table)(kernel, {}, {}, {}, &text);
  return text;
}

// The permissions of the memory at an address, such as "r--p".
std::string permissions_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::string permissions;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> permissions;
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    if (place >= begin && place < end) {
      return permissions;
    }
  }
  return "";
}

TEST(PatchMindSporeTest, ReplacesTheEntriesOfTablesThatAreReadOnly) {
  ASSERT_NE(library(), nullptr) << dlerror();
  mindspore.launch = look_up<Launch>(kLaunch);
  mindspore.get_kernel_mod_type = look_up<void*>(kGetKernelModType);
  mindspore.plugin_kernel = look_up<const std::byte*>(kPluginKernel);
  ASSERT_TRUE(find_in_table());
  EXPECT_EQ(launch_behind_type, static_cast<std::ptrdiff_t>(sizeof(void*)));

  KernelMod* const plugin = kernel("plugin_kernel");
  KernelMod* const inheriting = kernel("inheriting_kernel");
  KernelMod* const own = kernel("own_kernel");
  EXPECT_EQ(launch(inheriting), "inherited");
  EXPECT_EQ(launch(own), "own");

  Patch patch;
  ASSERT_EQ(dl_iterate_phdr(Patch::find_in_library, &patch), 0);
  EXPECT_EQ(patch.inherited.size(), 2U) << "the base class has a table, too";
  ASSERT_EQ(patch.own.size(), 1U);
  EXPECT_EQ(patch.own[0].place, table_of(own) + launch_in_table);
  for (const Patch::Entry& entry : {patch.inherited[0], patch.inherited[1], patch.own[0]}) {
    EXPECT_EQ(entry.is_read_only, permissions_of(entry.place) == "r--p");
  }
  EXPECT_TRUE(patch.own[0].is_read_only);
  EXPECT_FALSE(patch.was_patched);

  ASSERT_TRUE(patch.apply());
  EXPECT_EQ(launch_at(table_of(inheriting) + launch_in_table), launch_inherited);
  EXPECT_EQ(launch_at(table_of(own) + launch_in_table), launch_own);
  EXPECT_EQ(launch_at(table_of(plugin) + launch_in_table), mindspore.launch);
  EXPECT_EQ(permissions_of(patch.own[0].place), "r--p");
  EXPECT_EQ(launch(inheriting), "inherited");
  EXPECT_EQ(launch(own), "own");

  Patch again;
  dl_iterate_phdr(Patch::find_in_library, &again);
  EXPECT_TRUE(again.was_patched);
  EXPECT_TRUE(again.inherited.empty());
}

}  // namespace
