"""Kernels of a library: what they take and give, whatever their attributes and the host."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aten_bridge import _introspection
from aten_bridge._codec import AttributeConversionError, AttributeConverter, Bools, Marshalled
from aten_bridge._introspection import (
    Attribute,
    DependsOnValues,
    Description,
    InputKind,
    Parameter,
    Question,
    describe_library,
    kernel_names,
)
from aten_bridge._library import Library
from aten_bridge._text import did_you_mean, is_utf8, or_list, suggestion
from aten_bridge.faults import Fault, Status, error_of


def is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)  # as numpy.float32 is


class Task(NamedTuple):
    """What a kernel computes; see plugin/operators/operator_kernels.h."""

    # "sizes": their sizes; "padded": the largest, with the true sizes; of a program also a step's
    # part, such as "forward 2 3" (plugin/operators/program_kernel.cpp).
    results: str = "values"
    order: int = 0  # the order of the gradient; 0: the operator's results
    input_count: int | None = None  # the operator's, where it is a gradient

    def gradient(self, input_count: int) -> Task | None:
        """The gradient by PyTorch's autograd."""
        if self.results != "values":
            return None
        count = input_count if self.input_count is None else self.input_count
        return Task(order=self.order + 1, input_count=count)

    def text(self) -> str:
        """The task as operator_text.h and call/result_form.h write it."""
        if self.results != "values":
            return self.results
        return f"{self.order}/{self.input_count}" if self.order else "0"


CALL, SIZES, PADDED = Task(), Task("sizes"), Task("padded")


def unshared(value: Any) -> Any:
    """The value; a list, or one of lists, is another one, since the caller may change it."""
    if isinstance(value, Bools) or not isinstance(value, list | tuple):
        return value
    kind = list if isinstance(value, list) else tuple
    return kind([*one] if isinstance(one, list) else one for one in value)


class Host(NamedTuple):
    """What kernels have to know of the host that calls them."""

    converter: AttributeConverter
    taken_names: Collection[str]  # names that an attribute cannot have
    taken_by: str  # what uses these, for errors
    open_function: Callable[[str | Path], Function]
    is_exact: bool  # whether floats among attributes are carried as float64
    takes_gradient: Callable[[Any], bool]  # what `grad` may be beside names of kernels
    # As the host says it, what to do or to give:
    gradients: str  # as grad
    results: str  # where shapes cannot be told; this and the next as HostMessages in C++
    operands: str  # what to compare with the kernel where the number of operands is another
    at_once: str  # where sizes depend on values, and are wanted without these
    largest: str  # the same, of an operator that can be told the largest
    padded_gradient: str  # where an operator that was told the largest is differentiated
    factory: str  # where an operator takes no tensor

    def plain_values(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes that have a value, as values of Python's where there are such."""
        plain = self.converter.plain
        return {
            name: unshared(plain(value)) for name, value in attributes.items() if value is not None
        }

    def name_fault(self, name: str, cure: str, taken: Collection[str] = ()) -> Fault | None:
        """What is wrong with the name of an attribute; `taken` are others than the host's."""
        if name in (taken or self.taken_names) or name.startswith("aten_bridge_"):
            got = f"one that {self.taken_by} uses itself"
            return Fault("a name of the kernel's own", got, cure)
        return None if is_utf8(name) else Fault("a name in UTF-8", "", "rename it")


# kFormAttribute of call/result_form.h, and how many numbers a row of sizes has.
_FORM = "aten_bridge_form"
_SIZES_COLUMNS = 66


def read_sizes(table: Sequence[Sequence[int]]) -> list[tuple[int, list[int]]]:
    """For each result the place of its dtype in the bridge's list, and its sizes."""
    return [(row[0] - 1, row[2 : 2 + row[1]]) for row in table]


def open_kernel(library: Library, name: str) -> Function:
    """A kernel of a library.

    Raises AttributeError where it has no such kernel, and ImportError where the process has another
    PyTorch than the library was built with.
    """
    described = describe_library(library)
    description = described.kernels.get(name)
    # What hosts call beside a kernel itself: to call it as a kernel would end the process.
    kernels = described.kernels.items()
    called = next((kernel for kernel, one in kernels if name in one.entry_points), "")
    is_hook = called != "" or name.startswith("aten_bridge_")
    if description is None and (is_hook or library.function(name) is None):
        names = kernel_names(library)
        raise AttributeError(
            f"{library.path}: expected the kernel {name!r}, got a library with "
            + (or_list(names) if names else "no kernels; export one with ATEN_BRIDGE_EXPORT")
            + did_you_mean(called if is_hook else name, names)
        )
    full_name = f"{library.path}:{name}"
    if description is not None and described.fault:
        raise ImportError(f"{full_name}: {described.fault}")
    infer = None if description is None else described.infer(name)
    return Function(library, name, full_name, name, description, infer)


class Function:
    """A kernel as its library has it."""

    maker = "kernel"  # the Python function that makes operators of it
    has_padded_gradient = False  # whether a gradient that is named is also that of padded results
    task = CALL
    _result_count = 0  # those of the kernel itself, where this is another task
    schema = ""  # PyTorch's, where it is one of its operators
    _instead_of_pytorch = ""  # what else may be done where PyTorch's Python part is missing

    def __init__(
        self,
        library: Library,
        name: str,
        full_name: str,
        symbol: str,
        description: Description | None,
        infer: Any,
    ):
        """Use `open_kernel`. `symbol` is that of the C function that a host calls."""
        self.library, self.path = library, library.path
        self.name, self.full_name, self.symbol = name, full_name, symbol
        self.description = description  # None: it is a C function
        self._infer = infer

    @functools.cached_property
    def input_names(self) -> list[str]:
        """The names of the inputs: those of their checks, else numbers, as in PyTorch's schema."""
        names: list[str] = []
        for i, (name, *_) in enumerate(self.description.inputs):
            is_one = name.isidentifier() and name not in names
            names.append(name if is_one and name not in self._taken_names else f"input{i}")
        return names

    @property
    def _taken_names(self) -> Sequence[str]:
        """Names that an input cannot have."""
        return self.description.attribute_names

    @property
    def first_optional(self) -> int:
        """The first of the inputs that, with all after it, may be left out."""
        inputs = self.description.inputs
        first = len(inputs)
        while first > 0 and inputs[first - 1].is_optional:
            first -= 1
        return first

    def place(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments of a call in the order of the inputs, also those that are given by name.

        Last ones that may be left out are None then. The elements of a list of tensors may stand
        one by one, where nothing is named. Raises TypeError where names are wrong, and where
        arguments do not fit a list.
        """
        if self.description is None or self.description.is_raw:
            if named:
                raise TypeError(
                    f"{self.name}: expected inputs by their positions, since the kernel does not "
                    f"tell their names, got {or_list(named)}"
                )
            return arguments
        inputs = self.description.inputs
        if named:
            return self._place_named(arguments, named)
        if self._list_index is not None:
            are_lists = [
                isinstance(one, tuple | list) and (len(one) > 0 or i == self._list_index)
                for i, one in enumerate(arguments)
            ]
            self.check_beside_list(are_lists)
        left = inputs[len(arguments) :]
        if not left or len(arguments) < self.first_optional:
            return arguments
        if self._list_index is not None and not are_lists[self._list_index]:
            return arguments  # nobody knows where the list ends
        return (*arguments, *(None for _ in left))

    def check_beside_list(self, are_lists: Sequence[bool], may_leave_out: bool = True) -> None:
        """Raises TypeError where an argument is the list of tensors, and others do not fit it.

        The list would begin or end elsewhere. `are_lists` tells of each argument whether it is a
        list, and `may_leave_out` whether optional ones may be missing.
        """
        begin, count = self._list_index, len(are_lists)
        if begin is None or True not in are_lists:
            return
        most = len(self.description.inputs)
        is_last = begin == most - 1  # further arguments are tensors of the list
        for i, is_list in enumerate(are_lists):
            if is_list and (i < begin or (i > begin and not is_last)):
                hint = "give the list of tensors in its place, as one argument"
                fault = Fault(
                    "a tensor, None or a number", "a tuple", hint, Status.COUNT, "input", i
                )
                raise error_of(TypeError, self.name, [fault])
        least = self.first_optional if may_leave_out else most
        if are_lists[begin] and not (least <= count and (is_last or count <= most)):
            numbers = f"{least} to {most}" if least < most else f"{most}"
            expected = f"{numbers} input{'s' * (most != 1)}, one of them the list of tensors"
            may_be_left = self.first_optional <= count < most
            hint = "give None in a graph for what is left out" if may_be_left else ""
            fault = Fault(expected, str(count), hint, Status.COUNT, "call")
            raise error_of(TypeError, self.name, [fault])

    def list_position(self, count: int) -> int | None:
        """Which of `count` arguments is the list of tensors; None if unknown or without one."""
        is_known = self._list_index is not None and len(self.description.inputs) == count
        return self._list_index if is_known else None

    @functools.cached_property
    def _list_index(self) -> int | None:
        return None if self.description is None else self.description.list_index

    def _place_named(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        names, inputs = self.input_names, self.description.inputs
        if len(arguments) > len(inputs):
            raise TypeError(
                f"{self.name}: expected {len(inputs)} input{'s' * (len(inputs) != 1)}, where some "
                f"are given by name, got {len(arguments)} by position and {or_list(named)}; give "
                "several tensors as one tuple"
            )
        placed = dict(zip(names, arguments, strict=False))
        faults = []
        of_call = Status.COUNT, "call"
        for name in named:
            one_of = f"one of {or_list(names)} as the name of an input" if names else "no inputs"
            if name in placed:
                of_input = Status.COUNT, "input", names.index(name), name
                got = "one by position and one by name"
                faults.append(Fault("one value", got, "leave one out", *of_input))
            elif name in self.description.attributes:
                hint = f"give it to {self.maker}()"
                faults.append(Fault(one_of, f"{name!r}, an attribute", hint, *of_call))
            elif name not in names:
                faults.append(Fault(one_of, repr(name), suggestion(name, names), *of_call))
        placed = placed | dict(named)
        for i, (name, one) in enumerate(zip(names, inputs, strict=True)):
            if name not in placed and not one.is_optional:
                what = "a tuple of tensors" if one.kind == InputKind.TENSORS else f"a {one}"
                faults.append(Fault(what, "nothing", "give one", Status.COUNT, "input", i, name))
        if faults:
            raise error_of(TypeError, self.name, faults)
        return [placed.get(name) for name in names]

    def parameters(self, count: int) -> list[Parameter] | None:
        """What takes each of so many inputs; None if the kernel does not say."""
        if self.description is None or self.description.is_raw:
            return None
        inputs, begin = self.description.inputs, self.description.list_index
        if begin is None:
            return inputs
        of_list = [inputs[begin]] * (count - len(inputs) + 1)
        return inputs[:begin] + of_list + inputs[begin + 1 :]

    def count_fault(self, count: int) -> Fault | None:
        """What is wrong with so many inputs; None if the kernel takes them."""
        if self.description is None or self.description.is_raw:
            return None
        expected = len(self.description.inputs)
        least = "" if self.description.list_index is None else "at least "
        expected -= 1 if least else 0
        if count == expected or (least and count > expected):
            return None
        first = self.first_optional
        if not least and first < expected and not first <= count < expected:
            least = f"{first} to "
        plural = "" if expected == 1 else "s"
        inputs = f"{least}{expected} input{plural}"
        return Fault(inputs, str(count), status=Status.COUNT, subject="call")

    def infer(
        self,
        texts: Sequence[str],
        shapes: Sequence[Sequence[int] | None],
        marshalled: Any,
        host: Host,
    ) -> list[tuple[str, list[int]]]:
        """The dtype and shape of each output. Raises ValueError with the bridge's text.

        That is DependsOnValues where nobody can know them.
        """
        try:
            question = self._question(host, marshalled)
            return _introspection.infer_outputs(self._infer, question, texts, shapes)
        except DependsOnValues:  # once all that is wrong with the inputs has been said
            if self.task != SIZES:
                raise
            return [("int64", [self._result_count, _SIZES_COLUMNS])]
        except _introspection.NeedsPyTorch as error:
            raise ValueError(f"{error}{self._instead_of_pytorch}") from None

    def instead_of_sizes(self, host: Host) -> str:
        """What to do where the sizes of the results depend on values."""
        return f"; {host.at_once}, or give {host.largest}"

    def _question(self, host: Host, marshalled: Any) -> Question:
        return Question(host.results, host.operands, host.is_exact, marshalled)

    # ===--- attributes ---===

    def marshal(self, attributes: Mapping[str, Any]) -> Any:
        """The attributes as `infer` takes them."""
        types = {name: one.type for name, one in self.known_attributes.items()}
        return Marshalled(attributes, types)

    def carried(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """What a host carries to the kernel."""
        return attributes if self.task == CALL else {**attributes, _FORM: self.task.text()}

    def with_attributes(self, attributes: Mapping[str, Any]) -> Function:
        """The same kernel with such attributes, which are right."""
        return self

    def for_task(self, task: Task, attributes: Mapping[str, Any]) -> Function:
        """The same kernel for another task. Its library has these where sizes depend on values."""
        count = self.description.outputs
        function = copy.copy(self)
        function.task, function._result_count = task, count
        function.description = self.description._replace(
            outputs=1 if task == SIZES else 2 * count, has_meta=task == SIZES
        )
        return function

    @property
    def known_attributes(self) -> Mapping[str, Attribute]:
        """Attributes by name; a C function has no known ones."""
        return {} if self.description is None else self.description.attributes

    def attribute_faults(self, given: dict[str, Any], host: Host) -> dict[str, Fault]:
        """What is wrong with each attribute; values are bool, int, float, str, list or None."""
        if self.description is None:
            return {}
        types = self.description.attributes
        known = {name: value for name, value in given.items() if name in types}
        faults = self._type_faults(known, host)
        for name in given:
            if name not in types:
                expected = f"one of {or_list(types)}" if types else "no attributes"
                faults[name] = Fault(expected, "an unknown name", suggestion(name, types))
        for name, attribute in _introspection.missing_attributes(types, given).items():
            hint = (
                "give it where the operator is made, as in "
                f"{self.maker}({self.full_name!r}, {name}=...)"
            )
            faults[name] = Fault(attribute.text, "nothing", hint)
        return faults

    def _type_faults(self, attributes: dict[str, Any], host: Host) -> dict[str, Fault]:
        """What the library says of the attributes."""
        question = self._question(host, self.marshal(attributes))
        return _introspection.attribute_faults(self._infer, question)

    def attribute_error(self, error: type[Exception], faults: Mapping[str, Fault]) -> Exception:
        """The error that has these faults of attributes."""
        of_attribute = {"status": Status.ATTRIBUTE, "subject": "attribute"}
        named = (one._replace(name=name, **of_attribute) for name, one in faults.items())
        return error_of(error, self.name, named)

    def check_attributes(self, given: Mapping[str, Any], host: Host) -> dict[str, Any]:
        """The attributes as the host carries them.

        Raises ValueError where the kernel's own names cannot be used, and TypeError with all that
        is wrong with those that are given.
        """
        description, known = self.description, self.known_attributes
        names = [] if description is None else description.attribute_names
        faults = {}
        for name in names:
            if fault := host.name_fault(name, "rename it in the kernel's export"):
                faults[name] = fault
            elif names.count(name) > 1:
                hint = "rename them in the kernel's export"
                faults[name] = Fault("one attribute of this name", "several", hint)
        if faults:
            raise self.attribute_error(ValueError, faults)
        carried: dict[str, Any] = {}
        for name, value in given.items():
            carried[name] = None
            if description is not None and name not in known:
                continue  # whatever its value: the name is wrong
            fault = None if description else host.name_fault(name, "rename it")
            try:
                if value is not None:
                    type_ = known[name].type if description else None
                    carried[name] = host.converter.carried(value, type_)
            except AttributeConversionError as error:
                fault = fault or error.fault
            if fault:
                faults[name] = fault
        faults = self.attribute_faults(carried | dict.fromkeys(faults), host) | faults
        if faults:
            raise self.attribute_error(TypeError, faults)
        return {name: value for name, value in carried.items() if value is not None}

    # ===--- gradients ---===

    def gradient_target(self, name: str) -> str:
        """The gradient kernel of that name, in the same library or with a path of its own."""
        return name if ":" in name else f"{self.path}:{name}"

    def gradient(self, input_count: int, attributes: Mapping[str, Any]) -> Function | None:
        """The gradient of a call with so many inputs, if none was named; None if there is none."""
        return None

    def missing_gradient(self, is_gradient: bool) -> str:
        """What to say, and to do, where an operator without a gradient is differentiated."""
        cure = 'name one with grad="...", as in kernel("./a.so:Cube", grad="CubeGrad")'
        if is_gradient:
            cure = 'name one more, as in kernel("./a.so:Cube", grad=("CubeGrad", "CubeGradGrad"))'
        return (
            f"{self.name}: expected an operator with a gradient kernel where a network is "
            f"differentiated, got one without; {cure}"
        )
