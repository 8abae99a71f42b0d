import hashlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from index.encoder import GRAPH, MODEL_DIR, PROVENANCE, OnnxEncoder, load_encoder, model_name
from index.errors import EncoderError
from index.vector_cache import CachingEncoder, text_hash

TEXTS = [
    "NCCL watchdog timeout on rank 3 while waiting for an allreduce",
    "short",
    "训练在凌晨两点停止，显存耗尽",
    "",
    "Runbook: drain the node, reset its network cards, and start the job from its checkpoint. " * 3,
    "CUDA out of memory",
]


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return OnnxEncoder()


def test_rows_have_unit_length(encoder):
    vectors = encoder.encode(TEXTS)

    assert vectors.shape == (len(TEXTS), encoder.dim) == (6, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_no_text_gives_no_row(encoder):
    assert encoder.encode([]).shape == (0, 384)


def test_order_is_kept_across_batches_of_like_length(encoder):
    texts = [f"{'word ' * (41 * number % 37)}{number}" for number in range(40)]

    together = encoder.encode(texts)

    assert np.argmax(together @ encoder.encode(texts[::-1]).T, axis=1).tolist() == [
        *range(39, -1, -1)
    ]


def test_a_vector_does_not_depend_on_its_batch(encoder):
    # ONNX Runtime's dynamic int8 has one range per batch and is off by 0.05 here. Ours has one per
    # token; what is left is the order of float32 sums, which could tip the rounding of a level.
    alone = np.vstack([encoder.encode([text]) for text in TEXTS])

    np.testing.assert_allclose(encoder.encode(TEXTS), alone, atol=1e-3)


def test_what_follows_the_longest_sequence_is_cut(encoder):
    long = "disk " * 1000

    first, second = encoder.encode([long, long + "NCCL watchdog timeout"])

    np.testing.assert_allclose(first, second, atol=1e-3)


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("out of GPU memory", "CUDA out of memory. Tried to allocate 2 GiB", "the link went down"),
        ("network card is broken", "InfiniBand link error on mlx5_0", "tokenizer vocabulary size"),
        ("磁盘空间不足", "磁盘已满，空间不足", "the rank timed out"),
    ],
)
def test_alike_is_nearer_than_unlike(encoder, query, near, far):
    vectors = encoder.encode([query, near, far])

    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


def test_the_name_comes_from_the_hash_of_the_shipped_graph(encoder):
    files = json.loads((MODEL_DIR / PROVENANCE).read_text())["files"]

    for name, digest in files.items():
        assert hashlib.sha256((MODEL_DIR / name).read_bytes()).hexdigest() == digest
    assert encoder.name == model_name() == f"all-MiniLM-L6-v2-trained-int8-{files[GRAPH][:12]}"
    assert model_name("other") not in (model_name(), model_name("another"))


def test_a_missing_encoder_is_one_sentence(tmp_path: Path):
    with pytest.raises(EncoderError, match=r"^The encoder in .* is missing or damaged; \S+"):
        OnnxEncoder(tmp_path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "provenance.json"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, name):
    directory = tmp_path / "model"
    shutil.copytree(MODEL_DIR, directory)
    whole = (directory / name).read_bytes()
    (directory / name).write_bytes(whole[: len(whole) // 2])

    with pytest.raises(EncoderError, match="missing or damaged"):
        OnnxEncoder(directory)


def test_without_the_extra_another_model_asks_for_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # as if not installed
    with pytest.raises(EncoderError, match=r"pip install 'incident-kb\[models\]'"):
        load_encoder("all-mpnet-base-v2")


def test_what_was_encoded_before_is_looked_up_and_the_same(encoder):
    texts = ["NCCL timeout", "no space left", "NCCL timeout"]
    expected = encoder.encode(texts)
    stored = {text_hash(texts[0]): expected[0].tobytes()}
    remembering = CachingEncoder(
        lambda: encoder, encoder.name, lambda keys: {k: stored[k] for k in keys if k in stored}
    )
    np.testing.assert_allclose(remembering.encode(texts), expected, atol=1e-6)
    without = CachingEncoder(lambda: pytest.fail("loaded"), "", lambda _keys: {})
    without.vectors |= remembering.vectors
    np.testing.assert_array_equal(without.encode(texts), remembering.encode(texts))
