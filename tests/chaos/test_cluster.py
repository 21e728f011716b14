"""On executors of their own, with nothing installed there: the answers of a local run."""

from __future__ import annotations

import pytest

from tests.chaos.cluster import job, on
from tests.services.cluster import SparkCluster


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.postgres
def test_a_cluster_gives_the_answers_of_a_local_run() -> None:
    with job(events=6000) as one:
        one.run("local", "local[2]", batches=3)
        with SparkCluster(one.folder / "spark", workers=2) as cluster:
            one.run("cluster", *on(cluster), batches=3)
            logs = [p.read_text() for p in (one.folder / "spark").glob("work-*/app-*/*/stderr")]
        assert logs, "no executor ran"
        found = one.answers("cluster")
        assert {line["status"] for line in found} >= {"confirmed", "refuted"}
        assert found == one.answers("local")
