// Memory of a host that a kernel must not leave: each array ends, or begins, where reading ends the
// process, and has a mark on its other side.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_MEMORY_H_
#define ATEN_BRIDGE_TESTS_FUZZ_MEMORY_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace fuzz {

/// What is being done, for a finding's text.
inline std::string& scene() {
  static std::string text;
  return text;
}

/// Ends the process, which the fuzzer takes for a finding.
[[noreturn]] inline void fail(const char* what, const char* text = "") {
  std::fprintf(stderr, "finding: %s %s\nin: %s\n", what, text, scene().c_str());
  std::abort();
}

/// Arrays of one call. Not the same memory in the next one, whose arrays have other lengths.
class Memory {
 public:
  static constexpr std::size_t kPage = 4096;

  /// Whole pages; null if there are none.
  using MakePages = void*(std::size_t bytes);

  explicit Memory(MakePages* make_pages = &pages_of_the_cpu) : make_pages_(make_pages) {}

  static constexpr std::size_t kUsable = 5 * kPage;  // bytes of an array, at most, with its mark

  /// A copy of `bytes`, which ends `shift` bytes before a guard, or begins behind one: every other
  /// array by its number and length, so that an input does the same each time.
  void* take(const void* bytes, std::size_t size, std::size_t shift = 0) {
    if (used_ == blocks_.size()) {
      blocks_.push_back(make_block());
    }
    Block& block = blocks_[used_++];
    if (size + shift + kMark > kUsable) {
      fail("an array of the fuzzer's is too long");
    }
    const bool is_at_begin = shift == 0 && (used_ + size / 4) % 2 == 0;
    block.data = is_at_begin ? block.begin : block.begin + kUsable - shift - size;
    block.size = size;
    block.marks_begin = is_at_begin ? block.data : block.data - kMark;
    block.marks_end = block.data + size + (is_at_begin ? kMark : shift);
    std::memset(block.marks_begin, kPattern,
                static_cast<std::size_t>(block.marks_end - block.marks_begin));
    if (size > 0) {
      std::memcpy(block.data, bytes, size);
    }
    return block.data;
  }

  template <class T>
  T* take(const std::vector<T>& values) {
    return static_cast<T*>(take(values.data(), values.size() * sizeof(T)));
  }

  const char* take(const char* text) {
    return static_cast<char*>(take(text, std::strlen(text) + 1));
  }

  /// Finds bytes beside an array that somebody wrote, and frees all arrays.
  void release() {
    for (std::size_t i = 0; i < used_; ++i) {
      const Block& block = blocks_[i];
      for (const unsigned char* at = block.marks_begin; at < block.marks_end; ++at) {
        at = at == block.data ? at + block.size : at;
        if (at < block.marks_end && *at != kPattern) {
          fail("a byte beside an array was written");
        }
      }
    }
    used_ = 0;
  }

 private:
  static constexpr std::size_t kMark = 64;
  static constexpr unsigned char kPattern = 0xa5;

  struct Block {
    unsigned char* begin;
    unsigned char* data = nullptr;
    std::size_t size = 0;
    unsigned char* marks_begin = nullptr;
    unsigned char* marks_end = nullptr;
  };

  static void* pages_of_the_cpu(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }

  Block make_block() const {
    auto* const guard = static_cast<unsigned char*>(make_pages_(kUsable + 2 * kPage));
    if (guard == nullptr || mprotect(guard, kPage, PROT_NONE) != 0 ||
        mprotect(guard + kPage + kUsable, kPage, PROT_NONE) != 0) {
      fail("no memory for the fuzzer");
    }
    return {guard + kPage};
  }

  MakePages* make_pages_;
  std::vector<Block> blocks_;
  std::size_t used_ = 0;
};

/// What the fuzzer's bytes say, one after the other; zeros when they are at an end.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  bool are_left() const { return at_ != end_; }
  std::uint8_t byte() { return at_ == end_ ? 0 : *at_++; }
  int below(int count) { return byte() % count; }
  bool one_in(int count) { return below(count) == count - 1; }

  template <class T, std::size_t kSize>
  const T& of(const T (&values)[kSize]) {
    return values[static_cast<std::size_t>(below(static_cast<int>(kSize)))];
  }

  /// The text, which is not empty, with one letter changed, left out or added.
  std::string changed(std::string text) {
    const auto place = static_cast<std::size_t>(below(255)) % text.size();
    const char letter =
        one_in(2) ? static_cast<char>('0' + below(11)) : static_cast<char>(below(256));
    switch (below(3)) {
      case 0:
        text[place] = letter;
        return text;
      case 1:
        return text.erase(place, 1);
      default:
        return text.insert(place, 1, letter);
    }
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace fuzz

#endif  // ATEN_BRIDGE_TESTS_FUZZ_MEMORY_H_
