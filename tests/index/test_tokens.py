"""Identifiers survive whole and in parts, English endings fold, Chinese is cut into pairs."""

from __future__ import annotations

import pytest

from index.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ProcessGroupNCCL", {"processgroupnccl", "process", "group", "nccl"}),
        ("btl_tcp_if_include", {"btl_tcp_if_include", "btl", "tcp", "includ"}),
        ("OpType=_ALLGATHER_BASE", {"allgather_base", "allgather", "base"}),
        ("--tp-comm-overlap", {"tp-comm-overlap", "tp", "comm", "overlap"}),
        ("ENABLE_INTRA_NODE_COMM=1", {"enable_intra_node_comm", "intra", "node", "comm"}),
        ("cuda:code_802", {"cuda:code_802", "802"}),
        ("libtorch_cuda.so", {"libtorch_cuda.so", "libtorch", "cuda"}),
    ],
)
def test_identifiers_survive_whole_and_in_parts(text: str, expected: set[str]) -> None:
    assert expected <= set(tokenize(text))


@pytest.mark.parametrize("words", ["hang hangs hanging", "freeze freezes", "crash crashed crashes"])
def test_inflections_are_one_word(words: str) -> None:
    assert len(set(tokenize(words))) == 1


def test_chinese_is_cut_into_pairs_and_latin_beside_it_stays() -> None:
    assert list(tokenize("多机训练NCCL超时")) == ["多机", "机训", "训练", "nccl", "超时"]


def test_long_numbers_and_very_long_words_are_dropped() -> None:
    assert list(tokenize("1234567 " + "x" * 100)) == []


def test_little_words_are_dropped() -> None:
    assert list(tokenize("how do I get the of and")) == []
