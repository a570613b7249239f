"""Rewrites of logical plans: plain functions from plan to plan, in an order that has reasons.

Rules never mutate, never look at data, never look at the value of a literal that has a slot (so they consume nothing), and
return the same object where they do nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from gpudb.planner.logical import Node
from gpudb.planner.rules.fold_constants import fold_constants
from gpudb.planner.rules.merge_projects import merge_projects
from gpudb.planner.rules.prune_columns import prune_columns
from gpudb.planner.rules.push_filter_into_scan import push_filter_into_scan
from gpudb.planner.rules.remove_trivial_project import remove_trivial_project
from gpudb.planner.rules.simplify_predicates import simplify_predicates

Rule = Callable[[Node], Node]

RULES: tuple[Rule, ...] = (
    simplify_predicates,  # first: the others look at conjunctions, which this one makes
    fold_constants,  # a condition that is always TRUE then needs no pushing
    push_filter_into_scan,  # before projects merge: it passes them anyway
    merge_projects,  # fewer nodes; what was only passed on is seen through
    prune_columns,  # last of those that read columns, since pushing and merging change who reads what
    remove_trivial_project,  # pruning leaves projects that only pass on
)


def apply_rules(plan: Node) -> Node:
    """The plan after every rule, each once."""
    for rule in RULES:
        plan = rule(plan)
    return plan
