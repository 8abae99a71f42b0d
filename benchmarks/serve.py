"""`python -m benchmarks.serve [WORKERS] [CLIENTS] [REQUESTS]`: `kb serve` under load, beside the
same texts in process. Every client asks again as soon as it has its answer; each text is another.

Meanwhile records are changed, so that the index is refreshed under load, and at the end the server
is ended by TERM. Whatever is not answered with 200 is counted. The time of the processor tells on a
busy machine what the time of the clock does not.
"""

import asyncio
import itertools
import json
import os
import platform
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.diagnosis import diagnose
from kb.log import Log
from kb.markdown import render
from kb.service.wire import to_json
from kb.settings import Settings

LINES = 100
CALM = "2026-11-21 03:00:{second:02d} INFO rank {rank} step {step} loss 2.31 lr 1e-4 tokens/s 41000"
IN_PROCESS = 100
CHANGES = 3
"""Of a record, while the server is under load."""
START_SECONDS = 120


def main() -> None:
    """Print the table."""
    workers, clients, requests = (
        int(given or default)
        for given, default in itertools.zip_longest(sys.argv[1:4], (2, 100, 3_000))
    )
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores,"
        f" Python {platform.python_version()}, uvicorn {version('uvicorn')};"
        f" {clients} clients, logs of {LINES} lines"
    )
    with tempfile.TemporaryDirectory() as name:
        os.environ.update(KB_CACHE=f"{name}/cache", KB_STATE=f"{name}/state")
        team = Path(name, "team")
        team.mkdir()
        _row("in process, one thread", *_in_process(IN_PROCESS))
        port = _free_port()
        command = [sys.executable, "-m", "kb", "serve", "--port", str(port), "--rate", "100000"]
        command += ["--workers", str(workers), "--incidents", str(team)]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            _wait_until_ready(port, workers)
            before = _processor_seconds(server.pid)
            took, statuses = asyncio.run(_load(port, clients, requests, team))
            used = _processor_seconds(server.pid) - before
            _row(f"kb serve, {workers} processes", took, used)
            print(f"answers: {dict(statuses)}")
            lost = asyncio.run(_ended_under_load(port, clients, server))
            print(f"TERM under load: {dict(lost)}, exit code {server.wait(60)}")
        finally:
            server.kill()


def _row(what: str, seconds: Sequence[float], processor_seconds: float) -> None:
    """`seconds` are of each request, the last one of all."""
    *each, whole = seconds
    ordered = sorted(each)
    p50, p99 = (1000 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
    rate = len(each) / whole
    each_ms = 1000 * processor_seconds / len(each)
    print(
        f"{what:<28} {rate:7.1f}/s   p50 {p50:6.0f} ms   p99 {p99:6.0f} ms"
        f"   {each_ms:6.0f} ms of a processor each",
        flush=True,
    )


def _texts() -> Iterator[str]:
    """Logs that differ: calm lines, and at their end what a record shows as its evidence."""
    records, _problems = IncidentDirectories().load()
    chance = random.Random(7)
    while True:
        shown = chance.choice(records).body.evidence_text.splitlines()[:20]
        calm = [
            CALM.format(second=number % 60, rank=number % 8, step=chance.randrange(10**6))
            for number in range(LINES - len(shown))
        ]
        yield "\n".join([*calm, *shown])


def _processor_seconds(process: int) -> float:
    """Of a process and its children, so far."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    own = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    return own + sum(_processor_seconds(int(child)) for child in children)


def _in_process(count: int) -> tuple[list[float], float]:
    seconds = []
    with KnowledgeBase.open(Settings()) as knowledge:
        texts = list(itertools.islice(_texts(), count + 20))
        for text in texts[:20]:
            to_json(diagnose(Log.from_text(text), knowledge))
        began, used = time.perf_counter(), time.process_time()
        for text in texts[20:]:
            before = time.perf_counter()
            to_json(diagnose(Log.from_text(text), knowledge))
            seconds.append(time.perf_counter() - before)
    return [*seconds, time.perf_counter() - began], time.process_time() - used


async def _load(
    port: int, clients: int, requests: int, team: Path
) -> tuple[list[float], Counter[str]]:
    texts = iter(list(itertools.islice(_texts(), requests)))
    seconds: list[float] = []
    statuses: Counter[str] = Counter()

    async def client() -> None:
        connection = _Connection(port)
        for text in texts:
            before = time.perf_counter()
            statuses[await connection.ask(text)] += 1
            seconds.append(time.perf_counter() - before)
        connection.close()

    changing = asyncio.create_task(_change_records(team, seconds, requests))
    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)), changing)
    return [*seconds, time.perf_counter() - began], statuses


async def _change_records(team: Path, answered: Sequence[float], requests: int) -> None:
    """Some times while requests are answered."""
    record = IncidentDirectories().load()[0][0]
    for number in range(1, CHANGES + 1):
        while len(answered) < requests * number / (CHANGES + 1):
            await asyncio.sleep(0.05)
        text = render(record).replace("## Symptom\n", f"## Symptom\n\nSeen {number} times.\n")
        (team / f"{record.id}.md").write_text(text)


async def _ended_under_load(
    port: int, clients: int, server: "subprocess.Popen[bytes]"
) -> Counter[str]:
    """What becomes of requests that were sent when the signal came."""
    texts = list(itertools.islice(_texts(), clients))
    connections = [_Connection(port) for _ in texts]
    asked = [
        asyncio.create_task(connection.ask(text))
        for connection, text in zip(connections, texts, strict=True)
    ]
    await asyncio.sleep(0.2)
    server.send_signal(signal.SIGTERM)
    return Counter(await asyncio.gather(*asked))


class _Connection:
    """One client that keeps its connection, with next to no cost of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, text: str) -> str:
        """The status, or what went wrong."""
        body = json.dumps({"text": text}).encode()
        head = (
            "POST /v1/diagnose HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        try:
            if self._open is None:
                self._open = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._open
            writer.write(head.encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
            await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError) as error:
            self._open = None
            return type(error).__name__
        if "connection: close" in answer:
            self.close()
        return answer.split()[1]

    def close(self) -> None:
        """End it."""
        if self._open:
            self._open[1].close()
        self._open = None


def _wait_until_ready(port: int, workers: int) -> None:
    """Until several connections in a row found a process that is ready, so most likely all are."""
    ready, until = 0, time.monotonic() + START_SECONDS
    while ready < 10 * workers and time.monotonic() < until:
        ready = ready + 1 if _is_ready(port) else 0
        time.sleep(0.1)


def _is_ready(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as line:
            line.sendall(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            return line.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
