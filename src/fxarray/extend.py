"""What libraries build on: primitives with rules, Programs, tracers, devices. Stable and small.

A new operation is a frozen dataclass whose methods are its rules. Derivatives, vectorization and
compilation then work as for fxarray's own:

>>> from fxarray import extend
>>> import fxarray, numpy as np, fxarray.numpy as fnp
>>> class ScaledExp(extend.Primitive, name="example_scaled_exp"):
...     '''exp(scale * x).'''
...
...     scale: float
...
...     def infer(self, x):
...         return (x,)
...
...     def reference(self, x):
...         return (np.exp(self.scale * x).astype(x.dtype),)
...
...     def jvp(self, primals, tangents):
...         (y,) = self.bind(*primals)
...         return (y,), (self.scale * y * tangents[0],)
...
...     def batch(self, size, axis_name, operands, axes):
...         return self.bind(*operands), axes
>>> f = lambda x: ScaledExp(2.0)(x)
>>> float(fxarray.grad(f)(0.0))
2.0
>>> fxarray.jit(fxarray.vmap(fxarray.grad(f)))(fnp.zeros(3))
Array([2., 2., 2.], dtype=float32)

`fxarray.core.primitive` says what each rule takes and returns. A rule that does not exist on
purpose gets a sentence in the class attribute `EXCUSED`, which the error quotes. A `lower` rule
takes a `Builder` and `Lowered` operands; without it, compiled code calls back to `eager`. Devices
are added by `register_backend`.
"""

from fxarray.compile.backend import Backend as Backend
from fxarray.compile.backend import CompileOptions as CompileOptions
from fxarray.compile.backend import Executable as Executable
from fxarray.compile.backend import get_backend as get_backend
from fxarray.compile.backend import register_backend as register_backend
from fxarray.core.array import DeviceArray as DeviceArray
from fxarray.core.effects import Effect as Effect
from fxarray.core.effects import Ordered as Ordered
from fxarray.core.effects import Unordered as Unordered
from fxarray.core.factors import Factors as Factors
from fxarray.core.ir import Equation as Equation
from fxarray.core.ir import Literal as Literal
from fxarray.core.ir import Program as Program
from fxarray.core.ir import Var as Var
from fxarray.core.primitive import REGISTRY as REGISTRY
from fxarray.core.primitive import Linear as Linear
from fxarray.core.primitive import Primitive as Primitive
from fxarray.core.primitive import Sample as Sample
from fxarray.core.primitive import Zero as Zero
from fxarray.core.primitive import add_tangents as add_tangents
from fxarray.core.primitive import instantiate as instantiate
from fxarray.core.source import hide_package as hide_package
from fxarray.core.tracer import Tracer as Tracer
from fxarray.core.types import ArrayType as ArrayType
from fxarray.interpreters.dce import eliminate_dead_code as eliminate_dead_code
from fxarray.interpreters.evaluate import evaluate as evaluate
from fxarray.interpreters.staging import stage as stage
from fxarray.kernel.build import Builder as Builder
from fxarray.kernel.build import Lowered as Lowered
from fxarray.kernel.build import NoKernel as NoKernel
from fxarray.transforms.custom_vjp import CustomVJPPrimal as CustomVJPPrimal
from fxarray.transforms.custom_vjp import SymbolicZero as SymbolicZero
