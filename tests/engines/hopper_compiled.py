"""Compiles the kernels for Hopper where there is no GPU: Triton changes its words, and a device is seldom at hand."""

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime.jit import JITFunction

from orthonmf.engines import hopper
from orthonmf.engines import triton as kernels

TYPES = {torch.float32: "*fp32", torch.float64: "*fp64", torch.int32: "*i32", torch.int64: "*i64", torch.bfloat16: "*bf16"}
N_ITEMS, KNOWN = 300, set()


def compiled(kernel, *given, grid, warmup, **options):
    """As if the kernel were run; instead it is compiled, once, and its name is printed."""
    if kernel in KNOWN:
        return
    KNOWN.add(kernel)
    names = [parameter.name for parameter in kernel.params]
    values = {name: options.pop(name) for name in names if name in options} | dict(zip(names, given, strict=False))
    fixed = {parameter.name: values[parameter.name] for parameter in kernel.params if parameter.is_constexpr}
    numbers = {name: "fp32" if isinstance(value, float) else "i32" for name, value in values.items()}
    tensors = {name: TYPES[value.dtype] for name, value in values.items() if isinstance(value, torch.Tensor)}
    signature = {name: "constexpr" if name in fixed else tensors.get(name, numbers[name]) for name in names}
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in tensors}
    source = GluonASTSource if kernel.fn.__module__ == hopper.__name__ else ASTSource
    triton.compile(source(kernel, signature, fixed, aligned), target=GPUTarget("cuda", 90, 32), options=options)
    print(kernel.fn.__name__)


def every(p, k, scaled):
    """Every pass that has a kernel."""
    weights, numbers = (torch.rand(N_ITEMS) for _ in range(4)), (torch.rand(k).double() for _ in range(3))
    centers = kernels.Centers(torch.rand(k, p).double(), *numbers)
    place = torch.rand(N_ITEMS, p), kernels.Items(*weights), centers, torch.rand(p).double(), scaled
    labels = torch.zeros(N_ITEMS, dtype=torch.int32)
    kernels.soft(*place, 1.0, torch.zeros(k).double())
    kernels.hard(*place, labels)
    kernels.labelled(*place, labels)
    kernels.nearest_two(*place, labels)
    kernels.keys(place[0], 1.0, labels.long())


if __name__ == "__main__":
    JITFunction.run = compiled
    kernels._Prepared.by_hand = property(lambda given: given.shape.p_pad in kernels.P_BY_HAND)  # as if the device were such a one
    for p, k in ((64, 20), (128, 200), (200, 200), (20, 5)):
        every(p, k, True)
