"""Writes a graph of PyTorch's as the text of a program (plugin/operators/program_text.h)."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from aten_bridge.program._branches import choose, conditions_of
from aten_bridge.program._guards import guard_text
from aten_bridge.program._numbers import RELATIONS, number_text, truth_text
from aten_bridge.program._private import is_operator, own_expression, schema_of
from aten_bridge.program._trees import NotExportable

_HEADER = "aten_bridge program 1"

_RANGES = (
    torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
)

_WORDS = {
    torch.strided: "strided",
    torch.contiguous_format: "contiguous_format",
    torch.preserve_format: "preserve_format",
    torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d",
}


def bare_symbols(value: torch.Tensor) -> set[str]:
    """Symbols that are a whole size of a tensor."""
    return {
        size.node.expr.name
        for size in value.shape
        if not isinstance(size, int) and size.node.expr.is_Symbol
    }


def _values_of(node: fx.Node) -> Sequence[Any]:
    """The results of a call, or the elements of its list."""
    value = node.meta.get("val")
    return value if isinstance(value, (list, tuple)) else [value]


def tensors_of(node: fx.Node) -> list[torch.Tensor]:
    """Those that are tensors."""
    return [each for each in _values_of(node) if isinstance(each, torch.Tensor)]


def unbacked_symbols(values: Iterable[torch.Tensor]) -> set[str]:
    """Symbols of sizes that depend on values, not on sizes of inputs."""
    return {
        symbol.name
        for value in values
        for size in value.shape
        if not isinstance(size, int)
        for symbol in free_unbacked_symbols([size.node.expr, own_expression(size)])
    }


def computed_sizes(value: torch.Tensor) -> list[Any]:
    """Expressions of sizes that are computed from others that depend on values."""
    expressions = [size.node.expr for size in value.shape if not isinstance(size, int)]
    return [one for one in expressions if not one.is_Symbol and free_unbacked_symbols(one)]


def dtype_text(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.").replace("float8_", "float8")


class ProgramWriter:
    """Writes a program line by line."""

    def __init__(self, ranges: Mapping[Any, Any], names: dict[Any, str] | None = None):
        """`ranges` are those of symbols, as PyTorch has them.

        `names` are those of sizes of inputs that are computed from sizes that depend on values.
        """
        self._names = {} if names is None else names
        self._given: dict[Any, str] = {}  # those that an input has
        self._ranges = {one.name: bounds for one, bounds in ranges.items() if one.is_Symbol}
        self._guards: list[str] = []
        self._inputs: list[str] = []
        self._calls: list[str] = []
        self._outputs: list[str] = []
        self._symbols: set[str] = set()
        self._bare: set[str] = set()  # symbols that are a whole size of an input
        self._offsets: set[str] = set()  # symbols of where views begin

    # ===--- values ---===

    def _form(self, name: str, value: torch.Tensor) -> str:
        if value.layout != torch.strided:
            raise NotExportable(
                f"expected inputs and results that are dense, got {name!r} with the layout "
                f"{value.layout}; make it dense"
            )
        sizes = [self._size(size) for size in value.shape]
        return f"%{name} {dtype_text(value.dtype)} [{', '.join(sizes)}]"

    def _size(self, size: Any) -> str:
        self._symbols |= self._symbols_of(size)
        return self._size_text(size)

    def _symbols_of(self, size: Any) -> set[str]:
        if isinstance(size, int):
            return set()
        given = self._given.get(size.node.expr)
        return {given} if given else {symbol.name for symbol in size.node.expr.free_symbols}

    def _size_text(self, size: Any) -> str:
        if isinstance(size, int):
            return str(size)
        return self._given.get(size.node.expr) or number_text(size.node.expr)

    def add_input(self, name: str, value: torch.Tensor) -> None:
        self._bare |= bare_symbols(value)
        # No value says of what such a size is computed: it has a symbol of its own.
        for expression in computed_sizes(value):
            given = self._names.setdefault(expression, f"g{len(self._names)}")
            self._given[expression] = given
            self._bare.add(given)
        self._inputs.append("input " + self._form(name, value))

    def add_output(self, name: str, value: torch.Tensor) -> None:
        self._outputs.append("output " + self._form(name, value))

    def add_stored_input(self, name: str, value: torch.Tensor) -> None:
        """One that another program wrote with add_stored_output()."""
        order = memory_order(value)
        if order is None:
            self.add_input(name, value)
            return
        self.add_input(f"{name}_stored", value.permute(order))
        inverse = sorted(range(len(order)), key=order.__getitem__)
        self._calls.append(f"%{name} = aten::permute(%{name}_stored, {inverse})")

    def add_stored_output(self, name: str, value: torch.Tensor) -> None:
        """One that lies row-major in the host's memory, and keeps the order of its dimensions."""
        order = memory_order(value)
        if order is None:
            self.add_output(name, value)
            return
        self._calls.append(f"%{name}_stored = aten::permute(%{name}, {order})")
        self.add_output(f"{name}_stored", value.permute(order))

    def add_guard(self, guard: str, values: Mapping[str, torch.Tensor]) -> None:
        """A condition on sizes of values, which are by their sources in the guard."""
        line = guard_text(guard, lambda source, dim: self._size(values[source].shape[dim]))
        if line is not None and line not in self._guards:
            self._guards.append(line)

    def add_equal_sizes(self, first: torch.Tensor, second: torch.Tensor) -> None:
        """That two tensors have the same sizes, where both are known and depend on values."""
        for size, other in zip(first.shape, second.shape, strict=True):
            symbols = self._symbols_of(size) | self._symbols_of(other)
            texts = [self._size_text(one) for one in (size, other)]
            if texts[0] != texts[1] and symbols <= self._bare:
                self._guards.append(f"guard {texts[0]} == {texts[1]}")

    def check_symbols(self) -> None:
        """Raises NotExportable for symbols that are no size of an input or of a result so far."""
        if unbound := self._symbols - self._bare:
            raise NotExportable(
                "expected sizes that follow from those of the inputs or are those of results, got "
                f"{sorted(unbound)}, which are numbers that the module reads"
            )

    def _argument(self, value: Any) -> str:
        if isinstance(value, fx.Node):
            return self._argument(value.meta["val"]) if is_number(value) else f"%{value.name}"
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            return self._size(value)
        if isinstance(value, torch.SymBool):
            self._symbols |= {symbol.name for symbol in value.node.expr.free_symbols}
            return truth_text(value.node.expr)
        if value is None or isinstance(value, (bool, int, float)):
            return repr(value)
        if isinstance(value, complex):
            return f"complex({value.real!r}, {value.imag!r})"
        if isinstance(value, str):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            return f'"{escaped}"'
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self._argument, value))}]"
        if isinstance(value, torch.dtype):
            return dtype_text(value)
        if isinstance(value, torch.device):
            return value.type
        if value in _WORDS:
            return _WORDS[value]
        raise NotExportable(f"expected a tensor, a number, a text or a dtype, got {value!r}")

    # ===--- calls ---===

    def add_call(self, node: fx.Node) -> None:
        """An operator; what takes a result out of several is part of the call that gives them."""
        target = node.target
        offset = node.meta.get("val")
        if target is torch.ops.aten.sym_storage_offset.default and not isinstance(offset, int):
            self._offsets |= {symbol.name for symbol in offset.node.expr.free_symbols}
        if target is operator.getitem or is_number(node):
            return
        if target is torch.ops.aten._assert_scalar.default:
            self._add_assertion(node.args[0])
            return
        if target in _RANGES:
            return  # symbols have them
        if target is choose:
            self._add_line(
                node, f"%{node.name} = choose({', '.join(map(self._argument, node.args))})"
            )
            self._add_sizes(f"%{node.name}", node.meta["val"])
            return
        if not is_operator(target):
            raise NotExportable(
                "expected operators of PyTorch's dispatcher, and sizes that follow from those of "
                f"the inputs, got Python's {getattr(target, '__name__', target)}()"
                f"{line_of(node)}; make modules of the parts around it"
            )
        name = target.name().removesuffix(".default")
        arguments = [*map(self._argument, node.args)]
        arguments += [f"{key}={self._argument(value)}" for key, value in node.kwargs.items()]
        self.check_symbols()
        names = self._results(node)
        listed = ", ".join(names)
        is_several = isinstance(node.meta.get("val"), (list, tuple))
        is_list = is_several and names == [f"%{node.name}"]
        unpacks = is_several and not is_list and len(schema_of(target).returns) == 1
        self._add_line(
            node, f"{f'({listed})' if unpacks else listed} = {name}({', '.join(arguments)})"
        )
        if is_list:
            self._refuse_sizes(node)
            return
        for name, value in zip(names, _values_of(node), strict=True):
            if name != "_" and isinstance(value, torch.Tensor):
                self._add_sizes(name, value)

    def _add_line(self, node: fx.Node, line: str) -> None:
        """A call, behind the conditions on which it runs."""
        conditions = [
            f"{'when' if one.holds else 'unless'} %{one.value.name}, "
            for one in conditions_of(node)
        ]
        self._calls.append("".join([*conditions, line]))

    def _results(self, node: fx.Node) -> list[str]:
        value = node.meta.get("val")
        if not schema_of(node.target).returns:
            return ["_"]
        if not isinstance(value, (list, tuple)):
            return [f"%{node.name}"]
        names = ["_"] * len(value)
        for user in node.users:
            if user.target is not operator.getitem:
                return [f"%{node.name}"]  # the whole list
            names[user.args[1]] = f"%{user.name}"
        return names

    def _add_sizes(self, name: str, value: torch.Tensor) -> None:
        """Adds the sizes of a result that depend on values."""
        for dim, size in enumerate(value.shape):
            if isinstance(size, int):
                continue
            known, own = size.node.expr, own_expression(size)
            # Where PyTorch takes one size for another, or for a number, that has to be so.
            symbol = known if self._is_unmeasured(known) else own
            if self._is_unmeasured(symbol):
                self._symbols.add(symbol.name)
                self._bare |= {one.name for one in (symbol, own) if one.is_Symbol}
                self._calls.append(f"size {symbol.name} {name} {dim}")
                if symbol is not known:
                    self._symbols |= {one.name for one in known.free_symbols}
                    self._guards.append(f"guard {symbol.name} == {number_text(known)}")

    def _is_unmeasured(self, expression: Any) -> bool:
        is_unbacked = expression.is_Symbol and bool(free_unbacked_symbols(expression))
        return is_unbacked and expression.name not in self._bare

    def _refuse_sizes(self, node: fx.Node) -> None:
        """Refuses a list of tensors whose sizes depend on values."""
        if unknown := unbacked_symbols(tensors_of(node)) - self._bare:
            raise NotExportable(
                f"expected sizes that follow from those of the inputs or are those of results, got "
                f"{sorted(unknown)}, which are sizes in the list of {node.target}"
            )

    def _add_assertion(self, value: Any) -> None:
        """A condition on sizes that depend on values; bounds of a symbol are in its line."""
        value = value.meta["val"] if isinstance(value, fx.Node) else value
        condition = value.node.expr if isinstance(value, torch.SymBool) else sympy.sympify(value)
        symbols = {symbol.name for symbol in condition.free_symbols}
        if condition == sympy.true or symbols & self._offsets:
            return  # PyTorch checks where a slice begins
        self._symbols |= symbols
        relation = RELATIONS.get(type(condition).__name__)
        if relation is None:
            raise NotExportable(
                f"expected torch._check() of one comparison of sizes, got {condition}; write one "
                "torch._check() for each"
            )
        left, right = condition.args
        is_bound = left.is_Symbol and right.is_Integer and relation not in ("==", "!=")
        is_known = is_bound and (left.name in self._ranges or (relation == ">=" and right <= 0))
        if not is_known:
            self._guards.append(f"guard {number_text(left)} {relation} {number_text(right)}")

    def text(self) -> str:
        lines = [_HEADER]
        for name in sorted(self._symbols):
            bounds = self._ranges.get(name)
            limits = (0, "-") if bounds is None else map(_bound, (bounds.lower, bounds.upper))
            lines.append(" ".join(map(str, ("symbol", name, *limits))))
        return (
            "\n".join([*lines, *self._guards, *self._inputs, *self._calls, *self._outputs]) + "\n"
        )


def _bound(value: Any) -> int | str:
    return int(value) if value.is_Integer and abs(value) < 2**63 else "-"


def is_number(node: fx.Node) -> bool:
    """Whether a node's value is a size, or computed of such."""
    return isinstance(
        node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool, int, float)
    )


def is_unbacked(number: fx.Node) -> bool:
    """Whether a number is computed of sizes that depend on values."""
    value = number.meta.get("val")
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) and bool(
        free_unbacked_symbols([value.node.expr, own_expression(value)])
    )


def memory_order(value: torch.Tensor) -> list[int] | None:
    """The dimensions in the order of their strides; None where they are in order."""
    strides = [stride if isinstance(stride, int) else stride.node.hint for stride in value.stride()]
    sizes = [size if isinstance(size, int) else size.node.hint for size in value.shape]
    order = sorted(range(len(strides)), key=lambda i: -strides[i] if sizes[i] != 1 else -math.inf)
    expected = 1
    for i in reversed(order):
        if sizes[i] != 1 and strides[i] != expected:
            return None  # not dense: what reads it copies it
        expected *= sizes[i]
    return None if order == sorted(order) else order


def line_of(node: fx.Node) -> str:
    """Where the module's source has a node, or what it takes, as far as PyTorch knows that."""
    for one in (node, *node.all_input_nodes):
        trace = one.meta.get("stack_trace") or ""
        frames = re.findall(r'File "([^"<]+)", line (\d+)', trace)
        if frames:
            file, line = frames[-1]
            return f" in {os.path.basename(file)}, line {line}"
    return ""


def write_program(
    inputs: Iterable[fx.Node],
    calls: Iterable[fx.Node],
    outputs: Sequence[fx.Node],
    *,
    ranges: Mapping[Any, Any],
    guards: Sequence[str] = (),
    sources: Mapping[str, torch.Tensor] | None = None,
    stored_inputs: Sequence[fx.Node] = (),
    stored_outputs: Sequence[fx.Node] = (),
    alike: Iterable[tuple[fx.Node, fx.Node]] = (),
    forms: Sequence[fx.Node] | None = None,
    names: dict[Any, str] | None = None,
) -> str:
    """The text of a program. Raises NotExportable.

    `guards` are conditions on sizes of `sources`. `stored_outputs` come behind the others, and
    `stored_inputs` are such of another program. `alike` are values of the same sizes. `forms` have
    the sizes of the outputs, where these are written in other symbols. `names` is one dict for all
    programs of a module.
    """
    writer = ProgramWriter(ranges, names)
    for node in inputs:
        if node in stored_inputs:
            writer.add_stored_input(node.name, node.meta["val"])
        else:
            writer.add_input(node.name, node.meta["val"])
    for node in calls:
        writer.add_call(node)
    for node, form in zip(outputs, forms or outputs, strict=True):
        writer.add_output(node.name, form.meta["val"])
    for node in stored_outputs:
        writer.add_stored_output(node.name, node.meta["val"])
    for guard in guards:
        writer.add_guard(guard, sources or {})
    for first, second in alike:
        writer.add_equal_sizes(first.meta["val"], second.meta["val"])
    writer.check_symbols()
    return writer.text()
