"""Calls of mint's functions and of PyTorch's: the same name, arguments and keywords in both.

A case is (module, function, arguments, keywords): the module is "" for mint and torch themselves,
"nn.functional" or "linalg". Arguments that are NumPy arrays become tensors.
"""

import numpy as np

_rng = np.random.default_rng(1)


def real(*shape):
    return _rng.standard_normal(shape).astype(np.float32)


X, Y, Z = real(3, 4), real(3, 4), real(4, 5)
ABOVE_1 = np.abs(X) + 1.1
BELOW_1 = np.tanh(X).astype(np.float32)
WITH_NAN = np.where(X > 0.5, np.float32("nan"), X)
INTS = np.array([[1, -2, 3], [4, 0, -6]])
SIGNS = np.sign(Y)
INDEX = np.array([2, 0, 2])
IMAGES, WEIGHT, BIAS = real(2, 3, 8, 8), real(4, 3, 3, 3), real(4)
SIGNAL, VOLUME = real(2, 3, 8), real(1, 2, 5, 5, 5)
PROBABILITIES = np.exp(X) / np.exp(X).sum(1, keepdims=True)


def case(function, *arguments, **keywords):
    module, _, function = function.rpartition(".")
    return module, function, arguments, keywords


UNARY = [
    *(case(name, ABOVE_1) for name in ("acosh", "log10", "log2")),
    *(case(name, BELOW_1) for name in ("acos", "asin")),
    *(case(name, X) for name in ("abs", "asinh", "atan", "exp2", "frac", "sinc", "tanh")),
    case("isneginf", np.array([0, -np.inf, np.inf], np.float32)),
    case("bitwise_not", INTS),
    case("abs", WITH_NAN),
]
BINARY = [
    *(
        case(name, X, Y)
        for name in ("atan2", "fmod", "logaddexp", "logaddexp2", "maximum", "minimum", "xlogy")
    ),
    *(case(name, WITH_NAN, Y) for name in ("maximum", "minimum")),
    *(case(name, INTS, 3) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *(case(name, INTS, INTS[::-1].copy()) for name in ("bitwise_or", "bitwise_xor")),
    case("addcdiv", X, Y, ABOVE_1, value=0.1),
    case("addcmul", X, Y, ABOVE_1, value=0.1),
    case("floor_divide", X, 0.7),
    case("clamp", WITH_NAN, -0.5, 0.5),
    case("cdist", X, Y),
]
REDUCTION = [
    *(
        case(name, X, **keywords)
        for name in ("mean", "std", "var")
        for keywords in ({}, {"dim": 1}, {"dim": 0, "keepdim": True}, {"dim": (0, 1)})
    ),
    case("mean", WITH_NAN, dim=1),
    case("std_mean", X, dim=1),
    case("var_mean", X, dim=1),
    case("argmax", X, dim=1),
    case("argmax", X),
    case("argmin", X, dim=0, keepdim=True),
    case("count_nonzero", INTS),
    case("cumsum", X, 1),
    case("cummin", X, 1),
    case("logsumexp", X, 1),
    case("median", X),
    case("median", X, 1),
    case("nansum", WITH_NAN),
    case("norm", X),
    case("linalg.vector_norm", X, 1, dim=1),
    case("trace", X),
    case("histc", X, 5, -1, 1),
    *(case(name, WITH_NAN) for name in ("max", "min")),
    *(case(name, WITH_NAN, 1) for name in ("max", "min", "amax", "amin")),
    *(case(name, X, (0, 1), keepdim=True) for name in ("amax", "amin")),
]
LINEAR_ALGEBRA = [
    case("mm", X, Z),
    case("matmul", X, Z),
    case("bmm", real(2, 3, 4), real(2, 4, 5)),
    case("mv", X, real(4)),
    case("dot", real(4), real(4)),
    case("outer", real(3), real(4)),
    case("addmm", real(3, 5), X, Z, beta=0.1, alpha=2),
    case("addmv", real(3), X, real(4)),
    case("baddbmm", real(2, 3, 5), real(2, 3, 4), real(2, 4, 5)),
    case("addbmm", real(3, 5), real(2, 3, 4), real(2, 4, 5)),
    case("inverse", real(3, 3)),
    case("linalg.qr", real(4, 3)),
    case("matmul", real(3, 0), real(0, 2)),
]
ACTIVATION = [
    *(
        case(f"nn.functional.{name}", X)
        for name in (
            *("elu", "gelu", "hardshrink", "hardswish", "hardtanh", "leaky_relu", "logsigmoid"),
            *("mish", "relu", "selu", "softplus", "softshrink"),
        )
    ),
    case("nn.functional.relu", WITH_NAN),
    case("nn.functional.elu", X, 0.3),
    case("nn.functional.gelu", X, approximate="tanh"),
    case("nn.functional.leaky_relu", X, 0.2),
    case("nn.functional.threshold", X, 0.1, 2.0),
    case("nn.functional.log_softmax", X, dim=1),
]
LOSS = [
    *(
        case(f"nn.functional.{name}", X, target, reduction=reduction)
        for name, target in (
            ("kl_div", PROBABILITIES),
            ("l1_loss", Y),
            ("mse_loss", Y),
            ("soft_margin_loss", SIGNS),
        )
        for reduction in ("mean", "sum", "none")
    ),
    case("nn.functional.layer_norm", X, (4,), real(4), real(4)),
    case("nn.functional.binary_cross_entropy", PROBABILITIES, (Y > 0).astype(np.float32)),
    case(
        "nn.functional.binary_cross_entropy",
        np.array([0, 1], np.float32),
        np.array([1, 0], np.float32),
    ),
    case("nn.functional.cross_entropy", X, INDEX),
    case("nn.functional.nll_loss", X, INDEX, reduction="sum"),
]
CONVOLUTION = [
    case("nn.functional.conv1d", SIGNAL, real(4, 3, 3), padding=1),
    case("nn.functional.conv2d", IMAGES, WEIGHT, BIAS, stride=2, padding=1),
    case("nn.functional.conv2d", IMAGES, WEIGHT, padding="same"),
    case("nn.functional.conv3d", VOLUME, real(2, 2, 2, 2, 2)),
    case("nn.functional.conv_transpose2d", IMAGES, real(3, 4, 3, 3), stride=2),
    case("nn.functional.avg_pool1d", SIGNAL, 2),
    case("nn.functional.avg_pool2d", IMAGES, 3, stride=2, padding=1, ceil_mode=True),
    case("nn.functional.avg_pool3d", VOLUME, 2),
    case("nn.functional.adaptive_avg_pool1d", SIGNAL, 3),
    case("nn.functional.adaptive_avg_pool2d", IMAGES, (3, 2)),
    case("nn.functional.adaptive_avg_pool3d", VOLUME, (2, 3, 2)),
    case("nn.functional.pad", X, (1, 2), value=0.5),
    case("nn.functional.pad", SIGNAL, (1, 2), mode="reflect"),
    case("nn.functional.pad", SIGNAL, (1, 2), mode="replicate"),
    case("nn.functional.pad", IMAGES, (1, 2, 0, 1), mode="replicate"),
    case("nn.functional.unfold", IMAGES, 3, padding=1),
    case("nn.functional.fold", real(2, 12, 9), (4, 4), 2),
    case("nn.functional.interpolate", IMAGES, scale_factor=2.0, mode="bilinear"),
    case("nn.functional.interpolate", IMAGES, size=(5, 6), mode="bicubic", align_corners=True),
    case("nn.functional.interpolate", SIGNAL, size=5, mode="linear"),
]
INDEXING = [
    case("argsort", X, dim=1, descending=True),
    case("sort", X),
    case("sort", WITH_NAN, dim=0, descending=True),
    case("topk", X, 2),
    case("index_select", X, 0, INDEX),
    case("repeat_interleave", X, 2, dim=1),
    case("roll", X, 1, 0),
    case("roll", X, (1, 2), (0, 1)),
    case("stack", [X, Y], 1),
    case("nn.functional.embedding", INDEX, Z),
    case("nn.functional.one_hot", INDEX, 4),
]
CREATION = [
    case("arange", 0, 5, 2),
    case("arange", 0.0, 1.0, 0.25),
    case("linspace", 0, 1, 5),
    case("zeros_like", X),
    case("ones_like", INTS),
    case("full_like", X, 2),
    case("clone", X),
    case("diag", X),
    case("tril", X, 1),
]

FORWARD = [
    *(UNARY + BINARY + REDUCTION + LINEAR_ALGEBRA + ACTIVATION),
    *(LOSS + CONVOLUTION + INDEXING + CREATION),
]

# Which rounding a product has may depend on where its operands lie in memory.
ROUNDED = {case[1] for case in LINEAR_ALGEBRA + CONVOLUTION}

_NOT_DIFFERENTIABLE = {
    *("isneginf", "bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide"),
    "cdist",  # wrong in MindSpore 2.10
    *("argmax", "argmin", "count_nonzero", "argsort", "one_hot", "histc"),
    *("arange", "linspace", "zeros_like", "ones_like", "full_like"),
}
GRADIENT = [
    case
    for case in FORWARD
    if case[1] not in _NOT_DIFFERENTIABLE
    and not any(a is WITH_NAN for a in case[2])
    and case[3].get("padding") != "same"  # MindSpore 2.10 gives zeros and asks no kernel
]

# Methods that write their tensor, which is X or a part of it.
IN_PLACE = [
    ("add_", (Y,), {"alpha": 2}),
    ("add_", (1.5,), {}),
    ("sub_", (Y,), {}),
    ("mul_", (Y,), {}),
    ("mul_", (0.3,), {}),
    ("div_", (Y,), {}),
    ("remainder_", (Y,), {}),
    ("floor_divide_", (Y,), {}),
    ("copy_", (Y,), {}),
    ("fill_", (2.5,), {}),
    ("zero_", (), {}),
    ("exp_", (), {}),
    ("log_", (), {}),
    ("floor_", (), {}),
    ("sigmoid_", (), {}),
    ("tanh_", (), {}),
    ("clamp_", (), {"min": 0.1}),
    ("masked_fill_", (X > 0, 7.0), {}),
]
