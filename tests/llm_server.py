"""A scripted OpenAI-compatible server: it says, or does, whatever a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kb.llm.phrase import sentences_of

Said = Mapping[str, Any]
"""A sentence as the model writes it: `text` and `rests_on`."""
Handler = BaseHTTPRequestHandler
Script = Callable[["ModelServer", Handler, dict[str, Any]], None]
"""Answers one request."""


class ModelServer:
    """Keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.script: Script = saying([])
        self.closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def _handler(self) -> type[Handler]:
        server = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(body)
                server.headers.append({name.lower(): self.headers[name] for name in self.headers})
                server.paths.append(self.path)
                self.close_connection = True
                with suppress(OSError):
                    server.script(server, self, body)

            def do_GET(self) -> None:
                server.paths.append(self.path)
                self.send_error(404)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        return Answering

    @contextmanager
    def running(self) -> Iterator[ModelServer]:
        thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.closing.set()
            self._http.shutdown()
            self._http.server_close()


def configuration(path: Path, server: ModelServer, wait_seconds: float, *more: str) -> Path:
    """A configuration file with this server as the voice."""
    lines = ["[llm]", f'url = "{server.url}"', 'model = "scripted"']
    path.write_text("\n".join([*lines, f"wait_seconds = {wait_seconds}", *more]) + "\n")
    return path


def passages(request: Mapping[str, Any]) -> dict[str, str]:
    """What a request gives, by key."""
    data = json.loads(request["messages"][1]["content"])
    return {**data["passages"], **data["quotes"]}


def begin(handler: Handler) -> None:
    """The beginning of a stream."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()


def send(handler: Handler, text: object) -> None:
    """A piece of an answer."""
    chunk = {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}],
    }
    handler.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
    handler.wfile.flush()


def finish(handler: Handler) -> None:
    """The end of a stream."""
    handler.wfile.write(b"data: [DONE]\n\n")


def answer_of(sentences: Sequence[Said]) -> str:
    return json.dumps({"sentences": list(sentences)}, ensure_ascii=False)


def saying(sentences: Sequence[Said]) -> Script:
    """Says these, in small pieces."""
    return writing(answer_of(sentences))


def writing(text: str) -> Script:
    """Writes this text, in small pieces."""

    def script(_server: ModelServer, handler: Handler, _request: dict[str, Any]) -> None:
        begin(handler)
        for start in range(0, len(text), 37):
            send(handler, text[start : start + 37])
        finish(handler)

    return script


def honest(request: Mapping[str, Any], planted: str = "") -> Said:
    """A sentence that is copied from what was given, but not the one that somebody planted: of the
    cause of a record, else of the reply."""
    given = passages(request)
    key = next((key for key in given if key.endswith(" cause")), next(iter(given)))
    sentences = [one for one in sentences_of(given[key]) if one not in planted]
    return {"text": next(iter(sentences), "Nothing."), "rests_on": [key]}


def saying_honestly(server: ModelServer, handler: Handler, request: dict[str, Any]) -> None:
    """Says the honest sentence."""
    saying([honest(request)])(server, handler, request)


def in_turn(scripts: Sequence[Script]) -> Script:
    """One script after the other; the last one from then on."""
    rest = list(scripts)

    def script(server: ModelServer, handler: Handler, request: dict[str, Any]) -> None:
        (rest.pop(0) if len(rest) > 1 else rest[0])(server, handler, request)

    return script
