"""Makes the group-by table and the four join tables: the columns and key counts of db-benchmark's R scripts, NumPy's draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.tables import table_of, write_chunks

FORMAT = 1  # part of the folder's name: raise it when the same seed gives other rows


def write_groupby(folder: Path, rows: int, groups: int, seed: int) -> dict[str, str]:
    """The table x.  groups: K, the distinct values of id1, id2, id4 and id5; id3 and id6 have rows / K."""
    path = folder / f"h2o-groupby-{rows}-{groups}-{seed}-{FORMAT}.parquet"
    many = max(1, rows // groups)

    def chunk(start: int, count: int) -> pa.Table:
        rng = np.random.default_rng([seed, start])
        few = [rng.integers(1, groups + 1, count, dtype=np.int32) for _ in range(4)]
        return table_of(
            id1=spelled(few[0], 3),
            id2=spelled(few[1], 3),
            id3=spelled(rng.integers(1, many + 1, count, dtype=np.int32), 10),
            id4=few[2],
            id5=few[3],
            id6=rng.integers(1, many + 1, count, dtype=np.int32),
            v1=rng.integers(1, 6, count, dtype=np.int32),
            v2=rng.integers(1, 16, count, dtype=np.int32),
            v3=np.round(rng.uniform(0, 100, count), 6),
        )

    return {"x": write_chunks(path, rows, chunk)}


def write_join(folder: Path, rows: int, seed: int) -> dict[str, str]:
    """The tables x, small (rows / 10^6), medium (rows / 10^3) and big (rows): nine keys of ten on one side are on both."""
    folder = folder / f"h2o-join-{rows}-{seed}-{FORMAT}"
    sizes = [max(10, rows // 1_000_000), max(10, rows // 1_000), rows]
    rng = np.random.default_rng([seed, 1])
    left, right = zip(*(key_sides(size, rng) for size in sizes), strict=True)
    paths = {"x": write_chunks(folder / "x.parquet", rows, joined(left, 3, "v1", rows, False, seed))}
    for number, (name, size) in enumerate(zip(("small", "medium", "big"), sizes, strict=True)):
        chunk = joined(right, number + 1, "v2", size, True, seed + number + 1)
        paths[name] = write_chunks(folder / f"{name}.parquet", size, chunk)
    return paths


def key_sides(size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The keys of x and of the other table, `size` each, shuffled: 90 % are common."""
    keys = rng.permutation(np.arange(1, size + size // 10 + 1, dtype=np.int32))
    common = size - size // 10
    return keys[:size], np.concatenate([keys[:common], keys[size:]])


def joined(
    keys: Sequence[np.ndarray], levels: int, value: str, rows: int, last_is_unique: bool, seed: int
) -> Callable[[int, int], pa.Table]:
    """Chunks with id1 .. id<levels>, the same keys as text id4 .., and a float; in a dimension the last key occurs once."""

    def chunk(start: int, count: int) -> pa.Table:
        rng = np.random.default_rng([seed, 2, start])
        ids = [keys[level][rng.integers(0, len(keys[level]), count)] for level in range(levels)]
        if last_is_unique:
            ids[-1] = keys[levels - 1][start : start + count]
        numbers = {f"id{level + 1}": ids[level] for level in range(levels)}
        texts = {f"id{level + 4}": spelled(ids[level], 0) for level in range(levels)}
        return table_of(**numbers, **texts, **{value: np.round(rng.uniform(0, 100, count), 6)})

    return chunk


def spelled(numbers: np.ndarray, digits: int) -> pa.Array:
    """1 as id001, of so many digits at least."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    names = pa.array([f"id{number:0{digits}}" for number in distinct.tolist()])
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names).cast(pa.string())
