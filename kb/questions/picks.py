"""Options of which one is picked: what several hypotheses lead to, and "none of these"."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

from kb.questions.belief import Option

NONE_OF_THESE = "none of these"


def one_of(
    names: Sequence[str],
    needed: Mapping[str, Set[str]],
    *,
    if_needed: float,
    if_not: float,
) -> tuple[Option, ...]:
    """One option for each name and one for none; `needed` has the names that each hypothesis leads
    to.

    `if_needed` is the likelihood that one of them is picked under such a hypothesis, `if_not` that
    any is picked under another one.
    """
    wanted = frozenset(names)
    likelihoods = {
        hypothesis: _picks(names, needs, if_needed)
        for hypothesis, needs in needed.items()
        if needs & wanted
    }
    otherwise = [if_not / len(names)] * len(names) + [1 - if_not]
    return tuple(
        Option(text, {name: picks[index] for name, picks in likelihoods.items()}, otherwise[index])
        for index, text in enumerate([*names, NONE_OF_THESE])
    )


def _picks(names: Sequence[str], needs: Collection[str], if_needed: float) -> list[float]:
    """Likelihood of picking each name, or none, where some of them are needed."""
    mine = [name in needs for name in names]
    wrong = (1 - if_needed) / (len(names) + 1 - sum(mine))
    return [if_needed / sum(mine) if is_mine else wrong for is_mine in mine] + [wrong]
