"""One embedded server for the folder, emptied for each test; receivers; secrets."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import psycopg
import pytest

from monitor.alerts.declarations import Alert
from storage.store import Store, open_store
from tests.services.receiver import Certificate, Receiver, certificate
from tests.storage.changes import Running, a_program

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw8vJ1S5b0xYE="
OLD_SECRET = "whsec_b2xkZXIgdGhhbiB0aGUgb3RoZXIgb25lLCBhbmQgbG9uZw=="


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(home=tmp_path_factory.mktemp("alerts")) as store:
        yield store


@pytest.fixture
def store(postgres: Store) -> Store:
    with psycopg.connect(postgres.url("owner")) as db:
        db.execute("truncate endpoints, outbox, delivery_attempts")
    return postgres


@pytest.fixture
def running(store: Store) -> Iterator[Running]:
    run = Running(store, a_program())
    yield run
    run.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as one:
        yield one


@pytest.fixture
def other_receiver() -> Iterator[Receiver]:
    with Receiver() as one:
        yield one


@pytest.fixture
def tls_receiver(cert: Certificate) -> Iterator[Receiver]:
    with Receiver(tls=cert.server()) as one:
        yield one


@pytest.fixture(scope="session")
def cert(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("cert"))


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    monkeypatch.setenv("OLD_HOOK_SECRET", OLD_SECRET)


@pytest.fixture(autouse=True)
def nothing_secret_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test does, no log of any library holds a secret."""
    caplog.set_level(logging.DEBUG)
    yield
    key = SECRET.removeprefix("whsec_")
    assert not [r for r in caplog.get_records("call") if key in r.getMessage()]


def alert(url: str, name: str = "hook", **more: object) -> Alert:
    """A declaration for a receiver on this machine."""
    values = {"secret": "env:HOOK_SECRET", "allow_private": True, "timeout": 5.0} | more
    return Alert(name=name, url=url, **values)  # type: ignore[arg-type]
