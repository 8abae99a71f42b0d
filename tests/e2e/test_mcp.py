"""`kb mcp` as agents start it: real processes, and the SDK's own client over both transports."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from kb.serve.last_calls import LAST_SECONDS
from tests.conftest import FOUNDING, PATIENCE_S, Run, environment
from tests.e2e.conftest import (
    ANSWER,
    QUESTION,
    Small,
    killed_in_the_end,
    processes,
    wait_until,
)
from tests.e2e.test_ending import signals_as_of_a_terminal

SAID = (
    "Megatron-LM Mixtral text generation server with pipeline parallelism: ranks 1-3 exit right"
    " after start with the destroy_process_group warning, the first request fails",
    "gpt-fast speculative decoding with tensor parallelism and ENABLE_INTRA_NODE_COMM freezes at"
    " 100 % GPU after a few samples",
    "Transformer Engine --tp-comm-overlap with mpirun on several containers hangs at userbuffers"
    " start-up, MPI picks the wrong interface",
    "Llama 3 8B fine-tuning with FSDP and LoRA: NCCL watchdog timeout of the first ALLGATHER after"
    " 600000 ms",
    "OpenRLHF batch inference ZeRO-3 model.generate() hangs, _ALLGATHER_BASE times out after"
    " 12 hours",
)
"""What somebody says of each of the founding incidents, in their order."""
MODES = ("legacy", "auto")
"""The protocol with a handshake, and the one of 2026."""
KB_TOKEN = "0123456789abcdef" * 2
LARGE = 1 << 41
"""Bytes of a file without contents."""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@asynccontextmanager
async def over_stdio(
    cache: Path, log: Path, *arguments: str | Path, **options: Any
) -> AsyncIterator[Client]:
    """A client of a server of its own, whose stderr is a file."""
    words = ["-P", "-m", "kb", "mcp", *map(str, arguments)]
    server = StdioServerParameters(
        command=sys.executable, args=words, env=environment(cache), cwd=Path.cwd()
    )
    with log.open("w") as errors:
        async with Client(stdio_client(server, errlog=errors), **options) as agent:
            yield agent


@contextmanager
def over_http(cache: Path, *arguments: str | Path, **extra: str) -> Iterator[tuple[str, int]]:
    """The address of a server of its own, and its process; it ends well by a signal."""
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "kb", "mcp", "--http", "0", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(cache, **extra),
        text=True,
    )
    assert server.stderr
    try:
        said = server.stderr.readline()
        assert said.startswith("MCP at http://127.0.0.1:"), said
        yield said.split()[2].rstrip(";"), server.pid
    finally:
        server.terminate()
        output, errors = server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 128 + signal.SIGTERM
    assert output == ""
    assert "Traceback" not in errors


async def solved(agent: Client) -> list[str]:
    """The first incident for each of the founding five."""
    found = []
    for text in SAID:
        result = await agent.call_tool("diagnose", {"text": text})
        found.append(json.loads(result.content[0].text)["matches"][0]["id"])
    return found


@pytest.mark.parametrize("mode", ["legacy", pytest.param("auto", marks=pytest.mark.slow)])
async def test_over_stdio_the_founding_five_are_found(
    built_cache: Path, tmp_path: Path, mode: str
) -> None:
    log = tmp_path / "stderr"
    async with over_stdio(built_cache, log, mode=mode) as agent:
        tools = await agent.list_tools()
        assert [tool.name for tool in tools.tools][:2] == ["diagnose", "read_output"]
        assert await solved(agent) == list(FOUNDING)
    assert log.read_text() == ""


@pytest.mark.slow
async def test_over_http_the_founding_five_are_found(built_cache: Path) -> None:
    with over_http(built_cache) as (url, _process):
        async with Client(url) as agent:
            tools = await agent.list_tools()
            assert [tool.name for tool in tools.tools][:2] == ["diagnose", "read_output"]
            assert await solved(agent) == list(FOUNDING)


@pytest.mark.slow
async def test_many_clients_of_one_server_are_answered_at_once(built_cache: Path) -> None:
    async def ask(url: str, number: int) -> str:
        async with Client(url, mode=MODES[number % 2]) as agent:
            result = await agent.call_tool("diagnose", {"text": SAID[number % 5]})
            return str(json.loads(result.content[0].text)["matches"][0]["id"])

    with over_http(built_cache) as (url, _process):
        found = await asyncio.gather(*(ask(url, number) for number in range(20)))
    assert found == list(FOUNDING) * 4


@pytest.mark.slow
async def test_a_call_that_is_cancelled_lets_others_be_answered(
    built_cache: Path, tmp_path: Path
) -> None:
    """A log that takes an hour to read is stopped."""
    large = tmp_path / "large.log"
    with large.open("wb") as file:
        file.write(b"RuntimeError: step failed\n" * 1000)
        file.truncate(LARGE)
    options = ("--root", tmp_path)
    async with over_stdio(built_cache, tmp_path / "stderr", *options, mode="legacy") as agent:
        await agent.call_tool("search", {"query": "nccl"})
        call = asyncio.ensure_future(agent.call_tool("diagnose", {"paths": ["large.log"]}))
        await asyncio.sleep(0)
        with pytest.raises((MCPError, TimeoutError)):
            async with asyncio.timeout(0.5):
                await call
        async with asyncio.timeout(PATIENCE_S):
            assert (await solved(agent))[0] == FOUNDING[0]


@pytest.mark.slow
async def test_a_file_is_read_below_the_roots_that_a_client_announces(
    built_cache: Path, tmp_path: Path
) -> None:
    from mcp_types import ListRootsResult, Root

    sample = Path("benchmarks/samples/nccl-shm.log").absolute()

    async def list_roots(_context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=sample.parent.as_uri())])

    async with over_stdio(
        built_cache, tmp_path / "stderr", mode="legacy", list_roots_callback=list_roots
    ) as agent:
        result = await agent.call_tool("diagnose", {"paths": [str(sample)]})
    assert json.loads(result.content[0].text)["verdict"] == "match"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the client, on the root
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("other", ["vscode-remote://ssh/x", "untitled:1", ""])
async def test_of_the_roots_of_a_client_those_on_this_machine_are_used(
    built_cache: Path, tmp_path: Path, mode: str, other: str
) -> None:
    from mcp_types import ListRootsResult, Root

    sample = Path("benchmarks/samples/nccl-shm.log").absolute()
    elsewhere: Any = Root.model_construct(uri=other)

    async def list_roots(_context: object) -> ListRootsResult:
        here = Root(uri=sample.parent.as_uri())
        return ListRootsResult.model_construct(roots=[elsewhere, here])

    async with over_stdio(
        built_cache, tmp_path / "stderr", mode=mode, list_roots_callback=list_roots
    ) as agent:
        result = await agent.call_tool("diagnose", {"paths": [str(sample)]})
    assert json.loads(result.content[0].text)["verdict"] == "match"


def lines(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_stdout_has_the_protocol_alone_and_the_server_ends_with_stdin(shipped_kb: Run) -> None:
    called = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "diagnose", "arguments": {"text": SAID[0]}},
    }
    junk = b"not json\n\xff\xfe\n" + b"[" * (5 << 20) + b"\n"
    run = shipped_kb("mcp", stdin=junk + lines(INITIALIZE, LIST, called))
    assert run.returncode == 0
    assert b"Traceback" not in run.stderr
    replies = [json.loads(line) for line in run.stdout.splitlines()]
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)
    (answer,) = [reply for reply in replies if reply.get("id") == called["id"]]
    assert FOUNDING[0] in json.dumps(answer), "asked before the end, so answered"


@pytest.mark.parametrize("identifier", [0, 1, "", "a-1"])
def test_with_all_answered_it_ends_at_once_with_stdin(small: Small, identifier: int | str) -> None:
    start = monotonic()
    run = small.kb("mcp", stdin=lines({**INITIALIZE, "id": identifier}))
    assert [json.loads(line)["id"] for line in run.stdout.splitlines()] == [identifier]
    assert monotonic() - start < LAST_SECONDS


@pytest.mark.slow
def test_nobody_is_left_behind(small: Small, tmp_path: Path) -> None:
    """Whether stdin ends in the middle of a diagnosis, or a signal comes."""
    large = tmp_path / "large.log"
    with large.open("wb") as file:
        file.truncate(LARGE)
    called = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "diagnose", "arguments": {"paths": ["large.log"]}},
    }
    for end in (None, signal.SIGTERM, signal.SIGINT):
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "kb", "mcp", "--root", str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=small.environment(),
            cwd=small.home,
            start_new_session=True,
            preexec_fn=signals_as_of_a_terminal,
        )
        assert server.stdin
        assert server.stdout
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        server.stdin.write(lines(INITIALIZE, initialized, called, LIST))
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        assert json.loads(server.stdout.readline())["id"] == 2
        if end is None:
            server.stdin.close()
        else:
            server.send_signal(end)
        code = server.wait(PATIENCE_S)
        assert code == (0 if end is None else -end)
        server.stdin.close()
        server.stdout.close()
        session = str(server.pid).encode()
        wait_until(
            lambda session=session: (
                not any(
                    stat.rsplit(b")", 1)[-1].split()[3] == session for _, stat in processes("stat")
                )
            ),
            "no process of the session is left",
        )


@pytest.mark.parametrize("identifier_stands", ["first", "last"])
def test_a_call_that_is_too_large_is_refused(small: Small, identifier_stands: str) -> None:
    text = {"name": "diagnose", "arguments": {"text": "x" * (5 << 20), "id": "none"}}
    call: dict[str, Any] = {"method": "tools/call", "params": text, "jsonrpc": "2.0"}
    call = {"id": 7, **call} if identifier_stands == "first" else {**call, "id": 7}
    refused = answered_between(small, lines(call))["result"]
    assert refused["isError"]
    assert "name a large log in `paths`" in refused["content"][0]["text"]


@pytest.mark.parametrize("sign", [r"\ud83d", "\t"], ids=["half a character", "a raw tab"])
def test_a_call_with_an_odd_sign_is_answered(small: Small, sign: str) -> None:
    params = f'{{"name": "search", "arguments": {{"query": "{sign} nccl"}}}}'
    call = f'{{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {params}}}\n'
    (answer,) = answers_to(small, call.encode())
    assert (answer["id"], "result" in answer) == (7, True)


_CALL = '"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": '
_PARAMS = '{"name": "search", "arguments": {"query": "nccl", "limit": 1}}'
BROKEN = {
    "a list for an object": (f"{{{_CALL}[1]}}", [7]),
    "deep": (f"{{{_CALL}{'[' * 100_000}{']' * 100_000}}}", [7]),
    "many digits": (f"{{{_CALL}{_PARAMS.replace('1', '1' * 5_000)}}}", [7]),
    "a comma too many": (f"{{{_CALL}{_PARAMS},}}", [7]),
    "cut off": (f"{{{_CALL}{_PARAMS[:30]}", [7]),
    "no method": ('{"jsonrpc": "2.0", "id": 7}', [7]),
    "no version": ('{"id": "a-7", "method": "tools/list"}', ["a-7"]),
    "a number with a point as id": ('{"jsonrpc": "2.0", "id": 7.0, "method": "tools/list"}', [7]),
    "a list as id": ('{"jsonrpc": "2.0", "id": [7], "method": "tools/list"}', [None]),
    "several at once": (f"[{json.dumps(LIST)}, {{{_CALL}{_PARAMS}}}, 1]", [2, 7, None]),
    "none at once": ("[]", [None]),
    "no JSON": ("hello", [None]),
    "a blank line": ("", []),
    "no call, but what is told": ('{"jsonrpc": "2.0", "method": "x", "params": [1]}', []),
    "a broken answer": ('{"jsonrpc": "2.0", "id": 7, "result": [1]}', []),
}
"""What no server can read, and under which ids it is refused."""


@pytest.mark.parametrize(("call", "identifiers"), BROKEN.values(), ids=BROKEN)
def test_a_broken_call_is_refused_under_its_id(
    small: Small, call: str, identifiers: list[Any]
) -> None:
    """What the SDK does not read, it leaves without an answer, and the client waits for ever."""
    answers = answers_to(small, f"{call}\n".encode())
    assert [answer["id"] for answer in answers] == identifiers
    for answer in answers:
        assert answer["error"]["code"] in (-32700, -32600)
        assert answer["error"]["message"].startswith("the call cannot be read; ")


@pytest.mark.parametrize(
    ("streams", "said"),
    [
        ("<&-", "cannot read standard input: it is closed"),
        (">&-", "cannot write to stdout: it is closed"),
        (">/dev/full", "cannot read or write: No space left on device"),
    ],
)
def test_a_stream_that_cannot_be_used_is_one_sentence(
    small: Small, streams: str, said: str
) -> None:
    command = f"exec {sys.executable} -P -m kb mcp {streams}"
    run = small.kb(program=("bash", "-c", command), stdin=lines(INITIALIZE))
    assert run.returncode == 2
    assert run.stderr.decode().startswith(f"Error: {said}")
    assert run.stderr.count(b"\n") == 1


def test_an_agent_that_goes_away_ends_it_quietly(small: Small) -> None:
    command = f"{sys.executable} -P -m kb mcp | true; exit ${{PIPESTATUS[0]}}"
    run = small.kb(program=("bash", "-c", command), stdin=lines(INITIALIZE))
    assert run.returncode == 141
    assert run.stderr == b""


def answers_to(small: Small, call: bytes) -> list[Any]:
    """The answers to a line amid others that are answered as well."""
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    ping = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}
    run = small.kb("mcp", stdin=lines(INITIALIZE, initialized) + call + lines(ping))
    assert (run.returncode, run.stderr) == (0, b"")
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    others = [answer for answer in answers if answer["id"] not in (1, "ping")]
    assert len(answers) == len(others) + 2
    return others


def answered_between(small: Small, call: bytes) -> Any:
    """The answer to the call with the id 7, while others are answered too."""
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "kb", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=small.environment(),
        cwd=small.home,
    )
    with server, killed_in_the_end(server):
        assert server.stdin
        assert server.stdout
        server.stdin.write(lines(INITIALIZE, initialized) + call + lines(LIST))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(3)]
    return next(answer for answer in answers if answer["id"] == 7)


@asynccontextmanager
async def _posting(url: str, **headers: str) -> AsyncIterator[httpx2.Response]:
    accept = {"Accept": "application/json, text/event-stream", **headers}
    async with httpx2.AsyncClient() as browser:
        yield await browser.post(url, json=INITIALIZE, headers=accept)


@pytest.mark.slow
async def test_every_worker_of_a_team_knows_a_case(small: Small) -> None:
    """A session would be known to one, and so would a case that is kept in memory."""
    words = ["serve", "--port", "0", "--workers", "2"]
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "kb", *words],
        stderr=subprocess.PIPE,
        env=small.environment(),
        cwd=small.home,
        text=True,
    )
    assert server.stderr
    try:
        url = f"{server.stderr.readline().split()[2].rstrip(';/')}/mcp"
        async with Client(url) as agent:
            result = await agent.call_tool("diagnose", {"text": QUESTION.decode()})
            case = json.loads(result.content[0].text)["case"]
        for number in range(8):
            async with Client(url, mode=MODES[number % 2]) as agent:
                arguments = {"case": case, "said": f"node {number} is idle"}
                result = await agent.call_tool("next_check", arguments)
                assert not result.is_error, result.content[0].text
                found = json.loads(result.content[0].text)
                assert found["matches"][0]["id"] == ANSWER
    finally:
        server.terminate()
        server.communicate(timeout=PATIENCE_S)


@pytest.mark.slow
async def test_a_page_in_a_browser_does_not_reach_the_server(built_cache: Path) -> None:
    with over_http(built_cache) as (url, _process):
        async with _posting(url) as response:
            assert response.status_code == 200
        async with _posting(url, Host="evil.example") as response:
            assert response.status_code in (403, 421)
        async with _posting(url, Origin="http://evil.example") as response:
            assert response.status_code == 403


@pytest.mark.slow
async def test_with_a_token_only_who_knows_it_is_answered(built_cache: Path) -> None:
    with over_http(built_cache, KB_TOKEN=KB_TOKEN) as (url, process):
        for wrong in ({}, {"Authorization": f"Bearer {KB_TOKEN}x"}, {"Authorization": KB_TOKEN}):
            async with _posting(url, **wrong) as response:
                assert response.status_code == 401
        headers = {"Authorization": f"Bearer {KB_TOKEN}"}
        async with httpx2.AsyncClient(headers=headers) as known:
            transport = streamable_http_client(url, http_client=known)
            async with Client(transport) as agent:
                assert (await agent.list_tools()).tools
        words = Path(f"/proc/{process}/cmdline").read_bytes()
        assert KB_TOKEN.encode() not in words


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--http", "0.0.0.0:0"], b"a token is needed"),
        (["--root", "no-such-directory"], b"does not exist"),
    ],
)
def test_wrong_use_ends_in_one_sentence(kb: Run, arguments: Sequence[str], says: bytes) -> None:
    run = kb("mcp", *arguments)
    assert run.returncode == 2
    assert says in run.stderr
    assert run.stderr.count(b"\n") <= 4
    assert run.stdout == b""


def test_a_missing_extra_is_told_with_the_line_that_installs_it(kb: Run, tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ImportError('not here')")
    path = f"{tmp_path}{os.pathsep}{Path.cwd()}"
    run = kb("mcp", env={"PYTHONPATH": path})
    assert run.returncode == 2
    assert b"pip install 'incident-kb[serve]'" in run.stderr
    assert run.stderr.count(b"\n") == 1


def test_other_commands_load_nothing_of_it(small: Small) -> None:
    program = (
        "import sys, runpy, os\n"
        "os._exit = sys.exit\n"
        "sys.argv[1:] = ['ask', 'hello']\n"
        "try: runpy.run_module('kb', run_name='__main__', alter_sys=True)\n"
        "finally: print({'mcp', 'starlette', 'uvicorn', 'pydantic', 'kb.serve', 'httpx2'}"
        " & sys.modules.keys())"
    )
    run = small.kb(program=(sys.executable, "-c", program))
    assert run.stdout.splitlines()[-1] == b"set()"
