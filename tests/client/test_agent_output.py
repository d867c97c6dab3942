"""What an agent prints is kept in little memory, and shown so that it does no harm."""

from __future__ import annotations

import resource
import subprocess

import pytest

from animalcat.apart.output import KEPT_BYTES, LINES, MARK, AgentOutput, last_lines
from animalcat.text.terminals import harmless


def _run_and_print(command: str) -> AgentOutput:
    output = AgentOutput()
    with subprocess.Popen(["sh", "-c", command], stdout=output.writes):
        output.begun()
    output.wait(60)
    return output


def test_600_megabytes_take_no_memory_and_are_cut_with_a_note() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = _run_and_print("head -c 600000000 /dev/zero; echo; echo the end").text()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10  # KiB
    first, _, rest = text.partition("\n")
    away = 600_000_009 - KEPT_BYTES
    assert first == f"[{away:,} bytes before this are not kept]"
    assert len(rest) == KEPT_BYTES
    lines = last_lines(text)
    assert lines[-1] == f"{MARK}the end"
    assert max(map(len, lines)) < 4100


def test_little_is_kept_whole() -> None:
    assert _run_and_print("echo one; echo two").text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("plain, größer\t1\n2", "plain, größer\t1\n2"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x1b[2J\x9b2J\x7f", r"\x1b[2J\x9b2J\x7f"),
        ("50 %\rVerdict", r"50 %\rVerdict"),
        ("a\u2028b\u202eab\u2066c", r"a\u2028b\u202eab\u2066c"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text: str, told: str) -> None:
    assert harmless(text) == told


def test_each_line_is_marked_as_the_agents() -> None:
    text = "Verdict\n\n" + "x\n" * LINES
    assert last_lines(text) == [f"{MARK}x"] * LINES
    assert last_lines("Verdict\r\nIt passed all") == [f"{MARK}Verdict", f"{MARK}It passed all"]
