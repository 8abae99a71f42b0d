"""Text to vectors: the shipped encoder, or a sentence-transformers model by name or path.

The shipped one is all-MiniLM-L6-v2 in int8, run by ONNX Runtime; `make encoder` makes it. NumPy is
imported first and at the top: two threads that import it at once break it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from index.errors import EncoderError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_DIR = Path(__file__).parent / "model"
GRAPH = "model.onnx"
TOKENIZER = "tokenizer.json"
PROVENANCE = "provenance.json"

_MAX_BATCH_TEXTS = 4
"""Texts per run of the model: larger batches hold more padding."""
_MAX_THREADS = 4
"""Threads that encode, on a machine with more cores too: other programs run on it."""


class Encoder(Protocol):
    """Anything that turns texts into vectors."""

    @property
    def name(self) -> str:
        """What tells its vectors from those of another model; a key for caches."""

    @property
    def dim(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per text: (n, dim)."""


def load_encoder(model: str | None = None) -> Encoder:
    """Load the shipped encoder or, given its name or path, a sentence-transformers model.

    Raises:
        EncoderError: it is missing or damaged, or sentence-transformers is not installed.
    """
    return OnnxEncoder() if model is None else SentenceTransformerEncoder(model)


def model_name(model: str | None = None) -> str:
    """Return the name that `load_encoder(model)` would have, without loading it.

    Raises:
        EncoderError: the shipped encoder is missing or damaged.
    """
    return _read_name(MODEL_DIR) if model is None else f"sentence-transformers:{model}"


class OnnxEncoder:
    """The shipped encoder, in a directory that `make encoder` wrote. Threads may share it.

    A vector does not depend on the other texts of its batch: int8 steps are set per token.
    """

    def __init__(self, directory: Path = MODEL_DIR) -> None:
        # ONNX Runtime sends telemetry unless it is disabled before the import.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        # The model takes the time: threads for the tokens are only some more that can fail.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import onnxruntime
        from tokenizers import Tokenizer

        self.name = _read_name(directory)
        try:
            provenance = _read_provenance(directory)
            _check(directory, provenance["files"])
            encoder = provenance["encoder"]
            self.dim: int = encoder["dimension"]
            self._tokenizer = Tokenizer.from_file(str(directory / TOKENIZER))
            self._tokenizer.enable_truncation(encoder["max_length"])
            self._tokenizer.no_padding()
            self._pool = ThreadPoolExecutor(_threads(), "encode")
            self._session = onnxruntime.InferenceSession(
                str(directory / GRAPH), _session_options(), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # tokenizers and onnxruntime raise bare ones
            raise _damaged(directory) from error

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per text: (n, dim). A text is cut at 256 tokens."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(tokens), self.dim), np.float32)

        def run(rows: list[int]) -> None:
            (vectors[rows],) = self._session.run(None, _padded([tokens[row] for row in rows]))

        list(self._pool.map(run, _batches(tokens)))
        return vectors


class RepeatingEncoder:
    """Remembers the last texts: each tier gets the same question, which may have been encoded
    ahead. Threads may share it."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.dim = encoder.name, encoder.dim
        self._encoder = encoder
        self._last: tuple[tuple[str, ...], NDArray[np.float32]] | None = None
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per text: (n, dim). Waits where another thread encodes."""
        asked = tuple(texts)
        with self._lock:
            if self._last is None or self._last[0] != asked:
                self._last = asked, self._encoder.encode(texts)
            return self._last[1]


class SentenceTransformerEncoder:
    """Any sentence-transformers model, by name or path."""

    def __init__(self, model: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EncoderError(
                f"The model {model} needs sentence-transformers;"
                " install it with: pip install 'incident-kb[models]'"
            ) from error
        try:
            self._model = SentenceTransformer(model, device="cpu")
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise EncoderError(f"The model {model} cannot be loaded: {reason}") from error
        self.name = model_name(model)
        self.dim = len(self._model.encode("", show_progress_bar=False))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length per text: (n, dim)."""
        vectors = self._model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, np.float32).reshape(len(texts), self.dim)


def _session_options() -> Any:
    """Session options: fast to open, one thread per session."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # A core each for several batches is faster than several cores for one.
    options.intra_op_num_threads = 1
    # The graph already has the operators that run.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Planning which buffers to share takes longer than all else; the arena shares them anyway.
    options.enable_mem_reuse = False
    return options


def _threads() -> int:
    return min(os.cpu_count() or 1, _MAX_THREADS)


def _batches(tokens: list[list[int]]) -> Iterator[list[int]]:
    """Yield row numbers, longest texts first: texts of like length together, so that little is
    padding, and a few texts spread over the threads."""
    order = sorted(range(len(tokens)), key=lambda row: -len(tokens[row]))
    size = min(_MAX_BATCH_TEXTS, -(-len(order) // _threads())) or 1
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _padded(tokens: list[list[int]]) -> dict[str, NDArray[np.int64]]:
    """Return the inputs of the graph: ids and mask, both (batch, longest)."""
    lengths = np.array([len(ids) for ids in tokens])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate(tokens)
    return {"input_ids": ids, "attention_mask": mask.astype(np.int64)}


def _read_provenance(directory: Path) -> dict[str, Any]:
    return dict(json.loads((directory / PROVENANCE).read_text(encoding="utf-8")))


def _read_name(directory: Path) -> str:
    """Return the model's name with the hash that the export wrote down."""
    try:
        provenance = _read_provenance(directory)
        return f"{provenance['model']}-{provenance['files'][GRAPH][:12]}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(directory) from error


def _check(directory: Path, files: Mapping[str, str]) -> None:
    """Check the files, because corrupt weights would silently give wrong answers.

    Raises:
        ValueError: a file is not the one that was exported.
    """
    for name in (GRAPH, TOKENIZER):
        if file_sha256(directory / name) != files[name]:
            raise ValueError(f"wrong SHA-256 of {name}")


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(directory: Path) -> EncoderError:
    return EncoderError(f"The encoder in {directory} is missing or damaged; reinstall incident-kb")
