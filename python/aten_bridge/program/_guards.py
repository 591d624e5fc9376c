"""Conditions on sizes, which torch.export keeps as Python's expressions, as lines of a program."""

from __future__ import annotations

import ast
from collections.abc import Callable

from aten_bridge.program._trees import NotExportable

_RELATIONS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.LtE: "<=",
    ast.GtE: ">=",
    ast.Lt: "<",
    ast.Gt: ">",
}
_FUNCTIONS = {
    ast.Add: "add",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.Div: "truediv",
}

SizeOf = Callable[[str, int], str]  # the text of a size, of a source such as "L['x']"


def guard_text(guard: str, size_of: SizeOf) -> str | None:
    """The line of a guard, such as "guard mod(s0, 2) == 0"; None where it is always true.

    Raises NotExportable.
    """
    try:
        tree = ast.parse(guard, mode="eval").body
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
            left, right = (_number(one, size_of) for one in (tree.left, tree.comparators[0]))
            relation = _RELATIONS[type(tree.ops[0])]
            is_same = left == right and "=" in relation and relation != "!="
            return None if is_same else f"guard {left} {relation} {right}"
    except (KeyError, SyntaxError):
        pass
    raise NotExportable(
        "expected conditions on sizes that compare sums, products and quotients of sizes, got "
        f"{guard}; give the sizes that the module asks for as static ones"
    )


def _number(tree: ast.expr, size_of: SizeOf) -> str:
    """Raises KeyError for what a program cannot say."""
    match tree:
        case ast.Constant(value=int() | float() as value):
            return repr(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return repr(-value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"mul(-1, {_number(operand, size_of)})"
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return f"add({_number(left, size_of)}, mul(-1, {_number(right, size_of)}))"
        case ast.BinOp(left=left, op=op, right=right):
            return f"{_FUNCTIONS[type(op)]}({_number(left, size_of)}, {_number(right, size_of)})"
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=arguments):
            return f"{name}({', '.join(_number(one, size_of) for one in arguments)})"
        case ast.Subscript(
            value=ast.Call(func=ast.Attribute(value=source, attr="size"), args=[]),
            slice=ast.Constant(value=int() as dim),
        ):
            return size_of(ast.unparse(source), dim)
    raise KeyError(tree)
