"""Rules: what each rewrites, what it leaves alone, and that the whole tuple keeps a plan's columns."""

from __future__ import annotations

import doctest
import sys
from operator import eq, ge, gt, le, lt, ne

import pytest

from gpudb.planner.expressions import And, Column, Comparison, Expression, IsNull, Literal, Not, Or
from gpudb.planner.logical import Aggregate, Filter, Join, Limit, Node, Project, Scan, Sort, UnionAll
from gpudb.planner.rules import RULES, Rule, apply_rules
from gpudb.planner.rules.fold_constants import fold_constants
from gpudb.planner.rules.merge_projects import merge_projects
from gpudb.planner.rules.prune_columns import prune_columns
from gpudb.planner.rules.push_filter_into_scan import push_filter_into_scan
from gpudb.planner.rules.remove_trivial_project import remove_trivial_project
from gpudb.planner.rules.simplify_predicates import simplified
from gpudb.types import BOOLEAN, INTEGER
from tests.planner.catalog import plan
from tests.planner.test_names_and_types import QUERIES

X = Column(BOOLEAN, 0, "x")
Y = Column(BOOLEAN, 1, "y")
TRUE, FALSE, NULL = (Literal(BOOLEAN, value) for value in (True, False, None))
COMPARED = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def walk(node: Node) -> list[Node]:
    return [node, *(inner for below in node.inputs() for inner in walk(below))]


def only(node: Node, kind: type[Node]) -> Node:
    (found,) = [part for part in walk(node) if isinstance(part, kind)]
    return found


def evaluate(expression: Expression, values: tuple[bool | None, ...]) -> bool | None:
    """Three-valued value of a BOOLEAN expression: the meaning that a simplification must keep."""
    match expression:
        case Column(index=index):
            return values[index]
        case Literal(value=value):
            return value  # type: ignore[no-any-return]
        case Not(argument=argument):
            inner = evaluate(argument, values)
            return None if inner is None else not inner
        case IsNull(argument=argument):
            return evaluate(argument, values) is None
        case And(arguments=arguments):
            found = [evaluate(argument, values) for argument in arguments]
            return False if False in found else None if None in found else True
        case Or(arguments=arguments):
            found = [evaluate(argument, values) for argument in arguments]
            return True if True in found else None if None in found else False
        case Comparison(operator=operator, left=left, right=right):
            one, other = evaluate(left, values), evaluate(right, values)
            if operator in ("is_distinct", "is_not_distinct"):
                return (one != other) == (operator == "is_distinct")
            if one is None or other is None:
                return None
            return COMPARED[operator](one, other)
    raise AssertionError(expression)


def negation(expression: Expression) -> Not:
    return Not(BOOLEAN, expression)


@pytest.mark.parametrize(
    "expression",
    [
        negation(negation(X)),
        negation(And(BOOLEAN, (X, Y))),
        negation(Or(BOOLEAN, (X, negation(Y), NULL))),
        negation(And(BOOLEAN, (Comparison(BOOLEAN, "<", X, Y), IsNull(BOOLEAN, X)))),
        *(negation(Comparison(BOOLEAN, operator, X, Y)) for operator in (*COMPARED, "is_distinct", "is_not_distinct")),
        And(BOOLEAN, (X, And(BOOLEAN, (TRUE, Y)))),
        And(BOOLEAN, (X, FALSE)),
        Or(BOOLEAN, (X, TRUE)),
        Or(BOOLEAN, (FALSE, FALSE)),
        And(BOOLEAN, (NULL, X)),
        negation(NULL),
        Comparison(BOOLEAN, "=", X, X),
    ],
)
def test_simplified_predicates_mean_the_same(expression: Expression) -> None:
    new = simplified(expression)
    for x in (True, False, None):
        for y in (True, False, None):
            assert evaluate(new, (x, y)) is evaluate(expression, (x, y))


def test_not_moves_down_to_comparisons() -> None:
    found = simplified(negation(And(BOOLEAN, (Comparison(BOOLEAN, "<", X, Y), Comparison(BOOLEAN, "=", X, Y)))))
    assert isinstance(found, Or)
    assert [part.operator for part in found.arguments if isinstance(part, Comparison)] == [">=", "<>"]


def test_a_literal_with_a_slot_is_never_folded() -> None:
    parameter = Literal(BOOLEAN, True, slot=3)
    both = And(BOOLEAN, (X, parameter))
    assert simplified(both) is both
    scan = Scan((), "t", ())
    filtered = Filter((), scan, parameter)
    assert fold_constants(filtered) is filtered


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT i FROM t WHERE i > 1",
        "SELECT * FROM (SELECT i + 1 AS j FROM t) WHERE j > 1",
        "SELECT * FROM (SELECT * FROM (SELECT i FROM t WHERE i > 1) WHERE i < 5) WHERE i <> 3",
        "SELECT * FROM (SELECT i FROM t ORDER BY i) WHERE i > 1",
        "SELECT i, count(*) FROM t GROUP BY i HAVING i > 1",
        "WITH c AS (SELECT i FROM t) SELECT i FROM c WHERE i > 1",
    ],
)
def test_filters_reach_the_scan(sql: str) -> None:
    done = push_filter_into_scan(plan(sql))
    assert not [node for node in walk(done) if isinstance(node, Filter)]
    assert only(done, Scan).predicate is not None  # type: ignore[attr-defined]


def test_filters_reach_every_branch_of_a_union() -> None:
    done = push_filter_into_scan(plan("SELECT * FROM (SELECT i FROM t UNION ALL SELECT bi FROM t) WHERE i > 1"))
    assert all(node.predicate is not None for node in walk(done) if isinstance(node, Scan))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM (SELECT i FROM t LIMIT 5) WHERE i > 1",
        "SELECT i, count(*) FROM t GROUP BY i HAVING count(*) > 1",
        "SELECT i, count(*) FROM t GROUP BY i HAVING count(*) > i",
        "SELECT count(*) FROM t HAVING 1 > 2",
    ],
)
def test_filters_stay_above_limits_and_aggregates(sql: str) -> None:
    done = push_filter_into_scan(plan(sql))
    assert [node for node in walk(done) if isinstance(node, Filter)]


def test_scans_read_what_is_used_and_no_more() -> None:
    done = prune_columns(push_filter_into_scan(plan("SELECT s FROM t WHERE bi > 1 ORDER BY f LIMIT 3")))
    scan = only(done, Scan)
    assert isinstance(scan, Scan) and scan.ordinals == (3, 6, 11)
    assert [name for name, _ in scan.columns] == ["bi", "f", "s"]


def test_counting_reads_no_column() -> None:
    scan = only(apply_rules(plan("SELECT count(*) FROM t")), Scan)
    assert isinstance(scan, Scan) and scan.ordinals == ()


def test_an_aggregate_that_nobody_reads_is_not_computed() -> None:
    done = prune_columns(plan("SELECT s FROM (SELECT s, sum(i) AS z, max(bi) FROM t GROUP BY s) WHERE z > 1"))
    aggregate = only(done, Aggregate)
    assert isinstance(aggregate, Aggregate) and [call.name for call in aggregate.aggregates] == ["sum"]


def test_distinct_keeps_all_its_keys() -> None:
    done = prune_columns(plan("SELECT i FROM (SELECT DISTINCT i, s FROM t)"))
    aggregate = only(done, Aggregate)
    assert isinstance(aggregate, Aggregate) and len(aggregate.keys) == 2


def test_union_branches_stay_equally_wide() -> None:
    done = prune_columns(
        push_filter_into_scan(plan("SELECT a FROM (SELECT a, b FROM t UNION ALL SELECT i, si FROM t) WHERE b > 1"))
    )
    union = only(done, UnionAll)
    assert isinstance(union, UnionAll) and {len(branch.columns) for branch in union.branches} == {1}


def test_projects_merge_where_nothing_is_computed_twice() -> None:
    merged = merge_projects(plan("SELECT j * 2 FROM (SELECT i + 1 AS j FROM t)"))
    assert len([node for node in walk(merged) if isinstance(node, Project)]) == 1
    kept = merge_projects(plan("SELECT j * j FROM (SELECT i + 1 AS j FROM t)"))
    assert len([node for node in walk(kept) if isinstance(node, Project)]) == 2


def test_a_project_that_passes_all_on_is_removed_but_its_names_stay() -> None:
    done = remove_trivial_project(plan("SELECT a AS x, b AS y FROM (VALUES (1, 2)) v(a, b)"))
    assert not isinstance(done, Project) and [name for name, _ in done.columns] == ["x", "y"]
    other = plan("SELECT b, a FROM (VALUES (1, 2)) v(a, b)")
    assert remove_trivial_project(other) is other


def test_limit_over_sort_stays_a_pair() -> None:
    done = apply_rules(plan("SELECT i FROM t ORDER BY bi LIMIT 3"))
    limit = only(done, Limit)
    assert isinstance(limit, Limit) and isinstance(limit.input, Sort)


def test_a_rule_that_does_nothing_returns_the_same_object() -> None:
    done = apply_rules(plan("SELECT s, sum(i) FROM t WHERE bi > 1 GROUP BY s"))
    for rule in RULES:
        assert rule(done) is done, rule.__name__


JOINS = [
    "SELECT u.s, t.f FROM t JOIN t AS u ON t.i = u.bi AND t.a < u.b AND t.x AND u.d IS NOT NULL WHERE t.s > u.s AND t.b = 3",
    "SELECT u.s, t.f FROM t LEFT JOIN t AS u ON t.i = u.bi AND t.a < u.b AND t.x AND u.d IS NOT NULL WHERE u.s IS NULL AND t.b = 3",
    "SELECT count(*) FROM t RIGHT JOIN t AS u USING (i, s) WHERE u.f > 2",
    "SELECT i, t.a FROM t FULL JOIN t AS u USING (i) WHERE i > 2",
    "SELECT t.i FROM t SEMI JOIN t AS u ON t.i = u.a AND t.b < u.b AND t.x AND u.x ANTI JOIN t AS v ON v.s = t.s AND t.x",
    "SELECT t.i FROM t, t AS u, t AS v WHERE t.i = u.i AND u.a = v.a AND v.x AND t.x",
    "SELECT t.i, t.a IN (SELECT b FROM t) AS m FROM t WHERE t.i IN (SELECT a FROM t WHERE x) AND EXISTS (SELECT 1 FROM t)",
]


@pytest.mark.parametrize("sql", [*QUERIES, *JOINS])
def test_the_rules_keep_columns_and_number_them_right(sql: str) -> None:
    from gpudb.errors import Error

    try:
        before = plan(sql)
    except Error:
        return
    after = apply_rules(before)
    assert after.columns == before.columns
    for node in walk(after):
        check(node)


def check(node: Node) -> None:
    """Every column that a node reads exists in its input with the same type; the output has the expressions' types."""
    from gpudb.planner.rules.rewriting import map_expressions

    inputs = list(node.inputs())
    if isinstance(node, Join):
        check_join(node)
        return
    columns = node.columns if isinstance(node, Scan) else inputs[0].columns if inputs else ()

    def look(expression: Expression) -> Expression:
        for part in expression.walk():
            if isinstance(part, Column):
                assert columns[part.index][1] == part.type, (node, part)
        return expression

    map_expressions(node, look)
    if isinstance(node, Project):
        assert [type_ for _, type_ in node.columns] == [expression.type for expression in node.expressions]
    if isinstance(node, Aggregate):
        assert [type_ for _, type_ in node.columns] == [part.type for part in (*node.keys, *node.aggregates)]
    if isinstance(node, (Filter, Sort, Limit)):
        assert [type_ for _, type_ in node.columns] == [type_ for _, type_ in inputs[0].columns]
    if isinstance(node, UnionAll):
        for branch in inputs:
            assert [type_ for _, type_ in node.columns] == [type_ for _, type_ in branch.columns]


def check_join(node: Join) -> None:
    """Keys are over their inputs and of one type, the condition and what comes out over both."""
    left, right = node.left.columns, node.right.columns
    for ours, theirs, _ in node.keys:
        assert ours.type == theirs.type
        for columns, side in ((left, ours), (right, theirs)):
            for part in side.walk():
                assert not isinstance(part, Column) or columns[part.index][1] == part.type, (node, part)
    both = (*left, *right, ("mark", BOOLEAN))
    for part in node.residual.walk() if node.residual is not None else ():
        assert not isinstance(part, Column) or both[part.index][1] == part.type, (node, part)
    assert [type_ for _, type_ in node.columns] == [both[index][1] for index in node.outputs]


def joined(sql: str) -> Join:
    found = only(apply_rules(plan(sql)), Join)
    assert isinstance(found, Join)
    return found


def test_equalities_become_keys_and_conditions_of_one_side_its_filters() -> None:
    join = joined("SELECT t.f FROM t, t AS u WHERE t.i = u.a AND t.b < u.b AND t.x AND u.d IS NULL")
    assert len(join.keys) == 1 and isinstance(join.residual, Comparison) and join.residual.operator == "<"
    assert isinstance(join.left, Scan) and isinstance(join.left.predicate, Column)
    assert isinstance(join.right, Scan) and isinstance(join.right.predicate, IsNull)


def test_a_condition_on_the_left_side_of_an_outer_join_stays_in_it() -> None:
    join = joined("SELECT t.f FROM t LEFT JOIN t AS u ON t.i = u.a AND t.x AND u.x")
    assert join.residual == Column(BOOLEAN, next(k for k, c in enumerate(join.left.columns) if c[0] == "x"), "x")
    assert isinstance(join.left, Scan) and join.left.predicate is None
    assert isinstance(join.right, Scan) and join.right.predicate is not None


def test_an_outer_join_whose_nulls_are_dropped_is_an_inner_one() -> None:
    assert joined("SELECT t.f FROM t LEFT JOIN t AS u ON t.i = u.a WHERE u.b > 3").kind == "inner"
    assert joined("SELECT t.f FROM t LEFT JOIN t AS u ON t.i = u.a WHERE u.b IS NULL").kind == "left"


def test_a_join_gives_and_reads_no_more_than_is_wanted() -> None:
    join = joined("SELECT u.s FROM t JOIN t AS u ON t.i = u.a")
    assert [[name for name, _ in side.columns] for side in (join, join.left, join.right)] == [["s"], ["i"], ["s", "a"]]


def test_filter_below_an_expression_sees_the_expression() -> None:
    done = push_filter_into_scan(plan("SELECT * FROM (SELECT i + 1 AS j FROM t) WHERE j > 5"))
    scan = only(done, Scan)
    assert isinstance(scan, Scan) and isinstance(scan.predicate, Comparison)
    assert scan.predicate.left.type == INTEGER


@pytest.mark.parametrize("rule", RULES)
def test_the_example_of_a_rule_is_true(rule: Rule) -> None:
    module = sys.modules[rule.__module__]
    found = doctest.testmod(module)
    assert found.attempted and not found.failed
