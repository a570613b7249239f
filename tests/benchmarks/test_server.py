"""What the server's figures rest on: the load's books, and that both ways of asking work against a real server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.server import __main__ as server_benchmark
from benchmarks.server.load import Counted, figures
from benchmarks.server.processes import Served


def test_percentiles_and_rates_are_of_what_was_counted() -> None:
    counted = Counted([n / 1000 for n in range(1, 101)], Counter({"FlightServerError": 2}), 5000)
    found = figures(counted, 10.0)
    assert (found["per_second"], found["p50_ms"], found["p99_ms"], found["max_ms"]) == (10.0, 51.0, 100.0, 100.0)
    assert found["errors"] == {"FlightServerError": 2} and found["bytes_per_second"] == 500


def test_aims_are_harder_than_floors() -> None:
    for name, figure in server_benchmark.FIGURES.items():
        assert (figure.aim > figure.floor) == figure.higher, name


@pytest.mark.slow
def test_every_figure_can_be_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks.server", "--quick"])
    assert server_benchmark.main() == 0
    assert '"failed"' not in capsys.readouterr().out


@pytest.mark.slow
def test_a_server_of_the_benchmark_tells_its_size_and_ends(tmp_path: Path) -> None:
    with Served(str(tmp_path / "db"), 1) as served:
        assert served.status()["rss_bytes"] > 10_000_000 and served.status()["threads"] > 1
        process = served._process
    assert process.poll() == 0
