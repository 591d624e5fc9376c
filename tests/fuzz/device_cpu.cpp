// Kernels for the CPU.
#include "device.h"

namespace fuzz::device {

Memory& memory() {
  static Memory memory;
  return memory;
}
Memory* other_memory() { return nullptr; }
bool takes_any_address() { return true; }
bool has_sparse_tensors() { return true; }
void* choose_stream(Choices& /*choices*/) { return nullptr; }
bool begin_capture(void* /*stream*/) { return false; }
bool end_capture(void* /*stream*/) { return false; }
void wait() {}

}  // namespace fuzz::device
