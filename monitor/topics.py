"""Kafka topics as the driver sees them: is the log's clock on, and who may ask."""

from __future__ import annotations

import re
from typing import Any

from monitor.sources import SourceError, Topic


def require_log_append_time(topic: Topic) -> None:
    """Raises SourceError unless the broker stamps the topic's records with its own clock."""
    kind = _settings(topic).get("message.timestamp.type")
    if kind != "LogAppendTime":
        raise SourceError(
            f"{topic}: its records are stamped by their producers ({kind}), and a fact arrives "
            "when the log takes it. Let the broker stamp them:\n"
            f"  kafka-configs.sh --bootstrap-server {topic.servers} --alter --entity-type topics "
            f"--entity-name {topic.name} --add-config message.timestamp.type=LogAppendTime\n"
            "or name the field of the events that holds their arrival: --arrival-field FIELD"
        )


def _settings(topic: Topic) -> dict[str, str]:
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
    from kafka.errors import KafkaError

    try:
        admin = KafkaAdminClient(bootstrap_servers=topic.servers, **client_options(topic.options))
    except (KafkaError, OSError) as error:
        raise SourceError(
            f"{topic}: no broker answers at {topic.servers} ({error}): "
            "start it, or check the address"
        ) from None
    try:
        if topic.name not in admin.list_topics():
            raise SourceError(f"{topic}: there is no such topic: make it, or check the name")
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
        found = admin.describe_configs([resource], config_filter="all")
    except KafkaError as error:
        raise SourceError(f"{topic}: the broker refuses to describe it ({error})") from None
    finally:
        admin.close()
    return {name: told["value"] for name, told in found["topic"][topic.name].items()}


_NAMES = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.key.password": "ssl_password",
}


def client_options(options: dict[str, str]) -> dict[str, Any]:
    """The options of Kafka's Java client as kafka-python calls them (key stores in PEM)."""
    found: dict[str, Any] = {
        _NAMES[name]: value for name, value in options.items() if name in _NAMES
    }
    jaas = options.get("sasl.jaas.config", "")
    for ours, theirs in (("sasl_plain_username", "username"), ("sasl_plain_password", "password")):
        if stated := re.search(rf'{theirs}="((?:[^"\\]|\\.)*)"', jaas):
            found[ours] = re.sub(r"\\(.)", r"\1", stated[1])
    if options.get("ssl.endpoint.identification.algorithm") == "":
        found["ssl_check_hostname"] = False
    return found
