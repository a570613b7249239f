"""ASOF joins: what makes one match of a left row the nearest.

The right input is sorted so that the first match whose word is not below the left row's own is the one: where it must not be
greater than the left row's value, in falling order and by words that fall.  Of equal ones the first in table order is first.
"""

from __future__ import annotations

from gpudb.errors import NotSupportedError
from gpudb.planner.emit.builder import Value
from gpudb.planner.emit.expressions import MIRRORED, ExpressionEmitter
from gpudb.planner.emit.order_words import sort_words
from gpudb.planner.emit.texts import common_dictionary
from gpudb.planner.expressions import Comparison, Expression, conjuncts
from gpudb.planner.logical import Join, Node, Sort, SortKey
from gpudb.planner.rules.rewriting import columns_read, renumber
from gpudb.program import Operand, PlainSlot
from gpudb.record import record, replace
from gpudb.types import RegisterType

R = RegisterType
GREATEST = (1 << 63) - 1


@record
class Nearest:
    """The condition of an ASOF join besides its keys.

    ours, theirs  what is compared, over the left and over the right input, in one type
    descending    `theirs` must not be greater than `ours`: it is sorted in falling order
    strict        nor may it be equal
    others        further conditions, over the left input
    """

    ours: Expression
    theirs: Expression
    descending: bool
    strict: bool
    others: tuple[Expression, ...]

    @staticmethod
    def of(node: Join) -> Nearest:
        """What the residual of an ASOF join says: one order between its inputs, and perhaps something of the left row."""
        width = len(node.left.columns)
        found: Nearest | None = None
        others: list[Expression] = []
        for term in conjuncts(node.residual):
            if all(index < width for index in columns_read(term)):
                others.append(term)
                continue
            assert isinstance(term, Comparison) and found is None, "an ASOF join has one inequality"
            ours, theirs, operator = term.left, term.right, term.operator
            if max(columns_read(ours)) >= width:
                ours, theirs, operator = theirs, ours, MIRRORED[operator]
            theirs = renumber(theirs, {index: index - width for index in columns_read(theirs)})
            found = Nearest(ours, theirs, operator[0] == ">", operator in ("<", ">"), ())
        assert found is not None, "an ASOF join has an inequality"
        return replace(found, others=tuple(others))

    def sorted(self, right: Node) -> Node:
        """The right input in the order of words; its rows without a value are not asked for."""
        return Sort(right.columns, right, (SortKey(self.theirs, self.descending, False),))

    def word(self, emitter: ExpressionEmitter, value: Value, other: Value) -> Operand:
        """The word of a value of one input, comparable with those of a value of the other one."""
        if value.sql.is_coded:
            target, high = common_dictionary([value, other])
            code = emitter.builder.vector(emitter.in_dictionary(value, target))
            value = replace(value, operand=code, type=R.U32, low=0, high=high, dictionary=target, stored=None)
        words = sort_words(emitter, replace(value, valid=None), self.descending, False)
        if len(words) > 1:
            raise NotSupportedError(
                f"ASOF JOIN by a {value.sql} of more than 64 bits is not supported", span=self.ours.span
            )
        return words[0].operand

    def next_up(self, emitter: ExpressionEmitter, word: Operand) -> tuple[Operand, Operand]:
        """(the next word, mask of the rows that have one): where matches must not be equal."""
        make, slot = emitter.builder.make, emitter.builder.slot
        there = make("Ne", R.MASK, word, slot(PlainSlot(R.I64, GREATEST)))
        return make("Add", R.I64, word, slot(PlainSlot(R.I64, 1))), there
