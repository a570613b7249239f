"""Asks g++ which generated loops it turned into SIMD code, and fails where one stayed scalar without a listed reason.

A scalar loop is 4 to 30 times slower and nothing else tells: the answers are right.  Reasons are of the hardware (no
instruction) or of the algorithm (no fixed number of steps); "the compiler did not see it" is not one, but a bug to fix.

    python -m gpudb.kernels.vectorisation

compiles the host text once for x86-64-v3 (AVX2), which most machines have.  Needs g++ and its c++filt.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from gpudb.kernels.host_build import Compiler, compile_library

LEVEL = "x86-64-v3"

# (pattern of a whole variant as `loop_counts` spells it, why it is scalar); the first that matches counts.
REASONS = (
    (r".*__int128.*", "no SIMD lanes of 128 bits"),
    (r"(IntegerDivide|Modulo|DivideCode|DivideRounded|FloorDivide)<.*", "no SIMD division of integers"),
    (r"(round|round_even|trunc)(_domain)?_\w+<.*", "divides by a power of ten of each row's own"),
    (r"(gcd|lcm)(_domain)?_\w+<.*", "Euclid's loop has no fixed length"),
    (r"(FloatModulo|fmod_\w+)<.*", "the exact remainder's loop has no fixed length"),
    (r"(sin|cos|tan|cot)_DOUBLE<.*", "great arguments are reduced by a loop"),
    (r"nextafter_\w+<.*", "steps across zero branch"),
    (r"bit_count_\w+<.*", "no population count before AVX-512"),
    (
        r"(date|epoch|make_date|make_timestamp|add_interval|subtract_interval|bucket_start)\w*<.*long long.*",
        "64-bit division by a constant needs the upper half of a 64-bit product",
    ),
    (
        r"timestamp_as_(date|time)\w*<.*|make_time\w*<.*",
        "64-bit division by a constant needs the upper half of a 64-bit product",
    ),
    (r"first_day_of_isoyear\w*<.*", "floating-point and integer steps that g++ 12 keeps scalar"),
    (r"MultiplyOverflows<.*", "the upper half of a 64-bit product has no SIMD instruction"),
    (r"ZoneOffset<.*", "bisects a table whose length the text does not know"),
    (r"shift_left_domain_\w+<.*", "a 64-bit shift right that keeps the sign comes with AVX-512"),
    (r"(RoundToInteger|RoundAway|even_DOUBLE)<.*", "rounding with a range check branches"),
    (r"Convert<(double|float), .*Vector<long long>.*", "64-bit integers to floats come with AVX-512"),
    (r"Convert<long long, .*Vector<(double|float)>.*", "floats to 64-bit integers come with AVX-512"),
    (r"Lookup<unsigned (char|short), .*", "no gather of 8 or 16 bits"),
    (r"Copy<unsigned char, .*Scalar<.*", "a call of memset"),
)


def loop_counts(source: str, compiler: Compiler, folder: Path) -> dict[str, int]:
    """Number of vectorised loops by variant, `Add<int, 1, Vector<int>, Scalar<int> >`: the result's type, then operands.

    A variant that g++ merged with an equal one counts under the name that it kept.
    """
    report = folder / "vect.txt"
    flag = f"-fdump-tree-vect-optimized={report}"
    compile_library(source, LEVEL, folder / "library.so", compiler, (flag,))
    by_symbol: dict[str, int] = {}
    symbol = ""
    for line in report.read_text(errors="replace").splitlines():
        if header := re.match(r";; Function .*\((_Z\w*elementwise\w*)", line):
            symbol = header[1]
            by_symbol.setdefault(symbol, 0)
        elif line.startswith(";; Function"):
            symbol = ""
        elif symbol and "optimized: loop vectorized" in line:
            by_symbol[symbol] += 1
    names = subprocess.run(["c++filt"], input="\n".join(by_symbol), capture_output=True, text=True, check=True).stdout
    counts: dict[str, int] = {}
    for name, count in zip(names.splitlines(), by_symbol.values(), strict=True):
        found = re.fullmatch(r"void elementwise\d<operator_(\w+), (.*)>\(Tile const&, Instruction const&\).*", name)
        if found is None:
            raise AssertionError(f"the symbol of a generated loop has changed its form: {name}")
        counts[f"{found[1]}<{found[2].strip()}>"] = count
    return counts


def reason(variant: str) -> str | None:
    """Why `variant` may be scalar, or None."""
    return next((why for pattern, why in REASONS if re.fullmatch(pattern, variant)), None)


def main() -> int:
    """Prints the scalar loops by reason, then those without one; the exit status is 1 if there are any of these."""
    path = shutil.which("g++")
    if path is None:
        print("needs g++", file=sys.stderr)
        return 2

    from gpudb.kernels import host_source

    with tempfile.TemporaryDirectory(prefix="gpudb-vectorisation-") as folder:
        counts = loop_counts(host_source(), Compiler((path,), "g++"), Path(folder))
    scalar = sorted(variant for variant, count in counts.items() if count == 0)
    print(f"{len(counts) - len(scalar)} of {len(counts)} generated loops are SIMD code for {LEVEL}")
    by_reason: dict[str, set[str]] = {}
    for variant in scalar:
        by_reason.setdefault(reason(variant) or "", set()).add(variant.partition("<")[0])
    unexplained = [variant for variant in scalar if reason(variant) is None]
    for why, names in sorted(by_reason.items()):
        if why:
            print(f"  scalar, because {why}: {', '.join(sorted(names))}")
    for variant in unexplained:
        print(f"scalar without a reason: {variant}", file=sys.stderr)
    return 1 if unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
