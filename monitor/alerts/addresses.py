"""Which addresses alerts may go to.

The check is on the address that a socket is about to connect to, so it holds for every attempt,
every redirect and every answer of a name server, also for one that changes its mind.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

from monitor.alerts.errors import Forbidden

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


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
    if address in _NAT64 or int(address) >> 32 == 0:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def check(host: str, allow_private: bool) -> None:
    """Refuse an address, given as text, that no alert may go to."""
    address = ipaddress.ip_address(host.partition("%")[0])
    inner = _inner(address)
    if inner.is_multicast or inner.is_unspecified or address.is_multicast:
        raise Forbidden(f"the address {address} is refused: no server has it")
    if not allow_private and not inner.is_global:
        raise Forbidden(
            f"the address {address} is refused, for it is not public: "
            "say allow_private = true to send there"
        )


def plainly_private(host: str) -> bool:
    """Whether a host is seen to be private before any name is resolved."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        check(host, False)
    except Forbidden:
        return True
    except ValueError:
        pass  # a name: what it stands for is checked when it is connected to
    return False


def guarded(allow_private: bool) -> Callable[[tuple[Any, ...]], socket.socket]:
    """A maker of sockets that makes none for a refused address."""

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        check(address[0], allow_private)
        return socket.socket(family, kind, protocol)

    return make
