"""Scalar expressions: sqlglot trees to bound ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpudb.errors import BindError, DataError, NotSupportedError
from gpudb.planner.bind import functions, lists
from gpudb.planner.bind.casts import as_boolean, bind_type, case_type, cast, comparison_type, order_type
from gpudb.planner.bind.context import Context, Enclosing, join_spans, own_span, span_of
from gpudb.planner.bind.intervals import in_type
from gpudb.planner.bind.names import OPPOSITES, chain, describe
from gpudb.planner.bind.operators import arithmetic, bit_not, compare, concatenate, negate
from gpudb.planner.bind.over import Over
from gpudb.planner.bind.scope import Scope
from gpudb.planner.bind.subqueries import Subquery, one_column, quantified
from gpudb.planner.bind.unnest import CLAUSES as UNNEST_CLAUSES
from gpudb.planner.bind.unnest import contains_unnest
from gpudb.planner.bind.windows import bind_window
from gpudb.planner.expressions import (
    AggregateCall,
    And,
    Case,
    Column,
    Comparison,
    Expression,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Span,
)
from gpudb.planner.logical import Node
from gpudb.planner.tokens import POSITION, plain
from gpudb.types import BOOLEAN, DOUBLE, HUGEINT, NULL, VARCHAR

if TYPE_CHECKING:
    from gpudb.planner.bind.relations import RelationBinder

_ARITHMETIC = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "intdiv": "integer_divide",
    "mod": "modulo",
    "pow": "power",
    "bitwiseand": "bit_and",
    "bitwiseor": "bit_or",
    "bitwiseleftshift": "shift_left",
    "bitwiserightshift": "shift_right",
}
_COMPARISONS = {
    "eq": "=",
    "neq": "<>",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "nullsafeeq": "is_not_distinct",
    "nullsafeneq": "is_distinct",
}


class ExpressionBinder:
    """Binds expressions of one clause over one scope.

    aliases        select-list aliases by lower-case name; alias_first says whether they win over columns
    is_grouped     over groups: an alias wins over a column that is no key
    clause         where the expressions stand, for errors: "WHERE"
    aggregates     whether aggregate functions may occur
    substitutions  bound arguments by lower-case parameter name, while a macro is expanded
    query          the binder of the query around, where subqueries may occur: it attaches them to its plan
    windows        the query's named windows, where window functions may occur
    """

    def __init__(
        self,
        context: Context,
        scope: Scope,
        *,
        clause: str,
        aggregates: bool = False,
        aliases: Mapping[str, Expression] | None = None,
        alias_first: bool = False,
        is_grouped: Callable[[Column], bool] | None = None,
        substitutions: Mapping[str, Expression] | None = None,
        query: RelationBinder | None = None,
        windows: Mapping[str, Over] | None = None,
    ) -> None:
        self.context = context
        self.scope = scope
        self.clause = clause
        self.aggregates = aggregates
        self.aliases = aliases or {}
        self.alias_first = alias_first
        self.is_grouped = is_grouped
        self.substitutions = substitutions
        self.query = query
        self.windows = windows

    def bind(self, node: Any) -> Expression:
        """The bound form of a sqlglot tree, or BindError / NotSupportedError with its place."""
        key = node.key
        name = _ARITHMETIC.get(key)
        if name is not None:
            return arithmetic(self.context, name, self.bind(node.this), self.bind(node.expression))
        operator = _COMPARISONS.get(key)
        if operator is not None:
            return self.comparison(node, operator)
        method: Callable[[Any], Expression] | None = getattr(self, "bind_" + key, None)
        if method is None:
            raise NotSupportedError(f"{describe(node)} is not supported", span=span_of(node))
        return method(node)

    def condition(self, node: Any) -> Expression:
        return as_boolean(self.context, self.bind(node))

    # --- Leaves ------------------------------------------------------------------------------------------------------

    def bind_column(self, node: Any) -> Expression:
        if node.this.key == "star":
            raise BindError(f"* is not allowed in {self.clause}", span=span_of(node))
        name, relation, span = plain(node.name), node.table or None, span_of(node)
        if name.startswith(POSITION):
            return self.positional(node)
        if self.substitutions is not None:
            found = self.substitutions.get(name.lower())
            if found is None:
                raise BindError(f"unknown name in the definition of a function: {name}")
            return found
        schema = node.args.get("db")
        known = schema is None or schema.name.lower() in ("main", (relation or "").lower())
        if schema is not None and not known and not self.context.catalog.has_schema(schema.name):
            raise BindError(f"schema not found: {schema.name}", span=span)
        alias = self.aliases.get(name.lower()) if relation is None else None
        if alias is not None and self.alias_first:
            return self.alias(alias, span)
        column = self.scope.find(name, plain(relation) if relation else None, span)
        if column is not None and not (alias is not None and self.is_grouped and not self.is_grouped(column)):
            return column
        if alias is not None:
            return self.alias(alias, span)
        outer = self.context.outer_column(name, plain(relation) if relation else None, span)
        if outer is not None:
            return outer
        raise self.scope.missing(name, relation, span, list(self.aliases))

    def alias(self, value: Expression, span: Span | None) -> Expression:
        """What an alias of the select list stands for."""
        if contains_unnest(value) and self.clause not in UNNEST_CLAUSES:
            raise BindError(f"UNNEST is not allowed in {self.clause}", span=span)
        return value

    def positional(self, node: Any) -> Expression:
        """#2: the second column of FROM."""
        position, span = position_of(self.context, node)
        if not 1 <= position <= len(self.scope.columns):
            raise BindError(f"column number is not 1 to {len(self.scope.columns)}: #{position}", span=span)
        name, type_ = self.scope.columns[position - 1]
        return Column(type_, position - 1, name, span=span)

    def bind_literal(self, node: Any) -> Expression:
        literal = self.number_token(node)
        if literal is None:
            return self.constant(node)
        too_wide = literal.type == DOUBLE and str(node.this).isdigit() and literal.value < 2.0**128
        if too_wide or literal.type == HUGEINT and literal.value > HUGEINT.bounds[1]:
            raise NotSupportedError("integers beyond HUGEINT (type UHUGEINT) are not supported", span=literal.span)
        return literal

    def number_token(self, node: Any) -> Literal | None:
        """The token's constant as it is written: 2**127, which only its negative is a HUGEINT of, too."""
        place = own_span(node) if node.key == "literal" and self.substitutions is None else None
        return self.context.literal(place[0], place) if place is not None else None

    def constant(self, node: Any) -> Literal:
        """A literal that is part of the plan: text of a macro, or what `shape` leaves in the key."""
        if node.is_string:
            return Literal(VARCHAR, str(node.this), span=span_of(node))
        from gpudb.planner.parse import shape

        _, literals = shape(str(node.this))
        type_, value = literals[0]
        return Literal(type_, value, span=span_of(node))

    def bind_rawstring(self, node: Any) -> Expression:
        return Literal(VARCHAR, str(node.this), span=span_of(node))

    bind_bytestring = bind_rawstring

    def bind_null(self, node: Any) -> Expression:
        return Literal(NULL, None, span=span_of(node))

    def bind_boolean(self, node: Any) -> Expression:
        return Literal(BOOLEAN, bool(node.this), span=span_of(node))

    def bind_placeholder(self, node: Any) -> Expression:
        return self.context.parameter(str(node.this))

    def bind_paren(self, node: Any) -> Expression:
        return self.bind(node.this)

    def bind_star(self, node: Any) -> Expression:
        raise BindError(f"* is not allowed in {self.clause}", span=span_of(node))

    # --- Operators ---------------------------------------------------------------------------------------------------

    def bind_neg(self, node: Any) -> Expression:
        token = self.number_token(node.this)
        operand = token if token is not None and token.type == HUGEINT else self.bind(node.this)
        span = operand.span and (max(0, operand.span[0] - 1), operand.span[1])
        return negate(self.context, operand, span)

    def bind_sqrt(self, node: Any) -> Expression:
        """Unary plus, as `planner.tokens` spells it."""
        operand = self.bind(node.this)
        if not (operand.type.is_numeric or operand.type.kind == "NULL"):
            raise BindError(f"no operator + for {operand.type}", span=operand.span)
        return operand

    def bind_bitwisenot(self, node: Any) -> Expression:
        operand = self.bind(node.this)
        return bit_not(self.context, operand, operand.span)

    def bind_abs(self, node: Any) -> Expression:
        """@x."""
        return functions.call(self, "abs", [self.bind(node.this)], span_of(node))

    def bind_dpipe(self, node: Any) -> Expression:
        operands = [self.bind(term) for term in chain(node)]
        if any(operand.type.child is not None for operand in operands):
            return lists.concatenated(operands, span_of(node))
        return concatenate(self.context, operands, join_spans(*(operand.span for operand in operands)))

    def comparison(self, node: Any, operator: str) -> Expression:
        if node.this.key in ("any", "all"):
            raise NotSupportedError(f"{describe(node.this)} on the left is not supported", span=span_of(node))
        if node.expression.key in ("any", "all"):
            return self.quantified(node, operator)
        return compare(self.context, operator, self.bind(node.this), self.bind(node.expression))

    def bind_and(self, node: Any) -> Expression:
        terms = tuple(self.condition(term) for term in chain(node))
        return And(BOOLEAN, terms, span=join_spans(*(term.span for term in terms)))

    def bind_or(self, node: Any) -> Expression:
        terms = tuple(self.condition(term) for term in chain(node))
        return Or(BOOLEAN, terms, span=join_spans(*(term.span for term in terms)))

    def bind_not(self, node: Any) -> Expression:
        argument = self.condition(node.this)
        return Not(BOOLEAN, argument, span=argument.span)

    def bind_is(self, node: Any) -> Expression:
        argument = self.bind(node.this)
        value = node.expression
        if value.key == "null":
            return IsNull(BOOLEAN, argument, span=argument.span)
        if value.key != "boolean":
            raise NotSupportedError(f"IS {describe(value)} is not supported", span=argument.span)
        truth = Literal(BOOLEAN, bool(value.this))
        return Comparison(BOOLEAN, "is_not_distinct", as_boolean(self.context, argument), truth, span=argument.span)

    # --- Subqueries --------------------------------------------------------------------------------------------------

    def subplan(self, node: Any, query: Any) -> tuple[Node, tuple[Expression, ...]]:
        """(the plan of a subquery, the values that it takes of a row of this query)."""
        if self.query is None:
            raise NotSupportedError(f"{describe(node)} in {self.clause} is not supported", span=span_of(node))
        return self.query.subquery(query, Enclosing(self.scope, self.aggregates, self.aliases))

    def bind_subquery(self, node: Any) -> Expression:
        """A query as a value."""
        span = span_of(node)
        plan, arguments = self.subplan(node, node)
        plan = one_column(plan, span)
        return Subquery(plan.columns[0][1], "value", plan, arguments, span=span)

    def bind_exists(self, node: Any) -> Expression:
        plan, arguments = self.subplan(node, node.this)
        return Subquery(BOOLEAN, "exists", plan, arguments, span=span_of(node))

    def operands(self, node: Any) -> list[Expression]:
        """What is compared with the columns of a subquery: (a, b), or one expression."""
        return [self.bind(item) for item in (node.expressions if node.key == "tuple" else [node])]

    def quantified(self, node: Any, operator: str) -> Expression:
        """operand operator ANY (query) or ALL (query), which is NOT ANY of the opposite."""
        side, span = node.expression, span_of(node)
        query = side.this
        if query.key not in ("subquery", "select", "union", "except", "intersect", "values"):
            raise NotSupportedError(f"{side.key.upper()} of a list is not supported", span=span, hint="write IN (...)")
        if operator not in OPPOSITES:
            raise NotSupportedError(f"{describe(node)} is not supported", span=span)
        operands = self.operands(node.this)
        if len(operands) > 1:
            raise NotSupportedError(
                f"{side.key.upper()} of rows of columns is not supported", span=span, hint="write IN"
            )
        chosen = OPPOSITES[operator] if side.key == "all" else operator
        found = quantified(self.context, operands, chosen, *self.subplan(node, query), span)
        return Not(BOOLEAN, found, span=span) if side.key == "all" else found

    def bind_between(self, node: Any) -> Expression:
        operands = [self.bind(node.this), self.bind(node.args["low"]), self.bind(node.args["high"])]
        span = join_spans(*(operand.span for operand in operands))
        type_ = order_type(self.context, operands)
        if type_ is None:
            shown = ", ".join(str(operand.type) for operand in operands)
            raise BindError(f"cannot compare these types: {shown}", span=span)
        value, low, high = in_type(self.context, operands, type_)
        terms = (
            Comparison(BOOLEAN, ">=", value, low, span=join_spans(value.span, low.span)),
            Comparison(BOOLEAN, "<=", value, high, span=join_spans(value.span, high.span)),
        )
        return And(BOOLEAN, terms, span=span)

    def bind_in(self, node: Any) -> Expression:
        query = node.args.get("query")
        if query is None and len(node.expressions) == 1 and node.expressions[0].key == "values":
            query = node.expressions[0]
        if query is not None:
            operands = self.operands(node.this)
            return quantified(self.context, operands, "=", *self.subplan(node, query), span_of(node))
        if not node.expressions:
            raise NotSupportedError("IN without a list in parentheses is not supported", span=span_of(node))
        operands = [self.bind(node.this), *(self.bind(item) for item in node.expressions)]
        span = join_spans(*(operand.span for operand in operands))
        type_ = comparison_type(self.context, operands)
        if type_ is None:
            shown = ", ".join(dict.fromkeys(str(operand.type) for operand in operands))
            raise BindError(f"cannot compare these types: {shown}", span=span)
        argument, *items = in_type(self.context, operands, type_)
        literals = tuple(item for item in items if isinstance(item, Literal))
        if len(literals) == len(items):
            if len(items) == 1:
                return Comparison(BOOLEAN, "=", argument, items[0], span=span)
            return InList(BOOLEAN, argument, literals, span=span)
        terms = tuple(Comparison(BOOLEAN, "=", argument, item, span=span) for item in items)
        return terms[0] if len(terms) == 1 else Or(BOOLEAN, terms, span=span)

    def bind_case(self, node: Any) -> Expression:
        subject = self.bind(node.this) if node.this is not None else None
        conditions, results = [], []
        for branch in node.args["ifs"]:
            if subject is None:
                conditions.append(self.condition(branch.this))
            else:
                conditions.append(compare(self.context, "=", subject, self.bind(branch.this)))
            results.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        results.append(self.bind(default) if default is not None else Literal(NULL, None))
        return self.case(conditions, results)

    def case(self, conditions: list[Expression], results: list[Expression]) -> Expression:
        """CASE of bound parts; the last result is ELSE."""
        span = join_spans(*(part.span for part in [*conditions, *results]))
        type_ = case_type(self.context, [results[-1], *results[:-1]])
        if type_ is None:
            shown = ", ".join(dict.fromkeys(str(result.type) for result in results))
            raise BindError(f"results have no common type: {shown}", span=span, hint="cast them to one type")
        bound = [cast(self.context, result, type_) for result in results]
        return Case(type_, tuple(conditions), tuple(bound[:-1]), bound[-1], span=span)

    # --- Text --------------------------------------------------------------------------------------------------------

    def bind_like(self, node: Any) -> Expression:
        return self.pattern(node, "like")

    def bind_ilike(self, node: Any) -> Expression:
        return self.pattern(node, "ilike")

    def bind_escape(self, node: Any) -> Expression:
        if node.this.key not in ("like", "ilike"):
            raise BindError("ESCAPE belongs to LIKE or ILIKE", span=span_of(node))
        return self.pattern(node.this, node.this.key, node.expression)

    def pattern(self, node: Any, name: str, escape: Any = None) -> Expression:
        operands = [self.bind(node.this), self.bind(node.expression)]
        if escape is not None:
            operands.append(self.bind(escape))
        found = functions.call(self, name, operands, join_spans(*(operand.span for operand in operands)))
        return Not(BOOLEAN, found, span=found.span) if node.args.get("negate") else found

    def bind_similarto(self, node: Any) -> Expression:
        return functions.call(
            self, "regexp_full_match", [self.bind(node.this), self.bind(node.expression)], span_of(node)
        )

    def bind_regexplike(self, node: Any) -> Expression:
        return functions.call(self, "regexp_matches", [self.bind(node.this), self.bind(node.expression)], span_of(node))

    def bind_glob(self, node: Any) -> Expression:
        return functions.call(self, "glob", [self.bind(node.this), self.bind(node.expression)], span_of(node))

    # --- Casts and functions -----------------------------------------------------------------------------------------

    def bind_cast(self, node: Any, try_: bool = False) -> Expression:
        if node.args.get("format") is not None:
            raise NotSupportedError("CAST ... FORMAT is not supported", span=span_of(node))
        argument = self.bind(node.this)
        span = join_spans(argument.span, own_span(node.args["to"]))
        target = bind_type(self.context, node.args["to"])
        try:
            bound = cast(self.context, argument, target, try_)
            if bound is argument and isinstance(argument, Literal) and argument.slot is not None:
                # A cast that changes nothing still says the type: 100::INTEGER is no literal that adapts to SMALLINT.
                bound = replace(argument, steps=(*argument.steps, ("cast", target, target)))
        except DataError as error:
            error.span = span
            raise
        except BindError as error:
            error.span = span
            raise
        return bound

    def bind_trycast(self, node: Any) -> Expression:
        return self.bind_cast(node, try_=True)

    def bind_array(self, node: Any) -> Expression:
        """[a, b, ...]."""
        return lists.list_value(self, [self.bind(item) for item in node.expressions], span_of(node))

    def bind_bracket(self, node: Any) -> Expression:
        """x[i]."""
        value, (index,) = self.bind(node.this), node.expressions
        if index.key == "slice" and value.type.child is not None:
            ends = [index.args.get(part) for part in ("this", "expression", "step")]
            return lists.sliced(self, value, [end and self.bind(end) for end in ends], span_of(node))
        if index.key == "slice" or value.type.child is None:
            what = f"a slice of {value.type}" if index.key == "slice" else f"{describe(node)} of {value.type}"
            raise NotSupportedError(f"{what} is not supported", span=span_of(node))
        return lists.element(self, value, self.bind(index), span_of(node))

    def bind_anonymous(self, node: Any) -> Expression:
        return functions.bind_call(self, node)

    def bind_columns(self, node: Any) -> Expression:
        """COLUMNS(...): the column whose turn it is."""
        if self.context.star_column is None:
            raise NotSupportedError(f"COLUMNS in {self.clause} is not supported", span=span_of(node))
        return self.context.star_column

    def bind_withingroup(self, node: Any, condition: Any = None) -> Expression:
        if node.this.key != "anonymous":
            raise NotSupportedError(f"{describe(node)} is not supported", span=span_of(node))
        return functions.bind_call(self, node.this, condition, node.expression)

    def bind_filter(self, node: Any) -> Expression:
        if node.this.key == "withingroup":
            return self.bind_withingroup(node.this, node.expression.this)
        if node.this.key != "anonymous":
            raise NotSupportedError(f"{describe(node.this)} with FILTER is not supported", span=span_of(node))
        return functions.bind_call(self, node.this, condition=node.expression.this)

    def bind_window(self, node: Any) -> Expression:
        return bind_window(self, node)

    def bind_currentdate(self, node: Any) -> Expression:
        return functions.current_date(self)

    def bind_currenttimestamp(self, node: Any) -> Expression:
        return functions.now(self)

    def bind_attimezone(self, node: Any) -> Expression:
        """x AT TIME ZONE zone: a TIMESTAMP of that zone's clocks as a moment, or a moment as they show it."""
        value, zone = self.bind(node.this), self.bind(node.args["zone"])
        return functions.call(self, "timezone", [zone, value], join_spans(value.span, zone.span))

    def bind_if(self, node: Any) -> Expression:
        """sqlglot's node of IF(...); calls come here as `bind_anonymous`."""
        default = node.args.get("false")
        results = [self.bind(node.args["true"]), self.bind(default) if default is not None else Literal(NULL, None)]
        return self.case([self.condition(node.this)], results)

    # --- Help for functions ------------------------------------------------------------------------------------------

    def with_substitutions(self, arguments: Mapping[str, Expression]) -> ExpressionBinder:
        """A binder for the SQL of a macro, in which names are the macro's parameters."""
        return ExpressionBinder(
            self.context,
            self.scope,
            clause=self.clause,
            aggregates=self.aggregates,
            substitutions=arguments,
            query=self.query,
            windows=self.windows,
        )

    def inside_window(self, function: str) -> ExpressionBinder:
        """A binder for the parts of a window function: no window functions within."""
        return ExpressionBinder(
            self.context,
            self.scope,
            clause=f"the arguments of {function}",
            aggregates=self.aggregates,
            aliases=self.aliases,
            is_grouped=self.is_grouped,
            substitutions=self.substitutions,
            query=self.query,
        )

    def inside_aggregate(self, function: str) -> ExpressionBinder:
        """A binder for the arguments of an aggregate: no aggregates within."""
        return ExpressionBinder(
            self.context,
            self.scope,
            clause=f"the arguments of {function}",
            aliases=self.aliases,
            substitutions=self.substitutions,
            query=self.query,
        )


def position_of(context: Context, node: Any) -> tuple[int, Span | None]:
    """The number of #number, whose value the plan consumes, and its place."""
    span = span_of(node)
    slot = context.parsed.slots.get(span[0] + 1) if span is not None else None
    if slot is not None:
        context.consumed.add(slot)
    return int(node.name.removeprefix(POSITION)), span


def contains_aggregate(expression: Expression) -> bool:
    """Whether an aggregate function occurs in a bound expression."""
    return any(isinstance(part, AggregateCall) for part in expression.walk())
