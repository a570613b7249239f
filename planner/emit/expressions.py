"""Lowering of expressions to instructions, with range analysis.

Two questions are asked of an expression: its `value` (an operand and a validity mask), or, for conditions, the masks
`true` and `false`: rows for which it is TRUE, and rows for which it is FALSE.  Three-valued logic needs no more: AND is
(t and t, f or f), NOT swaps, and a filter asks for `true` only, so that NULL costs nothing there.

Integers travel in the narrowest of i32, i64 and i128 that holds their proven range.  Where a result may leave its SQL
type, a check comes first and `Fail` names the row; it looks only at rows that count: alive, not NULL, in their CASE branch.

Past 600 lines, since values and conditions ask each other: a comparison is a value, a CASE asks a condition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpudb.calendar import FIRST_DAY, LAST_DAY, MICROSECONDS_A_DAY
from gpudb.errors import NotSupportedError
from gpudb.functions.registry import Overload, parse_type
from gpudb.instruction_set import function_opcode_name
from gpudb.planner.emit.builder import PipelineBuilder, Value
from gpudb.planner.emit.casts import CastEmitter, out_of_range
from gpudb.planner.emit.ranges import (
    INT32,
    INT64,
    exact_bounds,
    float_bounds,
    integer_register,
    literal_range,
    register_range,
    within_bounds,
)
from gpudb.planner.emit.texts import common_dictionary
from gpudb.planner.expressions import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    Column,
    Comparison,
    Expression,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
)
from gpudb.program import (
    SLOT,
    BaseSlot,
    ConstantIntervalSlot,
    ConstantSlot,
    DictionaryReference,
    FunctionFailure,
    FunctionSlot,
    MemberTable,
    Operand,
    PlainSlot,
    PlainTable,
    RangeSlot,
    ScaleSlot,
    TableSlot,
)
from gpudb.record import record, replace
from gpudb.time_zones import zone
from gpudb.types import BOOLEAN, RegisterType, SqlType

R = RegisterType
NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARE = {"=": "Eq", "<>": "Ne", "<": "Lt", "<=": "Le", ">": "Gt", ">=": "Ge"}


@record
class CommonForm:
    """What several values of one SQL type become to stand in one column: register type, bounds, dictionary of texts."""

    kind: R
    low: Any
    high: Any
    dictionary: DictionaryReference | None = None

    def properties(self) -> dict[str, Any]:
        """The fields that a Value of this form has."""
        return {"low": self.low, "high": self.high, "dictionary": self.dictionary}


def common_form(sql: SqlType, values: list[Value]) -> CommonForm:
    """The form that holds all of several values of one SQL type."""
    if sql.is_coded:
        dictionary, high = common_dictionary(values)
        return CommonForm(R.U32, 0, high, dictionary)
    if sql.is_float:
        known = [v for v in values if not v.is_null]
        if known and all(v.low is not None and v.high is not None for v in known):
            return CommonForm(sql.register, min(v.low for v in known), max(v.high for v in known))
        return CommonForm(sql.register, None, None)
    if sql.kind == "BOOLEAN":
        return CommonForm(R.MASK, 0, 1)
    low, high = min(v.low for v in values), max(v.high for v in values)
    return CommonForm(integer_register(low, high), low, high)


class ExpressionEmitter(CastEmitter):
    """Lowers expressions over `inputs`, the values of a node's input columns, into one pipeline."""

    def __init__(self, builder: PipelineBuilder, inputs: Sequence[Value], alive: Operand | None) -> None:
        self.builder = builder
        self.inputs = inputs
        self.alive = alive
        self.zones: list[tuple[int, int]] = []  # RangeSlots (low, high) that every row of the last filter passes
        self._values: dict[Expression, Value] = {}
        self._fails = 0
        self._effects = 0  # calls so far of functions that may give something else the next time

    # ------------------------------------------------------------------------------------------- values

    def value(self, expression: Expression) -> Value:
        """The value of an expression; asked twice, it is computed once."""
        found = self._values.get(expression)
        if found is not None:
            return found
        guard, fails, effects = self.alive, self._fails, self._effects
        value = self._value(expression)
        # A value whose checks looked at some rows only may not serve others.
        if (self._fails == fails or guard is None) and self._effects == effects:
            self._values[expression] = value
        return value

    def _value(self, expression: Expression) -> Value:
        match expression:
            case Column(index=index):
                return self.inputs[index]
            case Literal():
                return self.literal(expression)
            case Cast(argument=argument, try_=try_):
                return self.cast(self.value(argument), expression.type, try_, expression)
            case Case():
                return self._case(expression)
            case Coalesce(arguments=arguments):
                return self._coalesce(expression.type, arguments)
            case Call(name=name, arguments=arguments, overload=overload):
                return self._call(expression, name, arguments, overload)
            case _ if expression.type == BOOLEAN:
                return self._boolean(expression)
        raise NotSupportedError(f"expression not supported: {type(expression).__name__}", span=expression.span)

    def literal(self, literal: Literal) -> Value:
        """A constant in a parameter slot."""
        sql = literal.type
        if literal.value is None:
            kind = R.U32 if sql.is_coded else sql.register
            zero = self.builder.slot(PlainSlot(kind, 0))
            never = self.builder.vector(self.builder.slot(PlainSlot(R.MASK, 0)))
            low, high = (0, 0) if not sql.is_float else (0.0, 0.0)
            reference = self.literal_dictionary(literal) if sql.is_coded else None
            return Value(sql, kind, zero, never, low, high, reference, is_null=True)
        if sql.is_coded:
            code = self.builder.slot(PlainSlot(R.U32, 0))
            return Value(sql, R.U32, code, None, 0, 0, self.literal_dictionary(literal))
        if sql.is_float:
            known = float(literal.value) if literal.slot is None and math.isfinite(literal.value) else None
            return Value(sql, sql.register, self._constant(literal, sql.register), None, known, known)
        if sql.kind in ("INTERVAL", "UUID"):
            return Value(sql, R.I128, self._constant(literal, R.I128), None, *sql.bounds)
        if sql.kind == "BOOLEAN":
            return Value(sql, R.MASK, self._constant(literal, R.MASK), None, 0, 1)
        low, high = (literal.value, literal.value) if literal.slot is None else literal_range(literal)
        kind = integer_register(low, high)
        return Value(sql, kind, self._constant(literal, kind), None, low, high)

    def _constant(self, literal: Literal, kind: R) -> Operand:
        return self.builder.slot(ConstantSlot(kind, literal.type, literal))

    def decoded(self, value: Value) -> Value:
        """The value with its stored form undone: base + scale * stored, or merely widened."""
        if value.stored is None:
            return value
        wide = self.wide_register(value)
        if value.stored.encoded:
            base = self.builder.slot(BaseSlot(wide, value.stored.column))
            scale = self.builder.slot(ScaleSlot(wide, value.stored.column))
            if value.operand.kind == SLOT:  # a constant column: nothing is stored
                operand = base
            else:
                operand = self.builder.make("Decode", wide, value.operand, base, scale)
        else:
            operand = self.converted(value.operand, wide)
        if value.sql.kind == "DATE":
            self.builder.known.add_leaf(operand, value.low, value.high, value.valid)
        return replace(value, operand=operand, type=wide, stored=None)

    @staticmethod
    def wide_register(value: Value) -> R:
        """The arithmetic register of an exact value."""
        return integer_register(value.low, value.high)

    def converted(self, operand: Operand, kind: R) -> Operand:
        """The operand in another register type."""
        if operand.type is kind:
            return operand
        codes = (R.U8, R.U16, R.U32)
        if (kind is R.I128 and operand.type in codes) or (operand.type is R.I128 and kind in codes):
            operand = self.builder.make("Convert", R.I64, operand)  # no kernel converts these in one step
        return self.builder.make("Convert", kind, operand)

    def in_register(self, value: Value, kind: R) -> Operand:
        """A number in the given register type; integers must fit."""
        value = self.decoded(value)
        if value.operand.kind == SLOT and value.type is not kind:
            slot = self.builder.slots[value.operand.number]
            if isinstance(slot, ConstantSlot):
                return self.builder.slot(replace(slot, type=kind))
            if isinstance(slot, PlainSlot):
                return self.builder.slot(PlainSlot(kind, slot.value))
        return self.converted(value.operand, kind)

    def mask(self, value: Value) -> Operand:
        """A BOOLEAN value's mask as a vector."""
        value = self.decoded(value) if value.type is not R.MASK else value
        return self.builder.vector(self.in_register(value, R.MASK))

    # ------------------------------------------------------------------------------------------- conditions

    def true(self, expression: Expression) -> Operand:
        """Mask of the rows for which a condition is TRUE."""
        return self._truth(expression, True)

    def false(self, expression: Expression) -> Operand:
        """Mask of the rows for which a condition is FALSE."""
        return self._truth(expression, False)

    def _truth(self, expression: Expression, wanted: bool) -> Operand:
        make = self.builder.make
        match expression:
            case And(arguments=arguments) if wanted:
                return self._all_true(arguments)
            case Or(arguments=arguments) if not wanted:
                return self._fold("And", [self.false(a) for a in arguments])
            case Or(arguments=arguments) | And(arguments=arguments):
                return self._fold("Or", [self._truth(a, wanted) for a in arguments])
            case Not(argument=argument):
                return self._truth(argument, not wanted)
            case IsNull(argument=argument):
                valid = self.value(argument).valid
                if valid is None:
                    return self._all(not wanted)
                return make("Not", R.MASK, valid) if wanted else valid
            case Comparison(operator=operator, left=left, right=right):
                if operator in ("is_distinct", "is_not_distinct"):
                    same = self._not_distinct(self.value(left), self.value(right))
                    return same if wanted == (operator == "is_not_distinct") else make("Not", R.MASK, same)
                return self._comparison(operator if wanted else NEGATED[operator], left, right)
            case InList():
                return self._in_list(expression, wanted)
        value = self.value(expression)
        mask = self.mask(value)
        if wanted:
            return mask if value.valid is None else make("And", R.MASK, mask, value.valid)
        if value.valid is None:
            return make("Not", R.MASK, mask)
        return make("AndNot", R.MASK, value.valid, mask)

    def _all(self, ones: bool) -> Operand:
        return self.builder.vector(self.builder.slot(PlainSlot(R.MASK, int(ones))))

    def _fold(self, name: str, masks: list[Operand]) -> Operand:
        total = masks[0]
        for mask in masks[1:]:
            total = self.builder.make(name, R.MASK, total, mask)
        return total

    def filter(self, terms: tuple[Expression, ...]) -> Operand:
        """Mask of rows that pass all terms; notes the zone tests that follow from them."""
        return self._all_true(terms, self.zones)

    def _all_true(self, terms: tuple[Expression, ...], zones: list[tuple[int, int]] | None = None) -> Operand:
        """AND of conditions: ranges of one stored column become one test; terms that can fail run last, guarded."""
        merged, rest = self._merged_ranges(terms, zones)
        safe = [t for t in rest if not can_fail(t)]
        risky = [t for t in rest if can_fail(t)]
        masks = merged + [self.true(t) for t in safe]
        outer = self.alive
        try:
            for term in risky:
                self.alive = self.builder.both(outer, self._fold("And", masks) if masks else None)
                masks.append(self.true(term))
        finally:
            self.alive = outer
        return self._fold("And", masks)

    def _merged_ranges(
        self, terms: tuple[Expression, ...], zones: list[tuple[int, int]] | None
    ) -> tuple[list[Operand], list[Expression]]:
        ends: dict[Column, list[tuple[str, Literal]]] = {}
        rest: list[Expression] = []
        for term in terms:
            found = None
            if isinstance(term, Comparison) and term.operator in ("<", "<=", ">", ">=", "="):
                left, right, operator = term.left, term.right, term.operator
                if isinstance(left, Literal):
                    left, right, operator = right, left, MIRRORED[operator]
                if isinstance(left, Column) and isinstance(right, Literal) and right.value is not None:
                    value = self.value(left)
                    if value.stored is not None and value.sql.is_exact and value.operand.kind != SLOT:
                        found = (left, (operator, right))
            if found:
                ends.setdefault(found[0], []).append(found[1])
            else:
                rest.append(term)
        masks = []
        for column, bounds in ends.items():
            lows = [b for b in bounds if b[0][0] == ">"]
            highs = [b for b in bounds if b[0][0] == "<"]
            for _, literal in (b for b in bounds if b[0] == "="):
                masks.append(self._stored_range(self.value(column), (">=", literal), ("<=", literal), True, zones))
            for k in range(max(len(lows), len(highs))):
                low = lows[k] if k < len(lows) else None
                high = highs[k] if k < len(highs) else None
                masks.append(self._stored_range(self.value(column), low, high, True, zones))
        return masks, rest

    def _stored_range(
        self,
        value: Value,
        low: tuple[str, Literal] | None,
        high: tuple[str, Literal] | None,
        inside: bool,
        zones: list[tuple[int, int]] | None = None,
    ) -> Operand:
        """Range test of a stored column against constants: the constants are shifted into the stored range instead."""
        assert value.stored is not None
        column = value.stored.column
        slots = []
        for side in ("low", "high"):
            slots.append(
                self.builder.slot(
                    RangeSlot(
                        value.type,
                        column,
                        low[1] if low else None,
                        low is not None and low[0] == ">",
                        high[1] if high else None,
                        high is not None and high[0] == "<",
                        side,
                    )
                )
            )
        if zones is not None:
            zones.append((slots[0].number, slots[1].number))
        mask = self.builder.make("InRange" if inside else "NotInRange", R.MASK, value.operand, *slots)
        return mask if value.valid is None else self.builder.make("And", R.MASK, mask, value.valid)

    def _comparison(self, operator: str, left: Expression, right: Expression) -> Operand:
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, operator = right, left, MIRRORED[operator]
        a = self.value(left)
        if isinstance(right, Literal) and right.value is not None:
            if a.stored is not None and a.sql.is_exact and a.operand.kind != SLOT:
                low = (">=" if operator in ("=", "<>") else operator, right)
                if operator in ("=", "<>"):
                    return self._stored_range(a, (">=", right), ("<=", right), operator == "=")
                return (
                    self._stored_range(a, low, None, True)
                    if operator[0] == ">"
                    else self._stored_range(a, None, low, True)
                )
            if a.sql.is_coded:
                return self._text_against_constant(operator, a, right)
        b = self.value(right)
        valid = self.builder.both(a.valid, b.valid)
        mask = self._compared(operator, a, b)
        return mask if valid is None else self.builder.make("And", R.MASK, mask, valid)

    def _compared(self, operator: str, a: Value, b: Value) -> Operand:
        """Comparison of two values' bytes, NULL aside."""
        if a.sql.is_coded:
            left, right = self.comparable_texts(a, b, ordered=operator not in ("=", "<>"))
            kind = R.U32
        elif a.type is R.MASK or b.type is R.MASK or a.sql.is_exact:
            a, b = self.decoded(a), self.decoded(b)
            low, high = min(a.low, b.low), max(a.high, b.high)
            kind = integer_register(low, high)
            left, right = self.in_register(a, kind), self.in_register(b, kind)
        else:
            kind = R.F32 if a.type is R.F32 and b.type is R.F32 else R.F64
            left, right = self.in_register(a, kind), self.in_register(b, kind)
        if left.kind == SLOT and right.kind != SLOT:
            left, right, operator = right, left, MIRRORED[operator]
        return self.builder.make(COMPARE[operator], R.MASK, left, right)

    def _not_distinct(self, a: Value, b: Value) -> Operand:
        equal = self._compared("=", a, b)
        both = self.builder.both(a.valid, b.valid)
        if both is not None:
            equal = self.builder.make("And", R.MASK, equal, both)
        if a.valid is None or b.valid is None:
            return equal
        neither = self.builder.make("Not", R.MASK, self.builder.make("Or", R.MASK, a.valid, b.valid))
        return self.builder.make("Or", R.MASK, equal, neither)

    def _boolean(self, expression: Expression) -> Value:
        """A condition as a value: TRUE or FALSE is known, else NULL."""
        true = self.true(expression)
        if not self._may_be_null(expression):
            return Value(BOOLEAN, R.MASK, true, None, 0, 1)
        valid = self.builder.make("Or", R.MASK, true, self.false(expression))
        return Value(BOOLEAN, R.MASK, true, valid, 0, 1)

    def _may_be_null(self, expression: Expression) -> bool:
        match expression:
            case IsNull():
                return False
            case And(arguments=arguments) | Or(arguments=arguments):
                return any(self._may_be_null(a) for a in arguments)
            case Not(argument=argument):
                return self._may_be_null(argument)
            case Comparison(operator=operator, left=left, right=right):
                if operator.startswith("is_"):
                    return False
                return self.value(left).valid is not None or self.value(right).valid is not None
            case InList(argument=argument, items=items):
                return self.value(argument).valid is not None or any(item.value is None for item in items)
        return self.value(expression).valid is not None

    def _in_list(self, expression: InList, wanted: bool) -> Operand:
        """IN over constants: a lookup table over a dictionary or a narrow stored column, else one comparison an item."""
        argument = self.value(expression.argument)
        items = tuple(item for item in expression.items if item.value is not None)
        has_null = len(items) < len(expression.items)
        if not items:
            return self._all(False)
        member: Operand | None = None
        if argument.sql.is_coded:
            member = self.text_membership(argument, items)
        elif argument.stored is not None and argument.type in (R.U8, R.U16) and argument.operand.kind != SLOT:
            table = self.builder.slot(TableSlot(MemberTable(None, argument.stored.column, items)))
            member = self.builder.make("Lookup", R.MASK, argument.operand, table)
        if member is None:
            member = self._fold("Or", [self._comparison("=", expression.argument, item) for item in items])
        valid = argument.valid
        if wanted:
            return member if valid is None else self.builder.make("And", R.MASK, member, valid)
        if has_null:
            return self._all(False)
        if valid is None:
            return self.builder.make("Not", R.MASK, member)
        return self.builder.make("AndNot", R.MASK, valid, member)

    # ------------------------------------------------------------------------------------------- failing

    def fail_where(self, bad: Operand, valid: Operand | None, kind: str, message: Any, expression: Any) -> None:
        """Make the statement fail at the first row where `bad`, among rows that count."""
        self._fails += 1
        self.builder.messages.append((kind, message, getattr(expression, "span", None)))
        guard = self.builder.both(self.alive, valid)
        bad = self.builder.vector(bad)
        self.builder.block("Fail", (), bad, guard if guard is not None else bad, len(self.builder.messages) - 1)

    def checked_range(self, value: Value, sql: SqlType, expression: Any, what: str) -> Value:
        """The value with a check that it lies within the SQL type's bounds, unless that is proven."""
        low, high = sql.bounds
        if value.low >= low and value.high <= high:
            return value
        return self.within(value, low, high, False, what, expression)

    def within(self, value: Value, low: int, high: int, try_: bool, message: str, expression: Any) -> Value:
        """The value where it lies in low .. high; elsewhere the statement fails, or (try_) it is NULL."""
        least, greatest = register_range(value.type)
        ends = [
            self.builder.slot(PlainSlot(value.type, max(low, least))),
            self.builder.slot(PlainSlot(value.type, min(high, greatest))),
        ]
        operand = self.builder.vector(value.operand)
        valid = value.valid
        if try_:
            valid = self.builder.both(valid, self.builder.make("InRange", R.MASK, operand, *ends))
        else:
            bad = self.builder.make("NotInRange", R.MASK, operand, *ends)
            self.fail_where(bad, valid, "OutOfRangeError", message, expression)
        low, high = within_bounds(value.low, value.high, low, high)
        return replace(value, valid=valid, low=low, high=high)

    # ------------------------------------------------------------------------------------------- choice

    def unified(self, sql: SqlType, values: list[Value]) -> tuple[R, list[Operand], dict[str, Any]]:
        """Several values of one SQL type in one register type; with the bounds and dictionary of any of them."""
        form = common_form(sql, values)
        return form.kind, [self.in_form(v, form) for v in values], form.properties()

    def in_form(self, value: Value, form: CommonForm) -> Operand:
        """A value in a form that it shares with others."""
        if form.dictionary is not None:
            return self.in_dictionary(value, form.dictionary)
        return self.in_register(self.decoded(value), form.kind)

    def choose(self, condition: Operand, then: Value, otherwise: Value, sql: SqlType) -> Value:
        """condition ? then : otherwise, validity included."""
        kind, (a, b), rest = self.unified(sql, [then, otherwise])
        make = self.builder.make
        operand = make("Select", kind, condition, self.builder.vector(a), b)
        valid: Operand | None = None
        if then.valid is not None or otherwise.valid is not None:
            left = then.valid if then.valid is not None else self._all(True)
            right = otherwise.valid if otherwise.valid is not None else self._all(True)
            valid = make("Select", R.MASK, condition, left, right)
        return Value(sql, kind, operand, valid, **rest)

    def _case(self, expression: Case) -> Value:
        outer = self.alive
        remaining: Operand | None = None  # rows no earlier branch took
        branches: list[tuple[Operand, Value]] = []
        try:
            for condition, result in zip(expression.conditions, expression.results, strict=True):
                self.alive = self.builder.both(outer, remaining)
                taken = self.true(condition)
                self.alive = self.builder.both(self.alive, taken)
                branches.append((taken, self.value(result)))
                missed = self.builder.make("Not", R.MASK, taken)
                remaining = self.builder.both(remaining, missed)
            self.alive = self.builder.both(outer, remaining)
            chosen = self.value(expression.otherwise)
        finally:
            self.alive = outer
        for taken, found in reversed(branches):
            chosen = self.choose(taken, found, chosen, expression.type)
        return chosen

    def _coalesce(self, sql: SqlType, arguments: tuple[Expression, ...]) -> Value:
        outer = self.alive
        values: list[Value] = []
        try:
            for argument in arguments:
                value = self.value(argument)
                values.append(value)
                if value.valid is None:
                    break
                self.alive = self.builder.both(self.alive, self.builder.make("Not", R.MASK, value.valid))
        finally:
            self.alive = outer
        result = values[-1]
        for value in reversed(values[:-1]):
            assert value.valid is not None
            result = self.choose(value.valid, value, result, sql)
        return result

    def _extreme(self, expression: Call, greatest: bool) -> Value:
        """GREATEST or LEAST: NULLs are ignored."""
        values = [self.value(a) for a in expression.arguments]
        result = values[0]
        for value in values[1:]:
            better = self._compared(">" if greatest else "<", value, result)
            if result.valid is not None:
                better = self.builder.make("Or", R.MASK, better, self.builder.make("Not", R.MASK, result.valid))
            if value.valid is not None:
                better = self.builder.make("And", R.MASK, better, value.valid)
            chosen = self.choose(better, value, result, expression.type)
            valid = None
            if value.valid is not None and result.valid is not None:
                valid = self.builder.make("Or", R.MASK, value.valid, result.valid)
            result = replace(chosen, valid=valid)
        return result

    # ------------------------------------------------------------------------------------------- calls

    def _call(self, expression: Call, name: str, arguments: tuple[Expression, ...], overload: Overload | None) -> Value:
        if name in ("greatest", "least"):
            return self._extreme(expression, name == "greatest")
        if name in ARITHMETIC and expression.type.kind != "INTERVAL":
            values = [self.value(a) for a in arguments]
            if expression.type.is_float:
                return self._float_arithmetic(name, expression.type, values, expression)
            return self._exact_arithmetic(name, expression, values)
        if name == "reinterpret":  # the integer behind a DECIMAL as a HUGEINT, or the other way round
            return replace(self.decoded(self.value(arguments[0])), sql=expression.type)
        assert overload is not None, f"call without an overload: {name}"
        if name == "at_time_zone" and isinstance(arguments[0], Literal):
            return self._in_zone(expression, arguments[0].value, self.value(arguments[1]))
        if overload.kind == "text":
            return self.text_call(expression, overload, arguments)
        if overload.kind == "python":
            return self._python_call(expression, overload, arguments)
        return self._scalar_call(expression, overload, arguments)

    def _float_arithmetic(self, name: str, sql: SqlType, values: list[Value], expression: Call) -> Value:
        kind = sql.register
        operands = [self.in_register(v, kind) for v in values]
        valid = None
        for value in values:
            valid = self.builder.both(valid, value.valid)
        if name in FAIL_BY_ZERO:
            zero = self.builder.slot(PlainSlot(kind, 0.0))
            bad = self.builder.make("Eq", R.MASK, self.builder.vector(operands[1]), zero)
            self.fail_where(bad, valid, "DataError", "division by zero", expression)
        low, high = float_bounds(name, values)
        return Value(sql, kind, self.builder.make(FLOAT_OPCODES[name], kind, *operands), valid, low, high)

    def _exact_arithmetic(self, name: str, expression: Call, values: list[Value]) -> Value:
        sql = expression.type
        values = [self.decoded(v) for v in values]
        valid = None
        for value in values:
            valid = self.builder.both(valid, value.valid)
        low, high = exact_bounds(name, values)
        if sql.kind == "DATE":
            return self._moved_date(name, expression, values, valid, low, high)
        widest = integer_register(min(low, *(v.low for v in values)), max(high, *(v.high for v in values)))
        inside_register = widest is not R.I128 or max(abs(low), abs(high)) < 1 << 127
        if widest is R.I128 and sql.kind not in ("HUGEINT", "UBIGINT", "DECIMAL"):
            widest, inside_register = R.I64, INT64[0] <= low and high <= INT64[1]
        if sql.kind == "DECIMAL" and sql.precision <= 18 and widest is R.I128:
            widest, inside_register = R.I64, False
        operands = [self.in_register(v, widest) for v in values]
        what = f"overflow in {WORDS[name]} of {sql}"
        if name in ("integer_divide", "modulo"):
            zero = self.builder.slot(PlainSlot(widest, 0))
            if values[1].low <= 0 <= values[1].high:
                bad = self.builder.make("Eq", R.MASK, self.builder.vector(operands[1]), zero)
                self.fail_where(bad, valid, "DataError", "division by zero", expression)
        if not inside_register:
            overflow = OVERFLOWS.get(name)
            if overflow is None and name == "negate":
                lowest = self.builder.slot(PlainSlot(widest, -(1 << (widest.width * 8 - 1))))
                bad = self.builder.make("Eq", R.MASK, self.builder.vector(operands[0]), lowest)
            elif overflow is None:
                lowest = self.builder.slot(PlainSlot(widest, -(1 << (widest.width * 8 - 1))))
                minus_one = self.builder.slot(PlainSlot(widest, -1))
                bad = self.builder.make(
                    "And",
                    R.MASK,
                    self.builder.make("Eq", R.MASK, self.builder.vector(operands[0]), lowest),
                    self.builder.make("Eq", R.MASK, self.builder.vector(operands[1]), minus_one),
                )
            else:
                bad = self.builder.make(overflow, R.MASK, *operands)
            self.fail_where(bad, valid, "OutOfRangeError", what, expression)
            low, high = within_bounds(low, high, *register_range(widest))
        operand = self.builder.make(EXACT_OPCODES[name], widest, *operands)
        return self.checked_range(Value(sql, widest, operand, valid, low, high), sql, expression, what)

    def _moved_date(
        self, name: str, expression: Call, values: list[Value], valid: Operand | None, low: int, high: int
    ) -> Value:
        """DATE plus or minus days: infinite dates stay, finite ones stay finite or the statement fails."""
        sql, make = expression.type, self.builder.make
        moved = make(EXACT_OPCODES[name], R.I64, *(self.builder.vector(self.in_register(v, R.I64)) for v in values))
        date = next(v for v in values if v.sql.kind == "DATE")
        first, last = FIRST_DAY, LAST_DAY
        if not first <= date.low <= date.high <= last:
            before = self.in_register(date, R.I64)
            ends = self.builder.slot(PlainSlot(R.I64, first)), self.builder.slot(PlainSlot(R.I64, last))
            finite = make("InRange", R.MASK, self.builder.vector(before), *ends)
            bad = make("And", R.MASK, finite, make("NotInRange", R.MASK, moved, *ends))
            self.fail_where(bad, valid, "OutOfRangeError", f"date out of range in {WORDS[name]}", expression)
            moved = make("Select", R.I64, finite, moved, before)
            value = Value(
                sql,
                R.I64,
                moved,
                valid,
                max(sql.bounds[0], min(low, date.low)),
                min(sql.bounds[1], max(high, date.high)),
            )
        else:
            value = Value(sql, R.I64, moved, valid, low, high)
            if not first <= low <= high <= last:
                value = self.within(value, first, last, False, f"date out of range in {WORDS[name]}", expression)
        return replace(value, operand=self.in_register(value, R.I32), type=R.I32)

    def _in_zone(self, expression: Call, name: str, value: Value) -> Value:
        """A moment as a zone's clocks show it, or what they show as the moment: the offset of a bisected table more or less."""
        sql, make = expression.type, self.builder.make
        if value.is_null:
            return self.literal(Literal(sql, None))
        place = zone(name)
        if place.is_utc:
            return replace(self.decoded(value), sql=sql)
        shown = sql.kind == "TIMESTAMP"
        value = self.decoded(value)
        operand = self.builder.vector(self.in_register(value, R.I64))
        table = self.builder.slot(TableSlot(PlainTable(R.I64, place.table if shown else place.local)))
        ahead = make("ZoneOffset", R.I64, operand, table)
        low, high = within_bounds(value.low - MICROSECONDS_A_DAY, value.high + MICROSECONDS_A_DAY, *sql.bounds)
        if low == sql.bounds[0] or high == sql.bounds[1]:
            bad = make("AddOverflows" if shown else "SubtractOverflows", R.MASK, operand, ahead)
            self.fail_where(bad, value.valid, "OutOfRangeError", out_of_range(sql), expression)
        moved = make("Add" if shown else "Subtract", R.I64, operand, ahead)
        return Value(sql, R.I64, moved, value.valid, low, high)

    def _always(self, mask: Operand) -> bool:
        """Is a mask known to be set wherever its row is not NULL?"""
        known = self.builder.known.of(mask)
        return known is not None and bool(known[1].all())

    def _scalar_call(self, expression: Call, overload: Overload, arguments: tuple[Expression, ...]) -> Value:
        operands: list[Operand] = []
        valid: Operand | None = None
        for kind, argument in zip(overload.arguments, arguments, strict=True):
            if kind == "INTERVAL":
                if not isinstance(argument, Literal) or argument.value is None:
                    raise NotSupportedError("an INTERVAL here must be a constant", span=argument.span)
                for part, register in (("months", R.I32), ("days", R.I32), ("microseconds", R.I64)):
                    operands.append(self.builder.slot(ConstantIntervalSlot(register, argument, part)))
                continue
            value = self.value(argument)
            valid = self.builder.both(valid, value.valid)
            operands.append(self.in_register(self.decoded(value), parse_type(kind).register))
        if overload.null_when is not None:  # before the domain: a row that is NULL does not fail
            null = self.builder.make(function_opcode_name(overload, "null"), R.MASK, *operands)
            present = self.builder.make("Not", R.MASK, null)
            if not self._always(present):
                valid = self.builder.both(valid, present)
        if overload.domain is not None:
            inside = self.builder.make(function_opcode_name(overload, "domain"), R.MASK, *operands)
            if not self._always(inside):
                outside = self.builder.make("Not", R.MASK, inside)
                self.fail_where(outside, valid, "OutOfRangeError", overload.domain[2], expression)
        register = overload.result.register
        operand = self.builder.make(function_opcode_name(overload, "value"), register, *operands)
        sql = expression.type
        low: Any
        high: Any
        known = self.builder.known.of(operand)
        if known is not None and not sql.is_float:
            low, high = int(known[1].min()), int(known[1].max())
            register = R.MASK if register is R.MASK else integer_register(low, high)
            return Value(sql, register, self.builder.known.looked_up(operand, known[1], register), valid, low, high)
        low, high = sql.bounds if sql.is_exact else (None, None)
        if sql.is_exact and register is R.I32:
            low, high = max(low, INT32[0]), min(high, INT32[1])
        if overload.bounds is not None:
            low, high = overload.bounds
        if overload.monotone and sql.is_exact:
            low, high = self._monotone_bounds(overload, arguments, low, high)
        return Value(sql, register, operand, valid, low, high)

    def _python_call(self, expression: Call, overload: Overload, arguments: tuple[Expression, ...]) -> Value:
        """A Python function, called for rows that count only: alive, no argument NULL unless it takes NULLs."""
        function = overload.python
        values = [self.decoded(self.value(argument)) for argument in arguments]
        operands = [
            self.in_register(value, SqlType(kind).register)
            for value, kind in zip(values, overload.arguments, strict=True)
        ]
        valid: Operand | None = None
        if function.takes_null:
            operands += [self._all(True) if value.valid is None else value.valid for value in values]
        else:
            for value in values:
                valid = self.builder.both(valid, value.valid)
        guard = self.builder.both(self.alive, valid)
        sql = expression.type
        operand, status = self.builder.call(FunctionSlot(function), sql.register, guard, operands)
        self._fails += 1  # it looks at some rows only, as a check does
        self._effects += function.side_effects
        for code, what in function.failures:
            only = self.builder.slot(PlainSlot(R.U8, code))
            bad = self.builder.make("InRange", R.MASK, status, only, only)
            self.fail_where(bad, valid, "DataError", FunctionFailure(function.name, what), expression)
        if function.gives_null:
            only = self.builder.slot(PlainSlot(R.U8, function.gives_null))
            valid = self.builder.both(valid, self.builder.make("NotInRange", R.MASK, status, only, only))
        low, high = sql.bounds if sql.is_exact else (None, None)
        return Value(sql, sql.register, operand, valid, low, high)

    def _monotone_bounds(
        self, overload: Overload, arguments: tuple[Expression, ...], low: Any, high: Any
    ) -> tuple[Any, Any]:
        """The range of a function that rises with its first argument, from that argument's range.

        It rises where it is defined: an end that is NULL or outside the domain (infinity, mostly) says nothing.
        """
        first = self.value(arguments[0])
        if len(arguments) != 1 or not first.sql.is_exact or first.low is None:
            return low, high
        dtype = parse_type(overload.arguments[0]).register.dtype
        given = np.array([first.low, first.high], dtype)
        defined = np.ones(2, bool)
        if overload.null_when is not None:
            defined &= ~np.asarray(overload.null_when[1](given))
        if overload.domain is not None:
            defined &= np.asarray(overload.domain[1](given))
        ends = overload.body(given)
        if ends[0] > ends[1]:  # ranges are rounded outwards, past the first or last time that there is: it wrapped
            return low, high
        least, greatest = (int(end) if ok else other for end, ok, other in zip(ends, defined, (low, high), strict=True))
        return within_bounds(least, greatest, low, high)


ARITHMETIC = frozenset(
    "add subtract multiply divide integer_divide modulo decimal_modulo negate bit_and bit_or bit_xor".split()
)
WORDS = {
    "add": "addition",
    "subtract": "subtraction",
    "multiply": "multiplication",
    "integer_divide": "division",
    "modulo": "remainder",
    "negate": "negation",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "xor",
}
FAIL_BY_ZERO = ("integer_divide", "decimal_modulo")  # of floats, too
FLOAT_OPCODES = {
    "add": "Add",
    "subtract": "Subtract",
    "multiply": "Multiply",
    "divide": "Divide",
    "integer_divide": "Divide",  # a plain quotient too, but by zero it is an error
    "modulo": "FloatModulo",
    "decimal_modulo": "FloatModulo",  # of decimals that no DECIMAL holds: by zero it is an error, too
    "negate": "Negate",
}
EXACT_OPCODES = {
    "add": "Add",
    "subtract": "Subtract",
    "multiply": "Multiply",
    "integer_divide": "IntegerDivide",
    "modulo": "Modulo",
    "negate": "Negate",
    "bit_and": "BitAnd",
    "bit_or": "BitOr",
    "bit_xor": "BitXor",
}
OVERFLOWS = {"add": "AddOverflows", "subtract": "SubtractOverflows", "multiply": "MultiplyOverflows"}


def can_fail(expression: Expression) -> bool:
    """May evaluating this raise an error (overflow, a cast, a function's domain)?"""
    for node in expression.walk():
        if isinstance(node, Cast) and not node.try_:
            return True
        if isinstance(node, Call):
            overload = node.overload
            if node.name in ARITHMETIC and (not node.type.is_float or node.name in FAIL_BY_ZERO):
                return True
            if overload is not None and (overload.domain is not None or overload.kind in ("text", "python")):
                return True
    return False
