"""Whole PyTorch modules as functions of JAX."""

import copy
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from module_cases import (
    REFUSED,
    Checks,
    ChecksAlone,
    Network,
    Sides,
    WithOwnKernels,
    assert_near,
    check_large_results,
    total,
)
from torch import nn
from torch.export import Dim

from aten_bridge.jax import module
from aten_bridge.program import NotExportable, save
from aten_bridge.torch import load

NAMESPACE = "bridge_jax_modules"  # for operators in Python


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(3)
    return Network()


@pytest.fixture(scope="module")
def made(network):
    inputs = torch.randn(6, 3, 10), {"bias": torch.randn(4)}
    shapes = ({0: Dim("batch")}, {"bias": None})
    return module(copy.deepcopy(network), inputs, dynamic_shapes=shapes)


@pytest.mark.parametrize("is_jitted", [True, False], ids=["jit", "eager"])
@pytest.mark.parametrize("batch", [6, 1])
@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
def test_values_gradients_and_buffers_are_pytorchs(network, made, batch, trains, is_jitted):
    network = copy.deepcopy(network).train(trains)
    apply, variables = made
    x = torch.randn(batch, 3, 10, requires_grad=True)
    others = {"bias": torch.randn(4, requires_grad=True)}
    expected = network(x, others)
    total(expected).backward()

    def loss_of(params, x, bias):
        results = apply({**variables, "params": params}, x, {"bias": bias}, train=trains)
        results, buffers = results if trains else (results, variables["buffers"])
        return total(results), buffers

    step = jax.value_and_grad(loss_of, argnums=(0, 1, 2), has_aux=True)
    step = jax.jit(step) if is_jitted else step
    given = [jnp.asarray(one.detach().numpy()) for one in (x, others["bias"])]
    (loss, buffers), (of_weights, of_x, of_bias) = step(variables["params"], *given)
    assert_near(loss, total(expected), 1e-5)
    assert_near(of_x, x.grad, 1e-4)
    assert_near(of_bias, others["bias"].grad, 1e-4)
    assert list(variables["params"]) == [name for name, _ in network.named_parameters()]
    for name, parameter in network.named_parameters():
        assert_near(of_weights[name], parameter.grad, 1e-4)
    for name, buffer in network.named_buffers():
        assert_near(buffers[name], buffer, 1e-6)


@pytest.mark.parametrize("is_mapped", [False, True], ids=["call", "vmap"])
@pytest.mark.parametrize("trains", [True, False], ids=["training", "evaluation"])
def test_sides_of_a_condition_are_pytorchs(trains, is_mapped):
    torch.manual_seed(3)
    network = Sides().train(trains)
    apply, variables = module(copy.deepcopy(network), (torch.randn(5, 4),))
    x = torch.stack([torch.randn(5, 4) + shift for shift in (1, -1, 4)]).requires_grad_()

    def sum_of(results):
        y, z = results
        return (y**2).sum() + (z**3).sum()

    sum(sum_of(network(one)) for one in x).backward()

    def loss_of(params, x):
        def loss_of_one(x):
            results = apply({**variables, "params": params}, x, train=trains)
            return sum_of(results[0] if trains else results)

        return jax.vmap(loss_of_one)(x).sum() if is_mapped else sum(map(loss_of_one, x))

    of_weights, of_x = jax.jit(jax.grad(loss_of, argnums=(0, 1)))(
        variables["params"], jnp.asarray(x.detach().numpy())
    )
    assert_near(of_x, x.grad, 1e-4)
    for name, weight in network.named_parameters():
        assert_near(of_weights[name], weight.grad, 1e-4)


@pytest.mark.parametrize("way", ["scan", "donated"])
def test_steps_train_as_pytorch_does(way):
    torch.manual_seed(5)
    network = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Linear(16, 2))
    apply, variables = module(copy.deepcopy(network), (torch.randn(8, 5),))
    batches = torch.randn(20, 8, 5)

    def loss_of(params, buffers, x):
        y, buffers = apply({"params": params, "buffers": buffers}, x, train=True)
        return (y**2).mean(), buffers

    def step(variables, x):
        (loss, buffers), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            variables["params"], variables["buffers"], x
        )
        params = jax.tree.map(lambda p, g: p - 0.05 * g, variables["params"], gradients)
        return {"params": params, "buffers": buffers}, loss

    xs = jnp.asarray(batches.numpy())
    if way == "scan":
        _, losses = jax.jit(lambda v, xs: jax.lax.scan(step, v, xs))(variables, xs)
    else:  # new weights in the memory of the old ones
        losses, one_step = [], jax.jit(step, donate_argnums=0)
        for x in xs:
            given = variables
            variables, loss = one_step(variables, x)
            losses.append(loss)
            assert all(value.is_deleted() for value in jax.tree.leaves(given))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    for x, actual in zip(batches, losses, strict=True):
        optimizer.zero_grad()
        loss = (network(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        assert_near(actual, loss, 1e-4)


@pytest.mark.parametrize("trains", [False, True], ids=["evaluation", "training"])
def test_checks_of_values_are_part_of_a_program(trains):
    apply, variables = module(Checks().train(trains), (torch.eye(3),))

    def run(x):
        results = apply(variables, x, train=trains)
        return results[0] if trains else results

    def loss_of(x):
        return run(x).sum()

    x = torch.eye(3) * 2
    assert_near(run(jnp.asarray(x.numpy())), Checks()(x), 1e-6)
    for text, wrong in REFUSED.items():
        with pytest.raises(RuntimeError, match=text):
            Checks()(wrong)
        for call in (loss_of, jax.jit(jax.grad(loss_of))):  # which runs no forward program
            with pytest.raises((ValueError, RuntimeError), match=f"AtenProgram: {text}"):
                jax.block_until_ready(call(jnp.asarray(wrong.numpy())))


@pytest.mark.parametrize("trains", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("order", [1, 2])
def test_checks_are_made_where_the_gradient_alone_is_read(trains, order):
    apply, variables = module(ChecksAlone(), (torch.ones(3),), gradient_order=order)

    @jax.jit
    @jax.grad
    def gradient(x):
        results = apply(variables, x, train=trains)
        return (results[0] if trains else results).sum()

    assert_near(gradient(jnp.ones(3)), 2 * torch.ones(3), 1e-6)
    with pytest.raises((ValueError, RuntimeError), match='expected a sum below "100"'):
        jax.block_until_ready(gradient(jnp.full(3, 99.0)))


@pytest.mark.parametrize("is_wide", [False, True])
def test_weights_of_uint64(is_wide):
    class Keys(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.tensor([1, 2, 3], dtype=torch.uint64))

        def forward(self, x):
            return x + self.keys.to(torch.int32), self.keys

    with jax.enable_x64(is_wide):
        apply, variables = module(Keys().eval(), (torch.ones(3, dtype=torch.int32),))
        total, keys = jax.jit(apply)(variables, jnp.ones(3, jnp.int32))
    assert total.tolist() == [2, 3, 4]
    assert (str(keys.dtype), keys.tolist()) == ("uint64" if is_wide else "uint32", [1, 2, 3])


def test_a_key_makes_a_random_module_a_pure_function():
    network = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 8), nn.Dropout(0.25))
    x = torch.randn(16, 4)
    apply, variables = module(network, (x,))

    @jax.jit
    def draw(rng):
        return apply(variables, jnp.asarray(x.numpy()), train=True, rng=rng)[0]

    torch.manual_seed(7)
    of_pytorch = network(x).detach().numpy()
    first = draw(jax.random.key(7))
    assert np.array_equal(first, of_pytorch)
    assert np.array_equal(draw(jax.random.PRNGKey(7)), first)
    one, other = jax.random.split(jax.random.key(7))
    assert not np.array_equal(draw(one), draw(other))
    assert "has_side_effect = true" not in draw.lower(one).as_text()
    masks = jax.vmap(draw)(jax.random.split(jax.random.key(7)))
    assert np.array_equal(masks, np.stack([draw(one), draw(other)]))

    def total_of(params):  # its gradient has the mask of its own call
        y, _ = apply({**variables, "params": params}, jnp.asarray(x.numpy()), train=True, rng=one)
        return y.sum()

    gradients = jax.grad(total_of)(variables["params"])
    assert_near(gradients["2.bias"], torch.from_numpy(np.array(mask_of(draw(one)))), 1e-5)


def mask_of(results):
    """What the last dropout multiplied the sums over each column's rows by."""
    return (np.asarray(results) != 0).sum(0) / 0.75


@pytest.mark.parametrize("both_ways", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("make", [nn.LSTM, nn.GRU, nn.RNN])
def test_dropout_between_recurrent_layers_is_pytorchs(make, both_ways):
    torch.manual_seed(5)
    network = make(4, 5, 3, dropout=0.5, bidirectional=both_ways, batch_first=True)
    x = torch.randn(3, 6, 4)
    apply, variables = module(copy.deepcopy(network), (x,))
    given = jnp.asarray(x.numpy())

    @jax.jit
    @jax.value_and_grad
    def step(params):
        inputs = {**variables, "params": params}, given
        (results, _), _ = apply(*inputs, train=True, rng=jax.random.key(7))
        return (results**2).sum()

    torch.manual_seed(7)
    expected = (network(x)[0] ** 2).sum()
    expected.backward()
    loss, gradients = step(variables["params"])
    assert_near(loss, expected, 1e-5)
    for name, parameter in network.named_parameters():
        assert_near(gradients[name], parameter.grad, 1e-4)


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_dropout_draws_in_the_order_of_the_memory(twice):
    class Transposed(nn.Module):
        def forward(self, x):
            x = x.transpose(0, 1)
            dropped = nn.functional.dropout(x, 0.5, self.training)
            return dropped + nn.functional.dropout(x, 0.5, self.training) if twice else dropped

    torch.manual_seed(5)
    network = nn.Sequential(nn.Linear(4, 5), Transposed(), nn.Tanh())
    x = torch.randn(3, 6, 4)
    apply, variables = module(copy.deepcopy(network), (x,))
    torch.manual_seed(7)
    expected = (network(x) ** 2).sum()
    expected.backward()

    @jax.value_and_grad
    def step(params):
        inputs = {**variables, "params": params}, jnp.asarray(x.numpy())
        return (apply(*inputs, train=True, rng=jax.random.key(7))[0] ** 2).sum()

    loss, gradients = jax.jit(step)(variables["params"])
    assert_near(loss, expected, 1e-5)
    assert_near(gradients["0.weight"], network[0].weight.grad, 1e-4)


@pytest.mark.parametrize("trains", [False, True], ids=["evaluation", "training"])
def test_what_a_gradient_needs_keeps_its_64_bits(trains):
    class Wide(nn.Module):
        def forward(self, x, count):
            large = torch.exp(100 * x.double())  # more than a float32 holds
            z = torch.complex(large, -large).conj()
            result = (large.log() + (z * z / large).imag.log()).float() * (count * 10**10)
            return result, large  # which the host gets as infinity

    torch.manual_seed(5)
    x, count = torch.rand(2, 3) + 1, torch.arange(6).reshape(2, 3)
    apply, variables = module(Wide(), (x, count))

    @jax.jit
    @jax.grad
    def gradient_of(x):
        results = apply(variables, x, jnp.asarray(count.numpy()), train=trains)
        return (results[0] if trains else results)[0].sum()

    given = jnp.asarray(x.numpy())
    Wide()(x.requires_grad_(), count)[0].sum().backward()
    assert_near(gradient_of(given), x.grad, 1e-5)


def test_recurrent_layers_that_drop_nothing_have_no_effect():
    x = torch.randn(3, 6, 4)
    given = jnp.asarray(x.numpy())
    for layer, trains in (nn.LSTM(4, 5, 2), True), (nn.GRU(4, 5, 2, dropout=0.5), False):
        apply, variables = module(layer, (x,))
        step = jax.jit(lambda x, own=apply, v=variables, train=trains: own(v, x, train=train))
        assert "has_side_effect = true" not in step.lower(given).as_text()


def test_gradients_of_weights_on_each_device_are_summed():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("devices",))
    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map

    torch.manual_seed(5)
    network = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh()).eval()
    shapes = ({0: Dim("batch")},)
    apply, variables = module(network, (torch.randn(4, 4),), dynamic_shapes=shapes)
    whole, parts = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("devices")

    def loss_of(params, x):
        y = apply({**variables, "params": params}, x)
        return jax.lax.psum((y**2).sum(), "devices")

    x = torch.randn(2 * len(jax.devices()), 4)
    spread = shard_map(loss_of, mesh=mesh, in_specs=(whole, parts), out_specs=whole)
    gradients = jax.jit(jax.grad(spread))(variables["params"], jnp.asarray(x.numpy()))
    (network(x) ** 2).sum().backward()
    for name, parameter in network.named_parameters():
        assert_near(gradients[name], parameter.grad, 1e-4)


@pytest.mark.skipif(not hasattr(jax.sharding, "reshard"), reason="JAX 0.6 checks no such types")
@pytest.mark.filterwarnings("ignore:apply. expected arrays that are whole on each device")
@pytest.mark.parametrize("is_jitted", [True, False], ids=["jit", "eager"])
def test_explicit_mesh(is_jitted):
    torch.manual_seed(5)
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
    x = torch.randn(8, 4)  # with the sizes of a weight
    apply, variables = module(network, (x,))

    def loss_of(params, x):
        return (apply({**variables, "params": params}, x) ** 2).sum()

    gradients_of = jax.grad(loss_of, argnums=(0, 1))
    gradients_of = jax.jit(gradients_of) if is_jitted else gradients_of
    explicit = jax.sharding.AxisType.Explicit
    spec = jax.sharding.PartitionSpec("a", None)
    with jax.set_mesh(jax.make_mesh((2,), ("a",), axis_types=(explicit,))):
        given = jax.device_put(jnp.asarray(x.numpy()), spec)
        of_weights, of_x = gradients_of(variables["params"], given)
    assert of_x.sharding.spec == spec
    assert not any(of_weights["0.weight"].sharding.spec)
    (network(x.requires_grad_()) ** 2).sum().backward()
    assert_near(of_x, x.grad, 1e-4)
    assert_near(of_weights["0.weight"], network[0].weight.grad, 1e-4)


def test_numbers_of_8_bits():
    class Rounded(nn.Module):
        def forward(self, x):
            return x.to(torch.float8_e5m2).float() * x, x.to(torch.float8_e4m3fn)

    x = torch.randn(3, 4)
    apply, variables = module(Rounded(), (x,))
    product, rounded = apply(variables, jnp.asarray(x.numpy()))
    known = Rounded()(x)
    assert np.array_equal(product, known[0])
    assert rounded.dtype == jnp.float8_e4m3fn
    assert np.array_equal(rounded.astype(jnp.float32), known[1].float())
    network = nn.Linear(2, 2)
    network.register_buffer("rounded", known[1])
    with pytest.raises(NotExportable) as error:
        module(network, (torch.ones(1, 2),))
    assert str(error.value) == (
        "expected weights of dtypes that NumPy has, or of bfloat16, got one of float8_e4m3fn; give "
        "it as an input, or convert it"
    )


def test_a_key_that_is_none_is_refused():
    apply, variables = module(nn.Dropout(0.5), (torch.ones(2),))
    with pytest.raises(TypeError) as error:
        apply(variables, jnp.ones(2), train=True, rng=jax.random.split(jax.random.key(7)))
    assert str(error.value) == "apply: rng: expected one key of jax.random, got key<fry> [2]"
    with pytest.raises(TypeError) as error:
        apply(variables, jnp.ones(2), train=True, rng=7)
    assert str(error.value) == (
        "apply: rng: expected one key of jax.random, such as jax.random.key(7), got 7"
    )


class Hashes(nn.Module):
    """With numbers of 64 bits."""

    def __init__(self, number):
        super().__init__()
        dtype = torch.int64 if isinstance(number, int) else torch.float64
        self.register_buffer("factor", torch.tensor(number, dtype=dtype))

    def forward(self, ids):
        return ids * self.factor % 97 + torch.tensor([7, 8])


@pytest.mark.parametrize(
    ("number", "dtype"), [(2654435761, "int32"), (-(2**40), "int32"), (1e60, "float32")]
)
def test_numbers_that_jax_would_cut_are_refused(number, dtype):
    ids = torch.tensor([2, 3])
    with pytest.raises(ValueError, match="module: ") as error:
        module(Hashes(number), (ids,))
    assert str(error.value) == (
        f"module: 'factor': expected numbers that JAX's {dtype} can hold, got {number}; set "
        "jax_enable_x64 before the module is made"
    )
    with jax.enable_x64(True):
        apply, variables = module(Hashes(number), (ids,))
        result = apply(variables, jnp.asarray(ids.numpy()))
    assert np.array_equal(result, Hashes(number)(ids))
    apply, variables = module(Hashes(5), (ids,))
    assert np.array_equal(apply(variables, jnp.asarray(ids.numpy())), Hashes(5)(ids))


def test_what_xla_calls_is_told():
    network = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
    apply, variables = module(network, (torch.ones(3, 4),))

    def loss_of(params, rng):
        return apply({**variables, "params": params}, jnp.ones((3, 4)), train=True, rng=rng)[
            0
        ].sum()

    checks = [jax.export.DisabledSafetyCheck.custom_call(name) for name in apply.targets]
    gradient = jax.jit(jax.grad(loss_of))
    given = variables["params"], jax.random.PRNGKey(7)
    exported = jax.export.export(gradient, disabled_checks=checks)(*given)
    for name, one in exported.call(*given).items():
        assert np.array_equal(one, gradient(*given)[name])


def test_wrong_inputs_are_an_error_in_words(made):
    apply, variables = made
    x, bias = jnp.ones((6, 3, 10)), jnp.ones(4)
    for given, kind, text in (
        (
            (jnp.ones((6, 3, 9)), {"bias": bias}),
            ValueError,
            "AtenProgram: %x: expected float32 [6, 3, 10], got float32 [6, 3, 9]; make the module "
            "with dynamic_shapes=, {2: Dim(...)} for this input, if its sizes may change",
        ),
        ((x,), TypeError, "apply: expected 2 inputs of the module, got 1"),
        ((x, bias), TypeError, "apply: input 1: expected a dict, got a tensor"),
        (
            (x, {"bias": 4.0}),
            TypeError,
            "apply: input 1['bias']: expected a tensor, got 4.0",
        ),
    ):
        with pytest.raises(kind) as error:
            apply(variables, *given)
        assert str(error.value) == text


def test_weights_with_other_names_are_an_error_in_words(made):
    apply, variables = made
    params = dict(variables["params"])
    params["head.weigth"] = params.pop("head.weight")
    given = jnp.ones((6, 3, 10)), {"bias": jnp.ones(4)}
    with pytest.raises(ValueError, match="apply: ") as error:
        apply({**variables, "params": params}, *given)
    assert str(error.value) == (
        "apply: params: expected the module's weights, got none of 'head.weight'; 'head.weigth', "
        "which the module does not have; did you mean 'head.weight'?"
    )
    with pytest.raises(ValueError, match="apply: ") as error:
        apply({"params": variables["params"]}, *given)
    assert str(error.value) == (
        "apply: buffers: expected the module's weights, got none of 'scale'; none of "
        "'norm.running_mean'; none of 'norm.running_var'; none of 'norm.num_batches_tracked'"
    )


def test_weights_of_numpys(network, made):
    apply, variables = made
    weights = jax.tree.map(np.asarray, variables)
    x, bias = torch.ones(2, 3, 10), torch.ones(4)
    results = apply(weights, x.numpy(), {"bias": bias.numpy()})
    assert_near(results["logits"], network.eval()(x, {"bias": bias})["logits"], 1e-5)

    def loss(params, variables):
        given = {**variables, "params": params}
        return apply(given, x.numpy(), {"bias": bias.numpy()})["logits"].sum()

    gradients = jax.grad(loss)(weights["params"], weights)
    jax.tree.map(
        np.testing.assert_array_equal, gradients, jax.grad(loss)(variables["params"], variables)
    )
    weights["params"]["head.weight"] = weights["params"]["head.weight"].T
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        apply(weights, x.numpy(), {"bias": bias.numpy()})
    assert str(error.value) == (
        "AtenProgram: %p_head_weight: expected float32 [4, 8], got float32 [8, 4]"
    )


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_where_a_module_is_made_is_no_affair_of_its_gradients(context):
    network = nn.Linear(3, 2)
    with context():
        apply, variables = module(network, (torch.ones(4, 3),))
        of_x = jax.grad(lambda x: apply(variables, x).sum())(jnp.ones((4, 3)))
    assert_near(of_x, network.weight.sum(0).expand(4, 3), 1e-6)


def test_a_step_of_a_file_is_that_of_the_module(network, made, tmp_path):
    inputs = torch.randn(6, 3, 10), {"bias": torch.randn(4)}
    shapes = ({0: Dim("batch")}, {"bias": None})
    save(network, tmp_path / "network", inputs, dynamic_shapes=shapes)
    given = jnp.ones((4, 3, 10)), {"bias": jnp.ones(4)}

    def step(apply, variables):
        def loss_of(params):
            results, buffers = apply({**variables, "params": params}, *given, train=True)
            return total(results), buffers

        return jax.jit(jax.value_and_grad(loss_of, has_aux=True))(variables["params"])

    results = [step(*one) for one in (made, module(tmp_path / "network"))]
    leaves = [jax.tree.leaves(result) for result in results]
    assert all(np.array_equal(one, other) for one, other in zip(*leaves, strict=True))


WITHOUT_PYTORCH = """
import sys
sys.modules["torch"] = None  # makes its import fail
import jax, jax.numpy as jnp
from aten_bridge.jax import module

apply, variables = module(sys.argv[1])
def loss_of(params):
    y, buffers = apply({**variables, "params": params}, jnp.ones((2, 4)), train=True)
    return y.sum(), buffers
(loss, buffers), gradients = jax.jit(jax.value_and_grad(loss_of, has_aux=True))(variables["params"])
assert gradients["weight"].dtype == jnp.bfloat16
print(gradients["weight"].astype(float).tolist(), int(buffers["count"]))
"""


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4).bfloat16())
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x):
        self.count += 1
        return x.bfloat16() * self.weight * self.count


def test_a_file_trains_without_importing_pytorch(tmp_path):
    save(Counts(), tmp_path / "counts", (torch.ones(2, 4),))
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_PYTORCH, tmp_path / "counts"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "[8.0, 8.0, 8.0, 8.0] 4\n"


def test_other_values_than_variables_and_modes_are_named(made):
    apply, variables = made
    x, bias = jnp.ones((6, 3, 10)), {"bias": jnp.ones(4)}
    begin = "apply: expected the module's variables first, a dict with 'params' and 'buffers', got "
    weights = {"head.weight": 1, "head.bias": 2}
    for given, got in (
        (x, "an array"),
        (None, "another value"),
        (weights, "one with 'head.weight', 'head.bias'"),
        ({}, "one with nothing"),
    ):
        with pytest.raises(TypeError) as error:
            apply(given, x, bias)
        assert str(error.value) == begin + got
    with pytest.raises(TypeError, match="apply: train: ") as error:
        jax.jit(apply)(variables, x, bias, train=True)
    assert str(error.value) == (
        "apply: train: expected True or False, which a compiled function knows, got another value; "
        "give jax.jit static_argnames='train', or compile lambda variables, x: apply(variables, x, "
        "train=True)"
    )
    trained, _ = jax.jit(apply, static_argnames="train")(variables, x, bias, train=True)
    assert trained["logits"].shape == (6, 4)
    for given, got in (None, "None"), ([1.0], "[1.0]"), (x, "an array"):
        with pytest.raises(TypeError, match="apply: params: ") as error:
            apply({**variables, "params": given}, x, bias)
        assert str(error.value) == f"apply: params: expected a dict of arrays, got {got}"
    with pytest.raises(ValueError, match="apply: params: ") as error:
        apply({**variables, "params": {**variables["params"], 0: x}}, x, bias)
    assert str(error.value) == (
        "apply: params: expected the module's weights, got 0, which the module does not have"
    )
    params = {**variables["params"], "head.bias": nn.Parameter(torch.ones(4))}
    with pytest.raises(TypeError, match="apply: params: ") as error:
        apply({**variables, "params": params}, x, bias)
    assert str(error.value) == (
        "apply: params: 'head.bias': expected an array, got a torch.Parameter; convert it, by way "
        "of NumPy"
    )


def test_other_derivatives_are_refused_in_words(made):
    apply, variables = made

    def total_of(x):
        return total(apply(variables, x, {"bias": jnp.ones(4)}))

    x = jnp.ones((6, 3, 10))
    with pytest.raises(TypeError) as error:
        jax.jacfwd(total_of)(x)
    assert str(error.value) == (
        "apply: expected reverse mode, as of jax.grad, jax.vjp and jax.jacrev, since gradient "
        "kernels go backward, got forward mode, as of jax.jvp, jax.jacfwd and jax.hessian"
    )
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        jax.grad(lambda x: jax.grad(total_of)(x).sum())(x)
    assert str(error.value) == (
        "AtenProgram: expected gradients of the order that the module was made with, got one of a "
        "higher order; make it with gradient_order=2, or more; 1 is the highest where gradients "
        "read buffers that a call changes, as in batch normalization in training mode, and where "
        "gradients are constants"
    )


def test_gradients_of_gradients():
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1))
    shapes = ({0: Dim("batch")},)
    apply, variables = module(
        network, (torch.randn(4, 3),), dynamic_shapes=shapes, gradient_order=3
    )
    x = torch.randn(5, 3, requires_grad=True)
    (inner,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    expected = torch.autograd.grad((inner**2).sum(), [x, network[0].weight], create_graph=True)
    (third,) = torch.autograd.grad((expected[0] ** 2).sum(), x)
    params, given = variables["params"], jnp.asarray(x.detach().numpy())

    def apply_once(params, x, trains):
        results = apply({**variables, "params": params}, x, train=trains)
        return (results[0] if trains else results).sum()

    for trains in (False, True):

        def penalty(params, x, trains=trains):
            return (jax.grad(apply_once, 1)(params, x, trains) ** 2).sum()

        for transform in (jax.jit, lambda function: function):
            of_params, of_x = transform(jax.grad(penalty, (0, 1)))(params, given)
            assert_near(of_x, expected[0], 1e-4)
            assert_near(of_params["0.weight"], expected[1], 1e-4)
            square = transform(lambda x, run=penalty: (jax.grad(run, 1)(params, x) ** 2).sum())
            assert_near(jax.grad(square)(given), third, 1e-4)
        with pytest.raises(ValueError, match="AtenProgram: expected gradients of the order"):
            jax.grad(lambda x, run=square: (jax.grad(run)(x) ** 2).sum())(given)


def test_gradients_of_gradients_draw_again():
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 1))
    apply, variables = module(network, (torch.randn(4, 3),), gradient_order=2)
    x = torch.randn(4, 3, requires_grad=True)
    torch.manual_seed(7)
    (inner,) = torch.autograd.grad(network(x).sum(), x, create_graph=True)
    of_x, of_weight = torch.autograd.grad((inner**2).sum(), [x, network[0].weight])

    def penalty(params, x, rng):
        def total_of(x):
            return apply({**variables, "params": params}, x, train=True, rng=rng)[0].sum()

        return (jax.grad(total_of)(x) ** 2).sum()

    params, given = variables["params"], jnp.asarray(x.detach().numpy())
    for transform in (jax.jit, lambda function: function):
        gradients = transform(jax.grad(penalty, (0, 1)))
        of_params, found = gradients(params, given, jax.random.key(7))
        assert_near(found, of_x, 1e-4)
        assert_near(of_params["0.weight"], of_weight, 1e-4)
    with pytest.raises(ValueError, match="apply: ") as error:
        penalty(params, given, None)
    assert str(error.value) == (
        "apply: expected a key for a gradient that draws the module's random numbers again, got "
        "none; give rng=jax.random.key(0)"
    )


def test_gradients_of_gradients_of_complex_numbers_are_jaxs():
    class Cube(nn.Module):
        def forward(self, x):
            return x * x * x

    apply, variables = module(Cube(), (torch.ones(2, dtype=torch.complex64),), gradient_order=2)
    x = jnp.array([3 - 1j, -4 + 2j], dtype=jnp.complex64)

    def second(cube):
        def total(x):
            return (cube(x) * (1 + 2j)).real.sum()

        return jax.grad(lambda x: (jax.grad(total)(x) * (2 - 1j)).imag.sum())

    actual = second(lambda x: apply(variables, x))(x)
    assert np.allclose(actual, second(lambda x: x * x * x)(x), rtol=1e-5)


class Experts(nn.Module):
    """A mixture of experts: sizes inside depend on values."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 2)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        result = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            (rows,) = torch.where(chosen == i)
            result = result.index_add(0, rows, expert(x[rows]).tanh())
        return result


@pytest.mark.parametrize("transform", [jax.jit, lambda function: function], ids=["jit", "eager"])
def test_sizes_inside_may_depend_on_values(transform):
    torch.manual_seed(8)
    network = Experts()
    apply, variables = module(network, (torch.randn(6, 4),))
    x = torch.randn(6, 4, requires_grad=True)
    (network(x) ** 2).sum().backward()

    def loss_of(params, x):
        return (apply({**variables, "params": params}, x) ** 2).sum()

    given = jnp.asarray(x.detach().numpy())
    of_params, of_x = transform(jax.grad(loss_of, (0, 1)))(variables["params"], given)
    assert_near(of_x, x.grad, 1e-4)
    for name, parameter in network.named_parameters():
        if parameter.grad is not None:
            assert_near(of_params[name], parameter.grad, 1e-4)


def test_arrays_of_numpy_are_taken(made):
    apply, variables = made
    x, bias = np.ones((6, 3, 10)), np.ones(4)
    known = apply(variables, jnp.asarray(x), {"bias": jnp.asarray(bias)})
    results = apply(variables, x, {"bias": bias})
    assert np.array_equal(results["logits"], known["logits"])


def test_gradients_of_complex_numbers_are_jaxs():
    class Square(nn.Module):
        def forward(self, x):
            return x * x

    apply, variables = module(Square(), (torch.ones(2, dtype=torch.complex64),))
    x = jnp.array([3 - 1j, -4 + 2j], dtype=jnp.complex64)

    def total_of(square):
        return lambda x: square(x).real.sum() + square(x).imag.sum()

    gradient = jax.grad(total_of(lambda x: apply(variables, x)))(x)
    assert np.allclose(gradient, jax.grad(total_of(lambda x: x * x))(x))


def test_sizes_may_depend_on_values():
    class Kept(nn.Module):
        def forward(self, x):
            kept = x[x > 0]
            return kept * 2, torch.nonzero(x)

    x = torch.tensor([1.0, -2, 3, 4])
    apply, variables = module(Kept(), (x,))
    for given in (x, torch.tensor([-1.0, -2, -3, -4])):
        results = apply(variables, jnp.asarray(given.numpy()))
        for result, known in zip(results, Kept()(given), strict=True):
            assert np.array_equal(result, known.numpy())
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        jax.jit(apply)(variables, jnp.asarray(x.numpy()))
    assert str(error.value) == (
        "AtenProgram: expected a module whose results have sizes that follow from those of its "
        "inputs, got one whose sizes depend on values; call it outside of jax.jit, jax.vmap and "
        "jax.checkpoint, or pad the results inside of it, by torch.nn.functional.pad, to the "
        "largest size that they can have"
    )


def test_sizes_that_depend_on_random_numbers_are_those_of_a_key():
    class Draws(nn.Module):
        def forward(self, x):
            return x[torch.rand(x.shape[0]) > 0.5]

    x = torch.arange(64.0)
    apply, variables = module(Draws(), (x,))
    torch.manual_seed(7)
    result = apply(variables, jnp.asarray(x.numpy()), rng=jax.random.key(7))
    assert np.array_equal(result, Draws()(x).numpy())
    with pytest.raises(ValueError, match="AtenProgram: ") as error:
        apply(variables, jnp.asarray(x.numpy()))
    assert str(error.value) == (
        "AtenProgram: expected results that are the same when they are computed twice, once for "
        "their sizes, got those of a call with an effect; a module takes rng"
    )


# ===--- vmap, optimizers, and kernels of our own ---===


@pytest.fixture(scope="module")
def layers():
    torch.manual_seed(5)
    network = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 2))
    return network, module(network, (torch.randn(4, 3),), dynamic_shapes=({0: Dim("n")},))


def loss_of(apply):
    return lambda params, x: (apply({"params": params, "buffers": {}}, x) ** 2).mean()


def gradients_of(network, x):
    """PyTorch's, by the names of weights."""
    network.zero_grad()
    (network(x) ** 2).mean().backward()
    return {name: parameter.grad for name, parameter in network.named_parameters()}


def test_vmap_of_calls_and_gradients_of_each_example(layers):
    network, (apply, variables) = layers
    xs = torch.randn(3, 4, 3)
    given = jnp.asarray(xs.numpy())
    results = jax.jit(jax.vmap(apply, (None, 0)))(variables, given)
    assert_near(results, torch.stack([network(x) for x in xs]), 1e-5)
    of_examples = jax.jit(jax.vmap(jax.grad(loss_of(apply)), (None, 0)))
    gradients = of_examples(variables["params"], given)
    known = [gradients_of(network, x) for x in xs]
    for name, gradient in gradients.items():
        assert_near(gradient, torch.stack([one[name] for one in known]), 1e-4)


def test_vmap_of_weights(layers):
    network, (apply, variables) = layers
    networks = [network, *(copy.deepcopy(network) for _ in range(2))]
    for one in networks[1:]:
        for layer in (one[0], one[3]):
            layer.reset_parameters()
    x = torch.randn(4, 3)
    given = jnp.asarray(x.numpy())
    stacked = {
        name: jnp.stack([jnp.asarray(one.state_dict()[name].numpy()) for one in networks])
        for name in variables["params"]
    }
    step = jax.jit(jax.vmap(jax.value_and_grad(loss_of(apply)), (0, None)))
    losses, gradients = step(stacked, given)
    assert_near(losses, torch.stack([(one(x) ** 2).mean() for one in networks]), 1e-5)
    known = [gradients_of(one, x) for one in networks]
    for name, gradient in gradients.items():
        assert_near(gradient, torch.stack([one[name] for one in known]), 1e-4)


def test_steps_of_optax_are_pytorchs():
    optax = pytest.importorskip("optax")
    torch.manual_seed(5)
    network = nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.Linear(8, 2))
    apply, variables = module(copy.deepcopy(network), (torch.randn(4, 3),))
    optimizer = optax.adamw(1e-3, weight_decay=0.01)
    state = optimizer.init(variables["params"])

    @jax.jit
    def step(variables, state, x, key):
        def loss_of(params):
            y, buffers = apply({**variables, "params": params}, x, train=True, rng=key)
            return (y**2).mean(), buffers

        params = variables["params"]
        (loss, buffers), gradients = jax.value_and_grad(loss_of, has_aux=True)(params)
        updates, state = optimizer.update(gradients, state, params)
        return {"params": optax.apply_updates(params, updates), "buffers": buffers}, state, loss

    of_pytorch = torch.optim.AdamW(network.parameters(), 1e-3, weight_decay=0.01)
    for x in torch.randn(10, 4, 3):
        of_pytorch.zero_grad()
        known = (network(x) ** 2).mean()
        known.backward()
        of_pytorch.step()
        variables, state, loss = step(variables, state, jnp.asarray(x.numpy()), jax.random.key(7))
        assert_near(loss, known, 1e-4)
    for kind in ("params", "buffers"):
        for name, value in variables[kind].items():
            assert_near(value, network.state_dict()[name], 1e-4)


@pytest.mark.parametrize("transform", [jax.jit, lambda function: function], ids=["jit", "eager"])
def test_kernels_of_our_own(library, transform):
    load(library)
    network, x = WithOwnKernels(), torch.randn(5, 3)
    apply, variables = module(network, (x,))
    step = transform(jax.value_and_grad(loss_of(apply)))
    loss, gradients = step(variables["params"], jnp.asarray(x.numpy()))
    assert_near(loss, (network(x) ** 2).mean(), 1e-5)
    for name, known in gradients_of(network, x).items():
        assert_near(gradients[name], known, 1e-4)


@pytest.mark.parametrize("transform", [jax.jit, lambda function: function], ids=["jit", "eager"])
def test_large_results_are_pytorchs(transform):
    def step(network):
        apply, variables = module(network, (torch.randn(network.SHAPE),))

        def loss_of(params, x):
            results, _ = apply({**variables, "params": params}, x, train=True)
            return sum((result**2).mean() for result in results), results

        of_both = transform(jax.value_and_grad(loss_of, argnums=(0, 1), has_aux=True))

        def run(x):
            (loss, results), (of_params, of_x) = of_both(variables["params"], jnp.asarray(x))
            return loss, results, of_params["weight"], of_x

        return run

    check_large_results(step)


@pytest.mark.parametrize(("rows", "is_moved"), [(256, True), (2, False)])
def test_a_large_result_is_moved_to_jaxs_memory_before_it_is_read_again(mine, rows, is_moved):
    places = []

    def look(x):
        places.append(x.data_ptr())
        return x.sum()

    mine.define("look(Tensor x) -> Tensor")
    mine.impl("look", look, "CPU")
    torch.library.register_fake("bridge_jax_modules::look", lambda x: x.new_empty(()), lib=mine)

    class Looks(nn.Module):
        def forward(self, x):
            y = x.exp()
            return y, torch.ops.bridge_jax_modules.look(y)

    apply, variables = module(Looks(), (torch.randn(rows, 128),))
    y, _ = jax.jit(apply)(variables, jnp.ones((rows, 128)))
    assert (places[-1] == y.unsafe_buffer_pointer()) == is_moved
