"""Steps of mint's Adam and AdamW with one kernel for each weight.

MindSpore 2.10 composes a step of its Adam of about 20 operators for each weight (60 % of the time
of training the transformer of examples/mint_digits, and 16 times PyTorch's step), and forgets the
largest averages of `amsgrad`. The kernel of AdamW does all of it as PyTorch does, to the last bit.
"""

from __future__ import annotations

from mindspore import mint
from mindspore.mint import optim
from mindspore.ops.auto_generate import AdamW

_adamw = AdamW()


def _adam_step(self, gradients):
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
    for group_id, group in enumerate(self.param_groups):
        start = self.group_start_id[group_id]
        decay, maximize = group["weight_decay"], group["maximize"]
        for i in range(start, self.group_start_id[group_id + 1]):
            _step(self, group, i, i - start, gradients[i], self.state_step, decay, maximize)
    return True


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
    """Puts the steps in the places of MindSpore's. A second call does nothing."""
    optim.Adam.construct = _adam_step
    optim.AdamW.construct = _adamw_step
