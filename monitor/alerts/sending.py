"""One attempt to deliver an alert: one POST, within limits, to an address that is allowed."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from urllib.parse import urljoin, urlsplit

import aiohttp

from monitor.alerts import addresses, backoff, secrets
from monitor.alerts.declarations import Alert, checked_url
from monitor.alerts.errors import AlertError, Forbidden

MOST_SENT = 1024 * 1024
"""Bytes of a body; a longer one is not sent."""
MOST_READ = 64 * 1024
"""Bytes of a reply that are read, so that its connection can be used again; more is cut off."""
_REST = 1.0
"""Seconds for that; less where less is left of the attempt."""

_FOLLOWED = (307, 308)  # these keep the method and the body


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt. `error` is None exactly if it was delivered; it holds no secret."""

    latency_ms: float
    status: int | None = None
    error: str | None = None
    retry_after: float | None = None
    hopeless: bool = False
    """No further attempt can do better."""

    @property
    def delivered(self) -> bool:
        return self.error is None

    @property
    def gone(self) -> bool:
        return self.status == 410

    @property
    def no_service(self) -> bool:
        """Whether it speaks against the endpoint, not against this one alert."""
        return not self.delivered and (
            self.status is None or self.status == 429 or self.status >= 500
        )


@dataclass(frozen=True, slots=True)
class Target:
    """An alert with what its references stand for now."""

    alert: Alert
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    signer: secrets.Signer = field(repr=False)

    @classmethod
    def of(cls, alert: Alert) -> Target:
        """Read the references; where one stands for nothing, the error says which."""
        url = secrets.read(alert.url)
        try:
            checked_url(url)
        except AlertError as error:
            if not secrets.is_reference(alert.url):
                raise
            raise AlertError(f"{alert.url}: {error}") from None
        headers = {name: _line(name, value) for name, value in alert.headers.items()}
        return cls(alert, url, headers, secrets.Signer.of(alert.references))


class Sender:
    """Sends to one endpoint, over connections of its own. Make and close it in a running loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._alert = alert = target.alert
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=alert.concurrency,
                ssl=_tls(alert.ca_file),
                socket_factory=addresses.guarded(alert.allowed),
            ),
            timeout=aiohttp.ClientTimeout(total=None),  # `send` has one for all of it
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,  # a proxy would connect where we must not
            headers={"user-agent": "whilst", "content-type": "application/json"},
        )

    def __repr__(self) -> str:
        return f"Sender({self._alert.name!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._session.close()

    async def send(self, webhook_id: str, body: str) -> Outcome:
        """Post the body. Every failure is an outcome; nothing is raised but a cancellation."""
        data = body.encode()
        if len(data) > MOST_SENT:
            return Outcome(0.0, error=f"its body is over {MOST_SENT} bytes", hopeless=True)
        began = time.monotonic()
        until = asyncio.get_running_loop().time() + self._alert.timeout
        try:
            async with asyncio.timeout_at(until):
                return await self._posted(webhook_id, body, data, began, until)
        except (OSError, aiohttp.ClientError, ValueError, AlertError) as error:
            said = _said(error, self._alert.timeout)
            return Outcome(_since(began), error=said)

    async def _posted(
        self, webhook_id: str, body: str, data: bytes, began: float, until: float
    ) -> Outcome:
        url, extra = self._target.url, self._target.headers
        for hop in range(self._alert.redirects + 1):
            now = datetime.now(UTC)
            headers = {**extra, **self._target.signer.headers(webhook_id, now, body)}
            async with self._session.post(
                url, data=data, headers=headers, allow_redirects=False
            ) as reply:
                latency = _since(began)
                target = reply.headers.get("location")
                if reply.status in _FOLLOWED and target and hop < self._alert.redirects:
                    before, url = url, urljoin(url, target)
                    extra = self._target.headers if _same_origin(before, url) else {}
                    await _finish(reply, until)
                    continue
                after = backoff.retry_after(reply.headers.get("retry-after"), now)
                await _finish(reply, until)
                return Outcome(latency, reply.status, _refusal(reply.status, hop), after)
        raise AssertionError("the last hop returns")


def _refusal(status: int, hop: int) -> str | None:
    if 200 <= status < 300:
        return None
    if status in (301, 302, 303, *_FOLLOWED):
        return f"redirected ({status}) after {hop} redirects, and no further one is followed"
    return f"the reply was {status}"


def _same_origin(before: str, after: str) -> bool:
    """Whether headers for one URL may go to the other; a URL that none may is refused."""
    old, new = urlsplit(before), checked_url(after)
    if old.scheme == "https" and new.scheme == "http":
        raise AlertError("redirected from https to http")
    return (old.scheme, old.netloc) == (new.scheme, new.netloc)


async def _finish(reply: aiohttp.ClientResponse, until: float) -> None:
    """Read a short rest of the reply, for a short while.

    The status has been said, whatever comes of the rest: a receiver that took an alert and dawdles
    over its reply is not to get it again.
    """
    left = MOST_READ
    now = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(min(now + _REST, (now + until) / 2)):
            while left > 0:
                part = await reply.content.read(left)
                if not part:
                    return
                left -= len(part)
    except (OSError, aiohttp.ClientError):
        pass
    reply.close()


def _since(began: float) -> float:
    return (time.monotonic() - began) * 1000


def _line(name: str, reference: str) -> str:
    value = secrets.read(reference)
    if not value.isprintable():
        raise AlertError(f"the header `{name}` from {reference} is more than a line of text")
    return value


def _tls(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise AlertError(f"cannot read the certificates in {ca_file}: {error.strerror}") from None


def _said(error: Exception, timeout: float) -> str:
    """An error in our words: those of a client may hold the URL."""
    match error:
        case AlertError():
            return str(error)
        case TimeoutError():
            return f"no reply within {timeout:g} s"
        case aiohttp.ClientConnectorCertificateError():
            why = getattr(error.certificate_error, "verify_message", "") or "it does not fit"
            return f"its TLS certificate is refused: {why}"
        case aiohttp.ClientSSLError():
            return "TLS could not be agreed on"
        case aiohttp.ClientConnectorDNSError():
            return "its name cannot be resolved"
        case aiohttp.ClientConnectorError(os_error=cause):
            if isinstance(cause, Forbidden) or "is refused, for it is" in str(cause):
                return str(cause)
            number = cause.errno or 0
            why = os.strerror(number).lower() if number > 0 else "none of its addresses answers"
            return f"no connection: {why}"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | ConnectionError():
            return "the connection was cut off"
    return f"no reply that can be read ({type(error).__name__})"
