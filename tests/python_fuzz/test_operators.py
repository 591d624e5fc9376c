"""Operators of kernel(): attributes, calls and copies."""

import functools
import itertools

import inputs
import numpy as np
from host import KERNELS, MINDSPORE
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule, run_state_machine_as_test
from outcomes import assert_message
from worker import Array, Dtype

# ===--- attributes ---===

ECHOES = [
    *("EchoBool", "EchoBools", "EchoDtype", "EchoFloat", "EchoFloatLists", "EchoFloats", "EchoInt"),
    *("EchoIntLists", "EchoInts", "EchoNumber", "EchoOptional", "EchoString", "EchoStrings"),
]


def made(worker, name, library=MINDSPORE, **options):
    outcome = worker.run("make", f"{library}:{name}", options)
    assert_message(outcome, f"{name}: ")
    return outcome


@inputs.examples(600)
@given(name=st.sampled_from(ECHOES), value=inputs.values)
def test_attribute_of_any_type(worker, name, value):
    outcome = made(worker, name, value=value)
    if not outcome.error:
        worker.run("call", outcome.value, ())
    worker.run("forget")


def single(value):
    """What a kernel gets of a float: the shortest decimal, which may not exceed bfloat16's."""
    return value if abs(value) >= float.fromhex("0x1.fep127") else float(str(np.float32(value)))


in_float32 = st.floats(width=32, allow_subnormal=False)
carried_ints = st.integers(-(2**63), 2**63 - 1)
utf8 = st.text()
# The kernel, what it may be given, and what it then got.
CARRIED = {
    "EchoBool": (st.booleans(), lambda value: np.array([value], np.int64)),
    "EchoBools": (st.lists(st.booleans()), lambda value: np.array(value, np.int64)),
    "EchoInt": (carried_ints, lambda value: np.array([value])),
    "EchoInts": (st.lists(carried_ints), lambda value: np.array(value, np.int64)),
    "EchoFloat": (in_float32, lambda value: np.array([single(value)])),
    "EchoFloats": (st.lists(in_float32), lambda value: np.array([*map(single, value)], float)),
    "EchoIntLists": (
        st.lists(st.lists(carried_ints, max_size=3), max_size=3),
        lambda value: np.array([*map(len, value), -1, *itertools.chain(*value)], np.int64),
    ),
    "EchoFloatLists": (
        st.lists(st.lists(in_float32, max_size=3), max_size=3),
        lambda value: np.array(
            [*map(len, value), -1, *map(single, itertools.chain(*value))], float
        ),
    ),
    "EchoString": (utf8, lambda value: np.frombuffer(value.encode(), np.uint8)),
    "EchoStrings": (
        st.lists(utf8, max_size=3),
        lambda value: np.frombuffer(b"".join(one.encode() + b"\0" for one in value), np.uint8),
    ),
}


@inputs.examples(200)
@given(
    case=st.sampled_from([*CARRIED]).flatmap(
        lambda name: st.tuples(st.just(name), CARRIED[name][0])
    )
)
def test_attribute_of_its_type_arrives_exactly(worker, case):
    name, value = case
    expected = CARRIED[name][1](value)
    number = made(worker, name, value=value)
    assert not number.error, number
    *_, result = worker.run("call", number.value, ()).value
    np.testing.assert_array_equal(result, expected, strict=True)
    worker.run("forget")


# ===--- other options ---===

own_names = st.sampled_from(["scale", "shift", "negative_slope", "func_type", "data_format"])
any_names = st.one_of(own_names, inputs.texts).filter(
    lambda name: name not in ("grad", "out_shape", "out_dtype")
)


@inputs.examples(200)
@given(
    name=st.sampled_from(["ScaleAndShift", "LeakyRelu", "AddOneByHand"]),
    attributes=st.dictionaries(any_names, st.one_of(inputs.values, st.just(1.0)), max_size=3),
)
def test_attributes_of_any_name(worker, name, attributes):
    out = {}
    if name == "AddOneByHand":
        out = {"out_shape": (2,), "out_dtype": Dtype("float32")}
    outcome = made(worker, name, **out, **attributes)
    if not outcome.error and name != "ScaleAndShift":
        x = Array("mindspore", np.array([1, 2], np.float32))
        result = worker.run("call", outcome.value, (x,))
        assert result.value[-1].tolist() == ([1, 2] if name == "LeakyRelu" else [2, 3])
    worker.run("forget")


GRADS = ["LeakyReluGrad", ("LeakyReluGrad", "LeakyReluGrad"), "Copy", ("",), (), "LeakyReluInfer"]


@inputs.examples(150)
@given(grad=st.one_of(inputs.values, inputs.texts, st.sampled_from(GRADS)))
def test_gradient_of_any_type(worker, grad):
    outcome = worker.run("make", f"{MINDSPORE}:LeakyRelu", {"grad": grad})
    assert_message(outcome, "LeakyRelu: ", "Copy: ", "/", "'", '"')
    worker.run("forget")


def tuples_of(strategy):
    return st.recursive(
        strategy,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple)
        ),
        max_leaves=4,
    )


sizes = st.one_of(
    st.integers(-3, 4), st.sampled_from([2**61, 2**62, 2**63, 2**64, 1.0, "3", True, None])
)
DTYPES = ["float32", "int8", "string", "hifloat8", "list_", "tensor_type", "type_none", "number"]
out_dtypes = st.sampled_from([*map(Dtype, DTYPES), "float32", 3, np.float32, None])
# MindSpore's own, of sizes that no memory has.
TOO_LARGE = (
    "The product value of shape ",
    "Allocate output memory failed",
    "For Custom, the shape of outputs[0]: ",
)


@inputs.examples(200)
@given(
    shape=st.one_of(tuples_of(sizes), st.lists(sizes, max_size=3)),
    dtype=st.one_of(st.just(Dtype("float32")), tuples_of(out_dtypes)),
)
def test_shape_and_dtype_of_the_output(worker, shape, dtype):
    outcome = made(worker, "Copy", out_shape=shape, out_dtype=dtype)
    if not outcome.error:
        x = Array("mindspore", np.array([-1, 2], np.float32))
        outcome = worker.run("call", outcome.value, (x,))
        if not outcome.text.startswith(TOO_LARGE):
            assert_in_call(outcome, "Copy")
    worker.run("forget")


@inputs.examples(200)
@given(
    name=st.one_of(
        any_names,
        inputs.values,
        st.sampled_from(["_model", "_lock", "attrs", "name", "__class__", "aten_bridge_inputs"]),
    ),
    value=inputs.values,
    how=st.sampled_from(["deepcopy", "copy", "pickle"]),
)
def test_attribute_that_is_set_later(worker, name, value, how):
    number = made(worker, "LeakyRelu", negative_slope=0.5).value
    outcome = worker.run("set_attribute", number, name, value)
    # What MindSpore refuses of an attribute of its own, it refuses itself.
    if outcome.error != "builtins.RuntimeError":
        assert_message(outcome, "LeakyRelu: ")
    copied = worker.run("copy_of", number, how)
    if how == "deepcopy":
        assert not copied.error, copied
    else:
        assert copied.text.startswith("LeakyRelu: expected an operator that stays in its process")
    x = Array("mindspore", np.array([-1, 2], np.float32))
    for operator in [number] if copied.error else [number, copied.value]:
        result = worker.run("call", operator, (x,))
        assert not result.error, result
        if name != "negative_slope":
            assert result.value[-1].tolist() == [-0.5, 2]
    worker.run("forget")


# ===--- calls ---===


def assert_in_call(outcome, name):
    """As assert_message; what the kernel itself finds is a RuntimeError of MindSpore's."""
    if outcome.error == "builtins.RuntimeError":
        assert f"Error message is {name}: " in outcome.text, outcome
    else:
        assert_message(outcome, f"{name}: ")


CALLED = ["LeakyRelu", "SumOfGiven", "NumberInputs", "Join", "Total", "Checked", "MultiplyAdd"]
CALLED += ["ToComplex", "Touch", "TouchWithMeta", "Counter", "Reverse", "LeakyReluGrad"]


@inputs.examples(500)
@given(name=st.sampled_from(CALLED), arguments=inputs.arguments)
def test_call_with_anything(worker, name, arguments):
    number = made(worker, name).value
    assert_in_call(worker.run("call", number, arguments), name)
    worker.run("forget")


@inputs.examples(100)
@given(arguments=inputs.arguments)
def test_call_of_a_kernel_that_takes_the_call_as_it_comes(worker, arguments):
    out = {"out_shape": (2,), "out_dtype": Dtype("float32")}
    number = made(worker, "SumSlots", KERNELS, **out).value
    # Its checks of the inputs are its own, and many errors MindSpore's, which takes bytes for text.
    outcome = worker.run("call", number, arguments)
    errors = ["", *map("builtins.{}".format, ["RuntimeError", "TypeError", "UnicodeDecodeError"])]
    assert outcome.error in errors, outcome
    worker.run("forget")


@inputs.examples(12)
@given(name=st.sampled_from(CALLED), arguments=inputs.arguments)
def test_call_with_anything_in_graph_mode(worker, name, arguments):
    number = made(worker, name).value
    worker.run("call_in_graph", number, arguments)  # MindSpore's own errors too
    worker.run("forget")


# ===--- results ---===

same_shapes = inputs.shapes.flatmap(
    lambda shape: st.tuples(
        *3 * [st.one_of(st.none(), inputs.tensors_of(["int32"], st.just(shape)))]
    )
)


@inputs.examples(100)
@given(tensors=same_shapes)
def test_sum_is_that_of_numpy(worker, tensors):
    number = made(worker, "SumOfGiven").value
    outcome = worker.run("call", number, tensors)
    addends = [tensor.values for tensor in tensors if tensor is not None]
    if addends:
        *_, result = outcome.value
        expected = np.asarray(functools.reduce(np.add, addends))
        np.testing.assert_array_equal(result, expected, strict=True)
    else:
        assert outcome.text.startswith("SumOfGiven: "), outcome
    worker.run("forget")


@inputs.examples(100)
@given(x=inputs.tensors_of(["float32", "float64"]), slope=in_float32)
def test_leaky_relu_is_that_of_numpy(worker, x, slope):
    number = made(worker, "LeakyRelu", negative_slope=slope).value
    *_, result = worker.run("call", number, (x,)).value
    slope = x.values.dtype.type(single(slope))
    with np.errstate(all="ignore"):
        expected = np.where(x.values > 0, x.values, x.values * slope)
    np.testing.assert_array_equal(result, expected, strict=True)
    worker.run("forget")


# ===--- sequences ---===


@st.composite
def chains(draw):
    """Two arrays, calls that take some of the values before them, and an order to read all in."""
    shape = st.just(draw(inputs.shapes))
    values = [draw(inputs.tensors_of(["float32"], shape)) for _ in range(2)]
    steps = []
    for count in range(2, 2 + draw(st.integers(1, 12))):
        name, operands = draw(st.sampled_from([("LeakyRelu", 1), ("SumOfGiven", 3)]))
        steps.append((name, [draw(st.integers(0, count - 1)) for _ in range(operands)]))
    return values, steps, draw(st.permutations(range(2 + len(steps))))


@inputs.examples(60)
@given(chain=chains())
def test_calls_before_anything_is_read(worker, chain):
    values, steps, order = chain
    numbers = {"LeakyRelu": made(worker, "LeakyRelu", negative_slope=0.5).value}
    numbers["SumOfGiven"] = made(worker, "SumOfGiven").value
    sent = [(numbers[name], places) for name, places in steps]
    expected = [value.values for value in values]
    with np.errstate(all="ignore"):
        for name, places in steps:
            first, *others = (expected[place] for place in places)
            half = np.where(first > 0, first, first * np.float32(0.5))
            expected.append(
                half if name == "LeakyRelu" else functools.reduce(np.add, others, first)
            )
    results = worker.run("call_chain", values, sent, order).value
    for place in order:
        np.testing.assert_array_equal(results[place][-1], expected[place], strict=True)
    worker.run("forget")


numbered = st.one_of(
    inputs.arguments,
    st.tuples(inputs.numbers),
    st.tuples(inputs.tensors, *3 * [inputs.numbers], st.none()),
)


class Counters(RuleBasedStateMachine):
    """Operators with a state, and what each of them has counted."""

    worker = None
    counters = Bundle("counters")

    def __init__(self):
        super().__init__()
        self.counted = {}  # the attribute and the counts, which PyNative mode keeps by it
        self.witness = self.make(start=0)
        self.call(self.witness, (3,), "float32")

    @rule(target=counters, start=st.integers(-100, 100))
    def make(self, start):
        number = made(self.worker, "Counter", start=start).value
        self.counted[number] = (start, {})
        return number

    @rule(target=counters, counter=counters)
    def copy(self, counter):
        number = self.worker.run("copy_of", counter, "deepcopy").value
        self.counted[number] = (self.counted[counter][0], {})
        return number

    @rule(counter=counters, start=st.integers(-100, 100))
    def set_start(self, counter, start):
        assert not self.worker.run("set_attribute", counter, "start", start).error
        self.counted[counter] = (start, self.counted[counter][1])

    @rule(counter=counters, value=inputs.values)
    def set_something_else(self, counter, value):
        outcome = self.worker.run("set_attribute", counter, "start", ["none", value])
        assert outcome.text.startswith("Counter: attribute 'start': expected "), outcome

    @rule(
        counter=counters,
        shape=st.sampled_from([(), (0,), (2,), (2, 1)]),
        dtype=st.sampled_from(["float32", "int64"]),
    )
    def call(self, counter, shape, dtype):
        start, counts = self.counted[counter]
        x = Array("mindspore", np.zeros(shape, dtype))
        outcome = self.worker.run("call", counter, (x,))
        assert not outcome.error, outcome
        count = counts[start, shape, dtype] = counts.get((start, shape, dtype), start - 1) + 1
        np.testing.assert_array_equal(outcome.value[-1], np.full(shape, count, dtype), strict=True)

    @rule(counter=counters, arguments=inputs.arguments)
    def call_with_anything(self, counter, arguments):
        assume(len(arguments) != 1)
        outcome = self.worker.run("call", counter, arguments)
        assert outcome.text.startswith("Counter: expected 1 input, got "), outcome

    @rule(name=st.sampled_from(["NumberInputs", "Total"]), arguments=numbered)
    def call_another_operator(self, name, arguments):
        number = made(self.worker, name).value
        outcome = self.worker.run("call", number, arguments)
        assert_in_call(outcome, name)
        self.call_after(outcome)

    @rule(shape=st.lists(sizes, max_size=2), dtype=out_dtypes)
    def call_an_operator_with_given_outputs(self, shape, dtype):
        outcome = made(self.worker, "Copy", out_shape=shape, out_dtype=dtype)
        if not outcome.error:
            x = Array("mindspore", np.ones(2, np.int8))
            outcome = self.worker.run("call", outcome.value, (x,))
        self.call_after(outcome)

    def call_after(self, outcome):
        if outcome.error and not outcome.text.startswith(("Copy: ", "NumberInputs: ", "Total: ")):
            # An error inside ops.Custom destroys the states of all operators (MindSpore 2.10), one
            # of the native caller's does not.
            x = Array("mindspore", np.zeros((3,), "float32"))
            count = self.worker.run("call", self.witness, (x,)).value[-1][0]
            if count == 0:
                self.counted = {number: (start, {}) for number, (start, _) in self.counted.items()}
            self.counted[self.witness][1][0, (3,), "float32"] = count
        self.call(self.witness, (3,), "float32")

    def teardown(self):
        self.worker.run("forget")


def test_counters_count_for_themselves(worker):
    Counters.worker = worker
    run_state_machine_as_test(Counters, settings=inputs.examples(25, stateful_step_count=25))
