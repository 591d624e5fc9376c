"""Sizes and conditions on them, sympy's expressions in PyTorch, as a program writes them."""

from __future__ import annotations

from typing import Any

import sympy

from aten_bridge.program._trees import NotExportable

# Functions of symbols, by the names of sympy's and PyTorch's classes (PyTorch 2.9 to 2.15).
_FUNCTIONS = {
    "Add": "add",
    "Mul": "mul",
    "Max": "max",
    "Min": "min",
    "Pow": "pow",
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "Mod": "mod",
    "PythonMod": "mod",
    "PowByNatural": "pow",
    "FloatPow": "pow",
    "FloatTrueDiv": "truediv",
    "IntTrueDiv": "truediv",
    "ToFloat": "float",
    "FloorToInt": "floor",
    "CeilToInt": "ceil",
    "floor": "floor",
    "ceiling": "ceil",
    "OpaqueUnaryFn_sqrt": "sqrt",
}

RELATIONS = {
    "Equality": "==",
    "Unequality": "!=",
    "LessThan": "<=",
    "GreaterThan": ">=",
    "StrictLessThan": "<",
    "StrictGreaterThan": ">",
}


def number_text(expression: Any) -> str:
    """A size, or another number, as program_text.h writes it."""
    if isinstance(expression, sympy.Symbol):
        return expression.name
    if expression.is_Integer or isinstance(expression, int):
        return str(int(expression))
    if expression.is_Float:
        return repr(float(expression))
    if expression.is_Rational:
        return f"truediv({expression.p}, {expression.q})"
    name = _FUNCTIONS.get(type(expression).__name__)
    if name is None:
        raise NotExportable(
            "expected sizes that are sums, products, quotients, powers and bounds of others, got "
            f"{expression}"
        )
    return f"{name}({', '.join(map(number_text, expression.args))})"


def truth_text(condition: Any) -> str:
    """A condition on sizes as a number, which is 0 where it does not hold."""
    name = type(condition).__name__
    if name in ("And", "Or"):
        parts = ", ".join(map(truth_text, condition.args))
        return f"{'min' if name == 'And' else 'max'}({parts})"
    relation = RELATIONS.get(name)
    if relation is None or not all(one.is_integer for one in condition.args):
        raise NotExportable(
            f"expected conditions on sizes that compare whole numbers, got {condition}"
        )
    left, right = map(number_text, condition.args)
    more, less = f"add({left}, mul(-1, {right}))", f"add({right}, mul(-1, {left}))"
    return {
        ">": f"max({more}, 0)",
        "<": f"max({less}, 0)",
        ">=": f"max(add({more}, 1), 0)",
        "<=": f"max(add({less}, 1), 0)",
        "!=": f"max({more}, {less})",
        "==": f"max(add(1, mul(-1, max({more}, {less}))), 0)",
    }[relation]
