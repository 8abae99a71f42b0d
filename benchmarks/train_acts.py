"""Train the classifier of acts on benchmarks/acts: `python -m benchmarks.train_acts`, [models].

A logistic regression of n-grams, and one of the vectors of the encoder that `train_act_encoder`
taught on acts; their scores are added. So sentences can be added without teaching the encoder anew,
which takes hours. How much each is trusted, and the least share of an act, are fitted on a tenth of
the sentences that neither learnt from; both learn from all of them afterwards. `--curve` learns
from growing parts of the sentences, with n-grams alone, and writes no model. Either way a table
goes into docs/quality.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tomllib
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from benchmarks.quality import PAGE, fill
from index.encoder import Encoder, OnnxEncoder, file_sha256
from kb.conversation.act_model import (
    ABOUT,
    BUCKETS,
    MODEL_DIR,
    WEIGHTS,
    hashed,
    vectors,
)

SENTENCES = Path(__file__).parent / "acts"
HELD_OUT = 10
"""One of so many sentences is not learnt from at first."""
SEED = 14
OTHER = "other"
_LOOSENESS = 20.0
"""Inverse strength of the penalty on weights."""
_ITERATIONS = 100
_LEAST_SHARES = np.arange(0.0, 1.01, 0.01)
_CURVE = (0.125, 0.25, 0.5, 1.0)
"""Shares of the sentences."""

Array = NDArray[Any]


class Examples(msgspec.Struct, frozen=True):
    """Sentences, and the act and the language of each."""

    texts: list[str]
    acts: Array
    languages: Array

    def only(self, rows: Array) -> Examples:
        """These rows, by a mask."""
        texts = [text for text, is_in in zip(self.texts, rows, strict=True) if is_in]
        return Examples(texts, self.acts[rows], self.languages[rows])


class Figures(msgspec.Struct, frozen=True):
    """Shares of the sentences that are seen as what they are: those with an act by language, those
    without one, and by language again when the likeliest act is taken however unlikely it is."""

    en: float
    zh: float
    other: float
    en_at_any_share: float
    zh_at_any_share: float


class Mixture(msgspec.Struct, frozen=True):
    """How much the scores of each part are trusted, and the least share of an act."""

    trust: Array
    least_share: float


def main() -> None:
    """Fit, print what is right among the sentences left out, and write the model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_acts")
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    examples = read_examples()
    grams = gram_matrix(examples.texts)
    held_out = parts_of(examples.texts, HELD_OUT) == 0
    if options.curve:
        print_into_page("acts curve", "sentences", curve(grams, examples, held_out))
        return
    encoder = OnnxEncoder(MODEL_DIR)
    meanings = vectors(examples.texts, encoder)
    tested = examples.only(held_out)
    by_grams, by_meaning = (
        learn(features[~held_out], examples.acts[~held_out]).decision_function(features[held_out])
        for features in (grams, meanings)
    )
    mixture, figures = mix([by_grams, by_meaning], tested)
    rows = {
        "n-grams": mix([by_grams], tested)[1],
        "the encoder": mix([by_meaning], tested)[1],
        "both": figures,
    }
    print_into_page("acts", "read by", rows)
    of_grams, of_meaning = (learn(features, examples.acts) for features in (grams, meanings))
    write(of_grams, of_meaning, mixture, figures, encoder)


def curve(grams: csr_matrix, examples: Examples, held_out: Array) -> dict[str, Figures]:
    """The figures of n-grams alone by the number of sentences that were learnt from."""
    rows = {}
    for share in _CURVE:
        learnt = ~held_out & (parts_of(examples.texts, 1000) < 1000 * share)
        model = learn(grams[learnt], examples.acts[learnt])
        scores = model.decision_function(grams[held_out])
        rows[f"{learnt.sum():,}"] = mix([scores], examples.only(held_out))[1]
    return rows


def read_examples(directory: Path = SENTENCES) -> Examples:
    """All sentences; the name of a file is the act."""
    found = [
        (text, path.stem, language)
        for path in sorted(directory.glob("*.toml"))
        for language, texts in tomllib.loads(path.read_text(encoding="utf-8")).items()
        for text in texts
    ]
    texts, acts, languages = zip(*found, strict=True)
    return Examples(list(texts), np.array(acts), np.array(languages))


def parts_of(texts: Sequence[str], parts: int) -> Array:
    """The part of each sentence, the same whatever the others are."""
    return np.array([zlib.crc32(f"{SEED}{parts}{text}".encode()) % parts for text in texts])


def gram_matrix(texts: Sequence[str]) -> csr_matrix:
    """A row of n-grams per text: (n, BUCKETS)."""
    rows = [hashed(text) for text in texts]
    starts = np.cumsum([0, *(len(buckets) for buckets, _ in rows)])
    columns = np.concatenate([buckets for buckets, _ in rows])
    values = np.concatenate([values for _, values in rows]).astype(np.float32)
    return csr_matrix((values, columns, starts), shape=(len(texts), BUCKETS))


def learn(features: Any, acts: Array) -> LogisticRegression:
    """A logistic regression with one row of weights per act, in the order of their names."""
    model = LogisticRegression(C=_LOOSENESS, max_iter=_ITERATIONS, tol=1e-3)
    return model.fit(features, acts)


def mix(scores: Sequence[Array], examples: Examples) -> tuple[Mixture, Figures]:
    """The mixture that makes the true acts likeliest, and its figures."""
    acts = sorted(set(examples.acts))
    truth = np.array([acts.index(act) for act in examples.acts])
    rows = np.arange(len(truth))

    def surprise(trust: Array) -> float:
        total = sum(t * s for t, s in zip(trust, scores, strict=True))
        return float(-log_softmax(total, axis=1)[rows, truth].mean())

    trust = minimize(surprise, np.ones(len(scores)), method="Nelder-Mead").x
    shares = softmax(sum(t * s for t, s in zip(trust, scores, strict=True)), axis=1)
    other = acts.index(OTHER)
    found = [_told(shares, least, other) == truth for least in _LEAST_SHARES]
    is_other = truth == other
    best = int(np.argmax([right[is_other].mean() + right[~is_other].mean() for right in found]))

    def seen(right: Array, language: str) -> float:
        return float(right[(examples.languages == language) & ~is_other].mean())

    figures = Figures(
        en=seen(found[best], "en"),
        zh=seen(found[best], "zh"),
        other=float(found[best][is_other].mean()),
        en_at_any_share=seen(found[0], "en"),
        zh_at_any_share=seen(found[0], "zh"),
    )
    return Mixture(trust, round(float(_LEAST_SHARES[best]), 2)), figures


def _told(shares: Array, least: float, other: int) -> Array:
    best = shares.argmax(axis=1)
    return np.where(shares.max(axis=1) < least, other, best)


def print_into_page(part: str, first: str, rows: Mapping[str, Figures]) -> None:
    """Print a table in Markdown, and put it into docs/quality.md."""
    table = (
        f"| {first} | English | Chinese | without an act |"
        " English, at any share | Chinese, at any share |\n"
        "| --- | --: | --: | --: | --: | --: |\n"
    )
    for name, figures in rows.items():
        cells = " | ".join(f"{share:.3f}" for share in msgspec.structs.astuple(figures))
        table += f"| {name} | {cells} |\n"
    print(table)
    fill(PAGE, {part: table})


def write(
    by_grams: LogisticRegression,
    by_meaning: LogisticRegression,
    mixture: Mixture,
    figures: Figures,
    encoder: Encoder,
) -> None:
    """Write the weights, those of n-grams in 8 bits with a scale for each act, and where they come
    from."""
    of_grams, of_meaning = mixture.trust
    grams = by_grams.coef_.T * of_grams
    scale = np.maximum(np.abs(grams).max(axis=0), 1e-9) / 127
    np.savez_compressed(
        MODEL_DIR / WEIGHTS,
        grams=np.rint(grams / scale).astype(np.int8),
        scale=scale.astype(np.float32),
        meaning=(by_meaning.coef_.T * of_meaning).astype(np.float16),
        bias=(by_grams.intercept_ * of_grams + by_meaning.intercept_ * of_meaning).astype(
            np.float32
        ),
    )
    provenance = {
        "command": "make acts",
        "acts": list(by_grams.classes_),
        "encoder": encoder.name,
        "least_share": mixture.least_share,
        "held_out": {
            name: round(share, 3) for name, share in msgspec.structs.asdict(figures).items()
        },
        "sentences_sha256": _digest(),
        "sha256": {WEIGHTS: file_sha256(MODEL_DIR / WEIGHTS)},
    }
    text = json.dumps(provenance, indent=2) + "\n"
    (MODEL_DIR / ABOUT).write_text(text, encoding="utf-8")


def _digest() -> str:
    """Names the state of the sentences that were learnt from."""
    files = sorted(SENTENCES.glob("*.toml"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


if __name__ == "__main__":
    main()
