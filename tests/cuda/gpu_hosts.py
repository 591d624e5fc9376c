"""Kernels for CUDA in PyTorch and in JAX, on a GPU: values, gradients, compiled programs, streams.

    python gpu_hosts.py <test_cuda_typed.so> [<device, cuda or cpu>]

Ends with a figure for each host: a call beside the host's own operator. What the machine lacks
(JAX, or one for CUDA) is said and left out. `run_on_gpu.sh` runs it; on the CPU, with the same
kernels compiled for it, it tries the script itself.
"""

import functools
import os
import statistics
import sys
import time
import traceback

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # PyTorch takes of the same GPU
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import torch

ROUNDS = 41


def equal(got, expected, tolerance=1e-5):
    got, expected = (
        np.asarray(v.detach().cpu() if torch.is_tensor(v) else v) for v in (got, expected)
    )
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), (got, expected)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def error_of(call):
    try:
        call()
    except (RuntimeError, TypeError, ValueError) as error:
        return str(error)
    raise AssertionError("expected an error")


def median_ratio(first, second):
    """Microseconds of a call of `first`, and the median of the ratios to `second` in turn."""
    times, ratios = [], []
    for _ in range(ROUNDS):
        pair = []
        for call in (first, second):
            begin = time.perf_counter()
            call()
            pair.append(time.perf_counter() - begin)
        times.append(pair[0])
        ratios.append(pair[0] / pair[1])
    return statistics.median(times) * 1e6, statistics.median(ratios)


class PyTorch:
    def __init__(self, library, device):
        from aten_bridge.torch import load

        self.ops, self.device = load(library), device

    def tensor(self, *shape, **options):
        generator = torch.Generator().manual_seed(len(shape))
        x = torch.randn(*shape, generator=generator).to(self.device)
        return x.requires_grad_(**options) if options else x

    def sync(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def test_values(self):
        x = self.tensor(3, 5)
        equal(self.ops.leaky_relu(x, negative_slope=0.2), torch.nn.functional.leaky_relu(x, 0.2))
        for result, expected in zip(self.ops.top_k(x, k=2), torch.topk(x, 2), strict=True):
            equal(result, expected)
        equal(self.ops.cat([x, x], dim=1), torch.cat([x, x], 1))
        equal(self.ops.layer_norm(x, None), torch.nn.functional.layer_norm(x, (5,)))
        out = torch.empty_like(x)
        assert self.ops.leaky_relu(x, out=out) is out
        equal(out, torch.nn.functional.leaky_relu(x))
        equal(self.ops.silu(x.t()), torch.nn.functional.silu(x.t()))
        equal(self.ops.silu(x[:0]), x[:0])
        assert self.ops.silu(x).device == x.device

    def test_gradients(self):
        x = self.tensor(4, 5, requires_grad=True)
        (got,) = torch.autograd.grad(self.ops.silu(x).square().sum(), x)
        (expected,) = torch.autograd.grad(torch.nn.functional.silu(x).square().sum(), x)
        equal(got, expected)
        x = self.tensor(3, 4).double().requires_grad_()
        assert torch.autograd.gradcheck(self.ops.silu, (x,))
        assert torch.autograd.gradgradcheck(self.ops.silu, (x,))
        image, weight = self.tensor(2, 3, 8, 8), self.tensor(4, 3, 3, 3)
        bias = self.tensor(4)
        inputs = [v.double().requires_grad_() for v in (image, weight, bias)]
        loss = self.ops.conv2d(*inputs, padding=[1, 1]).square().sum()
        expected = torch.nn.functional.conv2d(*inputs, padding=1).square().sum()
        for pair in zip(
            torch.autograd.grad(loss, inputs), torch.autograd.grad(expected, inputs), strict=True
        ):
            equal(*pair)

    def test_compiled(self):
        f = torch.compile(lambda x: self.ops.silu(x * 2).sum() + self.ops.leaky_relu(x).mean())
        x = self.tensor(16, 7, requires_grad=True)
        expected = torch.nn.functional.silu(x * 2).sum() + torch.nn.functional.leaky_relu(x).mean()
        with torch.no_grad():
            equal(f(x), expected)
        g = torch.compile(lambda x: self.ops.silu(x * 2).sum())
        g(x).backward()
        y = x.detach().clone().requires_grad_()
        torch.nn.functional.silu(y * 2).sum().backward()
        equal(x.grad, y.grad)

    def test_streams(self):
        if self.device != "cuda":
            return
        streams = [torch.cuda.Stream() for _ in range(4)]
        inputs = [torch.full((1 << 22,), float(i), device="cuda") for i in range(4)]
        torch.cuda.synchronize()
        results = []
        for stream, x in zip(streams, inputs, strict=True):
            with torch.cuda.stream(stream):
                for _ in range(20):
                    x = self.ops.leaky_relu(x + 1)
                results.append(x)
            assert torch.cuda.current_stream() == torch.cuda.default_stream()
        torch.cuda.synchronize()
        for i, result in enumerate(results):
            assert result.min().item() == result.max().item() == i + 20

    def test_captured(self):
        if self.device != "cuda":
            return
        x = self.tensor(100)
        self.ops.silu(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = self.ops.silu(self.ops.leaky_relu(x))
        x.copy_(torch.linspace(-1, 1, 100))
        graph.replay()
        equal(y, torch.nn.functional.silu(torch.nn.functional.leaky_relu(x)))
        f = torch.compile(lambda x: self.ops.silu(x * 2) + 1, mode="reduce-overhead")
        for _ in range(4):
            equal(f(x), torch.nn.functional.silu(x * 2) + 1)

    def test_state(self):
        if self.device != "cuda":
            return
        x = self.tensor(5)
        equal(self.ops.add_table(x, size=5), x + torch.arange(5.0, device="cuda"))

    def test_errors(self):
        x = self.tensor(3)
        assert error_of(lambda: self.ops.leaky_relu(x.int())) == (
            "LeakyRelu: input 0 'x': expected float16|bfloat16|float32|float64, got \"int32\" with "
            "shape [3]"
        )
        if self.device == "cuda":
            assert error_of(lambda: self.ops.cat([x, x.cpu()], dim=0)) == (
                "Cat: input 1: expected a tensor on cuda:0, got float32 [3] on cpu"
            )

    def calls(self, op, x):
        self.sync()
        for _ in range(200):
            op(x, 0.01)
        self.sync()

    def figures(self):
        for shape in ((4, 4), (1024, 1024)):
            x = self.tensor(*shape)
            ways = torch.ops.test_cuda_typed.leaky_relu, torch.ops.aten.leaky_relu
            with torch.no_grad():
                self.calls(ways[0], x)
                time_, ratio = median_ratio(*(functools.partial(self.calls, op, x) for op in ways))
            print(
                f"PyTorch, leaky_relu of {shape}: {time_ / 200:.2f} us a call, {ratio:.2f} times "
                "torch.ops.aten.leaky_relu"
            )


class Jax:
    def __init__(self, library, device):
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp, self.library, self.device = jax, jnp, library, device
        if device == "cuda" and jax.default_backend() != "gpu":
            raise ImportError(f"JAX {jax.__version__} has the backend {jax.default_backend()}")

    def kernel(self, name, *arguments, **options):
        from aten_bridge.jax import kernel

        return kernel(f"{self.library}:{name}", *arguments, **options)

    def array(self, *shape, dtype="float32"):
        return self.jnp.asarray(np.random.default_rng(len(shape)).normal(size=shape).astype(dtype))

    def test_values(self):
        jax, x = self.jax, self.array(3, 5)
        leaky_relu = self.kernel("LeakyRelu", negative_slope=0.2)
        equal(leaky_relu(x), jax.nn.leaky_relu(x, 0.2))
        equal(jax.jit(leaky_relu)(x), jax.nn.leaky_relu(x, 0.2))
        equal(jax.jit(self.kernel("Cat", dim=1))((x, x)), self.jnp.concatenate([x, x], 1))
        equal(jax.jit(lambda x: leaky_relu(x.T) * 2)(x), jax.nn.leaky_relu(x.T, 0.2) * 2)
        assert jax.jit(leaky_relu)(x).devices() == x.devices()
        equal(jax.jit(leaky_relu)(x[:0]), x[:0])

    def test_gradients(self):
        jax = self.jax
        silu = self.kernel("Silu", grad=("SiluGrad", "SiluGradGrad"))
        x = self.array(4, 5)
        equal(
            jax.jit(jax.grad(lambda x: silu(x).sum()))(x),
            jax.grad(lambda x: jax.nn.silu(x).sum())(x),
        )
        equal(
            jax.jit(jax.jacrev(jax.jacrev(silu)))(x[0]), jax.jacrev(jax.jacrev(jax.nn.silu))(x[0])
        )
        conv = self.kernel("Conv2d", grad="Conv2dGrad", padding=[1, 1])
        inputs = self.array(2, 3, 8, 8), self.array(4, 3, 3, 3), self.array(4)

        def own(x, weight, bias):
            y = jax.lax.conv_general_dilated(x, weight, (1, 1), [(1, 1), (1, 1)])
            return y + bias[:, None, None]

        got = jax.jit(jax.grad(lambda *v: conv(*v).sum(), argnums=(0, 1, 2)))(*inputs)
        expected = jax.grad(lambda *v: own(*v).sum(), argnums=(0, 1, 2))(*inputs)
        for pair in zip(got, expected, strict=True):
            equal(*pair, tolerance=2e-3)  # TF32

    def test_transformations(self):
        jax, x = self.jax, self.array(6, 5)
        leaky_relu = self.kernel("LeakyRelu", negative_slope=0.5)
        equal(jax.jit(jax.vmap(leaky_relu))(x), jax.nn.leaky_relu(x, 0.5))
        y, _ = jax.jit(lambda x: jax.lax.scan(lambda c, v: (leaky_relu(c + v), None), x[0], x))(x)
        c = x[0]
        for v in x:
            c = jax.nn.leaky_relu(c + v, 0.5)
        equal(y, c)
        many = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda _, v: leaky_relu(v + 1), x))
        equal(many(self.jnp.zeros(1 << 20)), self.jnp.full(1 << 20, 100, "float32"))

    def test_behind_slow_work(self):
        """The kernel's input is what a long program before it has not written yet."""
        jax = self.jax
        leaky_relu = self.kernel("LeakyRelu")
        n = 4096 if self.device == "cuda" else 256
        a = self.jnp.eye(n) * 2

        @jax.jit
        def f(a):
            b = a
            for _ in range(8):
                b = b @ a / 2
            c = leaky_relu(b)
            return (c @ a / 2).sum()

        equal(f(a), np.float32(2 * n))

    def test_threads(self):
        from concurrent.futures import ThreadPoolExecutor

        silu = self.jax.jit(self.kernel("Silu"))
        xs = [self.jnp.full((1000,), float(i)) for i in range(8)]

        def work(x):
            return [silu(x) for _ in range(50)][-1]

        with ThreadPoolExecutor(4) as pool:
            for x, y in zip(xs, pool.map(work, xs), strict=True):
                equal(y, self.jax.nn.silu(x))

    def test_errors(self):
        text = error_of(lambda: self.kernel("LeakyRelu")(self.jnp.arange(3)))
        assert text == (
            "LeakyRelu: input 0 'x': expected float16|bfloat16|float32|float64, got \"int32\" with "
            "shape [3]"
        )

    def program(self, f, x):
        run = self.jax.jit(lambda x: self.jax.lax.fori_loop(0, 200, lambda _, v: f(v), x))
        run(x).block_until_ready()
        return lambda: run(x).block_until_ready()

    def figures(self):
        for elements in (16, 1 << 20):
            x = self.jnp.linspace(-1, 1, elements, dtype="float32")
            ways = (
                self.kernel("LeakyRelu", negative_slope=0.5),
                lambda x: self.jax.nn.leaky_relu(x, 0.5),
            )
            time_, ratio = median_ratio(*(self.program(f, x) for f in ways))
            print(
                f"JAX {self.jax.__version__}, leaky_relu of {elements} in a loop: "
                f"{time_ / 200:.2f} us a call, {ratio:.2f} times XLA's own"
            )


def main(library, device="cuda"):
    failed = 0
    for host in (PyTorch, Jax):
        try:
            tests = host(library, device)
        except ImportError as error:
            print(f"{host.__name__} is left out: {error}")
            continue
        for name in [name for name in dir(host) if name.startswith("test_")] + ["figures"]:
            print(f"{host.__name__}.{name}", flush=True)
            try:
                getattr(tests, name)()
            except Exception:
                traceback.print_exc(limit=-6)
                failed += 1
    print(f"{failed} failed" if failed else "All passed.")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
