"""Train the classifier of acts on benchmarks/acts: `python -m benchmarks.train_acts DIRECTORY`,
with [models]; the directory is that of `train_act_encoder`.

Two logistic regressions, of n-grams and of the encoder's vectors, and the head of the encoder that
was taught on acts; their scores are added. How much each is trusted, and the least share of an act,
are fitted on a tenth of the sentences that none learnt from; the regressions learn from all of them
afterwards. `--curve` prints the share of right acts among that tenth for growing parts of the
others, with the regressions alone, and writes nothing.
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

from index.encoder import Encoder, file_sha256, load_encoder
from kb.conversation.act_model import (
    ABOUT,
    BUCKETS,
    MODEL_DIR,
    WEIGHTS,
    hashed,
    in_english,
    meanings,
    taught_encoder,
)

SENTENCES = Path(__file__).parent / "acts"
HELD_OUT = 10
"""One of so many sentences is not learnt from at first."""
SEED = 14
HEAD = "head.npz"
"""Of the directory of `train_act_encoder`: the weights of its last layer."""
OTHER = "other"
_LOOSENESS = 20.0
"""Inverse strength of the penalty on weights."""
_ITERATIONS = 100
_OTHER_SEEN = 0.9
"""Share of the sentences without an act that must be seen as such."""
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


class Mixture(msgspec.Struct, frozen=True):
    """How much the scores of each model are trusted, and the least share of an act."""

    trust: Array
    least_share: float


def main() -> None:
    """Fit, print what is right among the sentences left out, and write the model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_acts")
    parser.add_argument("taught", type=Path)
    parser.add_argument("--curve", action="store_true")
    options = parser.parse_args()
    examples = read_examples()
    encoder = load_encoder()
    features = [gram_matrix(examples.texts), meanings(examples.texts, encoder)]
    held_out = parts_of(examples.texts, HELD_OUT) == 0
    if options.curve:
        for share in _CURVE:
            learnt = ~held_out & (parts_of(examples.texts, 1000) < 1000 * share)
            print(int(learnt.sum()), report(fit(features, examples, learnt, held_out)[1]))
        return
    vectors = taught_encoder().encode(list(map(in_english, examples.texts)))
    head = dict(np.load(options.taught / HEAD))
    taught = vectors @ head["meaning"] + head["bias"]
    print(report(mix([taught[held_out]], acts_in(examples), examples.only(held_out))[1]))
    mixture, figures = fit(features, examples, ~held_out, held_out, [taught])
    print(report(figures), mixture)
    models = [learn(one, examples.acts) for one in features]
    write(models, head, mixture, figures, encoder)


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


def acts_in(examples: Examples) -> list[str]:
    """The names of the acts in the order of all scores."""
    return sorted(set(examples.acts))


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


def fit(
    features: Sequence[Any],
    examples: Examples,
    learnt: Array,
    tested: Array,
    more: Sequence[Array] = (),
) -> tuple[Mixture, dict[str, float]]:
    """How to add up the models that learnt from some sentences, and how right that is on others."""
    models = [learn(one[learnt], examples.acts[learnt]) for one in features]
    scores = [m.decision_function(one[tested]) for m, one in zip(models, features, strict=True)]
    scores += [one[tested] for one in more]
    return mix(scores, acts_in(examples), examples.only(tested))


def mix(
    scores: Sequence[Array], acts: list[str], examples: Examples
) -> tuple[Mixture, dict[str, float]]:
    """The mixture that makes the true acts likeliest, and its figures."""
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
    best = next(n for n, right in enumerate(found) if right[is_other].mean() >= _OTHER_SEEN)
    right = found[best]
    figures = {
        language: round(float(right[(examples.languages == language) & ~is_other].mean()), 3)
        for language in ("en", "zh")
    }
    sure = found[0]
    figures["en, no least share"], figures["zh, no least share"] = (
        round(float(sure[(examples.languages == language) & ~is_other].mean()), 3)
        for language in ("en", "zh")
    )
    figures["other"] = round(float(right[is_other].mean()), 3)
    return Mixture(trust, round(float(_LEAST_SHARES[best]), 2)), figures


def _told(shares: Array, least: float, other: int) -> Array:
    best = shares.argmax(axis=1)
    return np.where(shares.max(axis=1) < least, other, best)


def report(figures: dict[str, float]) -> str:
    """The share of sentences whose act was seen, for people."""
    return ", ".join(f"{name} {share:.3f}" for name, share in figures.items())


def write(
    models: Sequence[LogisticRegression],
    head: Mapping[str, Array],
    mixture: Mixture,
    figures: dict[str, float],
    encoder: Encoder,
) -> None:
    """Write the weights, each act's in 8 bits with a scale, and where they come from."""
    grams, meaning = (
        model.coef_.T * trust for model, trust in zip(models, mixture.trust, strict=False)
    )
    scale = np.maximum(np.abs(grams).max(axis=0), 1e-9) / 127
    biases = [*(model.intercept_ for model in models), head["bias"]]
    bias = sum(one * trust for one, trust in zip(biases, mixture.trust, strict=True))
    MODEL_DIR.mkdir(exist_ok=True)
    np.savez_compressed(
        MODEL_DIR / WEIGHTS,
        grams=np.rint(grams / scale).astype(np.int8),
        scale=scale.astype(np.float32),
        meaning=meaning.astype(np.float16),
        acted=(head["meaning"] * mixture.trust[-1]).astype(np.float16),
        bias=np.asarray(bias).astype(np.float32),
    )
    provenance = {
        "command": "make acts",
        "acts": list(models[0].classes_),
        "encoder": encoder.name,
        "least_share": mixture.least_share,
        "held_out": figures,
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
