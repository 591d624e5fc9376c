"""Calls of the methods of tensors, as expressions that MindSpore and PyTorch read alike.

`x` and `y` have the shape (3, 4) and the dtype of a run, `v` and `w` the shape (4,), `a` and `b`
the shape (3, 3), `c` and `d` the shape (2, 3, 3), `z` no dimension; these have the dtype too. `u`
and `g` are as `y` and `w` in a larger dtype. `i`, `j` and `k` are indices, of the shapes (3, 4),
(2,) and (4,), `m` truth values of the shape (3, 4).
"""

from __future__ import annotations

_UNARY = (
    *("abs", "absolute", "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh"),
    *("arctan", "arctanh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "clone"),
    *("conj", "contiguous", "cos", "cosh", "count_nonzero", "deg2rad", "digamma", "erf", "erfc"),
    *("erfinv", "exp", "expm1", "flatten", "fliplr", "flipud", "floor", "frac", "hardshrink"),
    *("i0", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "lgamma", "log"),
    *("log10", "log1p", "log2", "logical_not", "logit", "max", "mean", "median", "min", "msort"),
    *("nan_to_num", "nanmean", "nanmedian", "nansum", "neg", "negative", "nonzero", "numel"),
    *("positive", "prod", "rad2deg", "ravel", "real", "reciprocal", "round", "rsqrt", "sgn"),
    *("sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sort", "sqrt", "square", "squeeze"),
    *("std", "sum", "t", "tan", "tanh", "tril", "triu", "trunc", "unbind", "unique", "var"),
    *("all", "any", "argmax", "argmin", "argsort", "cov", "dim", "nelement", "tolist"),
    *("is_complex", "is_floating_point", "is_signed", "bool", "byte", "double", "float", "half"),
    *("int", "long", "short", "bfloat16", "ndimension", "logcumsumexp(1)", "isreal", "argwhere"),
)

_BINARY = (
    *("add", "arctan2", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or"),
    *("bitwise_right_shift", "bitwise_xor", "copysign", "div", "divide", "eq", "equal", "fmax"),
    *("fmin", "fmod", "float_power", "floor_divide", "gcd", "ge", "greater", "greater_equal"),
    *("gt", "heaviside", "hypot", "igamma", "igammac", "isclose", "lcm", "ldexp", "le", "less"),
    *("less_equal", "logaddexp", "logaddexp2", "logical_and", "logical_or", "logical_xor", "lt"),
    *("maximum", "minimum", "mul", "multiply", "ne", "nextafter", "not_equal", "pow"),
    *("remainder", "sub", "subtract", "true_divide", "xlogy", "allclose", "expand_as"),
    *("reshape_as", "view_as", "type_as"),
)

_WITH_NUMBER = (
    *("add", "bitwise_and", "bitwise_or", "bitwise_xor", "clamp", "div", "divide", "eq"),
    *("float_power", "floor_divide", "fmod", "ge", "gt", "le", "lt", "mul", "multiply", "ne"),
    *("pow", "remainder", "sub", "subtract", "true_divide", "xlogy", "copysign", "greater"),
    *("greater_equal", "less", "less_equal", "not_equal"),
)

_ALONG = (  # along a dimension, in all forms that PyTorch has
    *("all", "amax", "amin", "any", "argmax", "argmin", "logsumexp", "max", "mean", "median"),
    *("min", "nanmean", "nanmedian", "nansum", "prod", "std", "sum", "var"),
)

_SCANS = ("cummax", "cummin", "cumprod", "cumsum", "logcumsumexp", "diff", "unbind", "argsort")

_ALL: tuple[str, ...] = (
    *(f"x.{name}" if name.endswith(")") else f"x.{name}()" for name in _UNARY),
    *(f"x.{name}(y)" for name in _BINARY),
    *(f"x.{name}(2)" for name in _WITH_NUMBER),
    *(f"x.{name}(1.5)" for name in ("add", "div", "mul", "pow", "sub", "fmod", "remainder", "eq")),
    *(f"x.{name}(z)" for name in ("add", "div", "mul", "pow", "sub", "fmod", "remainder", "eq")),
    *(f"x.{name}({form})" for name in _ALONG for form in ("1", "dim=0")),
    *(f"x.{name}({form})" for name in _ALONG for form in ("1, True", "dim=-1, keepdim=True")),
    *(f"x.{name}({form})" for name in _SCANS for form in ("1", "dim=0")),
    *(
        f"x.{name}(keepdim=True)"
        for name in ("all", "any", "argmax", "argmin", "amax", "std", "sum")
    ),
    *(f"x.{name}(None, True)" for name in ("any", "argmax", "argmin")),
    *(f"z.{name}()" for name in ("std", "sort", "argmax", "median", "sum", "any", "max", "var")),
    *(f"v.{name}()" for name in ("sort", "argsort", "median", "diag", "sum", "t", "unique")),
    *(f"x.{name}((0, 1))" for name in ("amax", "amin", "any", "all", "std", "var", "mean", "sum")),
    *(f"x.{name}(dim=(0, 1))" for name in ("logsumexp", "count_nonzero", "nansum", "flip", "sum")),
    *(f"x.{name}(dtype=torch.float32)" for name in ("mean", "sum", "prod", "nansum")),
    *(f"x.{name}(1, dtype=torch.float32)" for name in ("mean", "sum", "cumsum", "cumprod", "prod")),
    *("x.std(1, correction=0)", "x.std(correction=0)", "x.var(1, correction=2, keepdim=True)"),
    *("x.std(unbiased=False)", "x.var(unbiased=False)", "x.std(1, False)", "x.std(False)"),
    *("x.std(dim=1, unbiased=False)", "x.var(1, False, True)", "x.std(1, True, True)"),
    *("x.std(dim=None)", "x.var(dim=(1,), keepdim=True)", "x.std((0, 1), keepdim=True)"),
    *("x.sort(0)", "x.sort(dim=0)", "x.sort(1, True)", "x.sort(descending=True)"),
    *("x.sort(dim=0, descending=True, stable=True)", "x.sort(stable=True)"),
    *("x.argsort(0, True)", "x.argsort(dim=0, descending=True)", "x.argsort(descending=True)"),
    *("x.topk(2)", "x.topk(2, 0)", "x.topk(2, dim=0)", "x.topk(k=2, largest=False)"),
    *("x.topk(2, 1, False)", "x.topk(2, dim=1, largest=False, sorted=True)"),
    *("x.kthvalue(2)", "x.kthvalue(2, 0)", "x.kthvalue(2, dim=1, keepdim=True)"),
    *("x.count_nonzero(1)", "x.count_nonzero(dim=0)", "x.count_nonzero((0, 1))"),
    *("x.round(decimals=1)", "x.div(y, rounding_mode='floor')", "x.div(2, rounding_mode='trunc')"),
    *("x.add(y, alpha=2)", "x.sub(y, alpha=2)", "x.add(1, alpha=2)", "x.subtract(y, alpha=2)"),
    *("x.clamp(1, 2)", "x.clamp(min=1)", "x.clamp(max=2)", "x.clamp(x, y)", "x.clip(1, 2)"),
    *("x.clip(min=1)", "x.clip(x, y)", "x.nan_to_num(1.0, 2.0, 3.0)"),
    *("x.lerp(y, 0.5)", "x.lerp(y, y)", "x.addcdiv(y, y)", "x.addcdiv(y, y, value=2)"),
    *("x.addcmul(y, y)", "x.addcmul(y, y, value=2)", "x.isclose(y, 1e-3, 1e-3)"),
    *("x.logit(0.1)", "x.hardshrink(1.0)", "x.norm()", "x.norm(2, 1)", "x.norm(p=1, dim=0)"),
    *("x.norm(dim=1, keepdim=True)", "x.renorm(2, 0, 1.0)", "x.trunc()", "x.fmod(y)"),
    # With two dtypes.
    *(f"x.{name}(u)" for name in _BINARY),
    *(f"u.{name}(x)" for name in ("add", "atan2", "fmod", "logaddexp", "pow", "sub", "xlogy")),
    *("x.addcmul(u, y)", "x.addcdiv(u, u)", "v.outer(g)", "g.outer(v)", "x.where(m, u)"),
    # Other shapes and orders.
    *("x.reshape(4, 3)", "x.reshape((2, -1))", "x.view(4, 3)", "x.view((2, 6))", "x.view(-1)"),
    *("x.flatten(0, 1)", "x.flatten(start_dim=0)", "c.flatten(1)", "c.flatten(end_dim=1)"),
    *("x.transpose(0, 1)", "x.transpose(dim0=0, dim1=1)", "c.permute(2, 0, 1)", "x.swapaxes(0, 1)"),
    *("c.permute((2, 0, 1))", "c.permute(dims=(2, 0, 1))", "x.swapdims(0, 1)", "c.movedim(0, 2)"),
    *("c.moveaxis(0, 2)", "x.unsqueeze(0)", "x.unsqueeze(dim=1)", "x.unsqueeze(0).squeeze(0)"),
    *("x.unsqueeze(0).squeeze(dim=0)", "x.squeeze(0)", "x.expand(2, 3, 4)", "x.expand((2, 3, 4))"),
    *("x.expand(-1, 4)", "x.broadcast_to((2, 3, 4))", "x.repeat(2, 1)", "x.repeat((2, 1, 1))"),
    *("x.tile((2, 1))", "x.tile((2,))", "x.tile(dims=(2, 1))", "x.flip(0)", "x.flip((0, 1))"),
    *("x.flip(dims=(1,))", "x.flip(0, 1)", "x.roll(1)", "x.roll(1, 0)", "x.roll((1, 2), (0, 1))"),
    *("x.roll(shifts=1, dims=1)", "x.rot90()", "x.rot90(1, (0, 1))", "x.rot90(k=2)", "x.t()"),
    *("x.narrow(1, 1, 2)", "x.narrow(dim=1, start=1, length=2)", "x.select(0, 1)"),
    *("x.select(dim=1, index=2)", "x.split(2)", "x.split(2, 1)", "x.split((1, 3), 1)"),
    *("x.split(2, dim=1)", "x.split((1, 2), dim=0)", "x.chunk(2)", "x.chunk(2, 1)"),
    *("x.chunk(2, dim=1)", "x.chunk(chunks=2, dim=1)", "x.tensor_split(2)", "x.tensor_split(3, 1)"),
    *("x.tensor_split((1, 2), 0)", "x.tensor_split(2, dim=1)", "x.unbind(0)", "x.unfold(1, 2, 1)"),
    *("x.hsplit(2)", "x.vsplit(3)", "c.dsplit(3)", "x.diagonal()", "x.diagonal(1)"),
    *("x.diagonal(offset=-1)", "c.diagonal(0, 1, 2)", "c.diagonal(dim1=0, dim2=2)", "x.diag()"),
    *("x.diag(1)", "v.diag(1)", "v.diag(diagonal=-1)", "x.tril(1)", "x.tril(diagonal=-1)"),
    *("x.triu(1)", "x.triu(diagonal=-1)", "v.diagflat()", "v.diagflat(1)", "a.trace()"),
    *("a.adjoint()", "x.sum_to_size(1, 4)", "x.sum_to_size((3, 1))"),
    # With indices.
    *("x.gather(0, i)", "x.gather(dim=0, index=i)", "x.gather(1, i)", "x.index_select(0, j)"),
    *("x.index_select(dim=1, index=j)", "x.take(j)", "x.take(i)", "x.take(index=i)"),
    *("x.scatter(0, i, y)", "x.scatter(dim=0, index=i, src=y)", "x.scatter(0, i, 2)"),
    *("x.scatter(0, i, value=2)", "x.scatter_add(0, i, y)", "x.scatter_add(dim=1, index=i, src=y)"),
    *("x.masked_fill(m, 2)", "x.masked_fill(mask=m, value=2)", "x.masked_fill(m, z)"),
    *("x.masked_select(m)", "x.masked_select(mask=m)", "x.masked_scatter(m, y)", "x.where(m, y)"),
    *("x.where(m, 2)", "x.where(condition=m, other=y)", "x.index_add(0, i[:, 0], y)"),
    *("x.index_add(0, i[:, 0], y, alpha=2)", "x.index_fill(0, j, 2)", "x.index_fill(1, j, z)"),
    *("x.index_put((j,), w)", "x.index_put((j,), w, True)", "x.repeat_interleave(2)"),
    *("x.repeat_interleave(2, 1)", "x.repeat_interleave(2, dim=0)", "x.repeat_interleave(j + 1)"),
    *("v.repeat_interleave(k)", "x.select_scatter(v, 0, 1)", "x.slice_scatter(y, 0, 0, 3)"),
    *("x.diagonal_scatter(v[:3])", "v.sort()", "v.unique()", "v.unique(True, True)"),
    *("v.unique(return_counts=True)", "x.unique(dim=0)", "v.unique_consecutive()"),
    *("v.unique_consecutive(return_inverse=True)", "x.nonzero(as_tuple=True)"),
    *("k.bincount()", "k.bincount(minlength=9)", "k.bincount(v)", "k.bincount(weights=v)"),
    *("v.histc(4)", "v.histc(bins=4, min=0, max=3)", "v.histc()", "x.quantile(0.5)"),
    *("x.quantile(0.5, 1)", "x.nanquantile(0.5, 1)", "x.aminmax()", "x.aminmax(dim=0)"),
    *("z.item()", "x.maximum(v)", "x.float_power(2.5)"),
    # With matrices.
    *("a.matmul(b)", "a.mm(b)", "c.bmm(d)", "v.dot(w)", "v.outer(w)", "v.outer(vec2=w)"),
    *("v.inner(w)", "x.inner(v)", "v.ger(w)", "a.cross(b)"),
    *("a.cross(b, dim=0)", "a.addmm(a, b)", "a.addmm(a, b, beta=2, alpha=3)", "x.matmul(v)"),
    *("v[:3].addmv(a, w[:3])", "v[:3].addmv(a, w[:3], beta=2, alpha=3)", "x.matmul(tensor2=v)"),
    *(
        "a.addbmm(c, d)",
        "a.addbmm(c, d, beta=2, alpha=3)",
        "c.baddbmm(c, d)",
        "a.addr(v[:3], w[:3])",
    ),
    *("c.baddbmm(c, d, beta=2, alpha=3)", "a.inverse()", "c.inverse()", "a.det()", "a.logdet()"),
    *("a.slogdet()", "a.matrix_power(2)", "a.qr()", "a.mm(a)"),
    # New ones.
    *("x.new_zeros((2, 3))", "x.new_ones((2, 3))", "x.new_full((2, 3), 2)", "x.new_ones(2)"),
    *("x.new_zeros(2, 3)", "x.new_zeros((2,), dtype=torch.int32)", "x.new_full((2,), 2.5)"),
    *(
        "x.to(torch.int32)",
        "x.to(torch.float64)",
        "x.to(dtype=torch.float32)",
        "x.type(torch.int64)",
    ),
    # What MindSpore's older methods have for keywords.
    *("x.std(axis=1)", "x.std(axis=1, ddof=1)", "x.var(axis=0, keepdims=True)", "x.sum(axis=1)"),
    *("x.mean(axis=1)", "x.max(axis=1)", "x.min(axis=0)", "x.argmax(axis=1)", "x.argmin(axis=0)"),
    *("x.sort(axis=0)", "x.argsort(axis=0)", "x.median(axis=0)", "x.cumsum(axis=1)"),
    *("x.all(axis=1)", "x.any(axis=1)", "x.prod(axis=1)", "x.count_nonzero(axis=1)"),
    *("x.sum(axis=1, keepdims=True)", "x.median(axis=1, keepdims=True)", "x.nansum(axis=1)"),
    *("x.amax(axis=1)", "x.amin(axis=1, keepdims=True)", "x.squeeze(axis=0)", "x.chunk(2, axis=1)"),
    *("x.split(2, axis=1)", "x.index_select(axis=0, index=j)", "x.logsumexp(axis=1)"),
    *("x.mean(axis=1, keep_dims=True)", "x.max(axis=1, keepdims=True, return_indices=True)"),
    # Operators.
    *(f"x {operator} y" for operator in ("+", "-", "*", "/", "//", "%", "**", "==", "<", "&", "|")),
    *(f"x {operator} 2" for operator in ("+", "-", "*", "/", "//", "%", "**", "==", "<", "&", "|")),
    *(f"2 {operator} x" for operator in ("+", "-", "*", "/", "//", "%", "**")),
    *("-x", "~x", "x @ x.t()", "abs(x)", "x ^ y", "1.5 - x", "x * 1.5", "x + True"),
    *("x[0]", "x[:, 1]", "x[1:, ::2]", "x[..., 0]", "x[None]", "x[j]", "x[m]", "x[:, j]"),
)

CASES = tuple(dict.fromkeys(_ALL))

# What graphs refuse and PyNative mode takes, with the dtypes. Of truth values it is more.
REFUSED_BY_GRAPHS: dict[str, tuple[str, ...]] = {
    # The parameters that MindSpore's compiler knows.
    **dict.fromkeys(
        ("x.std(unbiased=False)", "x.var(unbiased=False)", "x.std(dim=1, unbiased=False)"),
        ("float32",),
    ),
    **dict.fromkeys(
        (
            *("x.unsqueeze(0).squeeze(dim=0)", "x.where(condition=m, other=y)"),
            *("x.diagonal_scatter(v[:3])", "x.logsumexp(axis=1)"),
        ),
        ("float32", "int32"),
    ),
    "x.std(False)": ("float32",),
    # With integers.
    **dict.fromkeys(("x.ceil()", "x.erf()", "x.erfc()", "x.exp()", "x.expm1()"), ("int32",)),
    **dict.fromkeys(("x.bitwise_left_shift(u)", "x.bitwise_right_shift(u)"), ("int32",)),
}

# Where both modes have another result than PyTorch.
OTHER_THAN_PYTORCH: dict[str, tuple[str, ...]] = {
    # Methods of MindSpore's that mint lacks.
    **dict.fromkeys(("x.nanmedian()", "x.aminmax()"), ("float32", "int32")),
    **dict.fromkeys(("x.equal(y)", "x.equal(u)"), ("float32", "int32", "bool")),
    "x.copysign(u)": ("float32",),
    **dict.fromkeys(("x.bitwise_left_shift(y)", "x.bitwise_left_shift(u)", "~x"), ("int32",)),
    # The older method's keywords.
    **dict.fromkeys(
        (
            *("x.max(axis=1)", "x.min(axis=0)", "x.argmin(axis=0)", "x.sort(axis=0)"),
            *("x.argsort(axis=0)", "x.count_nonzero(axis=1)"),
        ),
        ("float32", "int32"),
    ),
    **dict.fromkeys(("x.std(axis=1)", "x.var(axis=0, keepdims=True)"), ("float32",)),
    "x.nansum(axis=1)": ("int32",),
    "x.cumsum(axis=1)": ("int32", "bool"),
    # With integers in their own dtype.
    **dict.fromkeys(("x.cumsum(1)", "x.cumsum(dim=0)"), ("int32",)),
}
