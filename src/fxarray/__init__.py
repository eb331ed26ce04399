"""fxarray: a JAX-style functional array library in Python."""

# Some imports are there for what they fill.
# pyright: reportUnusedImport=false

from fxarray._version import __version__ as __version__

# Importing these fills the hooks through which arrays find their operators and devices.
from fxarray.core import pretty as _pretty
from fxarray.core import python_source as _python_source
from fxarray.interpreters import local as _local
from fxarray.core import config as config
from fxarray.core.caches import clear_caches as clear_caches
from fxarray.core.array import Array as Array
from fxarray.core.config import debug_infs as debug_infs
from fxarray.core.config import debug_nans as debug_nans
from fxarray.core.config import default_matmul_precision as default_matmul_precision
from fxarray.core.config import numpy_dtype_promotion as numpy_dtype_promotion
from fxarray.core.config import numpy_rank_promotion as numpy_rank_promotion
from fxarray.core.dtypes import float0 as float0
from fxarray.core.device import Device as Device
from fxarray.core.dims import ShapeVar as ShapeVar
from fxarray.core.dims import assuming as assuming
from fxarray.devices.placement import block_until_ready as block_until_ready
from fxarray.devices.placement import default_backend as default_backend
from fxarray.devices.placement import default_device as default_device
from fxarray.devices.placement import device_count as device_count
from fxarray.devices.placement import device_get as device_get
from fxarray.devices.placement import device_put as device_put
from fxarray.devices.placement import devices as devices
from fxarray.devices.placement import local_device_count as local_device_count
from fxarray.devices.placement import local_devices as local_devices
from fxarray.devices.placement import process_count as process_count
from fxarray.devices.placement import process_index as process_index
from fxarray.devices.reference import eager as _eager
from fxarray.devices.cpu import loading as _loading

# The packages of the public interface.
from fxarray import debug as debug
from fxarray import dtypes as dtypes
from fxarray import errors as errors
from fxarray import lax as lax
from fxarray import nn as nn
from fxarray import numpy as numpy
from fxarray import profiler as profiler
from fxarray import random as random
from fxarray import tree as tree
from fxarray import tree_util as tree_util
from fxarray import typing as typing

# Transforms.
from fxarray.transforms.callbacks import effects_barrier as effects_barrier
from fxarray.transforms.callbacks import io_callback as io_callback
from fxarray.transforms.callbacks import pure_callback as pure_callback
from fxarray.transforms import checkpoint_policies as checkpoint_policies
from fxarray.transforms.checkpoint import checkpoint as checkpoint
from fxarray.transforms.checkpoint import checkpoint as remat
from fxarray.transforms.checkpoint import checkpoint_name as checkpoint_name
from fxarray.transforms.checkpoint import print_saved_residuals as print_saved_residuals
from fxarray.transforms.checkpoint import saved_residuals as saved_residuals
from fxarray.transforms.closure import closure_convert as closure_convert
from fxarray.transforms.closure import custom_gradient as custom_gradient
from fxarray.transforms.custom_jvp import custom_jvp as custom_jvp
from fxarray.transforms.custom_vjp import custom_vjp as custom_vjp
from fxarray.transforms.forward import jvp as jvp
from fxarray.transforms.forward import linearize as linearize
from fxarray.transforms.grad import grad as grad
from fxarray.transforms.grad import value_and_grad as value_and_grad
from fxarray.transforms.inspect import eval_shape as eval_shape
from fxarray.transforms.inspect import make_jaxpr as make_jaxpr
from fxarray.transforms.inspect import make_program as make_program
from fxarray.transforms.jacobian import hessian as hessian
from fxarray.transforms.jacobian import jacfwd as jacfwd
from fxarray.transforms.jacobian import jacobian as jacobian
from fxarray.transforms.jacobian import jacrev as jacrev
from fxarray.transforms.dynamic_spec import dynamic_spec as dynamic_spec
from fxarray.transforms.jit import jit as jit
from fxarray.transforms.names import disable_jit as disable_jit
from fxarray.transforms.names import ensure_compile_time_eval as ensure_compile_time_eval
from fxarray.transforms.names import named_call as named_call
from fxarray.transforms.names import named_scope as named_scope
from fxarray.transforms.passes import fwd_and_bwd as fwd_and_bwd
from fxarray.transforms.reverse import linear_transpose as linear_transpose
from fxarray.transforms.reverse import vjp as vjp
from fxarray.transforms.shapes import ShapeDtypeStruct as ShapeDtypeStruct
from fxarray.transforms.shapes import typeof as typeof
from fxarray.transforms.vmap import vmap as vmap
