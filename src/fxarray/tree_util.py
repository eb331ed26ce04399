"""The functions of `fxarray.tree` under the names of `jax.tree_util`."""

from fxarray.tree import DictKey as DictKey
from fxarray.tree import FlattenedIndexKey as FlattenedIndexKey
from fxarray.tree import GetAttrKey as GetAttrKey
from fxarray.tree import KeyEntry as KeyEntry
from fxarray.tree import KeyPath as KeyPath
from fxarray.tree import Partial as Partial
from fxarray.tree import PyTreeDef as PyTreeDef
from fxarray.tree import SequenceKey as SequenceKey
from fxarray.tree import all as tree_all
from fxarray.tree import all_leaves as all_leaves
from fxarray.tree import broadcast as tree_broadcast
from fxarray.tree import flatten as tree_flatten
from fxarray.tree import flatten_one_level as flatten_one_level
from fxarray.tree import flatten_with_path as tree_flatten_with_path
from fxarray.tree import is_tree_node as is_tree_node
from fxarray.tree import keystr as keystr
from fxarray.tree import leaves as tree_leaves
from fxarray.tree import leaves_with_path as tree_leaves_with_path
from fxarray.tree import map as tree_map
from fxarray.tree import map_with_path as tree_map_with_path
from fxarray.tree import reduce as tree_reduce
from fxarray.tree import reduce_associative as tree_reduce_associative
from fxarray.tree import register_dataclass as register_dataclass
from fxarray.tree import register_pytree_node as register_pytree_node
from fxarray.tree import register_pytree_node_class as register_pytree_node_class
from fxarray.tree import register_pytree_with_keys as register_pytree_with_keys
from fxarray.tree import register_pytree_with_keys_class as register_pytree_with_keys_class
from fxarray.tree import register_static as register_static
from fxarray.tree import structure as tree_structure
from fxarray.tree import transpose as tree_transpose
from fxarray.tree import treedef_children as treedef_children
from fxarray.tree import treedef_is_leaf as treedef_is_leaf
from fxarray.tree import treedef_tuple as treedef_tuple
from fxarray.tree import unflatten as tree_unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "flatten_one_level",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
