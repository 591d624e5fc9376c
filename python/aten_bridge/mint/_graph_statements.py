"""What stands for statements and methods in the functions that graphs compile.

MindSpore 2.10's compiler has no view in other sizes and copies instead, and some methods it leaves
to Python, which writes a copy. Where a function writes so in one statement
(`x.view(6, 4).add_(1)`), the statement is taken apart here so that the result is copied back; where
it calls a method that is left to Python, or one of MindSpore's older methods by its keywords, a
function is called instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from mindspore import Tensor, mint
from mindspore.graph._parse import resources
from mindspore.graph._parse.standard_method import check_reshape_shp, check_view_shape
from mindspore.ops import functional as F
from mindspore.ops.auto_generate import inplace_copy_op, inplace_floor_op

from aten_bridge.mint import _graph_indexing, _graph_views, _in_place, _methods
from aten_bridge.mint._replace import inlined, is_known

PREFIX = "_aten_bridge_"


@inlined
def floor_(x):
    return inplace_floor_op(x) if _is_tensor(x) else x.floor_()


@inlined
def addmm_(x, *arguments, **keywords):
    if _is_tensor(x):
        return _in_place.addmm_by_copy(x, *arguments, **keywords)
    return x.addmm_(*arguments, **keywords)


@inlined
def copy_(x, src, *arguments, **keywords):
    if _is_tensor(x) and _is_tensor(src) and src.dtype != x.dtype:
        return inplace_copy_op(x, src.astype(x.dtype))
    return x.copy_(src, *arguments, **keywords)


@inlined
def div_(x, other, *, rounding_mode=None):
    if rounding_mode is None or not _is_tensor(x):
        return x.div_(other)
    return _in_place.div_by_copy(x, other, rounding_mode=rounding_mode)


@inlined
def fill_diagonal_(x, fill_value, wrap=False):
    if wrap and _is_tensor(x):
        return _in_place.fill_diagonal_by_mask(x, fill_value, wrap)
    return x.fill_diagonal_(fill_value, wrap)


@inlined
def index_fill_(x, dim, index, value):
    if _is_tensor(x) and _is_tensor(value):
        return _in_place.index_fill_by_mask(x, dim, index, value)
    return x.index_fill_(dim, index, value)


@inlined
def index_put_(x, indices, values, accumulate=False):
    if _is_tensor(x) and _in_place.has_rows(x, indices, values):
        return _in_place.index_put_by_rows(x, indices, values, accumulate)
    return x.index_put_(indices, values, accumulate)


@inlined
def abs_(x):
    """A graph's method is complex for complex numbers."""
    return mint.abs(x) if _is_tensor(x) else x.abs()


_abs_of_graphs = resources.convert_object_map[abs]


@inlined
def builtin_abs(x):
    return mint.abs(x) if _is_tensor(x) else _abs_of_graphs(x)


@inlined
def clamp(x, *bounds, **keywords):
    """A graph's method has gradients of the common dtype of two."""
    return mint.clamp(x, *bounds, **keywords) if _is_tensor(x) else x.clamp(*bounds, **keywords)


@inlined
def clip(x, *bounds, **keywords):
    return mint.clamp(x, *bounds, **keywords) if _is_tensor(x) else x.clip(*bounds, **keywords)


@inlined
def absolute(x):
    return mint.abs(x) if _is_tensor(x) else x.absolute()


@inlined
def _is_tensor(x):
    return is_known(x) and isinstance(x, Tensor)


@inlined
def write_back(tensor, view):
    """What has been written to a view in other sizes, of which a graph may have a copy."""
    if _is_tensor(tensor) and not _graph_views.is_view(tensor, view.shape):
        inplace_copy_op(tensor, F.reshape(view, tensor.shape))
    return tensor


@inlined
def view(x, *shape):
    return _graph_views.as_view(x, check_view_shape(shape)) if _is_tensor(x) else x.view(*shape)


@inlined
def reshape(x, *shape):
    return _graph_views.as_view(x, check_reshape_shp(shape)) if _is_tensor(x) else x.reshape(*shape)


@inlined
def fresh(x):
    """A new tensor in each run: MindSpore computes with its value when it compiles."""
    return mint.clone(x) if _is_tensor(x) else x


@inlined
def listed(x):
    """A tensor that comes into a list (_graph_lists.py): written with itself."""
    return inplace_copy_op(x, x) if _is_tensor(x) and not F.isconstant(x) else x


@inlined
def part(owner, x):
    """What `owner[i]` is: of a list it is the tensor itself."""
    return _graph_indexing.part(x) if _is_tensor(owner) and _is_tensor(x) else x


def _of_axis(name: str, older: Callable) -> Callable:
    @inlined
    def compute(x, *arguments, **keywords):
        if _is_tensor(x):
            return older(x, *arguments, **keywords)
        return getattr(x, name)(*arguments, **keywords)

    return compute


_MAKE_TENSORS = (
    *("Tensor", "arange", "empty", "eye", "full", "full_like", "linspace", "ones", "ones_like"),
    *("tensor", "zeros", "zeros_like"),
)
# That MindSpore leaves to Python, or differentiates wrongly.
_METHODS = {
    **{"addmm_": addmm_, "copy_": copy_, "div_": div_, "fill_diagonal_": fill_diagonal_},
    **{"floor_": floor_, "index_fill_": index_fill_, "index_put_": index_put_},
    **{"reshape": reshape, "view": view},
}
_VIEWS = ("view", "view_as")
_OLDER = {f"older_{name}": _of_axis(name, older) for name, older in _methods.OLDER.items()}
# Over all dimensions with `keepdim`, graphs have no call of `any`, and a wrong one of the others.
_KEEPING = {f"keeping_{name}": _of_axis(name, _methods.KEEPING[name]) for name in _methods.KEEPING}
FUNCTIONS = {
    **_METHODS,
    **_OLDER,
    **_KEEPING,
    **{
        "abs": abs_,
        "absolute": absolute,
        "clamp": clamp,
        "clip": clip,
        "fresh": fresh,
        "listed": listed,
        "part": part,
        "write_back": write_back,
    },
}


def writes(name: str) -> bool:
    """Whether the method writes its tensor: add_, __iadd__; not __init__."""
    return bool(re.fullmatch(r"[a-z]\w*[a-z0-9]_|__i(add|sub|mul|truediv|floordiv|mod)__", name))


def method_of(node: ast.AST) -> str:
    """The name of the method that is called, also by a function of this module."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Name) and node.func.id.startswith(PREFIX):
        return node.func.id.removeprefix(PREFIX)
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _tensor_of(node: ast.Call) -> ast.expr:
    """The tensor whose method is called."""
    return node.args[0] if isinstance(node.func, ast.Name) else node.func.value


def like(node: ast.AST, other: ast.AST) -> ast.AST:
    """The node with the position of the other, to which errors and MindSpore's tokens refer."""
    ast.copy_location(node, other)
    for name in ("first_token", "last_token"):  # parts of an f-string have none
        if hasattr(other, name):
            setattr(node, name, getattr(other, name))
    return node


class Rewriter(ast.NodeTransformer):
    """In functions that write: takes statements apart that write to views in other sizes."""

    count = 0

    def _view_in(self, node: ast.expr) -> ast.Call | None:
        """The view in other sizes that the expression is a part of."""
        while method_of(node) not in _VIEWS:
            if method_of(node):
                node = _tensor_of(node)
            elif isinstance(node, (ast.Attribute, ast.Subscript)):
                node = node.value
            else:
                return None
        return node

    def _apart(self, statement: ast.stmt, place: ast.expr) -> ast.stmt | list[ast.stmt]:
        """The statement, which writes to the place, between those that name and copy its view."""
        view = self._view_in(place)
        if view is None or self._view_in(_tensor_of(view)) is not None:
            return statement
        self.count += 1
        tensor = _tensor_of(view)
        base, seen = f"{PREFIX}tensor_{self.count}", f"{PREFIX}view_{self.count}"

        def load(name: str) -> ast.expr:
            return like(ast.Name(id=name, ctx=ast.Load()), view)

        def store(name: str, value: ast.expr) -> ast.stmt:
            target = like(ast.Name(id=name, ctx=ast.Store()), view)
            return like(ast.Assign([target], value), statement)

        statements = [store(base, tensor)]
        if isinstance(view.func, ast.Name):
            call = like(ast.Call(view.func, [load(base), *view.args[1:]], view.keywords), view)
        else:
            method = like(ast.Attribute(load(base), view.func.attr, ast.Load()), view.func)
            call = like(ast.Call(method, view.args, view.keywords), view)
        statements += [store(seen, call), _Replacer(view, load(seen)).visit(statement)]
        back = ast.Call(load(f"{PREFIX}write_back"), [load(base), load(seen)], [])
        statements.append(like(ast.Expr(like(back, view)), statement))
        return statements

    def visit_Expr(self, node):
        if writes(method_of(node.value)):
            node.value = self.visit(node.value)
            return self._apart(node, _tensor_of(node.value))
        return self.generic_visit(node)

    def visit_Assign(self, node):
        node = self.generic_visit(node)
        is_part = len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript)
        return self._apart(node, node.targets[0].value) if is_part else node

    def visit_AugAssign(self, node):
        node = self.generic_visit(node)
        if not isinstance(node.target, ast.Subscript):
            return node
        statements = self._apart(node, node.target.value)
        if statements is node:
            return self._of_part(node)
        place = statements.index(node)
        return [*statements[:place], *self._of_part(node), *statements[place + 1 :]]

    def _of_part(self, node: ast.AugAssign) -> list[ast.stmt]:
        """`x[i] += y` as MindSpore computes it: the part, what is written to it, and `x[i] = …`."""
        self.count += 1
        name, target = f"{PREFIX}part_{self.count}", node.target

        def named(context: ast.expr_context) -> ast.expr:
            return like(ast.Name(id=name, ctx=context), target)

        read = like(ast.Subscript(target.value, target.slice, ast.Load()), target)
        function = like(ast.Name(f"{PREFIX}part", ast.Load()), target)
        value = like(ast.Call(function, [target.value, read], []), target)
        return [
            like(ast.Assign([named(ast.Store())], value), node),
            like(ast.AugAssign(named(ast.Store()), node.op, node.value), node),
            like(ast.Assign([target], named(ast.Load())), node),
        ]

    def visit_Call(self, node):
        node = self.generic_visit(node)
        if (method_of(node) or getattr(node.func, "id", "")) in _MAKE_TENSORS:
            return like(
                ast.Call(like(ast.Name(f"{PREFIX}fresh", ast.Load()), node), [node], []), node
            )
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            function = like(ast.Name(PREFIX + node.func.attr, ast.Load()), node.func)
            node.args = [node.func.value, *node.args]
            node.func = function
        return node


class MethodRewriter(ast.NodeTransformer):
    """In all functions: methods that graphs have wrong, or take for others of their names."""

    def visit_Call(self, node):
        node = self.generic_visit(node)
        name, function = method_of(node), ""
        is_bare = not node.args and not node.keywords
        if name in ("clamp", "clip") or (name in ("abs", "absolute") and is_bare):
            function = name
        elif _methods.is_older(name, [keyword.arg for keyword in node.keywords]):
            function = f"older_{name}"
        elif name in _methods.KEEPING and not is_bare:
            function = f"keeping_{name}"
        if function:
            node.args = [node.func.value, *node.args]
            node.func = like(ast.Name(PREFIX + function, ast.Load()), node.func)
        return node


class _Replacer(ast.NodeTransformer):
    def __init__(self, one: ast.AST, other: ast.AST):
        self.one, self.other = one, other

    def visit(self, node):
        return self.other if node is self.one else self.generic_visit(node)
