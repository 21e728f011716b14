"""Nobody from outside sees anything without signing in, and not everybody who can sign in may."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dashboard.sign_in import NotSafe, exposed, read
from storage.store import Store
from tests.dashboard.loader import Loader
from tests.dashboard.provider import Provider, provider
from tests.dashboard.serving import ROOT, WHILST, serving
from tests.services.ports import free

View = Callable[..., Page]
SECRET = "0123456789abcdef" * 4


def setting(**given: str) -> str:
    values = {
        "redirect_uri": "http://localhost:1/oauth2callback",
        "cookie_secret": SECRET,
        "client_id": "whilst",
        "client_secret": "secret",
        "server_metadata_url": "http://localhost:2/.well-known/openid-configuration",
    } | given
    lines = "\n".join(f'{name} = "{value}"' for name, value in values.items())
    return f'[auth]\n{lines}\n\n[whilst]\nallow = ["*@example.org"]\n'


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_this_machine_is_not_exposed(host: str) -> None:
    assert not exposed(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "monitor.example.org", ""])
def test_others_are(host: str) -> None:
    assert exposed(host)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lacks redirect_uri"),
        ("not toml", "cannot be read"),
        (setting(client_secret=""), "lacks client_secret"),
        (setting(cookie_secret="short"), "fewer than 32"),
        (setting().split("[whilst]")[0], "whose sign-in counts"),
        (setting().replace('["*@example.org"]', "[]"), "whose sign-in counts"),
        (setting().replace('["*@example.org"]', '"*@example.org"'), "whose sign-in counts"),
    ],
)
def test_half_a_sign_in_is_none(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "secrets.toml"
    file.write_text(text)
    with pytest.raises(NotSafe, match=said):
        read(file)


@pytest.mark.parametrize(
    ("email", "verified", "allowed"),
    [
        ("ada@example.org", True, True),
        ("Ada@Example.ORG", None, True),
        ("ada@example.org", False, False),
        ("ada@example.org.evil.net", True, False),
        ("ada@evil.net", True, False),
        (None, True, False),
        ("", True, False),
    ],
)
def test_whose_sign_in_counts(
    tmp_path: Path, email: str | None, verified: bool | None, allowed: bool
) -> None:
    file = tmp_path / "secrets.toml"
    file.write_text(setting())
    assert read(file).allows(email, verified) is allowed


def test_the_command_refuses_to_be_seen_by_others_without_sign_in(
    home: Path, postgres: Store
) -> None:
    done = subprocess.run(
        [*WHILST, "dashboard", "--host", "0.0.0.0", "--port", str(free(1)[0])],
        env=os.environ | {"WHILST_HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "--sign-in" in done.stderr
    assert "Traceback" not in done.stderr


# --- signing in ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def idp() -> Iterator[Provider]:
    with provider() as one:
        yield one


@pytest.fixture(scope="module")
def guarded(
    home: Path, run: Loader, idp: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A dashboard that listens on every address of the machine."""
    port = free(1)[0]
    file = tmp_path_factory.mktemp("sign-in") / "secrets.toml"
    file.write_text(
        setting(
            redirect_uri=f"http://localhost:{port}/oauth2callback",
            client_secret=idp.client[1],
            server_metadata_url=f"{idp.url}/.well-known/openid-configuration",
        )
    )
    options = ("--host", "0.0.0.0", "--sign-in", str(file))
    with serving(home, *options, port=port) as url:
        yield url


@pytest.mark.parametrize("name", ["", "pending", "confirmed", "answer", "rules", "health"])
def test_nothing_shows_before_signing_in(view: View, guarded: str, name: str) -> None:
    page = view(f"{guarded}/{name}")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert "Malf" not in page.content()
    expect(page.locator(".card, tr, pre, .figure")).to_have_count(0)
    expect(page.get_by_role("link", name="Pending")).to_have_count(0)


def test_who_signs_in_sees_everything_and_signs_out_again(
    view: View, guarded: str, idp: Provider
) -> None:
    idp.claims = {"email": "ada@example.org", "email_verified": True, "name": "Ada"}
    page = view(guarded)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".card").first).to_be_visible()
    page.goto(f"{guarded}/pending?text=malf")
    expect(page.locator("tr.opens").first).to_be_visible()
    page.goto(guarded)
    expect(page.locator(".card").first).to_be_visible()
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "mallory@evil.net", "email_verified": True},
        {"email": "ada@example.org", "email_verified": False},
        {"email": "<img src=x onerror=window.hacked=1>@evil.net"},
        {},
    ],
)
def test_a_stranger_who_signs_in_sees_nothing(
    view: View, guarded: str, idp: Provider, claims: dict[str, object]
) -> None:
    idp.claims = claims
    page = view(guarded)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("may not see this dashboard")).to_be_visible()
    expect(page.locator(".card, tr, pre, .figure")).to_have_count(0)
    assert page.evaluate("window.hacked") is None
