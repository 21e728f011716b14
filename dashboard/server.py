"""Starts Streamlit with the settings the dashboard needs, in this process."""

from __future__ import annotations

from pathlib import Path

from dashboard import scope

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


def serve(url: str, host: str, port: int) -> None:
    """Serve the dashboard of the store at that URL until the process is told to end."""
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
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "global.developmentMode": False,
        **_THEME,
    }
    bootstrap.load_config_options(options)
    bootstrap.run(app, False, [], options)
