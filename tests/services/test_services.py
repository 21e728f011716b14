"""The services that other tests stand on."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.services.kafka import Broker


@pytest.mark.kafka
def test_what_a_broker_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    with Broker(tmp_path / "a broker") as broker:
        topic = broker.fresh_topic()
        producer = broker.producer()
        for number in range(5):
            producer.send(topic, value=str(number).encode())
        producer.close()
        broker.kill()
        broker.start()
        consumer = broker.consumer(topic)
        got: list[bytes] = []
        while len(got) < 5:
            polled = consumer.poll(10_000)
            assert polled, broker.log_tail()
            got += [record.value for records in polled.values() for record in records]
        consumer.close()
    assert got == [b"0", b"1", b"2", b"3", b"4"]


def test_the_browser_shows_a_page_and_clicks(page: Page, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        "<button onclick=\"this.textContent = 'confirmed'\">pending</button>"
    )
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.get_by_role("button", name="pending").click()
        assert page.get_by_role("button").text_content() == "confirmed"
        server.shutdown()
