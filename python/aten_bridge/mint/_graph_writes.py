"""What is written to a tensor in a graph is not lost: it is right, or an error of the compilation.

MindSpore 2.10's compiler has no view in other sizes and copies instead, and some methods it leaves
to Python, which writes a copy. Where a function that is compiled writes so in one statement
(`x.view(6, 4).add_(1)`), the statement is taken apart here so that the result is copied back; where
it calls a method that is left to Python, or one of MindSpore's older methods by its keywords, a
function takes its place. After that the compiled graph is asked for writes to copies whose
originals are used elsewhere; there the compilation fails.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import mindspore
from mindspore import Tensor, mint
from mindspore._c_expression import dump_func_graph
from mindspore.graph import api
from mindspore.graph._parse import parser
from mindspore.ops import functional as F
from mindspore.ops.auto_generate import inplace_copy_op, inplace_floor_op
from mindspore.ops.composite.base import core

import aten_bridge
from aten_bridge.mint import _in_place, _methods
from aten_bridge.mint._replace import is_known

PREFIX = "_aten_bridge_"

# ===--- what takes the place of statements in the functions that are compiled ---===


@core
def floor_(x):
    return inplace_floor_op(x) if _is_tensor(x) else x.floor_()


@core
def addmm_(x, *arguments, **keywords):
    if _is_tensor(x):
        return _in_place.addmm_by_copy(x, *arguments, **keywords)
    return x.addmm_(*arguments, **keywords)


@core
def copy_(x, src, *arguments, **keywords):
    if _is_tensor(x) and _is_tensor(src) and src.dtype != x.dtype:
        return inplace_copy_op(x, src.astype(x.dtype))
    return x.copy_(src, *arguments, **keywords)


@core
def div_(x, other, *, rounding_mode=None):
    if rounding_mode is None or not _is_tensor(x):
        return x.div_(other)
    return _in_place.div_by_copy(x, other, rounding_mode=rounding_mode)


@core
def fill_diagonal_(x, fill_value, wrap=False):
    if wrap and _is_tensor(x):
        return _in_place.fill_diagonal_by_mask(x, fill_value, wrap)
    return x.fill_diagonal_(fill_value, wrap)


@core
def index_fill_(x, dim, index, value):
    if _is_tensor(x) and _is_tensor(value):
        return _in_place.index_fill_by_mask(x, dim, index, value)
    return x.index_fill_(dim, index, value)


@core
def index_put_(x, indices, values, accumulate=False):
    if _is_tensor(x) and _in_place.has_rows(x, indices, values):
        return _in_place.index_put_by_rows(x, indices, values, accumulate)
    return x.index_put_(indices, values, accumulate)


@core
def abs_(x):
    """Of complex numbers a graph's method is complex."""
    return mint.abs(x) if _is_tensor(x) else x.abs()


@core
def absolute(x):
    return mint.abs(x) if _is_tensor(x) else x.absolute()


@core
def _is_tensor(x):
    return is_known(x) and isinstance(x, Tensor)


@core
def write_back(tensor, view):
    """What has been written to a view in other sizes, of which a graph has a copy."""
    if _is_tensor(tensor):
        inplace_copy_op(tensor, F.reshape(view, tensor.shape))
    return tensor


@core
def fresh(x):
    """A new tensor in each run: MindSpore computes with its value when it compiles."""
    return mint.clone(x) if is_known(x) and isinstance(x, Tensor) else x


def _of_axis(name: str, older: Callable) -> Callable:
    @core
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
}
_VIEWS = ("view", "view_as")
_OLDER = {f"older_{name}": _of_axis(name, older) for name, older in _methods.OLDER.items()}
_FUNCTIONS = {
    **_METHODS,
    **_OLDER,
    **{"abs": abs_, "absolute": absolute, "fresh": fresh, "write_back": write_back},
}


def writes(name: str) -> bool:
    """Whether the method writes its tensor: add_, __iadd__; not __init__."""
    return bool(re.fullmatch(r"[a-z]\w*[a-z0-9]_|__i(add|sub|mul|truediv|floordiv|mod)__", name))


def _method(node: ast.AST) -> str:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return node.func.attr if is_call else ""


def _like(node: ast.AST, like: ast.AST) -> ast.AST:
    """The node with the position of the other, to which errors and MindSpore's tokens refer."""
    ast.copy_location(node, like)
    for name in ("first_token", "last_token"):  # parts of an f-string have none
        if hasattr(like, name):
            setattr(node, name, getattr(like, name))
    return node


class _Rewriter(ast.NodeTransformer):
    """Of functions that write: takes statements apart that write to views in other sizes."""

    count = 0

    def _view_in(self, node: ast.expr) -> ast.Call | None:
        """The view in other sizes that the expression is a part of."""
        while _method(node) not in _VIEWS:
            if _method(node):
                node = node.func.value
            elif isinstance(node, (ast.Attribute, ast.Subscript)):
                node = node.value
            else:
                return None
        return node

    def _apart(self, statement: ast.stmt, place: ast.expr) -> ast.stmt | list[ast.stmt]:
        """The statement, which writes to the place, between those that name and copy its view."""
        view = self._view_in(place)
        if view is None or self._view_in(view.func.value) is not None:
            return statement
        self.count += 1
        tensor = view.func.value
        base, seen = f"{PREFIX}tensor_{self.count}", f"{PREFIX}view_{self.count}"

        def load(name: str) -> ast.expr:
            return _like(ast.Name(id=name, ctx=ast.Load()), view)

        def store(name: str, value: ast.expr) -> ast.stmt:
            target = _like(ast.Name(id=name, ctx=ast.Store()), view)
            return _like(ast.Assign([target], value), statement)

        statements = [store(base, tensor)]
        method = _like(ast.Attribute(load(base), view.func.attr, ast.Load()), view.func)
        call = _like(ast.Call(method, view.args, view.keywords), view)
        statements += [store(seen, call), _Replacer(view, load(seen)).visit(statement)]
        back = ast.Call(load(f"{PREFIX}write_back"), [load(base), load(seen)], [])
        statements.append(_like(ast.Expr(_like(back, view)), statement))
        return statements

    def visit_Expr(self, node):
        if writes(_method(node.value)):
            node.value = self.visit(node.value)
            is_own = isinstance(node.value.func, ast.Name)
            return self._apart(node, node.value.args[0] if is_own else node.value.func.value)
        return self.generic_visit(node)

    def visit_Assign(self, node):
        node = self.generic_visit(node)
        is_part = len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript)
        return self._apart(node, node.targets[0].value) if is_part else node

    def visit_AugAssign(self, node):
        node = self.generic_visit(node)
        is_part = isinstance(node.target, ast.Subscript)
        return self._apart(node, node.target.value) if is_part else node

    def visit_Call(self, node):
        node = self.generic_visit(node)
        if (_method(node) or getattr(node.func, "id", "")) in _MAKE_TENSORS:
            return _like(
                ast.Call(_like(ast.Name(f"{PREFIX}fresh", ast.Load()), node), [node], []), node
            )
        if _method(node) in _METHODS:
            function = _like(ast.Name(PREFIX + node.func.attr, ast.Load()), node.func)
            node.args = [node.func.value, *node.args]
            node.func = function
        return node


class _MethodRewriter(ast.NodeTransformer):
    """Of all functions: methods that graphs have wrong, or take for others of their names."""

    def visit_Call(self, node):
        node = self.generic_visit(node)
        name, function = _method(node), ""
        if name in ("abs", "absolute") and not node.args and not node.keywords:
            function = name
        elif _methods.is_older(name, [keyword.arg for keyword in node.keywords]):
            function = f"older_{name}"
        if function:
            node.args = [node.func.value, *node.args]
            node.func = _like(ast.Name(PREFIX + function, ast.Load()), node.func)
        return node


class _Replacer(ast.NodeTransformer):
    def __init__(self, one: ast.AST, other: ast.AST):
        self.one, self.other = one, other

    def visit(self, node):
        return self.other if node is self.one else self.generic_visit(node)


# ===--- what the compiled graph writes ---===

_OF_OTHER_SIZES = ("Reshape", "ViewAs", "FlattenExt", "Contiguous")
_COPIES = (
    *_OF_OTHER_SIZES,
    *("BroadcastTo", "Chunk", "Diagonal", "ExpandAs", "ExpandDims", "Imag", "Narrow", "Real"),
    *("Slice", "Split", "SplitTensor", "SplitWithSize", "Squeeze", "StridedSlice", "TExt"),
    *("TensorMove", "Transpose", "Unstack"),  # the first, where MindSpore reads what is written
)
_CONSTANTS = ("Arange", "Eye", "LinSpaceExt", "Ones", "Range", "Zeros")  # where all is known
_PARTS = ("NarrowView", "SelectExtView", "SliceExtView")
_HEADER = re.compile(r"subgraph @([^(]+)\((.*)\) \{")
_NODE = re.compile(r"^ +(%\w+)\([^)]*\) = (?:PrimFunc_)?(\w+|call @[^(]+|%\w+\[.*?\])\((.*)$")


class _Graph:
    """One of the graphs that MindSpore prints, its nodes by their names."""

    def __init__(self, header: str, lines: Iterator[str]):
        self.name, parameters = _HEADER.match(header).groups()
        self.parameters = re.findall(r"%\w+", parameters)
        self.operators, self.inputs = {}, {}
        self.numbers = {}  # the first of each node, which is a view's dimension
        self.names = []  # of methods that are left to Python
        self.calls = {}  # of other graphs, by the nodes
        self.results = {}  # the graphs that a node may be the result of
        self.loops = set()  # the nodes that write in one
        self.writes = {}  # the operator that writes and what it writes, by the nodes
        for line in lines:
            if line == "}":
                break
            node = _NODE.match(line) or re.match(r"^ +(Return)(\()(.*)$", line)
            if node:
                self._add(*node.groups())

    def _add(self, name: str, operator: str, rest: str) -> None:
        rest = _until_closed(rest)
        called = re.match(r"call @(.*)", operator) or re.match(r"@([^,]+)", rest)
        self.operators[name] = "call" if called else operator
        self.inputs[name] = re.findall(r"%\w+", rest)
        number = re.search(r"I64\((-?\d+)\)", rest)
        self.numbers[name] = number and number[1]
        if "@" in operator:
            self.results[name] = re.findall(r"@([^,()\s\]]+)", operator)
        if operator == "MakeTuple":
            self.names += re.findall(r'"(\w+)"', rest)
        elif called:
            self.calls[name] = called[1], _arguments(rest)[operator == "Partial" :]
        elif operator.startswith(("Inplace", "Assign")):
            self.writes[name] = operator, _arguments(rest)[0]

    # Where the memory of a value comes from.

    def _is_view(self, name: str) -> bool:
        operator = self.operators.get(name, "")
        passes = operator in ("Depend", "Load", "TupleGetItem") or operator.endswith("View")
        return passes or operator.startswith("Inplace")

    def _is_alias(self, name: str) -> bool:
        return self._is_view(name) or self.operators.get(name) in _COPIES

    def memory_of(self, name: str, is_pytorch: bool) -> str:
        """The node whose memory it is: of a graph, or as PyTorch has it."""
        while self.inputs.get(name) and (
            self._is_alias(name) if is_pytorch else self._is_view(name)
        ):
            name = self.inputs[name][0]
        return name

    def _comes_of(self, name: str, copied: str) -> bool:
        while name != copied and self.inputs.get(name) and self._is_alias(name):
            name = self.inputs[name][0]
        return name == copied

    def _is_copied_by_pytorch(self, copied: str) -> bool:
        """Whether other sizes, or contiguity, are asked of what has its elements elsewhere."""
        if self.operators[copied] not in _OF_OTHER_SIZES:
            return False
        name = self.inputs[copied][0]
        while self.inputs.get(name) and self._is_alias(name):
            operator, dim = self.operators[name], self.numbers[name]
            if operator.startswith(("Transpose", "Diagonal", "BroadcastTo")):
                return True
            if operator in _PARTS and self.operators[copied] == "Contiguous" and dim != "0":
                return True
            name = self.inputs[name][0]
        return False

    def _sources(self, name: str) -> set[str]:
        """All nodes that the node waits for."""
        found, left = set(), [name]
        while left:
            inputs = self.inputs.get(left.pop(), [])
            left += [value for value in inputs if value not in found]
            found.update(inputs)
        return found

    @functools.cached_property
    def _uses(self) -> dict[str, list[tuple[str, int, str]]]:
        """The nodes that compute with a memory, or hand it on, and with which input.

        Asked for when all writes are known, those of called graphs too.
        """
        uses = {}
        for name, operator in self.operators.items():
            for i, value in enumerate(self.inputs[name]):
                is_alias = i == 0 and self._is_alias(name) and name not in self.writes
                if not is_alias and operator != "UpdateState":
                    uses.setdefault(self.memory_of(value, True), []).append((name, i, value))
        return uses

    # What would be lost.

    def returned_copy(self) -> str | None:
        """The operator that makes the result, where PyTorch would have a view of a parameter."""
        for value in self.inputs.get("Return", [])[:1]:
            kind = self.operators.get(self.memory_of(value, False))
            if kind in _COPIES and self.memory_of(value, True).startswith("%para"):
                return kind
        return None

    def lost_writes(self, graphs: dict[str, _Graph], inputs: set[str]) -> Iterator[tuple[str, str]]:
        """The operators that write, and those of the copies that show it, or do not.

        `inputs` are those of the outermost graph, but for Parameters.
        """
        for name, (operator, target) in self.writes.items():
            written = self.memory_of(target, False)
            original = self.memory_of(target, True)
            kind = self.operators.get(original, "")
            is_constant = kind in _CONSTANTS and all(
                using in self.writes for using, _, _ in self._uses.get(original, [])
            )
            if (
                not target.startswith("%")
                or is_constant
                or (kind.endswith("View") and not self.inputs[original])
            ):
                yield operator, "constant"
                continue
            if name in self.loops and not self.parameters and written in inputs:
                yield operator, "loop"
            for called in self.results.get(written, []):
                kind = graphs[called].returned_copy() if called in graphs else None
                if kind not in (None, "TensorMove"):
                    yield operator, kind
            uses = self._uses.get(original, [])
            if self.operators.get(written) in _COPIES:
                if self._is_used_beside(written, original, uses):
                    yield operator, self.operators[written]
                continue
            sources = self._sources(name)
            for copied, kind in self.operators.items():
                if kind not in _COPIES or kind == "TensorMove":
                    continue
                if self.memory_of(copied, True) != original or name in self._sources(copied):
                    continue
                is_old = any(
                    self._comes_of(value, copied)
                    and using not in sources
                    and (using != name or name in self.calls)
                    and (using not in self.writes or i > 0)
                    for using, i, value in uses
                )
                if is_old and not self._is_copied_by_pytorch(copied):
                    yield operator, kind

    def _is_used_beside(self, copied: str, original: str, uses: list) -> bool:
        if self._is_copied_by_pytorch(copied):
            return False
        is_used = original.startswith("%para")  # by who calls the graph
        for name, i, value in uses:
            if not self._comes_of(value, copied):
                is_used = True
                is_copy = self.operators[name] == "InplaceCopy" and i == 0
                if is_copy and self._comes_of(self.inputs[name][1], copied):
                    return False  # copied back
        return is_used


def _until_closed(text: str) -> str:
    depth = 1
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[:i]
    return text


def _arguments(text: str) -> list[str]:
    """Those between commas that are in no parentheses."""
    arguments, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += character
    return [argument.strip() for argument in arguments]


def _called_by(name: str, graphs: dict[str, _Graph]) -> set[str]:
    """All that the graph calls, itself too if it is a loop."""
    found, left = set(), [name]
    while left:
        graph = graphs.get(left.pop())
        new = {called for called, _ in graph.calls.values()} - found if graph else set()
        found |= new
        left += new
    return found


def _graphs(text: str) -> dict[str, _Graph]:
    """All, with calls of those that write their parameters among what writes."""
    lines = iter(text.splitlines())
    graphs = [_Graph(line, lines) for line in lines if _HEADER.match(line)]
    by_name = {graph.name: graph for graph in graphs}
    has_more = True
    while has_more:
        has_more = False
        for graph in graphs:
            for node, (called, arguments) in graph.calls.items():
                other = by_name.get(called)
                if other is None or node in graph.writes:
                    continue
                written = {other.memory_of(other.writes[n][1], False): n for n in other.writes}
                for parameter, argument in zip(other.parameters, arguments, strict=False):
                    if parameter in written and argument.startswith("%"):
                        by = written[parameter]
                        graph.writes[node] = other.writes[by][0], argument
                        if by in other.loops or called in _called_by(called, by_name):
                            graph.loops.add(node)
                        has_more = True
    return by_name


# ===--- errors ---===

# Where functions write that are compiled: file, line, text, and the method. Those of this
# compilation last; MindSpore reads a function once.
_sites: dict[tuple[str, int], tuple[str, str]] = {}
_read_now: set[tuple[str, int]] = set()


def _sites_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines of a function that write, and the methods."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _method(node) or getattr(node.func, "id", "")
            is_in_place = any(keyword.arg == "inplace" for keyword in node.keywords)
            if writes(name) or is_in_place or name.startswith("assign"):
                yield node.lineno, name
        elif isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Subscript):
            yield node.lineno, type(node.op).__name__.lower().replace("mult", "mul")
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Subscript) for target in targets):
                yield node.lineno, "copy"


def _note(function: parser.Parser, sites: list[tuple[int, str]]) -> None:
    for line, method in sites:
        place = function.filename, function.line_offset + line - 1
        _sites[place] = function.lines[line - 1].strip(), method.replace("_", "")
        _read_now.add(place)


def _places(method: str) -> str:
    """Where the method may have been called."""
    for lines in (_read_now, _sites):
        found = {line: _sites[line] for line in lines}
        named = {line: site for line, site in found.items() if method.startswith(site[1])}
        if named or found:
            return " or ".join(
                f"{file}:{line}: `{text}`" for (file, line), (text, _) in (named or found).items()
            )
    return "a function that is compiled"


def _refuse_copy(operator: str, copied: str) -> None:
    if copied == "constant":
        raise RuntimeError(
            f"{_places(operator.removeprefix('Inplace').lower())}: expected a tensor that a graph "
            "can write, got a constant, with whose value it has been compiled: what is written to "
            "it would be lost; make it a Parameter or an input, or write to `x.clone()`"
        )
    if copied == "loop":
        raise RuntimeError(
            f"{_places(operator.removeprefix('Inplace').lower())}: expected a tensor that a loop "
            "of a graph can write, got an input of the graph, of which loops have a copy: what is "
            "written to it would be lost to the caller; write to `x.clone()` and return that"
        )
    raise RuntimeError(
        f"{_places(operator.removeprefix('Inplace').lower())}: expected a tensor that a graph can "
        f"write, got a copy, which a graph has instead of a view ({copied}): what is written to it "
        "would be lost; write to the tensor itself (`x = x.sub(y)` for `x.view(-1).sub_(y)`, "
        "`x[1:] = x[1:] + 1` for a part), or to `x.clone()` if it shall stay as it is"
    )


def _refuse_python(method: str) -> None:
    raise RuntimeError(
        f"{_places(method.replace('_', ''))}: expected a method that graphs have, got {method}(), "
        "which MindSpore leaves to Python: what it writes would be lost; call it outside of the "
        "graph, or assign the result of a method that does not write (`x = x.floor()`)"
    )


def check(graph: object) -> None:
    """Raises RuntimeError if what a compiled graph writes would be lost."""
    if graph is None or not _sites:
        return
    text = dump_func_graph(graph)
    graphs = _graphs(text)
    inputs = set(re.findall(r"^(%para\w+): (?!.*is_parameter)", text, re.MULTILINE))
    for part in graphs.values():
        if "PyExecute" in part.operators.values():
            for method in part.names:
                if writes(method) and hasattr(Tensor, method):
                    _refuse_python(method)
        for operator, copied in part.lost_writes(graphs, inputs):
            _refuse_copy(operator, copied)


# ===--- MindSpore's compiler ---===


_LIBRARIES = tuple(f"{Path(package.__file__).parent}/" for package in (mindspore, aten_bridge))


def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARIES)


def _rewriting(original: Callable) -> Callable:
    @functools.wraps(original)
    def parse(self):
        tokens, tree = original(self)
        # In functions of any file: MindSpore keeps one tree for all that have the same text.
        names = self.global_namespace.dicts[0]
        for name, function in _FUNCTIONS.items():
            names[PREFIX + name] = function
        if tree is None or _is_library(self.filename):
            return tokens, tree
        if not hasattr(tree, "aten_bridge_sites"):
            tree.aten_bridge_sites = list(_sites_of(tree))
            _MethodRewriter().visit(tree)
            if tree.aten_bridge_sites:
                _Rewriter().visit(tree)
        _note(self, tree.aten_bridge_sites)
        return tokens, tree

    return parse


def _checking(original: Callable) -> Callable:
    @functools.wraps(original)
    def compile(self, *arguments, **keywords):
        count = len(api.ms_compile_cache)
        _read_now.clear()
        result = original(self, *arguments, **keywords)
        is_one_more = len(api.ms_compile_cache) > count
        phase, is_new = result if isinstance(result, tuple) else (result, is_one_more)
        if is_new:
            try:
                check(self._graph_executor.get_func_graph(phase))
            except Exception:
                cells = [x.compile_cache for x in arguments[:1] if hasattr(x, "compile_cache")]
                for cache in (api.ms_compile_cache, *cells):
                    cache.discard(phase)
                raise
        return result

    return compile


def install() -> None:
    if hasattr(parser.Parser.parse, "__wrapped__"):
        return
    parser.Parser.parse = _rewriting(parser.Parser.parse)
    for executor in (api._JitExecutor, api._CellGraphExecutor):
        executor.compile = _checking(executor.compile)
