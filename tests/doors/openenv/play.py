"""Plays both environments through OpenEnv's client, in OpenEnv's own environment of packages.

`test_openenv.py` runs it and judges the facts, which are printed as JSON.
"""

from __future__ import annotations

import json
import runpy
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from animalcat_openenv import AnimalcatAction, AnimalcatEnv
from animalcat_openenv.server import app as served
from fastapi import FastAPI
from fastapi.testclient import TestClient

PACKAGE = Path(__file__).resolve().parents[3] / "docker" / "openenv"
SCRIPT = ("Turn(30);Go(2)", "this is no script", "Go(4);Turn(-90)", "Wait(10)")
SPLITS = ("navigation", "object-permanence")
TASKS = 6


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """An application at a free port of this machine, in a thread."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def facts_told(result: Any) -> dict[str, Any]:
    """All that an agent is told."""
    return {**result.observation.model_dump(), "reward": result.reward, "done": result.done}


def episode(env: AnimalcatEnv, answers: Iterator[str], **options: Any) -> list[dict[str, Any]]:
    """Everything that is told in an episode."""
    seen = [facts_told(env.reset(**options))]
    while not seen[-1]["done"]:
        seen.append(facts_told(env.step(AnimalcatAction(answer=next(answers)))))
    return seen


def again(answers: tuple[str, ...] = SCRIPT) -> Iterator[str]:
    while True:
        yield from answers


def refusal(call: Callable[[], Any]) -> str:
    """What a call is refused with."""
    try:
        call()
    except Exception as error:  # noqa: BLE001  whatever the client raises
        return str(error)
    return ""


def training() -> dict[str, Any]:
    """Facts about the training environment."""
    facts: dict[str, Any] = {}
    oracle = runpy.run_path(str(PACKAGE / "validation" / "oracle.py"))
    with serving(served.training()) as url:
        facts["rewards"] = {
            split: {name: oracle["rewards"](url, name, split, TASKS) for name in oracle["PLAYERS"]}
            for split in SPLITS
        }
        with AnimalcatEnv(base_url=url).sync() as env, AnimalcatEnv(base_url=url).sync() as other:
            chosen = {"split": "object-permanence", "index": 5, "seed": 7}
            facts["first"] = episode(env, again(), **chosen)
            facts["state"] = env.state().model_dump()
            # Another connection, with an episode of the first one open beside it.
            env.reset(**chosen | {"index": 6})
            facts["repeated"] = episode(other, again(), **chosen)
            facts["other seed"] = episode(env, again(), split="navigation", seed=8)
            facts["drawn"] = [env.reset(seed=seed) and env.state().index for seed in (1, 2, 3, 1)]
            recorded = ("Go(35)", "Turn(90)", "nonsense")
            facts["recorded"] = episode(env, again(recorded), split="navigation", index=2, seed=1)
            facts["picture"] = facts_told(env.reset(index=1, seed=1, tongue="script,picture=32"))
            facts["refused"] = {
                name: refusal(lambda given=given: env.reset(**given))
                for name, given in {
                    "split": {"split": "nowhere"},
                    "index": {"index": 1000},
                    "tongue": {"tongue": "tools"},
                    "option": {"colour": "red"},
                    "seed": {"seed": 2**31},
                }.items()
            }
            env.reset(split="navigation", index=1, seed=1, tongue="script,picture=0,answers=1")
            facts["one answer"] = facts_told(env.step(AnimalcatAction(answer="Turn(6)")))
            facts["after the end"] = refusal(lambda: env.step(AnimalcatAction(answer="Go(1)")))
    client = TestClient(served.app)
    facts["splits"] = client.get("/animalcat/splits").json()
    facts["tasks"] = client.post("/animalcat/num_tasks", json={"split": SPLITS[0]}).json()
    facts["task"] = client.post("/animalcat/task", json={"split": SPLITS[0], "index": 3}).json()
    return facts


def idle() -> dict[str, Any]:
    """Whether the place of an agent that says nothing is given to another."""
    with serving(served.training(places=1)) as url, AnimalcatEnv(base_url=url).sync() as env:
        env.reset(index=1, seed=1)
        client = AnimalcatEnv(base_url=url)
        client.wait_seconds = 0.0
        with client.sync() as other:
            taken = refusal(lambda: other.reset(index=1, seed=1))
    with (
        serving(served.training(places=1, idle_seconds=0.5)) as url,
        AnimalcatEnv(base_url=url).sync() as env,
    ):
        env.reset(index=1, seed=1)
        with AnimalcatEnv(base_url=url).sync() as other:
            free = refusal(lambda: other.reset(index=1, seed=1))  # it waits
    return {"taken": taken, "free": free}


def evaluation(address: str, session: str) -> dict[str, Any]:
    """Facts about a session that is played to its end."""
    app = served.evaluation(address, session)
    facts: dict[str, Any] = {"paths": sorted(getattr(route, "path", "") for route in app.routes)}
    with serving(app) as url, AnimalcatEnv(base_url=url).sync() as env:
        facts["refused"] = {
            "seed": refusal(lambda: env.reset(seed=1)),
            "split": refusal(lambda: env.reset(split="navigation")),
            "index": refusal(lambda: env.reset(index=1)),
        }
        facts["episodes"] = []
        while True:
            first = env.reset()
            if first.done:
                facts["end"] = {**facts_told(first), **env.state().model_dump()}
                break
            if not facts["episodes"]:
                facts["mid"] = refusal(env.reset)
                facts["state"] = env.state().model_dump()
            seen = [facts_told(first)]
            answers = again()
            while not seen[-1]["done"]:
                seen.append(facts_told(env.step(AnimalcatAction(answer=next(answers)))))
            facts["episodes"].append(seen)
    return facts


def main() -> None:
    """Print the facts that are asked for."""
    kind, *words = sys.argv[1:]
    asked = {"training": training, "idle": idle, "evaluation": evaluation}[kind]
    print(json.dumps(asked(*words)))


if __name__ == "__main__":
    main()
