// The fuzzers without libFuzzer, which GCC lacks: the same random inputs in every run.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  const int inputs = argc > 1 ? std::atoi(argv[1]) : 5000;
  std::mt19937 random(1);  // NOLINT: the same numbers each time
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < inputs; ++i) {
    bytes.resize(32 + random() % 480);
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random());
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%d inputs, no finding\n", inputs);
}
