"""Teach the encoder the field: `python -m benchmarks.train_encoder DIRECTORY`, with [models].

Starts from the plain MiniLM and learns from the records alone: two texts of one record belong
together (its title, symptom, cause, other wordings in both languages, pieces of its evidence), a
text of a record that it is told from does not, nor does known noise. Loss: multiple negatives
ranking (Henderson et al., *Efficient Natural Language Response Suggestion for Smart Reply*, 2017).
Log lines are masked as a query's are, and lose words and lines at random, so that no wording is
learnt by heart. `--without N/M` leaves a part of the records out, to prove that what is learnt
holds for incidents that were not seen.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from benchmarks.export_encoder import TRAINING, find_source
from kb.corpus.directories import IncidentDirectories
from kb.corpus.document import masked_lines
from kb.evidence.glossary import has_chinese, translate
from kb.incident import Incident, Kind
from kb.markdown.render import render

EPOCHS = 2
PAIRS_AN_EPOCH = 10
"""Drawn from each record."""
BATCH = 32
RATE = 5e-5
WARM_UP = 0.1
LONGEST_TOKENS = 128
DROPPED_WORDS = 0.12
NOISY = 0.3
"""Share of the log pieces that get lines of a follow-on error or known noise beside them."""
SEED = 20

Triple = tuple[str, str, str]
_SENTENCE = re.compile(r"(?<=[.:;])\s+")


def main() -> None:
    """Train and save the model where sentence-transformers finds it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_encoder")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--without", metavar="N/M", help="leave part N of M of the records out")
    options = parser.parse_args()
    records, _problems = IncidentDirectories().load()
    if options.without:
        records = [record for record in records if not is_part(record.id, options.without)]
    train(records).save(str(options.directory))
    told = {
        "command": "make encoder",
        "records": len(records),
        "records_sha256": _digest(records),
        "epochs": EPOCHS,
        "pairs_an_epoch": PAIRS_AN_EPOCH,
        "batch": BATCH,
        "rate": RATE,
        "seed": SEED,
    }
    (options.directory / TRAINING).write_text(json.dumps(told) + "\n", encoding="utf-8")


def _digest(records: Sequence[Incident]) -> str:
    """Names the state of the records that were learnt from."""
    return hashlib.sha256("\0".join(map(render, records)).encode()).hexdigest()


def is_part(identifier: str, part: str) -> bool:
    """Whether an incident belongs to part `N/M` of all; the same whatever the others are."""
    number, parts = map(int, part.split("/"))
    return zlib.crc32(identifier.encode()) % parts == number


def train(records: Sequence[Incident]) -> SentenceTransformer:
    """Return the plain model, taught on the records."""
    torch.manual_seed(SEED)
    chance = random.Random(SEED)
    model = SentenceTransformer(str(find_source().parent), device="cpu")
    model.max_seq_length, longest = LONGEST_TOKENS, model.max_seq_length
    batches = [batch for _ in range(EPOCHS) for batch in _batches(records, chance)]
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, RATE, total_steps=len(batches), pct_start=WARM_UP, anneal_strategy="linear"
    )
    loss_of = MultipleNegativesRankingLoss(model)
    model.train()
    started = time.monotonic()
    for step, batch in enumerate(batches, 1):
        columns = [model.preprocess(list(column)) for column in zip(*batch, strict=True)]
        loss = loss_of(columns, torch.tensor([]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        if step % 20 == 0 or step == len(batches):
            minutes = (time.monotonic() - started) / 60
            print(f"step {step}/{len(batches)}, loss {loss.item():.3f}, {minutes:.1f} minutes")
    model.max_seq_length = longest
    return model.eval()


def _batches(records: Sequence[Incident], chance: random.Random) -> Iterator[list[Triple]]:
    """One epoch. A record occurs once in a batch: its other texts would be false negatives."""
    known = {record.id: record for record in records}
    alike: dict[str, set[str]] = {record.id: set() for record in records}
    for record in records:
        for item in record.body.distinguish:
            if item.other in known:
                alike[record.id].add(item.other)
                alike[item.other].add(record.id)
    noise = [record.id for record in records if record.kind is not Kind.INCIDENT]
    for _ in range(PAIRS_AN_EPOCH):
        order = list(known)
        chance.shuffle(order)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            yield [
                _triple(
                    known[key],
                    known[_rival(alike[key], noise, order, chance)],
                    known[chance.choice(noise or order)],
                    chance,
                )
                for key in order[start : start + BATCH]
            ]


def _rival(
    alike: set[str], noise: Sequence[str], order: Sequence[str], chance: random.Random
) -> str:
    if alike and chance.random() < 0.8:
        return chance.choice(sorted(alike))
    return chance.choice(noise or order)


def _triple(record: Incident, rival: Incident, noise: Incident, chance: random.Random) -> Triple:
    asked = _asked(record, noise, chance)
    return asked, _told(record, asked, chance), _told(rival, asked, chance)


def _asked(record: Incident, noise: Incident, chance: random.Random) -> str:
    """A text as a user would bring it; a log often has lines in it that mean nothing."""
    body, aliases = record.body, record.header.aliases
    kind = chance.random()
    if kind < 0.45 or not aliases:
        pieces = [_piece(chance.choice(body.evidence).text, chance)]
        if chance.random() < NOISY:
            pieces.append(_piece(chance.choice(noise.body.evidence).text, chance))
            chance.shuffle(pieces)
        return "\n".join(pieces)
    if kind < 0.8:
        alias = chance.choice(aliases)
        return translate(alias) if chance.random() < 0.8 else alias
    sentences = _SENTENCE.split(" ".join((body.symptom if kind < 0.9 else body.cause).split()))
    first = chance.randrange(len(sentences))
    return _drop_words(" ".join(sentences[first : first + 2]), chance)


def _told(record: Incident, other_than: str, chance: random.Random) -> str:
    """A passage as the index keeps it."""
    header, body = record.header, record.body
    passages = [
        header.title,
        header.title,
        " ".join(body.symptom.split()),
        " ".join(body.cause.split()),
        *(translate(alias) if has_chinese(alias) else alias for alias in header.aliases),
        *("\n".join(masked_lines(block.text)[:12]) for block in body.evidence),
    ]
    return chance.choice([passage for passage in passages if passage != other_than])


def _piece(block: str, chance: random.Random) -> str:
    """Some of the lines of a block, in order."""
    lines = masked_lines(block)
    kept = sorted(chance.sample(range(len(lines)), chance.randint(1, min(6, len(lines)))))
    return _drop_words("\n".join(lines[number] for number in kept), chance)


def _drop_words(text: str, chance: random.Random) -> str:
    words = [word for word in text.split(" ") if chance.random() >= DROPPED_WORDS]
    return " ".join(words) or text


if __name__ == "__main__":
    main()
