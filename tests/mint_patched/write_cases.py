"""Functions that write, as text: graphs are compiled from files. `x` is 4x6, `y` and `z` too."""

VIEWS = (
    *("x", "x[1:]", "x[0]", "x[-1]", "x[:, 0]", "x[..., 1]", "x[None]", "x[1:3, 2:4]", "x[1, 2]"),
    *("x[::2]", "x[:, 1::2]", "x[:]", "x.T", "x.t()", "x.transpose(0, 1)", "x.permute(1, 0)"),
    *("x.permute((1, 0))", "x.swapaxes(0, 1)", "x.movedim(0, 1)", "x.view(6, 4)", "x.view((6, 4))"),
    *("x.view(-1)", "x.view(4, 1, 6)", "x.view(4, 6)", "x.narrow(1, 0, 2)", "x.select(0, 1)"),
    *("x.chunk(2)[0]", "x.chunk(2, 1)[1]", "x.split(2)[1]", "x.split([1, 3])[1]", "x.unbind(0)[1]"),
    *("x.unsqueeze(0)", "x.squeeze()", "x.unsqueeze(1).squeeze(1)", "x.diagonal()"),
    *("x.diagonal(1)", "x.expand(4, 6)", "x.expand_as(x)", "x.view_as(x.T.contiguous())"),
    *("mint.transpose(x, 0, 1)", "mint.permute(x, (1, 0))", "mint.t(x)", "mint.narrow(x, 0, 1, 2)"),
    *("mint.select(x, 1, 2)", "mint.chunk(x, 2)[1]", "mint.split(x, 2)[0]", "mint.unbind(x)[2]"),
    *("mint.unsqueeze(x, 1)", "mint.broadcast_to(x, (4, 6))", "x[1:].T", "x.T[1:]", "x[1:][1:]"),
    *("x.view(2, 12)[1]", "x.T[2]", "x.narrow(0, 1, 2).T", "x[2].view(2, 3)"),
    *("x.view(6, 4).T[1:3]", "x.reshape(1, 4, 6)", "x.reshape(4, 6)", "mint.squeeze(x)"),
)
# Graphs have copies of these.
COPIES = (
    "x.reshape(6, 4)",
    "x.flatten()",
    "x.contiguous()",
    "mint.reshape(x, (3, 8))",
)

METHODS = (
    *("add_(y)", "add_(1.5)", "add_(y, alpha=2)", "sub_(y)", "sub_(1.5)", "sub_(y, alpha=2)"),
    *("mul_(y)", "mul_(2.0)", "div_(y)", "div_(2.0)", 'div_(y, rounding_mode="floor")'),
    *('div_(2.0, rounding_mode="trunc")', "remainder_(2.0)", "exp_()", "floor_()", "sigmoid_()"),
    *("tanh_()", "sign_()", "zero_()", "fill_(3.0)", "fill_(z[0, 0])", "clamp_(-0.5, 0.5)"),
    *("clamp_(min=-0.5)", "clamp_(y, y + 1)", "copy_(y)", "copy_(y[0])", "fill_diagonal_(3.0)"),
    *("masked_fill_(y > 0, 3.0)", "masked_fill_(y > 0, z[0, 0])", "masked_scatter_(y > 0, z)"),
    *("addmm_(z[:, :4], y)", "addmm_(z[:, :4], y, beta=0.5, alpha=2.0)"),
    *("index_add_(0, i, y[:2])", "index_copy_(0, i, y[:2])", "index_fill_(0, i, 3.0)"),
    *("index_fill_(0, i, z[0, 0])", "index_put_((i,), y[:2])", "index_put_((i, i), y[0, :2])"),
    *("index_put_((i,), y[:2], accumulate=True)", "scatter_(0, j, 3.0)", "put_(i, y[0, :2])"),
)
STATEMENTS = (
    *("x += y", "x -= 1.5", "x *= y", "x /= 2.0", "x[0] = 1.0", "x[0] = y[0]", "x[1:] = y[1:]"),
    *("x[:, 0] = 3.0", "x[:, 1:3] = y[:, :2]", "x[0, 1] = 5.0", "x[::2] = y[::2]", "x[...] = y"),
    *("x[i] = y[:2]", "x[y > 0] = 3.0", "x[0] += 1.0", "x[:, 0] *= 2.0", "x[0][1] = 3.0"),
    *("x[1:][:, 0] = 3.0", "F.relu(x, inplace=True)", "F.hardtanh(x, inplace=True)"),
    *("F.silu(x, inplace=True)", "F.threshold(x, 0.1, 2.0, inplace=True)"),
    *("x[1:] += y[1:]", "x[1:].add_(y[1:])\nx[:3].sub_(y[:3])", "v = x[1:]\nv += y[1:]"),
    *("v = x.T\nv *= y.T\nv -= 1.0", "x[0][1:] += y[0][1:]", "bump(x[1:])\nbump(x[:3])"),
    *("if x[0, 0] > -100:\n    x[1:] += y[1:]", "for k in range(3):\n    x[k] += y[k]"),
    *("while x[0, 0] < 5.0:\n    x[0] += y[0] * y[0]", "x.view(6, 4)[1:] += 2.0"),
    *("x **= 2.0", "x[1:] **= 2.0", "v = x\nv **= 2.0", "x[i] **= 2.0"),
)
# Views of which functions of MindSpore's or of this package make several, by one graph each.
SHARED = (
    *("x[1:]", "x[None, 1:, None, 0]", "x.T", "x.t()", "x.permute(1, 0)", "x.movedim(0, 1)"),
    *("x.narrow(1, 0, 2)", "x.unsqueeze(0)", "x.squeeze()", "x.diagonal()", "x.expand(4, 6)"),
    *("x.view_as(y[:, None])", "x.select(0, 1)", "x.transpose(0, 1)", "x.swapaxes(0, 1)"),
    *("mint.permute(x, (1, 0))", "mint.t(x)", "mint.squeeze(x)", "mint.squeeze(x[None], 0)"),
    *("mint.reshape(x, (4, 6))", "mint.reshape(x, (4, 1, -1))"),
)

HELPERS = """
def bump(t):
    t.add_(1.0)


def set_first(t):
    t[0] = 5.0


def first(t):
    return t[0]


"""

# Branches, loops, calls and names: right in a graph.
RIGHT = {
    "branch": "if x.sum() > -100:\n    x[1:].add_(1.0)\nelse:\n    x[0].mul_(2.0)",
    "other branch": "if x.sum() > 1000:\n    x[1:].add_(1.0)\nelse:\n    x[0].mul_(2.0)",
    "view of a branch": "if x.sum() > -100:\n    v = x[1:]\nelse:\n    v = x[:3]\nv.add_(1.0)",
    "loop": "for k in range(3):\n    x[k].add_(float(k))",
    "loop over rows": "for row in x:\n    row.add_(1.0)",
    "loop that assigns": "for k in range(4):\n    x[k] = x[k] * k",
    "loop of sizes": "for k in range(3):\n    x.view(24)[k].add_(float(k))",
    "while": "while x[0, 0] < 5.0:\n    x[0].add_(1.0)",
    "while that assigns": "while x[0, 0] < 5.0:\n    x[0] = x[0] + 1.0",
    "another name": "v = x\nv.add_(1.0)",
    "read of a view": "v = x[1:]\nx.add_(1.0)\nx = v * 1",
    "assigned by another name": "v = x\nv[0] = 5.0",
    "assigned through a view": "v = x.T\nv[0] = 5.0",
    "read of an assigned view": "v = x.T\nx[0] = 5.0\nx = v * 1",
    "two views": "a = x[0]\nb = x[1]\na.add_(b)\nb.sub_(a)",
    "parts": "a, b = x.chunk(2)\na.add_(1.0)\nb.mul_(2.0)",
    "list": "rows = [x[0], x[1]]\nrows[1].add_(1.0)",
    "call": "bump(x)",
    "call with a view": "bump(x[1:])",
    "call that assigns": "set_first(x.T)",
    "result of a call": "v = first(x)\nv.add_(1.0)",
    "chain": "x[1:].add_(1.0).mul_(2.0)",
    "inner function": "def inner(t):\n    t[0].add_(1.0)\ninner(x)",
    "augmented view": "v = x[1:]\nv += 1.0",
    "in place": "F.relu(x[1:], inplace=True)",
    "mask of a view": "v = x[1:]\nv[v > 0] = 0.0",
    "copy": "v = x.T.contiguous()\nv.add_(1.0)\nx = x.T + v",
    "new of other sizes": "v = (x * 2).reshape(6, 4)\nv.add_(1.0)\nx = v * 1",
    "zeros": "v = mint.zeros((2,))\nfor k in range(3):\n    v.add_(x[0, k])\nx = v * 1",
}
# Writes to elements of lists, read by other names. `x` and `y` are results of operators.
LISTS = (
    *("w = [x, y]\nw[0] += y", "w = [x, y]\nw[0].mul_(3.0)", "w = [x, y]\nw[0][1:] = y[1:]"),
    *("w = [x, y]\nw[0] += y\nx = x + w[0]", "w = [x[1:], y]\nw[0].add_(1.0)"),
    *("w = [x, y]\nz = w[0]\nz += y", "w = [x, y]\na, b = w\na.add_(b)"),
    *("w = [x, x]\nw[0].add_(1.0)\nw[1].mul_(y)", "w = [x, [y]]\nw[1][0] += x\nx = y * 2"),
    *("w = [x.T, y.T]\nw[0][1:] = w[1][1:]", "w = []\nw.append(x)\nw[0] += y"),
    *("w = [x, y]\nfor t in w:\n    t.add_(1.0)\nx = x * y",),
    *("w = [x, y]\nfor i, t in enumerate(w):\n    t.add_(i)\nx = x * y",),
    *("w = [y, x]\nw[0] = w[0] + w[1]\nw[1] += 1.0\nx = x * w[0]",),
    *("w = [x, y]\nfor k in range(2):\n    w[k] += 1.0\nx = x * y", "w = [x]\nw[0] **= 2.0"),
    *(
        "w = [1, 2]\nw[0] += 1\nx.add_(w[0])",
        "w = (x, y)\nw[0].add_(y)",
        "d = {'x': x}\nd['x'] += y",
    ),
)
# Those that a graph cannot have; what it says of them.
A_COPY = (
    "{place}: expected a tensor that a graph can write, got a copy, which a graph has instead of a "
    "view ({kind}): what is written to it would be lost; write to the tensor itself (`x = "
    "x.sub(y)` for `x.view(-1).sub_(y)`, `x[1:] = x[1:] + 1` for a part), or to `x.clone()` if it "
    "shall stay as it is"
)
A_LOOP = (
    "{place}: expected a tensor that a loop of a graph can write, got an input of the graph, of "
    "which loops have a copy: what is written to it would be lost to the caller; write to "
    "`x.clone()` and return that"
)
PYTHON = (
    "{place}: expected a method that graphs have, got {kind}(), which MindSpore leaves to Python: "
    "what it writes would be lost; call it outside of the graph, or assign the result of a method "
    "that does not write (`x = x.floor()`)"
)
ITSELF = (
    "{place}: expected a tensor that a graph can write, got one of which MindSpore's compiler "
    "makes another one, which is used too (of `x + 0`, `x * 1` and `mint.tile(x, (1, 1))` it "
    "makes x itself): what is written to it would be in both; write to `x.clone()`"
)
REFUSED = {
    "nothing added": ("v = x + 0\nv.mul_(2.0)\nx = v * x", 2, ITSELF, ""),
    "not repeated": ("v = mint.tile(x, (1, 1))\nv.mul_(2.0)\nx = v * x", 2, ITSELF, ""),
    "a name": ("v = x.view(6, 4)\nv.add_(1.0)", 2, A_COPY, "Reshape"),
    "read behind": ("x = x * 2\nv = x.view(6, 4)\nx.add_(1.0)\nx = v * 1", 3, A_COPY, "Reshape"),
    "flatten": ("x.flatten().mul_(2.0)", 1, A_COPY, "Reshape"),
    "contiguous": ("x.contiguous().mul_(2.0)", 1, A_COPY, "Contiguous"),
    "branch": (
        "x = x * 2\nv = x.view(6, 4)\nif x.sum() > -100:\n    v.add_(1.0)",
        4,
        A_COPY,
        "Reshape",
    ),
    "in place": ("F.relu(x.reshape(24), inplace=True)", 1, A_COPY, "Reshape"),
    "input in a loop": ("while x[0, 0] < 5.0:\n    x.add_(1.0)", 2, A_LOOP, ""),
    "set_": ("x.set_(x * 2)", 1, PYTHON, "set_"),
    "random_": ("x.random_()", 1, PYTHON, "random_"),
}
