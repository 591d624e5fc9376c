"""Tensors in lists: what a graph writes to an element of a list is written to the tensor.

MindSpore 2.10's compiler takes the element of a list for another tensor, and has wrong gradients,
unless an operator has written the tensor before. Where a function writes to elements, each tensor
is written with itself when it comes into the list: PyTorch's copy of a tensor to itself does
nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from aten_bridge.mint._graph_statements import PREFIX, like, writes

_ADDS = ("append", "insert")


def _root(node: ast.AST) -> tuple[str, int]:
    """The name that an expression is a part or a view of, and through how many `[]`."""
    depth = 0
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript):
            depth, node = depth + 1, node.value
        elif isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Call) and node.args:  # zip, enumerate, reversed
            node = node.args[0]
        else:
            return "", 0
    return node.id, depth


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Tuple, ast.List)):
        for element in node.elts:
            yield from _targets(element)
    elif isinstance(node, ast.Name):
        yield node.id


def _values(node: ast.AST) -> Iterator[ast.AST]:
    """All that the names of a loop may be: `zip` has several."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from node.args
    else:
        yield node


def _given(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield target, node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            for value in _values(node.iter):
                yield node.target, value


def _written(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if writes(node.func.attr):
                yield _root(node.func.value)
            elif any(keyword.arg == "inplace" for keyword in node.keywords) and node.args:
                yield _root(node.args[0])
        elif isinstance(node, ast.AugAssign):
            yield _root(node.target)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript):  # which of a list is another element
                    name, depth = _root(target)
                    yield name, depth - 1


def lists_whose_elements_are_written(tree: ast.AST) -> set[str]:
    """Names of lists that a function makes."""
    lists = {
        name
        for target, value in _given(tree)
        if isinstance(value, (ast.List, ast.ListComp))
        for name in _targets(target)
    }
    origins = {name: {name} for name in lists}
    is_new = bool(lists)
    while is_new:
        is_new = False
        for target, value in _given(tree):
            found = origins.get(_root(value)[0], set())
            for name in _targets(target):
                known = origins.setdefault(name, set())
                is_new |= not found <= known
                known |= found
    return {
        origin
        for name, depth in _written(tree)
        for origin in origins.get(name, ())
        if depth > 0 or name not in lists
    }


class ListRewriter(ast.NodeTransformer):
    """Has each element of the lists call `listed` of _graph_statements.py."""

    def __init__(self, names: set[str]):
        self.names = names

    def _of_element(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.List):
            node.elts = [self._of_element(element) for element in node.elts]
            return node
        if isinstance(node, (ast.Constant, ast.Starred)):
            return node
        function = like(ast.Name(f"{PREFIX}listed", ast.Load()), node)
        return like(ast.Call(function, [node], []), node)

    def visit_Assign(self, node):
        node = self.generic_visit(node)
        names = {name for target in node.targets for name in _targets(target)}
        if any(_root(target) in [(name, 1) for name in self.names] for target in node.targets):
            node.value = self._of_element(node.value)
        elif names & self.names and isinstance(node.value, ast.List):
            self._of_element(node.value)
        elif names & self.names and isinstance(node.value, ast.ListComp):
            node.value.elt = self._of_element(node.value.elt)
        return node

    def visit_Call(self, node):
        node = self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS and node.args:
            name, _ = _root(node.func.value)
            if name in self.names:
                node.args[-1] = self._of_element(node.args[-1])
        return node
