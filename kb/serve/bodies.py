"""The body of a request to a log. Names of files are names of sources, and never of places."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from http import HTTPStatus
from itertools import groupby
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import Annotated, BinaryIO, TypeVar

import msgspec
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from kb.log import Log, Source
from kb.log.archive import has_name_of_archive, is_collected
from kb.log.packed import Readable
from kb.serve.refusal import wrong

Body = TypeVar("Body")

MAX_JSON_BYTES = 8 << 20
"""Of a body that is read at once; larger logs are sent as files."""
MAX_FILES = 5_000
"""Of one request: the ranks of a large job."""

_MEMORY_BYTES = 1 << 20
"""Of one body; the rest of it waits in a temporary file without a name."""
_MAX_NAME_CHARACTERS = 300
_JSON = "application/json"
_MULTIPART = "multipart/form-data"
_ACCEPTED = f'send {_JSON} {{"text": ...}}, {_MULTIPART} with files, or the log as text/plain'
_PLAIN = frozenset(
    {
        "text/plain",
        "application/octet-stream",
        "application/gzip",
        "application/zstd",
        "application/x-www-form-urlencoded",  # of `curl --data-binary @job.log`, unless it is told
    }
)


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked about, as JSON."""

    text: Annotated[str, msgspec.Meta(description="An error, a log, or a question.")]


class Named(msgspec.Struct, frozen=True):
    """One unit of many."""

    path: str
    sources: tuple[Source, ...]


async def read_json(request: Request, kind: type[Body], most: int = MAX_JSON_BYTES) -> Body:
    """The body, checked.

    Raises:
        RefusedError: it is no such JSON, or too large.
    """
    if _media_type(request) != _JSON:
        raise wrong(f"the type of the body must be {_JSON}", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > most:
            raise wrong(
                f"the JSON has more than {most:,} bytes; send the log to /v1/diagnose as a file",
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError) as error:  # of msgspec, or of UTF-8
        raise wrong(f"the body is not what is expected: {error}") from error


@asynccontextmanager
async def opened_log(request: Request) -> AsyncIterator[Log]:
    """The log in a body of any kind; what holds it is released behind the block.

    Raises:
        RefusedError: it has none of the known forms.
    """
    kind = _media_type(request)
    if kind == _JSON:
        yield Log.from_text((await read_json(request, Asked)).text)
    elif kind == _MULTIPART:
        async with _uploads(request) as (text, units):
            typed = Log.from_text(text).sources if text.strip() else ()
            if not (typed or units):
                raise wrong("the form holds neither a text nor a file; add one")
            yield Log([*typed, *(source for unit in units for source in unit.sources)])
    elif kind in _PLAIN:
        with SpooledTemporaryFile(_MEMORY_BYTES) as file:
            async for part in request.stream():
                file.write(part)
            yield Log([Source(None, _opener(file))])
    else:
        raise wrong(_ACCEPTED, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


@asynccontextmanager
async def opened_units(request: Request, *, jobs: bool) -> AsyncIterator[list[Named]]:
    """The files of a multipart body, each a unit; with `jobs`, all below one folder are one.

    Raises:
        RefusedError: it is no multipart body, or holds no file.
    """
    if _media_type(request) != _MULTIPART:
        raise wrong(f"send {_MULTIPART} with files", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    async with _uploads(request) as (_text, files):
        if not files:
            raise wrong(f"there is no file in the body; send {_MULTIPART} with files")
        yield list(_jobs(files)) if jobs else files


def _jobs(files: list[Named]) -> Iterator[Named]:
    def job(file: Named) -> str:
        return file.path.partition("/")[0]

    for path, members in groupby(sorted(files, key=job), job):
        yield Named(path, tuple(source for member in members for source in member.sources))


@asynccontextmanager
async def _uploads(request: Request) -> AsyncIterator[tuple[str, list[Named]]]:
    """The texts and the files of a form."""
    try:
        form = await request.form(
            max_files=MAX_FILES, max_fields=MAX_FILES, max_part_size=MAX_JSON_BYTES
        )
    except MultiPartException as error:
        raise wrong(f"the form cannot be read: {error.message}") from error
    with TemporaryDirectory(prefix="kb-") as directory:
        try:
            parts = form.multi_items()
            texts = [value for _name, value in parts if isinstance(value, str)]
            files = [value for _name, value in parts if _is_file(value)]
            several = len(files) > 1
            yield "\n".join(texts), [_unit(file, several, Path(directory)) for file in files]
        finally:
            await form.close()


def _is_file(value: str | UploadFile) -> bool:
    """A browser sends an empty file without a name where none was chosen."""
    return isinstance(value, UploadFile) and bool(value.filename or value.size)


def _unit(upload: str | UploadFile, several: bool, directory: Path) -> Named:
    assert isinstance(upload, UploadFile)  # noqa: S101  for the type checker
    name = (upload.filename or "")[:_MAX_NAME_CHARACTERS]
    if has_name_of_archive(Path("/", name)) and (sources := _collected(upload.file, directory)):
        return Named(name, sources)
    return Named(name, (Source(name, _opener(upload.file), one_of_many=several),))


def _collected(file: BinaryIO, directory: Path) -> tuple[Source, ...]:
    """The outputs in an archive of `kb collect`, which is read from a file; none if it is another
    archive."""
    kept = directory / f"{len(list(directory.iterdir()))}.tar.gz"
    with kept.open("wb") as copy:
        shutil.copyfileobj(file, copy)
    return Log.from_paths([kept]).sources if is_collected(kept) else ()


def _opener(
    file: BinaryIO | SpooledTemporaryFile[bytes],
) -> Callable[[], AbstractContextManager[Readable]]:
    def opener() -> AbstractContextManager[Readable]:
        file.seek(0)
        return nullcontext(file)

    return opener


def _media_type(request: Request) -> str:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise wrong(
            "Content-Encoding is not read; send a compressed log as a file",
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
