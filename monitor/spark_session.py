"""The one place that makes a Spark session, the same for `whilst run`, benchmarks and tests."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.setup import jars, java, packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J = Path(__file__).with_name("log4j2.properties")
_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(
    master: str = "local[2]",
    *,
    app: str = "whilst",
    kafka: bool = False,
    log_file: Path | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session on `master`, or the one this process has already.

    With `kafka` the connector is on the class path. What Spark logs goes to `log_file`; without
    one, its errors alone reach stderr. `conf` has the last word on every setting.
    """
    from pyspark.sql import SparkSession

    settings = _settings(master, kafka, log_file) | dict(conf or {})
    os.environ["JAVA_HOME"] = str(java.home_for_spark())
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = settings.get("spark.pyspark.python", sys.executable)
    builder = SparkSession.builder.master(master).appName(app)
    for key, value in settings.items():
        builder = builder.config(key, value)
    on_interrupt = signal.getsignal(signal.SIGINT)
    made = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        # Spark takes Ctrl-C for itself, to cancel its jobs: under a run that is to end in order.
        signal.signal(signal.SIGINT, on_interrupt)
    return made


def _settings(master: str, kafka: bool, log_file: Path | None) -> dict[str, str]:
    settings = {
        "spark.driver.extraJavaOptions": _log_options(log_file),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # Small batches: each partition costs a task and a state store, whatever it holds.
        "spark.sql.shuffle.partitions": "2",
        # A file of a few megabytes is read by all cores, not by one while the others wait.
        "spark.sql.files.openCostInBytes": "512k",
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # The checkpoint is in a folder. There the usual way to make a file starts processes (chmod
        # and ls) for each, and a batch makes a dozen; this way renames into place just as well.
        "spark.sql.streaming.checkpointFileManagerClass": _FILES,
        # Hadoop keeps a checksum beside each of these files: one is enough.
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        # What a lost executor has read is not read again within a batch: see ExecutorLost.
        "spark.stage.maxConsecutiveAttempts": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        # Nothing outside this machine takes part, and its host name may lead nowhere.
        settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
    else:
        # Executors elsewhere get code and packages with the job: nothing is installed there.
        settings["spark.archives"] = ",".join(packages.archives())
        settings["spark.executorEnv.PYTHONPATH"] = f"{packages.CODE}:{packages.PACKAGES}"
    if kafka:
        settings["spark.jars"] = ",".join(jar.as_uri() for jar in jars.spark_jars())
    return settings


def _log_options(log_file: Path | None) -> str:
    options = {"log4j2.configurationFile": _LOG4J.as_uri(), "whilst.log.console": "ERROR"}
    if log_file is not None:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        options["whilst.log.console"] = "OFF"
        options["whilst.log.file"] = str(log_file.absolute())
        options["whilst.log.level"] = "WARN"
    return " ".join(shlex.quote(f"-D{key}={value}") for key, value in options.items())
