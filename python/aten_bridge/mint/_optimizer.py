"""Steps of mint's Adam and AdamW with one kernel for each weight, or for all.

MindSpore 2.10 composes a step of its Adam of about 20 operators for each weight (60 % of the time
of training the transformer of examples/mint_digits, and 16 times PyTorch's step), and forgets the
largest averages of `amsgrad`. The kernel of AdamW does all of it as PyTorch does, to the last bit.
In PyNative mode the native caller takes the weights of a group in one call: 30 small ones in a
sixth of the time.
"""

from __future__ import annotations

import functools

import mindspore as ms
from mindspore import Tensor, mint
from mindspore.mint import optim
from mindspore.ops.auto_generate import AdamW
from mindspore.ops.functional import isconstant

from aten_bridge.mint._native import adam_steps, is_native

_adamw = AdamW()


def _adam_step(self, gradients):
    # isconstant() is False in a graph.
    if isconstant(gradients) and _all_at_once(self, gradients, adds_decay=True):
        self.state_step.add_(self.increase_tensor)
        return True
    # The kernel is told how many steps were done before.
    steps = mint.clone(self.state_step)
    self.state_step.add_(self.increase_tensor)
    for group_id, group in enumerate(self.param_groups):
        start = self.group_start_id[group_id]
        for i in range(start, self.group_start_id[group_id + 1]):
            gradient = gradients[i]
            if group["maximize"]:
                gradient = mint.neg(gradient)
            if group["weight_decay"] != 0.0:
                gradient = mint.add(gradient, self.parameters[i], alpha=group["weight_decay"])
            _step(self, group, i, i - start, gradient, steps, 0.0, False)
    return True


def _adamw_step(self, gradients):
    self.state_step.add_(self.increase_tensor)  # from -1 on
    # isconstant() is False in a graph.
    if isconstant(gradients) and _all_at_once(self, gradients, adds_decay=False):
        return True
    for group_id, group in enumerate(self.param_groups):
        start = self.group_start_id[group_id]
        decay, maximize = group["weight_decay"], group["maximize"]
        for i in range(start, self.group_start_id[group_id + 1]):
            _step(self, group, i, i - start, gradients[i], self.state_step, decay, maximize)
    return True


def _all_at_once(optimizer, gradients, adds_decay):
    """Steps all weights of a group in one call; False where they have to be stepped one by one."""
    steps = adam_steps() if is_native() else None
    if steps is None or len(gradients) != len(optimizer.parameters):
        return False
    for weight, gradient in zip(optimizer.parameters, gradients, strict=True):
        if not isinstance(gradient, Tensor):
            return False
        if gradient.shape != weight.shape or gradient.dtype != weight.dtype:
            return False
    for i, group in enumerate(optimizer.param_groups):
        place = slice(optimizer.group_start_id[i], optimizer.group_start_id[i + 1])
        lists = [optimizer.parameters, optimizer.exp_avg, optimizer.exp_avg_sq, gradients]
        operands = [tensor for tensors in lists for tensor in tensors[place]]
        if group["amsgrad"]:
            operands += group["max_exp_avg_sq"]
        rate, decay = _number(group["lr"]), _number(group["weight_decay"])
        decays = (0.0, decay) if adds_decay else (decay, 0.0)
        others = (group["eps"], group["amsgrad"], group["maximize"])
        numbers = tuple(map(float, (rate, *group["betas"], *decays, *others)))
        # As Python's floats they would reach the kernel as float32.
        steps(_as_tensor(numbers), optimizer.state_step, tuple(operands))
    return True


@functools.lru_cache(256)
def _as_tensor(numbers):
    return Tensor(numbers, ms.float64)


def _number(value):
    """The float that was given: MindSpore keeps 0.001 as a float32, whose value is another."""
    if not isinstance(value, Tensor):
        return float(value)
    return float(str(value.asnumpy().reshape(())))  # as short as the dtype allows


def _step(optimizer, group, i, i_of_group, gradient, steps, decay, maximize):
    squares = optimizer.exp_avg_sq[i]
    amsgrad = group["amsgrad"]
    _adamw(
        optimizer.parameters[i],
        optimizer.exp_avg[i],
        squares,
        group["max_exp_avg_sq"][i_of_group] if amsgrad else squares,
        gradient,
        steps,
        float(group["lr"]),
        group["betas"][0],
        group["betas"][1],
        decay,
        group["eps"],
        amsgrad,
        maximize,
    )


def install() -> None:
    """Replaces MindSpore's steps by these. A second call does nothing."""
    optim.Adam.construct = _adam_step
    optim.AdamW.construct = _adamw_step
