"""What is searched for in a backlog: the evidence as the records are asked, and Chinese in more
English words, since most reports of trackers are in English."""

from __future__ import annotations

import re

from index.documents import Query
from kb.diagnosis import to_query
from kb.diagnosis.query import MAX_PASSAGE_CHARACTERS
from kb.evidence import Evidence
from kb.evidence.glossary import has_chinese

_CHINESE = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]+")


def question_of(evidence: Evidence) -> Query:
    """The query for the imports."""
    query = to_query(evidence)
    chinese = [line.masked for line in evidence.lines if has_chinese(line.masked)]
    if not chinese:
        return query
    from kb.conversation.act_model import in_english

    glossed = _CHINESE.sub(" ", in_english("\n".join(chinese)))
    passage = " ".join(glossed.split())[:MAX_PASSAGE_CHARACTERS]
    return Query((*query.lines, glossed), (passage,), query.tags, query.patterns)
