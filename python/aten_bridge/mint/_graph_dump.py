"""What a compiled graph writes, read from the text that MindSpore 2.10 prints of it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

_OF_OTHER_SIZES = ("Reshape", "ViewAs", "FlattenExt", "Contiguous")
_COPIES = (
    *_OF_OTHER_SIZES,
    *("BroadcastTo", "Chunk", "Diagonal", "ExpandAs", "ExpandDims", "Imag", "Narrow", "Real"),
    *("Slice", "Split", "SplitTensor", "SplitWithSize", "Squeeze", "StridedSlice", "TExt"),
    *("TensorMove", "Transpose", "Unstack"),  # the first, where MindSpore reads what is written
)
_CONSTANTS = ("Arange", "Eye", "LinSpaceExt", "Ones", "Range", "Zeros")  # where all is known
_PARTS = ("NarrowView", "SelectExtView", "SliceExtView")
_HAND_ON = ("Depend", "Load", "MakeTuple", "Partial", "Switch")
_HEADER = re.compile(r"subgraph @([^(]+)\((.*)\) \{")
# Over several lines, behind which a node has more inputs.
_ELEMENTS = re.compile(
    r"(Tensor\(shape=\[[^\]]*\], dtype=\w+, value=)\s*\[.*?\]\)(?=[,)])", re.DOTALL
)
_NODE = re.compile(r"^ +(%\w+)\([^)]*\) = (?:PrimFunc_)?(\w+|call @[^(]+|%\w+\[.*?\])\((.*)$")


class _Graph:
    """One of the graphs that MindSpore prints, its nodes by their names."""

    def __init__(self, header: str, lines: Iterator[str]):
        self.name, parameters = _HEADER.match(header).groups()
        self.parameters = re.findall(r"%\w+", parameters)
        self.operators, self.inputs = {}, {}
        self.numbers = {}  # the first of each node, which is a view's dimension
        self.names = []  # the names of methods that are left to Python
        self.calls = {}  # calls of other graphs, by node
        self.results = {}  # the graphs that a node may be the result of
        self.loops = set()  # the nodes that write in one
        self.writes = {}  # the operator that writes and what it writes, by the nodes
        self.differentiated = set()  # the nodes of which the graph takes gradients
        for line in lines:
            if line == "}":
                break
            node = _NODE.match(line) or re.match(r"^ +(Return)(\()(.*)$", line)
            if node:
                self._add(*node.groups())

    def _add(self, name: str, operator: str, rest: str) -> None:
        if "cnode_primal_attrs: {unique_id:" in rest:
            self.differentiated.add(name)
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
            target, *sources = _arguments(rest)
            if sources[:1] != [target]:  # a copy to itself writes nothing (_graph_lists.py)
                self.writes[name] = operator, target

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

    def reads_any(self, parameters: set[str]) -> bool:
        """Whether the part of the graph that is differentiated reads any of the Parameters."""
        return any(not parameters.isdisjoint(self.inputs[name]) for name in self.differentiated)

    def writes_any(self, inputs: set[str]) -> bool:
        """Whether it writes any of the inputs of the outermost graph."""
        return any(self.memory_of(target, True) in inputs for _, target in self.writes.values())

    def writes_beside_views(self) -> Iterator[str]:
        """The operators that write what has views, in the part that is differentiated."""
        seen = {
            self.memory_of(name, False)
            for name in self.differentiated
            if self.operators[name].endswith("View")
        }
        for name, (operator, target) in self.writes.items():
            if name in self.differentiated and self.memory_of(target, False) in seen:
                yield operator

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
            if self._is_read_at_any_time(name, original, uses, sources):
                yield operator, "itself"
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

    def _is_read_at_any_time(self, write: str, original: str, uses: list, before: set) -> bool:
        """Whether what is written is read where MindSpore has not seen that it is.

        It orders reads before and behind the write by loads, and operators with side effects by
        what they wait for. A node without either, which the write does not wait for, reads what
        was another tensor, or a copy, when it put the loads.
        """
        return any(
            value == original
            and not any(self.operators.get(n) == "UpdateState" for n in self.inputs[using])
            and using not in before
            and using not in (write, *self.calls)
            and (using not in self.writes or i > 0)
            and self.operators.get(using) not in _HAND_ON
            for using, i, value in uses
        )

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


def read_graphs(text: str) -> dict[str, _Graph]:
    """All, with calls of those that write their parameters among what writes."""
    lines = iter(_ELEMENTS.sub(r"\1)", text).splitlines())
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
