"""A store elsewhere: where its password is known, and what is passed on to machines without it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from storage.store import anywhere, open_store
from tests.services.postgres import Postgres


@pytest.mark.postgres
def test_the_password_goes_with_the_url_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, reachable: Path
) -> None:
    with Postgres(reachable) as server:
        monkeypatch.setenv("PGPASSWORD", server.password)
        with open_store(server.url(password=False)) as store:
            assert server.password not in repr(store)
            url = store.url("writer")
            assert server.password not in url
            passed_on = anywhere(url)
        monkeypatch.delenv("PGPASSWORD")
        with psycopg.connect(passed_on) as db:
            assert db.execute("select count(*) from runs").fetchone() == (0,)
        assert anywhere(passed_on) == passed_on
