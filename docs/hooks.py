"""What the documentation is built from besides its own pages: examples, commands, messages.

Generated pages say so at their top. They are made when the site is built, so they cannot fall
behind; `make docs` fails on a link in them that leads nowhere.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

_GENERATED = '!!! note ""\n    This page is generated from {source}.\n\n'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    texts = {
        path.relative_to(ROOT).as_posix(): _example(path)
        for path in sorted((ROOT / "examples").rglob("*.md"))
    } | {
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(),
        "changes.md": (ROOT / "CHANGELOG.md").read_text(),
        "reference/commands.md": commands(),
    }
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put generated parts where a page asks for them."""
    parts = {"grammar": grammar, "messages": messages}
    for name, make in parts.items():
        mark = f"<!-- generated: {name} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return markdown.replace("```rules", "```prolog")  # the highlighter knows its cousin


def _example(path: Path) -> str:
    """An example's page, with its rules and facts under it."""
    text = path.read_text()
    languages = {".rules": "rules", ".csv": "csv", ".jsonl": "json"}
    files = [file for file in path.parent.iterdir() if file.suffix in languages]
    for file in sorted(
        files, key=lambda f: (f.suffix == ".jsonl", f.suffix == ".csv", f.stem == "expected")
    ):
        text += f'\n```{languages[file.suffix]} title="{file.name}"\n{file.read_text()}```\n'
    return text


def commands() -> str:
    """All commands with their options, as `--help` tells them."""
    import typer

    from monitor.cli import app

    text = ["# Commands\n", _GENERATED.format(source="the commands themselves")]
    text.append("`whilst COMMAND --help` says the same at a terminal.\n")
    text.append(
        "Every command ends with 0 if all is well, 1 if it found mistakes or failed, 2 if it was "
        "called in a wrong way.\n"
    )
    root = typer.main.get_command(app)
    for path, command in _leaves(root, ()):
        text.append(f"## whilst {' '.join(path)} {{ #{'-'.join(path)} }}\n")
        text.append(re.sub(r"(?m)^Example: ", "\nExample: ", _dedent(command.help or "")) + "\n")
        rows = [_parameter(p) for p in command.params if not getattr(p, "hidden", False)]
        rows = [row for row in rows if "--help" not in row]
        if rows:
            text.append("| | |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(text)


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, sub in sorted(command.commands.items()):
        if not sub.hidden:
            yield from _leaves(sub, (*path, name))


def _dedent(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines()).strip()


def _parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name, told = f"`{parameter.metavar or parameter.name.upper()}`", parameter.help or ""
    else:
        name = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
        told = parameter.help or ""
    default = parameter.default
    if not callable(default) and default not in (None, False, "", ()) and "Default" not in told:
        told += f" Default: `{getattr(default, 'value', default)}`."
    return f"| {name} | {html.escape(told, quote=False).replace('|', chr(92) + '|')} |"


def grammar() -> str:
    """The grammar as the parser reads it, without its remarks on itself."""
    lines = (ROOT / "resolution" / "grammar.lark").read_text().splitlines()
    rules = [line for line in lines if not line.startswith("//")]
    end = next(i for i, line in enumerate(rules) if line.startswith("aside:"))
    return "```text\n" + "\n".join(rules[:end]).strip() + "\n```\n"


def messages() -> str:
    """Mistakes and what is said about them, from the cases that the tests hold."""
    cases = ROOT / "tests" / "resolution" / "errors"
    text = []
    for name in ("undeclared", "unsafe", "sorts", "types", "recursion"):
        text.append(f"```text\n{(cases / f'{name}.errors').read_text().strip()}\n```\n")
    return "\n".join(text)
