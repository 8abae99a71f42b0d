"""`kb serve` as programs and browsers meet it: a real server on a free port."""

from __future__ import annotations

import base64
import gzip
import http.client
import http.server
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from kb.classify.result import ResultRow
from kb.markdown import read, render
from kb.serve.guard import BODY_SECONDS
from tests.conftest import copy_cache
from tests.e2e.conftest import ANSWER, PATIENCE_S, QUESTION, Small, wait_until
from tests.e2e.test_ending import of_session

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.xdist_group("serve")

TOKEN = "0123456789abcdef-of-the-tests"
TEXT = {"Content-Type": "text/plain"}
JSON = {"Content-Type": "application/json"}
END_AT_ONCE_S = 5
"""In which a server ends on a busy machine that has nothing to wait for."""
FLOOD = 1_200
"""More connections than one process keeps."""
SCRIPT = b"<script>alert(1)</script>"


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server(msgspec.Struct, frozen=True):
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int

    def ask(
        self,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = TEXT,
        method: str | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            method = method or ("GET" if body is None else "POST")
            connection.request(method, path, body, dict(headers if body is not None else {}))
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path, headers=named)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, names, answer.read())
        finally:
            connection.close()


@contextmanager
def serving(small: Small, *arguments: str, **variables: str) -> Iterator[Server]:
    """A server that is ready, and ends with the block."""
    with starting(small, *arguments, **variables) as (process, port):
        server = Server(process, port)
        wait_until(lambda: server.get("/readyz").status == 200, "the server is ready")
        yield server


@contextmanager
def starting(
    small: Small, *arguments: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server that has told its port, and ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "kb", "serve", "--port", "0", "--rate", "10000", *arguments],
        stderr=subprocess.PIPE,
        cwd=small.home,
        env=small.environment(**variables),
        start_new_session=True,
    )
    try:
        assert process.stderr
        said = b""
        while b"Serving at" not in said:
            said = process.stderr.readline()
            assert said, "the server did not start"
        found = re.search(rb":(\d+)/", said)
        assert found
        with process.stderr:
            yield process, int(found[1])
    finally:
        process.kill()
        for left in of_session(process.pid):
            os.kill(left, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def small(small_installation: Small, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The small installation, with a cache and a state of these tests alone."""
    own = tmp_path_factory.mktemp("serve") / "cache"
    return Small(small_installation.home, copy_cache(small_installation.cache, own))


@pytest.fixture(scope="module")
def server(small: Small) -> Iterator[Server]:
    with serving(small) as one:
        yield one


def form(**files: bytes) -> tuple[bytes, dict[str, str]]:
    """A body of multipart, with a file for each name; `__` stands for `/`, `_` for `.`."""
    parts = [
        b'--b\r\nContent-Disposition: form-data; name="logs"; filename="%s"\r\n\r\n%s\r\n'
        % (_file(name).encode(), content)
        for name, content in files.items()
    ]
    return b"".join(parts) + b"--b--\r\n", {"Content-Type": "multipart/form-data; boundary=b"}


def _file(name: str) -> str:
    return name.replace("__", "/").replace("_", ".")


def test_a_log_in_every_form_is_diagnosed(server: Server) -> None:
    schema = json.loads(Path("docs/ask.schema.json").read_text(encoding="utf-8"))
    asked = {
        "text": (QUESTION, TEXT),
        "compressed": (gzip.compress(QUESTION), {"Content-Type": "application/gzip"}),
        "json": (json.dumps({"text": QUESTION.decode()}).encode(), JSON),
        "file": form(job_log=QUESTION),
        "another encoding": (QUESTION.decode().encode("utf-16"), TEXT),
    }
    for name, (body, headers) in asked.items():
        answer = server.ask("/v1/diagnose?top=1", body, headers)
        assert answer.status == 200, (name, answer.body)
        assert [match["id"] for match in answer.json["matches"]] == [ANSWER], name
        jsonschema.validate(answer.json, schema)


def test_the_logs_of_ranks_are_one_job(server: Server) -> None:
    fatal = b"[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    calm = b"[rank0]: step 10 loss 2.1\n" * 20
    job = server.ask("/v1/diagnose", *form(job__rank0_log=calm, job__rank1_log=fatal)).json["job"]
    assert [line["rank"] for line in job["culprits"]] == [1]


def test_many_logs_are_classified_one_row_each(server: Server) -> None:
    answer = server.ask("/v1/classify", *form(a_log=QUESTION, b_log=b"step 1 loss 2\n"))
    rows = [json.loads(line) for line in answer.body.splitlines()]
    assert [(row["path"], row["incident"]) for row in rows] == [("a.log", ANSWER), ("b.log", None)]
    assert list(rows[0]) == list(ResultRow.__struct_fields__)


def test_a_case_goes_on_by_its_id(server: Server) -> None:
    def say(**message: str) -> Answer:
        return server.ask("/v1/chat", json.dumps(message).encode(), JSON)

    first = say(text=QUESTION.decode()).json
    assert first["matches"][0]["id"] == ANSWER
    then = say(text="how do I fix it?", case=first["case"])
    assert "--shm-size" in then.json["text"]
    assert say(text="hello", case="0" * 32).status == 404


def test_records_are_listed_read_and_found(server: Server) -> None:
    listed = server.get("/v1/records").json["records"]
    assert ANSWER in [record["id"] for record in listed]
    assert server.get(f"/v1/records/{ANSWER}").json["markdown"].startswith("---\nid: ")
    found = server.get("/v1/search?q=shared+memory+segment+of+nccl").json["records"]
    assert found[0]["id"] == ANSWER


def test_the_description_names_what_is_answered(server: Server) -> None:
    paths = server.get("/openapi.json").json["paths"]
    assert {"/v1/diagnose", "/v1/chat", "/v1/classify", "/v1/records", "/v1/search"} <= paths.keys()


def test_numbers_for_prometheus(server: Server) -> None:
    server.ask("/v1/diagnose", QUESTION)
    text = server.get("/metrics").body.decode()
    assert re.search(rf'kb_diagnoses_total{{incident="{ANSWER}",verdict="\w+"}} [1-9]', text)
    assert 'kb_request_seconds_count{route="/v1/diagnose",status="200"}' in text
    assert "kb_index_generation 1" in text


def test_pages_need_no_script_and_show_markup_as_text(server: Server) -> None:
    html = {"Accept": "text/html"}
    body, headers = form(a_log=QUESTION + SCRIPT + b"\n\x1b]0;title\x07\x1b[2J\n")
    pages = [
        server.ask("/ask", body, {**headers, **html}),
        server.get("/search?q=%3Cscript%3Ealert(1)%3C/script%3E", **html),
        *(server.get(path, **html) for path in ("/", "/records", f"/incidents/{ANSWER}")),
    ]
    for page in pages:
        assert page.status == 200
        assert b"<script" not in page.body
        assert b"\x1b" not in page.body
        assert "script-src" not in page.headers["content-security-policy"]
        assert page.headers["x-content-type-options"] == "nosniff"
    assert f'href="./incidents/{ANSWER}"'.encode() in pages[0].body
    assert b"&lt;script&gt;" in pages[0].body


def test_a_page_at_the_place_of_another_kind_leads_on(server: Server) -> None:
    moved = server.get(f"/checks/{ANSWER}")
    assert moved.status == 307
    assert moved.headers["location"].endswith(f"incidents/{ANSWER}")


def test_secrets_are_masked_in_every_answer(server: Server) -> None:
    secret = "hf_" + "a1B2c3D4e5" * 3 + "F6g7"
    log = QUESTION + f"RuntimeError: login with {secret} failed\n".encode()
    for path in ("/v1/diagnose", "/ask"):
        assert secret.encode() not in server.ask(path, log).body


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/v1/diagnose", b"{", JSON, 400),
        ("/v1/diagnose", b'{"text": 1}', JSON, 400),
        ("/v1/diagnose", b"\xff\xfe", JSON, 400),
        ("/v1/diagnose", b"[" * 100_000, JSON, 400),
        ("/v1/diagnose", b"x", {"Content-Type": "image/png"}, 415),
        ("/v1/diagnose", b"x", {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, 415),
        ("/v1/diagnose", b"no parts", {"Content-Type": "multipart/form-data"}, 400),
        ("/v1/diagnose", b"--b\r\nx", {"Content-Type": "multipart/form-data; boundary=b"}, 400),
        ("/v1/diagnose?top=0", b"x", TEXT, 400),
        ("/v1/diagnose", b"\x1f\x8bnot gzip", TEXT, 422),
        ("/v1/chat", b'{"text": "' + b"x" * 9_000_000 + b'"}', JSON, 413),
        ("/v1/chat", b'{"text": "hi", "case": "../../etc/passwd"}', JSON, 404),
        ("/v1/classify", b"", {"Content-Type": "multipart/form-data; boundary=b"}, 400),
        ("/v1/alerts", b'{"alerts": 7}', JSON, 400),
        ("/v1/search?q=" + "x" * 500, None, {}, 400),
        ("/v1/records?kind=none", None, {}, 400),
        ("/v1/records/%2e%2e%2fpasswd", None, {}, 404),
        ("/incidents/..%2f..%2fetc%2fpasswd", None, {}, 404),
        ("/nowhere", None, {}, 404),
        ("/v1/diagnose", None, {}, 405),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(
    server: Server, path: str, body: bytes | None, headers: dict[str, str], status: int
) -> None:
    answer = server.ask(path, body, headers)
    assert answer.status == status, answer.body
    assert "\n" not in answer.json["error"]
    assert server.ask("/v1/diagnose", QUESTION).status == 200


def test_a_body_that_is_too_large_is_refused(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:
        head = "POST /v1/diagnose HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
        line.sendall(f"{head}Content-Length: 100000000000\r\n\r\n".encode())
        part = b"x" * (1 << 20)
        for _ in range(66):
            line.sendall(part)
        assert b" 413 " in line.recv(1000)


@pytest.mark.parametrize("more", ["", "Expect: 100-continue\r\n"])
def test_a_body_that_would_be_too_large_is_not_waited_for(server: Server, more: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:
        head = "POST /v1/diagnose HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
        began = time.monotonic()
        line.sendall(f"{head}{more}Content-Length: 100000000\r\n\r\n".encode())
        assert b" 413 " in line.recv(1000)
        assert time.monotonic() - began < BODY_SECONDS / 2


@pytest.mark.slow
def test_a_request_that_never_comes_whole_is_given_up(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
        assert server.ask("/v1/diagnose", QUESTION).status == 200
        assert line.recv(1000) == b""  # closed from the other side


@pytest.mark.slow
def test_a_flood_of_idle_connections_locks_nobody_out(server: Server) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * FLOOD:
        pytest.skip("this machine does not let a process open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * FLOOD), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(FLOOD):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S))
        assert [server.ask("/v1/diagnose", QUESTION).status for _ in range(5)] == [200] * 5


@pytest.mark.slow
def test_a_compressed_log_without_any_text_is_the_askers_fault(server: Server) -> None:
    packed = gzip.compress(bytes(300_000_000), 1)
    answer = server.ask("/v1/diagnose", packed, {"Content-Type": "application/gzip"})
    assert answer.status == 422
    assert "expands to more than" in answer.json["error"]


def test_other_sites_and_names_are_refused(server: Server) -> None:
    assert server.get("/v1/records", Host="evil.example").status == 403
    body, headers = form(a_log=QUESTION)
    cross = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert server.ask("/ask", body, {**headers, **cross}).status == 403
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        assert server.ask("/v1/diagnose", body, {**headers, "Origin": origin}).status == 403, origin
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    assert server.ask("/v1/diagnose", body, {**headers, **own}).status == 200
    linked = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert server.get(f"/incidents/{ANSWER}", **linked).status == 200


def test_alerts_are_answered_with_the_diagnosis(server: Server) -> None:
    said = Path(__file__).with_name("alertmanager.json").read_bytes()
    (answer,) = server.ask("/v1/alerts", said, JSON).json["alerts"]
    assert answer["annotations"]["kb_incident"] == ANSWER
    assert answer["fingerprint"] == "d8f84a7c1a9e7b0f"
    assert f"`{ANSWER}`" in answer["message"]


@pytest.mark.slow
def test_alerts_are_told_to_a_chat_or_asked_for_again(small: Small) -> None:
    """What the alert and the log say calls nobody and hides no link."""
    said = json.dumps({"text": QUESTION.decode() + "<!channel> `@here` HF_TOKEN=hf_1234567890abcd"})
    with receiving() as (url, told), serving(small, KB_ALERTS_TO=url) as server:
        refused = server.ask("/v1/alerts", said.encode(), JSON)
        assert refused.status == 502  # so it is sent again
        assert server.ask("/v1/alerts", said.encode(), JSON).status == 200
    (message,) = told
    assert ANSWER in message
    assert "<" not in message
    assert "hf_1234567890abcd" not in message


@contextmanager
def receiving() -> Iterator[tuple[str, list[str]]]:
    """A chat that takes every message but the first, and what it took."""
    told: list[str] = []
    calls: list[int] = []

    class Chat(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            calls.append(1)
            if len(calls) > 1:
                told.append(json.loads(body)["text"])
            self.send_response(200 if len(calls) > 1 else 500)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Nothing is printed."""

    with http.server.HTTPServer(("127.0.0.1", 0), Chat) as chat:
        thread = threading.Thread(target=chat.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{chat.server_port}/hook", told
        finally:
            chat.shutdown()
            thread.join()


def test_agents_are_answered_at_their_path(server: Server) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    accepted = {"Accept": "application/json, text/event-stream", **JSON}
    answer = server.ask("/mcp", json.dumps(hello).encode(), accepted)
    assert answer.status == 200
    assert b'"serverInfo"' in answer.body


def test_another_address_needs_a_token(small: Small) -> None:
    run = small.kb("serve", "--host", "0.0.0.0", "--port", "0")
    assert run.returncode == 2
    assert b"KB_TOKEN" in run.stderr


@pytest.mark.parametrize("rate", ["nan", "inf", "-inf", "-1", "0", "x"])
def test_a_rate_that_limits_nothing_is_one_sentence(small: Small, rate: str) -> None:
    program = ("timeout", "20", sys.executable, "-m", "kb")
    run = small.kb("serve", "--port", "0", "--rate", rate, program=program)
    assert run.returncode == 2, run.stderr
    assert b"Invalid value for '--rate'" in run.stderr
    assert b"Serving at" not in run.stderr


def test_a_port_that_is_taken_is_one_sentence(small: Small, server: Server) -> None:
    run = small.kb("serve", "--port", str(server.port))
    assert run.returncode == 2
    assert b"cannot listen" in run.stderr


def test_a_damaged_file_of_conversations_is_set_aside(small: Small, tmp_path: Path) -> None:
    (tmp_path / "serve").mkdir()
    (tmp_path / "serve" / "talks.sqlite").write_bytes(b"no database at all" * 1_000)
    with serving(small, KB_STATE=str(tmp_path)) as server:
        message = json.dumps({"text": QUESTION.decode()}).encode()
        case = server.ask("/v1/chat", message, JSON).json["case"]
        message = json.dumps({"text": "why?", "case": case}).encode()
        assert server.ask("/v1/chat", message, JSON).status == 200
    assert (tmp_path / "serve" / "talks.damaged.sqlite").read_bytes().startswith(b"no database")


def begins_a_case(server: Server) -> Answer:
    return server.ask("/v1/chat", json.dumps({"text": QUESTION.decode()}).encode(), JSON)


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["file removed", "directory removed", "emptied", "overwritten"])
def test_conversations_go_on_when_their_file_is_harmed_meanwhile(
    small: Small, tmp_path: Path, harm: str
) -> None:
    talks = tmp_path / "serve" / "talks.sqlite"
    with serving(small, KB_STATE=str(tmp_path)) as server:
        assert begins_a_case(server).status == 200
        match harm:
            case "file removed":
                talks.unlink()
            case "directory removed":
                shutil.rmtree(talks.parent)
            case "emptied":
                talks.write_bytes(b"")
            case _:
                talks.write_bytes(b"no database at all" * 1_000)
        begun = begins_a_case(server)
        assert begun.status == 200, begun.body
        message = json.dumps({"text": "why?", "case": begun.json["case"]}).encode()
        assert server.ask("/v1/chat", message, JSON).status == 200


def test_a_conversation_that_cannot_be_kept_is_the_servers_fault_and_passes(
    small: Small, tmp_path: Path
) -> None:
    with serving(small, KB_STATE=str(tmp_path)) as server:
        assert begins_a_case(server).status == 200
        (tmp_path / "serve").rename(tmp_path / "away")
        (tmp_path / "serve").write_bytes(b"")
        refused = begins_a_case(server)
        assert refused.status == 503
        assert "cannot be kept" in refused.json["error"]
        assert int(refused.headers["retry-after"]) >= 1
        (tmp_path / "serve").unlink()
        assert begins_a_case(server).status == 200


def test_where_no_conversation_can_be_kept_nobody_is_served(small: Small, tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    run = small.kb("serve", "--port", "0", env={"KB_STATE": str(tmp_path / "state")})
    assert run.returncode == 2
    assert b"Serving at" not in run.stderr
    assert b"cannot keep conversations in" in run.stderr
    assert b"KB_STATE" in run.stderr


@pytest.mark.slow
def test_several_processes_share_the_index_the_cases_and_the_token(
    small: Small, tmp_path: Path
) -> None:
    """Who has the token is answered by any of them. When records change, and when the server ends,
    no request is lost."""
    team = tmp_path / "team"
    team.mkdir()
    arguments = ("--workers", "2", "--host", "0.0.0.0", "--incidents", str(team))
    with serving(small, *arguments, KB_TOKEN=TOKEN) as server:
        _only_with_the_token(server)
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        statuses: list[int] = []
        with ThreadPoolExecutor(8) as clients:

            def ask(number: int) -> int:
                log = QUESTION + f"step {number}\n".encode()
                return server.ask("/v1/diagnose", log, {**TEXT, **bearer}).status

            asked = [clients.submit(ask, number) for number in range(60)]
            record = read(next(Path("incidents").glob(f"*/{ANSWER}.md")))
            changed = render(record).replace("## Symptom\n", "## Symptom\n\nIt was seen.\n")
            (team / f"{ANSWER}.md").write_text(changed, encoding="utf-8")
            statuses += [one.result() for one in asked]
        _case_in_any_process(server, bearer)
        with ThreadPoolExecutor(8) as clients:
            asked = [clients.submit(ask, number) for number in range(8)]
            wait_until(lambda: any(one.done() for one in asked), "an answer")
            server.process.send_signal(signal.SIGTERM)
            statuses += [one.result() for one in asked]
        assert set(statuses) == {200}
        server.process.wait(PATIENCE_S)


def _only_with_the_token(server: Server) -> None:
    assert server.get("/healthz").status == 200
    assert server.get("/v1/records").status == 401
    assert server.get("/v1/records", Authorization=f"Bearer {TOKEN}x").status == 401
    assert server.get("/v1/records", Authorization="Basic ???").status == 401
    typed = base64.b64encode(f"me:{TOKEN}".encode()).decode()
    assert server.get("/", Authorization=f"Basic {typed}").status == 200
    assert server.get("/", Accept="text/html").headers["www-authenticate"].startswith("Basic")


def _case_in_any_process(server: Server, bearer: Mapping[str, str]) -> None:
    """Each message comes over a connection of its own, and so to any of the processes."""
    message: dict[str, str] = {"text": QUESTION.decode()}
    for said in ("how do I fix it?", "why?", "what next?"):
        answer = server.ask("/v1/chat", json.dumps(message).encode(), {**JSON, **bearer})
        assert answer.status == 200
        message = {"text": said, "case": answer.json["case"]}


@pytest.mark.slow
def test_no_worker_outlives_the_main_process(small: Small, tmp_path: Path) -> None:
    variables = {"KB_HISTORY": "false", "TMPDIR": str(tmp_path)}
    with serving(small, "--workers", "2", **variables) as server:
        assert list(tmp_path.iterdir())
        server.process.kill()
        wait_until(lambda: not of_session(server.process.pid), "all processes end")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3, 4], ids="{} processes".format)
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_to_all_while_workers_load_is_quiet(
    small: Small, processes: int, ending: signal.Signals
) -> None:
    """As Ctrl-C at a terminal sends it; the processes are the server, what keeps its semaphores,
    and its workers."""
    with starting(small, "--workers", "2") as (process, _port):
        wait_until(lambda: len(of_session(process.pid)) >= processes, "processes of its own")
        os.killpg(process.pid, ending)
        asked_at = time.monotonic()
        assert process.wait(PATIENCE_S) == 128 + ending
        assert time.monotonic() - asked_at < END_AT_ONCE_S
        assert process.stderr
        assert process.stderr.read().strip() == b""


@pytest.mark.slow
def test_new_processes_wait_for_records_that_are_away_and_the_old_ones_answer(
    small: Small, tmp_path: Path
) -> None:
    team = tmp_path / "team"
    team.mkdir()
    with serving(small, "--workers", "2", "--incidents", str(team)) as server:
        processes = lambda: set(of_session(server.process.pid))  # noqa: E731
        first = processes()
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(processes() - first) == 2 == len(first - processes()), "all is well")
        before = processes()
        team.rename(tmp_path / "away")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(processes() - before) == 1, "a new process is there")
        for _ in range(20):
            assert server.ask("/v1/diagnose", QUESTION).status == 200
            assert server.get("/readyz").status == 200
        assert before < processes(), "the old ones go on"
        (tmp_path / "away").rename(team)
        wait_until(lambda: len(processes() - before) == 2, "both are replaced")
        assert server.ask("/v1/diagnose", QUESTION).status == 200


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_that_was_switched_off_stays_so(small: Small, workers: str) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with serving(small, "--workers", workers) as server:
            server.process.send_signal(signal.SIGINT)
            assert server.ask("/v1/diagnose", QUESTION).status == 200
            server.process.terminate()
            assert server.process.wait(PATIENCE_S) == 143
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_signal_is_for_the_main_process_alone(small: Small) -> None:
    """Or a worker might end, and tell at length, before its parent has heard it too."""
    with starting(small, "--workers", "2") as (process, port):
        wait_until(lambda: len(of_session(process.pid)) == 4, "all processes have started")
        others = set(of_session(process.pid)) - {process.pid}
        for other in others:
            for number in (signal.SIGINT, signal.SIGTERM):
                os.kill(other, number)
        server = Server(process, port)
        wait_until(lambda: server.get("/readyz").status == 200, "the server is ready")
        assert others < set(of_session(process.pid))
        process.terminate()
        assert process.wait(PATIENCE_S) == 143
        assert process.stderr
        assert process.stderr.read() == b""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "ending"),
    [
        ("1", signal.SIGINT),
        ("1", signal.SIGTERM),
        ("1", signal.SIGHUP),
        ("2", signal.SIGINT),
        ("2", signal.SIGTERM),
    ],
)
def test_the_exit_code_tells_the_signal(small: Small, workers: str, ending: signal.Signals) -> None:
    with serving(small, "--workers", workers) as server:
        os.killpg(server.process.pid, ending)
        assert server.process.wait(PATIENCE_S) == 128 + ending
        assert server.process.stderr
        assert server.process.stderr.read().strip() == b""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_ctrl_c_waits_for_no_request(small: Small, tmp_path: Path, workers: str) -> None:
    variables = {"KB_HISTORY": "false", "TMPDIR": str(tmp_path)}
    with serving(small, "--workers", workers, **variables) as server, half_a_request(server):
        os.killpg(server.process.pid, signal.SIGINT)
        wait_until(lambda: not is_taken(server.port), "the server ends")
        assert server.process.poll() is None
        os.killpg(server.process.pid, signal.SIGINT)
        asked_at = time.monotonic()
        assert server.process.wait(PATIENCE_S) == 130
        assert time.monotonic() - asked_at < END_AT_ONCE_S
        assert server.process.stderr
        assert server.process.stderr.read().strip() == b""
    assert not list(tmp_path.iterdir())


@contextmanager
def half_a_request(server: Server) -> Iterator[None]:
    """A request whose rest does not come."""
    head = b"POST /v1/diagnose HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as line:
        line.sendall(head + b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n")
        assert b" 100 " in line.recv(1000)  # it is read
        yield


def is_taken(port: int) -> bool:
    """Whether a connection is taken."""
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(small: Small) -> None:
    with serving(small, "--workers", "2") as server:
        wait_until(lambda: len(of_session(server.process.pid)) == 4, "all processes have started")
        worker = max(of_session(server.process.pid))
        os.kill(worker, signal.SIGKILL)
        assert server.process.stderr
        assert server.process.stderr.readline() == (
            f"process {worker} of the server died; another takes its place\n".encode()
        )
        wait_until(lambda: len(of_session(server.process.pid)) == 4, "another one has started")
        assert server.get("/healthz").status == 200


@pytest.mark.slow
def test_hup_replaces_each_worker_and_loses_no_request(small: Small) -> None:
    with serving(small, "--workers", "2") as server:
        wait_until(lambda: len(of_session(server.process.pid)) == 4, "all processes have started")
        *others, first, second = sorted(of_session(server.process.pid))
        server.process.send_signal(signal.SIGHUP)

        def are_replaced() -> bool:
            assert server.ask("/v1/diagnose", QUESTION).status == 200
            now = set(of_session(server.process.pid))
            return not now & {first, second} and len(now) == 4

        wait_until(are_replaced, "both are replaced")
        assert set(others) < set(of_session(server.process.pid))


@pytest.mark.slow
def test_who_asks_too_often_has_to_wait(small: Small) -> None:
    with serving(small, "--rate", "1") as server:
        answers = [server.get("/v1/records/none") for _ in range(5)]
        assert [answer.status for answer in answers][-1] == 429
        assert answers[-1].headers["retry-after"] == "1"
        assert server.get("/healthz").status == 200


@pytest.mark.slow
def test_overload_is_refused_at_once(server: Server) -> None:
    """The queue does not grow: while one log is read, more wait than are taken."""
    slow = b"RuntimeError: this and that\n" * 1_000_000
    blocker = threading.Thread(target=server.ask, args=("/v1/diagnose", slow))
    blocker.start()
    time.sleep(0.3)
    with ThreadPoolExecutor(150) as clients:
        answers = list(clients.map(lambda _: server.ask("/v1/diagnose", QUESTION), range(150)))
    blocker.join()
    assert {answer.status for answer in answers} <= {200, 503}
    for answer in answers:
        if answer.status == 503:
            assert answer.headers["retry-after"] == "1"


def test_a_site_of_all_records_without_a_server(small: Small, tmp_path: Path) -> None:
    run = small.kb("site", str(tmp_path / "site"))
    assert run.returncode == 0, run.stderr
    page = (tmp_path / "site" / "incidents" / f"{ANSWER}.html").read_text(encoding="utf-8")
    assert 'href="../style.css"' in page
    listed = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    for place in re.findall(r'href="\./([^"]+)"', listed):
        assert (tmp_path / "site" / place).is_file(), place
    again = small.kb("site", str(tmp_path / "site"))
    assert again.returncode == 2
    assert b"not empty" in again.stderr


def test_a_site_that_does_not_fit_leaves_nothing(small: Small, tmp_path: Path) -> None:
    def fills_up() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))

    run = small.kb("site", str(tmp_path / "site"), before=fills_up)
    assert run.returncode == 2
    assert not (tmp_path / "site").exists()


def test_other_commands_do_not_import_a_server(small: Small) -> None:
    code = (
        "import sys; sys.argv[1:] = ['ask', 'nccl hangs']\n"
        "import kb.__main__ as command\n"
        "command._run()\n"
        "unused = {'starlette', 'uvicorn', 'jinja2', 'kb.serve', 'prometheus_client'}\n"
        "print(sorted(unused & sys.modules.keys()))"
    )
    run = small.kb(program=(sys.executable, "-c", code))
    assert run.stdout.decode().splitlines()[-1] == "[]", run.stderr
