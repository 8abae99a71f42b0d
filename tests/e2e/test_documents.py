"""What the documentation says of numbers stands in the files it speaks of."""

from __future__ import annotations

import json
from pathlib import Path


def test_agreement_of_the_encoder_is_the_measured_one() -> None:
    page = Path("docs/performance.md").read_text(encoding="utf-8")
    measured = json.loads(Path("index/model/provenance.json").read_text(encoding="utf-8"))
    cosine = measured["cosine_to_source"]
    assert f"over {cosine['sentences']} sentences" in page
    assert f"{cosine['int8']['min']:.3f} at worst" in page
    assert f"{cosine['int8']['mean']:.3f} on average" in page
