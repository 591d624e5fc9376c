// A step of Adam or AdamW on all weights of a group, which mint's optimizers call in PyNative mode.
//
// SPDX-License-Identifier: Apache-2.0

#include "adam.h"

#include <aten_bridge.h>

namespace {

// After all weights stand all averages, squares, gradients and, with amsgrad, largest squares. What
// a group is set to is a tensor since MindSpore rounds Python's floats to float32.
void take_steps(const at::Tensor& settings, double steps, at::TensorList all) {
  const double* const given = settings.const_data_ptr<double>();
  const bool amsgrad = given[6] != 0;
  const aten_bridge::operators::AdamSettings group{
      steps, given[0], given[1], given[2], given[3], given[4], given[5], amsgrad, given[7] != 0};
  const size_t count = all.size() / (amsgrad ? 5 : 4);
  for (size_t i = 0; i < count; ++i) {
    // ATen computes other last bits of a gradient that is a view.
    aten_bridge::operators::take_step(all[i], all[count + i], all[2 * count + i],
                                      all[amsgrad ? 4 * count + i : i],
                                      all[3 * count + i].contiguous(), group);
  }
}

}  // namespace

ATEN_BRIDGE_EXPORT(AdamSteps, take_steps, aten_bridge::side_effect(), aten_bridge::strided());
