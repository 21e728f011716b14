"""The trust store that a Java from a wheel is given."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from monitor.setup import trust


def test_java_reads_the_authorities_of_the_machine(spark: SparkSession, tmp_path: Path) -> None:
    known = trust.authorities()
    assert known
    (tmp_path / "trusted.jks").write_bytes(trust.java_trust_store(known))
    gateway: Any = spark.sparkContext._gateway
    password = gateway.new_array(gateway.jvm.char, 8)
    for place, letter in enumerate("changeit"):
        password[place] = letter
    store = gateway.jvm.java.security.KeyStore.getInstance("JKS")
    store.load(gateway.jvm.java.io.FileInputStream(str(tmp_path / "trusted.jks")), password)
    names = [f"authority-{number}" for number in range(len(known))]
    assert all(store.isCertificateEntry(name) for name in names)
    assert [bytes(store.getCertificate(name).getEncoded()) for name in names] == known


def test_a_file_named_by_ssl_cert_file_is_what_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trust.authorities()[0]
    (tmp_path / "one.pem").write_text(ssl.DER_cert_to_PEM_cert(one))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "one.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    assert trust.authorities() == [one]
