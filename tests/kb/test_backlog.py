"""Leads out of imported reports: by words and by meaning, merged, quoted, and none by force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from index.encoder import Encoder
from kb.backlog import Backlog, find_leads
from kb.backlog.importing import encode_missing
from kb.backlog.leads import SHOW_BESIDE_AT, SHOW_LEADS_AT
from kb.backlog.library import path_of
from kb.backlog.model import Post, Report, Resolution, Role, Thread
from kb.backlog.report import to_report
from kb.backlog.store import BacklogStore, Filed
from kb.corpus.base import KnowledgeBase
from kb.diagnosis import diagnose
from kb.errors import KbError
from kb.lead import Lead
from kb.log import Log

BUCKET = Report(
    id="bucket",
    source="issues.json#7",
    title="Checkpoint upload to the object store stops at 5 GiB",
    symptom="Since we doubled the model, saving the shards to the bucket ends with an error.",
    lines=("botocore.exceptions.ClientError: EntityTooLarge when calling the PutObject operation",),
    environment=("pytorch 2.4.0",),
    url="https://tracker.example/team/train/issues/7",
    opened=datetime(2025, 3, 1, tzinfo=UTC),
    resolution=Resolution("Use multipart uploads: set `multipart_threshold`.", Role.MAINTAINER),
    resolved=True,
)
OTHERS = (
    Report(id="taste", source="issues.json#8", title="Dark theme for the dashboard",
           symptom="White hurts my eyes when I look at the loss curves at night."),
    Report(id="tokens", source="issues.json#9", title="Tokenizer drops the last space of a prompt",
           symptom="Decoding what was encoded gives another text than before."),
    Report(id="quota", source="faq.md#2", title="训练任务排队很久",
           symptom="作业一直在队列里等待，配额用完了，节点是空闲的。",
           resolution=Resolution("把配额调大，或换一个队列。", Role.MAINTAINER), resolved=True),
)  # fmt: skip


def filed(report: Report, *, identity: str = "", digest: str = "1") -> Filed:
    return Filed(
        report,
        identity or report.url or report.source,
        report.source.partition("#")[0],
        report.source.partition("#")[2],
        report.duplicate_of or "",
        digest,
    )


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without imports."""
    monkeypatch.setenv("KB_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def encoder(knowledge: KnowledgeBase) -> Encoder:
    return knowledge.encoder


def fill(name: str, reports: Sequence[Report], encoder: Encoder | None = None) -> Path:
    with BacklogStore.create(path_of(name)) as store:
        store.add([filed(report) for report in reports])
        if encoder:
            encode_missing(store, encoder, lambda _done, _total: None)
        return store.path


class Asking:
    """Asks the imports what the records leave open."""

    def __init__(self, knowledge: KnowledgeBase) -> None:
        self.said: list[str] = []
        self._knowledge = knowledge
        self._backlog = Backlog(self.said.append)

    def __call__(self, text: str) -> tuple[Lead, ...]:
        evidence = diagnose(Log.from_text(text), self._knowledge).evidence
        return find_leads(evidence, self._backlog, self._knowledge.encoder)

    def close(self) -> None:
        self._backlog.close()


@pytest.fixture
def leads(data: Path, knowledge: KnowledgeBase) -> Iterator[Asking]:
    asking = Asking(knowledge)
    yield asking
    asking.close()


def test_a_pasted_error_leads_to_its_report_and_the_quoted_resolution(leads: Asking) -> None:
    fill("team", [BUCKET, *OTHERS])
    (lead, *_rest) = leads(BUCKET.lines[0])
    assert (lead.id, lead.backlog, lead.source) == ("bucket", "team", "issues.json#7")
    assert lead.fix == "Use multipart uploads: set `multipart_threshold`."
    assert (lead.resolved, lead.fix_by, lead.fix_from) == (True, "maintainer", None)
    assert lead.quote == BUCKET.lines[0]
    assert lead.url == BUCKET.url


def test_other_words_lead_to_it_by_their_meaning(leads: Asking, encoder: Encoder) -> None:
    fill("team", [BUCKET, *OTHERS], encoder)
    (lead, *_rest) = leads(
        "uploading large checkpoint shards of the model ends with an error, object too big"
    )
    assert lead.id == "bucket"


def test_a_line_in_the_middle_of_a_long_log_leads_to_its_report(leads: Asking) -> None:
    calm = "".join(f"loading shard {n} of 40\n" for n in range(40))
    story = f"The server ends after a while.\n```\n{calm}slot 3: cache defragmentation\n{calm}```\n"
    thread = Thread("issues.json#11", "Server ends at night", (Post(story),))
    report = to_report(thread, "team")
    assert report is not None
    fill("team", [report, *OTHERS])
    (lead, *_rest) = leads("slot 7: cache defragmentation, then the process is gone")
    assert lead.source == "issues.json#11"


@pytest.mark.parametrize(
    "text",
    ["任务一直排队，配额不够，但是节点空闲", "昨晚提交的作业今早还没跑起来，配额也没超"],
)
def test_chinese_finds_chinese(leads: Asking, text: str) -> None:
    fill("team", [BUCKET, *OTHERS])
    (lead, *_rest) = leads(text)
    assert lead.id == "quota"


@pytest.mark.parametrize(
    "text",
    [
        "how do I get a refund for my flight",
        "怎么做红烧肉",
        "nginx: [emerg] unknown directive gzip_on",
        "the object store wants another checksum algorithm for each upload of the nightly backup",
        "the object store denies the upload: SignatureDoesNotMatch, clock of the node is wrong",
    ],
)
def test_what_is_about_something_else_has_no_lead(
    leads: Asking, encoder: Encoder, text: str
) -> None:
    fill("team", [BUCKET, *OTHERS], encoder)
    assert leads(text) == ()


def test_no_import_no_lead(leads: Asking) -> None:
    assert leads(BUCKET.lines[0]) == ()


def again(report: Report, number: int, **other: object) -> Report:
    """The same case, reported once more."""
    import msgspec

    url = f"https://tracker.example/team/train/issues/{number}"
    new = {"id": f"again-{number}", "source": f"issues.json#{number}", "url": url, **other}
    return msgspec.structs.replace(report, **new)


def test_the_same_case_is_one_lead_that_names_all(leads: Asking) -> None:
    unsolved = again(BUCKET, 20, resolution=None, resolved=False)
    fill("team", [unsolved, BUCKET, again(BUCKET, 21)])
    (lead,) = leads(BUCKET.lines[0])
    assert lead.seen == 3
    assert {lead.url, *lead.also} == {unsolved.url, BUCKET.url, again(BUCKET, 21).url}
    assert lead.resolved
    assert lead.fix == "Use multipart uploads: set `multipart_threshold`."


def test_two_remedies_are_two_leads(leads: Asking) -> None:
    other = again(BUCKET, 20, resolution=Resolution("Update boto to 1.35.", Role.REPORTER))
    fill("team", [BUCKET, other])
    assert {lead.fix for lead in leads(BUCKET.lines[0])} == {
        "Use multipart uploads: set `multipart_threshold`.",
        "Update boto to 1.35.",
    }


def test_a_duplicate_leads_to_the_resolution_of_the_other(leads: Asking) -> None:
    vague = Report(
        id="vague",
        source="issues.json#30",
        title="Saving fails for the 70B since yesterday on the new partition",
        symptom="The save hook raises on rank 0 only, nothing else changed on the partition.",
        duplicate_of="7",
    )
    fill("team", [BUCKET, vague])
    (lead, *_rest) = leads("saving fails for 70B since yesterday, save hook raises on rank 0 only")
    assert lead.id == "vague"
    assert lead.fix == "Use multipart uploads: set `multipart_threshold`."
    assert lead.fix_from == BUCKET.url


def test_a_changed_report_gives_way_to_the_new_one(leads: Asking) -> None:
    fill("team", [BUCKET, *OTHERS])
    fill("team", [again(BUCKET, 7, resolution=None, resolved=False)])
    (lead, *_rest) = leads(BUCKET.lines[0])
    assert (lead.id, lead.fix, lead.seen) == ("again-7", None, 1)


def test_many_small_batches_are_found_like_one_large(leads: Asking) -> None:
    names = [f"{first}{second}rbin" for first in "bdfgklmnp" for second in "aeiouy"]
    named = [
        again(BUCKET, n, title=f"Plugin {name} is lost at a restart of the {name} daemon", lines=())
        for n, name in enumerate(names, 100)
    ]
    for report in named:
        fill("small", [report])
    fill("large", named)
    asked = f"plugin {names[23]} is lost at a restart of the {names[23]} daemon"
    (both, *_rest) = leads(asked)
    assert (both.source, both.seen) == ("issues.json#123", 1), "one report, imported twice"
    path_of("small").unlink()
    (large, *_rest) = leads(asked)
    assert (large.backlog, large.source) == ("large", both.source)
    assert large.score == pytest.approx(both.score, abs=0.05)


def test_a_damaged_import_is_told_once_and_the_others_are_searched(leads: Asking) -> None:
    broken = fill("broken", [BUCKET])
    broken.write_bytes(b"garbage" * 1000)
    fill("team", [BUCKET])
    assert [lead.backlog for lead in leads(BUCKET.lines[0])] == ["team"]
    leads(BUCKET.lines[0])
    (said,) = leads.said
    assert "`broken`" in said
    assert "kb import --forget broken" in said


def test_a_damaged_report_is_told_and_disturbs_nobody(leads: Asking) -> None:
    import sqlite3

    fill("team", [BUCKET])
    with sqlite3.connect(path_of("team")) as connection:
        connection.execute("UPDATE reports SET body = x'00'")
    connection.close()
    assert leads(BUCKET.lines[0]) == ()
    assert "damaged" in leads.said[0]


def test_nothing_below_the_bar_is_shown(leads: Asking) -> None:
    fill("team", [BUCKET, *OTHERS])
    found = leads("upload of the bucket fails")
    assert all(lead.score >= SHOW_BESIDE_AT for lead in found)
    assert all(lead.score >= SHOW_LEADS_AT for lead in found[:1])


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "x" * 65, "ü", "a\nb"])
def test_a_name_that_is_no_file_name_is_refused(data: Path, name: str) -> None:
    with pytest.raises(KbError, match="is no name for an import"):
        path_of(name)


def test_files_are_for_the_user_alone(data: Path) -> None:
    path = fill("team", [BUCKET])
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
