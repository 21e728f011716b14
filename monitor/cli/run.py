"""`whilst run`: the monitor itself."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.dashboard import beside
from monitor.cli.programs import ProgramFile, failing, program_of


class LogFormat(StrEnum):
    text = "text"
    json = "json"


def register(app: typer.Typer) -> None:
    app.command()(run)


def _configured(context: typer.Context, file: Path | None) -> Path | None:
    """Read before the other options: what a file says is their default."""
    from monitor.config import ConfigError, settings_of

    names = {p.name for p in context.command.params if p.name} - {"program_file", "config"}
    try:
        context.default_map = settings_of(file, "run", names)
    except ConfigError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    return file


def run(
    program_file: ProgramFile,
    source: Annotated[
        list[str],
        typer.Option(
            envvar="WHILST_SOURCE",
            help="A file or folder of JSON Lines or CSV, or kafka://host:port/topic; may repeat.",
        ),
    ],
    once: Annotated[
        bool, typer.Option("--once", envvar="WHILST_ONCE", help="Read what is there, then end.")
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            envvar="WHILST_UNTIL",
            metavar="τ",
            help="With --once: leave out what arrived after this time point or instant.",
        ),
    ] = None,
    trigger: Annotated[
        str, typer.Option(envvar="WHILST_TRIGGER", help="How often to look for facts.")
    ] = "1s",
    store: Annotated[
        str | None,
        typer.Option(
            envvar="WHILST_STORE", metavar="URL", help="Another Postgres than the embedded one."
        ),
    ] = None,
    master: Annotated[
        str, typer.Option(envvar="WHILST_MASTER", help="Where Spark runs: local[*], spark://…")
    ] = "local[*]",
    partitions: Annotated[
        int | None,
        typer.Option(
            envvar="WHILST_PARTITIONS",
            min=1,
            help="Parts of the state, fixed when a run begins; default 2.",
        ),
    ] = None,
    max_files: Annotated[
        int | None,
        typer.Option(envvar="WHILST_MAX_FILES", min=1, help="At most so many files a batch."),
    ] = None,
    max_offsets: Annotated[
        int | None,
        typer.Option(envvar="WHILST_MAX_OFFSETS", min=1, help="At most so many records a batch."),
    ] = None,
    arrival_field: Annotated[
        str | None,
        typer.Option(
            envvar="WHILST_ARRIVAL_FIELD",
            help="The field that says when an event arrived; without it that is `arrival` in "
            "files, and the broker's own stamp in Kafka.",
        ),
    ] = None,
    grace: Annotated[
        str,
        typer.Option(
            envvar="WHILST_GRACE",
            help="Live: how long what was logged may take until it can be read.",
        ),
    ] = "2s",
    skew: Annotated[
        str | None,
        typer.Option(
            envvar="WHILST_SKEW",
            help="How far in the future an arrival may lie; live 1h, with --once any.",
        ),
    ] = None,
    kafka: Annotated[
        list[str] | None,
        typer.Option(
            "--kafka",
            envvar="WHILST_KAFKA",
            metavar="KEY=VALUE",
            help="An option of Kafka's client, such as security.protocol=SASL_SSL; may repeat.",
        ),
    ] = None,
    spark: Annotated[
        list[str] | None,
        typer.Option(
            "--spark", envvar="WHILST_SPARK", metavar="KEY=VALUE", help="A setting of Spark's."
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(envvar="WHILST_WEBHOOK", metavar="URL", help="Where confirmed answers go."),
    ] = None,
    webhook_secret: Annotated[
        str | None,
        typer.Option(
            envvar="WHILST_WEBHOOK_SECRET",
            metavar="env:NAME|file:PATH",
            help="Where the secret that signs them is.",
        ),
    ] = None,
    webhook_allow_private: Annotated[
        bool,
        typer.Option("--webhook-allow-private", help="Let it be an address of this network."),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget where the last run ended, and start anew.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            envvar="WHILST_METRICS", metavar="[HOST:]PORT", help="Serve metrics for Prometheus."
        ),
    ] = None,
    dashboard: Annotated[
        int | None,
        typer.Option(
            envvar="WHILST_DASHBOARD",
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve the dashboard on this port, on this machine, while it runs.",
        ),
    ] = None,
    log_format: Annotated[
        LogFormat, typer.Option(envvar="WHILST_LOG_FORMAT", help="How log lines look.")
    ] = LogFormat.text,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            envvar="WHILST_CONFIG",
            is_eager=True,
            callback=_configured,
            help="A TOML file with settings below [run]; `whilst.toml` here if there is one.",
        ),
    ] = None,
) -> None:
    """Read facts as they arrive, and keep the answers in the store up to date.

    It goes on from where it ended the last time. Ctrl-C and SIGTERM end it after the batch at hand.

    Examples: `whilst run turbines.rules --source facts.jsonl --once`,
    `whilst run turbines.rules --source kafka://localhost:9092/facts`
    """
    program = program_of(program_file)
    with failing():
        from monitor import alerts
        from monitor.config import FILE, ConfigError, milliseconds, pairs, point
        from monitor.run import Options
        from monitor.setup.places import SetupError
        from monitor.sources import parse_source
        from monitor.start import Loaded, RunFailed, Settings, run_program
        from storage.errors import StoreError

        if until is not None and not once:
            raise ConfigError("--until needs --once: live, time goes by itself")
        allowed = "1h" if skew is None and not once else skew
        options = Options(
            once=once,
            until=None if until is None else point(until, program.unit, "--until"),
            trigger=f"{milliseconds(trigger, '--trigger')} milliseconds",
            arrival_field=arrival_field,
            skew=None if allowed is None else milliseconds(allowed, "--skew"),
            grace=milliseconds(grace, "--grace"),
            most_files=max_files,
            most_offsets=max_offsets,
        )
        try:
            declared = alerts.gather(
                config or (FILE if FILE.exists() else None),
                program=program_file.stem,
                queries=[query.name for query in program.queries],
                url=webhook,
                secret=webhook_secret,
                allow_private=webhook_allow_private,
            )
        except alerts.AlertError as error:
            raise ConfigError(str(error)) from None
        kafka_options = pairs(kafka or [], "--kafka")
        settings = Settings(
            [parse_source(text, kafka_options) for text in source],
            options,
            store,
            master,
            partitions,
            fresh,
            _address(metrics),
            log_format is LogFormat.json,
            pairs(spark or [], "--spark"),
            declared,
        )
        try:
            with beside(dashboard, store):
                told = run_program(Loaded.of(program_file.stem, program), settings)
        except (StoreError, SetupError) as error:
            raise RunFailed(str(error)) from None
        typer.echo(told)


def _address(text: str | None) -> tuple[str, int] | None:
    from monitor.config import ConfigError

    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise ConfigError(f"--metrics takes a port, or host:port, not {text!r}")
    return host or "127.0.0.1", int(port)
