"""A network for the tests of operators by name."""

from mindspore import nn


class Call(nn.Cell):
    """A network of one operator."""

    def __init__(self, one):
        super().__init__()
        self.one = one

    def construct(self, *inputs):
        return self.one(*inputs)
