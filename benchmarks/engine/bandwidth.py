"""Filter and sum over narrow columns, in bytes a second, against a plain read loop on as many threads."""

from __future__ import annotations

import ctypes
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

ROWS = 280_000_000  # of 4 bytes: 1.12 GB
LOOP_BYTES = 1 << 30
VALUES = 30_000  # both columns hold 0 .. VALUES - 1, so they take two bytes each and nothing can be skipped


def read_loop_rate(threads: int, repeat: int, size: int = LOOP_BYTES) -> float:
    """Bytes a second of the plain loop over `size` bytes, the median of `repeat` runs."""
    from gpudb.kernels.host_build import host_library  # here, so that other figures do without a compiler

    source = (Path(__file__).parent / "read_loop.cpp").read_text()
    function = ctypes.CDLL(str(host_library(source))).benchmark_read_loop
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_longlong), ctypes.c_ulonglong
    words = np.ones(size // 8, dtype=np.uint64)  # written, so that its pages are there
    share = len(words) // threads
    starts = [words[share * thread :].ctypes.data for thread in range(threads)]
    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(repeat + 1):
            started = time.perf_counter()
            totals = list(pool.map(function, starts, [share] * threads))
            seconds.append(time.perf_counter() - started)
            assert sum(totals) == share * threads, "the loop must have read every word"
    return share * threads * 8 / statistics.median(seconds[1:])


def filtered_sum(threads: int, device: str, repeat: int, rows: int = ROWS) -> dict[str, Any]:
    """Our query's bytes a second over the plain loop's.

    value  the ratio;  details: both rates in GB/s, bytes as the receipt counts them
    """
    import gpudb

    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, VALUES, rows, dtype=np.int16) for name in ("key", "amount")}
    connection = gpudb.connect()
    cursor = connection.cursor()
    cursor.execute(f"SET threads = {threads}")
    cursor.execute(f"SET device = '{device}'")
    connection.register("source", pa.table(columns))
    cursor.execute("CREATE TABLE narrow AS SELECT * FROM source")
    seconds = []
    for number in range(repeat + 1):
        bound = VALUES // 2 + number
        started = time.perf_counter()
        cursor.execute(f"SELECT sum(amount) FROM narrow WHERE key < {bound}")
        total = cursor.fetch_arrow_table().column(0)[0].as_py()
        seconds.append(time.perf_counter() - started)
    expected = int(columns["amount"].sum(where=columns["key"] < bound, dtype=np.int64))
    if int(total) != expected:
        raise AssertionError(f"the sum is wrong: {total} instead of {expected}")
    bytes_read = int(cursor.receipt["bytes_read"])
    # What the columns hold is the most that counts: a receipt that counts bytes twice must not raise the rate.
    rate = min(bytes_read, rows * 4) / statistics.median(seconds[1:])
    reference = read_loop_rate(threads, repeat)
    return {
        "value": rate / reference,
        "device": cursor.receipt["device"],
        "rows": rows,
        "bytes_read": bytes_read,
        "query_gb_s": round(rate / 1e9, 2),
        "read_loop_gb_s": round(reference / 1e9, 2),
    }
