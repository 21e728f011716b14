"""Every page, light and dark, wide and narrow, as an operator finds it at three in the morning.

With WHILST_SCREENSHOTS=1 the pictures for the documentation are taken from the same pages.
"""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from storage import embedded
from storage.store import Store, open_store
from tests.dashboard import demo
from tests.dashboard.loader import Loader
from tests.dashboard.serving import ROOT, serving

View = Callable[..., Page]
IMAGES = ROOT / "docs" / "images"


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    """A farm that goes on while it is looked at, with an endpoint that does not answer."""
    home: Path = tmp_path_factory.mktemp("night")
    with open_store(home=home) as store:
        with psycopg.connect(store.url("owner")) as db:
            db.execute(
                "insert into endpoints (name, url, events) values "
                "('pager', 'https://pager.example/hook', '{confirmed}'), "
                "('archive', 'https://archive.example/in', '{confirmed,refuted}')"
            )
        run = demo.fill(store)
        with psycopg.connect(store.url("owner")) as db:
            db.execute(
                "update outbox set status = 'delivered', attempts = 1, done_at = now() "
                "where endpoint = 1 and id % 9 <> 0"
            )
            db.execute(
                "insert into delivery_attempts (outbox, endpoint, attempt, status_code, error) "
                "select max(id), endpoint, 1, case when endpoint = 1 then 200 end, "
                "case when endpoint = 2 then 'connection refused' end "
                "from outbox group by endpoint"
            )
        over = threading.Event()
        clock = threading.Thread(target=_go_on, args=(run, over))
        clock.start()
        try:
            with serving(home) as url:
                yield url, store
        finally:
            over.set()
            clock.join()
    embedded.remove(home)


def _go_on(run: Loader, over: threading.Event) -> None:
    while not over.wait(1):
        demo.go_on(run, int(time.time()) - 1)


def _addresses(store: Store) -> dict[str, str]:
    with psycopg.connect(store.url("reader")) as db:
        answers = dict(
            db.execute(
                "select distinct on (status) status, format('answer?run=%s&id=%s', run, id) "
                "from answers where query = 'Malf' "
                "order by status, jsonb_array_length(evidence) desc, deadline desc"
            ).fetchall()
        )
    pages = {name: name for name in ("pending", "confirmed", "refuted", "rules", "health")}
    return {"now": "", **pages, **{f"answer-{status}": url for status, url in answers.items()}}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_every_page_is_drawn_whole(
    view: View, night: tuple[str, Store], scheme: str, width: int
) -> None:
    url, store = night
    for name in _addresses(store):
        address = _addresses(store)[name]  # what was pending a page ago may be decided by now
        page = view(f"{url}/{address}", width, color_scheme=scheme)
        expect(page.locator(".whilst h1").first).to_be_attached()
        expect(page.locator(".stException, .defect")).to_have_count(0)
        assert page.evaluate("document.querySelector('.stMain').scrollWidth") <= width
        ground = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
        dark = sum(map(int, ground.strip("rgb()").split(","))) < 3 * 128
        assert dark == (scheme == "dark")
        if os.environ.get("WHILST_SCREENSHOTS") == "1":
            IMAGES.mkdir(parents=True, exist_ok=True)
            page.wait_for_load_state("networkidle")
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            small = picture.quantize(256, dither=Image.Dither.NONE)
            small.save(IMAGES / f"dashboard-{name}-{scheme}-{width}.png", optimize=True)
        page.context.close()
