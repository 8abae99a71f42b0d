"""`kb serve --screen` as browsers meet it: who gets a screen, what it does, and when it ends."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.conftest import copy_cache, environment
from tests.e2e.conftest import ANSWER, PATIENCE_S, QUESTION, Small, processes, wait_until

pytest.importorskip("textual_serve")
from aiohttp import ClientSession, ClientWebSocketResponse, WSServerHandshakeError, hdrs

pytestmark = pytest.mark.xdist_group("screen")

TOKEN = "0123456789abcdef-of-the-tests"
PATHS = ("/", "/ws", "/download/x", "/static/js/textual.js", "/screen.js", "/nothing")
HTML = {"Accept": "text/html"}


class Server(msgspec.Struct, frozen=True):
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int
    said: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def screens(self) -> list[int]:
        """The processes of its screens."""
        mine = f"KB_STATE={self.said.parent}/".encode()
        commands = {pid for pid, command in processes("cmdline") if b"--in-browser" in command}
        return [pid for pid, given in processes("environ") if pid in commands and mine in given]


@contextmanager
def serving(small: Small, home: Path, *arguments: str, **variables: str) -> Iterator[Server]:
    """A server that ends with the block."""
    said = home / "said"
    with said.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kb", "serve", "--screen", "--port", "0", *arguments],
            stdout=file,
            stderr=file,
            cwd=small.home,
            env={**small.environment(KB_STATE=f"{home}/state", **variables)},
        )
    try:
        wait_until(lambda: b"Serving at" in said.read_bytes() or process.poll(), "it serves")
        found = re.search(rb":(\d+)/;", said.read_bytes())
        assert found, said.read_bytes()
        yield Server(process, int(found[1]), said)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def small(small_installation: Small, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The small installation, with a cache of these tests alone."""
    own = tmp_path_factory.mktemp("screen") / "cache"
    return Small(small_installation.home, copy_cache(small_installation.cache, own))


@pytest.fixture(scope="module")
def server(small: Small, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(small, tmp_path_factory.mktemp("open"), "--rate", "1000") as one:
        yield one


@pytest.fixture(scope="module")
def guarded(small: Small, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a token."""
    home = tmp_path_factory.mktemp("guarded")
    with serving(small, home, "--rate", "1000", KB_TOKEN=TOKEN) as one:
        yield one


async def status_of(server: Server, path: str, headers: Mapping[str, str] = {}) -> int:
    async with ClientSession() as session:
        get = session.get(server.url + path, headers=headers, allow_redirects=False)
        async with get as answer:
            return answer.status


async def drawn(screen: ClientWebSocketResponse, text: str) -> str:
    """What the screen draws, until a text is there."""
    seen = ""
    while text not in seen:
        try:
            message = await screen.receive(PATIENCE_S)
        except TimeoutError:
            pytest.fail(f"waited in vain for {text!r} after {seen!r}")
        else:
            assert message.data is not None, (message.type, seen)
            seen += message.data.decode() if isinstance(message.data, bytes) else message.data
    return seen


async def typed(screen: ClientWebSocketResponse, text: str) -> None:
    await screen.send_json(["stdin", text])


async def ask(screen: ClientWebSocketResponse) -> None:
    """Paste a log and wait for the answer."""
    await drawn(screen, "records, offline")
    await typed(screen, f"\x1b[200~{QUESTION.decode()}\x1b[201~")
    await drawn(screen, ANSWER)


async def test_a_log_is_pasted_and_its_note_downloaded(server: Server) -> None:
    async with ClientSession() as session:
        async with session.ws_connect(f"{server.url}/ws?width=130&height=40") as screen:
            await ask(screen)
            await typed(screen, "x")
            await drawn(screen, "Write the hand-off note")
            await typed(screen, "\r")
            found = re.search(r'"url": "(download/[0-9a-f]+)"', await drawn(screen, "open_url"))
            assert found
            async with session.get(f"{server.url}/{found[1]}") as note:
                assert note.headers["Content-Disposition"].startswith("attachment; filename=inci")
                assert ANSWER in await note.text()
        wait_until(lambda: not server.screens, "the screen ends with its browser")


async def test_each_browser_has_a_screen_of_its_own(server: Server) -> None:
    async with (
        ClientSession() as session,
        session.ws_connect(f"{server.url}/ws") as one,
        session.ws_connect(f"{server.url}/ws") as other,
    ):
        await ask(one)
        assert ANSWER not in await drawn(other, "records, offline")
        assert len(server.screens) == 2
        await typed(other, "\x03")
        async for _message in other:  # to its end
            pass
        wait_until(lambda: len(server.screens) == 1, "who leaves a screen ends that one")
    wait_until(lambda: not server.screens, "the screen ends with its browser")
    assert b"Traceback" not in server.said.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        "no JSON",
        "[]",
        "7",
        '["stdin", 7]',
        '["resize", {"width": "a", "height": []}]',
        "[" * 100_000,
        '["nothing"]',
    ],
)
async def test_what_no_page_sends_ends_that_screen_alone(server: Server, message: str) -> None:
    async with ClientSession() as session, session.ws_connect(f"{server.url}/ws") as screen:
        await screen.send_str(message)
        async for _message in screen:
            pass
    assert await status_of(server, "/") == 200
    wait_until(lambda: not server.screens, "the screen ends")
    assert b"Traceback" not in server.said.read_bytes()


@pytest.mark.slow
async def test_odd_keys_and_sizes_are_endured(server: Server) -> None:
    async with (
        ClientSession() as session,
        session.ws_connect(f"{server.url}/ws?width=99999&height=-1") as screen,
    ):
        await drawn(screen, "\x1b[?1049h")
        await screen.send_json(["resize", {"width": 10**12, "height": 10**12}])
        await screen.send_json(["resize", {"width": 0, "height": -5}])
        await typed(screen, "\x1b[48;99999;99999;1;1t")
        await screen.send_str('["stdin", "\\ud800"]')
        await typed(screen, "")
        await screen.send_json(["resize", {"width": 100, "height": 30}])
        await ask(screen)


async def test_the_page_loads_nothing_from_elsewhere(server: Server) -> None:
    async with ClientSession() as session:
        texts = []
        for path in ("/", "/screen.css", "/screen.js", "/static/css/xterm.css"):
            async with session.get(server.url + path) as answer:
                assert answer.status == 200, path
                assert "connect-src 'self'" in answer.headers["Content-Security-Policy"]
                texts.append(re.sub(r"/\*.*?\*/", "", await answer.text(), flags=re.DOTALL))
        asked = re.findall(r"""(?:href|src) ?= ?["']([^"']+)|url\(["']([^"']+)""", "".join(texts))
        files = {one or other for one, other in asked} - {"./", "data:,"}
        assert len(files) == 6, files
        for file in files:
            async with session.get(f"{server.url}/{file}") as answer:
                assert answer.status == 200, file


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_there_without_the_token(guarded: Server, path: str) -> None:
    wrong = base64.b64encode(f"me:{TOKEN}x".encode()).decode()
    for headers in (
        {},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Basic {wrong}"},
        {"Cookie": f"kb-screen-{guarded.port}={TOKEN}"},
        {"Cookie": f"kb-screen-{guarded.port}="},
    ):
        assert await status_of(guarded, path, headers) == 401
        assert await status_of(guarded, f"{path}?token={TOKEN[:-1]}", headers) == 401
    assert await status_of(guarded, path, {"Authorization": f"Bearer {TOKEN}"}) != 401


async def test_a_browser_is_asked_for_the_token_and_then_known_by_a_cookie(
    guarded: Server,
) -> None:
    async with ClientSession() as session:
        async with session.get(guarded.url, headers=HTML) as answer:
            assert answer.status == 401
            assert answer.headers["WWW-Authenticate"].startswith("Basic ")
        given = base64.b64encode(f"me:{TOKEN}".encode()).decode()
        async with session.get(guarded.url, headers={"Authorization": f"Basic {given}"}) as answer:
            cookie = answer.headers[hdrs.SET_COOKIE]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    known = {"Cookie": cookie.partition(";")[0]}
    assert await status_of(guarded, "/screen.js", known) == 200
    async with (
        ClientSession(headers=known) as session,
        session.ws_connect(f"{guarded.url}/ws") as screen,
    ):
        await drawn(screen, "records, offline")
        (process,) = guarded.screens
        assert TOKEN.encode() not in Path(f"/proc/{process}/environ").read_bytes()
    assert TOKEN.encode() not in guarded.said.read_bytes()


async def test_a_link_with_the_token_becomes_a_cookie(guarded: Server) -> None:
    async with ClientSession() as session:
        link = session.get(f"{guarded.url}/?token={TOKEN}", allow_redirects=False)
        async with link as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "./")
            cookie = answer.headers[hdrs.SET_COOKIE].partition(";")[0]
    assert await status_of(guarded, "/", {"Cookie": cookie}) == 200
    assert await status_of(guarded, "/healthz") == 200
    for path in PATHS[1:]:  # a token in their addresses is none
        assert await status_of(guarded, f"{path}?token={TOKEN}") == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
    ],
)
async def test_another_site_gets_no_screen(server: Server, headers: dict[str, str]) -> None:
    async with ClientSession() as session:
        with pytest.raises(WSServerHandshakeError) as refused:
            await session.ws_connect(f"{server.url}/ws", headers=headers)
    assert refused.value.status == 403


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
    ids=lambda value: getattr(value, "name", None),
)
async def test_all_screens_end_with_the_server(
    small: Small, tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    with serving(small, tmp_path) as server:
        async with ClientSession() as session, session.ws_connect(f"{server.url}/ws") as screen:
            await ask(screen)
            (process,) = server.screens
            server.process.send_signal(ending)
            assert await asyncio.to_thread(server.process.wait, PATIENCE_S) == code
            wait_until(lambda: process not in server.screens, "the screen ends")
        assert b"Traceback" not in server.said.read_bytes()


@pytest.mark.slow
async def test_a_screen_that_hears_nothing_is_ended(server: Server) -> None:
    async with ClientSession() as session, session.ws_connect(f"{server.url}/ws") as screen:
        await drawn(screen, "records, offline")
        (process,) = server.screens
        os.kill(process, signal.SIGSTOP)
    wait_until(lambda: not server.screens, "the screen ends")


@pytest.mark.slow
async def test_a_screen_that_cannot_open_says_why_to_the_server(
    small: Small, tmp_path: Path
) -> None:
    configuration = tmp_path / "config.toml"
    with serving(small, tmp_path, KB_CONFIG=str(configuration)) as server:
        configuration.write_text("nothing = 1\n")
        async with ClientSession() as session, session.ws_connect(f"{server.url}/ws") as screen:
            async for _message in screen:
                pass
        assert b"a screen did not open: invalid configuration" in server.said.read_bytes()
        configuration.write_text("")
        async with ClientSession() as session, session.ws_connect(f"{server.url}/ws") as screen:
            await drawn(screen, "records, offline")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], b"so a token is needed; set KB_TOKEN"),
        (["--workers", "2"], b"--screen has a process for each browser; leave out --workers"),
    ],
)
def test_wrong_use_is_one_sentence(
    kb: Callable[..., subprocess.CompletedProcess[bytes]], arguments: list[str], said: bytes
) -> None:
    run = kb("serve", "--screen", *arguments)
    assert run.returncode == 2
    assert said in run.stderr.splitlines()[-1]


WITHOUT_THE_EXTRA = """
import sys
from kb.__main__ import main
sys.modules["textual_serve"] = sys.modules["textual_serve.server"] = None
main()
"""


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_EXTRA, "serve", "--screen"],
        capture_output=True,
        env=environment(tmp_path),
    )
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)
    assert b"pip install 'incident-kb[screen]'" in run.stderr
