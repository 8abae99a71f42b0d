"""From a thread to a report: what is kept of the story, and what is quoted as its end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kb.backlog.model import Post, Report, Role, Thread
from kb.backlog.people import hidden
from kb.backlog.report import to_report
from kb.backlog.wording import Says, reading

SOLVED, CHANGE, ADVICE = Says.SOLVED, Says.CHANGE, Says.ADVICE
REPORTER, OTHER, MAINTAINER, BOT = Role.REPORTER, Role.OTHER, Role.MAINTAINER, Role.BOT


def report_of(thread: Thread) -> Report:
    report = to_report(thread, "tracker")
    assert report is not None
    return report


def thread(*answers: tuple[Role, str], body: str = "It hangs.", state: str = "closed") -> Thread:
    posts = (Post(body, REPORTER), *(Post(text, role) for role, text in answers))
    return Thread("issues.json#1", "all_reduce hangs on two nodes", posts, state=state)


def end_of(*answers: tuple[Role, str], body: str = "It hangs.", state: str = "closed") -> Report:
    return report_of(thread(*answers, body=body, state=state))


def quote_of(report: Report) -> str | None:
    return report.resolution and report.resolution.quote


@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("Thanks, that worked!", Says.WORKED),
        ("and voila, the problem went away.", Says.WORKED),
        ("Confirmed, this is working on master now", Says.WORKED),
        ("I can't see the error anymore.", Says.WORKED),
        ("I haven't seen the error again.", Says.WORKED),
        ("Ok I did `pip install -U numpy` and that fixed the issue.", SOLVED),
        ("It turned out that the cable was loose.", SOLVED),
        ("Fixed by removing the node without an address.", SOLVED),
        ("升级到 2.1 之后就好了", SOLVED),
        ("#298 is now merged, which addressed it.", CHANGE),
        ("A fix for this has been merged: #1911", CHANGE),
        ("Please upgrade to the latest nightly.", CHANGE),
        ("Don't use `-rtr` for this model.", ADVICE),
        ("可以尝试使用 dos2unix 工具解决", ADVICE),
        ("The fix is working, thank you.", Says.WORKED),
        ("It should work now.", CHANGE),
        ("Use `--foo` rather than `--bar`.", ADVICE),
        ("Still the same error here.", Says.DENIED),
        ("I tried it, but it fails with another message.", Says.DENIED),
        ("Closing due to inactivity.", Says.UNSOLVED),
        ("Duplicate of #12", Says.DUPLICATE),
    ],
)
def test_what_a_sentence_says(sentence: str, says: Says) -> None:
    assert reading(sentence) & says


@pytest.mark.parametrize(
    "sentence",
    [
        "Let me know if that works.",
        "I hope this fixes it.",
        "Did you solve it?",
        "Any updates on this, since the PR was closed without getting merged",
        "It worked fine before, but not any more.",
        "This may be fixed with #974",
        "There was zero change done in #435.",
        "It still works only on my other machine.",
        "请问解决了吗？",
        "The sum is 92307456, which is close to half the size.",
        "It is expected to be resolved by noon.",
        "The nodes will be brought back online within two hours.",
        "We're working hard on getting the storage back up.",
        "Hopefully, the others can be brought back up tomorrow.",
        "**Update**: The login nodes are down.",
        "The problem was first reported around 09:30.",
        "I wonder if the problem was on some node.",
        "You need to give me a way to reproduce it.",
        "This is more a matter of taste rather than of facts.",
        "If you still see this message, ask the vendor of the compiler.",
    ],
)
def test_what_sounds_like_an_end_and_is_none(sentence: str) -> None:
    assert not reading(sentence) & (Says.WORKED | SOLVED | CHANGE | ADVICE)


def test_the_advice_that_worked_is_quoted_not_the_thanks() -> None:
    report = end_of(
        (OTHER, "I have the same problem."),
        (MAINTAINER, "You need to set `NCCL_IB_DISABLE=1` on these cards."),
        (REPORTER, "> You need to set\n\nThanks, that worked!"),
    )
    assert quote_of(report) == "You need to set `NCCL_IB_DISABLE=1` on these cards."
    assert report.resolution is not None
    assert report.resolution.role is MAINTAINER
    assert report.resolved


@pytest.mark.parametrize(
    "thanks",
    [
        "Thanks, using that flag worked for me. Is somebody interested in mending the search?",
        "Please verify whether this has been fixed. I tried and verified that the fix works here.",
        "It looks like the issue is resolved, so I will close it.",
    ],
)
def test_who_points_to_a_remedy_does_not_tell_it(thanks: str) -> None:
    advice = "I had this too ... try using `-DUSE_RING=1 -DRING_PATH=/opt/ring`"
    assert quote_of(end_of((OTHER, advice), (OTHER, thanks))) == advice
    assert quote_of(end_of((OTHER, "I have this too."), (OTHER, thanks))) is None


def test_an_advice_with_a_condition_is_one() -> None:
    advice = (
        "Yes, it is safe to ignore. Try adding `-DCMAKE_BUILD_TYPE=Release`."
        " If you still see this message, ask the vendor."
    )
    assert quote_of(end_of((OTHER, advice))) == advice


def test_a_first_post_that_compares_tells_no_remedy() -> None:
    body = "I use an endpoint that needs a key, it works with othertool and its `--key` flag."
    assert quote_of(end_of(body=body)) is None
    body = "It crashes in map.\n\nRemoving the column fixes the issue!\n\n### Expected\n\nNo crash"
    assert (
        quote_of(end_of(body=body)) == "It crashes in map.\n\nRemoving the column fixes the issue!"
    )


def test_the_reporter_tells_what_ended_it() -> None:
    report = end_of(
        (MAINTAINER, "Please try the nightly build."),
        (REPORTER, "Still the same error."),
        (REPORTER, "I found that the driver was too old. Upgrading it to 535 fixed the problem."),
    )
    assert quote_of(report) == (
        "I found that the driver was too old. Upgrading it to 535 fixed the problem."
    )


@pytest.mark.parametrize(
    "text",
    [
        "Fixed in #85",
        "Closing via #282",
        "This should be fixed in v2.4.1.",
        "I submitted a PR to fix it: https://github.com/acme/train/pull/9",
        "已在 2.1 版本修复",
    ],
)
def test_a_change_ends_it(text: str) -> None:
    report = end_of((MAINTAINER, text))
    assert quote_of(report) == text
    assert report.resolved


@pytest.mark.parametrize(
    "answers",
    [
        (),
        ((OTHER, "I have the same problem."), (OTHER, "Any update on this?")),
        ((REPORTER, "How did you solve it?"), (OTHER, "+1, me too")),
        ((MAINTAINER, "Can you share the output of nvidia-smi?"),),
        ((BOT, "Closing as stale. Fixed in #12."),),
        (
            (
                OTHER,
                "This issue was automatically closed because it has not had recent activity.",
            ),
        ),
        ((MAINTAINER, "I can't reproduce this. Please reopen it if it happens again."),),
        ((REPORTER, "I tried to set NCCL_DEBUG=INFO. It does not work."),),
        ((OTHER, "Hmm, this may be fixed with #974"), (REPORTER, "It is still an issue.")),
        ((OTHER, "请问解决了吗？"), (OTHER, "同样的问题")),
    ],
)
def test_nothing_is_invented_where_nobody_tells_the_remedy(
    answers: tuple[tuple[Role, str], ...],
) -> None:
    report = end_of(*answers)
    assert quote_of(report) in (None, "Hmm, this may be fixed with #974")
    if answers and answers[-1][0] is not REPORTER:
        assert report.resolution is None
        assert not report.resolved


def test_what_was_denied_is_not_the_end() -> None:
    report = end_of(
        (MAINTAINER, "Try to set `NCCL_P2P_DISABLE=1`."),
        (REPORTER, "That did not help."),
        (MAINTAINER, "Then disable ACS in the BIOS."),
        (REPORTER, "It works now, thank you."),
    )
    assert quote_of(report) == "Then disable ACS in the BIOS."


def test_an_advice_of_an_open_thread_is_no_end() -> None:
    advice = (OTHER, "You could try to reinstall the driver.")
    assert quote_of(end_of(advice, state="open")) is None
    report = end_of(advice)
    assert quote_of(report) == advice[1]
    assert not report.resolved  # nobody said that it helped


def test_a_duplicate_leads_to_the_other() -> None:
    report = end_of((MAINTAINER, "Closing as duplicate of #1234."), state="duplicate")
    assert report.duplicate_of == "#1234"
    assert report.resolution is None
    assert not report.resolved


def test_the_marked_answer_is_quoted_before_all_else() -> None:
    posts = (
        Post("How?", REPORTER),
        Post("I fixed it by rebooting.", OTHER),
        Post("Load the module first.", MAINTAINER, datetime(2024, 1, 2, tzinfo=UTC), accepted=True),
    )
    report = report_of(Thread("d.json#1", "modprobe fails", posts))
    assert quote_of(report) == "Load the module first."
    assert report.resolution is not None
    assert report.resolution.time == datetime(2024, 1, 2, tzinfo=UTC)


def test_a_logbook_tells_its_end_itself() -> None:
    text = (
        "Suddenly the logs were buffered and appeared late.\n\nAfter hours of experiments we "
        "narrowed it down to the launcher. We replaced it by `python -u` and the problem went away."
    )
    report = report_of(Thread("log.md#3", "2023-05-18 late logs", (Post(text, REPORTER),)))
    assert "We replaced it by `python -u` and the problem went away." in (quote_of(report) or "")
    assert report.resolved


def test_what_was_done_stands_before_the_sigh_of_relief() -> None:
    text = (
        "The lines came late.\n\nSo we replaced the launcher like so:\n\n```\n- launch\n"
        "+ python -u -m launch\n```\nand voila, the problem went away.\n\nNobody knows why."
    )
    report = report_of(Thread("log.md#3", "Late lines", (Post(text, REPORTER),)))
    quote = quote_of(report) or ""
    assert "+ python -u -m launch" in quote
    assert quote.endswith("and voila, the problem went away.")


@pytest.mark.parametrize(
    ("last", "quote"),
    [
        ("**Resolved**: As of 09:20 on 2022-09-09, the cluster is in full operation.", None),
        ("**Resolved**: All nodes are back online.", None),
        (
            "**Resolved**: The failure has been resolved by rebooting it.",
            "**Resolved**: The failure has been resolved by rebooting it.",
        ),
        (
            "**Update**: The nodes were rebooted. All is fine again now.",
            "**Update**: The nodes were rebooted. All is fine again now.",
        ),
    ],
)
def test_that_all_is_well_tells_no_remedy(last: str, quote: str | None) -> None:
    posts = [Post("**Notice**: Users cannot log in.", REPORTER)]
    posts += [Post(f"**Update**: {n} of the nodes are still down.", MAINTAINER) for n in range(9)]
    posts.append(Post(last, MAINTAINER))
    assert quote_of(report_of(Thread("status.md#3", "Storage failure", tuple(posts)))) == quote


def test_what_was_done_may_be_announced_before_the_code() -> None:
    text = (
        "The job stays when a rank crashes.\n\nThe authors proposed the following additions:\n\n"
        "```\nSRUN_ARGS=--kill-on-bad-exit=1\n```\nI tested this on two nodes."
    )
    report = report_of(Thread("log.md#4", "The job stays", (Post(text, REPORTER),)))
    assert "--kill-on-bad-exit=1" in (quote_of(report) or "")


FORM = """<!-- Please fill in the template -->
### Prerequisites

- [x] I am running the latest code.
- [ ] I searched for it.

### Describe the bug

The job hangs in the first all_reduce. See [the log](https://x.org/log).
![image](https://x.org/1.png)

### Your current environment

```text
Collecting environment information...
PyTorch version: 2.4.0+cu121
GPU 0: NVIDIA H100 80GB HBM3
```

### Relevant log output

```shell
[rank0]: step 1 done
[rank0]: RuntimeError: NCCL error: unhandled system error
```

### Possible Implementation

_No response_
"""


def test_the_story_is_free_of_the_form() -> None:
    report = end_of(body=FORM)
    assert report.symptom.splitlines() == [
        "The job hangs in the first all_reduce. See the log.",
        "[rank0]: step 1 done",
        "[rank0]: RuntimeError: NCCL error: unhandled system error",
    ]
    assert report.lines == ("RuntimeError: NCCL error: unhandled system error",)
    assert "pytorch 2.4.0+cu121" in report.environment
    assert any("H100" in fact for fact in report.environment)


def test_a_traceback_that_is_quoted_is_a_log() -> None:
    quoted = """It fails when the model is loaded:

> Traceback (most recent call last):
>   File "serve.py", line 12, in <module>
>     engine = Engine(model)
> AssertionError: the ring of ranks is already set up
"""
    report = end_of(body=quoted)
    assert "AssertionError: the ring of ranks is already set up" in report.lines
    assert "said somebody" not in end_of(body="It hangs on two nodes.\n> said somebody").symptom


def test_a_remark_in_a_script_is_no_line_of_a_log() -> None:
    script = (
        "```\n# crash on errors such as a hanging broadcast\nexport A_B=1\nError: lost rank 3\n```"
    )
    assert end_of(body=f"It hangs.\n\n{script}").lines == ("Error: lost rank <n>",)


def test_words_of_the_whole_thread_are_kept_once_and_without_secrets() -> None:
    log = "".join(f"step {n} of warmup, lr=0.{n}\n" for n in range(40))
    body = f"It hangs.\n```\n{log}frobnicating the manifold\n{log}```\n"
    token = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"
    report = end_of((OTHER, f"Is the turboencabulator on? I log in with {token}"), body=body)
    rest = report.rest.split()
    assert {"frobnicat", "manifold", "turboencabulator"} <= set(rest)
    assert len(rest) == len(set(rest))
    assert "hang" not in rest  # the title has it
    assert token.lower() not in report.rest.lower()


def test_people_hosts_and_secrets_are_hidden() -> None:
    report = end_of(
        (
            MAINTAINER,
            "Hi Anna, @bert_smith at bert@corp.example.com runs it on 10.3.4.5 as"
            " gpu7.cluster.local with token hf_abcdefghijklmnopqrstuvwxyzABCDEFGH in"
            " /home/bert/run. Set `A_B=1` in"
            " transformers 4.31.0 from https://huggingface.co/docs to fix it."
            "\n\nBest regards,\nBert",
        ),
        (REPORTER, "That worked, thanks."),
    )
    quote = quote_of(report) or ""
    for name in ("Anna", "bert", "corp.example", "10.3.4.5", "gpu7", "hf_abc"):
        assert name not in quote
    for kept in ("transformers 4.31.0", "https://huggingface.co/docs", "`A_B=1`"):
        assert kept in quote


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Thanks, works now.", "Thanks, works now."),
        ("Thanks Bert!", "Thanks!"),
        ("@torch.no_grad() and @dataclass", "@torch.no_grad() and @dataclass"),
        ("cudnn 8.9.7.29, torch==2.1.0", "cudnn 8.9.7.29, torch==2.1.0"),
        (
            "see https://github.com/NVIDIA/nccl/issues/3",
            "see https://github.com/NVIDIA/nccl/issues/3",
        ),
        ("C:\\Users\\bob\\x", "C:\\Users\\user\\x"),
    ],
)
def test_only_people_and_private_machines_are_hidden(text: str, kept: str) -> None:
    assert hidden(text) == kept


def test_a_report_keeps_its_id_and_an_empty_one_is_none() -> None:
    assert end_of().id == end_of((OTHER, "Set X=1.")).id
    other = to_report(thread(), "other import")
    assert other is not None
    assert other.id != end_of().id
    assert to_report(Thread("x", "", (Post("", REPORTER),)), "x") is None
    chinese = Thread("x", "显存不足", (Post("", REPORTER), Post("减小 batch。", accepted=True)))
    assert to_report(chinese, "x") is not None
