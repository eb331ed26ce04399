"""Trees: nested containers of arrays, as every argument and result in fxarray may be.

A tree is a leaf, or a node with trees for children. Tuples, lists, dicts, namedtuples, None and
registered classes are nodes; all else is a leaf. A tree falls apart into its leaves, in a fixed
order, and its structure (a `PyTreeDef`), which compares and hashes by value: that is how `jit`
knows its arguments, and how a gradient gets the shape of a model.

>>> from fxarray import tree
>>> params = {"w": [1.0, 2.0], "b": 3.0}
>>> tree.leaves(params)
[3.0, 1.0, 2.0]
>>> tree.map(lambda p: p / 2, params)
{'w': [0.5, 1.0], 'b': 1.5}
"""

from fxarray.tree.dataclass import register_dataclass as register_dataclass
from fxarray.tree.dataclass import static as static
from fxarray.tree.difference import difference as difference
from fxarray.tree.difference import explain_difference as explain_difference
from fxarray.tree.keys import DictKey as DictKey
from fxarray.tree.keys import FlattenedIndexKey as FlattenedIndexKey
from fxarray.tree.keys import GetAttrKey as GetAttrKey
from fxarray.tree.keys import KeyEntry as KeyEntry
from fxarray.tree.keys import KeyPath as KeyPath
from fxarray.tree.keys import SequenceKey as SequenceKey
from fxarray.tree.keys import child_keys as child_keys
from fxarray.tree.keys import keystr as keystr
from fxarray.tree.keys import treedef_paths as treedef_paths
from fxarray.tree.operations import all as all
from fxarray.tree.operations import all_leaves as all_leaves
from fxarray.tree.operations import any as any
from fxarray.tree.operations import flatten as flatten
from fxarray.tree.operations import flatten_one_level as flatten_one_level
from fxarray.tree.operations import leaves as leaves
from fxarray.tree.operations import map as map
from fxarray.tree.operations import reduce as reduce
from fxarray.tree.operations import reduce_associative as reduce_associative
from fxarray.tree.operations import structure as structure
from fxarray.tree.operations import transpose as transpose
from fxarray.tree.operations import treedef_children as treedef_children
from fxarray.tree.operations import treedef_is_leaf as treedef_is_leaf
from fxarray.tree.operations import treedef_tuple as treedef_tuple
from fxarray.tree.operations import unflatten as unflatten
from fxarray.tree.paths import flatten_with_path as flatten_with_path
from fxarray.tree.paths import leaves_with_path as leaves_with_path
from fxarray.tree.paths import map_with_path as map_with_path
from fxarray.tree.prefix import broadcast as broadcast
from fxarray.tree.prefix import broadcast_prefix as broadcast_prefix
from fxarray.tree.registry import Partial as Partial
from fxarray.tree.registry import is_tree_node as is_tree_node
from fxarray.tree.registry import register_pytree_node as register_pytree_node
from fxarray.tree.registry import register_pytree_node_class as register_pytree_node_class
from fxarray.tree.registry import register_pytree_with_keys as register_pytree_with_keys
from fxarray.tree.registry import (
    register_pytree_with_keys_class as register_pytree_with_keys_class,
)
from fxarray.tree.registry import register_static as register_static
from fxarray.tree.structure import PyTreeDef as PyTreeDef
from fxarray.tree.structure import StructureMismatch as StructureMismatch
