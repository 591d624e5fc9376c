"""Kernels as operators of PyTorch: schemas, values, errors."""

import inspect
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

SCHEMAS = [
    "leaky_relu(Tensor x, float negative_slope=0.01) -> Tensor",
    "leaky_relu.out(Tensor x, float negative_slope=0.01, *, Tensor(out0!) out) -> ()",
    "leaky_relu_grad(Tensor x, Tensor? grad_output=None, float negative_slope=0.01) -> Tensor",
    "square_grad(Tensor x, Tensor dy) -> Tensor",
    "top_k(Tensor x, int k, int dim=-1, bool largest=True) -> (Tensor, Tensor)",
    "top_k_grad(Tensor x, Tensor? grad_output0, Tensor? grad_output1, int k, int dim=-1, bool "
    "largest=True) -> Tensor",
    "powers(Tensor x) -> (Tensor, Tensor)",
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    "cat_grad(Tensor[] tensors, Tensor? grad_output=None, int dim=0) -> Tensor[]",
    "layer_norm(Tensor x, Tensor? weight=None, Tensor? bias=None, float "
    "eps=1.0000000000000001e-05) -> Tensor",
    "scale(Tensor x, float factor, int? times=None) -> Tensor",
    'describe(Tensor input0, bool flag=True, int number=3, float real=0.5, Scalar any=2, str text="'
    'word", ScalarType type=5, int[] ints=[1, 2], float[] reals=[0.25], bool[] flags=[True, False],'
    " str[] texts=[a, b], int[][] rows=[[1, 2], [3]], int? maybe=None) -> Tensor",
    "describe_maybe(Tensor input0, bool? flag=None, int? number=3, float? real=None, Scalar? "
    'any=None, str? text="word", ScalarType? type=None, int[]? ints=None, float[]? reals=None, '
    "bool[]? flags=None, str[]? texts=None, int[][]? rows=None, float[][]? real_rows=None) -> "
    "Tensor",
    "sum_of(Tensor input0, float first=0., float[] list=[], float[][] rows=[]) -> Tensor",
    "double_it(Tensor input0) -> Tensor",
    "parts(Tensor input0) -> (Tensor, Tensor)",
    "parts.out(Tensor input0, *, Tensor(out0!) above, Tensor(out1!) below) -> ()",
    "fill.out(Tensor input0, *, Tensor(out0!) out) -> ()",
]


@pytest.fixture
def x():
    return torch.linspace(-2, 2, 12).reshape(3, 4)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.split("(")[0])
def test_schema(my, schema):
    name, _, overload = schema.split("(")[0].partition(".")
    operator = getattr(getattr(torch.ops.bridge_test, name), overload or "default")
    assert str(operator._schema) == f"bridge_test::{schema}"


def test_forward(my, x):
    assert torch.equal(my.leaky_relu(x), torch.nn.functional.leaky_relu(x))
    assert torch.equal(
        torch.ops.bridge_test.leaky_relu(x, negative_slope=0.25),
        torch.nn.functional.leaky_relu(x, 0.25),
    )
    for result, expected in zip(
        my.top_k(x, 2, dim=0, largest=False), x.topk(2, 0, False), strict=True
    ):
        assert torch.equal(result, expected)
    assert torch.equal(my.cat([x, x], dim=1), torch.cat([x, x], 1))
    weight = torch.arange(4.0)
    assert torch.equal(my.layer_norm(x, weight), torch.layer_norm(x, [4], weight))
    assert torch.equal(my.layer_norm(x, None, weight), torch.layer_norm(x, [4], bias=weight))
    assert torch.equal(my.scale(x, 3), x * 3)
    assert torch.equal(my.scale(x, 3.0, 2), x * 6)
    assert torch.equal(my.double_it(x), x * 2)
    assert torch.equal(my.sum_of_rows(x.double()), x.double().sum(1))
    assert torch.equal(my.swish(x, 2.0), x * torch.sigmoid(x * 2))


def said(characters):
    return bytes(characters.tolist()).decode()


def test_attributes_of_every_kind(my):
    x = torch.zeros(1)
    assert said(my.describe(x)) == (
        "1 3 0.500000 2.000000 word Half 1 2 0.250000 yes no a b row of 2 row of 1 and None"
    )
    given = my.describe(
        x,
        flag=False,
        number=-1,
        real=1,
        any=1.5,
        text="",
        type=torch.bfloat16,
        ints=[],
        reals=[1, 2.5],
        flags=[True],
        texts=["q"],
        rows=[[1], []],
        maybe=7,
    )
    assert said(given) == (
        "0 -1 1.000000 1.500000  BFloat16 1.000000 2.500000 yes q row of 1 row of 0 and 7"
    )


@pytest.mark.parametrize("number", [-1, 72, 262, 2**40])
def test_an_int_that_is_no_dtype(my, number):
    with pytest.raises(RuntimeError) as error:
        my.describe(torch.zeros(1), type=number)  # PyTorch takes any int for a dtype
    assert str(error.value).partition("\n")[0] == (
        "Describe: attribute 'type': expected the name of a dtype, such as \"float32\", got the "
        f"int {number}"
    )


def test_attributes_that_may_be_none(my):
    x = torch.zeros(1)
    kinds = {  # what is given, and what the kernel says of it
        "flag": (False, "no"),
        "number": (-1, "-1"),
        "real": (1, "1.000000"),
        "any": (2, "2.000000"),
        "text": ("words", "words"),
        "type": (torch.half, "Half"),
        "ints": ([1, 2], "[1 2]"),
        "reals": ([1, 2.5], "[1.000000 2.500000]"),
        "flags": ([True, False], "[yes no]"),
        "texts": (["a", "b"], "[a b]"),
        "rows": ([[1], []], "[[1] []]"),
        "real_rows": ([[0.5], []], "[[0.500000] []]"),
    }
    given = {name: value for name, (value, _) in kinds.items()}
    words = {name: said_of_it for name, (_, said_of_it) in kinds.items()}
    nothing = dict.fromkeys(kinds)
    # None is the default where there is one, in all hosts.
    defaults = {**dict.fromkeys(kinds, "None"), "number": "3", "text": "word"}
    for attributes, expected in (
        ({}, defaults),
        (nothing, defaults),
        (given, words),
        *[({name: given[name]}, {**defaults, name: words[name]}) for name in kinds],
        *[({**given, name: None}, {**words, name: defaults[name]}) for name in kinds],
        *[({name: []}, {**defaults, name: "[]"}) for name in list(kinds)[6:]],
    ):
        assert said(my.describe_maybe(x, **attributes)) == ", ".join(expected.values())


def test_a_str_is_no_list_of_its_letters(my, x):
    for call in (
        lambda: my.describe(x, texts="ab"),
        lambda: my.describe_maybe(x, None, 1, 1.0, 2, "a", None, [], [], [], "ab"),
    ):
        with pytest.raises(TypeError) as error:
            call()
        assert re.fullmatch(
            "describe(_maybe)?: attribute 'texts': expected a list of strs, got 'ab'",
            str(error.value),
        )


def test_types_of_tutorials(my, x):
    y = torch.ones(3, 4)
    assert torch.equal(my.muladd(x, y, 2.0), x + 2)
    leaf = x.clone().requires_grad_()
    my.muladd(leaf, 3 * y, 1.0).sum().backward()
    assert torch.equal(leaf.grad, 3 * y)


def test_inputs_of_loops_are_row_major(my, x):
    x = x.double()
    assert torch.equal(my.square(x.t()), x.t() * x.t())
    assert torch.equal(my.square(x[:, ::2]), x[:, ::2] ** 2)
    assert torch.equal(my.square(x[1].expand(5, 4)), x[1].expand(5, 4) ** 2)
    leaf = x.clone().requires_grad_()
    my.square(leaf).sum().backward()  # whose gradient has strides of 0
    assert torch.equal(leaf.grad, 2 * x)


def test_empty_and_scalar_tensors(my):
    assert my.square(torch.zeros(0, 3, dtype=torch.double)).shape == (0, 3)
    assert my.square(torch.tensor(3.0, dtype=torch.double)).item() == 9


def test_a_body_with_an_empty_result_runs_once(my):
    # (0,) takes the fast path, and a conjugated one is converted first.
    for x in (torch.zeros(0), torch.zeros(0, dtype=torch.cfloat).conj()):
        first, second = my.runs(x), my.runs(x)
        assert first[0].shape == (0,)
        assert second[1].real.item() == first[1].real.item() + 1


def test_out(my, x):
    expected = torch.nn.functional.leaky_relu(x)
    for out in (torch.empty(0), torch.empty(3, 4)):
        assert my.leaky_relu(x, out=out) is out
        assert torch.equal(out, expected)
    x = x.double()
    for out in (torch.empty(0, dtype=torch.double), torch.empty(4, 3, dtype=torch.double).t()):
        version = out._version
        assert my.square(x, out=out) is out
        assert torch.equal(out, x * x)
        assert out._version > version
    shared = x.clone()
    my.square(shared, out=shared)
    assert torch.equal(shared, x * x)
    out = torch.empty(2)
    assert torch.ops.bridge_test.fill.out(x, out=out) is None
    assert torch.equal(out, x.sum().float().expand(2))


def test_out_of_several_results(my, x):
    expected = x.clamp_min(0), x.clamp_max(0)
    above, below = torch.empty(0), torch.empty(4, 3).t()
    assert torch.ops.bridge_test.parts.out(x, below=below, above=above) is None
    assert torch.equal(above, expected[0])
    assert torch.equal(below, expected[1])
    outs = torch.empty(3, 4), torch.empty(3, 4)
    assert my.parts(x, out=outs) is outs
    for out, of_functional, value in zip(outs, my.parts(x), expected, strict=True):
        assert torch.equal(out, value)
        assert torch.equal(of_functional, value)


def test_out_by_wrong_names(my, x):
    parts, out = torch.ops.bridge_test.parts, torch.empty(3, 4)
    for names in (["above"], ["above", "beside"]):
        with pytest.raises(RuntimeError) as raised:
            parts.out(x, **{name: out for name in names})
        assert str(raised.value) == (
            "bridge_test::parts() is missing value for argument 'below'. "
            f"Declaration: {parts.out._schema}"
        )
    with pytest.raises(TypeError) as raised:
        my.parts(x, out=(out,))
    assert str(raised.value) == (
        "parts: expected as many tensors in out as there are results, 2, got 1"
    )


def test_a_result_is_no_input(my, x):
    y = my.same(x)
    assert torch.equal(y, x)
    y.zero_()
    assert x.abs().sum() > 0


def test_a_result_is_nothing_that_the_kernel_keeps(my, x):
    my.table_of(x).add_(5)
    leaf = x.clone().requires_grad_()
    assert my.table_of(leaf).requires_grad
    again = my.table_of(x)
    assert torch.equal(again, torch.ones_like(x))
    assert not again.requires_grad
    written = my.keeps_output(x)
    my.keeps_output(x)
    assert torch.equal(written, x)


def test_what_a_kernel_keeps_is_copied_before_another_thread_changes_it(my):
    x = torch.ones(400_000)
    before = my.running_sum(torch.zeros_like(x)).max().item()

    def call(_):
        total, written = my.running_sum(x), my.keeps_output(x)
        return total.min().item(), total.max().item(), written.min().item()

    with ThreadPoolExecutor(3) as pool:
        results = pool.map(call, range(300))
        assert sorted(results) == [(before + i, before + i, 1) for i in range(1, 301)]


def test_a_result_is_in_memory_as_it_is_read(my):
    """Compilers read it there: a pending negation would be lost."""
    x = torch.randn(3, dtype=torch.cfloat)
    result = my.negated_imaginary(x)
    assert torch.equal(result, -x.imag)
    assert not result.is_neg()
    told = my.negated_imaginary(x.to("meta"))
    assert not told.is_neg()
    assert (told.shape, told.stride()) == (result.shape, result.stride())


def test_a_result_without_data_is_refused(my, x):
    with pytest.raises(RuntimeError) as error:
        my.without_data(x)
    assert str(error.value) == (
        "WithoutData: output 0: expected a tensor with data, got float32 [3, 4] on meta from the "
        "kernel"
    )
    assert my.without_data(x.to("meta")).shape == (3, 4)


def test_out_in_inference_mode_is_a_change_for_autograd(my):
    weight, out = torch.ones(3, requires_grad=True), torch.full((3,), 5.0)
    product = weight * out
    with torch.inference_mode():
        my.leaky_relu(torch.ones(3), out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_state_in_a_call_inside_a_call(my):
    assert my.nested_calls(torch.ones(1)) + 3 == my.nested_calls(torch.ones(3))


def test_out_that_is_an_input(my, x):
    two_steps = x.clone()
    my.two_steps(two_steps, out=two_steps)
    assert torch.equal(two_steps, 3 * x)
    copied = x.clone()
    my.copies(copied, out=copied)
    assert torch.equal(copied, x)
    base = torch.arange(1.0, 7)
    expected = 3 * base[:5]
    my.two_steps(base[:5], out=base[1:])
    assert torch.equal(base[1:], expected)
    rows = x.double()
    expected = rows.sum(1)
    meta, transposed = rows.to("meta"), torch.empty(5, 2, dtype=torch.double, device="meta").t()
    my.square(meta, out=transposed)
    my.sum_of_rows(meta, out=meta)
    assert (meta.shape, transposed.shape) == ((3,), (3, 4))
    my.sum_of_rows(rows, out=rows)
    assert torch.equal(rows, expected)


@pytest.mark.parametrize("name", ["leaky_relu", "square"])
def test_out_with_a_pending_negation(my, x, name):
    x = x.double()
    expected = getattr(my, name)(x)
    pending = torch.zeros(3, 4, dtype=torch.cdouble).conj().imag
    assert pending.is_neg()
    getattr(my, name)(x, out=pending)
    assert torch.equal(pending, expected)
    negated = torch._neg_view(x)
    out = torch.empty(0, dtype=torch.double)
    getattr(my, name)(negated, out=out)
    assert torch.equal(out, getattr(my, name)(-x))


def test_out_of_another_shape_warns(my, x, capfd):
    out = torch.zeros(2, dtype=torch.double)
    my.square(x.double(), out=out)
    assert "An output with one or more elements was resized" in capfd.readouterr().err
    assert torch.equal(out, x.double() ** 2)


def test_a_meta_function_that_says_meta(my, x):
    assert torch.equal(my.meta_said(x), x)


def test_a_gradient_of_integers_is_zeros(my, x):
    leaf = x.clone().requires_grad_()
    doubled, whole = my.loud(leaf)
    doubled.sum().backward()
    assert not whole.requires_grad
    assert torch.equal(leaf.grad, torch.full_like(x, 2))


def test_names_of_pythons_own(my, x):
    assert str(inspect.signature(my.names)) == "(self, lambda_=0.5, out=0.5)"
    expected = x * x
    assert torch.equal(my.names(self=x), expected)
    assert torch.equal(my.names(x, **{"lambda": 1.5}), expected * 2)
    assert torch.equal(my.names(x, lambda_=1.5), expected * 2)


def test_gradient_kernels_in_inference_mode(my, x):
    with torch.inference_mode():
        made_here = x * 1
        gradient = my.leaky_relu_grad(made_here, torch.ones_like(x))
    assert torch.equal(gradient, torch.where(x > 0, 1.0, 0.01))


def test_a_state_for_each_set_of_attributes(my):
    x = torch.zeros(1)
    first = my.count(x, first=100).item()
    assert my.count(x, first=100).item() == first + 1
    assert my.count(x, first=200).item() == 200
    assert my.count(x, first=100).item() == first + 2


def test_instances_are_bounded_and_right(my, x):
    for i in range(200):
        slope = i / 200
        assert torch.equal(
            my.leaky_relu(x, negative_slope=slope), torch.nn.functional.leaky_relu(x, slope)
        )
    nan = my.leaky_relu(x, negative_slope=float("nan"))
    assert torch.equal(nan.isnan(), x < 0)


def test_threads(my, x):
    wrong = []

    def call(slope):
        expected = torch.nn.functional.leaky_relu(x, slope)
        for _ in range(300):
            leaf = x.clone().requires_grad_()
            y = my.leaky_relu(leaf, negative_slope=slope)
            y.sum().backward()
            if not torch.equal(y, expected) or leaf.grad.min() != slope:
                wrong.append(slope)

    threads = [threading.Thread(target=call, args=(i / 8,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_modes_stay(my, x):
    with torch.inference_mode():
        assert my.leaky_relu(x).shape == x.shape
        assert torch.is_inference_mode_enabled()
    with torch.no_grad():
        assert not my.leaky_relu(x.clone().requires_grad_()).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_backward_of_autocast(my, inside):
    """Gradients have the dtypes of the leaves, in and behind the region; float64 is left alone."""
    for operator, dtype, result in (
        (my.lowered, torch.float32, torch.bfloat16),
        (my.lowered, torch.float64, torch.float64),
        (my.raised, torch.bfloat16, torch.float32),
        (my.leaky_relu, torch.float32, torch.float32),
        (my.leaky_relu, torch.bfloat16, torch.bfloat16),
    ):
        leaf = torch.tensor([1 / 3, 1], dtype=dtype, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            y = operator(leaf)
            if inside:
                y.sum().backward()
        if not inside:
            y.sum().backward()
        factor = 1 if operator is my.leaky_relu else 2
        assert y.dtype == result
        assert torch.equal(y, leaf.to(result) * factor)
        assert leaf.grad.dtype == dtype
        assert leaf.grad.tolist() == [factor, factor]


def test_autocast_of_lists_and_none(my):
    x = torch.ones(2)
    with torch.autocast("cpu", torch.bfloat16):
        assert my.lowered_list([x, x]).dtype == torch.bfloat16
        assert my.lowered_list([x, x.int()], None).dtype == torch.bfloat16
        assert my.lowered_list([x, x.double()], torch.ones(4)).dtype == torch.float64
        with torch.autocast("cpu", enabled=False):
            assert my.lowered_list([x, x], torch.ones(4)).dtype == torch.float32


def test_autocast_of_a_composite_kernel_is_that_of_its_operators(my, x):
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(my.product(x, x.t()), x @ x.t())
        assert my.product(x, x.t()).dtype == torch.bfloat16


def test_autocast(my):
    x = torch.ones(2)
    with torch.autocast("cpu", torch.bfloat16):
        assert my.leaky_relu(x).dtype == torch.float32
        assert my.lowered(x).dtype == torch.bfloat16
        assert my.raised(x.bfloat16()).dtype == torch.float32
        assert my.lowered(x.double()).dtype == torch.float64
    assert my.lowered(x).dtype == torch.float32


# ===--- errors ---===


LATIN1 = r"cannot read m\xfcller.bin"  # the text of a byte that is not UTF-8
ERRORS = [
    (lambda my, x: my.throws(x, 0), IndexError, "Throws: index (input 0: float32 [3, 4])"),
    (lambda my, x: my.throws(x, 1), TypeError, "Throws: type (input 0: float32 [3, 4])"),
    (lambda my, x: my.throws(x, 2), ValueError, "Throws: value (input 0: float32 [3, 4])"),
    (
        lambda my, x: my.throws(x, 3),
        NotImplementedError,
        "Throws: not implemented (input 0: float32 [3, 4])",
    ),
    (
        lambda my, x: my.throws(x, 4),
        RuntimeError,
        "Throws: the kernel threw an object of type int, which is not a std::exception "
        "(input 0: float32 [3, 4])",
    ),
    (
        lambda my, x: my.throws(x.to("meta"), 4),
        RuntimeError,
        "Throws: the kernel threw an object of type int, which is not a std::exception "
        "(input 0: float32 [3, 4])",
    ),
    (lambda my, x: my.throws(x, 5), RuntimeError, "Throws: runtime (input 0: float32 [3, 4])"),
    (
        lambda my, x: my.checked(x[:, :3].int(), torch.ones(4)),
        RuntimeError,
        "Checked: input 0 'x': expected float16|bfloat16|float32|float64, got \"int32\" with shape "
        "[3, 3]\n"
        "Checked: input 1 'y': expected sizes [N] with N = 3 as in input 0 'x', got float32 [4]",
    ),
    (
        lambda my, x: my.muladd(x, x[0], 1.0),
        RuntimeError,
        "Muladd: expected a and b of one size (input 0: float32 [3, 4]; input 1: float32 [4])",
    ),
    (
        lambda my, x: my.parts(x, out=(x.clone(), x.double())),
        RuntimeError,
        "Parts: Found dtype Double but expected Float (input 0: float32 [3, 4])",
    ),
    (
        lambda my, x: my.times(x, x.to("meta")),
        RuntimeError,
        "Times: input 0: expected a tensor on meta, got float32 [3, 4] on cpu",
    ),
    (
        lambda my, x: my.leaky_relu(x.to("meta"), out=x.clone()),
        RuntimeError,
        "LeakyRelu: output 0 'y': expected a tensor on meta, got float32 [3, 4] on cpu",
    ),
    (
        lambda my, x: my.square(x),
        RuntimeError,
        "Square: input 0 'x': expected float64, got \"float32\" with shape [3, 4]",
    ),
    (
        lambda my, x: my.assigns(x),
        RuntimeError,
        "Assigns: output 0: expected the result in the host's memory, got another tensor assigned "
        "to the parameter; write with an _out function or with copy_()",
    ),
    (
        lambda my, x: my.copies(x),
        RuntimeError,
        "Copies: expected an _out function that gives the output its shape, got a kernel that "
        "writes to the shape it has; give the kernel a meta function: aten_bridge::meta(function)",
    ),
    (
        lambda my, x: my.resizes(x),
        RuntimeError,
        "Resizes: output 0: expected float32 [3, 4] as the operator or the meta function say, got "
        "float32 [13] because the kernel resized it; give the kernel a meta function that tells "
        "the shape",
    ),
    (
        lambda my, x: my.square(x.double(), out=torch.empty(0)),
        RuntimeError,
        "Square: output 0: expected float64, got float32 [0]",
    ),
    (
        lambda my, x: my.leaky_relu(x.clone().requires_grad_(), out=torch.empty(0)),
        RuntimeError,
        "LeakyRelu: expected tensors that need no gradient where out is given, got one that "
        "requires it; call the operator without out",
    ),
    (
        lambda my, x: my.sobel_grad(x),
        RuntimeError,
        "SobelGrad: expected a meta function, which tells the sizes of the results, or out, or the "
        "gradient of a kernel of this library with an output for each tensor among its inputs, got "
        "none of these; give the kernel a meta function: aten_bridge::meta(function)",
    ),
    (
        lambda my, x: my.checked_composite(x[0].int()),
        RuntimeError,
        "CheckedComposite: input 0 'x': expected float64, got \"int32\" with shape [4]\n"
        "CheckedComposite: input 0 'x': expected rank 2, got int32 [4]",
    ),
    (
        lambda my, x: my.no_gradient(x.clone().requires_grad_()).sum().backward(),
        RuntimeError,
        "NoGradient: expected a gradient kernel in the library, got none; add "
        "ATEN_BRIDGE_EXPORT_GRAD(NoGradientGrad, function, options...), write one by hand under "
        "that name, or give the kernel aten_bridge::composite() if PyTorch's operators are all of "
        "its body",
    ),
    (
        lambda my, x: my.latin1(x, "body"),
        RuntimeError,
        f"Latin1: {LATIN1} (input 0: float32 [3, 4])",
    ),
    (
        lambda my, x: my.latin1(x, "check"),
        RuntimeError,
        f"Latin1: {LATIN1} (input 0: float32 [3, 4])",
    ),
    (
        lambda my, x: my.latin1(x.to("meta"), "meta"),
        RuntimeError,
        f"Latin1: {LATIN1} (input 0: float32 [3, 4])",
    ),
    (
        lambda my, x: my.latin1_state(x),
        RuntimeError,
        f"Latin1State: {LATIN1} (input 0: float32 [3, 4])",
    ),
    (
        lambda my, x: torch.func.jvp(my.leaky_relu, (x,), (x,)),
        NotImplementedError,
        "LeakyRelu: expected tensors without tangents, since a gradient kernel has no forward "
        "mode, got one with; give the kernel aten_bridge::composite() if PyTorch's operators are "
        "all of its body",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_error(my, x, call, error, text):
    with pytest.raises(error) as raised:
        call(my, x)
    assert type(raised.value) is error
    assert str(raised.value) == text
    assert torch.equal(my.leaky_relu(x), torch.nn.functional.leaky_relu(x))  # the next call works


def test_backward_twice(my, x):
    leaf = x.clone().requires_grad_()
    y = my.leaky_relu(leaf).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_an_input_that_was_written_is_found(my, x):
    leaf = x.clone().requires_grad_()
    double = leaf * 1
    y = my.leaky_relu(double).sum()
    double.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
