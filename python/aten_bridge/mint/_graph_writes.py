"""What is written to a tensor in a graph is not lost: it is right, or an error of the compilation.

The functions that are compiled are rewritten (_graph_statements.py), and the compiled graph is then
asked for writes to copies whose originals are used elsewhere; there the compilation fails.
"""

from __future__ import annotations

import ast
import functools
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import mindspore
from mindspore import Tensor
from mindspore._c_expression import dump_func_graph
from mindspore.graph import api
from mindspore.graph._parse import parser, resources

import aten_bridge
from aten_bridge.mint import _graph_indexing
from aten_bridge.mint._graph_dump import read_graphs
from aten_bridge.mint._graph_lists import ListRewriter, lists_whose_elements_are_written
from aten_bridge.mint._graph_statements import (
    FUNCTIONS,
    PREFIX,
    MethodRewriter,
    Rewriter,
    builtin_abs,
    method_of,
    writes,
)

# ===--- errors ---===

# Where functions write that are compiled: file, line, text, and the method. Those of this
# compilation last; MindSpore reads a function once.
_sites: dict[tuple[str, int], tuple[str, str]] = {}
_read_now: set[tuple[str, int]] = set()
_in_closures: set[tuple[str, int]] = set()  # sites in functions that read names of an outer one
_with_closures = weakref.WeakSet()  # what was compiled and has such sites


def _sites_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines of a function that write, and the methods."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = method_of(node) or getattr(node.func, "id", "")
            is_in_place = any(keyword.arg == "inplace" for keyword in node.keywords)
            if writes(name) or is_in_place or name.startswith("assign"):
                yield node.lineno, name
        elif isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Subscript):
            yield node.lineno, type(node.op).__name__.lower().replace("mult", "mul")
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Subscript) for target in targets):
                yield node.lineno, "copy"


def _names(tree: ast.AST, kind: type) -> set[str]:
    return {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and type(one.ctx) is kind}


def _own_names(function: ast.AST) -> set[str]:
    """What a function's parameters and assignments name."""
    parameters = {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}
    return parameters | _names(function, ast.Store)


def _closures_that_write(tree: ast.AST, sites: list[tuple[int, str]]) -> Iterator[int]:
    """The lines of the sites in functions that read names of the function around them."""
    inner = [one for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.Lambda))]
    for outer in inner:
        for one in inner:
            if (
                one is not outer
                and outer.lineno <= one.lineno <= one.end_lineno <= outer.end_lineno
            ):
                around = _own_names(outer) - _own_names(one)
                if around & _names(one, ast.Load):
                    yield from (n for n, _ in sites if one.lineno <= n <= one.end_lineno)


def _note(function: parser.Parser, tree: ast.AST) -> None:
    for line, method in tree.aten_bridge_sites:
        place = function.filename, function.line_offset + line - 1
        _sites[place] = function.lines[line - 1].strip(), method.replace("_", "")
        _read_now.add(place)
        if line in tree.aten_bridge_closures:
            _in_closures.add(place)


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
    if copied == "itself":
        raise RuntimeError(
            f"{_places(operator.removeprefix('Inplace').lower())}: expected a tensor that a graph "
            "can write, got one of which MindSpore's compiler makes another one, which is used too "
            "(of `x + 0`, `x * 1` and `mint.tile(x, (1, 1))` it makes x itself): what is written "
            "to it would be in both; write to `x.clone()`"
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


class _GradientsLostError(RuntimeError):
    """The graph is to be compiled with copies; if that fails too, this is why."""


def _check_gradients(graphs: dict, text: str, has_closures: bool) -> None:
    """For a function that writes to views MindSpore makes what it reads of others further inputs.

    It then takes their gradients for those of the inputs, and has 0 for those of Parameters.
    """
    parameters = set(re.findall(r"^(%para\w+).*: .*is_parameter", text, re.MULTILINE))
    reads_parameters = any(part.reads_any(parameters) for part in graphs.values())
    if not reads_parameters and not has_closures:
        return
    for part in graphs.values():
        for operator in part.writes_beside_views():
            reads = "Parameters" if reads_parameters else "tensors of the function around it"
            cure = "" if reads_parameters else "pass them as inputs, "
            raise _GradientsLostError(
                f"{_places(operator.removeprefix('Inplace').lower())}: expected a tensor without "
                f"views, got a view, or a tensor that has one, in a function that reads {reads} "
                f"and that a graph differentiates, of which MindSpore has wrong gradients; {cure}"
                "write parts by `x[1:] = x[1:] + 1`, use `x.clone()` for another tensor, or take "
                "the gradients in PyNative mode, of the graph (`ms.jit`)"
            )


_writes_inputs: dict[str, bool] = {}  # by the phase of a graph that was looked at


def _may_write(phase: str) -> bool | None:
    """Whether a graph writes its inputs; None where nobody has looked at it."""
    return _writes_inputs.get(phase)


def check(graph: object, phase: str, has_closures: bool) -> None:
    """Raises RuntimeError if what a compiled graph writes, or a gradient, would be lost."""
    if graph is None or not _sites:
        return
    text = dump_func_graph(graph)
    graphs = read_graphs(text)
    _check_gradients(graphs, text, has_closures)
    inputs = set(re.findall(r"^(%para\w+): (?!.*is_parameter)", text, re.MULTILINE))
    _writes_inputs[phase] = any(part.writes_any(inputs) for part in graphs.values())
    for part in graphs.values():
        if "PyExecute" in part.operators.values():
            for method in part.names:
                if writes(method) and hasattr(Tensor, method):
                    _refuse_python(method)
        for operator, copied in part.lost_writes(graphs, inputs):
            _refuse_copy(operator, copied)


# ===--- MindSpore's compiler ---===


_compiling = threading.RLock()  # what is noted of a graph, and whether it has copies, is of one


_LIBRARIES = tuple(f"{Path(package.__file__).parent}/" for package in (mindspore, aten_bridge))


def _is_library(file: str) -> bool:
    return file.startswith(_LIBRARIES)


def _rewriting(original: Callable) -> Callable:
    @functools.wraps(original)
    def parse(self):
        tokens, tree = original(self)
        # In functions of any file: MindSpore keeps one tree for all that have the same text.
        names = self.global_namespace.dicts[0]
        for name, function in FUNCTIONS.items():
            names[PREFIX + name] = function
        if tree is None or _is_library(self.filename):
            return tokens, tree
        if not hasattr(tree, "aten_bridge_sites"):
            tree.aten_bridge_sites = list(_sites_of(tree))
            tree.aten_bridge_closures = {*_closures_that_write(tree, tree.aten_bridge_sites)}
            MethodRewriter().visit(tree)
            if tree.aten_bridge_sites:
                ListRewriter(lists_whose_elements_are_written(tree)).visit(tree)
                Rewriter().visit(tree)
        _note(self, tree)
        return tokens, tree

    return parse


def breaks_off(error: RuntimeError) -> bool:
    """Whether MindSpore's compiler says that it went wrong itself, not the program (2.10)."""
    return "Framework Unexpected Exception" in str(error)


def _checking(original: Callable) -> Callable:
    def compile_checked(self, *arguments, **keywords):
        count = len(api.ms_compile_cache)
        result = original(self, *arguments, **keywords)
        is_one_more = len(api.ms_compile_cache) > count
        phase, is_new = result if isinstance(result, tuple) else (result, is_one_more)
        if is_new:
            try:
                compiled = getattr(self, "fn", arguments[0])
                if not _in_closures.isdisjoint(_read_now):
                    _with_closures.add(compiled)
                graph = self._graph_executor.get_func_graph(phase)
                check(graph, phase, compiled in _with_closures)
            except Exception:
                cells = [x.compile_cache for x in arguments[:1] if hasattr(x, "compile_cache")]
                for cache in (api.ms_compile_cache, *cells):
                    cache.discard(phase)
                raise
        self.aten_bridge_writes = _may_write(phase)
        return result

    @functools.wraps(original)
    def compile(self, *arguments, **keywords):
        with _compiling:
            _read_now.clear()
            try:
                return compile_checked(self, *arguments, **keywords)
            except _GradientsLostError as error:
                mistake = RuntimeError(str(error))
            except RuntimeError as error:  # MindSpore's own, where it makes Parameters inputs
                mistake = error
                if not breaks_off(error) or not _sites:
                    raise
            try:
                with _graph_indexing.copying():
                    return compile_checked(self, *arguments, **keywords)
            except Exception:
                raise mistake from None

    return compile


def _tensors(values: Iterable[object]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif type(value) in (tuple, list):
            yield from _tensors(value)


def _is_view(tensor: Tensor) -> bool:
    return tensor.storage_offset() != 0 or not tensor.is_contiguous()


class _Inputs:
    """The inputs of a call, with copies of views, whose strides MindSpore (2.10) forgets.

    It does so in loops, in branches of the graph's gradient, where `max` has one by itself, and in
    results that are what has been written. `writes` is as _may_write() says; where it is None, a
    function may write by a name that its source does not show.
    """

    def __init__(self, values: Sequence[object], writes: bool | None):
        self.values = values
        self._written = []  # views, and the copies that the graph gets
        tensors = list(_tensors(values))
        if not any(map(_is_view, tensors)):
            return
        writes_back = writes is not False
        if writes_back:
            storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
            if len(storages) < len(tensors) or any(0 in tensor.stride() for tensor in tensors):
                if writes:  # what is written to one is seen in another, or to one element in others
                    return
                writes_back = False
        self.values = type(values)([self._whole(value, writes_back) for value in values])

    def _whole(self, value: object, writes_back: bool) -> object:
        if type(value) in (tuple, list):
            return type(value)([self._whole(element, writes_back) for element in value])
        if not isinstance(value, Tensor) or not _is_view(value):
            return value
        copy = value.clone()
        if writes_back:
            self._written.append((value, copy))
        return copy

    def write_back(self) -> None:
        if self._written:
            with api._no_grad():
                for view, copy in self._written:
                    view.copy_(copy)


def _of_function(generate: Callable, call: Callable) -> tuple[Callable, Callable]:
    @functools.wraps(generate)
    def generate_run_args(self, *arguments, **keywords):
        self.aten_bridge_inputs = _Inputs(
            generate(self, *arguments, **keywords), self.aten_bridge_writes
        )
        return self.aten_bridge_inputs.values

    @functools.wraps(call)
    def run(self, *arguments, **keywords):
        result = call(self, *arguments, **keywords)
        if hasattr(self, "aten_bridge_inputs"):
            self.aten_bridge_inputs.write_back()
        return result

    return generate_run_args, run


def _of_cell(original: Callable) -> Callable:
    @functools.wraps(original)
    def execute(self, cell, *inputs, phase=""):
        whole = _Inputs(inputs, _may_write(phase))
        result = original(self, cell, *whole.values, phase=phase)
        whole.write_back()
        return result

    return execute


def install() -> None:
    if hasattr(parser.Parser.parse, "__wrapped__"):
        return
    parser.Parser.parse = _rewriting(parser.Parser.parse)
    resources.convert_object_map[abs] = builtin_abs
    for executor in (api._JitExecutor, api._CellGraphExecutor):
        executor.compile = _checking(executor.compile)
    executor = api._JitExecutor
    executor.aten_bridge_writes = None  # it may run what another one has compiled
    executor._generate_run_args, executor.__call__ = _of_function(
        executor._generate_run_args, executor.__call__
    )
    api._CellGraphExecutor._exec_pip = _of_cell(api._CellGraphExecutor._exec_pip)
