"""The opcode table: the only list of opcodes.

One module a family; each entry's NumPy body is its meaning.  `gpudb.instruction_set` adds the scalar SQL functions and
numbers the variants.  Opcodes are not an API: names and numbers may change with every release.
"""

from gpudb.opcodes import arithmetic, calls, comparison, conversion, logic, sinks
from gpudb.opcodes.table import OPCODES, Opcode, Signature, Variant, variants

__all__ = [
    "OPCODES",
    "Opcode",
    "Signature",
    "Variant",
    "arithmetic",
    "calls",
    "comparison",
    "conversion",
    "logic",
    "sinks",
    "variants",
]
