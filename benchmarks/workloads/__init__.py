"""What is timed against other libraries: each workload written once for fxarray and JAX.

Where it makes sense, a workload also says how a NumPy or PyTorch user would write it.
"""

from benchmarks.workloads import contractions, control, elementwise, indexing, matrices, programs
from benchmarks.workloads.registry import WORKLOADS, Workload

__all__ = [
    "WORKLOADS",
    "Workload",
    "contractions",
    "control",
    "elementwise",
    "indexing",
    "matrices",
    "programs",
]
