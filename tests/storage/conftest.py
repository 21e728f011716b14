"""One embedded server for the folder, and a second one that stands for an external store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from storage import embedded
from storage.store import Store, open_store
from tests.storage.changes import Running, a_program


@pytest.fixture(autouse=True, scope="session")
def postgres() -> None:
    """All tests of this folder are marked by it: they need a server, however they start it."""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("store") / "a home with blanks"
    yield folder
    embedded.remove(folder)


@pytest.fixture(scope="session")
def embedded_store(home: Path) -> Iterator[Store]:
    with open_store(home=home) as store:
        yield store


@pytest.fixture(scope="session")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.Connection]:
    """A server that whilst only knows by its URL."""
    folder = tmp_path_factory.mktemp("other")
    with embedded.using(folder) as server:
        yield server
    embedded.remove(folder)


@pytest.fixture(scope="session")
def new_database(other_server: embedded.Connection) -> Callable[[str], str]:
    """Make an empty database on the other server; its URL, with a user who may do anything."""

    def make(name: str) -> str:
        with psycopg.connect(other_server.url("whilst_admin", "postgres"), autocommit=True) as db:
            db.execute(f"create database {name}")
        return other_server.url("whilst_admin", name)

    return make


@pytest.fixture(scope="session")
def external_store(new_database: Callable[[str], str]) -> Iterator[Store]:
    with open_store(new_database("external")) as store:
        yield store


@pytest.fixture(params=["embedded", "external"])
def store(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(f"{request.param}_store")
    return found


@pytest.fixture
def running(store: Store) -> Iterator[Running]:
    """A run of a program of its own."""
    run = Running(store, a_program())
    yield run
    run.close()
