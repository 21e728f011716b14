"""`[[alert]]` in whilst.toml, and `--webhook`."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor import alerts
from monitor.alerts import AlertError, from_file
from monitor.alerts.secrets import shown_url
from tests.alerts.conftest import SECRET

WHOLE = """
home = ".whilst"

[[alert]]
name = "pager"
program = "turbines"
queries = ["Malf", "Fire"]
events = ["confirmed", "refuted", "deadline in less than 10m"]
filter = { X = "wt2", T = 7, ok = true }
url = "https://alerts.example.org/hook?tenant=7"
secret_env = "HOOK_SECRET"
previous_secret_file = "old.secret"
headers = { X-Tenant = "seven", Authorization = "env:TOKEN" }
redirects = 2
timeout = "3s"
concurrency = 8
ca_file = "ca.pem"

[[alert]]
name = "chat"
events = ["deadline in less than 5"]
url_env = "CHAT_URL"
format = "slack"
template = "{answer} waits for {hypotheses} ({bindings.X})"
"""


def read(tmp_path: Path, text: str) -> tuple[alerts.Alert, ...]:
    path = tmp_path / "whilst.toml"
    path.write_text(text)
    return from_file(path)


def test_every_setting(tmp_path: Path) -> None:
    pager, chat = read(tmp_path, WHOLE)
    assert (pager.name, pager.program, pager.queries) == ("pager", "turbines", ("Malf", "Fire"))
    assert pager.events == ("confirmed", "refuted", "deadline")
    assert (pager.within, pager.within_ms) == (None, 600_000)
    assert pager.filter == {"X": "wt2", "T": 7, "ok": "true"}
    assert pager.references == ("env:HOOK_SECRET", f"file:{tmp_path}/old.secret")
    assert pager.headers == {"X-Tenant": "seven", "Authorization": "env:TOKEN"}
    assert (pager.redirects, pager.timeout, pager.concurrency) == (2, 3.0, 8)
    assert pager.ca_file == str(tmp_path / "ca.pem")
    assert not pager.allow_private
    assert (chat.events, chat.within, chat.queries) == (("deadline",), 5, None)
    assert (chat.url, chat.format, chat.secret) == ("env:CHAT_URL", "slack", None)


def test_by_default_what_is_confirmed(tmp_path: Path) -> None:
    (one,) = read(tmp_path, '[[alert]]\nname = "a"\nurl = "https://e.org"\nsecret_env = "S"')
    assert one.events == ("confirmed",)
    assert one.filter == {}


def test_no_file_no_alerts(tmp_path: Path) -> None:
    assert from_file(tmp_path / "whilst.toml") == ()
    assert read(tmp_path, "") == ()


GOOD = {"name": '"a"', "url": '"https://e.org/"', "secret_env": '"S"'}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": None}, "alert 1: it needs a name"),
        ({"querys": "[]"}, "there is no setting `querys`"),
        ({"secret_env": None}, "secret_env or secret_file"),
        ({"secret": '"whsec_abcdef"'}, "no secret stands in this file"),
        ({"secret_file": '"f"'}, "not both"),
        ({"secret_env": '""'}, "is empty"),
        ({"url": None}, "one of url, url_env and url_file"),
        ({"url": '"ftp://e.org/"'}, "https:// or http://"),
        ({"url": '"file:///etc/passwd"', "format": '"standard"'}, None),
        ({"url": '"https://"'}, "names no host"),
        ({"url": '"https://u:hunter2@e.org/"'}, "no password stands in a URL"),
        ({"url": '"https://e.org:99999/"'}, "cannot be read"),
        ({"url": '"http://127.0.0.1/"'}, "allow_private = true"),
        ({"url": '"http://localhost:80/"'}, "allow_private = true"),
        ({"url": '"http://[::1]/"'}, "allow_private = true"),
        ({"url": '"http://[fe80::1]/"', "allow_private": "true"}, "allow_link_local = true"),
        ({"url": '"https://e.org/a b"'}, "a space"),
        ({"events": "[]"}, "leave it out"),
        ({"events": '["closed"]'}, "confirmed, pending, refuted"),
        ({"events": '["deadline"]'}, "deadline in less than 10m"),
        ({"events": '["deadline in less than 10 parsecs"]'}, "deadline in less than 10m"),
        ({"events": '["deadline in less than 10x"]'}, "is no duration"),
        ({"events": '["deadline in less than 0s"]'}, "never happens"),
        ({"events": '"confirmed"'}, "`events` takes a list"),
        ({"queries": "[]"}, "leave it out for all"),
        ({"filter": "{ X = [1] }"}, "text or a number"),
        ({"filter": "{ X = nan }"}, "text or a number"),
        ({"format": '"teams"'}, "standard, slack"),
        ({"template": '"{answer}"'}, 'format = "slack"'),
        ({"format": '"slack"', "template": '"{answr}"'}, "names {answr}"),
        ({"format": '"slack"', "template": '"{answer.__class__}"'}, "names {answer.__class__}"),
        ({"headers": '{ Authorization = "Bearer hunter2" }'}, "looks secret"),
        ({"headers": '{ webhook-id = "x" }'}, "is set by whilst"),
        ({"headers": '{ X-A = "a\\nb" }'}, "a line of text"),
        ({"headers": '{ "X A" = "a" }'}, "a line of text"),
        ({"timeout": '"2m"'}, "at most 60s"),
        ({"redirects": "-1"}, "from 0 to 10"),
        ({"concurrency": "0"}, "from 1 to 256"),
        ({"allow_private": '"yes"'}, "true or false"),
    ],
)
def test_mistakes_are_told_with_what_to_do(
    tmp_path: Path, changes: dict[str, str | None], said: str | None
) -> None:
    lines = [f"{key} = {value}" for key, value in (GOOD | changes).items() if value is not None]
    text = "\n".join(["[[alert]]", *lines])
    if said is None:  # a reference, read when it is needed; what it holds is checked then
        assert read(tmp_path, text)[0].url.startswith("file:")
        return
    with pytest.raises(AlertError) as raised:
        read(tmp_path, text)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert "whsec_abcdef" not in str(raised.value)


def test_names_are_unique(tmp_path: Path) -> None:
    one = '[[alert]]\nname = "a"\nurl = "https://e.org"\nsecret_env = "S"\n'
    with pytest.raises(AlertError, match="another alert has that name"):
        read(tmp_path, one + one)


def test_text_that_is_no_toml(tmp_path: Path) -> None:
    with pytest.raises(AlertError, match="cannot be read"):
        read(tmp_path, "[[alert")


def test_nothing_secret_is_shown(tmp_path: Path) -> None:
    pager, _ = read(tmp_path, WHOLE.replace("tenant=7", "key=hunter2"))
    assert "hunter2" not in repr(pager)
    assert shown_url(pager.url) == "https://alerts.example.org/…"
    assert shown_url("https://e.org") == "https://e.org"
    assert shown_url("env:CHAT_URL") == "env:CHAT_URL"


# --- the command line of a run -----------------------------------------------------------------


def test_a_webhook_on_the_command_line(tmp_path: Path) -> None:
    gathered = alerts.gather(
        tmp_path / "whilst.toml",
        program="turbines",
        url="https://e.org/",
        secret="env:HOOK_SECRET",
    )
    (one,) = gathered["run turbines"]
    assert (one.program, one.events, one.secret) == (
        "turbines",
        ("confirmed",),
        "env:HOOK_SECRET",
    )
    assert gathered[str(tmp_path / "whilst.toml")] == ()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"url": "https://e.org/", "secret": SECRET}, "env:NAME or file:PATH"),
        ({"url": "https://e.org/"}, "--webhook-secret env:NAME"),
        ({"url": "https://e.org/", "secret": "env:UNSET_SECRET"}, "UNSET_SECRET is not set"),
        ({"url": "http://10.0.0.1/", "secret": "env:HOOK_SECRET"}, "--webhook-allow-private"),
        ({"secret": "env:HOOK_SECRET"}, "no --webhook URL"),
    ],
)
def test_mistakes_on_the_command_line(arguments: dict[str, str], said: str) -> None:
    with pytest.raises(AlertError) as raised:
        alerts.gather(None, program="p", **arguments)
    assert said in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_query_that_the_program_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "whilst.toml"
    path.write_text(
        '[[alert]]\nname = "a"\nurl = "https://e.org"\nsecret_env = "HOOK_SECRET"\n'
        'program = "turbines"\nqueries = ["Melf"]\n'
    )
    with pytest.raises(AlertError, match="turbines has no query Melf; it has Cool, Malf"):
        alerts.gather(path, program="turbines", queries=["Malf", "Cool"])
    assert alerts.gather(path, program="another", queries=["Malf"])
