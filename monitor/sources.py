"""Where events come from: files, folders and Kafka topics, as one stream of rows.

Columns: `value` (the event), `source` (file or topic), `place` (partition and offset; null for
files), `start` and `length` (the part of the file; null for Kafka), `stamp` (when the log took it,
in milliseconds; null where the event says so itself).
"""

from __future__ import annotations

import csv
import gzip
import re
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from resolution.errors import WhilstError

COLUMNS = ("value", "source", "place", "start", "length", "stamp")


UNSTAMPED = -1
"""`stamp` of a record that should have been stamped by the log, and was by its producer."""

_LOG_APPEND_TIME = 1


class SourceError(WhilstError):
    """A source that cannot be read, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Files:
    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def header(self) -> tuple[str, ...] | None:
        """The header of a CSV file. None for other files, for folders, and for odd headers."""
        if self.path.is_dir() or not is_csv(self.path.name):
            return None
        header = header_of(self.path)[1]
        return header if len(set(header)) == len(header) else None

    def read(self, spark: SparkSession, most_files: int | None) -> DataFrame:
        # A file's age is no reason to leave it out, and only a line feed ends a line.
        reader = spark.readStream.format("text").options(lineSep="\n", maxFileAge="36500d")
        if most_files:
            reader = reader.option("maxFilesPerTrigger", most_files)
        rows = reader.load(_pattern(self.path))
        return rows.where(F.trim("value", F.lit(" \t\r")) != "").select(
            "value",
            F.col("_metadata.file_path").alias("source"),
            F.lit(None).cast("string").alias("place"),
            F.col("_metadata.file_block_start").alias("start"),
            F.col("_metadata.file_block_length").alias("length"),
            F.lit(None).cast("long").alias("stamp"),
        )


@dataclass(frozen=True, slots=True)
class Topic:
    servers: str
    name: str
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"kafka://{self.servers}/{self.name}"

    def read(self, spark: SparkSession, most_offsets: int | None, stamped: bool) -> DataFrame:
        reader = spark.readStream.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self.servers,
                "subscribe": self.name,
                "startingOffsets": "earliest",
                "failOnDataLoss": "true",
                # What a reader asked for ahead keeps it from asking for anything else so long.
                "kafka.fetch.max.wait.ms": "20",
                **{f"kafka.{key}": value for key, value in self.options.items()},
            }
        )
        if most_offsets:
            reader = reader.option("maxOffsetsPerTrigger", most_offsets)
        # Older records keep the stamps of their producers when a topic's setting is changed.
        appended = F.when(F.col("timestampType") == _LOG_APPEND_TIME, F.unix_millis("timestamp"))
        stamp = F.coalesce(appended, F.lit(UNSTAMPED)) if stamped else F.lit(None).cast("long")
        return reader.load().select(
            F.coalesce(F.col("value").cast("string"), F.lit("")).alias("value"),
            F.lit(str(self)).alias("source"),
            F.concat_ws("/", "partition", "offset").alias("place"),
            F.lit(None).cast("long").alias("start"),
            F.lit(None).cast("long").alias("length"),
            stamp.alias("stamp"),
        )


def parse_source(text: str, options: dict[str, str] | None = None) -> Files | Topic:
    """A source from what stands on the command line. Raises SourceError."""
    if "://" not in text:
        path = Path(text)
        if not path.exists():
            raise SourceError(f"{text}: no such file or folder")
        return Files(path.absolute())
    try:
        parts = urlsplit(text)
    except ValueError:  # a bracket that is no address
        parts = urlsplit("")
    name = parts.path.strip("/")
    if parts.scheme != "kafka" or not parts.netloc or not name or "/" in name:
        raise SourceError(f"{text}: a source is a file, a folder, or kafka://host:port/topic")
    return Topic(parts.netloc, name, options or {})


def json_and_csv(
    spark: SparkSession,
    sources: list[Files | Topic],
    *,
    stamped: bool = True,
    most_files: int | None = None,
    most_offsets: int | None = None,
) -> list[tuple[DataFrame, tuple[str, ...] | None]]:
    """All sources as streams, each with its header where it is a CSV file.

    Where the log is `stamped`, a topic's stamps are the arrivals. In a folder CSV files are known
    by their names, and Python reads their lines: each may have another header.
    """
    plain: list[DataFrame] = []
    found: list[tuple[DataFrame, tuple[str, ...] | None]] = []
    for source in sources:
        if isinstance(source, Topic):
            plain.append(source.read(spark, most_offsets, stamped))
        elif (header := source.header()) is not None:
            found.append((source.read(spark, most_files), header))
        else:
            plain.append(source.read(spark, most_files))
    if plain:
        found.append((reduce(DataFrame.unionByName, plain), None))
    return found


def is_csv(path: str) -> bool:
    return path.removesuffix(".gz").endswith(".csv")


def header_of(path: Path) -> tuple[bytes, tuple[str, ...]]:
    """The first line of a CSV file that is not blank, and the names in it. Raises SourceError."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        line = next((line for line in file if line.strip()), b"")
    try:
        names = next(csv.reader([line.decode("utf-8-sig").strip("\r\n")], strict=True), [])
    except (csv.Error, UnicodeDecodeError):
        names = []
    header = tuple(name.strip() for name in names)
    if not {"fact", "time"} <= set(header):
        raise SourceError(
            f"{path}: a CSV file has a header with `fact`, the names of fields, and `time`"
        )
    return line.removesuffix(b"\n"), header


def _pattern(path: Path) -> str:
    """A path as Hadoop's pattern that fits it alone. Spark takes a pattern even for one file."""
    text = re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path))
    return text if path.is_dir() or text != str(path) else f"{text[:-1]}[{text[-1]}]"
