"""Plays the golden sessions as other processors would; `python -m tests.processors` prints a table.

A variable tells Numba for which processor to compile, and others take from NumPy, the C library and
OpenBLAS the instructions that older ones lack. What this machine cannot run is left out and said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_OLD_NUMPY: Final = {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"}
_OLD_LIBRARY: Final = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-FMA4,-AVX2_Usable,-FMA_Usable"
}


def _compile_for(processor: str) -> dict[str, str]:
    """Code for one processor, without what this one has beyond it."""
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}


def _threads(number: int) -> dict[str, str]:
    return dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(number))


OLDEST: Final = {
    **_compile_for("x86-64"),
    **_OLD_NUMPY,
    **_OLD_LIBRARY,
    "OPENBLAS_CORETYPE": "Nehalem",
}
VARIANTS: Final[Mapping[str, Mapping[str, str]]] = {
    **{
        name: _compile_for(name)
        for name in ("x86-64", "nehalem", "haswell", "skylake-avx512", "znver4")
    },
    "NumPy without AVX2": _OLD_NUMPY,
    "C library without FMA": _OLD_LIBRARY,
    "OpenBLAS for Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "OpenBLAS for Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "one thread": _threads(1),
    "two threads": _threads(2),
    "the oldest": OLDEST,
}
_NEEDS: Final = {
    "haswell": {"avx2", "fma", "bmi2"},
    "skylake-avx512": {"avx512f", "avx512vl", "avx512bw", "avx512dq"},
    "znver4": {"avx512f", "avx512_vbmi2", "avx512_bf16", "sse4a"},
}
"""Instructions that this machine has to have, as Linux names them."""
GOLDEN: Final = ("tests/layouts/adaptive/test_golden.py", "tests/service/test_golden.py")


def lacks(name: str) -> set[str]:
    """Instructions that a variant needs and this machine has not."""
    cpu = Path("/proc/cpuinfo").read_text("utf-8")
    flags = next((line for line in cpu.splitlines() if line.startswith("flags")), "")
    return _NEEDS.get(name, set[str]()) - set(flags.split())


def run(
    variant: Mapping[str, str], cache: Path, tests: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run tests in a process of its own, as another processor would.

    Args:
        variant: Variables of its environment.
        cache: Folder of what Numba compiles for it.
        tests: Files of tests, and options of pytest.
    """
    environment = {**os.environ, **variant}
    if "NUMBA_CPU_NAME" in variant:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def main() -> int:
    """Play all golden sessions as every processor that can be had here."""
    failed = False
    for name, variant in VARIANTS.items():
        if missing := lacks(name):
            print(f"{name:24} not run: this machine lacks {', '.join(sorted(missing))}", flush=True)
            continue
        began = time.monotonic()
        done = run(variant, ROOT / "build" / "processors" / name.replace(" ", "-"), GOLDEN)
        failed = failed or done.returncode != 0
        said = "equal to the bit" if done.returncode == 0 else "DIFFERS"
        print(f"{name:24} {said}, {time.monotonic() - began:.0f} s", flush=True)
        if done.returncode:
            print(done.stdout[-3000:], done.stderr[-2000:], sep="\n", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
