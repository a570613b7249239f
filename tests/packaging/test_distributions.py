"""Wheel, source archive and editable install hold what they should, although four folders of gpudb/ are links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import gpudb.server
from gpudb.kernels import host_build
from gpudb.version import __version__

ROOT = Path(__file__).parents[2]
LINKS = ("kernels", "planner", "server", "storage")

# Stands in for the kernels' real text, which takes a minute to compile for three levels.
TEXT = 'extern "C" int answer() { return 42; }'


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout whose kernel text is TEXT, with the links kept as links."""
    folder = tmp_path_factory.mktemp("checkout")
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    for name in ("gpudb", *LINKS):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, folder)
    (folder / "kernels" / "__init__.py").write_text(f"def host_source():\n    return {TEXT!r}\n")
    return folder


def build(folder: Path, function: str, environment: dict[str, str] | None = None) -> Path:
    """Run one of the build backend's functions in `folder`; returns the archive it made."""
    script = f"import hatchling.build as b, sys; print(b.{function}(sys.argv[1]), file=sys.stderr)"
    target = folder / "dist" / function
    command = [sys.executable, "-c", script, str(target)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return target / done.stderr.splitlines()[-1]


def test_a_wheel_carries_a_library_of_each_level_and_they_run(checkout: Path, tmp_path: Path) -> None:
    wheel = build(checkout, "build_wheel")
    assert wheel.name.startswith(f"gpudb_engine-{__version__}-py3-none-linux_")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path)
    assert {f"gpudb/kernels/{host_build.packaged_name(TEXT, level)}" for level in host_build.levels()} <= names
    for name in ("kernels/platform.h", "storage/__init__.py", "planner/__init__.py", "docs/numeric_rules.md"):
        assert f"gpudb/{name}" in names
    assert not [name for name in names if "hatch_build" in name or name.startswith(("kernels/", "tests/"))]
    script = (
        "import ctypes, gpudb.kernels as k; from gpudb.kernels.host_build import host_library;"
        "path = host_library(k.host_source()); print(path, ctypes.CDLL(str(path)).answer())"
    )
    environment = {"PATH": "", "PYTHONPATH": str(tmp_path), "GPUDB_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    path, answer = done.stdout.split()
    assert answer == "42" and Path(path).parent == tmp_path / "gpudb" / "kernels"


def test_a_wheel_built_without_a_compiler_is_for_any_platform(checkout: Path) -> None:
    environment = {**os.environ, "PATH": ""}
    environment.pop("CXX", None)
    wheel = build(checkout, "build_wheel", environment)
    assert wheel.name == f"gpudb_engine-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]


def test_an_editable_install_compiles_nothing(checkout: Path) -> None:
    with zipfile.ZipFile(build(checkout, "build_editable")) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
        (path_file,) = [name for name in archive.namelist() if name.endswith(".pth")]
        assert archive.read(path_file).decode().strip() == str(checkout)


def test_a_source_archive_builds_the_same_wheel(checkout: Path, tmp_path: Path) -> None:
    with tarfile.open(build(checkout, "build_sdist")) as archive:
        assert not [member.name for member in archive if member.issym() or member.islnk()]
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    assert not (folder / "kernels").exists() and (folder / "gpudb" / "kernels" / "platform.h").is_file()
    with (
        zipfile.ZipFile(build(folder, "build_wheel")) as from_archive,
        zipfile.ZipFile(build(checkout, "build_wheel")) as from_checkout,
    ):
        assert sorted(from_archive.namelist()) == sorted(from_checkout.namelist())


def test_a_wheel_promises_the_extras_that_the_readme_names(checkout: Path) -> None:
    with zipfile.ZipFile(build(checkout, "build_editable")) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        lines = archive.read(name).decode().splitlines()
        (entry_points,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert "gpudb = gpudb.__main__:main" in archive.read(entry_points).decode()
    assert {line for line in lines if line.startswith("Provides-Extra")} == {
        f"Provides-Extra: {extra}"
        for extra in ("gpu", "udf", "shell", "server", "sqlalchemy", "adbc", "demo", "bench", "test")
    }
    base = [line for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert len(base) == 3


CLIENT = """
import sys, gpudb, adbc_driver_gpudb.dbapi, polars, sqlalchemy
assert gpudb.__file__.startswith(sys.argv[1]) and adbc_driver_gpudb.__file__.startswith(sys.argv[1]), gpudb.__file__
place = sys.argv[2]
with adbc_driver_gpudb.dbapi.connect(f"gpudb://{place}", autocommit=True) as connection, connection.cursor() as cursor:
    cursor.execute("CREATE TABLE t AS SELECT range AS a FROM range(10)")
    cursor.execute("SELECT count(*) AS n FROM t WHERE a > ?", [5])
    print(cursor.fetchall())
print(polars.read_database_uri("SELECT a FROM t WHERE a < 2", f"gpudb://{place}", engine="adbc").rows())
engine = sqlalchemy.create_engine(f"gpudb+flight://{place}")
print(sqlalchemy.inspect(engine).get_table_names())
print(gpudb.connect(f"grpc://{place}").execute("SELECT count(*) FROM t").fetchone())
"""


def test_an_installed_wheel_brings_the_adbc_driver_and_the_dialects(checkout: Path, tmp_path: Path) -> None:
    wheel = build(checkout, "build_wheel", {**os.environ, "PATH": "", "CXX": ""})
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path / "site",
        wheel,
    ]
    subprocess.run(command, check=True)
    assert not (tmp_path / "site/gpudb/server/adbc_driver_gpudb").exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDB_RUNTIME_DIR", str(tmp_path / "run"))
        with gpudb.server.serve(port=0) as server:
            place = server.uri.removeprefix("grpc://")
            command = [sys.executable, "-c", CLIENT, tmp_path / "site", place]
            environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[(4,)]", "[(0,), (1,)]", "['t']", "(10,)"]
