"""Which addresses alerts may go to.

The check is on the address that a socket is about to connect to, so it holds for every attempt,
every redirect and every answer of a name server, also for one that changes its mind.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Set
from contextlib import suppress
from typing import Any

from monitor.alerts.errors import Forbidden

_NUMBER = re.compile(r"\d+|0x[0-9a-f]*", re.I)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_STAND_FOR_IPV4 = tuple(map(ipaddress.ip_network, ("::/96", "64:ff9b::/96", "::ffff:0:0:0/96")))
"""Their last 32 bits are an IPv4 address: an old notation, NAT64, stateless translation."""
_PUBLIC = ipaddress.ip_network("2000::/3")
"""All that was ever given out of IPv6. `is_global` holds for whatever nobody named private, such as
site-local fec0:: and the NAT64 that a network keeps for itself, 64:ff9b:1::."""
_EXAMPLES = ipaddress.ip_network("3fff::/20")
"""For documents; `is_global` of older Pythons does not know it."""
_METADATA = frozenset(
    map(ipaddress.ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200"))
)
"""Where clouds tell a machine its keys, besides link-local 169.254.169.254."""


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _STAND_FOR_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        return address.is_global and address in _PUBLIC and address not in _EXAMPLES
    return address.is_global


def check(host: str, allowed: Set[str]) -> None:
    """Refuse an address, given as text, that no alert with these settings may go to."""
    address = ipaddress.ip_address(host.partition("%")[0])
    inner = _inner(address)
    if inner.is_multicast or inner.is_unspecified or address.is_multicast:
        raise Forbidden(f"the address {address} is refused: no server has it")
    if inner.is_link_local or inner in _METADATA:
        needed, kind = "allow_link_local", "link-local or a cloud's own"
    elif not _public(inner):
        needed, kind = "allow_private", "not public"
    else:
        return
    if needed not in allowed:
        raise Forbidden(
            f"the address {address} is refused, for it is {kind}: say {needed} = true to send there"
        )


def check_host(host: str, allowed: Set[str]) -> None:
    """Refuse a host that is seen to stand for such an address before any name is resolved."""
    if host.rstrip(".").rpartition(".")[2] == "localhost":
        host = "127.0.0.1"
    with suppress(ValueError):  # a name: what it stands for is checked when it is connected to
        check(host, allowed)


def is_misspelt(host: str) -> bool:
    """Whether it ends like an IPv4 address and is none in full: 127.1, 0177.0.0.1, 2130706433.

    What such a host stands for depends on who reads it.
    """
    if not _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False


def guarded(allowed: Set[str]) -> Callable[[tuple[Any, ...]], socket.socket]:
    """A maker of sockets that makes none for a refused address."""

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        check(address[0], allowed)
        return socket.socket(family, kind, protocol)

    return make
