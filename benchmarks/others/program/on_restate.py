"""Five steps of a Restate handler. Runs in an environment of its own, where its SDK and hypercorn are installed.

Served by hypercorn with the limits that Restate's documentation recommends. Here `URL` is the path of a service, which is
named by the port of its worker. Handlers wait at a gate until they may go, so what was sent before is already with
the worker: the clock does not see how Restate brings it there.
"""

import asyncio
import json
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

import hypercorn.asyncio
import restate
from hypercorn.config import Config
from turn import main, tell_times

_MANY = 2147483647
_SENDERS = 16
_INGRESS, _ADMIN = "127.0.0.1:8080", "127.0.0.1:9070"
_HEADERS = {"content-type": "application/json", "accept": "application/json"}
_REFUSED = 300


def work(_url: str, port: int) -> None:
    asyncio.run(_work(port))


async def _work(port: int) -> None:
    gate = asyncio.Event()
    ended = 0
    service = restate.Service(f"five_{port}")

    @service.handler()
    async def run(context: restate.Context, number: int) -> int:
        nonlocal ended
        await gate.wait()
        for k in range(5):
            await context.run_typed(f"step_{k}", lambda k=k: k * 2)
        ended += 1
        return number

    async def obey() -> None:
        """`go` opens the gate; a number asks for a word when so many have ended."""
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            if line.strip() == "go":
                gate.set()
            else:
                while ended < int(line):
                    await asyncio.sleep(0.005)
                print("ended", flush=True)

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.loglevel = "ERROR"
    config.h2_max_concurrent_streams = config.keep_alive_max_requests = config.keep_alive_timeout = _MANY
    obeying = asyncio.create_task(obey())
    asyncio.get_running_loop().call_later(0.3, lambda: print("ready", flush=True))
    await hypercorn.asyncio.serve(restate.app(services=[service]), config, shutdown_trigger=lambda: obeying)


def register(_url: str, port: int) -> None:
    _admin("/deployments", {"uri": f"http://127.0.0.1:{port}", "force": True})


def submit(path: str, number: int) -> None:
    def send(numbers: Iterable[int]) -> None:
        connection = HTTPConnection(_INGRESS)
        for each in numbers:
            _ask(connection, f"{path}/run/send", each)

    with ThreadPoolExecutor(_SENDERS) as senders:
        list(senders.map(send, [range(n, number, _SENDERS) for n in range(_SENDERS)]))


def latency(path: str, rounds: int) -> None:
    connection = HTTPConnection(_INGRESS)
    tell_times(rounds, lambda number: _ask(connection, f"{path}/run", number), lambda _: None)


def tally(_url: str, _number: int) -> None:
    """How many invocations there are that did well, that are still open, and how many steps are in their journals."""
    states = _query("select status, completion_result, count(*) as many from sys_invocation group by 1, 2")
    well = sum(row["many"] for row in states if row.get("completion_result") == "success")
    still = sum(row["many"] for row in states if row["status"] != "completed")
    steps = _query("select count(*) as many from sys_journal where entry_type = 'Command: Run'")
    print(json.dumps([well, still, steps[0]["many"]]))


def _query(text: str) -> list[dict[str, Any]]:
    return json.loads(_admin("/query", {"query": text}))["rows"]


def _admin(path: str, body: Any) -> bytes:
    return _ask(HTTPConnection(_ADMIN), path, body)


def _ask(connection: HTTPConnection, path: str, body: Any) -> bytes:
    connection.request("POST", path, body=json.dumps(body), headers=_HEADERS)
    answer = connection.getresponse()
    said = answer.read()
    if answer.status >= _REFUSED:
        sys.exit(f"{path}: {answer.status} {said.decode()}")
    return said


if __name__ == "__main__":
    main(work=work, register=register, submit=submit, latency=latency, tally=tally)
