"""Secrets are masked, and what a log is searched for stays. Every secret is made here, at run
time: none stands in the file."""

from __future__ import annotations

import base64
import random
import re
import string
from pathlib import Path

import pytest

from kb.evidence.facts import Facts
from kb.evidence.secrets import mask_secrets, without_secrets
from kb.rules import read_rows
from kb.rules.rows import Secret, Token

_RANDOM = random.Random(7)


def _some(count: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Random letters with a digit among them, as tokens have."""
    return "".join(_RANDOM.choices(letters, k=count - 1)) + "7"


_HEX = _some(40, "0123456789abcdef")
_WORD = _some(24)
_LINES = [_some(64) for _ in range(5)]
_KEY = "\n".join(
    ["-----BEGIN RSA " + "PRIVATE KEY-----", *_LINES, "-----END RSA " + "PRIVATE KEY-----"]
)
_PART = [
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256"}', b'{"sun":"root","exp":1}')
]
_JWT = ".".join([*_PART, _some(43)])

PLANTED = [
    # (line, what must not be left of it, what must be left)
    ("huggingface login with hf_{} done", _some(34), "with <secret: hugging face token> done"),
    ("b'logged in\\nhf_{}\\n'", _some(34), "logged in"),
    ("wandb login {}", _HEX, "wandb login <secret: wandb key>"),
    ("export WANDB_API_KEY={}", _HEX, "export WANDB_API_KEY=<secret: "),
    ("wandb: Paste an API key from your profile and hit enter: {}", _HEX, "hit enter: <secret: "),
    ("wandb_v1_{}", _some(40), "<secret: wandb key>"),
    ("machine api.wandb.ai login me password {}", _HEX, "machine api.wandb.ai login me"),
    ("using key AKIA{} in us-east-1", _some(16, string.ascii_uppercase), "in us-east-1"),
    ("aws_secret_access_key = {}", _some(20) + "/+" + _some(18), "aws_secret_access_key ="),
    ("AWS_SESSION_TOKEN={}", _some(200), "AWS_SESSION_TOKEN="),
    ("GET /v1?key=AIza{} 403", _some(35), "403"),
    ('"private_key_id": "{}",', _HEX, '"private_key_id": "<secret: '),
    ("SLURM_JWT={}", _JWT, "SLURM_JWT="),
    ("slurmrestd: auth: {} rejected", _JWT, "slurmrestd: auth: <secret: json web token> rejected"),
    ("Authorization: Bearer {}", _WORD, "Authorization: Bearer <secret: authorization>"),
    ("-H 'Authorization: Basic {}' -v", _WORD, "' -v"),
    ('{{"auths": {{"nvcr.io": {{"auth": "{}"}}}}}}', _WORD, "nvcr.io"),
    ("git clone https://user:{}@git.example.org/a.git", _WORD, "@git.example.org/a.git"),
    ("git clone https://{}@git.example.org/a.git", _WORD, "@git.example.org/a.git"),
    ("redis://:{}@10.0.0.1:6379/0", _WORD, "@10.0.0.1:6379/0"),
    ("HF_TOKEN={} NCCL_DEBUG=INFO", _WORD, " NCCL_DEBUG=INFO"),
    ("MY_SERVICE_TOKEN: '{}'", _WORD, "MY_SERVICE_TOKEN: '<secret: "),
    ("http://localhost:8888/lab?token={}", _HEX + "0a1b2c3d", "http://localhost:8888/lab?token="),
    ("OPENAI_API_KEY=sk-proj-{}", _some(48), "OPENAI_API_KEY="),
    ("password={}", "hunter2", "password=<secret: password>"),
    ("db_password: {}", "hunter2", "db_password: <secret: password>"),
    ('{{"user": "me", "password": "{}", "port": 1}}', "two words", '"port": 1'),
    ('"{{\\"apiKey\\": \\"{}\\"}}"', _WORD, "apiKey"),
    ("mysql --password={} -h db", "hunter2", " -h db"),
    ("vllm serve m --api-key {} --port 80", _WORD, " --port 80"),
    ("sshpass -p {} ssh node-1", "hunter2", " ssh node-1"),
    ("remote: ghp_{}", _some(36), "remote: <secret: github token>"),
    ("xoxb-{}", "123456789012-123456789012-" + _some(24), "<secret: slack token>"),
    ("SAS https://a.blob.core.windows.net/c?sv=1&sig={}&se=2", _some(43), "&se=2"),
    ("client-key-data: {}", _some(80), "client-key-data: "),
    ("LTAI{} is disabled", _some(20), " is disabled"),
    ("MUNGE:{}:", _some(60), "<secret: munge credential>"),
    ("RuntimeError: requirepass {} refused", "Hunter22pass", " refused"),
    ("0.1 'CONFIG' 'SET' 'requirepass' '{}'", "Hunter22pass", "'CONFIG' 'SET'"),
    ("RuntimeError: upload failed: > PASS {}", "Hunter22pass", "> PASS <secret: password>"),
    ("---> PASS {}", "hunter", "---> PASS <secret: password>"),
    ("a1 LOGIN alice {}", "Hunter22pass", "a1 LOGIN alice <secret: password>"),
    ('send "{}\\r"', "Hunter22pass", 'send "<secret: password>\\r"'),
    ("child.sendline('{}')", "Hunter22pass", "child.sendline('"),
    ("ourcli login -k {} -v", _some(20), "ourcli login -k <secret: password> -v"),
    ("ourcli auth login -t {}", _some(12), "ourcli auth login -t"),
    ("level=error secret_id={}", "q" + _some(19), "level=error secret_id="),
    ("vault write auth/approle/login role_id={} x", _some(20), "auth/approle/login role_id="),
    ("doppler dp.st.prd.{} x", _some(40), " x"),
    ("sb_secret_{} x", _some(22) + "_" + _some(8), " x"),
    ("xkeysib-{} x", _some(64, "0123456789abcdef") + "-" + _some(16), " x"),
    ("glpat-{} x", _some(27) + ".01." + _some(9, "0123456789abc"), " x"),
    ("ghs_{} x", f"123456_{_JWT}", " x"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "secret", "rest"), PLANTED, ids=[row[0][:30] for row in PLANTED])
def test_secret_is_masked_and_the_rest_stays(line: str, secret: str, rest: str) -> None:
    masked = mask_secrets(f"before\n{line.format(secret)}\nafter")
    assert secret[-8:] not in masked
    assert "<secret: " in masked
    assert rest in masked
    assert masked.startswith("before\n")
    assert masked.endswith("\nafter")
    assert mask_secrets(masked) == masked


@pytest.mark.parametrize("secret", ["Summer2024!", "Zq7rT9xLmW2pKd84vNbY"])
@pytest.mark.parametrize(
    "line",
    [
        'passphrase "{}"',
        "passwd[0]={}",
        "password[{}]",
        "Permission denied (password {})",
        "password<{}>",
        '{{"key":"password","val":"{}"}}',
        "ssh bob:{}@node-1 failed",
        "creds bob:{}@node-1",
        "admin:{}@10.0.0.1 refused",
        "auth failed: bob:{}",
        "basic auth bob:{}",
        "the db pass is {}",
        "enter {} as the password",
        "use {} as token",
        "{} is the password",
        "{} is my token",
        "\u5bc6\u7801({})",
        "\u5bc6\u7801\u662f\u591a\u5c11\uff1f{}",
        "\u201c{}\u201d \u662f\u5bc6\u7801",
        "\u7528 {} \u767b\u5f55",
    ],
)
def test_a_secret_is_masked_wherever_its_name_stands(line: str, secret: str) -> None:
    masked = mask_secrets(line.format(secret))
    assert secret not in masked
    assert secret[:6] not in masked


@pytest.mark.parametrize(
    "line",
    [
        "getting bot012345678" + ":" + "Example" * 5 + " ready",
        "WANDB host said local-" + "0123456789abcdef" * 2 + "01234567 is refused",
    ],
)
def test_a_token_behind_a_word_is_masked(line: str) -> None:
    assert "<secret: " in mask_secrets(line)


_ROWS = [*read_rows("secrets", "token", Token), *read_rows("secrets", "secret", Secret)]


@pytest.mark.parametrize("row", _ROWS, ids=[row.name for row in _ROWS])
def test_of_a_longer_secret_than_vendors_make_today_no_end_is_left(row: Token | Secret) -> None:
    longer = _some(60)
    for example in row.examples:
        before, *others = re.split("[‹›]", example.replace("·", ""))
        for secret, after in zip(others[::2], others[1::2], strict=True):
            if secret[-1].isalnum():
                masked = mask_secrets(f"{before}{secret}{longer}{after}")
                assert longer[-20:] not in masked or secret.split()[-1] in masked, example
            before += secret + after


def test_the_name_of_a_value_tells_and_all_of_it_is_masked() -> None:
    kept = {"user": "me", "password": None, "notes": "the run failed", "token_count": "12"}
    masked = without_secrets(kept | {"db_password": "two words, 'one' secret"})
    assert masked == kept | {"db_password": "<secret: password>"}


@pytest.mark.parametrize(
    "name",
    ["NCCL_SECRET_COOKIE", "HF_TOKEN", "HF_TOKEN_V2", "RAY_API_KEY_PROD", "VLLM_PASSWORD_OLD"],
)
def test_a_part_of_the_name_of_a_variable_tells(name: str) -> None:
    plain = {"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0", "TORCH_NCCL_TRACE_KEYS": "all"}
    shown = without_secrets(Facts(environment=plain | {name: _WORD})).environment
    assert shown.pop(name).startswith("<secret: ")
    assert shown == plain


def test_a_token_within_a_password_does_not_save_the_rest() -> None:
    masked = mask_secrets(f"password=ghp_{_some(36)}!and-more x")
    assert masked == "password=<secret: password> x"


def test_colours_of_a_terminal_do_not_hide_a_secret() -> None:
    text = f"\x1b[1mapi_key\x1b[0m: \x1b[33m'{_WORD}'\x1b[0m,\n\x1b[32mINFO\x1b[0m done"
    assert mask_secrets(text) == "api_key: '<secret: secret>',\nINFO done"


def test_colours_stay_where_nothing_is_masked() -> None:
    text = "\x1b[32mINFO\x1b[0m step 7"
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    ("pasted", "shown"),
    [
        ("password\uff1d{}", "password=<secret: password>"),
        ("api_key:\u00a0{}", "api_key: <secret: secret>"),
        ("password\u202f=\u2009{}", "password = <secret: password>"),
        ("密码：\u3000{}", "密码： <secret: password>"),
        ("pass\u200bword={}", "password=<secret: password>"),
        ("pass\0word={}", "password=<secret: password>"),
        ("p\bpa\bas\bss\bsword={}", "password=<secret: password>"),
        ("\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44\uff1d{}", "password=<secret: password>"),
    ],
)
def test_signs_of_a_pasted_text_do_not_hide_a_secret(pasted: str, shown: str) -> None:
    assert mask_secrets(pasted.format(_WORD)) == shown


def test_signs_of_a_pasted_text_stay_where_nothing_is_masked() -> None:
    text = "\u3000step\u00a07\u200b lr\uff1d0.1 \uff11\0 o\bok"
    assert mask_secrets(text) == text


_WHOLE_KEYS = {
    "whole": _KEY,
    "cut off": _KEY.rpartition("\n")[0],
    "escaped": _KEY.replace("\n", "\\n"),
    "prefixed": _KEY.replace("\n", "\n[rank0]: "),
}


@pytest.mark.parametrize("key", _WHOLE_KEYS.values(), ids=_WHOLE_KEYS)
def test_no_line_of_a_private_key_is_left_and_no_line_number_moves(key: str) -> None:
    text = f"before\n{key}\nafter the key\nRuntimeError: it failed\n"
    masked = mask_secrets(text)
    assert not any(line in masked for line in _LINES)
    assert masked.endswith("\nafter the key\nRuntimeError: it failed\n")
    assert masked.count("\n") == text.count("\n")


KEPT = [
    f"commit {_HEX}",
    "image sha256:" + _some(64, "0123456789abcdef"),
    "docker://pytorch:24.01@sha256:" + _some(64, "0123456789abcdef"),
    "ncclUniqueId 0x" + _some(32, "0123456789abcdef") + " commId 0xdeadbeef7",
    "GPU-8c0b6e2a-6d3b-4a51-9c7e-3f1f0e1d2c3b uuid 123e4567-e89b-12d3-a456-426614174000",
    "/opt/conda/lib/python3.11/site-packages/huggingface_hub/hf_api.py:1234",
    "from huggingface_hub import hf_hub_download, hf_raise_for_status",
    "frame #0: c10::Error::Error(c10::SourceLocation) + 0x57 (0x7f1f2d1e4617 in libc10.so)",
    "max_tokens=4096 pad_token_id=128001 eos_token='<|endoftext|>' num_tokens: 1234567890123",
    "special token: [PAD], bos_token: begin, token_type_ids: 0",
    "HF_TOKEN_PATH=/root/.cache/huggingface/token HF_TOKEN=$TOKEN API_KEY=${KEY}",
    "GOOGLE_APPLICATION_CREDENTIALS=/etc/gcp/credentials.json",
    "PWD=/home/user OLDPWD=/tmp",
    "api_key='EMPTY' password=None token=*** secret: null",
    "sshd: Failed password for root from 10.0.0.1 port 22",
    "password: authentication failed for user",
    'MountVolume.SetUp failed: secret "registry-key" not found',
    "Unexpected token: expected ',' at line 1",
    "NCCL_IB_PKEY=0x8001 NCCL_DEBUG=INFO MASTER_ADDR=node-1",
    "tcp://10.0.0.1:29500 http://node-1:8000/v1 ssh://git@github.com/a/b",
    "SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000",
    "kv_cache key: torch.Size([1, 32, 128]) forward_pass=0.31 backward_pass: 12ms",
    "RUN 12 -> PASS 0.31s",
    "gate > PASS tests/test_rank2_all.py",
    "dcgmi diag: PASS Level_2!",
    "check nccl ==> PASS (8 of 8)",
    "requirepass is not set; use the option requirepass, or requirepass ${PASSWORD}",
    'spawn ssh node-1; send "exit\\r"; send "nvidia-smi -L\\r"; send "$pw\\r"',
    "s.send(b'Hello2World') and dist.send(tensor8, dst=1)",
    "ourcli login -p 2222 -t 30 -k /etc/ssl/key1.pem --key $KEY",
    "login node-1 failed, -t 30",
    "SecretId=prod/db role_id=7 role_id: admin secret_id is missing",
    "phx_layer_norm_backward_kernel_2 napi_poll_schedule_0x1f re_compile_all_patterns_2",
    "import sess; sess-20260701-120000 csk-model-large-8bit",
    "blob " + base64.b64encode(_some(90).encode()).decode(),
]


@pytest.mark.parametrize("line", KEPT, ids=[line[:30] for line in KEPT])
def test_what_is_no_secret_stays(line: str) -> None:
    assert mask_secrets(line) == line


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["incidents", "benchmarks/reports", "benchmarks/jobs"])
def test_nothing_is_masked_in_logs_without_secrets(folder: str) -> None:
    for file in sorted(Path(folder).rglob("*")):
        if file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            assert mask_secrets(text) == text, file


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["a", "-", "sk-", "eyJa.", "://a:", "token=", "--a-", 'password="', "./a/", "wandb login "],
)
def test_hostile_long_line_ends(unit: str) -> None:
    assert "\n" not in mask_secrets(unit * (60_000 // len(unit)))
