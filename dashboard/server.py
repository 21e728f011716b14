"""Starts Streamlit in this process, with the settings that the dashboard needs."""

from __future__ import annotations

from pathlib import Path

from dashboard import scope, sign_in
from dashboard.sign_in import NotSafe, SignIn

__all__ = ["serve"]

_THEME = {
    "theme.light.primaryColor": "#2563eb",
    "theme.light.backgroundColor": "#ffffff",
    "theme.light.secondaryBackgroundColor": "#f4f6f9",
    "theme.light.textColor": "#18202b",
    "theme.dark.primaryColor": "#7aa2ff",
    "theme.dark.backgroundColor": "#0e131a",
    "theme.dark.secondaryBackgroundColor": "#171e28",
    "theme.dark.textColor": "#e9edf3",
}


def serve(url: str, host: str, port: int, sign_in_file: Path | None = None) -> None:
    """Serve the dashboard of the store at that URL until the process is told to end.

    Raises NotSafe where others could reach it without signing in.
    """
    sign_in.require(_sign_in(host, sign_in_file))
    from streamlit.web import bootstrap

    scope.use(url)
    app = str(Path(__file__).with_name("app.py"))
    options = {
        "server.address": host,
        "server.port": port,
        "server.headless": True,
        "server.fileWatcherType": "none",
        "server.runOnSave": False,
        "server.enableAgentApi": False,
        # A whole collection after each draw is half of what a viewer costs; Python does its own.
        "runner.postScriptGC": False,
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "global.developmentMode": False,
        "logger.level": "warning",
        "secrets.files": [] if sign_in_file is None else [str(sign_in_file)],
        **_THEME,
    }
    bootstrap.load_config_options(options)
    bootstrap.run(app, False, [], options)


def _sign_in(host: str, file: Path | None) -> SignIn | None:
    if file is not None:
        return sign_in.read(file)
    if sign_in.exposed(host):
        raise NotSafe(
            f"{host} can be reached from other machines, and nobody would have to sign in: set "
            "OpenID Connect up and name its file with --sign-in (see docs/design/dashboard.md), "
            "or leave --host out"
        )
    return None
