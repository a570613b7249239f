"""The planted faults: small mistakes that somebody could make, each with the tests that must notice it.

A fault changes one place of one file.  Its tests are the smallest selection that notices it: what pytest is given, in the
folder of the copy.  The table covers every family of opcodes, every file of kernels, and what surrounds them.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One mistake.

    name    what is wrong then, in words
    family  the part of the engine that it is planted in
    file    path from the root of the repository
    old     text that occurs exactly once in the file
    new     what it becomes
    tests   arguments of pytest
    builds  whether the C++ text changes, so that kernels are compiled anew
    """

    name: str
    family: str
    file: str
    old: str
    new: str
    tests: str
    builds: bool = False

    @property
    def selection(self) -> tuple[str, ...]:
        """The arguments of pytest, taken apart."""
        return tuple(shlex.split(self.tests))


CUDA = "tests/devices/test_cuda.py"
DEVICE_FAULTS = "tests/faults/test_device_faults.py"
BLOCKS = "tests/opcodes/test_blocks.py"
ELEMENTWISE = "tests/opcodes/test_elementwise.py"
JOINS = "tests/opcodes/test_joins.py"
WINDOWS = "tests/opcodes/test_windows.py"


def kernel(name: str, family: str, file: str, old: str, new: str, tests: str) -> Fault:
    """A fault in the C++ text."""
    return Fault(name, family, f"kernels/{file}", old, new, tests, builds=True)


KERNEL_FAULTS = (
    kernel(
        "the validity of a tile's last rows is not expanded",
        "rows",
        "ops_rows.cuh",
        "const int bytes = (tile.rows + 7) >> 3;",
        "const int bytes = tile.rows >> 3;",
        f"{BLOCKS} -k test_unfiltered_rows_numbers_and_validity_bits",
    ),
    kernel(
        "a failing row is numbered from its tile",
        "rows",
        "ops_rows.cuh",
        "(row_number(tile, i) << 16) | pc",
        "((tile.group->first_row + i) << 16) | pc",
        f"{BLOCKS} -k test_the_first_failing_row",
    ),
    kernel(
        "rows that a filter packed are numbered one after another",
        "rows",
        "tile.cuh",
        "(tile.picked ? int64(tile.picked[i]) : int64(i))",
        "int64(i)",
        f"{BLOCKS} -k 'test_indexed_groups and True'",
    ),
    kernel(
        "the last rows of a tile are no lane's",
        "emit",
        "ops_emit.cuh",
        "const int share = ((tile.rows + LANES - 1) / LANES + 7) & ~7;",
        "const int share = ((tile.rows + LANES - 1) / LANES) & ~7;",
        f"{BLOCKS} -k 'test_packed_rows_keep_their_order and lanes'",
    ),
    kernel(
        "a sum over the lanes of a block is read before all have given theirs",
        "lanes",
        "tile.cuh",
        "sync_lanes();\n    if (LANE == 0) {\n        uint64 total = 0;",
        "if (LANE == 0) {\n        uint64 total = 0;",
        f"{BLOCKS} -k 'test_packed_rows_keep_their_order and lanes32'",
    ),
    kernel(
        "lanes do not wait for each other between two instructions",
        "lanes",
        "vm.cuh",
        "const bool more = execute(tile, program[pc], pc);\n        sync_lanes();",
        "const bool more = execute(tile, program[pc], pc);",
        f"{BLOCKS} -k 'test_unfiltered_rows_numbers_and_validity_bits and lanes32'",
    ),
    kernel(
        "a lane's packs are not as far apart as all lanes' packs are wide",
        "lanes",
        "tile.cuh",
        "i < rows; i += LANES * width)",
        "i < rows; i += LANES)",
        f"{ELEMENTWISE} -k 'Copy and lanes32'",
    ),
    kernel(
        "masks are read behind the last row of a tile",
        "lanes",
        "ops_emit.cuh",
        "const int end = begin + share < tile.rows ? begin + share : tile.rows;",
        "const int end = begin + share;",
        "tests/devices/test_parity.py -k 'lanes and cancelled and delay and NOT'",
    ),
    kernel(
        "lanes add to a word in two steps",
        "lanes",
        "platform.h",
        "else atomic_add(where, value);",
        "else *where += value;",
        f"{BLOCKS} -k 'test_dense_groups and lanes32'",
    ),
    kernel(
        "the partial sums of narrow columns overflow",
        "reduce",
        "ops_reduce.cuh",
        "uint32 narrow = 0;",
        "uint16 narrow = 0;",
        f"{BLOCKS} -k test_reductions_of_one_group",
    ),
    kernel(
        "a sum halfway between two doubles is rounded up",
        "sum",
        "ops_sum.cuh",
        "(rest == half && (sticky || (kept & 1)))",
        "rest == half",
        f"{BLOCKS} -k test_an_exact_sum_is_rounded_once",
    ),
    kernel(
        "a double with digits below the lanes counts as exact",
        "sum",
        "ops_sum.cuh",
        "return (rest1 == t2 - magic) & (high * high",
        "return (high * high",
        f"{BLOCKS} -k test_a_value_that_lanes_cannot_hold_is_told",
    ),
    kernel(
        "a function gets its first argument for every one",
        "calls",
        "ops_call.cuh",
        "given[k / OPERANDS].p[k % OPERANDS]",
        "given[k / OPERANDS].p[0]",
        "tests/functions/test_python_functions.py -k all_types",
    ),
    kernel(
        "arg_min's tie goes to the last row",
        "group",
        "ops_group.cuh",
        "(key == words[0] && row < words[1])",
        "(key == words[0] && row > words[1])",
        f"{BLOCKS} -k test_dense_groups",
    ),
    kernel(
        "keys of one hash are one group",
        "group",
        "ops_group.cuh",
        "same &= shared_load(table.keys + entry * words + w) == key[w * step];",
        "same &= true;",
        f"{BLOCKS} -k test_keys_of_one_hash",
    ),
    kernel(
        "a key is taken by every part up to its own",
        "group",
        "ops_group.cuh",
        "& uint64(table.parts - 1)) != table.part;",
        "& uint64(table.parts - 1)) < table.part;",
        "tests/vm/test_spilling.py -k part_by_part",
    ),
    kernel(
        "groups that were merged before a table was full are merged again",
        "group",
        "vm.cuh",
        "        *found = UNUSED_ENTRY;\n",
        "",
        f"{BLOCKS} -k 'test_hash_groups and cpu-64'",
    ),
    kernel(
        "the last groups are no worker's",
        "group",
        "vm.cuh",
        "const int64 end = present.groups * (worker + 1) / present.workers;",
        "const int64 end = present.groups / present.workers * (worker + 1);",
        f"{BLOCKS} -k 'test_keys_that_never_repeat and cpu-64'",
    ),
    kernel(
        "a row that does not count is looked up",
        "group",
        "ops_probe.cuh",
        "if (!alive[i] || out[i] == 0) {",
        "if (out[i] == 0) {",
        f"{BLOCKS} -k probe",
    ),
    kernel(
        "rows of equal keys are sorted backwards",
        "sort",
        "sort.cuh",
        "for (int64 i = begin; i < end; ++i) {\n        const uint64 key",
        "for (int64 i = end - 1; i >= begin; --i) {\n        const uint64 key",
        f"{BLOCKS} -k test_sorted_rows_keep_ties_in_order",
    ),
    kernel(
        "a row goes before those that it equals when few rows are sorted",
        "sort",
        "sort.cuh",
        "if (goes_before(sort, from[probe], from[i], !left))",
        "if (goes_before(sort, from[probe], from[i], left))",
        f"{BLOCKS} -k test_sorted_rows_keep_ties_in_order",
    ),
    kernel(
        "a NULL leaves with the text of code 0",
        "export",
        "export.cuh",
        "if (text.validity && !text.validity[row]) return 0;",
        "",
        "tests/devices/test_parity.py -k 'cpu and substr and upper'",
    ),
    kernel(
        "the first tile of a row group reads the one before",
        "vm",
        "vm.cuh",
        "launch.groups[line + 1].first_tile <= index",
        "launch.groups[line + 1].first_tile < index",
        f"{BLOCKS} -k 'test_packed_rows_keep_their_order and cpu'",
    ),
    kernel(
        "a row with a negative count takes rows away from others",
        "order",
        "repeat.cuh",
        "repeat.counts[i] > 0 ? repeat.counts[i] : 0",
        "repeat.counts[i]",
        f"{BLOCKS} -k 'test_repeated_rows and cpu'",
    ),
    kernel(
        "two digits of a coefficient of exp change places",
        "portable",
        "portable.cuh",
        "p = p * r.high + 0.00833333333331674;",
        "p = p * r.high + 0.00833333333331764;",
        "tests/kernels/test_portable.py -k 'bytes_of_the_compiled_function and exp'",
    ),
    kernel(
        "2200 is a leap year",
        "calendar",
        "calendar.cuh",
        "((year % 25 != 0) | ((year & 15) == 0))",
        "((year % 25 != 0) | ((year & 7) == 0))",
        "tests/kernels/test_calendar.py -k cpp_and_numpy_agree",
    ),
    kernel(
        "a time before 1970 belongs to the day after",
        "functions",
        "functions.cuh",
        "{ return x / UNIT - (x % UNIT < 0 ? 1 : 0); }",
        "{ return x / UNIT; }",
        "tests/functions/test_compiled.py -k 'timestamp_as_date or julian'",
    ),
    kernel(
        "NaN is less than nothing and greater than nothing",
        "comparison",
        "scalar.cuh",
        "DEVICE bool less(float64 a, float64 b) { return (a < b) | ((a == a) & (b != b)); }",
        "DEVICE bool less(float64 a, float64 b) { return a < b; }",
        f"{ELEMENTWISE} -k 'Lt and cpu'",
    ),
    kernel(
        "-0.0 is a group key of its own",
        "comparison",
        "scalar.cuh",
        "const float64 y = x + 0.0;",
        "const float64 y = x;",
        f"{ELEMENTWISE} -k 'OrderWord and cpu'",
    ),
    kernel(
        "an addition overflows unseen",
        "arithmetic",
        "scalar.cuh",
        "return ((a ^ sum) & (b ^ sum)) < 0;",
        "return ((a ^ sum) & (a ^ b)) < 0;",
        f"{ELEMENTWISE} -k 'AddOverflows and cpu'",
    ),
    Fault(
        "a stored value is scaled after its base was added",
        "conversion",
        "gpudb/opcodes/conversion.py",
        'cpp="wrapping_add(base, scaled(scale, stored))"',
        'cpp="scaled(scale, wrapping_add(base, Out(stored)))"',
        f"{ELEMENTWISE} -k 'Decode and cpu'",
        builds=True,
    ),
    Fault(
        "CASE takes the other branch",
        "logic",
        "gpudb/opcodes/logic.py",
        'cpp="condition ? then : otherwise"',
        'cpp="condition ? otherwise : then"',
        f"{ELEMENTWISE} -k 'Select and cpu'",
        builds=True,
    ),
    kernel(
        "a pair belongs to the probe row behind its own",
        "join",
        "ops_join.cuh",
        "while (offsets[at + 1] <= pair) ++at;",
        "while (offsets[at + 1] < pair) ++at;",
        f"{JOINS} -k 'test_pairs_are_taken_apart and cpu'",
    ),
    kernel(
        "every pair of a probe row has its first match",
        "join",
        "ops_join.cuh",
        "matches[begins[row] + k] + 1",
        "matches[begins[row]] + 1",
        f"{JOINS} -k 'test_pairs_are_taken_apart and cpu'",
    ),
    kernel(
        "a probe row without a match has one",
        "join",
        "ops_join.cuh",
        "k < int64(counts[row]) ?",
        "k <= int64(counts[row]) ?",
        f"{JOINS} -k 'test_pairs_are_taken_apart and cpu'",
    ),
    kernel(
        "a row with a key seen before stands for itself",
        "join",
        "index.cuh",
        "if (same) { repeated = true; break; }",
        "if (same) { repeated = true; entry = i; break; }",
        f"{JOINS} -k 'test_a_hash_index and cpu-1024'",
    ),
    kernel(
        "a number's second row goes unnoticed",
        "join",
        "index.cuh",
        "!= uint32(i + 1)) { *(volatile int64*)index.repeated = 1;",
        "< uint32(i + 1)) { *(volatile int64*)index.repeated = 1;",
        f"{JOINS} -k 'test_an_index_of_numbers and cpu-1024'",
    ),
    kernel(
        "a RANGE ends before the rows that are equal to its end",
        "windows",
        "ops_window.cuh",
        "if (PASSED ? column[middle] <= wanted",
        "if (PASSED ? column[middle] < wanted",
        f"{WINDOWS} -k bounds_in_a_rising_column",
    ),
    kernel(
        "a running extreme goes on into the next partition",
        "windows",
        "window.cuh",
        "if (from != first[r] || to < last[r]) {",
        "if (to < last[r]) {",
        f"{WINDOWS} -k words_of_frames",
    ),
    kernel(
        "rows that leave a frame stay in its exact sum",
        "windows",
        "window.cuh",
        "add_rows(window, sums, first[r], from, true);",
        "",
        f"{WINDOWS} -k words_of_frames",
    ),
    kernel(
        "the last run of a sorted column has no end",
        "join",
        "join.cuh",
        "if (i + 1 == runs.rows || word_in_order(runs, i + 1) != word)",
        "if (i + 1 < runs.rows && word_in_order(runs, i + 1) != word)",
        f"{JOINS} -k 'test_runs_of_a_sorted_column and cpu-1024'",
    ),
    kernel(
        "pairs are counted in 32 bits",
        "join",
        "join.cuh",
        "int64 begin, end, total = 0;\n    worker_share(pairs.rows",
        "int64 begin, end; uint32 total = 0;\n    worker_share(pairs.rows",
        f"{JOINS} -k 'test_pairs_are_counted and cpu-1024'",
    ),
)

OTHER_FAULTS = (
    Fault(
        "a left row without a match has the first right row's values",
        "join",
        "planner/emit/joins.py",
        'outer = matched if node.kind in ("left", "single") else None',
        "outer = None",
        "tests/sql/test_sql.py -k 'cpu-joins/joins.test'",
    ),
    Fault(
        "NULL equals NULL in a join",
        "join",
        "planner/emit/join_keys.py",
        "inside = builder.both(inside, value.valid)",
        "inside = inside",
        "tests/sql/test_sql.py -k 'cpu-joins/joins.test'",
    ),
    Fault(
        "a condition on the left side of LEFT JOIN drops its rows",
        "rules",
        "planner/rules/push_filter_into_scan.py",
        'join.kind in ("inner", "semi", "asof") and all(',
        "all(",
        "tests/sql/test_sql.py -k 'cpu-joins/joins.test'",
    ),
    Fault(
        "a remainder has the sign of the divisor",
        "arithmetic",
        "gpudb/opcodes/arithmetic.py",
        "remainder = np.fmod(left, safe)",
        "remainder = np.mod(left, safe)",
        f"{ELEMENTWISE} -k 'Modulo and cpu'",
    ),
    Fault(
        "NaN does not equal itself",
        "comparison",
        "gpudb/opcodes/comparison.py",
        "return (left == right) | (np.isnan(left) & np.isnan(right))",
        "return left == right",
        f"{ELEMENTWISE} -k 'Eq and special'",
    ),
    Fault(
        "a row that does not count keeps its value",
        "logic",
        "gpudb/opcodes/logic.py",
        "return np.where(keep != 0, value, np.asarray(value).dtype.type(0) if np.asarray(value).dtype != object else 0)",
        "return value",
        f"{ELEMENTWISE} -k 'Keep and cpu'",
    ),
    Fault(
        "a tie between two whole numbers is rounded up",
        "conversion",
        "gpudb/opcodes/conversion.py",
        "return np.rint(np.asarray(x, np.float64))",
        "return np.floor(np.asarray(x, np.float64) + 0.5)",
        f"{ELEMENTWISE} -k 'RoundToInteger and cpu'",
    ),
    Fault(
        "a group's first row is numbered from its row group",
        "sinks",
        "gpudb/devices/reference_tile.py",
        "return found + self.part.first_row",
        "return found",
        f"{BLOCKS} -k 'test_dense_groups and cpu-1024'",
    ),
    Fault(
        "-0.0 has no sign",
        "functions",
        "gpudb/functions/math.py",
        "return np.signbit(x) & (x == x)",
        "return x < 0",
        "tests/functions/test_functions.py -k signbit",
    ),
    Fault(
        "NOT of > is <",
        "rules",
        "planner/rules/simplify_predicates.py",
        '">": "<=",',
        '">": "<",',
        "tests/planner/test_rules.py -k test_simplified_predicates_mean_the_same",
    ),
    Fault(
        "NOT IN a list with NULL is TRUE",
        "emit",
        "planner/emit/expressions.py",
        "        if has_null:\n            return self._all(False)\n        if valid is None:",
        "        if valid is None:",
        "tests/sql -k 'in_between and cpu'",
    ),
    Fault(
        "a difference is taken for smaller than it may be",
        "emit",
        "planner/emit/ranges.py",
        "return a.low - b.high, a.high - b.low",
        "return a.low - b.low, a.high - b.high",
        "tests/sql -k 'overflow and cpu'",
    ),
    Fault(
        "NULL shares its group with the next key",
        "emit",
        "planner/emit/group_keys.py",
        "return self.size + self.nullable",
        "return self.size",
        "tests/sql -m 'slow or not slow' -k 'group_by and reference'",  # kernels would write behind their table
    ),
    Fault(
        "of two filters the first is forgotten",
        "rules",
        "planner/rules/push_filter_into_scan.py",
        "predicate=_all(below.predicate, node.predicate)",
        "predicate=node.predicate",
        "tests/sql -k 'subqueries and cpu'",
    ),
    Fault(
        "a plan is used again with another LIMIT",
        "bind",
        "planner/bind/folding.py",
        "        context.consume(expression)\n",
        "",
        "tests/planner/test_bind.py -k test_literals_whose_value_shaped_the_plan_are_noted",
    ),
    Fault(
        "a row group whose greatest value is asked for is skipped",
        "prologue",
        "gpudb/vm/prologue.py",
        "if low is not None and (chunk.maximum < low or",
        "if low is not None and (chunk.maximum <= low or",
        "tests/vm/test_zone_maps.py",
    ),
    Fault(
        "a bound between two stored values is rounded down",
        "prologue",
        "gpudb/vm/prologue.py",
        "low = -((chunk.base - bound) // scale)",
        "low = (bound - chunk.base) // scale",
        "tests/vm/test_zone_maps.py",
    ),
    Fault(
        "a divisor that a sample has is taken for all rows",
        "storage",
        "storage/encodings.py",
        "    while divisor > 1:\n",
        "    return divisor\n    while divisor > 1:\n",
        "tests/storage/test_encodings.py",
    ),
    Fault(
        "an appended text is taken for sorted",
        "storage",
        "storage/dictionary.py",
        "extended = Dictionary(store, store.count, self.sorted_count)",
        "extended = Dictionary(store, store.count, store.count)",
        "tests/storage/test_dictionary.py",
    ),
    Fault(
        "a plan is used again on columns of another width",
        "session",
        "gpudb/session.py",
        "catalog.state(key) == state for key, state in plan.states",
        "catalog.state(key) is not None for key, state in plan.states",
        "tests/session/test_plan_cache.py -k test_a_row_past_the_widths",
    ),
    Fault(
        "a plan is used again with another part of a date",
        "bind",
        "planner/bind/functions.py",
        "    binder.context.consume(part)\n",
        "",
        "tests/session/test_plan_cache.py -k 'shaped_a_plan and EXTRACT'",
    ),
    Fault(
        "a plan is used again for an integer of another width",
        "parse",
        "planner/parse.py",
        "        if value < 128:\n",
        "        if value < 1 << 64:\n",
        "tests/session/test_plan_cache.py -k 'shaped_a_plan and compared'",
    ),
    *(
        Fault(name, "devices", f"gpudb/devices/{file}", old, new, tests)
        for name, file, old, new, tests in (
            (
                "a buffer is filled again before its bytes are on the GPU",
                "cuda.py",
                "            self._wait(copied)\n",
                "",
                f"{CUDA} -k 'streamed and lazy'",
            ),
            (
                "a kernel does not wait for the columns that are copied for it",
                "cuda.py",
                "                    self._send(place, source)\n                self._behind(self._compute, self._copies)\n",
                "                    self._send(place, source)\n",
                f"{CUDA} -k 'streamed and lazy'",
            ),
            (
                "columns are copied over those that a kernel still reads",
                "cuda.py",
                "                self._copies.wait_event(read)\n",
                "",
                f"{CUDA} -k 'streamed and copies'",
            ),
            (
                "a column is copied to memory that is still in use",
                "cuda.py",
                "            self._behind(self._copies, self._compute)  # which may still use what lay there before\n",
                "",
                f"{CUDA} -k test_large_columns",
            ),
            (
                "a result is read before it is there",
                "cuda.py",
                "found.nbytes, self._compute)\n                self._compute.synchronize()\n",
                "found.nbytes, self._compute)\n",
                f"{CUDA} -k test_the_least_recently",
            ),
            (
                "an error's code is not looked at",
                "cuda.py",
                "        if code in HARMLESS:\n",
                "        if code != MEMORY_ALLOCATION:\n",
                f"{DEVICE_FAULTS} -k 'test_G3_and_G23 and 700'",
            ),
            (
                "out of memory is believed whatever happened before",
                "cuda.py",
                "                self._cupy.runtime.deviceSynchronize()\n",
                "                pass\n",
                f"{DEVICE_FAULTS} -k test_G4_a_kernel_that_failed_unseen",
            ),
            (
                "a GPU that is lost is asked again",
                "cuda.py",
                "        if self.lost is not None:\n",
                "        if False:\n",
                f"{DEVICE_FAULTS} -k test_G14",
            ),
            (
                "a copy that a kernel reads is dropped",
                "residency.py",
                "for key, copy in self._copies.items() if not copy.pins]:",
                "for key, copy in self._copies.items()]:",
                "tests/devices/test_residency.py",
            ),
            (
                "a new array is taken for one that lay at its place",
                "residency.py",
                "if copy is not None and copy.owner() is owner:",
                "if copy is not None:",
                "tests/devices/test_residency.py",
            ),
        )
    ),
    Fault(
        "EXCEPT keeps the rows that are on both sides",
        "set operations",
        "planner/emit/set_operations.py",
        'terms = [Comparison(BOOLEAN, "=", right, none)]',
        'terms = [Comparison(BOOLEAN, ">", right, none)]',
        "tests/planner/test_golden.py -k 'golden_one and except'",
    ),
    Fault(
        "a NULL that UPDATE sets is a value",
        "changes",
        "storage/changes.py",
        "mask[places] = True if new[1] is None else new[1]",
        "mask[places] = True",
        "tests/storage/test_changes.py -k values_are_replaced",
    ),
    Fault(
        "a kept plan outlives its view",
        "plan cache",
        "gpudb/statement_catalog.py",
        "return self.view(key) if layout is None else layout.version",
        "return None if layout is None else layout.version",
        "tests/session/test_plan_cache.py -k outlive",
    ),
    Fault(
        "two transactions change the same rows, and both commit",
        "transactions",
        "storage/transaction.py",
        "return min(mine, theirs) is Change.ROWS_ADDED and max(mine, theirs) is not Change.DEFINED",
        "return True",
        "tests/session/test_transactions.py -k conflict_of_rows",
    ),
    Fault(
        "a transaction that is rolled back leaves its files behind",
        "transactions",
        "storage/transaction.py",
        "self._changes, self._definitions = {}, set()\n        self._staging.close()",
        "self._changes, self._definitions = {}, set()",
        "tests/dbapi/test_connection.py -k 'leaving and close'",
    ),
)
