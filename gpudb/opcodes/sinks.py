"""Opcodes where rows meet: emitting rows, reducing them, grouping them.  Each has op_<name> in kernels/ops_*.cuh.

A **group table** holds `stride` 64-bit words a group: word 0 is the number of the group's first row, the others are
accumulators.  Rows that do not count are sent to the trash group, the last one.  The NumPy meaning of these opcodes needs
the whole machine and lives in `gpudb/devices/reference.py` under the same names.
"""

from __future__ import annotations

from typing import Any

from gpudb.opcodes.table import ALL, CODES, R, block_opcode

Operand = Any


@block_opcode("skip the tile if no row is alive in {alive}")
def SkipIfNone(alive: Operand) -> None:
    """The one jump: to the end of the pipeline if no row of the tile is alive.  All lanes agree (one barrier)."""


@block_opcode("{out} = {alive} and {word} may be among the first", [(R.MASK, R.I64, R.MASK)])
def KeepTop(out: Operand, word: Operand, alive: Operand) -> None:
    """Leave out rows that cannot be among the first of an order by this word, as many as a LIMIT wants.

    All rows that are among them stay, rows equal to the last of them too; which others stay is up to the device.
    """


@block_opcode("{out} = numbers of rows alive in {alive}; goes on with these only", [(R.U32,)])
def Compact(out: Operand, alive: Operand) -> None:
    """Go on with the tile's alive rows, packed; skip the tile if there is none.

    What is from before is read by Pick, PickValidity and Emit, at the row numbers that are the result.  Where rows are
    emitted, the tile takes the next places of the output.  Every lane must get here.
    """


@block_opcode("{out} = {value} of {rows}", [(t, t, R.U32) for t in ALL])
def Pick(out: Operand, value: Operand, rows: Operand) -> None:
    """A column, or a register from before Compact, at the rows that it went on with."""


@block_opcode("{out} = validity bits of {column} of {rows}", [(R.MASK, R.U32)])
def PickValidity(out: Operand, column: Operand, rows: Operand) -> None:
    """A chunk's validity bits at the rows that Compact went on with."""


@block_opcode("output {column} = {value} of {rows}", [(t, R.U32) for t in (R.U8, R.U16, R.U32, R.I64, R.I128)])
def Emit(column: Operand, value: Operand, rows: Operand) -> None:
    """Pick straight into an output column.  The type says only the width."""


@block_opcode("output {column} = {value}", [(t,) for t in (R.U8, R.U16, R.U32, R.I64, R.I128)])
def EmitAll(column: Operand, value: Operand) -> None:
    """Write every row that is still worked on to an output column."""


@block_opcode("word {word} += sum of {value}", [(t,) for t in (R.MASK, R.U8, R.U16, R.U32, R.I32, R.I64)])
def ReduceAdd(word: Operand, value: Operand) -> None:
    """Add a register's sum to a word of the only group.  Rows that do not count are zero.  Every lane must get here."""


@block_opcode(
    "words {word}.. += rows where {keep}, sum of {base} + {scale} * {stored} over them", [(t,) for t in CODES]
)
def ReduceStored(word: Operand, stored: Operand, keep: Operand, base: Operand, scale: Operand) -> None:
    """Count and sum of a column as it is stored, into two words of the only group.  Every lane must get here."""


@block_opcode("word {word} = min(word {word}, {value})", [(R.I64,)])
def ReduceMin(word: Operand, value: Operand) -> None:
    """Minimum of order words into a word of the only group; rows that do not count hold the greatest word."""


@block_opcode("word {word} = max(word {word}, {value})", [(R.I64,)])
def ReduceMax(word: Operand, value: Operand) -> None:
    """Maximum of order words into a word of the only group; rows that do not count hold the least word."""


@block_opcode("words {word}.. += fixed-point lanes of {x} where {keep}", [(R.F64,)])
def ReduceFixed(word: Operand, x: Operand, keep: Operand, scale: Operand) -> None:
    """Exact float sum, fast path: three lanes of fixed point; anything inexact or not finite sets the sticky flag."""


@block_opcode("{out}.. = fixed-point lanes of {x} where {keep}", [(R.I64, R.F64)])
def SplitFixed(out: Operand, x: Operand, keep: Operand, scale: Operand) -> None:
    """Three consecutive registers of fixed-point lanes, so that GroupAdd sums floats exactly; sticky flag as above."""


@block_opcode("{out}.. = lanes of {x}.. * {y}..", [(R.I64, R.I64, R.I64)])
def SplitProduct(out: Operand, x: Operand, y: Operand) -> None:
    """Six consecutive registers, the least first, of 32 bits each and a sign in the last: the exact product of two values in
    the three lanes of SplitFixed, so that GroupAdd sums products exactly.
    """


CONSECUTIVE = {"SplitFixed": 3, "SplitProduct": 6}
"""Opcodes that write several consecutive registers: how many."""


@block_opcode("{out} = group of key {keys} where {alive}", [(R.U32, R.I64)])
def GroupFind(out: Operand, keys: Operand, alive: Operand, key_words: Operand) -> None:
    """Find or insert each row's key (consecutive registers of 64-bit words) in the hash table.

    No lane waits for a half-written entry: a key is written to a free entry first, then its number is published by one
    compare-and-swap.  If the table is full the tile stays undone and runs again after the table has grown.
    """


@block_opcode("{out} = group of key number {number}", [(R.U32, R.U32)])
def GroupIndex(out: Operand, number: Operand) -> None:
    """Find or insert each row's key number in the indexed table; rows that do not count have the number past the last.

    A key is written to a free entry first, then its number is published by one compare-and-swap.  If the table is full the
    tile stays undone and runs again after the table has grown.
    """


@block_opcode("{out} = 1 + entry of key {keys} in table {table} where {alive}, 0 where there is none", [(R.U32, R.I64)])
def Probe(out: Operand, keys: Operand, alive: Operand, key_words: Operand, table: Operand) -> None:
    """Look each row's key (consecutive registers of 64-bit words) up in a finished hash table, which a slot points to.

    At most one entry matches.  Nothing is inserted, so no lane waits for another; rows that do not count find none.
    """


@block_opcode(
    "{out} = first of {begin} .. {end} at which column {column} is {value} or more",
    [(R.U32, R.I64, R.I64, R.U32, R.U32)],
)
def FirstReached(out: Operand, column: Operand, value: Operand, begin: Operand, end: Operand) -> None:
    """Lower bound of a value among rows begin .. end of a column, which rises there; the end where no row reaches it."""


@block_opcode(
    "{out} = first of {begin} .. {end} at which column {column} is more than {value}",
    [(R.U32, R.I64, R.I64, R.U32, R.U32)],
)
def FirstPassed(out: Operand, column: Operand, value: Operand, begin: Operand, end: Operand) -> None:
    """Upper bound of a value among rows begin .. end of a column, which rises there; the end where no row passes it."""


@block_opcode("{out} = probe row of the pair, by first pairs {offsets}", [(R.U32,)])
def MatchProbe(out: Operand, offsets: Operand, probes: Operand) -> None:
    """The probe row that each pair of a join belongs to: the last whose first pair is not behind it."""


@block_opcode("{out} = 1 + build row of the pair of probe row {probe}, 0 where that has no match", [(R.U32,)])
def MatchBuild(out: Operand, probe: Operand, offsets: Operand, begins: Operand, counts: Operand, rows: Operand) -> None:
    """The build row of each pair of a join: its place among the matches of its probe row says which.

    {offsets} first pair, {begins} first match and {counts} matches of each probe row; {rows} build rows of all matches.
    """


@block_opcode(
    "{out} = 1 + the first of {counts} matches from {begins} on with a word not below {word}, 0: none", [(R.U32,)]
)
def Nearest(out: Operand, begins: Operand, counts: Operand, word: Operand, rows: Operand, words: Operand) -> None:
    """The build row of an ASOF join: the first of a row's matches whose word is not below its own.

    {rows} build rows of all matches, {words} the word of each build row, which does not fall among the matches of one key.
    """


@block_opcode("first row of group {group} = min(., row)", [(R.U32,)])
def GroupFirst(group: Operand) -> None:
    """Remember each group's first row, which orders the groups."""


@block_opcode("group {group}: words {word}.. += {first}", [(R.U32,)])
def GroupAdd1(group: Operand, word: Operand, first: Operand) -> None:
    """Add one 64-bit register to consecutive words of each row's group."""


@block_opcode("group {group}: words {word}.. += {first}, {second}", [(R.U32,)])
def GroupAdd2(group: Operand, word: Operand, first: Operand, second: Operand) -> None:
    """Add two 64-bit registers to consecutive words of each row's group."""


@block_opcode("group {group}: words {word}.. += {first}, {second}, {third}", [(R.U32,)])
def GroupAdd3(group: Operand, word: Operand, first: Operand, second: Operand, third: Operand) -> None:
    """Add three 64-bit registers to consecutive words of each row's group."""


@block_opcode("group {group}: words {word}.. += {first}, {second}, {third}, {fourth}", [(R.U32,)])
def GroupAdd4(group: Operand, word: Operand, first: Operand, second: Operand, third: Operand, fourth: Operand) -> None:
    """Add four 64-bit registers to consecutive words of each row's group."""


@block_opcode("group {group}: first row, words {word}.. += {first}", [(R.U32,)])
def GroupFirstAdd1(group: Operand, word: Operand, first: Operand) -> None:
    """GroupFirst and Add of one 64-bit register: the words lie behind the first row."""


@block_opcode("group {group}: first row, words {word}.. += {first}, {second}", [(R.U32,)])
def GroupFirstAdd2(group: Operand, word: Operand, first: Operand, second: Operand) -> None:
    """GroupFirst and Add of two 64-bit registers: the words lie behind the first row."""


@block_opcode("group {group}: first row, words {word}.. += {first}, {second}, {third}", [(R.U32,)])
def GroupFirstAdd3(group: Operand, word: Operand, first: Operand, second: Operand, third: Operand) -> None:
    """GroupFirst and Add of three 64-bit registers: the words lie behind the first row."""


@block_opcode("group {group}: first row, words {word}.. += {first}, {second}, {third}, {fourth}", [(R.U32,)])
def GroupFirstAdd4(
    group: Operand, word: Operand, first: Operand, second: Operand, third: Operand, fourth: Operand
) -> None:
    """GroupFirst and Add of four 64-bit registers: the words lie behind the first row."""


@block_opcode("group {group}: word {word} = min(., {value})", [(R.U32, R.I64)])
def GroupMin(group: Operand, word: Operand, value: Operand) -> None:
    """Minimum of order words; rows that do not count hold the greatest word."""


@block_opcode("group {group}: word {word} = max(., {value})", [(R.U32, R.I64)])
def GroupMax(group: Operand, word: Operand, value: Operand) -> None:
    """Maximum of order words; rows that do not count hold the least word."""


@block_opcode("group {group}: word {word} &= {value}", [(R.U32, R.I64)])
def GroupAnd(group: Operand, word: Operand, value: Operand) -> None:
    """The bits that are set in all rows; rows that do not count hold -1.  OR is the complement of this of complements."""


@block_opcode("group {group}: word {word} ^= {value}", [(R.U32, R.I64)])
def GroupXor(group: Operand, word: Operand, value: Operand) -> None:
    """The bits that are set in an odd number of rows; rows that do not count hold 0."""


@block_opcode("group {group}: words {word}.. = min of ({key}, row) with {payload} where {keep}", [(R.U32, R.I64)])
def GroupArgMin(group: Operand, word: Operand, key: Operand, payload: Operand, keep: Operand) -> None:
    """Three words: the least order word, its row (ties go to the lowest row) and that row's payload.

    Every lane must get here where tables are shared: lanes of a block take turns, blocks take a lock.
    """


@block_opcode(
    "group {group}: words {word}.. = min of ({high} and {low}, row) with {payload} where {keep}", [(R.U32, R.I64)]
)
def GroupArgMinWide(
    group: Operand, word: Operand, high: Operand, low: Operand, payload: Operand, keep: Operand
) -> None:
    """GroupArgMin by a key of two order words, as 128-bit integers have them: four words, the first two are the key."""


@block_opcode("group {group}: words {word}.. += {x} * {y} exactly, where {keep}", [(R.U32, R.F64)])
def GroupAddWide(group: Operand, word: Operand, x: Operand, y: Operand, keep: Operand) -> None:
    """Exact sum of products of doubles: limbs of 32 bits over the whole exponent range, NaN and infinities counted apart.

    The slow path of float sums, and the sums behind variance and correlation.
    """


@block_opcode("{out} = float of the exact sum in words {word}.. of group {rows}", [(R.F64, R.U32)])
def WideToFloat(out: Operand, rows: Operand, word: Operand) -> None:
    """Round an exact sum once, to nearest even."""


@block_opcode("{out} = float of lanes {word}.. of group {rows}", [(R.F64, R.U32)])
def FixedToFloat(out: Operand, rows: Operand, word: Operand, scale: Operand) -> None:
    """Round a sum held in three fixed-point lanes once, to nearest even."""


@block_opcode("{out} = variance of group {rows}", [(R.F64, R.U32)])
def WideVariance(out: Operand, rows: Operand, count: Operand, sums: Operand, less: Operand) -> None:
    """(sum of squares - sum**2 / n) / (n - less) from exact sums of x and x * x, rounded once before the division."""


@block_opcode("{out} = covariance of group {rows}", [(R.F64, R.U32)])
def WideCovariance(out: Operand, rows: Operand, count: Operand, sums: Operand, less: Operand) -> None:
    """(sum of x * y - sum of x * sum of y / n) / (n - less) from exact sums of x, y and x * y, as WideVariance."""


@block_opcode("{out} = variance of group {rows}, by lanes", [(R.F64, R.U32)])
def LaneVariance(out: Operand, rows: Operand, count: Operand, sums: Operand, less: Operand) -> None:
    """WideVariance from sums of lanes: 3 words of x, then 6 of x * x.  Times the square of the lanes' scale."""


@block_opcode("{out} = covariance of group {rows}, by lanes", [(R.F64, R.U32)])
def LaneCovariance(out: Operand, rows: Operand, count: Operand, sums: Operand, less: Operand) -> None:
    """WideCovariance from sums of lanes: 3 words of x, 3 of y, then 6 of x * y.  Times the product of the lanes' scales."""


@block_opcode("{out} = correlation of group {rows}, by lanes", [(R.F64, R.U32)])
def LaneCorrelation(out: Operand, rows: Operand, count: Operand, sums: Operand) -> None:
    """WideCorrelation from sums of lanes: 3 words of x, 3 of y, then 6 each of x * x, y * y and x * y."""


@block_opcode("{out} = correlation of group {rows}", [(R.F64, R.U32)])
def WideCorrelation(out: Operand, rows: Operand, count: Operand, sums: Operand) -> None:
    """Pearson's coefficient from exact sums of x, x * x, y, y * y and x * y."""
