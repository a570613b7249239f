"""Lowering of text: codes into dictionaries, lookup tables, and functions that run once per distinct value.

A text value is a code and the dictionary it points into.  Functions of text become lookup tables from codes; comparing
texts of two dictionaries first translates both to the union of the two.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gpudb.functions import lists as list_functions
from gpudb.functions.registry import Overload
from gpudb.planner.emit.builder import PipelineBuilder, Value
from gpudb.planner.expressions import Call, Cast, Expression, Literal
from gpudb.program import (
    MOST_PAIRS,
    CodeSlot,
    ConstantDomain,
    DictionaryReference,
    LiteralDictionary,
    MappedDictionary,
    MemberTable,
    Operand,
    PairSizeSlot,
    PlainSlot,
    RangeDomain,
    RankTable,
    TableSlot,
    TextFunction,
    TextTable,
    TranslationTable,
    UnionDictionary,
)
from gpudb.types import BIGINT, BOOLEAN, RegisterType, SqlType

R = RegisterType
NARROW_DOMAIN = 1 << 16  # a function of a number, or of a pair, becomes a lookup table up to this many values


class TextEmitter:
    """The text half of the expression emitter."""

    builder: PipelineBuilder
    alive: Operand | None
    _fails: int

    if TYPE_CHECKING:

        def value(self, expression: Expression) -> Value: ...
        def decoded(self, value: Value) -> Value: ...
        def converted(self, operand: Operand, kind: R) -> Operand: ...
        def in_register(self, value: Value, kind: R) -> Operand: ...
        def literal(self, literal: Literal) -> Value: ...
        def fail_where(self, bad: Operand, valid: Operand | None, kind: str, message: Any, expression: Any) -> None: ...

    @staticmethod
    def literal_dictionary(literal: Literal) -> DictionaryReference:
        """The dictionary of one constant."""
        return LiteralDictionary(literal)

    def codes(self, value: Value) -> Operand:
        """The codes as a vector, in whatever width they are stored."""
        return self.builder.vector(value.operand)

    def _lookup(self, value: Value, table: Any) -> Operand:
        slot = self.builder.slot(TableSlot(table))
        return self.builder.make("Lookup", table.element, self.codes(value), slot)

    def translated(self, value: Value, target: DictionaryReference) -> Operand:
        """The codes of a value in another dictionary that holds all its texts."""
        assert value.dictionary is not None
        if value.dictionary == target:
            return self.converted(value.operand, R.U32)
        if isinstance(value.dictionary, LiteralDictionary):
            return self.builder.slot(CodeSlot(R.U32, target, value.dictionary.expression, "low"))
        return self._lookup(value, TranslationTable(value.dictionary, target))

    def unified_texts(self, values: list[Value]) -> tuple[list[Operand], DictionaryReference, int]:
        """Several text values as codes of one dictionary; with the greatest code's bound."""
        target, high = common_dictionary(values)
        return [self.in_dictionary(v, target) for v in values], target, high

    def in_dictionary(self, value: Value, target: DictionaryReference) -> Operand:
        """The codes of a value in a dictionary that holds all its texts; 0 for a value that is NULL throughout."""
        return self.builder.slot(PlainSlot(R.U32, 0)) if value.is_null else self.translated(value, target)

    def ranks(self, value: Value) -> Operand:
        """Ranks of a text value in binary order."""
        assert value.dictionary is not None
        return self._lookup(value, RankTable(value.dictionary))

    def comparable_texts(self, a: Value, b: Value, ordered: bool) -> tuple[Operand, Operand]:
        """Two text values as u32 that compare as the texts do."""
        (left, right), reference, high = self.unified_texts([a, b])
        if not ordered:
            return left, right
        sides = []
        for operand in (left, right):
            value = Value(a.sql, R.U32, self.builder.vector(operand), None, 0, high, reference)
            sides.append(self.ranks(value))
        return sides[0], sides[1]

    def _text_against_constant(self, operator: str, value: Value, literal: Literal) -> Operand:
        """Mask of a text value compared with a constant: a code, or a lookup table for an ordered comparison."""
        assert value.dictionary is not None
        if operator in ("=", "<>"):
            kind = value.type
            ends = [self.builder.slot(CodeSlot(kind, value.dictionary, literal, side)) for side in ("low", "high")]
            name = "InRange" if operator == "=" else "NotInRange"
            mask = self.builder.make(name, R.MASK, self.codes(value), *ends)
        else:
            function = TextFunction(operator, None, (value.dictionary,), (0, literal), BOOLEAN)
            mask = self._lookup(value, TextTable(function, R.MASK))
        return mask if value.valid is None else self.builder.make("And", R.MASK, mask, value.valid)

    def text_membership(self, value: Value, items: tuple[Literal, ...]) -> Operand:
        """Mask of a text value that is one of several constants."""
        return self._lookup(value, MemberTable(value.dictionary, None, items))

    # ------------------------------------------------------------------------------------------- functions

    def text_call(self, expression: Call, overload: Overload, arguments: tuple[Expression, ...]) -> Value:
        """A text function: evaluated over the distinct values of its varying argument, or over pairs or tuples of them."""
        if overload.name == "list_at":
            return self._element(expression, *map(self.value, arguments))
        given = [self._argument(a) for a in arguments]
        if overload.name == "concat_operator" and self._is_table([a for a in given if not isinstance(a, Literal)]):
            while len(given) > 2 and sum(not isinstance(a, Literal) for a in given) > 2:  # two at a time: pairs
                given[:2] = [self._apply(overload.name, overload, given[:2], expression.type, False, expression)]
        return self._apply(overload.name, overload, given, expression.type, False, expression)

    def _element(self, expression: Call, lists: Value, index: Value) -> Value:
        """The element of a list at a number from 0; NULL where it has none there."""
        if lists.is_null or index.is_null:
            return self.literal(Literal(expression.type, None))
        assert lists.dictionary is not None and lists.sql.child is not None
        child, codes, make, dictionary = lists.sql.child, self.codes(lists), self.builder.make, lists.dictionary

        def number(overload: Overload) -> Operand:
            function = TextFunction(overload.name, overload, (dictionary,), (0,), BIGINT)
            return make("Lookup", R.I64, codes, self.builder.slot(TableSlot(TextTable(function, R.I64))))

        at = self.builder.vector(self.in_register(index, R.I64))
        inside = make("Lt", R.MASK, at, number(list_functions.length(child)))
        first = make("Le", R.MASK, self.builder.vector(self.builder.slot(PlainSlot(R.I64, 0))), at)
        valid = make("And", R.MASK, inside, first)
        for part in (lists.valid, index.valid):
            valid = valid if part is None else make("And", R.MASK, valid, part)
        place = make("Keep", R.I64, make("Add", R.I64, number(list_functions.starts(child)), at), valid)
        all_ = TextFunction("list_elements", list_functions.elements(child), (dictionary,), (0,), child, True)
        return self._looked_up(all_, make("Convert", R.U32, place), valid, (1 << 32) - 2, expression)

    def _argument(self, expression: Expression) -> Any:
        return expression if isinstance(expression, Literal) else self.value(expression)

    def cast_text(self, value: Value, target: SqlType, try_: bool, expression: Expression) -> Value:
        """CAST between text and another type."""
        argument = expression.argument if isinstance(expression, Cast) else None
        given = argument if isinstance(argument, Literal) and not value.sql.is_coded else value
        return self._apply("cast", None, [given], target, try_, expression)

    def _apply(
        self, name: str, overload: Any, arguments: list[Any], sql: SqlType, try_: bool, expression: Expression
    ) -> Value:
        """A function over dictionary entries as a lookup table; NULL in any argument gives NULL."""
        varying: list[Value] = []
        pattern: list[Any] = []
        valid: Operand | None = None
        for argument in arguments:
            if isinstance(argument, Literal):
                pattern.append(argument)
                if argument.value is None:
                    return self.literal(Literal(sql, None))
                continue
            valid = self.builder.both(valid, argument.valid)
            if argument not in varying:
                varying.append(argument)
            pattern.append(varying.index(argument))
        constant = None if varying else arguments[0]
        if constant is not None:
            varying = [self.literal(constant)]
            pattern[0] = 0
        if any(argument.is_null for argument in varying):
            return self.literal(Literal(sql, None))
        index, domains, high = self._indexed(varying, constant, valid)
        return self._looked_up(
            TextFunction(name, overload, domains, tuple(pattern), sql, try_), index, valid, high, expression
        )

    def _looked_up(
        self, function: TextFunction, index: Operand, valid: Operand | None, high: int, expression: Expression
    ) -> Value:
        """What a function gives at an index into its lookup tables, which have codes up to `high`."""
        sql = function.type
        slot = lambda table: self.builder.slot(TableSlot(table))  # noqa: E731
        make = self.builder.make
        kind = R.U32 if sql.is_coded else sql.register
        element: R = R.I64 if kind is R.I128 else R.F64 if kind is R.F32 else kind
        operand = make("Lookup", element, index, slot(TextTable(function, element)))
        if kind is R.I128:
            above = make("Lookup", R.I64, index, slot(TextTable(function, R.I64, "high")))
            word = self.builder.slot(PlainSlot(R.I128, 1 << 64))
            shifted = make("Multiply", R.I128, self.converted(above, R.I128), word)
            operand, element = make("Add", R.I128, shifted, self.converted(operand, R.I128)), R.I128
        present = make("Lookup", R.MASK, index, slot(TextTable(function, R.MASK, "validity")))
        if not function.try_:
            failed = make("Lookup", R.MASK, index, slot(TextTable(function, R.MASK, "failed")))
            self.fail_where(failed, valid, "ConversionError", function, expression)
        valid = self.builder.both(valid, present)
        if kind is R.F32:
            operand = self.converted(operand, R.F32)
        if sql.is_coded:
            return Value(sql, R.U32, operand, valid, 0, min(high, (1 << 32) - 2), MappedDictionary(function))
        if sql.is_float:
            return Value(sql, kind, operand, valid)
        low, high = sql.bounds
        if element is R.I64:
            low, high = max(low, -(1 << 63)), min(high, (1 << 63) - 1)
        return Value(sql, element, operand, valid, low, high)

    def _is_table(self, varying: list[Value]) -> bool:
        """May a lookup table have one entry for each combination of values that the arguments can have?"""
        for value in varying:
            if not value.sql.is_coded and not (value.sql.is_exact and entries(value) <= NARROW_DOMAIN):
                return False
        rows = min(self.builder.row_bound, MOST_PAIRS)  # more pairs than rows are not worth a table
        return len(varying) < 2 or math.prod(map(entries, varying)) <= max(NARROW_DOMAIN, rows)

    def _indexed(
        self, varying: list[Value], constant: Literal | None, valid: Operand | None
    ) -> tuple[Operand, tuple[Any, ...], int]:
        """(index of each row's arguments into the function's lookup tables, what they range over, greatest index)."""
        if constant is not None and not constant.type.is_coded:
            index = self.builder.vector(self.builder.slot(PlainSlot(R.U32, 0)))
            return index, (ConstantDomain(varying[0].sql, constant),), 0
        if len(varying) > 2 or not self._is_table(varying):
            index, columns = self._tuples(varying, valid)
            return index, columns, max(0, self.builder.row_bound - 1)
        domains, indexes = zip(*map(self._domain, varying), strict=True)
        greatest = math.prod(map(entries, varying)) - 1
        if len(varying) == 1:
            return indexes[0], domains, greatest
        left = self.converted(indexes[0], R.U32)
        size = self.builder.slot(PairSizeSlot(R.U32, domains[1]))
        zero = self.builder.vector(self.builder.slot(PlainSlot(R.U32, 0)))
        scaled = self.builder.make("MultiplyAdd", R.U32, zero, left, size)
        one = self.builder.slot(PlainSlot(R.U32, 1))
        index = self.builder.make("MultiplyAdd", R.U32, scaled, self.converted(indexes[1], R.U32), one)
        return index, domains, greatest

    def _domain(self, value: Value) -> tuple[DictionaryReference | RangeDomain, Operand]:
        """What a varying argument ranges over, and its index into it."""
        if value.sql.is_coded:
            assert value.dictionary is not None
            return value.dictionary, self.codes(value)
        value = self.decoded(value)
        kind = R.I64 if value.type is R.I64 else R.I32
        shifted = self.builder.make(
            "Subtract", kind, self.in_register(value, kind), self.builder.slot(PlainSlot(kind, value.low))
        )
        index = self.builder.bounded_index(self.converted(shifted, R.U32), value.high - value.low + 1)
        if value.valid is not None:
            index = self.builder.make("Keep", R.U32, index, value.valid)
        return RangeDomain(value.sql, value.low, value.high), index

    def _tuples(self, varying: list[Value], valid: Operand | None) -> tuple[Operand, tuple[Any, ...]]:
        """The index of each row's tuple of arguments among the distinct ones, and the columns that hold those."""
        counted = self.builder.both(self.alive, valid)
        key = (tuple(varying), counted)
        if key not in self.builder.tuples:
            self.builder.tuples[key] = self.builder.distinct_tuples(self, varying, counted)
        if self.alive is not None:
            self._fails += 1  # as with a check: where only some rows were looked at, the value may not serve others
        return self.builder.tuples[key]


def entries(value: Value) -> int:
    """How many entries a lookup table over a text or an integer has."""
    return int(value.high - (0 if value.sql.is_coded else value.low)) + 1


def common_dictionary(values: list[Value]) -> tuple[DictionaryReference, int]:
    """A dictionary that holds the texts of all values, and the bound of its greatest code."""
    sizes: dict[DictionaryReference, int] = {}
    for value in values:
        if not value.is_null:
            assert value.dictionary is not None
            sizes[value.dictionary] = value.high + 1
    if not sizes:
        assert values[0].dictionary is not None
        return values[0].dictionary, 0
    target = next(iter(sizes)) if len(sizes) == 1 else UnionDictionary(tuple(sizes))
    return target, max(sum(sizes.values()) - 1, 0)
