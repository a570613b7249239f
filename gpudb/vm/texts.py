"""Dictionaries and lookup tables of text: the host part of text functions, once per distinct value.

Most of this is a function of dictionary versions and constants, so results are kept: a repeated statement finds its
lookup tables made.  What is made of the distinct tuples that a step found in the rows lasts for one execution.  Only
dictionary entries and distinct tuples pass through Arrow and NumPy here, never rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from gpudb import compute as pc
from gpudb.errors import DatabaseError, DataError, NotSupportedError
from gpudb.functions import list_spelling
from gpudb.functions.cast_text import parse_values, print_values
from gpudb.functions.interval_values import packed
from gpudb.functions.lists import WHOLE
from gpudb.program import (
    MOST_PAIRS,
    ColumnDictionary,
    ConstantDomain,
    DictionaryReference,
    LiteralDictionary,
    MappedDictionary,
    RangeDomain,
    StepDictionary,
    TextFunction,
    UnionDictionary,
    steps_behind,
)
from gpudb.record import record
from gpudb.storage.column import padded_copy
from gpudb.storage.dictionary import Dictionary
from gpudb.types import BIGINT, Interval, RegisterType, SqlType

KEPT_RESULTS = 256
AT_ONCE = 1 << 16  # entries that a function is evaluated over between two looks at the ledger
LARGEST_TEXT = 1 << 31  # bytes that the offsets of a dictionary reach

COMPARISONS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}


@record(eq=False)
class Evaluated:
    """A text function over its domain; over tuples, (n,) is indexed by 1 + entry, and 0 holds nothing.

    values      numbers (n,), or codes into `dictionary`; of 128-bit numbers the low words
    high        (n,) int64 that 128-bit numbers have more of 2**64; None for all others
    validity    (n,) uint8
    failed      (n,) uint8: entries for which the function raises; `error` is the first one's
    """

    values: np.ndarray
    validity: np.ndarray
    failed: np.ndarray
    error: DatabaseError | None
    dictionary: Dictionary | None
    high: np.ndarray | None = None

    def placed(self, index: np.ndarray, size: int) -> Evaluated:
        """The same with each entry at its place in `index`, in tables of `size` entries, NULL elsewhere."""

        def at_places(found: np.ndarray) -> np.ndarray:
            table = np.zeros(size, found.dtype)
            table[index] = found[: len(index)]
            return table

        high = None if self.high is None else at_places(self.high)
        values, validity, failed = at_places(self.values), at_places(self.validity), at_places(self.failed)
        return Evaluated(values, validity, failed, self.error, self.dictionary, high)


class TextCache:
    """Results kept per (function, dictionary versions, constants); the least recently used goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any, make: Any) -> Any:
        """The kept result, or a new one."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        value = self._kept[key] = make()
        while len(self._kept) > KEPT_RESULTS:
            self._kept.popitem(last=False)
        return value


class Texts:
    """Resolves dictionary references and lookup tables for one execution."""

    def __init__(
        self, tables: dict[str, Any], steps: dict[int, Any], constant: Any, cache: TextCache, device: Any, run: Any
    ) -> None:
        self._tables = tables
        self._steps = steps
        self._constant = constant
        self._lasting = cache
        self._passing = TextCache()
        self._device = device
        self._run = run
        self._resolved: dict[Any, Dictionary] = {}
        self._held: list[Any] = []  # what it takes of memory_limit, until it goes

    def _take(self, size: int) -> None:
        self._held.append(self._run.ledger.taken(size))

    def dictionary(self, reference: DictionaryReference) -> Dictionary:
        """The dictionary that a reference stands for."""
        if reference not in self._resolved:
            self._resolved[reference] = self._resolve(reference)
        return self._resolved[reference]

    def _resolve(self, reference: DictionaryReference) -> Dictionary:
        match reference:
            case ColumnDictionary(table=table, ordinal=ordinal):
                found = self._tables[table].dictionaries[ordinal]
                return found if found is not None and len(found) else Dictionary.of([""])
            case StepDictionary(step=step, column=column):
                found = self._steps[step].dictionaries[column]
                assert isinstance(found, Dictionary)
                return found
            case LiteralDictionary(expression=expression):
                return Dictionary.of([self._constant(expression) or ""])
            case MappedDictionary(function=function):
                found = self.evaluated(function).dictionary
                assert found is not None
                return found
            case UnionDictionary(parts=parts):
                resolved = [self.dictionary(part) for part in parts]
                key = ("union", tuple((id(d), len(d)) for d in resolved))

                def make() -> Any:
                    union = _union(resolved)
                    self._spend(reference, union.nbytes)
                    return union, resolved

                return self._cache(reference).get(key, make)[0]
        raise AssertionError(f"unknown dictionary: {reference}")

    def joined(
        self, starts: np.ndarray, codes: np.ndarray, dictionary: Dictionary, separator: str
    ) -> tuple[np.ndarray, Dictionary]:
        """(codes, dictionary) of texts: each is those of `codes` from one start to the next, with the separator between.

        starts  (n,) int64, rising; codes  (rows,) uint32
        """
        if not len(starts):
            return np.zeros(0, np.uint32), Dictionary.of([""])
        values = dictionary.values
        sizes = pc.binary_length(values).to_numpy(zero_copy_only=False)
        total = int(sizes[codes].sum(dtype=np.int64)) + len(codes) * len(separator.encode())
        if total >= LARGEST_TEXT:
            raise NotSupportedError("texts or lists of more than 2 GiB together are not supported")
        self._take(2 * total)
        offsets = np.append(starts, len(codes)).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(offsets), values.take(pa.array(codes.astype(np.int64))))
        return _encoded(pc.binary_join(lists, separator))

    def listed(self, starts: np.ndarray, values: pa.Array, element: SqlType) -> tuple[np.ndarray, Dictionary]:
        """(codes, dictionary) of lists: each is the values from one start to the next.

        starts  (n,) int64, rising; values  (rows,) of `element.entries`
        """
        if not len(starts):
            return np.zeros(0, np.uint32), Dictionary.of([""])
        self._take(4 * values.nbytes)
        spelled = list_spelling.spelled(values, element)
        ends = np.frombuffer(spelled.buffers()[1], np.int32)[: len(spelled) + 1]
        offsets = np.append(ends[starts], ends[-1]).astype(np.int32)
        return _encoded(pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets), spelled.buffers()[2]))

    def _cache(self, *things: Any) -> TextCache:
        """Where to keep what is made of these: what steps left is gone after this execution."""
        return self._passing if any(map(passes, things)) else self._lasting

    def _spend(self, thing: Any, size: int) -> None:
        """Account for bytes on the host that grow with the rows of this execution; what is kept belongs to no statement."""
        if passes(thing):
            self._take(size)

    def group_table(self, step: int) -> Any:
        """The device's hash table that a step left."""
        return self._steps[step].group

    def rows_of(self, step: int) -> int:
        """How many rows a step left."""
        return int(self._steps[step].emitted.rows)

    # ------------------------------------------------------------------------------- functions

    def evaluated(self, function: TextFunction) -> Evaluated:
        """The function over all entries of its domains; kept."""
        if function.tuples:
            return self._passing.get(function, lambda: self._over_tuples(function))
        domains = [self._domain(d) for d in function.domains]
        constants = tuple(a if isinstance(a, int) else ("constant", self._constant(a)) for a in function.arguments)
        named = tuple((id(d), len(d)) if isinstance(d, Dictionary) else d for d in domains)
        key = (function.name, id(function.overload), named, constants, function.type, function.try_)
        spend = partial(self._spend, function)
        return self._cache(function).get(key, lambda: (_evaluate(function, domains, constants, spend), domains))[0]

    def _over_tuples(self, function: TextFunction) -> Evaluated:
        """The function over the distinct tuples that a step left, some at a time, up to the first that fails.

        Each tuple is that of a row that counts, and they come in order of their first rows.  So the first that fails is
        the one to report, and rows before it need none of those behind it.
        """
        columns = function.tuples
        left = self._steps[columns[0].step]
        rows = left.emitted.rows
        self._take((rows + 1) * 24)  # entries, and lookup tables of values, validity and failures
        entries = to_numbers(self._exported(left, 0, BIGINT, 0, rows), BIGINT)
        pieces = [pa.nulls(0, function.type.entries)]
        done, size = 0, 0
        error: DatabaseError | None = None
        while done < rows and error is None:
            self._run.check()
            count = min(AT_ONCE, rows - done)
            values = [self._exported(left, c.column, c.type, done, count) for c in columns]
            arguments = [values[a] if isinstance(a, int) else self._constant(a) for a in function.arguments]
            found, error = _up_to_a_failure(function, arguments, count)
            pieces.append(found)
            done, size = done + len(found), size + found.nbytes
            self._take(2 * found.nbytes)  # as it is, and in a dictionary
            if function.type.is_coded and size >= LARGEST_TEXT:
                raise NotSupportedError(f"{function.name}() with 2 GiB of distinct text is not supported")
        failed = np.zeros(done, np.uint8)
        if error is not None:
            pieces.append(pa.nulls(1, function.type.entries))
            failed = np.append(failed, np.uint8(1))
        settled = _settled(function, pa.concat_arrays(pieces), failed, error)
        return settled.placed(entries[: len(failed)] + 1, int(entries.max(initial=-1)) + 2)

    def _exported(self, left: Any, column: int, sql: SqlType, start: int, rows: int) -> pa.Array:
        """An output value of a step as an Arrow array of its SQL type."""
        output = left.sink.values[column]
        dictionary = None if output.dictionary is None else self.dictionary(output.dictionary)
        return self._device.export(left.emitted, output.column, output.validity, sql, dictionary, start, rows)

    def _domain(self, domain: Any) -> Any:
        """A domain's dictionary, its range, or the constant's value in the place of its expression."""
        if isinstance(domain, ConstantDomain):
            return ConstantDomain(domain.type, self._constant(domain.expression))
        return domain if isinstance(domain, RangeDomain) else self.dictionary(domain)

    def table(self, function: TextFunction, element: RegisterType, part: str) -> np.ndarray:
        """A lookup table of one part of the result: value, high, validity or failed."""
        found = self.evaluated(function)
        parts = {"value": found.values, "validity": found.validity, "failed": found.failed, "high": found.high}
        array = parts[part]
        assert array is not None, "high words of a number that has none"
        cache = self._cache(function)
        return cache.get((id(found), part, element), lambda: (padded_copy(array, element.dtype), found))[0]

    def translation(self, source: DictionaryReference, target: DictionaryReference) -> np.ndarray:
        """(entries of source,) uint32: codes in target; every text must be there."""
        a, b = self.dictionary(source), self.dictionary(target)
        key = ("translation", id(a), len(a), id(b), len(b))
        cache = self._cache(source, target)
        return cache.get(key, lambda: (padded_copy(b.codes_of(a.values), np.uint32), a, b))[0]

    def ranks(self, reference: DictionaryReference, inverse: bool) -> np.ndarray:
        """(entries,) uint32: rank of each code in binary order, or the code of each rank."""
        dictionary = self.dictionary(reference)
        key = ("ranks", id(dictionary), len(dictionary), inverse)

        def make() -> Any:
            ranks = dictionary.ranks()
            if inverse:
                codes = np.empty(len(ranks), np.uint32)
                codes[ranks] = np.arange(len(ranks), dtype=np.uint32)
                ranks = codes
            return padded_copy(ranks, np.uint32), dictionary

        return self._cache(reference).get(key, make)[0]

    def code(self, reference: DictionaryReference, text: str | None) -> int | None:
        """Code of a text, or None."""
        return None if text is None else self.dictionary(reference).lookup(text)


def _encoded(texts: pa.StringArray) -> tuple[np.ndarray, Dictionary]:
    """(codes, dictionary) of texts; in no order, since it is used once."""
    distinct = texts.dictionary_encode()
    made = Dictionary.empty().extend(distinct.dictionary)[0]
    return distinct.indices.to_numpy().astype(np.uint32), made


def passes(thing: Any) -> bool:
    """Is it made of what a step left, and gone after this execution?"""
    return any(True for _ in steps_behind(thing))


def _union(dictionaries: list[Dictionary]) -> Dictionary:
    union = dictionaries[0]
    for other in dictionaries[1:]:
        union = union.extend(other.values)[0]
    return union


def _domain_values(domain: Any) -> pa.Array:
    """All entries of a domain as an Arrow array of its SQL type."""
    if isinstance(domain, Dictionary):
        return domain.values
    if isinstance(domain, ConstantDomain):
        value = domain.expression
        if domain.type.is_float:
            return pa.array([value or 0.0], domain.type.arrow)
        value = packed(value) if isinstance(value, Interval) else value
        return from_integers(np.array([value or 0], object), domain.type)
    return from_integers(np.arange(domain.low, domain.high + 1, dtype=np.int64), domain.type)


def from_integers(values: np.ndarray, sql: SqlType) -> pa.Array:
    """Arrow values of an exact SQL type from the integers behind it."""
    if sql.kind == "BOOLEAN":
        return pa.array(values != 0)
    if sql.is_unsigned:
        return pa.array([int(v) for v in values], sql.arrow)
    if sql.is_wide:
        words = np.empty((len(values), 2), np.int64)
        words[:, 0] = [(int(v) + (1 << 63)) % (1 << 64) - (1 << 63) for v in values]
        words[:, 1] = [int(v) >> 64 for v in values]
        return pa.Array.from_buffers(sql.entries, len(values), [None, pa.py_buffer(words)])
    dtype = np.dtype(f"i{sql.entries.bit_width // 8}")
    with np.errstate(all="ignore"):
        narrow = values.astype(dtype)
    return pa.Array.from_buffers(sql.entries, len(values), [None, pa.py_buffer(narrow)])


def arrow_array(numbers: np.ndarray, valid: np.ndarray | None, sql: SqlType) -> pa.Array:
    """Values as registers hold them, of whatever width, as an Arrow array of `sql.entries`.

    numbers  (n,) or, of 128 bits, (n, 2) uint64, the low word first;  valid  (n,) bool
    """
    rows = len(numbers)
    nulls = 0 if valid is None else rows - int(np.count_nonzero(valid))
    bits = pa.py_buffer(np.packbits(valid, bitorder="little")) if valid is not None and nulls else None
    if sql.kind == "BOOLEAN":
        data = np.packbits(numbers != 0, bitorder="little")
    elif pa.types.is_decimal(sql.entries):
        if numbers.ndim == 1:
            low = numbers.astype(np.int64)
            numbers = np.stack([low, low >> 63], axis=1)
        data = np.ascontiguousarray(numbers)
    else:
        dtype = sql.register.dtype if sql.is_float else np.dtype(f"i{sql.entries.bit_width // 8}")
        if numbers.ndim == 2:  # of a type of fewer bits: the low word holds it
            numbers = np.ascontiguousarray(numbers[:, 0]).view(np.int64)
        data = numbers.astype(dtype)
    return pa.Array.from_buffers(sql.entries, rows, [bits, pa.py_buffer(data)], nulls)


def _evaluate(
    function: TextFunction, domains: list[Any], constants: tuple[Any, ...], spend: Callable[[int], None]
) -> Evaluated:
    values = [_domain_values(domain) for domain in domains]
    if len(values) == 2:
        left, right = len(values[0]), len(values[1])
        assert left * right <= MOST_PAIRS, "emit takes tuples where there would be more pairs"
        values[0] = values[0].take(pa.array(np.repeat(np.arange(left), right)))
        values[1] = values[1].take(pa.array(np.tile(np.arange(right), left)))
    arguments = [values[c] if isinstance(c, int) else c[1] for c in constants]
    count = len(values[0])
    failed = np.zeros(max(1, count), np.uint8)
    error: DatabaseError | None = None
    try:
        if function.name in WHOLE:
            return _settled(function, _apply(function, arguments), failed[:1], None)
        pieces = [pa.nulls(0, function.type.entries)]
        for start in range(0, max(1, count), AT_ONCE):
            sliced = [a.slice(start, AT_ONCE) if isinstance(a, pa.Array) else a for a in arguments]
            pieces.append(_apply(function, sliced).cast(function.type.entries))
            spend(2 * pieces[-1].nbytes)
        result = pa.concat_arrays(pieces)
    except DataError:
        result, error = _one_by_one(function, arguments, count, failed)
    return _settled(function, result, failed, error)


def _apply(function: TextFunction, arguments: list[Any]) -> pa.Array:
    if function.overload is not None:
        result = function.overload.body(*arguments)
    elif function.name == "cast":
        source = arguments[0]
        if function.type.is_coded:
            result = print_values(source, function.domains[0].type)  # type: ignore[union-attr]
        else:
            result = parse_values(source, function.type, try_=function.try_)
    else:
        result = getattr(pc, COMPARISONS[function.name])(arguments[0], arguments[1])
    return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result


def _one_by_one(
    function: TextFunction, arguments: list[Any], count: int, failed: np.ndarray
) -> tuple[pa.Array, DatabaseError | None]:
    """Entries that raise are marked, the rest evaluated: a failing entry matters only where an alive row holds it."""
    pieces: list[pa.Array] = []
    error: DatabaseError | None = None
    null = pa.nulls(1, function.type.entries)

    def run(start: int, stop: int) -> None:
        nonlocal error
        sliced = [a.slice(start, stop - start) if isinstance(a, pa.Array) else a for a in arguments]
        try:
            pieces.append(_apply(function, sliced).cast(function.type.entries))
            return
        except DataError as found:
            if stop - start == 1:
                error = error or _bare(found)
                failed[start] = 1
                pieces.append(null)
                return
        middle = (start + stop) // 2
        run(start, middle)
        run(middle, stop)

    run(0, count)
    return pa.concat_arrays(pieces), error


def _bare(error: DatabaseError) -> DatabaseError:
    """The error without the frames it came through and the one before it: they hold all that a statement has."""
    error.__context__ = None
    return error.with_traceback(None)


def _up_to_a_failure(function: TextFunction, arguments: list[Any], count: int) -> tuple[pa.Array, DatabaseError | None]:
    """The values of the first entries, up to one that raises, and what it raises."""

    def run(start: int, stop: int) -> pa.Array:
        sliced = [a.slice(start, stop - start) if isinstance(a, pa.Array) else a for a in arguments]
        return _apply(function, sliced).cast(function.type.entries)

    pieces: list[pa.Array] = []
    error: DatabaseError | None = None
    # Entries before `good` are done; after an error the first bad one is before `bad`.
    good, bad, step = 0, count, count
    while good < bad:
        try:
            pieces.append(run(good, good + step))
            good += step
        except DataError as found:
            error, bad = _bare(found), good + step
            if step == 1:
                break
        step = max(1, (bad - good) // 2)
    return pa.concat_arrays(pieces) if pieces else pa.nulls(0, function.type.entries), error


def _settled(function: TextFunction, result: pa.Array, failed: np.ndarray, error: DatabaseError | None) -> Evaluated:
    sql = function.type
    count = len(result)
    validity = np.ones(max(1, count), np.uint8)
    if result.null_count:
        validity[:count] = np.asarray(pc.is_valid(result)).astype(np.uint8)
    if count == 0:
        validity[:] = 0
    if sql.is_coded:
        codes = np.zeros(max(1, count), np.uint32)
        if function.tuples and function.name == "cast" and count and not result.null_count:
            distinct = result  # no two values print alike
            codes[:count] = np.arange(count)
        else:
            encoded = result.cast(pa.string()).dictionary_encode()
            distinct = encoded.dictionary if len(encoded.dictionary) else pa.array([""])
            codes[:count] = np.asarray(encoded.indices.fill_null(0))
        if function.tuples:  # in no order: it is used once, and sorting would take half of the time
            dictionary = Dictionary.empty().extend(distinct)[0]
        else:
            dictionary = Dictionary.of(distinct)
            codes[:count] = dictionary.codes_of(distinct)[codes[:count]]
        codes[:count][validity[:count] == 0] = 0
        return Evaluated(codes, validity, failed, error, dictionary)
    values = np.zeros(max(1, count), np.float64 if sql.is_float else np.int64)
    if count:
        values[:count] = to_numbers(result, sql)
    high = None
    if sql.is_wide:
        high = np.zeros(max(1, count), np.int64)
        if sql.is_unsigned:
            high[:count] = values[:count] < 0
        elif count:
            high[:count] = _words(result, sql)[1::2] + (values[:count] < 0)  # the low word counts as signed
            high[:count][validity[:count] == 0] = 0
    return Evaluated(values, validity, failed, error, None, high)


def _words(result: pa.Array, sql: SqlType) -> np.ndarray:
    """(2n,) int64: low and high words of a 128-bit Arrow array."""
    wide = result.cast(sql.entries)
    return np.frombuffer(wide.buffers()[1], np.int64)[2 * wide.offset : 2 * (wide.offset + len(wide))]


def to_numbers(result: pa.Array, sql: SqlType) -> np.ndarray:
    """(n,) int64 or float64 behind an Arrow array of a SQL type; 0 under NULL."""
    if result.null_count:
        zero = pa.scalar(0, pa.int8()).cast(result.type) if not pa.types.is_temporal(result.type) else None
        if zero is not None:
            result = result.fill_null(zero) if not pa.types.is_boolean(result.type) else result.fill_null(False)
    if sql.is_float:
        return np.asarray(result.cast(pa.float64()))
    if sql.kind == "BOOLEAN":
        return np.asarray(result).astype(np.int64)
    if sql.is_unsigned:
        return np.asarray(result.cast(pa.uint64())).view(np.int64)
    if sql.is_wide:
        return _words(result, sql)[::2].copy()
    if sql.kind == "DATE":
        return np.asarray(result.cast(pa.date32()).cast(pa.int32()).fill_null(0)).astype(np.int64)
    if sql.kind in ("TIME", "TIMESTAMP", "TIMESTAMPTZ"):
        return np.asarray(result.cast(sql.arrow).cast(pa.int64()).fill_null(0))
    return np.asarray(result.cast(pa.int64()))
