"""What exports of trackers, documents, tables, mail and chats are read as."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.backlog.model import Role, Thread
from kb.backlog.sources import Skipped, Why, guess_columns, read_threads, sources_below

ISSUE: dict[str, Any] = {
    "number": 7,
    "title": "all_reduce hangs on two nodes",
    "body": "It hangs after the first step.",
    "state": "closed",
    "state_reason": "completed",
    "html_url": "https://github.com/acme/train/issues/7",
    "user": {"login": "anna"},
    "created_at": "2024-05-01T10:00:00Z",
    "closed_at": "2024-05-02T10:00:00Z",
    "labels": [{"name": "bug"}],
    "comments": 2,
}
COMMENTS = [
    {
        "issue_url": "https://api.github.com/repos/acme/train/issues/7",
        "user": {"login": "bert"},
        "author_association": "MEMBER",
        "body": "Set NCCL_IB_DISABLE=1.",
        "created_at": "2024-05-01T11:00:00Z",
    },
    {
        "issue_url": "https://api.github.com/repos/acme/train/issues/7",
        "user": {"login": "anna"},
        "author_association": "NONE",
        "body": "That worked, thanks!",
        "created_at": "2024-05-01T12:00:00Z",
    },
]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def threads(path: Path, mapping: dict[str, str] | None = None) -> list[Thread]:
    return [one for one in read_threads(path, mapping) if isinstance(one, Thread)]


def skipped(path: Path) -> Iterator[Skipped]:
    return (one for one in read_threads(path) if isinstance(one, Skipped))


def only(path: Path) -> Thread:
    (thread,) = threads(path)
    return thread


def is_case(thread: Thread) -> None:
    """The issue above, whatever the shape in which it was exported."""
    assert thread.title == ISSUE["title"]
    assert [post.text for post in thread.posts] == [
        "It hangs after the first step.",
        "Set NCCL_IB_DISABLE=1.",
        "That worked, thanks!",
    ]
    assert [post.role for post in thread.posts] == [
        Role.REPORTER,
        Role.MAINTAINER,
        Role.REPORTER,
    ]
    assert thread.posts[2].time is not None
    assert thread.source.endswith("#7")


GH = {
    "number": 7,
    "title": ISSUE["title"],
    "body": ISSUE["body"],
    "state": "CLOSED",
    "stateReason": "COMPLETED",
    "url": ISSUE["html_url"],
    "author": {"login": "anna"},
    "createdAt": "2024-05-01T10:00:00Z",
    "comments": [
        {
            "author": {"login": comment["user"]["login"]},
            "authorAssociation": comment["author_association"],
            "body": comment["body"],
            "createdAt": comment["created_at"],
        }
        for comment in COMMENTS
    ],
}
GRAPHQL = {
    "data": {
        "repository": {
            "issues": {
                "edges": [{"node": {**GH, "comments": {"nodes": GH["comments"]}}}],
            }
        }
    }
}


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([{**ISSUE, "comments": COMMENTS}]),
        json.dumps({**ISSUE, "comments": COMMENTS}) + "\n",
        json.dumps([{**ISSUE, "comments": COMMENTS}]) + "[]" + json.dumps([]),
        json.dumps([GH]),
        json.dumps(GRAPHQL, indent=1),
    ],
    ids=["array", "lines", "pages", "gh", "graphql"],
)
def test_an_issue_is_read_in_every_shape(tmp_path: Path, content: str) -> None:
    is_case(only(write(tmp_path, "export.json", content)))


def test_comments_may_lie_in_a_file_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, "issues.json", json.dumps([ISSUE]))
    write(tmp_path, "comments.json", json.dumps(COMMENTS))
    is_case(only(tmp_path))
    (source,) = sources_below(tmp_path)
    assert not isinstance(source, Skipped)
    write(tmp_path, "comments.json", json.dumps(COMMENTS[:1]))
    (changed,) = sources_below(tmp_path)
    assert not isinstance(changed, Skipped)
    assert changed.stamp != source.stamp


def test_changes_and_bots_are_skipped_and_said(tmp_path: Path) -> None:
    change = {**ISSUE, "number": 8, "pull_request": {"url": "x"}}
    bot = {**ISSUE, "number": 9, "user": {"login": "dependabot[bot]", "type": "Bot"}}
    path = write(tmp_path, "issues.json", json.dumps([ISSUE, change, bot]))
    assert len(threads(path)) == 1
    assert [one.why for one in skipped(path)] == [Why.PULL_REQUEST, Why.BOT]


def test_a_broken_line_does_not_take_the_others_away(tmp_path: Path) -> None:
    lines = [json.dumps(ISSUE), '{"number": 8, "title', json.dumps({**ISSUE, "number": 9})]
    path = write(tmp_path, "issues.jsonl", "\n".join(lines))
    assert [thread.source for thread in threads(path)] == ["issues.jsonl#7", "issues.jsonl#9"]
    assert [str(one) for one in skipped(path)] == ["issues.jsonl#2: cannot be read (no JSON)"]


def test_what_is_no_report_among_reports_is_counted(tmp_path: Path) -> None:
    issue = {"number": 1, "title": "It stalls", "body": "after an upgrade", "state": "closed"}
    path = tmp_path / "issues.json"
    path.write_text(json.dumps([issue, None, 5, "x", {}, {"number": 2, "title": None}]))
    assert [(one.source, one.why) for one in skipped(path)] == [
        (f"issues.json#{place}", Why.NO_REPORTS) for place in range(2, 7)
    ]


def test_gitlab_jira_and_status_pages(tmp_path: Path) -> None:
    gitlab = {
        "iid": 3,
        "title": "Job stuck",
        "description": "The job does not start.",
        "state": "closed",
        "web_url": "https://gitlab.example.org/a/b/-/issues/3",
        "author": {"username": "anna"},
        "notes": [
            {"body": "closed", "system": True, "author": {"username": "anna"}},
            {"body": "Raise the quota.", "author": {"username": "bert"}},
        ],
    }
    jira = {
        "issues": [
            {
                "key": "GPU-12",
                "fields": {
                    "summary": "Xid 79 on boot",
                    "description": "The card falls off the bus.",
                    "status": {"name": "Closed"},
                    "resolution": {"name": "Fixed"},
                    "comment": {"comments": [{"body": "Reseated the card."}]},
                },
            }
        ]
    }
    page = {
        "incidents": [
            {
                "id": "ab",
                "name": "Slow storage",
                "status": "resolved",
                "created_at": "2024-01-02T00:00:00Z",
                "incident_updates": [{"body": "We restarted the metadata server."}],
            }
        ]
    }
    write(tmp_path, "gitlab.json", json.dumps([gitlab]))
    write(tmp_path, "jira.json", json.dumps(jira))
    write(tmp_path, "status.json", json.dumps(page))
    found = {thread.title: thread for thread in threads(tmp_path)}
    assert [post.text for post in found["Job stuck"].posts][1:] == ["Raise the quota."]
    assert found["Xid 79 on boot"].state == "fixed"
    assert found["Xid 79 on boot"].source == "jira.json#GPU-12"
    assert found["Xid 79 on boot"].posts[1].text == "Reseated the card."
    assert found["Slow storage"].posts[1].text == "We restarted the metadata server."


MIRROR = """### 🐛 [#12](https://github.com/acme/train/issues/12) - Crash at start

| **Author** | `anna` |
| :--- | :--- |
| **State** | ❌ **Closed** |
| **Created** | 2025-03-22 |

---

#### Description

It crashes.

---

#### 💬 Conversation

👤 **bert** commented the **2025-03-23** at **13:11:13**:<br>

Update the driver.

> 👤 **anna** replied the **2025-03-23** at **14:00:00**:<br>
> Thanks, it works now.
"""


def test_a_mirror_in_markdown_is_a_thread(tmp_path: Path) -> None:
    thread = only(write(tmp_path, "issues/12.md", MIRROR))
    assert thread.title == "Crash at start"
    assert thread.url == "https://github.com/acme/train/issues/12"
    assert thread.state == "closed"
    assert [(post.role, post.text) for post in thread.posts] == [
        (Role.REPORTER, "It crashes."),
        (Role.OTHER, "Update the driver."),
        (Role.REPORTER, "Thanks, it works now."),
    ]


FAQ = """# FAQ

## Training

### Q1: Why does training hang?

```text
# Q: not a question, but a comment in a log
```

A: The ranks disagree. Restart all of them.

**Q**. _What does error 802 mean?_

**A**. The fabric manager does not run.
Start it.

## 问题2：显存不足怎么办？

减小 batch size。
"""


def test_questions_and_answers_are_reports(tmp_path: Path) -> None:
    found = threads(write(tmp_path, "faq.md", FAQ))
    answers = {thread.title: thread.posts[-1] for thread in found}
    assert list(answers) == [
        "Why does training hang?",
        "What does error 802 mean?",
        "显存不足怎么办？",
    ]
    assert all(post.accepted for post in answers.values())
    assert answers["What does error 802 mean?"].text.endswith("Start it.")
    assert answers["显存不足怎么办？"].text == "减小 batch size。"
    assert "comment in a log" in found[0].posts[0].text


@pytest.mark.parametrize(
    "text",
    [
        "# HCCL超时\n\n## 问题现象描述\n\n关键词EI0002\n\n"
        "## 原因分析\n\n一张卡异常退出\n\n## 解决措施\n\n重启任务\n",
        "# HCCL超时\n\n**问题现象**：\n\n关键词EI0002\n\n"
        "**原因**：一张卡异常退出\n\n**解决方法**：重启任务\n",
        "---\ntitle: HCCL超时\n---\n<!-- none -->\n"
        "- 现象：关键词EI0002\n- 原因：一张卡异常退出\n- 解决：重启任务\n",
        "HCCL超时\n========\n\n现象\n----\n\n关键词EI0002\n\n"
        "原因\n----\n\n一张卡异常退出\n\n解决\n----\n\n重启任务\n",
        "<html><body><h1>HCCL超时</h1><h2>现象</h2><p>关键词EI0002</p><h2>原因</h2>"
        "<p>一张卡异常退出</p><h2>解决</h2><p>重启任务</p><script>x</script></body></html>",
    ],
    ids=["headings", "bold", "front matter", "underlined", "html"],
)
def test_the_parts_of_a_report_are_told_by_their_names(tmp_path: Path, text: str) -> None:
    thread = only(write(tmp_path, "hccl.html" if text.startswith("<html") else "hccl.md", text))
    assert thread.title == "HCCL超时"
    assert [(post.text, post.accepted) for post in thread.posts] == [
        ("关键词EI0002", False),
        ("一张卡异常退出", False),
        ("重启任务", True),
    ]


def test_a_logbook_is_cut_at_its_dates(tmp_path: Path) -> None:
    text = (
        "# Chronicles\n\n## 2022-03-21\n\nA GPU crashed, we lost seven hours.\n\n"
        "## small spikes on resume (2023-05-19)\n\nThe loss has spikes after each restart.\n\n"
        "### optimizer\n\nThe step counter was wrong.\n"
    )
    found = threads(write(tmp_path, "chronicles.md", text))
    assert [thread.title for thread in found] == [
        "Chronicles: 2022-03-21",
        "small spikes on resume (2023-05-19)",
    ]
    assert "step counter" in found[1].posts[0].text
    assert found[0].opened is not None
    assert found[0].opened.year == 2022


def test_the_news_of_a_status_page_follow_one_another(tmp_path: Path) -> None:
    page = """#### January 2, 2020: Storage failure

**Resolved**: It has been resolved by rebooting two servers.
January 2, 17:00

**Update**: We are on it.

**Notice**: Users cannot log in.
January 2, 16:00
"""
    posts = only(write(tmp_path, "status.md", page)).posts
    assert [post.text.partition("\n")[0] for post in posts] == [
        "**Notice**: Users cannot log in.",
        "**Update**: We are on it.",
        "**Resolved**: It has been resolved by rebooting two servers.",
    ]
    assert posts[0].role is Role.REPORTER


def test_columns_are_guessed_and_may_be_named(tmp_path: Path) -> None:
    header = ["Summary", "Issue id", "Status", "Resolution", "Created", "Description", "Comment"]
    row = ["Node down", "41", "Closed", "Fixed", "30/Sep/21 17:20", 'It says "no"', "Replaced it."]
    columns = guess_columns(header, [row])
    assert columns["title"] == "Summary"
    assert "resolution" not in columns  # its cells are states, not words of a person
    assert columns["state"] == "Resolution"
    quoted = ",".join('"' + cell.replace('"', '""') + '"' for cell in row)
    path = write(tmp_path, "jira.csv", ",".join(header) + "\n" + quoted + "\n")
    thread = only(path)
    assert (thread.title, thread.state, thread.source) == ("Node down", "fixed", "jira.csv#41")
    assert [post.text for post in thread.posts] == ['It says "no"', "Replaced it."]
    (mapped,) = threads(path, {"title": "Description"})
    assert mapped.title == 'It says "no"'
    (problem,) = read_threads(path, {"title": "Subject"})
    assert str(problem) == "jira.csv: cannot be read (it has no column Subject)"


def test_fields_of_objects_may_be_named_as_well(tmp_path: Path) -> None:
    tickets = {"result": [{"Headline": "No GPU", "What": "It fails", "state": "closed", "sys": 1}]}
    path = write(tmp_path, "tickets.json", json.dumps(tickets))
    assert threads(path) == []
    (thread,) = threads(path, {"title": "Headline", "body": "What"})
    assert (thread.title, thread.posts[0].text) == ("No GPU", "It fails")


def test_tickets_with_close_notes_have_an_answer(tmp_path: Path) -> None:
    text = (
        "number\tshort_description\tdescription\tclose_notes\n"
        "INC1\tNo GPU\tnvidia-smi fails\tReinstalled the driver\n"
    )
    thread = only(write(tmp_path, "now.tsv", text))
    assert thread.posts[-1].accepted
    assert thread.posts[-1].text == "Reinstalled the driver"


BUGS = """<bug id='1' author='anna' closed_time='2020-04-20T01:39:12Z'>
<summary>Loss is NaN</summary><description>
 &lt;x-h:h2&gt;Bug&lt;/x-h&gt;
 &lt;x-code&gt;loss = nan
 &lt;/x-code&gt;
</description>
<comments>
<comment id='1' author='bert' date='2020-04-18T01:39:12Z'>Lower the rate.</comment>
</comments>
</bug>
<bug id='2' author='carl'><summary>Other</summary><description>text</description></bug>
"""


def test_fragments_of_xml_without_a_root(tmp_path: Path) -> None:
    first, second = threads(write(tmp_path, "bugs.xml", BUGS))
    assert "```\nloss = nan" in first.posts[0].text
    assert (first.posts[1].text, first.posts[1].role) == ("Lower the rate.", Role.OTHER)
    assert second.source == "bugs.xml#2"


def test_a_feed_of_jira(tmp_path: Path) -> None:
    feed = (
        '<?xml version="1.0" encoding="UTF-8"?><rss><channel><title>Jira</title><item>'
        "<title>[GPU-3] ECC errors</title><link>https://jira.example.org/GPU-3</link>"
        "<key>GPU-3</key><summary>ECC errors</summary><status>Closed</status>"
        "<description>&lt;p&gt;Row remapping &lt;b&gt;failed&lt;/b&gt;&lt;/p&gt;</description>"
        "<comments><comment author='x'>&lt;p&gt;Reset the GPU.&lt;/p&gt;</comment></comments>"
        "</item></channel></rss>"
    )
    thread = only(write(tmp_path, "jira.xml", feed))
    assert thread.posts[0].text == "Row remapping failed"
    assert thread.posts[1].text == "Reset the GPU."
    assert thread.source == "jira.xml#GPU-3"


def test_mail_that_answers_is_one_thread(tmp_path: Path) -> None:
    box = (
        "From anna@example.org Mon Jan  1 10:00:00 2024\nFrom: Anna <anna@example.org>\n"
        "Subject: [gpu] Node 5 is slow\nMessage-ID: <1@x>\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n\n"
        "It is slow.\n\n"
        "From bert@example.org Mon Jan  1 11:00:00 2024\nFrom: Bert <bert@example.org>\n"
        "Subject: Re: [gpu] Node 5 is slow\nIn-Reply-To: <1@x>\nMessage-ID: <2@x>\n\n"
        "Reboot it.\n"
    )
    thread = only(write(tmp_path, "list.mbox", box))
    assert thread.title == "Node 5 is slow"
    assert [(post.text, post.role) for post in thread.posts] == [
        ("It is slow.", Role.REPORTER),
        ("Reboot it.", Role.OTHER),
    ]


def test_the_days_of_a_channel_are_read_together(tmp_path: Path) -> None:
    def said(user: str, text: str, ts: str) -> dict[str, str]:
        root = "1704103200.000100"
        return {"type": "message", "user": user, "text": text, "ts": ts, "thread_ts": root}

    first = [said("U1", "job <https://x.org|17> fails with Xid 79", "1704103200.000100")]
    second = [said("U2", "<@U1> drain the node &amp; reseat the card", "1704189600.000100")]
    write(tmp_path, "ops/2024-01-01.json", json.dumps(first))
    write(tmp_path, "ops/2024-01-02.json", json.dumps(second))
    thread = only(tmp_path)
    assert thread.title == "job https://x.org fails with Xid 79"
    assert thread.posts[1].text == "@someone drain the node & reseat the card"


def test_what_is_no_report_is_said(tmp_path: Path) -> None:
    write(tmp_path, "logo.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    write(tmp_path, "code.py", "def f(): raise ValueError('error')\n")
    write(tmp_path, "config.json", '{"a": {"b": [1, 2]}}')
    write(tmp_path, "query.txt", "== LOG ==\n\nDriver fault     : none\nErrors           : 0\n")
    write(
        tmp_path,
        "template.md",
        "# {{ incident date }}, {{ incident name }}\n\n## Summary\n\ntext\n",
    )
    assert {one.source: one.why for one in skipped(tmp_path)} == {
        "logo.png": Why.NOT_TEXT,
        "code.py": Why.NO_REPORTS,
        "config.json": Why.NO_REPORTS,
        "query.txt": Why.NO_REPORTS,
        "template.md": Why.EMPTY,
    }
