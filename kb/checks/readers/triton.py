"""Triton Inference Server: what it counts of its requests, and the configuration of a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from kb.checks.model import Found, Output, Reader, Unread

_METRIC = re.compile(
    r"^nv_inference_(\w{3,40})\{([^}]{1,300})\} (\d{1,18}(?:\.\d{1,9})?(?:e\+\d\d)?)\s*$"
)
_MODEL = re.compile(r'\bmodel="([^"]{1,100})"')
_JSON = re.compile(r'\{\s*"model_stats"\s*:')
_COMPOSING = re.compile(r"^[\s*]*(\S{1,100}), version: ?\d{0,6}\s*$")
_CONCURRENCY = re.compile(r"^[\s*]*Request concurrency: (\d{1,6})\s*$")
_COUNT = re.compile(r"^[\s*]*(Inference|Execution) count: (\d{1,12})\s*$")
_LATENCY = re.compile(r"^[\s*]*Avg request latency: \d{1,12} usec")
_PART = re.compile(r"\b(queue|compute(?: input| infer| output)?) (\d{1,12}) usec")

_COMPUTE = ("compute_input", "compute_infer", "compute_output")
_FEW = 100
"""Inferences that say nothing yet of batches, or of waiting."""
_FAILED_SHARE = 0.01
_QUEUED_SHARE = 0.1
"""Of the time of a request: from here on others were there to be batched with."""

_SETTING = re.compile(r"^\s*(\w{3,40})\s*(?::\s*\"?([\w.]{1,60})\"?|[\[{])", re.MULTILINE)
_INSTANCES = re.compile(r"\bcount\s*:\s*(\d{1,4})")
_BATCHES_ITSELF = {"ensemble", "tensorrtllm", "vllm"}
"""Backends that make their batches without Triton's scheduler."""


class Model(msgspec.Struct):
    """What was counted of one model; times are of one unit, all requests together or one."""

    name: str
    row: int
    inferences: float = 0
    executions: float = 0
    requests: float = 0
    failures: float = 0
    queue: float | None = None
    compute: float = 0


def read_stats(output: Output) -> Iterator[Found | Unread]:
    """Batches that are not made, requests that wait, and requests that fail."""
    models = [*_metrics(output), *_measured(output)]
    starts = [row for row, line in enumerate(output.lines) if _JSON.search(line)]
    for row in starts[:1]:
        found = _statistics("\n".join(output.lines[row:]), row)
        if found is None:
            yield Unread("the statistics: the JSON is not complete", row)
        models += found or []
    for one in models:
        yield from _findings(one)


def _findings(one: Model) -> Iterator[Found]:
    if one.requests and one.failures > _FAILED_SHARE * (one.requests + one.failures):
        whole = one.requests + one.failures
        text = f"{one.failures:.0f} of {whole:.0f} requests of {one.name} failed."
        yield Found("requests-fail", text, one.row)
    if one.inferences < _FEW:
        return
    if one.queue is not None and one.queue > one.compute > 0:
        share = one.queue / (one.queue + one.compute)
        text = f"A request of {one.name} waits for {share:.0%} of its time; the rest is computed."
        yield Found("waits-longer-than-computed", text, one.row)
    if one.executions == one.inferences:
        text = f"{one.name}: {one.inferences:.0f} inferences in as many executions."
        waits = one.queue is None or one.queue > _QUEUED_SHARE * (one.queue + one.compute)
        yield Found("nothing-batched" if waits else "one-at-a-time", text, one.row)


def _metrics(output: Output) -> list[Model]:
    """The lines of `/metrics`; versions of a model are taken together."""
    models: dict[str, Model] = {}
    for row, line in enumerate(output.lines):
        metric = _METRIC.match(line)
        name = _MODEL.search(metric[2]) if metric else None
        if metric is None or name is None:
            continue
        one = models.setdefault(name[1], Model(name[1], row))
        value = float(metric[3])
        if metric[1] == "count":
            one.inferences += value
        elif metric[1] == "exec_count":
            one.executions, one.row = one.executions + value, row
        elif metric[1] == "request_success":
            one.requests += value
        elif metric[1] == "request_failure":
            one.failures += value
        elif metric[1] == "queue_duration_us":
            one.queue = (one.queue or 0) + value
        elif metric[1].removesuffix("_duration_us") in _COMPUTE:
            one.compute += value
    return list(models.values())


def _measured(output: Output) -> list[Model]:
    """What perf_analyzer prints of the server, for each load and each model of an ensemble."""
    models: list[Model] = []
    name, counts = "the model", {"Inference": 0.0, "Execution": 0.0}
    for row, line in enumerate(output.lines):
        if load := _CONCURRENCY.match(line):
            name = f"the model at concurrency {load[1]}"
        elif composing := _COMPOSING.match(line):
            name = composing[1]
        elif count := _COUNT.match(line):
            counts[count[1]] = float(count[2])
        elif _LATENCY.match(line):
            parts = _PART.findall(" ".join(output.lines[row : row + 2]))
            queue = sum(float(value) for part, value in parts if part == "queue")
            compute = sum(float(value) for part, value in parts if part != "queue")
            one = Model(name, row, counts["Inference"], counts["Execution"])
            one.queue, one.compute = queue, compute
            models.append(one)
    return models


def _statistics(text: str, row: int) -> list[Model] | None:
    """The answer of `v2/models/.../stats`; None if it is cut."""
    start = _JSON.search(text)
    with suppress(ValueError, TypeError, AttributeError):
        parsed, _end = json.JSONDecoder().raw_decode(text, start.start() if start else 0)
        return [_statistic(one, row) for one in parsed["model_stats"]]
    return None


def _statistic(one: Mapping[str, Any], row: int) -> Model:
    times = one.get("inference_stats", {})

    def number(name: str, unit: str) -> float:
        return float(times.get(name, {}).get(unit, 0))

    return Model(
        str(one.get("name", "the model"))[:100],
        row,
        float(one.get("inference_count", 0)),
        float(one.get("execution_count", 0)),
        number("success", "count"),
        number("fail", "count"),
        number("queue", "ns"),
        sum(number(part, "ns") for part in _COMPUTE),
    )


def read_config(output: Output) -> Iterator[Found]:
    """`config.pbtxt`: batches that Triton does not make, and the number of instances."""
    text = "\n".join(output.lines)
    settings = {match[1]: (match[2] or "", match.start()) for match in _SETTING.finditer(text)}
    size, start = settings.get("max_batch_size", ("", 0))
    row = text.count("\n", 0, start) + text[start:].startswith("\n")
    engines = {settings.get(key, ("", 0))[0] for key in ("backend", "platform")}
    schedules = {"dynamic_batching", "sequence_batching", "ensemble_scheduling"} & settings.keys()
    if not size.isdigit() or engines & _BATCHES_ITSELF or schedules:
        return
    if int(size) > 1:
        text_of = f"max_batch_size is {size}, and dynamic_batching is not there."
        yield Found("no-dynamic-batching", text_of, row)
    elif int(size) == 0:
        yield Found("takes-no-batch", "max_batch_size is 0: the model takes no batch.", row)
    counts = list(map(int, _INSTANCES.findall(text)))
    if sum(counts) <= 1:
        said = "one instance" if counts else "no number of instances, which is one for each GPU"
        yield Found("one-instance", f"instance_group names {said}.", row)


READERS: dict[str, Reader] = {
    "triton-config": read_config,
    "triton-stats": read_stats,
}
"""By the id of the check."""
