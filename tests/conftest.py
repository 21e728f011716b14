"""Services that tests share. Each starts with the first test that asks for it, once a worker.

What a test asks for marks it (`spark`, `kafka`, `browser`, `postgres`), and any of these marks it
`service`. A missing part fails the test and says how to get it: nothing is skipped in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from pyspark.sql import SparkSession

    from tests.services.kafka import Broker

# How long a case takes depends on what else the machine does, and no test of ours asserts a time.
# The other health checks stay: they speak of the cases themselves.
settings.register_profile("whilst", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("whilst")

SERVICES = ("spark", "kafka", "postgres", "browser")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for service in SERVICES:
            if service in getattr(item, "fixturenames", ()):
                item.add_marker(service)
        if any(item.get_closest_marker(service) for service in SERVICES):
            item.add_marker("service")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a worker, with the Kafka connector. Do not stop it."""
    from monitor.spark_session import session

    made = session("local[2]", app="tests", kafka=True)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests of a worker; a test that kills its broker starts its own."""
    from tests.services.kafka import Broker

    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from tests.services.browser import chromium

    with chromium() as one:
        yield one


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in a context of its own: no cookies, no storage of another test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        yield context.new_page()
    finally:
        context.close()
