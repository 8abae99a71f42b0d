"""Teach MiniLM to tell acts apart: `python -m benchmarks.train_act_encoder`, [models].

Starts from the plain MiniLM and learns from benchmarks/acts with a linear head over the pooled
vector, all layers at once (Devlin et al., *BERT*, 2019, 4.1). The vocabulary is cut to ASCII and
gets the Chinese characters of the sentences, whose rows start at random and learn faster; the rows
of the other words stay as they are. One sentence in ten is left out, so that `train_acts` can fit
on them how far its parts are to be trusted.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from torch.nn import functional

from benchmarks.export_encoder import (
    LICENCE,
    SOURCE,
    SOURCE_SHA256,
    WEIGHTS,
    Int8Graph,
    build,
    find_source,
)
from benchmarks.train_acts import HELD_OUT, Examples, parts_of, read_examples
from index.encoder import GRAPH, MODEL_DIR, PROVENANCE, TOKENIZER, file_sha256
from kb.conversation.act_model import MODEL_DIR as ACT_MODEL_DIR
from kb.conversation.act_model import in_english

TAUGHT = Path("build/act-encoder")
EPOCHS = 4
BATCH = 32
RATE = 1e-4
RATE_OF_NEW = 2e-3
"""Of the head, which starts at random."""
RATE_OF_CHINESE = 1e-3
"""Of the rows for Chinese: they start at random, and few batches hold any one of them."""
WARM_UP = 0.08
DROPPED = 0.1
"""Share of hidden values, and of the tokens of a sentence, that are left out at random."""
CHECKPOINT = "checkpoint.pt"
CHECKPOINT_STEPS = 200
LONGEST_TOKENS = 48
LEAST_SEEN = 2
"""A Chinese character in fewer sentences stays unknown."""
SEED = 14

_WORDS = "embeddings.word_embeddings.weight"
_LAYERS, _HEADS, _WIDTH = 6, 12, 384
_SCALE = 16.0
"""Of the vectors, which have unit length, in front of the head."""
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_CHINESE = re.compile(r"[\u3400-\u9fff]")


def main() -> None:
    """Train, print the share of right acts among those left out, save and export."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_act_encoder")
    parser.add_argument("directory", type=Path, nargs="?", default=TAUGHT)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args()
    torch.manual_seed(SEED)
    examples = read_examples()
    held_out = parts_of(examples.texts, HELD_OUT) == 0
    directory: Path = options.directory
    directory.mkdir(parents=True, exist_ok=True)
    weights, old_words, tokenizer = vocabulary(examples.texts, directory)
    acts = sorted(set(examples.acts))
    model = ActEncoder(weights, old_words, len(acts))
    train(model, tokenizer, examples.only(~held_out), acts, options.epochs, directory)
    model.save(directory)
    export(directory, options.epochs)
    check(model, tokenizer, examples.only(held_out), acts)


def export(directory: Path, epochs: int) -> None:
    """Quantise what `save` wrote, into the package, with its provenance."""
    ACT_MODEL_DIR.mkdir(exist_ok=True)
    graph = Int8Graph(load_file(directory / WEIGHTS))
    onnx.save(build(graph), ACT_MODEL_DIR / GRAPH)
    shutil.copyfile(directory / TOKENIZER, ACT_MODEL_DIR / TOKENIZER)
    shutil.copyfile(MODEL_DIR / LICENCE, ACT_MODEL_DIR / LICENCE)
    provenance = {
        "model": "all-MiniLM-L6-v2-acts-int8",
        "files": {name: file_sha256(ACT_MODEL_DIR / name) for name in (GRAPH, TOKENIZER, LICENCE)},
        "source": {"package": SOURCE, "sha256": {WEIGHTS: SOURCE_SHA256}},
        "encoder": {"dimension": _WIDTH, "max_length": LONGEST_TOKENS},
        "training": {"epochs": epochs, "batch": BATCH, "rate": RATE, "seed": SEED},
        "command": "make act-encoder",
        "packages": {name: version(name) for name in ("numpy", "onnx", "safetensors", "torch")},
    }
    text = json.dumps(provenance, indent=2) + "\n"
    (ACT_MODEL_DIR / PROVENANCE).write_text(text, encoding="utf-8")


def vocabulary(texts: Sequence[str], directory: Path) -> tuple[dict[str, Any], int, Tokenizer]:
    """The plain weights with other rows of words, how many of these rows are old, and the tokenizer
    to them, which is written."""
    source = find_source()
    weights = load_file(source)
    told = json.loads((source.parent / TOKENIZER).read_text(encoding="utf-8"))
    old: dict[str, int] = told["model"]["vocab"]
    seen = Counter(c for text in texts for c in set(_CHINESE.findall(in_english(text))))
    kept = [
        word
        for word in old
        if word in _SPECIAL or (word.isascii() and not word.startswith("[unused"))
    ]
    kept += [c for c in old if len(c) == 1 and not c.isascii() and not _CHINESE.match(c)]
    new = sorted(c for c, count in seen.items() if count >= LEAST_SEEN)
    rows = weights[_WORDS]
    chance = np.random.default_rng(SEED)
    fresh = chance.normal(rows.mean(0), rows.std(0), (len(new), _WIDTH)).astype(np.float32)
    for place, character in enumerate(new):
        if character in old:
            fresh[place] = rows[old[character]]
    weights[_WORDS] = np.concatenate([rows[[old[word] for word in kept]], fresh])
    ids = {word: place for place, word in enumerate([*kept, *new])}
    told["model"]["vocab"] = ids
    for token in told["added_tokens"]:
        token["id"] = ids[token["content"]]
    for name, token in told["post_processor"]["special_tokens"].items():
        token["ids"] = [ids[name]]
    path = directory / TOKENIZER
    path.write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST_TOKENS)
    print(f"{len(kept)} old tokens, {len(new)} Chinese characters")
    return weights, len(kept), tokenizer


def _is_body(name: str, value: Any) -> bool:
    """Whether a weight of the source is learnt further as a whole."""
    is_used = name.startswith(("embeddings", "encoder")) and value.dtype == np.float32
    return is_used and name != _WORDS


class ActEncoder(torch.nn.Module):
    """BERT with mean pooling, unit length, and a linear head."""

    def __init__(self, weights: dict[str, Any], old_words: int, acts: int) -> None:
        super().__init__()
        rows = torch.from_numpy(weights[_WORDS])
        self.old = torch.nn.Parameter(rows[:old_words].clone(), requires_grad=False)
        self.chinese = torch.nn.Parameter(rows[old_words:].clone())
        self._names = [name for name, value in weights.items() if _is_body(name, value)]
        self._places = {name: place for place, name in enumerate(self._names)}
        self.body = torch.nn.ParameterList(
            torch.nn.Parameter(torch.from_numpy(weights[name].copy())) for name in self._names
        )
        self.head = torch.nn.Linear(_WIDTH, acts)

    def forward(self, ids: Any, seen: Any) -> Any:
        """Return vectors of unit length, (batch, width), of ids and mask, (batch, sequence)."""
        last = len(self.old) - 1
        old = functional.embedding(ids.clamp(max=last), self.old)
        chinese = functional.embedding((ids - last - 1).clamp(min=0), self.chinese)
        words = torch.where((ids > last)[:, :, None], chinese, old)
        position = self._w("embeddings.position_embeddings.weight")[: ids.shape[1]]
        kind = self._w("embeddings.token_type_embeddings.weight")[0]
        x = self._drop(self._normed(words + position + kind, "embeddings.LayerNorm"))
        for layer in range(_LAYERS):
            x = self._layer(x, seen, f"encoder.layer.{layer}")
        pooled = (x * seen[:, :, None]).sum(1) / seen.sum(1, keepdim=True)
        return functional.normalize(pooled.float(), dim=1)

    def score(self, vectors: Any) -> Any:
        """Return the score of each act: (batch, acts)."""
        return self.head(self._drop(vectors) * _SCALE)

    def _w(self, name: str) -> Any:
        return self.body[self._places[name]]

    def _layer(self, x: Any, seen: Any, name: str) -> Any:
        batch, length, _ = x.shape
        query, key, value = (
            self._linear(x, f"{name}.attention.self.{part}")
            .view(batch, length, _HEADS, -1)
            .transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mask = seen.bool()[:, None, None, :]
        context = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        context = context.transpose(1, 2).reshape(batch, length, _WIDTH)
        context = self._drop(self._linear(context, f"{name}.attention.output.dense"))
        x = self._normed(x + context, f"{name}.attention.output.LayerNorm")
        inner = functional.gelu(self._linear(x, f"{name}.intermediate.dense"))
        outer = self._drop(self._linear(inner, f"{name}.output.dense"))
        return self._normed(x + outer, f"{name}.output.LayerNorm")

    def _linear(self, x: Any, name: str) -> Any:
        return functional.linear(x, self._w(f"{name}.weight"), self._w(f"{name}.bias"))

    def _normed(self, x: Any, name: str) -> Any:
        weight, bias = self._w(f"{name}.weight"), self._w(f"{name}.bias")
        return functional.layer_norm(x.float(), (_WIDTH,), weight, bias, 1e-12)

    def _drop(self, x: Any) -> Any:
        return functional.dropout(x, DROPPED, self.training)

    def save(self, directory: Path) -> None:
        """Write the weights of the encoder; the head only taught it."""
        tensors = {n: w.detach().numpy() for n, w in zip(self._names, self.body, strict=True)}
        tensors[_WORDS] = torch.cat([self.old, self.chinese]).detach().numpy()
        save_file(tensors, directory / WEIGHTS)


def train(
    model: ActEncoder,
    tokenizer: Tokenizer,
    examples: Examples,
    acts: Sequence[str],
    epochs: int,
    directory: Path,
) -> None:
    """Teach the model in place; steps follow AdamW with a linear decay. What a broken run left in
    the directory is gone on with."""
    tokens = [
        encoding.ids for encoding in tokenizer.encode_batch(list(map(in_english, examples.texts)))
    ]
    labels = [acts.index(act) for act in examples.acts]
    steps = epochs * -(-len(tokens) // BATCH)
    optimiser = torch.optim.AdamW(
        [
            {"params": list(model.body), "lr": RATE},
            {"params": [model.chinese], "lr": RATE_OF_CHINESE},
            {"params": list(model.head.parameters()), "lr": RATE_OF_NEW},
        ],
        weight_decay=0.01,
        fused=True,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: min(step / (WARM_UP * steps), (steps - step) / (steps * (1 - WARM_UP))),
    )
    model.train()
    parts = {"model": model, "optimiser": optimiser, "schedule": schedule}
    done = _resume(directory / CHECKPOINT, parts)
    started, total, step = time.monotonic(), 0.0, 0
    for epoch in range(epochs):
        for rows in _batches(tokens, random.Random(f"{SEED} {epoch}")):
            if step < done:
                step += 1
                continue
            chance = random.Random(f"{SEED} {epoch} {step}")
            ids, seen = _padded([_thinned(tokens[row], chance) for row in rows])
            with torch.autocast("cpu", dtype=torch.bfloat16):
                vectors = model(ids, seen)
            wanted = torch.tensor([labels[row] for row in rows])
            loss = functional.cross_entropy(model.score(vectors), wanted, label_smoothing=0.1)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total, step = total * 0.98 + loss.item() * 0.02, step + 1
            if step % 100 == 0:
                mean = total / (1 - 0.98 ** (step - done))
                seconds = time.monotonic() - started
                print(f"{step}/{steps} loss {mean:.3f} {seconds:.0f} s", flush=True)
            if step % CHECKPOINT_STEPS == 0:
                states = {name: part.state_dict() for name, part in parts.items()}
                torch.save(states | {"step": step}, directory / CHECKPOINT)
    (directory / CHECKPOINT).unlink(missing_ok=True)


def _resume(checkpoint: Path, parts: Mapping[str, Any]) -> int:
    """Load the parts from a checkpoint; return the steps it has behind it, 0 without one."""
    if not checkpoint.exists():
        return 0
    states = torch.load(checkpoint)
    for name, part in parts.items():
        part.load_state_dict(states[name])
    return int(states["step"])


def check(model: ActEncoder, tokenizer: Tokenizer, examples: Examples, acts: Sequence[str]) -> None:
    """Print the share of right acts."""
    model.eval()
    tokens = [
        encoding.ids for encoding in tokenizer.encode_batch(list(map(in_english, examples.texts)))
    ]
    found = []
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        for start in range(0, len(tokens), BATCH):
            found += model.score(model(*_padded(tokens[start : start + BATCH]))).argmax(1).tolist()
    right = np.array([acts[n] for n in found]) == examples.acts
    for language in ("en", "zh"):
        print(language, round(float(right[examples.languages == language].mean()), 3))


def _batches(tokens: Sequence[list[int]], chance: random.Random) -> Iterator[list[int]]:
    """Rows in random batches of like length."""
    order = sorted(range(len(tokens)), key=lambda row: len(tokens[row]) + chance.random() * 6)
    batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    chance.shuffle(batches)
    yield from batches


def _thinned(ids: list[int], chance: random.Random) -> list[int]:
    """Without some of its tokens; the first and the last one, which are marks, stay."""
    return [
        one
        for place, one in enumerate(ids)
        if place in (0, len(ids) - 1) or len(ids) < 6 or chance.random() >= DROPPED
    ]


def _padded(tokens: Sequence[list[int]]) -> tuple[Any, Any]:
    longest = max(map(len, tokens))
    ids = torch.tensor([[*one, *([0] * (longest - len(one)))] for one in tokens])
    seen = torch.tensor([[1.0] * len(one) + [0.0] * (longest - len(one)) for one in tokens])
    return ids, seen


if __name__ == "__main__":
    main()
