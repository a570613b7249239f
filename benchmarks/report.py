"""Lines and the summary: JSON for machines, a table on stderr for people."""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Line = dict[str, Any]

SUBJECT = "gpudb"
SHORTEST_S = 1e-3  # a time below counts as this in a ratio: below it the clock and the client are measured


class Report:
    """Collects lines, writes each as it comes.

    path  a file that lines are appended to; None: stdout
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.lines: list[Line] = []

    def add(self, line: Line) -> None:
        """Writes one measurement."""
        self.lines.append(line)
        self._write(line)

    def note(self, text: str) -> None:
        """A line for people."""
        print(text, file=sys.stderr, flush=True)

    def finish(self, outside_mean: Iterable[str] = (), *, totals: bool = False) -> dict[str, Any]:
        """Writes and returns the summary; `outside_mean` names queries that are left out of it, `totals` adds total_vs."""
        summary = summarise(self.lines, outside_mean)
        if not totals:
            del summary["total_vs"]
        self.write_summary(summary)
        for peer, ratio in summary["geomean_vs"].items():
            query, worst = summary["worst_vs"][peer]
            self.note(f"{SUBJECT} against {peer}: geometric mean {ratio:.2f} x, worst {query} {worst:.2f} x")
        if summary["cold_minus_hot_ms"] is not None:
            self.note(f"first run minus later run: {summary['cold_minus_hot_ms']:.2f} ms (median)")
        return summary

    def write_summary(self, summary: dict[str, Any]) -> None:
        """The last line."""
        self._write({"summary": summary})

    def _write(self, line: Line) -> None:
        text = json.dumps(line)
        if self.path is None:
            print(text, flush=True)
        else:
            with open(self.path, "a") as file:
                file.write(text + "\n")


def summarise(lines: Iterable[Line], outside_mean: Iterable[str] = ()) -> dict[str, Any]:
    """Ratios of medians (peer / ours), and how much longer a first run takes than later ones.

    geomean_vs         peer → geometric mean
    total_vs           peer → ratio of the sums over the queries that both answered
    worst_vs           peer → [query, ratio], the query where we do worst
    cold_minus_hot_ms  our median over the queries; None without a measurement
    """
    ours: dict[tuple[str, str], Line] = {}
    theirs: dict[str, dict[tuple[str, str], Line]] = defaultdict(dict)
    left_out = set(outside_mean)
    for line in lines:
        if line.get("median_s") is None or line["query"] in left_out:
            continue
        key = (line["benchmark"], line["query"])
        if line["engine"] == SUBJECT:
            ours[key] = line
        else:
            theirs[line["engine"]][key] = line
    means, totals, worst = {}, {}, {}
    for peer, measured in theirs.items():
        ratios = {key: ratio(line["median_s"], ours[key]["median_s"]) for key, line in measured.items() if key in ours}
        if ratios:
            means[peer] = round(math.exp(statistics.fmean(map(math.log, ratios.values()))), 3)
            totals[peer] = round(
                sum(measured[key]["median_s"] for key in ratios) / sum(ours[key]["median_s"] for key in ratios), 3
            )
            slowest = min(ratios, key=lambda key: ratios[key])
            several = len({benchmark for benchmark, _ in ratios}) > 1
            worst[peer] = [" ".join(slowest) if several else slowest[1], round(ratios[slowest], 3)]
    differences = [(line["cold_s"] - line["median_s"]) * 1e3 for line in ours.values()]
    cold = round(statistics.median(differences), 3) if differences else None
    return {"geomean_vs": means, "total_vs": totals, "worst_vs": worst, "cold_minus_hot_ms": cold}


def ratio(theirs_s: float, ours_s: float) -> float:
    """Their time over ours, each at least SHORTEST_S."""
    return max(theirs_s, SHORTEST_S) / max(ours_s, SHORTEST_S)


def table_row(lines: list[Line]) -> str:
    """One query for people: each engine's median in ms, how many times ours it is, a mark where answers differ."""
    ours = next((line["median_s"] for line in lines if line["engine"] == SUBJECT), None)
    cells = [f"{lines[0]['query']:>4} {lines[0]['rows_out'] if lines[0]['rows_out'] is not None else '-':>9}"]
    for line in lines:
        if line["median_s"] is None:
            cells.append(f"{line['engine']} failed")
            continue
        cell = f"{line['engine']} {line['median_s'] * 1e3:.2f}"
        if ours is not None and line["engine"] != SUBJECT:
            cell += f" ({ratio(line['median_s'], ours):.1f}x)"
        cells.append(cell + ("" if line["equal"] is not False else " DIFFERS"))
    return "  ".join(cells)
