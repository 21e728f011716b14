"""One attempt, against a receiver that does everything a receiver may do wrong."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from monitor.alerts import addresses
from monitor.alerts.backoff import DAY, Backoff, retry_after
from monitor.alerts.declarations import ALLOWING, Alert
from monitor.alerts.errors import AlertError, Forbidden
from monitor.alerts.sending import MOST_SENT, Outcome, Sender, Target
from tests.alerts.conftest import OLD_SECRET, SECRET, alert
from tests.services import ports
from tests.services.receiver import Certificate, Receiver, Reply, Request, certificate

BODY = '{"answer":"Malf(wt2, 0)","why":"ä"}'


def sent(declared: Alert, body: str = BODY) -> Outcome:
    async def send() -> Outcome:
        async with Sender(Target.of(declared)) as sender:
            return await sender.send("msg_1", body)

    return asyncio.run(send())


def always(reply: Reply):
    return lambda _: reply


# --- Standard Webhooks -------------------------------------------------------------------------


def test_the_public_library_verifies_what_was_sent(receiver: Receiver) -> None:
    outcome = sent(alert(receiver.url))
    assert (outcome.status, outcome.error) == (204, None)
    assert outcome.latency_ms > 0
    (request,) = receiver.requests
    assert request.verified(SECRET) == json.loads(BODY)
    assert (request.method, request.path, request.id) == ("POST", "/hook", "msg_1")
    assert request.headers["content-type"] == "application/json"


def test_another_secret_or_another_body_is_not_verified(receiver: Receiver) -> None:
    sent(alert(receiver.url))
    (request,) = receiver.requests
    with pytest.raises(WebhookVerificationError):
        request.verified(OLD_SECRET)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(request.body + " ", dict(request.headers))


def test_while_keys_are_rotated_a_receiver_may_have_either(receiver: Receiver) -> None:
    sent(alert(receiver.url, previous_secret="env:OLD_HOOK_SECRET"))
    (request,) = receiver.requests
    assert request.verified(SECRET) == request.verified(OLD_SECRET) == json.loads(BODY)


def test_headers_are_added_and_may_be_secret(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOKEN", "Bearer abc")
    (tmp_path / "tenant").write_text("t-1\n")
    headers = {"Authorization": "env:TOKEN", "X-Tenant": f"file:{tmp_path}/tenant", "X-Plain": "p"}
    target = Target.of(alert(receiver.url, headers=headers))
    assert "Bearer abc" not in repr(target)
    sent(target.alert)
    found = receiver.requests[0].headers
    assert [found[k] for k in ("authorization", "x-tenant", "x-plain")] == [
        "Bearer abc",
        "t-1",
        "p",
    ]


def test_a_header_cannot_be_made_two(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "a\r\nwebhook-id: other")
    with pytest.raises(AlertError, match="more than a line"):
        sent(alert(receiver.url, headers={"X-A": "env:TOKEN"}))


@pytest.mark.parametrize("value", ["", "not base64 !", "c2hvcnQ=", "A" * 200])
def test_a_bad_secret_is_refused_and_not_shown(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", value)
    with pytest.raises(AlertError) as raised:
        Target.of(alert("https://example.org/"))
    assert "HOOK_SECRET" in str(raised.value)
    assert not value or value not in str(raised.value)


# --- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "status", "error"),
    [
        (Reply(500), 500, "the reply was 500"),
        (Reply(404), 404, "the reply was 404"),
        (Reply(410), 410, "the reply was 410"),
        (Reply(how="reset"), None, "cut off"),
        (Reply(how="cut"), None, ""),
        (Reply(how="garbage"), None, "no reply that can be read"),
        (Reply(how="hang"), None, "no reply within 0.3 s"),
        (Reply(how="drip"), None, "no reply within 0.3 s"),
        (Reply(302, {"location": "http://127.0.0.1/"}), 302, "no further one is followed"),
        (Reply(307, {"location": "http://127.0.0.1/"}), 307, "no further one is followed"),
    ],
    ids=lambda value: value.how if isinstance(value, Reply) else None,
)
def test_every_failure_is_an_outcome(
    receiver: Receiver, reply: Reply, status: int | None, error: str
) -> None:
    receiver.behaviour = always(reply)
    outcome = sent(alert(receiver.url, timeout=0.3 if "within" in error else 5.0))
    assert outcome.status == status
    assert outcome.error is not None
    assert error in outcome.error
    assert receiver.url not in outcome.error
    assert not outcome.delivered


def test_nobody_listens() -> None:
    (port,) = ports.free(1)
    outcome = sent(alert(f"http://127.0.0.1:{port}/secret-path"))
    assert outcome.error is not None
    assert "refused" in outcome.error
    assert "secret-path" not in outcome.error
    assert outcome.no_service


def test_a_name_that_does_not_exist() -> None:
    outcome = sent(alert("http://nowhere.invalid/"))
    assert outcome.error == "its name cannot be resolved"


def test_an_endless_reply_is_cut_off(receiver: Receiver) -> None:
    receiver.behaviour = always(Reply(how="endless"))
    assert sent(alert(receiver.url)).delivered


@pytest.mark.parametrize(("status", "delivered"), [(200, True), (410, False), (503, False)])
def test_a_status_counts_though_the_rest_of_the_reply_does_not_come(
    receiver: Receiver, status: int, delivered: bool
) -> None:
    receiver.behaviour = always(Reply(status, how="dawdle"))
    outcome = sent(alert(receiver.url, timeout=0.5))
    assert (outcome.status, outcome.delivered) == (status, delivered)


def test_a_body_that_is_too_long_is_not_sent(receiver: Receiver) -> None:
    outcome = sent(alert(receiver.url), "x" * (MOST_SENT + 1))
    assert outcome.hopeless
    assert not outcome.delivered
    assert receiver.requests == []


# --- TLS ---------------------------------------------------------------------------------------


def test_an_unknown_certificate_is_refused(tls_receiver: Receiver) -> None:
    outcome = sent(alert(tls_receiver.url))
    assert outcome.error is not None
    assert "certificate is refused: self-signed" in outcome.error
    assert tls_receiver.requests == []


def test_an_authority_of_ones_own(tls_receiver: Receiver, cert: Certificate) -> None:
    assert sent(alert(tls_receiver.url, ca_file=str(cert.file))).delivered
    assert tls_receiver.requests[0].verified(SECRET)


def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    other = certificate(tmp_path, "DNS:other.example")
    with Receiver(tls=other.server()) as receiver:
        outcome = sent(alert(receiver.url, ca_file=str(other.file)))
    assert outcome.error is not None
    assert "certificate is refused: IP address mismatch" in outcome.error


def test_plain_http_behind_https(receiver: Receiver) -> None:
    outcome = sent(alert(receiver.url.replace("http:", "https:"), timeout=0.5))
    assert not outcome.delivered
    assert receiver.requests == []


# --- where alerts may go -----------------------------------------------------------------------

REFUSED = [
    *("127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "192.0.2.1", "198.18.0.1"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1"),
    *("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::", "::127.0.0.1", "2001:db8::1"),
    *("fec0::1", "::ffff:0:127.0.0.1", "64:ff9b:1::a00:1", "5f00::1", "3fff::1", "4000::1"),
]


@pytest.mark.parametrize("address", REFUSED)
def test_private_addresses_are_refused(address: str) -> None:
    with pytest.raises(Forbidden):
        addresses.check(address, frozenset())


PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "2606:4700::1111"),
    *("::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    addresses.check(address, frozenset())


CLOUD = [
    *("169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1", "fe80::1%eth0"),
    *("fd00:ec2::254", "fd20:ce::254", "100.100.100.200"),
]


@pytest.mark.parametrize("address", CLOUD)
def test_what_clouds_keep_for_themselves_has_a_word_of_its_own(address: str) -> None:
    """Whoever lets alerts go to this network has not let them ask for the machine's keys."""
    with pytest.raises(Forbidden, match="say allow_link_local = true"):
        addresses.check(address, {"allow_private"})
    addresses.check(address, {"allow_link_local"})
    addresses.check("10.0.0.1", {"allow_private"})
    with pytest.raises(Forbidden, match="say allow_private = true"):
        addresses.check("10.0.0.1", {"allow_link_local"})


@pytest.mark.parametrize("address", ["0.0.0.0", "224.0.0.1", "::", "ff02::1", "::ffff:0.0.0.0"])
def test_some_addresses_are_never_allowed(address: str) -> None:
    with pytest.raises(Forbidden):
        addresses.check(address, frozenset(ALLOWING))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::7f00:1]"]
)
def test_no_way_to_write_it_leads_to_this_machine(receiver: Receiver, host: str) -> None:
    outcome = sent(alert(f"http://{host}:{receiver.port}/", allow_private=False))
    assert outcome.error is not None
    assert "refused, for it is not public" in outcome.error
    assert receiver.requests == []


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "0",
        "１２７.0.0.1",
    ],
)
def test_an_address_is_written_in_full(receiver: Receiver, host: str) -> None:
    """Else one reader takes it for another address than the next one, allowed or not."""
    with pytest.raises(AlertError, match="no address in full"):
        sent(alert(f"http://{host}:{receiver.port}/"))
    receiver.behaviour = to(f"http://{host}:{receiver.port}/")
    outcome = sent(alert(receiver.url, redirects=1))
    assert outcome.error is not None
    assert "no address in full" in outcome.error
    assert len(receiver.requests) == 1


def test_the_address_is_checked_that_is_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that gives a public address at first and a private one later gains nothing."""
    real = socket.getaddrinfo

    def rebound(host: str, *rest: object, **more: object):
        return real("127.0.0.1" if host == "public.example" else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    url = f"http://public.example:{receiver.port}/"
    outcome = sent(alert(url, allow_private=False))
    assert outcome.error is not None
    assert "127.0.0.1 is refused" in outcome.error
    assert receiver.requests == []
    assert sent(alert(url)).delivered  # the name does lead there


# --- redirects ---------------------------------------------------------------------------------


def to(url: str, status: int = 307):
    return always(Reply(status, {"location": url}))


def test_a_redirect_is_followed_only_where_it_is_allowed(
    receiver: Receiver, other_receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "abc")
    receiver.behaviour = to(other_receiver.url)
    declared = {"headers": {"Authorization": "env:TOKEN"}}
    assert not sent(alert(receiver.url, **declared)).delivered
    assert other_receiver.requests == []
    assert sent(alert(receiver.url, redirects=1, **declared)).delivered
    (request,) = other_receiver.requests
    assert request.verified(SECRET)
    assert receiver.requests[0].headers["authorization"] == "abc"
    assert "authorization" not in request.headers  # the secret of one is not told to another


def test_redirects_end(receiver: Receiver) -> None:
    receiver.behaviour = to(receiver.url, 308)
    outcome = sent(alert(receiver.url, redirects=3))
    assert not outcome.delivered
    assert len(receiver.requests) == 4


def test_a_redirect_to_a_private_address_is_refused(
    receiver: Receiver, other_receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if 127.0.0.1 were a public address, and the other one private, as it is."""
    real = addresses.check
    monkeypatch.setattr(
        addresses, "check", lambda host, allow: host == "127.0.0.1" or real(host, allow)
    )
    inside = other_receiver.url.replace("127.0.0.1", "127.0.0.2")
    receiver.behaviour = to(inside)
    outcome = sent(alert(receiver.url, redirects=1, allow_private=False))
    assert outcome.error is not None
    assert "127.0.0.2 is refused" in outcome.error
    assert len(receiver.requests) == 1
    assert other_receiver.requests == []


@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "ftp://127.0.0.1/", "http://u:p@127.0.0.1/", "gopher:x"],
)
def test_a_redirect_to_something_else_is_refused(receiver: Receiver, target: str) -> None:
    receiver.behaviour = to(target)
    assert not sent(alert(receiver.url, redirects=5)).delivered
    assert len(receiver.requests) == 1


def test_no_redirect_from_https_to_http(
    tls_receiver: Receiver, receiver: Receiver, cert: Certificate
) -> None:
    tls_receiver.behaviour = to(receiver.url)
    outcome = sent(alert(tls_receiver.url, redirects=1, ca_file=str(cert.file)))
    assert outcome.error == "redirected from https to http"
    assert receiver.requests == []


# --- when it is tried again --------------------------------------------------------------------


def test_waits_grow_over_a_day_and_end() -> None:
    backoff = Backoff(jitter=0)
    waits = [backoff.wait(n) for n in range(1, 17)]
    assert waits[:4] == [1, 3, 9, 27]
    assert waits[-1] is None
    assert DAY < sum(wait for wait in waits if wait) < 1.5 * DAY


def test_waits_are_spread() -> None:
    waits = [Backoff().wait(5) for _ in range(200)]
    assert len(set(waits)) > 100
    assert all(wait and 0.8 * 81 <= wait <= 1.2 * 81 for wait in waits)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7),
        (" 0 ", 0),
        ("99999999999999999999", DAY),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0),
        ("soon", None),
        ("-5", None),
        ("", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOW) == seconds


def test_retry_after_is_part_of_the_outcome(receiver: Receiver) -> None:
    def busy(request: Request) -> Reply:
        return Reply(429, {"retry-after": "7"})

    receiver.behaviour = busy
    assert sent(alert(receiver.url)).retry_after == 7
