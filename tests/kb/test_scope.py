"""Whether a clause says that something is so, here and now."""

from __future__ import annotations

import pytest

from kb.conversation.scope import Scope, clauses_of, scope_of

N, H, P, E, A = (
    Scope.NEGATED,
    Scope.HYPOTHETICAL,
    Scope.PAST,
    Scope.ELSEWHERE,
    Scope.AFFIRMED,
)
TABLE = (
    ("the job runs under docker", A),
    ("dmesg shows Xid 79 on node 3", A),
    ("torch 2.6 with NCCL 2.21", A),
    ("it hangs in all_reduce and does not respond to SIGTERM", A),
    ("deepspeed with ZeRO-3", A),
    ("since last month every second run dies", A),
    ("there is no progress for ten minutes", A),
    ("we don't use kubernetes", N),
    ("there were no ECC errors", N),
    ("the switch isn't managed", N),
    ("fsdp is never used here", N),
    ("would it be a Xid?", H),
    ("could this be the firewall", H),
    ("maybe docker limits it", H),
    ("if it was the switch we would see drops", H),
    ("what if shm is full?", H),
    ("last year it was a broken cable", P),
    ("three weeks ago we had Xid 48", P),
    ("we used to run mpi", P),
    ("a different cluster shows Xid 31", E),
    ("my colleague's job prints ECC errors", E),
    ("on the other nodes it works", E),
    ("deepspeed zero stage 3, offload to the CPU", A),
    ("the errors are there on both nodes", A),
    ("ping shows zero dropped packets", N),
    ("is it the switch", H),
    ("训练跑在容器里", A),
    ("dmesg 里有 Xid 79", A),
    ("卡在 all_reduce 没有任何反应", A),
    ("显存不足", A),
    ("从上周开始一直超时", A),
    ("我们没用 k8s", N),
    ("不是防火墙", N),
    ("日志里没看到 ECC", N),
    ("会不会是交换机", H),
    ("如果是 shm 满了", H),
    ("可能是驱动", H),
    ("去年遇到过 Xid 48", P),
    ("上个月也是网线坏了", P),
    ("另一个集群有 Xid 31", E),
    ("同事的任务有 ECC 报错", E),
    ("别的节点正常", E),
)


@pytest.mark.parametrize(("clause", "scope"), TABLE)
def test_a_clause_has_a_scope(clause: str, scope: Scope) -> None:
    assert scope_of(clause) is scope


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        ("not on one node, only on two", [N, A]),
        ("we have no Xid but ECC errors are there", [N, A]),
        ("没有 Xid，但是有 ECC 报错", [N, A]),
        ("last week we had Xid. now it hangs. is it the same?", [P, A, H]),
        ("单机没有问题，两机就卡住", [N, A]),
        ("", []),
        (" ,, ; ", []),
    ],
)
def test_a_scope_ends_with_its_clause(text: str, scopes: list[Scope]) -> None:
    assert [clause.scope for clause in clauses_of(text)] == scopes
