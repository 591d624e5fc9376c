// Where the operands of a target's kernels lie, and how the host waits for them.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_DEVICE_H_
#define ATEN_BRIDGE_TESTS_FUZZ_DEVICE_H_

#include <cstddef>

#include "memory.h"

namespace fuzz::device {

/// The operands' memory.
Memory& memory();

/// That the kernels cannot use; null if there is none.
Memory* other_memory();

/// Whether complex128 need not be at multiples of 16 bytes.
bool takes_any_address();

/// Whether it has operators for sparse tensors.
bool has_sparse_tensors();

/// That a call is given.
void* choose_stream(Choices& choices);

/// Between these two what is launched on the stream becomes a graph, which the second runs. False
/// where the device has no graphs, and where what was called cannot be part of one.
bool begin_capture(void* stream);
bool end_capture(void* stream);

/// Until the operands can be read.
void wait();

}  // namespace fuzz::device

#endif  // ATEN_BRIDGE_TESTS_FUZZ_DEVICE_H_
