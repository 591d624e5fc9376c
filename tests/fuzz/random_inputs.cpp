// The fuzzers without libFuzzer, which GCC lacks: the same random inputs in every run, and files
// that libFuzzer kept.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Arguments: how many random inputs, 5,000 if it is not said, then folders with further ones.
int main(int argc, char** argv) {
  int inputs = argc > 1 ? std::atoi(argv[1]) : 5000;
  std::mt19937 random(1);  // NOLINT: the same numbers each time
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < inputs; ++i) {
    bytes.resize(32 + random() % 480);
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random());
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  for (int i = 2; i < argc; ++i) {
    for (const auto& file : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream stream(file.path(), std::ios::binary);
      bytes.assign(std::istreambuf_iterator<char>(stream), {});
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      ++inputs;
    }
  }
  std::printf("%d inputs, no finding\n", inputs);
}
