"""Crashes, damaged files, full and read-only disks, second writers: what a database directory promises under them.

The ids in the names are the rows of the fault catalogue that the promises are numbered by.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gpudb.errors import CorruptDataError, FormatError, LockedError, ReadOnlyError, StorageError
from gpudb.storage.database import Database
from gpudb.storage.manifest import MANIFEST_FORMAT
from gpudb.storage.table import TableBuilder, TableVersion, table_from_arrow
from tests.storage import kill_loop
from tests.storage.faulty import Failing, PowerCut, Recording, Unsynced

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parents[2]
LEFT = pa.table({"n": np.arange(5000) % 251, "s": [f"text {i % 13}" for i in range(5000)]})
RIGHT = pa.table({"x": [1.5, None, -0.5]})


def committed(path: Path, **tables: pa.Table) -> Path:
    """A closed database of these tables, each in a commit of its own."""
    with Database(path, file_system=Unsynced()) as database:
        for name, table in tables.items():
            builder = TableBuilder(table_from_arrow(name, table.slice(0, 0)).columns, row_group_rows=4096)
            builder.append(table)
            database.commit({name: builder.finish(name)}, database.snapshot().version)
    return path


def read(path: Path, name: str) -> pa.Table:
    with Database(path, read_only=True) as database:
        return database.snapshot()[name].to_arrow()


def one_row(version: TableVersion | None, number: int, texts: int = 1 << 20) -> TableVersion:
    rows = pa.table({"n": [number], "s": [f"text {number % texts}"]})
    columns = table_from_arrow("t", rows).columns if version is None else version.columns
    builder = TableBuilder(columns, previous=version)
    builder.append(rows)
    return builder.finish("t")


def run_kill_loop(path: Path, kills: int) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.storage.kill_loop", str(path), str(kills)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_S1_a_killed_writer_loses_no_acknowledged_commit(tmp_path):
    result = run_kill_loop(tmp_path / "db", 20)
    assert result["kills"] == 20 and result["commits"] >= 10 and result["violations"] == 0


@pytest.mark.slow
def test_S1_hundreds_of_killed_writers_lose_no_acknowledged_commit(tmp_path):
    result = run_kill_loop(tmp_path / "db", 400)
    assert result["kills"] == 400 and result["commits"] >= 200 and result["violations"] == 0


def powered_off(tmp_path: Path, skip: str, states: int) -> list[str]:
    """Violations found in `states` random states of a disk whose power went during a session of commits."""
    recording = Recording(str(tmp_path / "live"), skip)
    (tmp_path / "live").mkdir()
    acknowledged = [0]  # operations recorded when the k-th commit was acknowledged
    with Database(tmp_path / "live" / "db", file_system=recording) as database:
        created = len(recording.operations)
        for step in range(4):
            snapshot = database.snapshot()
            log = kill_loop.append(snapshot.get("log"), step)
            database.commit({"log": log}, snapshot.version)
            acknowledged.append(len(recording.operations))
    violations = []
    chance = random.Random(7)
    for number in range(states):
        count = chance.randrange(created, len(recording.operations) + 1)
        acked = sum(1 for at in acknowledged[1:] if at <= count)
        disk = tmp_path / f"disk{number}"
        PowerCut(recording.operations, count, chance).materialise(str(disk))
        try:
            with Database(disk / "db", file_system=Unsynced()) as database:
                log = database.snapshot().get("log")
                steps = 0 if log is None else log.num_rows // kill_loop.ROWS
                assert acked <= steps <= acked + 1, f"{acked} acknowledged, {steps} found"
                if log is not None:
                    expected = pa.concat_tables([kill_loop.rows_of(step) for step in range(steps)])
                    assert log.to_arrow().equals(expected.combine_chunks())
        except (AssertionError, StorageError) as error:
            violations.append(repr(error))
        shutil.rmtree(disk)
    return violations


def test_S2_a_power_cut_loses_no_acknowledged_commit(tmp_path):
    assert powered_off(tmp_path, "", 150) == []


@pytest.mark.parametrize("skip", ["file", "data", "manifest"])
def test_S2_a_power_cut_is_noticed_where_a_sync_is_left_out(tmp_path, skip):
    assert powered_off(tmp_path, skip, 80) != []


@pytest.mark.parametrize("method", ["write", "write_some", "link", "sync", "sync_directory"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
@pytest.mark.parametrize("place", ["data", "manifest"])
def test_S3_S4_a_failed_call_fails_the_statement_and_nothing_else(tmp_path, method, number, place):
    files = Failing()
    with Database(tmp_path / "db", file_system=files) as database:
        before = database.commit({"t": one_row(None, 1)}, 1)
        new = one_row(before["t"], 2)
        files.fail(method, number, "" if method in ("write", "write_some", "sync") else place)
        with pytest.raises(StorageError, match="stored"):
            database.commit({"t": new}, before.version)
        files.heal()
        assert database.snapshot() is before
        assert before["t"].to_arrow()["n"].to_pylist() == [1]
        if method == "sync_directory":  # the page cache may have forgotten: nothing more until it is opened again
            with pytest.raises(ReadOnlyError, match="opened again"):
                database.commit({"t": new}, before.version)
        else:
            database.commit({"t": new}, before.version)
    found = read(tmp_path / "db", "t")["n"].to_pylist()
    assert found == [1, 2] or (method == "sync_directory" and found in ([1], [1, 2]))
    assert os.listdir(tmp_path / "db" / "tmp") == []


def test_S6_short_writes_leave_no_gap(tmp_path):
    class Short(Unsynced):
        def write_some(self, descriptor: int, view: memoryview) -> int:
            return os.write(descriptor, view[: max(1, len(view) // 3)])

    with Database(tmp_path / "db", file_system=Short()) as database:
        database.commit({"left": table_from_arrow("left", LEFT)}, 1)
    assert read(tmp_path / "db", "left").equals(LEFT)


def flip(path: Path, position: int, bit: int) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ (1 << bit)]))


def check_damage(path: Path, damaged: Path) -> bool:
    """Whether damage to a data file was noticed; AssertionError if rows are wrong, or if it spread to other tables."""
    with Database(path, read_only=True) as database:
        snapshot = database.snapshot()
        faults = []
        for name, expected in (("left", LEFT), ("right", RIGHT)):
            try:
                assert snapshot[name].to_arrow().equals(expected), f"wrong rows after damage to {damaged.name}"
            except CorruptDataError as error:
                faults.append((name, str(error)))
    assert len({name for name, _ in faults}) <= 1
    for name, text in faults:
        assert f"table {name}, column " in text and ("row group " in text or "dictionary" in text), text
        assert damaged.name in text, text
    return bool(faults)


def flips(tmp_path: Path, number: int) -> int:
    path = committed(tmp_path / "db", left=LEFT, right=RIGHT)
    files = sorted((path / "data").iterdir())
    assert len(files) == 4
    chance, noticed = random.Random(1), 0
    for _ in range(number):
        file = chance.choice(files)
        position, bit = chance.randrange(file.stat().st_size), chance.randrange(8)
        flip(file, position, bit)
        noticed += check_damage(path, file)
        flip(file, position, bit)
    assert not any(check_damage(path, file) for file in files)
    return noticed


def test_S7_a_flipped_bit_is_an_error_and_never_a_wrong_row(tmp_path):
    assert flips(tmp_path, 100) > 50


@pytest.mark.slow
def test_S7_a_thousand_flipped_bits_are_errors_and_never_wrong_rows(tmp_path):
    assert flips(tmp_path, 1000) > 500


def test_S7_a_damaged_column_leaves_the_others_readable(tmp_path):
    path = committed(tmp_path / "db", left=LEFT)
    with Database(path, read_only=True) as database:
        entry = database.snapshot()["left"].row_groups[1].file
    flip(path / "data" / entry.file, entry.chunks[0].stored.offset + 5, 3)
    with Database(path, read_only=True) as database:
        first, second = database.snapshot()["left"].row_groups
        assert first.chunks[0].values().tolist() == LEFT["n"].to_pylist()[:4096]
        assert second.chunks[1].values().shape == (904,)
        for _ in range(2):  # an error is not remembered as an answer
            with pytest.raises(CorruptDataError, match=r"table left, column n, row group 1, file .*checksum"):
                second.chunks[0].values()


def test_S8_every_damaged_byte_of_a_manifest_is_refused(tmp_path):
    path = committed(tmp_path / "db", left=LEFT.slice(0, 10), right=RIGHT)
    newest = sorted((path / "manifest").iterdir())[-1]
    for position in range(newest.stat().st_size):
        bit = position % 8
        flip(newest, position, bit)
        with pytest.raises((CorruptDataError, FormatError)):
            Database(path, read_only=True)
        flip(newest, position, bit)
    assert read(path, "right").equals(RIGHT)


def test_S8_an_inverted_checksum_is_refused(tmp_path):
    path = committed(tmp_path / "db", right=RIGHT)
    newest = sorted((path / "manifest").iterdir())[-1]
    header, _, content = newest.read_bytes().partition(b"\n")
    words = header.split()
    words[3] = f"{int(words[3], 16) ^ (1 << 128) - 1:032x}".encode()
    newest.write_bytes(b" ".join(words) + b"\n" + content)
    with pytest.raises(CorruptDataError, match="version 2"):
        Database(path)


def test_S8_an_older_manifest_that_is_damaged_or_missing_is_refused(tmp_path):
    path = committed(tmp_path / "db", left=LEFT, right=RIGHT)
    middle = sorted((path / "manifest").iterdir())[1]
    content = middle.read_bytes()
    middle.write_bytes(content[:-1])
    with pytest.raises(CorruptDataError, match="version 2"):
        Database(path)
    middle.unlink()
    with pytest.raises(CorruptDataError, match="a manifest is missing"):
        Database(path)
    middle.write_bytes(content)
    shutil.rmtree(path / "manifest")
    (path / "manifest").mkdir()
    with pytest.raises(CorruptDataError, match="manifests of the database are missing"):
        Database(path)


def test_S9_cut_empty_long_and_missing_files_are_errors(tmp_path):
    path = committed(tmp_path / "db", left=LEFT, right=RIGHT)
    chance = random.Random(2)
    for file in sorted((path / "data").iterdir()):
        content = file.read_bytes()
        cuts = [0, 1, len(content) - 1, *(chance.randrange(len(content)) for _ in range(50))]
        for changed in [*(content[:cut] for cut in cuts), content + b"\0", content + content]:
            file.write_bytes(changed)
            assert check_damage(path, file)
        file.unlink()
        assert check_damage(path, file)
        file.write_bytes(content)


def test_S9_a_cut_manifest_or_format_is_refused(tmp_path):
    path = committed(tmp_path / "db", right=RIGHT)
    for file in (sorted((path / "manifest").iterdir())[-1], path / "FORMAT"):
        content = file.read_bytes()
        for cut in range(len(content) - 1):
            file.write_bytes(content[:cut])
            with pytest.raises(CorruptDataError):
                Database(path, read_only=True)
        file.write_bytes(content)
    (path / "FORMAT").unlink()
    with pytest.raises(CorruptDataError, match="FORMAT file of the database is missing"):
        Database(path)


def test_S10_leftovers_are_ignored_and_swept_by_the_next_writer_only(tmp_path):
    path = committed(tmp_path / "db", left=LEFT)
    stray = path / "data" / f"{'0' * 32}.arrow"
    partial = path / "tmp" / "unfinished"
    strange = path / "data" / "README"
    for file in (stray, partial, strange):
        file.write_bytes(b"leftover")
    (path / "manifest" / "note").write_text("not a version")
    assert read(path, "left").equals(LEFT) and stray.exists() and partial.exists()
    with Database(path) as database:
        assert database.snapshot()["left"].to_arrow().equals(LEFT)
    assert not stray.exists() and not partial.exists() and strange.exists()


def test_S11_a_read_error_fails_the_query_and_the_next_one_works(tmp_path):
    path = committed(tmp_path / "db", left=LEFT)
    files = Failing()
    with Database(path, read_only=True, file_system=files) as database:
        files.fail("load", errno.EIO)
        with pytest.raises(StorageError, match="cannot read table left, column n, row group 0"):
            database.snapshot()["left"].to_arrow()
        files.heal()
        assert database.snapshot()["left"].to_arrow().equals(LEFT)


def test_S12_a_database_that_cannot_be_written_is_opened_read_only(tmp_path, caplog):
    path = committed(tmp_path / "db", left=LEFT)
    files = Failing()
    files.fail("lock", errno.EROFS)
    with Database(path, file_system=files) as database:
        assert database.read_only and "opened read-only" in caplog.text
        with pytest.raises(ReadOnlyError):
            database.commit({"left": None}, database.snapshot().version)
        assert database.snapshot()["left"].to_arrow().equals(LEFT)


def test_S12_a_read_only_mount_is_opened_read_only(tmp_path):
    path = committed(tmp_path / "db", left=LEFT)
    program = (
        "from gpudb.storage.database import Database; from gpudb.errors import ReadOnlyError\n"
        f"database = Database({str(path)!r}); assert database.read_only\n"
        "assert database.snapshot()['left'].num_rows == 5000\n"
        "try: database.commit({'left': None}, database.version)\n"
        "except ReadOnlyError: print('refused')\n"
    )
    mount = f"mount --bind {path} {path} && mount -o remount,bind,ro {path}"
    probe = subprocess.run(["unshare", "-Urm", "sh", "-c", mount], check=False, capture_output=True)
    if probe.returncode:
        pytest.skip("no mount namespaces here")
    command = ["unshare", "-Urm", "sh", "-c", f'{mount} && exec "$0" -c "$1"', sys.executable, program]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "refused\n", done.stderr


def test_S13_a_second_writer_is_told_who_holds_the_lock_until_that_one_is_gone(tmp_path):
    path = tmp_path / "db"
    program = (
        f"from gpudb.storage.database import Database; Database({str(path)!r}); print('open', flush=True); input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program.replace("; Database", "; database = Database")],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"open\n"
        start = time.monotonic()
        with pytest.raises(LockedError, match=f"locked by pid {holder.pid}:"):
            Database(path)
        assert time.monotonic() - start < 1.0
        Database(path, read_only=True).close()
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    Database(path).close()


def test_S13_a_second_writer_in_the_same_process_is_told_so(tmp_path):
    with Database(tmp_path / "db"), pytest.raises(LockedError, match=f"pid {os.getpid()} .this process"):
        Database(tmp_path / "db")
    Database(tmp_path / "db").close()


def test_S14_readers_in_other_processes_see_whole_versions(tmp_path):
    path = tmp_path / "db"
    Database(path).close()
    program = (
        "import sys, time\n"
        "from gpudb.storage.database import Database\n"
        f"database = Database({str(path)!r}, read_only=True)\n"
        "seen, last, end = 0, 0, time.monotonic() + 30\n"
        "while last < 60 and time.monotonic() < end:\n"
        "    snapshot = database.snapshot()\n"
        "    if 'a' not in snapshot: continue\n"
        "    a, b = snapshot['a'].to_arrow(), snapshot['b'].to_arrow()\n"
        "    assert a['n'].to_pylist() == b['n'].to_pylist() == list(range(len(a))), (len(a), len(b))\n"
        "    assert len(a) >= last\n"
        "    seen += len(a) > last; last = len(a); time.sleep(0.005)\n"
        "print(last, seen)\n"
    )
    readers = [
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    with Database(path, file_system=Unsynced()) as database:
        for number in range(60):
            snapshot = database.snapshot()
            changes = {}
            for name in ("a", "b"):
                rows = pa.table({"n": [number]})
                columns = table_from_arrow(name, rows).columns
                builder = TableBuilder(columns, row_group_rows=4096, previous=snapshot.get(name))
                builder.append(rows)
                changes[name] = builder.finish(name)
            database.commit(changes, snapshot.version)
            time.sleep(0.03)
    for reader in readers:
        output, errors = reader.communicate(timeout=60)
        assert reader.returncode == 0, errors.decode()
        last, seen = map(int, output.split())
        assert last == 60 and seen > 1


def test_S15_a_held_snapshot_outlives_its_files(tmp_path):
    path = committed(tmp_path / "db", left=LEFT)
    with Database(path, read_only=True) as reader, Database(path) as writer:
        held = reader.snapshot()["left"]
        writer.commit({"left": None}, writer.snapshot().version)
        assert list((path / "data").iterdir()) == []
        assert "left" not in reader.snapshot()
        assert held.to_arrow().equals(LEFT)


def test_S16_a_version_that_is_there_already_is_never_replaced(tmp_path):
    path = committed(tmp_path / "db", left=LEFT)
    with Database(path) as database:
        base = database.snapshot()
        taken = path / "manifest" / f"{base.version + 1:020d}.json"
        taken.write_bytes(b"someone else's")
        with pytest.raises(StorageError, match="File exists"):
            database.commit({"left": None}, base.version)
        assert taken.read_bytes() == b"someone else's"
        with pytest.raises(ReadOnlyError, match="in spite of the lock"):
            database.commit({"left": None}, base.version)


def test_S17_a_database_of_a_newer_format_is_refused_by_its_number(tmp_path):
    path = committed(tmp_path / "db", right=RIGHT)
    words = json.loads((path / "FORMAT").read_text())
    (path / "FORMAT").write_text(json.dumps({**words, "format": 7, "min_reader": 7}))
    for read_only in (False, True):
        with pytest.raises(FormatError, match="newer gpudb: it needs format 7"):
            Database(path, read_only=read_only)
    (path / "FORMAT").write_text(json.dumps({**words, "features": ["time travel"]}))
    with pytest.raises(FormatError, match="time travel"):
        Database(path)
    (path / "FORMAT").write_text(json.dumps({**words, "format": 7}))  # newer, but we may read it
    assert read(path, "right").equals(RIGHT)


def test_S17_a_manifest_of_a_newer_format_is_refused_by_its_number(tmp_path):
    path = committed(tmp_path / "db", right=RIGHT)
    newest = sorted((path / "manifest").iterdir())[-1]
    newer = MANIFEST_FORMAT + 1
    newest.write_bytes(newest.read_bytes().replace(b"gpudb-manifest 1 ", b"gpudb-manifest %d " % newer, 1))
    with pytest.raises(FormatError, match=f"manifest format {newer}"):
        Database(path)


def golden_tables() -> dict[str, pa.Table]:
    """What every golden database holds."""
    everything = pa.table(
        {
            "boolean": [True, None, False],
            "small": pa.array([1, None, 3], pa.int8()),
            "framed": [1_000_000, 1_000_001, 1_000_200],
            "divided": pa.array([10**15, None, 10**15 + 7_200_000_000]).cast(pa.timestamp("us")),
            "wide": [-(1 << 63), 0, (1 << 63) - 1],
            "amount": pa.array([Decimal("1.00"), Decimal("2.50"), None], pa.decimal128(18, 2)),
            "real": pa.array([1.5, None, float("inf")], pa.float32()),
            "double": [0.1, -0.0, None],
            "day": pa.array([0, 19000, None], pa.int32()).cast(pa.date32()),
            "text": ["b", None, "a"],
            "constant": [7, 7, 7],
            "nothing": pa.nulls(3, pa.int64()),
        }
    )
    return {"everything": everything, "more": pa.table({"n": [1, 2, 3], "text": ["x", "y", "x"]})}


@pytest.mark.parametrize("folder", sorted(GOLDEN.iterdir()), ids=lambda folder: folder.name)
def test_S17_databases_of_all_earlier_formats_open(tmp_path, folder):
    path = tmp_path / "db"
    shutil.copytree(folder, path)
    for read_only in (True, False):
        with Database(path, read_only=read_only) as database:
            snapshot = database.snapshot()
            for name, expected in golden_tables().items():
                assert snapshot[name].to_arrow().equals(expected), name


def one_row_appends(path: Path, rows: int, texts: int = 1 << 20) -> tuple[float, int, int]:
    """(processor seconds to open it afterwards, bytes that manifests took in all, data files at the end).

    texts    how many different ones there are: each append writes those of the tail
    """
    written = 0

    class Counting(Unsynced):
        def link(self, source: str, target: str) -> None:
            nonlocal written
            super().link(source, target)
            written += os.path.getsize(target) if "manifest" in target else 0

    with Database(path, file_system=Counting()) as database:
        for number in range(rows):
            snapshot = database.snapshot()
            database.commit({"t": one_row(snapshot.get("t"), number, texts)}, snapshot.version)
    start = time.process_time()
    with Database(path) as database:
        table = database.snapshot()["t"].to_arrow()
    seconds = time.process_time() - start
    assert table["n"].to_pylist() == list(range(rows))
    assert table["s"].to_pylist() == [f"text {number % texts}" for number in range(rows)]
    return seconds, written, len(list((path / "data").iterdir()))


def test_S21_one_row_appends_keep_manifests_linear_and_files_few(tmp_path):
    _, few_bytes, _ = one_row_appends(tmp_path / "few", 150)
    seconds, many_bytes, files = one_row_appends(tmp_path / "many", 600)
    assert seconds < 2 and many_bytes < 5 * few_bytes and files <= 12


@pytest.mark.slow
def test_S21_ten_thousand_one_row_appends_open_in_two_seconds(tmp_path):
    seconds, written, files = one_row_appends(tmp_path / "db", 10_000, texts=100)
    assert seconds < 2 and written < 10_000 * 2000 and files <= 16
    assert len(list((tmp_path / "db" / "manifest").iterdir())) <= 128
