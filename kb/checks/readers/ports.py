"""Ports of the network: ibstat, ibv_devinfo, ethtool and ping."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from kb.checks.model import Found, Output, Reader, Unread

_DEVICE = re.compile(r"^(?:CA '(\S{1,60})'|hca_id:\s*(\S{1,60})|Infiniband device '(\S{1,60})')")
_PORT = re.compile(r"^\s+port[ :]\s*(\d{1,3})\b", re.IGNORECASE)
_KEY = re.compile(r"^\s*([A-Za-z][\w ]{0,40}?)\s*:\s+(.*)")
_RATE = re.compile(r"(\d{1,4})(?:\.\d{1,2})?\b")
_LINK_MODE = re.compile(r"\b(\d{2,7})base")
_SPEED = re.compile(r"^\s*Speed: (\d{1,8}|Unknown)")
_INTERFACE = re.compile(r"^Settings for (\S{1,60}):")
_PING = re.compile(r"\b(\d{1,5})\(\d{1,5}\) bytes of data")
_ANSWERS = re.compile(r"^(\d{1,6}) packets transmitted, (\d{1,6}) received")

_SMALL_PING_BYTES = 1_400
"""Nearly every network carries packets of so many bytes."""


class Port(msgspec.Struct, frozen=True):
    """A port, and what is printed of it."""

    device: str
    row: int
    values: dict[str, tuple[str, int]]
    """Value and row by key, in lower case with `_` for blanks."""

    def get(self, key: str) -> str:
        """A value; empty where it is not printed."""
        return self.values.get(key, ("", 0))[0]


def read_ibstat(output: Output) -> Iterator[Found | Unread]:
    """Rates of the ports, one against the others, and the subnet manager."""
    ports = _ports(output)
    rates: dict[str, list[tuple[int, Port]]] = {}
    for port in ports:
        if "rate" not in port.values or port.get("state").startswith(("Down", "1:")):
            continue
        rate = _RATE.match(port.get("rate"))
        if rate is None:
            text = f"the rate `{port.get('rate')}` of {port.device}"
            yield Unread(text, port.values["rate"][1])
        else:
            rates.setdefault(port.get("link_layer"), []).append((int(rate[1]), port))
    for found in rates.values():
        common, _count = Counter(rate for rate, _port in found).most_common(1)[0]
        slow = [(rate, port) for rate, port in found if rate < common]
        if slow:
            names = ", ".join(f"{port.device} at {rate}" for rate, port in slow)
            text = f"{names} Gb/s, the other ports at {common}."
            yield Found("link-trained-lower", text, slow[0][1].values["rate"][1])
            break
    for port in ports:
        if port.get("link_layer") == "InfiniBand" and port.get("sm_lid") in ("0", "0x0"):
            text = f"{port.device} knows no subnet manager (SM lid 0)."
            yield Found("no-subnet-manager", text, port.values["sm_lid"][1])
            return


def read_ibv_devinfo(output: Output) -> Iterator[Found]:
    """MTU and link layer of the active ports, one against the others."""
    ports = [port for port in _ports(output) if not port.get("state").startswith("PORT_DOWN")]
    layers = {port.get("link_layer"): port for port in ports if port.get("link_layer")}
    if len(layers) > 1:
        said = ", ".join(f"{port.device} {layer}" for layer, port in layers.items())
        text = f"The ports have different link layers: {said}."
        yield Found("nccl-must-not-mix", text, max(port.row for port in layers.values()))
    for layer in layers:
        alike = [port for port in ports if port.get("link_layer") == layer]
        sizes = {port.get("active_mtu").split(" ")[0]: port for port in alike}
        sizes.pop("", None)
        if len(sizes) > 1:
            said = ", ".join(f"{port.device} {size}" for size, port in sizes.items())
            low = min(sizes, key=lambda size: int(size) if size.isdigit() else 0)
            row = sizes[low].values["active_mtu"][1]
            yield Found("roce-mtu-follows-interface", f"The active MTU differs: {said}.", row)
            return


def _ports(output: Output) -> list[Port]:
    ports: list[Port] = []
    for row, line in enumerate(output.lines):
        if named := _DEVICE.match(line):
            ports.append(Port(next(filter(None, named.groups())), row, {}))
        elif ports and (number := _PORT.match(line)):
            if "port" in ports[-1].values:
                ports.append(Port(ports[-1].device, row, {}))
            ports[-1].values["port"] = (number[1], row)
        elif ports and (pair := _KEY.match(line)):
            key, value = pair.groups()
            ports[-1].values.setdefault(key.lower().replace(" ", "_"), (value.strip(), row))
    return ports


def read_ethtool(output: Output) -> Iterator[Found | Unread]:
    """The speed of an interface, against what it supports and against the other ones."""
    name, best = "the interface", 0
    speeds: list[tuple[int, str, int]] = []
    supported = False
    for row, line in enumerate(output.lines):
        if named := _INTERFACE.match(line):
            name, best = named[1], 0
        if line.lstrip().startswith("Supp"):
            supported = "link modes" in line
        elif ":" in line:
            supported = False
        if supported:
            best = max((best, *map(int, _LINK_MODE.findall(line))))
        speed = _SPEED.match(line)
        if speed and speed[1] == "Unknown":
            yield Unread(f"the speed of {name}", row)
        elif speed:
            speeds.append((int(speed[1]), name, row))
            if int(speed[1]) < best:
                text = f"{name} runs at {speed[1]} Mb/s and supports {best}."
                yield Found("trained-lower", text, row)
                return
    if speeds and min(speeds)[0] < max(speeds)[0]:
        text = (
            f"{min(speeds)[1]} runs at {min(speeds)[0]} Mb/s, {max(speeds)[1]} at {max(speeds)[0]}."
        )
        yield Found("trained-lower", text, min(speeds)[2])


def read_ping(output: Output) -> Iterator[Found]:
    """Packets that got no answer, by their size."""
    size = 0
    lost: dict[int, int] = {}
    for row, line in enumerate(output.lines):
        if started := _PING.search(line):
            size = int(started[1])
        if not (answers := _ANSWERS.match(line)):
            continue
        sent, received = map(int, answers.groups())
        if received == 0:
            lost[size] = row
        elif received < sent:
            text = f"{received} of {sent} packets got an answer."
            yield Found("loss-path", text, row)
        lost = {one: at for one, at in lost.items() if received == 0 or one != size}
        size = 0  # of the next one, whose first line may be left out
    large = max(lost, default=0)
    if large > _SMALL_PING_BYTES and not any(one <= _SMALL_PING_BYTES for one in lost):
        text = f"No packet of {large} bytes got an answer: look whether small ones do."
        yield Found("large-packets-vanish-silently", text, lost[large])


READERS: dict[str, Reader] = {
    "ethtool-link": read_ethtool,
    "ibstat": read_ibstat,
    "ibv-devinfo": read_ibv_devinfo,
    "mtu-ping": read_ping,
}
"""By the id of the check."""
