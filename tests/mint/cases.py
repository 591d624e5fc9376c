"""Calls of all functions of mint, as a user of PyTorch writes them.

A case is (module, function, arguments, keywords): the module is "" for mint and torch themselves,
"nn.functional", "special" or "linalg". Arguments that are NumPy arrays become tensors.
"""

import numpy as np

_rng = np.random.default_rng(1)


def real(*shape):
    return _rng.standard_normal(shape).astype(np.float32)


X, Y, Z = real(3, 4), real(3, 4), real(4, 5)
ABOVE_1 = np.abs(X) + 1.1
BELOW_1 = np.tanh(X).astype(np.float32)
WITH_NAN = np.where(X > 0.5, np.float32("nan"), X)
UNEVEN = np.array([[0.5, np.inf, -np.inf], [np.nan, -0.0, 2.5]], np.float32)
INTS = np.array([[1, -2, 3], [4, 0, -6]])
SIGNS = np.sign(Y)
INDEX = np.array([2, 0, 2])
PLACES = np.array([[0, 2, 1, 0], [1, 1, 2, 0]])
MASK = X > 0
IMAGES, WEIGHT, BIAS = real(2, 3, 8, 8), real(4, 3, 3, 3), real(4)
SIGNAL, VOLUME = real(2, 3, 8), real(1, 2, 5, 5, 5)
PROBABILITIES = np.exp(X) / np.exp(X).sum(1, keepdims=True)
TARGETS = (Y > 0).astype(np.float32)
GRID = np.tanh(real(2, 4, 5, 2)).astype(np.float32)


def case(function, *arguments, **keywords):
    module, _, function = function.rpartition(".")
    return module, function, arguments, keywords


UNARY = [
    *(case(name, ABOVE_1) for name in ("acosh", "arccosh", "log10", "log2")),
    *(case(name, BELOW_1) for name in ("acos", "arccos", "arcsin", "asin", "atanh", "arctanh")),
    case("erfinv", BELOW_1),
    *(
        case(name, X)
        for name in (
            *("abs", "arcsinh", "arctan", "asinh", "atan", "ceil", "cos", "cosh", "erf", "erfc"),
            *("exp", "exp2", "expm1", "fix", "floor", "frac", "neg", "negative", "reciprocal"),
            *("round", "sigmoid", "sign", "sin", "sinc", "sinh", "square", "tan", "tanh", "trunc"),
            *("special.erfc", "special.exp2", "special.expm1", "special.round", "special.sinc"),
        )
    ),
    *(case(name, ABOVE_1) for name in ("log", "log1p", "rsqrt", "special.log1p", "sqrt")),
    *(
        case(name, UNEVEN)
        for name in (
            *("abs", "exp", "isfinite", "isinf", "isnan", "isneginf", "logical_not", "nan_to_num"),
            *("sign", "sqrt", "tanh"),
        )
    ),
    case("nan_to_num", UNEVEN, nan=1.5, posinf=10.0, neginf=-10.0),
    case("round", X, decimals=1),
    case("bitwise_not", INTS),
    case("bitwise_not", MASK),
    case("abs", WITH_NAN),
    case("real", X),
    case("real", X + 1j * Y),
    case("imag", X + 1j * Y),
    case("item", np.array([2.5], np.float32)),
]
BINARY = [
    *(
        case(name, X, Y)
        for name in (
            *("add", "arctan2", "atan2", "div", "divide", "eq", "floor_divide", "fmod", "ge", "gt"),
            *("greater", "greater_equal", "isclose", "le", "less", "less_equal", "logaddexp"),
            *("logaddexp2", "logical_and", "logical_or", "logical_xor", "lt", "maximum", "minimum"),
            *("mul", "ne", "not_equal", "remainder", "sub", "xlogy", "allclose", "equal"),
        )
    ),
    *(case(name, WITH_NAN, Y) for name in ("maximum", "minimum", "fmod", "eq", "isclose")),
    *(case(name, INTS, 3) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *(
        case(name, INTS, INTS[::-1].copy())
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd")
    ),
    *(case(name, X, 0.7) for name in ("add", "sub", "mul", "div", "floor_divide", "remainder")),
    *(case(name, X, 0.7) for name in ("gt", "lt", "eq", "fmod", "xlogy")),
    *(case(name, INTS, 2) for name in ("add", "sub", "mul", "div", "floor_divide", "remainder")),
    case("add", X, Y, alpha=2),
    case("sub", X, Y, alpha=0.3),
    case("add", X, real(4)),
    case("div", X, Y, rounding_mode="floor"),
    case("div", INTS, 2, rounding_mode="trunc"),
    case("addcdiv", X, Y, ABOVE_1, value=0.1),
    case("addcmul", X, Y, ABOVE_1, value=0.1),
    case("clamp", X, -0.5, 0.5),
    case("clamp", WITH_NAN, -0.5, 0.5),
    case("clamp", X, min=Y),
    case("clip", X, max=0.5),
    case("cdist", X, Y),
    case("cdist", X, Y, p=1.0),
    case("cross", real(4, 3), real(4, 3)),
    case("float_power", ABOVE_1, 2.5),
    case("float_power", ABOVE_1, Y),
    case("lerp", X, Y, 0.3),
    case("lerp", X, Y, BELOW_1),
    case("polar", ABOVE_1, Y),
    case("pow", ABOVE_1, 2.5),
    case("pow", ABOVE_1, Y),
    case("pow", 2.0, Y),
    case("where", MASK, X, Y),
    case("where", MASK, X, 0.0),
]
REDUCTION = [
    *(
        case(name, X, **keywords)
        for name in ("mean", "std", "var", "sum")
        for keywords in ({}, {"dim": 1}, {"dim": 0, "keepdim": True}, {"dim": (0, 1)})
    ),
    *(case(name, TARGETS, **keywords) for name in ("all", "any") for keywords in ({}, {"dim": 1})),
    *(case(name, WITH_NAN) for name in ("max", "min", "any", "all", "sum")),
    *(case(name, WITH_NAN, 1) for name in ("max", "min", "amax", "amin")),
    *(case(name, X, (0, 1), keepdim=True) for name in ("amax", "amin")),
    *(case(name, X, 1) for name in ("cummax", "cummin", "cumprod", "cumsum", "prod")),
    case("prod", X),
    case("mean", WITH_NAN, dim=1),
    case("sum", INTS),
    case("std", X, dim=1, correction=0),
    case("std_mean", X, dim=1),
    case("var_mean", X, dim=1),
    case("argmax", X, dim=1),
    case("argmax", X),
    case("argmax", WITH_NAN, dim=1),
    case("argmin", X, dim=0, keepdim=True),
    case("count_nonzero", INTS),
    case("count_nonzero", INTS, dim=1),
    case("kthvalue", X, 2),
    case("kthvalue", X, 2, dim=0, keepdim=True),
    case("logsumexp", X, 1),
    case("median", X),
    case("median", X, 1),
    case("nansum", WITH_NAN),
    case("nansum", WITH_NAN, dim=1),
    case("norm", X),
    case("norm", X, 1, dim=1),
    case("linalg.norm", X),
    case("linalg.vector_norm", X, 1, dim=1),
    case("linalg.matrix_norm", X),
    case("trace", X),
    case("histc", X, 5, -1, 1),
    case("bincount", np.array([1, 0, 3, 1])),
    case("bincount", np.array([1, 0, 3, 1]), weights=real(4), minlength=6),
]
LINEAR_ALGEBRA = [
    case("mm", X, Z),
    case("matmul", X, Z),
    case("matmul", real(2, 3, 4), Z),
    case("matmul", X, real(4)),
    case("bmm", real(2, 3, 4), real(2, 4, 5)),
    case("mv", X, real(4)),
    case("dot", real(4), real(4)),
    case("vdot", real(4), real(4)),
    case("outer", real(3), real(4)),
    case("addmm", real(3, 5), X, Z, beta=0.1, alpha=2),
    case("addmv", real(3), X, real(4)),
    case("addr_", real(3, 4), real(3), real(4)),
    case("baddbmm", real(2, 3, 5), real(2, 3, 4), real(2, 4, 5)),
    case("addbmm", real(3, 5), real(2, 3, 4), real(2, 4, 5)),
    case("einsum", "ij,jk->ik", X, Z),
    case("einsum", "bij,bjk->bik", real(2, 3, 4), real(2, 4, 5)),
    case("einsum", "ij->", X),
    case("inverse", real(3, 3)),
    case("linalg.inv", real(3, 3)),
    case("linalg.qr", real(4, 3)),
    case("triangular_solve", real(3, 2), np.triu(real(3, 3)) + 2 * np.eye(3, dtype=np.float32)),
    case("matmul", real(3, 0), real(0, 2)),
    case("nn.functional.linear", X, real(5, 4), real(5)),
    case("nn.functional.linear", X[0], real(5, 4), real(5)),
    case("nn.functional.linear", VOLUME, real(3, 5)),
]
ACTIVATION = [
    *(
        case(f"nn.functional.{name}", X)
        for name in (
            *("elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh"),
            *("leaky_relu", "logsigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu"),
            *("softplus", "softshrink", "tanh"),
        )
    ),
    *(case(f"nn.functional.{name}", X) for name in ("elu_", "hardtanh_", "relu_", "sigmoid_")),
    *(case(f"nn.functional.{name}", UNEVEN) for name in ("relu", "hardtanh", "sigmoid", "silu")),
    case("npu_gelu", X),
    case("nn.functional.relu", WITH_NAN),
    case("nn.functional.elu", X, 0.3),
    case("nn.functional.gelu", X, approximate="tanh"),
    case("nn.functional.hardtanh", X, -0.3, 0.4),
    case("nn.functional.leaky_relu", X, 0.2),
    case("nn.functional.prelu", X, np.array([0.2], np.float32)),
    case("nn.functional.softplus", X, beta=2),
    case("nn.functional.threshold", X, 0.1, 2.0),
    case("nn.functional.threshold_", X, 0.1, 2.0),
    *(
        case(name, X, dim=1)
        for name in ("softmax", "nn.functional.softmax", "nn.functional.log_softmax")
    ),
    case("special.log_softmax", X, dim=0),
]
LOSS = [
    *(
        case(f"nn.functional.{name}", X, target, reduction=reduction)
        for name, target in (
            ("kl_div", PROBABILITIES),
            ("l1_loss", Y),
            ("mse_loss", Y),
            ("smooth_l1_loss", Y),
            ("soft_margin_loss", SIGNS),
            ("binary_cross_entropy_with_logits", TARGETS),
        )
        for reduction in ("mean", "sum", "none")
    ),
    case("nn.functional.smooth_l1_loss", X, Y, beta=0.5),
    case("nn.functional.mse_loss", X[:, :1], Y[0]),
    case("nn.functional.l1_loss", X[0], Y),
    case("nn.functional.binary_cross_entropy", PROBABILITIES, TARGETS),
    case(
        "nn.functional.binary_cross_entropy",
        np.array([0, 1], np.float32),
        np.array([1, 0], np.float32),
    ),
    case("nn.functional.cosine_embedding_loss", X, Y, np.array([1, -1, 1])),
    case("nn.functional.cross_entropy", X, INDEX),
    case("nn.functional.cross_entropy", X, INDEX, label_smoothing=0.1),
    case("nn.functional.cross_entropy", X, np.array([2, -100, 2]), weight=np.abs(real(4))),
    case("nn.functional.nll_loss", X, INDEX, reduction="sum"),
    case("nn.functional.nll_loss", real(2, 4, 3, 3), np.abs(real(2, 3, 3) * 2).astype(int) % 4),
]
NORMALISATION = [
    case("nn.functional.batch_norm", IMAGES, np.zeros(3, "f"), np.ones(3, "f"), training=True),
    case("nn.functional.batch_norm", IMAGES, real(3), np.abs(real(3)) + 1, real(3), real(3)),
    case("nn.functional.group_norm", real(2, 4, 5, 5), 2, real(4), real(4)),
    case("nn.functional.layer_norm", X, (4,), real(4), real(4)),
    case("nn.functional.layer_norm", X, (4,)),
    case("nn.functional.normalize", X),
    case("nn.functional.normalize", X, p=1.0, dim=0),
    case("batch_norm_stats", IMAGES, 1e-5),
    case("batch_norm_elemt", IMAGES, real(3), real(3), real(3), np.abs(real(3)) + 1, 1e-5),
    case(
        "batch_norm_gather_stats_with_counts",
        *(IMAGES, real(2, 3), np.abs(real(2, 3)) + 1, np.zeros(3, "f"), np.ones(3, "f")),
        *(0.1, 1e-5, np.array([4, 6], "f")),
    ),
]
CONVOLUTION = [
    case("nn.functional.conv1d", SIGNAL, real(4, 3, 3), padding=1),
    case("conv2d", IMAGES, WEIGHT, BIAS),
    case("nn.functional.conv2d", IMAGES, WEIGHT, BIAS, stride=2, padding=1),
    case("nn.functional.conv2d", IMAGES, WEIGHT, padding="same"),
    case("nn.functional.conv2d", IMAGES, real(6, 1, 3, 3), groups=3),
    case("nn.functional.conv3d", VOLUME, real(2, 2, 2, 2, 2)),
    case("nn.functional.conv_transpose2d", IMAGES, real(3, 4, 3, 3), stride=2),
    case("conv_tbc", real(8, 2, 3), real(3, 3, 4), real(4), 1),
    case("nn.functional.avg_pool1d", SIGNAL, 2),
    case("nn.functional.avg_pool2d", IMAGES, 3, stride=2, padding=1, ceil_mode=True),
    case("nn.functional.avg_pool3d", VOLUME, 2),
    case("nn.functional.max_pool2d", IMAGES, 2),
    case("nn.functional.max_pool2d", IMAGES, 3, stride=2, padding=1, return_indices=True),
    case(
        "nn.functional.max_unpool2d", np.abs(real(1, 1, 2, 2)), np.array([[[[0, 3], [9, 14]]]]), 2
    ),
    case("nn.functional.adaptive_avg_pool1d", SIGNAL, 3),
    case("nn.functional.adaptive_avg_pool2d", IMAGES, (3, 2)),
    case("nn.functional.adaptive_avg_pool3d", VOLUME, (2, 3, 2)),
    case("nn.functional.adaptive_max_pool1d", SIGNAL, 3),
    case("nn.functional.adaptive_max_pool2d", IMAGES, (3, 2)),
    case("nn.functional.pad", X, (1, 2), value=0.5),
    case("nn.functional.pad", SIGNAL, (1, 2), mode="reflect"),
    case("nn.functional.pad", SIGNAL, (1, 2), mode="replicate"),
    case("nn.functional.pad", IMAGES, (1, 2, 0, 1), mode="replicate"),
    case("nn.functional.pad", IMAGES, (1, 2, 0, 1), mode="circular"),
    case("nn.functional.unfold", IMAGES, 3, padding=1),
    case("nn.functional.fold", real(2, 12, 9), (4, 4), 2),
    case("nn.functional.grid_sample", IMAGES, GRID, align_corners=False),
    case("nn.functional.interpolate", IMAGES, scale_factor=2.0),
    case("nn.functional.interpolate", IMAGES, scale_factor=2.0, mode="bilinear"),
    case("nn.functional.interpolate", IMAGES, size=(5, 6), mode="bicubic", align_corners=True),
    case("nn.functional.interpolate", SIGNAL, size=5, mode="linear"),
    case("nn.functional.upsample", IMAGES, scale_factor=2, mode="nearest"),
    case("nn.functional.pixel_shuffle", real(1, 8, 3, 3), 2),
]
INDEXING = [
    case("argsort", X, dim=1, descending=True),
    case("sort", X),
    case("sort", WITH_NAN, dim=0, descending=True),
    case("topk", X, 2),
    case("topk", X, 2, dim=0, largest=False),
    case("gather", X, 0, PLACES),
    case("index_add", X, 0, INDEX, Y),
    case("index_select", X, 0, INDEX),
    case("masked_select", X, MASK),
    case("narrow", X, 1, 1, 2),
    case("nonzero", INTS),
    case("repeat_interleave", X, 2, dim=1),
    case("repeat_interleave", X, np.array([1, 0, 2]), dim=0),
    case("roll", X, 1, 0),
    case("roll", X, (1, 2), (0, 1)),
    case("scatter", X, 0, PLACES, Y),
    case("scatter", X, 0, PLACES, 2.5),
    case("scatter_add", X, 0, PLACES, Y),
    case("searchsorted", np.sort(real(7)), X),
    case("searchsorted", np.sort(real(7)), X, right=True),
    case("select", X, 1, 2),
    case("take", X, np.array([0, 5, 5])),
    case("unique", INDEX),
    case("unique", INDEX, return_inverse=True, return_counts=True),
    case("unique", np.array([[1, 2], [0, 1], [1, 2]]), dim=0),
    case("unique_consecutive", np.array([1, 1, 2, 2, 1])),
    case("unique_consecutive", np.array([1, 1, 2]), return_inverse=True, return_counts=True),
    case("nn.functional.embedding", INDEX, Z),
    case("nn.functional.embedding", INDEX, Z, padding_idx=2),
    case("nn.functional.embedding", INDEX, Z, padding_idx=-2),
    case("nn.functional.one_hot", INDEX, 4),
    case("nn.functional.one_hot", INDEX),
]
SHAPE = [
    case("broadcast_to", real(1, 4), (3, 4)),
    case("cat", [X, Y], 1),
    case("cat", (X, Y)),
    case("concat", [X, Y]),
    case("chunk", X, 2, 1),
    case("diag", X),
    case("diag", real(3)),
    case("diff", X),
    case("diff", X, n=2, dim=0),
    case("dstack", [X, Y]),
    case("flatten", IMAGES, 1),
    case("nn.functional.flatten", IMAGES),
    case("flip", X, (0,)),
    case("hstack", [X, Y]),
    case("meshgrid", real(3), real(2), indexing="ij"),
    case("permute", IMAGES, (0, 2, 3, 1)),
    case("ravel", X),
    case("reshape", X, (2, -1)),
    case("split", X, 2, 1),
    case("split", X, (1, 3), 1),
    case("squeeze", real(1, 3, 1), 0),
    case("stack", [X, Y], 1),
    case("swapaxes", X, 0, 1),
    case("t", X),
    case("tile", X, (2, 1)),
    case("transpose", X, 0, 1),
    case("tril", X, 1),
    case("triu", X),
    case("unbind", X),
    case("unsqueeze", X, 1),
]
CREATION = [
    case("arange", 5),
    case("arange", 0, 5, 2),
    case("arange", 0.0, 1.0, 0.25),
    case("clone", X),
    case("eye", 3),
    case("eye", 3, 4),
    case("full", (2, 3), 1.5),
    case("full", (2, 3), 2),
    case("full_like", X, 2),
    case("linspace", 0, 1, 5),
    case("ones", (2, 3)),
    case("ones_like", INTS),
    case("zeros", (2, 3)),
    case("zeros_like", X),
]

# Shapes and dtypes are PyTorch's, values are nobody's.
RANDOM = [
    case("bernoulli", PROBABILITIES),
    case("empty", 2, 3),
    case("empty_like", X),
    case("multinomial", PROBABILITIES, 2),
    case("normal", 0.0, 1.0, (2, 3)),
    case("normal", X, ABOVE_1),
    case("normal", X, 1.5),
    case("normal", 0.5, ABOVE_1),
    case("rand", 2, 3),
    case("rand_like", X),
    case("randint", 0, 5, (2, 3)),
    case("randint", 5, (2, 3)),
    case("randint_like", X, 5),
    case("randint_like", X, 1, 5),
    case("randn", 2, 3),
    case("randn_like", X),
    case("randperm", 5),
    case("nn.functional.dropout", X, 0.5),
    case("nn.functional.dropout2d", IMAGES, 0.5),
]

FAMILIES = {
    "element by element": UNARY + BINARY,
    "reductions": REDUCTION,
    "matrices": LINEAR_ALGEBRA,
    "activations": ACTIVATION,
    "losses": LOSS,
    "normalisation": NORMALISATION,
    "convolutions, pooling, images": CONVOLUTION,
    "places, sorting": INDEXING,
    "shapes": SHAPE,
    "creation": CREATION,
    "random numbers": RANDOM,
}

# Without the functions of install(), and without products, whose rounding may depend on where their
# operands lie in memory; some functions MindSpore makes of other operators than PyTorch.
_NOT_EXACT = {
    *("bincount", "cosine_embedding_loss", "npu_gelu", "one_hot", "unique"),
    *("prod", "remainder", "sigmoid_", "silu"),
    *("allclose", "equal", "flatten", "item"),  # not tensors, or elsewhere in PyTorch
}
EXACT = [
    case
    for family in (UNARY, BINARY, REDUCTION, ACTIVATION, LOSS, INDEXING, SHAPE, CREATION)
    for case in family
    if case[1] not in _NOT_EXACT
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
