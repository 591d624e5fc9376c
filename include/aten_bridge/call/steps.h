// The steps of a call, for every host.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_STEPS_H_
#define ATEN_BRIDGE_CALL_STEPS_H_

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Takes the steps of a call, in the one order that there is: its operands are described, become
/// tensors, the kernel's function is called, and its results become the host's. Throws what a step
/// throws.
template <class Call>
inline void take_steps(Call& call) {
  call.describe();
  call.bind();
  call.invoke();
  call.commit();
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_STEPS_H_
