"""Calls with an empty list of sizes, dimensions or numbers, for MindSpore and PyTorch alike.

`x` has the shape (2, 3), `v` (3,), `o` (1, 1), `z` none, `t` (1, 1, 2, 2); `n` is torch or mint,
`F` their functions of neural networks.
"""

CASES: tuple[str, ...] = (
    # Sizes.
    *("o.reshape(())", "o.view(())", "n.reshape(o, ())", "z.reshape(())", "z.view(())"),
    *("x.reshape(())", "x.view(())", "z.broadcast_to(())", "n.broadcast_to(z, ())"),
    *("x.broadcast_to(())", "z.expand(())", "z.new_full((), 2.0)", "x.new_full((), 2)"),
    *("z.new_ones(())", "z.new_zeros(())", "n.ones(())", "n.zeros(())", "n.full((), 2.0)"),
    *("o.sum().reshape(())", "(o * o).reshape(())", "n.ones_like(z).reshape(())"),
    *("F.layer_norm(x, ())", "F.layer_norm(z, ())", "x.unflatten(0, ())", "n.unflatten(x, 0, ())"),
    *("o.squeeze().view(())", "o.sum_to_size(())"),
    # Counts.
    *("z.tile(())", "n.tile(z, ())", "x.tile(())", "n.tile(x, ())", "z.repeat(())", "x.repeat(())"),
    *("n.repeat_interleave(x, ())", "x.repeat_interleave(())", "n.repeat_interleave(v, ())"),
    *("n.split(x, ())", "x.split(())", "x.tensor_split(())"),
    # Dimensions.
    *("n.flip(x, ())", "x.flip(())", "n.flip(z, ())", "z.flip(())", "x.flip(dims=())"),
    *("n.permute(z, ())", "z.permute(())", "x.permute(())"),
    *("n.squeeze(x, ())", "x.squeeze(())", "o.squeeze(())", "n.squeeze(o, ())"),
    *("n.roll(x, ())", "x.roll(())", "n.roll(x, (), ())", "x.roll((), ())", "x.roll(1, ())"),
    *("n.roll(x, (1,), ())", "x.rot90(1, ())", "x.movedim((), ())"),
    *(f"n.{name}(x, ())" for name in ("sum", "mean", "amax", "amin", "all", "any")),
    *(f"x.{name}(())" for name in ("sum", "mean", "amax", "amin", "all", "any")),
    *(f"n.{name}(x, ())" for name in ("std", "var", "std_mean", "var_mean", "count_nonzero")),
    *(f"x.{name}(())" for name in ("std", "var", "count_nonzero", "nansum", "norm")),
    *(f"x.{name}(dim=())" for name in ("sum", "mean", "std", "var", "amax", "count_nonzero")),
    *(f"n.{name}(x, dim=())" for name in ("sum", "mean", "nansum", "norm", "std")),
    *(f"n.{name}(x, (), True)" for name in ("sum", "mean", "amax", "logsumexp")),
    *("n.norm(x, 2, ())", "x.norm(2, ())", "n.linalg.vector_norm(x, 2, ())"),
    *("n.linalg.vector_norm(x, dim=())", "n.std(x, (), correction=0)", "n.nansum(x, ())"),
    *("F.normalize(x, dim=())", "n.prod(x, ())", "x.prod(())", "n.max(x, ())"),
    *("n.argmax(x, ())", "n.sort(x, ())", "n.softmax(x, ())", "n.cumsum(x, ())", "n.unbind(x, ())"),
    *("z.sum(())", "z.mean(())", "z.amax(())", "z.std(())", "z.var(())", "z.all(())", "z.any(())"),
    *("n.logsumexp(z, ())", "z.count_nonzero(())", "n.count_nonzero(z, ())", "n.amax(z, ())"),
    # With windows, and with nothing.
    *("F.pad(x, ())", "n.cat(())", "n.stack(())", "n.meshgrid(())", "n.einsum('ij->ij', ())"),
    *("F.interpolate(t, ())", "F.adaptive_avg_pool2d(t, ())", "F.avg_pool2d(t, ())"),
    *("F.max_pool2d(t, ())", "F.fold(t, (), 1)", "F.unfold(t, ())", "F.conv2d(t, t, stride=())"),
    *("F.conv2d(t, t, padding=())", "F.conv2d(t, t, dilation=())", "F.avg_pool2d(t, 2, ())"),
    *("F.adaptive_avg_pool3d(t, ())", "F.adaptive_max_pool2d(t, ())", "F.max_pool2d(t, 2, ())"),
    *("F.conv_transpose2d(t, t, output_padding=())", "F.unfold(t, 2, padding=())"),
    *("x[()]", "z[()]", "x.index_put((), z)", "x.clamp(min=())", "n.where(x > 0, x, ())"),
    *("x.histc(())", "n.randperm(0)", "n.arange(0)", "n.linspace(0, 1, 0)", "n.eye(0)"),
)
