import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from index.encoder import GRAPH, MODEL_DIR, PROVENANCE, OnnxEncoder, load_encoder
from index.errors import EncoderError
from kb.corpus.directories import IncidentDirectories
from kb.incident import Kind

pytest.importorskip("sentence_transformers", reason="needs the extra [models]")
pytest.importorskip("onnx", reason="needs the extra [models]")

from benchmarks import export_encoder, train_encoder

pytestmark = pytest.mark.slow

DOCUMENTS = [
    "NCCL watchdog timeout: one rank died and the others waited for its allreduce.",
    "CUDA out of memory: the batch is too large, or memory is fragmented.",
    "The InfiniBand link of mlx5_0 flaps; replace the cable.",
    "The checkpoint is corrupt because the disk was full while it was written.",
    "The tokenizer's vocabulary does not match the embedding of the model.",
    "A GPU fell off the bus with XID 79; power-cycle the node.",
    "ECC errors that cannot be corrected, XID 48: retire the page or replace the GPU.",
    "The loss became NaN after the learning rate was raised.",
    "The data loader's workers were killed as /dev/shm was too small.",
    "The driver and the CUDA runtime have versions that do not fit.",
    "Ranks cannot connect to the master: the port is closed by a firewall.",
    "DNS does not resolve the host name of the master node.",
    "The pod was evicted because the node ran out of ephemeral storage.",
    "vLLM refuses the request: it is longer than the model's context.",
    "The fabric manager does not run, so that NVSwitch is not initialised.",
    "Tensor parallel size does not divide the number of attention heads.",
    "TLS certificate of the registry has expired; images cannot be pulled.",
    "磁盘已满，无法写入日志。",
]
QUERIES = [
    "Watchdog caught collective operation timeout on rank 5",
    "torch.cuda.OutOfMemoryError: tried to allocate 20 GiB",
    "ib link down up down mlx5_0",
    "unexpected end of file while loading a checkpoint",
    "index out of range in embedding after adding tokens",
    "GPU has fallen off the bus",
    "uncorrectable ECC error encountered",
    "loss is nan",
    "DataLoader worker is killed by signal: Bus error, insufficient shared memory",
    "CUDA driver version is insufficient for CUDA runtime version",
    "connection refused to MASTER_ADDR:29500",
    "Name or service not known",
    "The node was low on resource: ephemeral-storage",
    "This model's maximum context length is 4096 tokens",
    "system not yet initialized, nvidia-fabricmanager is inactive",
    "num_attention_heads must be divisible by tensor_parallel_size",
    "x509: certificate has expired",
    "磁盘空间不足",
    "all other processes hang when a worker crashes",
    "gradient explosion",
]
TEXTS = [*DOCUMENTS, *QUERIES]


@pytest.fixture(scope="module")
def source() -> Path:
    return export_encoder.find_source()


@pytest.fixture(scope="module")
def remade(tmp_path_factory):
    directory = tmp_path_factory.mktemp("encoder")
    return directory, export_encoder.export(directory)


@pytest.fixture(scope="module")
def shipped():
    return load_encoder().encode(TEXTS)


@pytest.fixture(scope="module")
def reference(source):
    return load_encoder(str(source.parent)).encode(TEXTS)


def test_the_source_is_the_one_that_was_promised(source, remade):
    digest = hashlib.sha256(source.read_bytes()).hexdigest()

    assert remade[1]["source"]["sha256"] == {source.name: digest}


def test_another_source_stops_the_export(monkeypatch, tmp_path):
    monkeypatch.setattr(export_encoder, "SOURCE_SHA256", "0" * 64)

    with pytest.raises(EncoderError, match="SHA-256"):
        export_encoder.export(tmp_path)
    assert not [*tmp_path.iterdir()]


def test_it_agrees_with_sentence_transformers(remade):
    agreement = remade[1]["cosine_to_source"]

    assert agreement["sentences"] >= 200
    assert agreement["float32"]["min"] >= 0.9999
    assert agreement["int8"]["min"] >= 0.98
    assert agreement["int8"]["mean"] >= 0.99


def test_equal_weights_give_equal_bytes(remade, source):
    again = export_encoder.build(export_encoder.Int8Graph(export_encoder.load_file(source)))

    assert again.SerializeToString() == (remade[0] / GRAPH).read_bytes()


def nearest(vectors):
    return np.argmax(vectors[len(DOCUMENTS) :] @ vectors[: len(DOCUMENTS)].T, axis=1)


def test_it_finds_what_sentence_transformers_finds(remade, reference):
    found = nearest(OnnxEncoder(remade[0]).encode(TEXTS))

    assert (found == nearest(reference)).mean() >= 0.9


def test_the_shipped_files_are_those_of_the_provenance():
    provenance = json.loads((MODEL_DIR / PROVENANCE).read_text(encoding="utf-8"))

    assert provenance["cosine_to_source"]["int8"]["min"] >= 0.98
    assert provenance["training"]["records"] > 0
    for name, digest in provenance["files"].items():
        assert hashlib.sha256((MODEL_DIR / name).read_bytes()).hexdigest() == digest


def test_the_shipped_encoder_knows_the_field_better_than_the_plain_one(shipped, reference):
    asked = QUERIES[: len(DOCUMENTS)]
    right = np.arange(len(asked))

    plain, taught = (
        (nearest(vectors)[: len(asked)] == right).sum() for vectors in (reference, shipped)
    )
    assert taught >= plain


def test_training_brings_the_texts_of_a_record_together(tmp_path, monkeypatch):
    monkeypatch.setattr(train_encoder, "PAIRS_AN_EPOCH", 4)  # a few batches show it
    monkeypatch.setattr(train_encoder, "LONGEST_TOKENS", 32)
    records = [one for one in IncidentDirectories().load()[0] if one.kind is Kind.INCIDENT][:32]
    texts = [text for one in records for text in (one.title, one.header.aliases[-1])]
    model = train_encoder.train(records)
    model.save(str(tmp_path / "trained"))
    (tmp_path / "trained" / export_encoder.TRAINING).write_text('{"records": 32}')

    provenance = export_encoder.export(tmp_path / "encoder", tmp_path / "trained")

    assert provenance["cosine_to_source"]["int8"]["min"] >= 0.98
    assert provenance["training"]["records"] == 32
    plain, taught = (
        (vectors[::2] * vectors[1::2]).sum(axis=1).mean()
        for vectors in (
            load_encoder(str(export_encoder.find_source().parent)).encode(texts),
            OnnxEncoder(tmp_path / "encoder").encode(texts),
        )
    )
    assert taught > plain + 0.05


def test_a_model_that_does_not_exist_is_one_sentence(tmp_path):
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load_encoder(str(tmp_path))
