"""What training is worth for incidents that were left out of it.

`python -m benchmarks.unseen MODEL N/M FILE.jsonl...`, with [models]: MODEL was trained with
`python -m benchmarks.train_encoder MODEL --without N/M`. Prints the recall of the meaning channel
alone, among all incidents, over the reports of those left out: the plain encoder, then MODEL.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.export_encoder import find_source
from benchmarks.train_encoder import is_part
from index.encoder import load_encoder
from kb.corpus.base import KnowledgeBase
from kb.corpus.directories import IncidentDirectories
from kb.corpus.document import to_document
from kb.diagnosis.query import to_query
from kb.evaluate import read_cases
from kb.evidence import collect
from kb.incident import Kind
from kb.log import Log
from kb.settings import load_settings

Question = tuple[tuple[str, ...], set[str]]
"""Passages of a report, and its right incidents."""


def main(model: str, part: str, paths: Sequence[str]) -> None:
    """Print a line for each encoder."""
    records = [one for one in IncidentDirectories().load()[0] if one.kind is Kind.INCIDENT]
    documents = [to_document(record, b"") for record in records]
    passages = [(one.id, passage) for one in documents for passage in one.passages]
    questions = _questions(paths, part, {record.id for record in records})
    for name in (str(find_source().parent), model):
        encoder = load_encoder(name)
        vectors = encoder.encode([passage for _id, passage in passages])
        positions = []
        for texts, relevant in questions:
            best = (encoder.encode(texts) @ vectors.T).max(axis=0)
            order = dict.fromkeys(passages[place][0] for place in np.argsort(-best))
            positions.append(next(n for n, key in enumerate(order, 1) if key in relevant))
        shares = [np.mean([position <= k for position in positions]) for k in (1, 3)]
        told = "plain" if name != model else "trained"
        print(f"{told}: at 1 {shares[0]:.3f}, at 3 {shares[1]:.3f}, {len(questions)} reports")


def _questions(paths: Sequence[str], part: str, known: set[str]) -> list[Question]:
    questions = []
    with KnowledgeBase.open(load_settings()) as knowledge:
        for case in (case for path in paths for case in read_cases(Path(path))):
            relevant = {key for key in case.relevant if key in known and is_part(key, part)}
            log = Log.from_text(case.text)
            evidence = collect(log.blocks(), knowledge.signatures, knowledge.markers)
            if relevant and (texts := to_query(evidence).passages):
                questions.append((texts, relevant))
    return questions


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
