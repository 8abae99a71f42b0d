"""A healthy output says what it shows, in the forms that users paste."""

from __future__ import annotations

import pytest

from kb.corpus.base import KnowledgeBase
from tests.kb.test_checks import outputs_of

SMI = """\
| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |
|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |
| N/A   30C    P0              61W / 400W |      0MiB / 81920MiB |      0%      Default |
"""
UNIT = """\
● kubelet.service - kubelet: The Kubernetes Node Agent
     Loaded: loaded (/lib/systemd/system/kubelet.service; enabled; vendor preset: enabled)
    Drop-In: /etc/systemd/system/kubelet.service.d
             └─10-kubeadm.conf
     Active: active (running) since Thu 2026-03-05 08:01:12 UTC; 2h ago
"""
GIDS = """\
mlx5_0  1  0  fe80:0000:0000:0000:0a94:efff:fe80:1234                v1  eth2
mlx5_0  1  3  0000:0000:0000:0000:0000:ffff:c0a8:0a01 192.168.10.1   v2  eth2
"""
OLD_NCCL_TESTS = """\
# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20
   134217728  33554432  float  sum  45012.1  132.10  231.17  4e-07  45010.0  132.10  231.17  4e-07
"""


@pytest.mark.parametrize(
    ("text", "check", "findings"),
    [
        ("$ ulimit -l\nunlimited\n", "ulimit", {"pinning-unlimited"}),
        ("node-3: max locked memory  (kbytes, -l) unlimited\n", "ulimit", {"pinning-unlimited"}),
        ("mlx5_0 port 1 ==> ens1np0 (Up)\n", "rdma-link", {"port-up"}),
        (
            "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 48 sm_lid 1 lmc 0 state ACTIVE"
            " physical_state LINK_UP netdev ib0\n",
            "rdma-link",
            {"port-up"},
        ),
        (GIDS, "show-gids", {"rocev2-ipv4"}),
        (SMI, "nvidia-smi", {"highest-cuda-driver-supports", "no-ecc-error", "gpu-empty"}),
        (
            "name, driver_version\nNVIDIA B200, 580.95.05\n",
            "nvidia-smi-query-gpu",
            {"driver-carries-cuda-13"},
        ),
        ("812 gpu train alice R 2-02:11:40 2 node-[0-1]\n", "squeue-reason", {"job-runs"}),
        ("   JobState=RUNNING Reason=None Dependency=(null)\n", "squeue-reason", {"job-runs"}),
        ("   State=IDLE ThreadsPerCore=2 TmpDisk=0\n", "scontrol-show-node", {"node-in-service"}),
        ("812  train  gpu  alice  COMPLETED  0:0\n", "sacct", {"ended-by-itself"}),
        (UNIT, "systemctl-status", {"service-runs"}),
        ("0 loaded units listed.\n", "systemctl-status", {"none-failed"}),
        ("LISTEN 0  4096  [::]:8000  [::]:*\n", "ss-listen", {"listens-on-all"}),
        (">>> torch.cuda.is_available()\nTrue\n", "torch-cuda-check", {"cuda-starts"}),
        (
            "torch==2.8.0\ntorchaudio==2.8.0\ntorchvision==0.23.0\n",
            "pip-list",
            {"torchvision-fits"},
        ),
        ("No broken requirements found.\n", "pip-list", {"pip-check-clean"}),
        (OLD_NCCL_TESTS, "nccl-tests", {"large-sizes-fast"}),
        (
            "  PID STAT WCHAN             CMD\n 4410 Sl   futex_wait_queue  python3 train.py\n",
            "proc-wchan",
            {"ordinary-sleep"},
        ),
    ],
)
def test_a_healthy_output_says_what_it_shows(
    text: str, check: str, findings: set[str], knowledge: KnowledgeBase
) -> None:
    _names, seen = outputs_of(text, knowledge)
    own = [one for one in seen if one.check == check]
    assert {one.finding for one in own} == findings
    assert not any(one.abnormal for one in own)


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("ulimit -l of both:\ngpu01: 65536\n", "ulimit"),
        ("$ ulimit -l\n65536\n", "ulimit"),
        ("link mlx5_3/1 state DOWN physical_state DISABLED netdev ens4np0\n", "rdma-link"),
        (
            "mlx5_0 1 3 0000:0000:0000:0000:0000:ffff:a9fe:0301 169.254.3.1 v2 ens1np0\n",
            "show-gids",
        ),
        ("   State=IDLE* ThreadsPerCore=2 TmpDisk=0\n", "scontrol-show-node"),
        ("   State=IDLE+DRAIN ThreadsPerCore=2 TmpDisk=0\n", "scontrol-show-node"),
        ("812.extern  extern  users  1  COMPLETED  0:0\n", "sacct"),
        ("LISTEN 0  2048  127.0.0.1:29500  0.0.0.0:*\n", "ss-listen"),
        ("torch==2.8.0\ntorchvision==0.21.0\n", "pip-list"),
        ("gpu*  up  infinite  4  idle* node-[1-4]\n", "sinfo-R"),
    ],
)
def test_a_faulty_or_doubtful_one_is_not_called_healthy(
    text: str, check: str, knowledge: KnowledgeBase
) -> None:
    _names, seen = outputs_of(text, knowledge)
    assert not [one.text for one in seen if one.check == check and one.abnormal is False]


def test_ranks_that_agree_and_are_even_are_told(knowledge: KnowledgeBase) -> None:
    for text, check, finding in (
        ("param-checksum rank {0} step 10: 1841.2\n", "param-checksum", "ranks-agree"),
        ("node-{0} training processes: 9\n", "process-count", "even"),
        ("per-rank-timing rank {0} step 100: compute 1.210\n", "per-rank-timing", "even"),
    ):
        lines = "".join(text.format(rank) for rank in range(4))
        one = text.format(4).replace("1841.2", "1700.9").replace(": 9", ": 8").replace("1.2", "2.9")
        for shown, expected in ((lines, True), (lines + one, False)):
            _names, seen = outputs_of(shown, knowledge)
            assert (finding in {some.finding for some in seen if some.check == check}) == expected
