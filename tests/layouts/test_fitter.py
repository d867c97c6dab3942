"""The fitting process: serves, survives bad requests, restarts after a crash, ends with us."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import pytest

from animalcat.envs.patience import Patience
from animalcat.layouts.inference import messages
from animalcat.layouts.inference.fit import FitError, FitInterruptedError, FitRequest
from animalcat.layouts.inference.fitter import Fitter, FitterStatus
from animalcat.layouts.model.spec import Layout

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]
Play = Callable[[Floats, list[float], int], Floats]


@pytest.mark.slow
async def test_it_serves_fits_and_restarts(
    aaio: Layout,
    draw_instances: Draw,
    play: Play,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A user's own files never stand in for packages: ArviZ imports one of the name `tree`.
    for name in ("tree", "arviz"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('the wrong module')")
    monkeypatch.chdir(tmp_path)
    features = draw_instances(40, 1)
    y = play(features, [3.0, 1.0, 0.0, 0.1], 1)
    request = FitRequest(aaio, features, y, seed=7)
    fitter = Fitter()
    assert fitter.fitting() == FitterStatus((), 0)
    try:
        await fitter.start(aaio)
        both = asyncio.gather(
            fitter.fit(request), fitter.fit(FitRequest(aaio, features[:9], y[:9], seed=7))
        )
        await asyncio.sleep(0)
        assert fitter.fitting() == FitterStatus(((socket.gethostname(), True),), 2, compiling=True)
        first, second = await both
        assert fitter.fitting() == FitterStatus(((socket.gethostname(), False),), 0)
        assert first.converged
        assert first.layout == aaio
        assert first.diagnostics["outcomes"] == 40
        assert second.diagnostics["outcomes"] == 9
        assert [node.name for node in first.nodes] == list(aaio.latent_names)
        assert first.nodes[0].mean == pytest.approx(first.flat_draws[:, 0].mean())
        assert fitter.compiles == 0, "this layout needs no compiled PyMC model"

        with pytest.raises(FitError, match="outcomes for 40 rows") as refused:
            await fitter.fit(FitRequest(aaio, features, y[:9], seed=7))
        assert not isinstance(refused.value, FitInterruptedError)
        assert (await fitter.fit(request)).draws.tobytes() == first.draws.tobytes()
        assert fitter.compiles == 0

        # Killed in the midst of a request: an error that says so; the next request is served.
        pid = fitter.pid
        assert pid is not None
        running = asyncio.create_task(fitter.fit(FitRequest(aaio, features, y, 1, draws=200_000)))
        await asyncio.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(FitInterruptedError, match="was killed"):
            await running
        empty = await fitter.fit(FitRequest(aaio, np.empty((0, 4)), [], seed=1))
        assert empty.diagnostics["prior_only"]
        assert fitter.pid not in (None, pid)
    finally:
        await fitter.close()
    await fitter.close()


async def test_a_process_that_is_given_up_is_ended(aaio: Layout, tmp_path: Path) -> None:
    hangs = tmp_path / "python"
    hangs.write_text("#!/bin/sh\nexec sleep 60\n")
    hangs.chmod(0o755)
    endless = FitRequest(aaio, [[10.0, 1.0, 0.0, 0.0]], [1.0], seed=1, draws=200_000)
    for fitter, why in (
        (Fitter(Patience(0.4).outlast, str(hangs)), "nor any work"),
        (Fitter(Patience(60.0, 0.1).outlast), "of CPU time"),
    ):
        try:
            with pytest.raises(FitInterruptedError, match=why):
                await fitter.fit(endless)
            assert fitter.pid is None
        finally:
            await fitter.close()


async def test_an_interpreter_that_is_not_there_is_an_error(aaio: Layout) -> None:
    with pytest.raises(FitError, match="cannot start"):
        await Fitter(python="/nowhere/python").start(aaio)


async def test_what_a_dying_process_says_is_in_the_error(aaio: Layout) -> None:
    fitter = Fitter(python="/bin/false")
    with pytest.raises(FitError, match="ended unexpectedly"):
        await fitter.fit(FitRequest(aaio, [], [], seed=1))
    await fitter.close()


def test_it_ends_with_its_parent() -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'animalcat.layouts.inference.fitter'],"
        " stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
    for _ in range(200):
        if not child.is_running() or child.status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.05)
    else:
        child.kill()
        pytest.fail("the fitting process outlives its parent")


def test_bad_requests_are_answered_and_the_end_of_input_ends_it() -> None:
    command = [sys.executable, "-m", "animalcat.layouts.inference.fitter"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        errors: list[str] = []
        for bad in ({"op": "dance"}, {"op": "fit", "layout": {"name": "x"}}, {}):
            process.stdin.write(messages.pack(bad))
            process.stdin.flush()
            answer = messages.read(process.stdout.read)
            assert answer is not None
            assert answer[0]["ok"] is False
            errors.append(answer[0]["error"])
        process.stdin.close()
        assert process.wait(timeout=20) == 0
    assert "valid: compile, fit" in errors[0]
    assert "features: it is missing" in errors[1]
