"""A campaign compares language models, which a server of the OpenAI protocol answers for."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

MODEL = "llm:openai-api/lab/small"


@contextmanager
def answering(*answers: str) -> Generator[tuple[str, list[Any]]]:
    """A server that gives these answers in turn; yields its address, and what it was asked."""
    asked: list[Any] = []

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = answers[len(asked) % len(answers)]
            asked.append(body)
            choice = {"role": "assistant", "content": text}
            said = {
                "id": "one",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": choice}],
                "usage": {"prompt_tokens": 500, "completion_tokens": 9, "total_tokens": 509},
            }
            data = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
def test_a_campaign_compares_models_by_tongue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANIMALCAT_HOME", str(tmp_path))
    monkeypatch.setenv("LAB_API_KEY", "secret-of-the-lab")
    agents = [f"{MODEL}+script", f"{MODEL}+script,words=no"]
    named = [part for agent in agents for part in ("--agent", agent)]
    command = [sys.executable, "-m", "animalcat", "campaign", "run", *named]
    options = ["--battery", "spoken", "--camera", "84", "--common", "2", "--budget", "6"]
    with answering("Go(4)", "Turn(30);Go(5)", "Hm.") as (address, asked):
        monkeypatch.setenv("LAB_BASE_URL", address)
        done = subprocess.run(
            [*command, *options, "--json"], capture_output=True, text=True, check=True
        )
    campaign = json.loads(done.stdout)
    rows = campaign["sessions"]
    assert [row["agent"] for row in rows] == agents
    assert sum(row["episodes"] for row in rows) == 6
    assert len({row["fingerprint"] for row in rows}) == 2  # the tongue is part of the identity
    pictures = [json.dumps(body).count("data:image/png") for body in asked]
    assert max(pictures) > 1
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(b"secret-of-the-lab" in file.read_bytes() for file in kept)
