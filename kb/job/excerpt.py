"""The lines of a job on which its diagnosis stands: the culprits' own before all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kb.job.cast import Cast, Voice
from kb.job.kinds import Kind, Standing
from kb.job.remark import Remark
from kb.job.suspects import Judgement, Suspect
from kb.log import Block
from kb.log.layout import is_system_log

_MOST_VOICES = 3
_HEAD, _TAIL = 15, 150
_AROUND = 12
_SHARED = (Kind.HANG, Kind.DESYNC, Kind.NETWORK, Kind.RENDEZVOUS)
"""Failures between ranks: what the others complain of is a part of the story."""


def excerpt(cast: Cast, judgement: Judgement) -> tuple[Block, ...]:
    """Blocks of the lines that tell of the first failure, each line with its number."""
    return _blocks(_chosen(cast, judgement))


def _chosen(cast: Cast, judgement: Judgement) -> Iterator[Remark]:
    suspects = judgement.suspects[:_MOST_VOICES]
    for suspect in suspects:
        yield from _of_suspect(cast, suspect)
    for voice in cast.hosts.values():
        yield from (r for r in voice.remarks[:_HEAD] if not is_system_log(r.file or ""))
    if judgement.kind in _SHARED:
        others = [v for v in cast.voices if v.failure and v.rank not in {s.rank for s in suspects}]
        for voice in others[:_MOST_VOICES]:
            yield from _around(voice, voice.failure)


def _of_suspect(cast: Cast, suspect: Suspect) -> Iterator[Remark]:
    voice = None if suspect.rank is None else cast.ranks.get(suspect.rank)
    if voice is not None:
        yield from voice.remarks[:_HEAD]
        yield from voice.remarks[-_TAIL:]
    for other in cast.voices:
        yield from _around(other, suspect.remark)
        if other.rank is None and other.host == suspect.host and suspect.rank is None:
            yield from (r for r in other.failures if r.standing >= Standing.BEREFT)


def _around(voice: Voice, remark: Remark | None) -> Iterator[Remark]:
    """What a voice said near a line, if it said that line."""
    place = next((n for n, said in enumerate(voice.remarks) if said is remark), None)
    if place is not None and remark is not None:
        reach = 0 if remark.kind is Kind.NETWORK else _AROUND
        near = voice.remarks[max(place - reach, 0) : place + reach + 1]
        yield from (said for said in near if said.file == remark.file)


def _blocks(remarks: Iterable[Remark]) -> tuple[Block, ...]:
    by_file: dict[str | None, dict[int, list[str]]] = defaultdict(dict)
    for remark in remarks:
        said = by_file[remark.file].setdefault(remark.number, [])
        if remark.text not in said:
            said.append(remark.text)
    blocks = []
    for file, lines in by_file.items():
        pairs = [(number, text) for number in sorted(lines) for text in lines[number]]
        data = "".join(f"{text}\n" for _number, text in pairs).encode()
        numbers = tuple(number for number, _text in pairs)
        blocks.append(Block(file, numbers[0], len(numbers), data, numbers))
    return tuple(blocks)
