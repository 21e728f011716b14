"""The language server, driven over its standard input and output as an editor drives it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

TURBINES = (Path(__file__).resolve().parents[2] / "examples/turbines/turbines.rules").read_text()


class Editor:
    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client = client
        self.uri = (folder / "farm.rules").as_uri()
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda params: self.told.put_nowait(params)
        )

    async def open(self, text: str) -> list[types.Diagnostic]:
        item = types.TextDocumentItem(self.uri, "whilst", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return list((await asyncio.wait_for(self.told.get(), 15)).diagnostics)

    async def type(self, text: str, version: int = 2) -> list[types.Diagnostic]:
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version, self.uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        return list((await asyncio.wait_for(self.told.get(), 15)).diagnostics)

    async def hover(self, line: int, column: int) -> str | None:
        found = await self.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(self.uri), types.Position(line, column))
        )
        return found and found.contents.value

    async def format(self) -> Any:
        return await self.client.text_document_formatting_async(
            types.DocumentFormattingParams(
                types.TextDocumentIdentifier(self.uri), types.FormattingOptions(4, True)
            )
        )


@asynccontextmanager
async def editor(folder: Path) -> AsyncIterator[Editor]:
    client = LanguageClient("a test", "1")
    await client.start_io(sys.executable, "-c", "from monitor.cli import main; main()", "lsp")
    try:
        one = Editor(client, folder)
        await client.initialize_async(
            types.InitializeParams(types.ClientCapabilities(), root_uri=folder.as_uri())
        )
        client.initialized(types.InitializedParams())
        yield one
    finally:
        client.exit(None)  # first: `stop` waits for the server to end
        await client.stop()


def drive(folder: Path, session: Callable[[Editor], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with editor(folder) as one:
            await session(one)

    # In a thread of its own: a browser test may have left a loop running in this one.
    with ThreadPoolExecutor(1) as own:
        own.submit(asyncio.run, whole()).result()


def test_mistakes_come_and_go_as_the_text_changes(tmp_path: Path) -> None:
    async def session(one: Editor) -> None:
        assert await one.open(TURBINES) == []
        (wrong,) = await one.type(TURBINES.replace("Cool(X, T),", "Coool(X, T),"))
        assert "Coool" in wrong.message
        assert "Cool" in wrong.message.split("hint:")[1]
        line = TURBINES.splitlines().index(
            next(t for t in TURBINES.splitlines() if "Shdn(X, T+1)" in t)
        )
        assert wrong.range.start.line == line
        assert wrong.severity == types.DiagnosticSeverity.Error
        assert await one.type(TURBINES, 3) == []

    drive(tmp_path, session)


def test_columns_are_counted_as_the_editor_counts_them(tmp_path: Path) -> None:
    text = 'stream A(x) delay 0.\nB(X, T) <- A(X, T), X != "🌬🌬", X != V.\nquery B(X, T).\n'

    async def session(one: Editor) -> None:
        (wrong, *_) = await one.open(text)
        line = text.splitlines()[1]
        before = line[: line.index("V.")]
        assert wrong.range.start.character == len(before.encode("utf-16-le")) // 2

    drive(tmp_path, session)


def test_hover_shows_premise_sets_streams_and_rigid_predicates(tmp_path: Path) -> None:
    (tmp_path / "near.csv").write_text("a,b\nwt1,wt2\n")
    text = (
        'rigid Near(a, b) from "near.csv".\n'
        "stream Temp(device, level) delay 1.\n"
        "delay Temp(wt7, _) = 4.\n"
        "Two(X, T) <- Temp(X, high, T), Temp(X, high, T+1).\n"
        "Both(Y, T) <- Near(X, Y), Two(X, T), Two(Y, T).\n"
        "query Both(Y, T).\n"
    )

    async def session(one: Editor) -> None:
        assert await one.open(text) == []
        query = await one.hover(5, 7)
        assert query is not None
        assert "1 premise set" in query
        assert "Both(wt2, T) <- Temp(wt1, high, T), Temp(wt1, high, T+1)" in query
        derived = await one.hover(4, 27)
        assert derived is not None
        assert "Two(X, T) <- Temp(X, high, T), Temp(X, high, T+1)" in derived
        stream = await one.hover(1, 8)
        assert stream is not None
        assert "`Temp(wt7, _)`: 4" in stream
        assert "1 facts" in (await one.hover(4, 15) or "")
        assert await one.hover(4, 18) is None
        assert await one.type(text.replace("query Both", "query Bath"))
        assert "no mistake" in (await one.hover(3, 1) or "")

    drive(tmp_path, session)


def test_a_mistake_in_a_csv_file_is_told_where_the_program_names_it(tmp_path: Path) -> None:
    (tmp_path / "near.csv").write_text("wt1,wt2,wt3\n")
    text = (
        'stream A(x) delay 0.\nrigid Near(a, b) from "near.csv".\nB(X, T) <- A(X, T), Near(X, _).\n'
    )

    async def session(one: Editor) -> None:
        found = await one.open(text + "query B(X, T).\n")
        (wrong,) = [d for d in found if "near.csv" in d.message]
        assert wrong.range.start.line == 1

    drive(tmp_path, session)


def test_formatting_is_that_of_fmt_and_leaves_broken_text_alone(tmp_path: Path) -> None:
    async def session(one: Editor) -> None:
        await one.open("stream A(x)   delay 0.\nB(X,T)<-A(X,T).\nquery B(X,T).")
        (edit,) = await one.format()
        assert edit.new_text.splitlines()[0] == "stream A(x) delay 0."
        assert "B(X, T) <- A(X, T)." in edit.new_text
        await one.type(edit.new_text)
        assert list(await one.format()) == []
        await one.type("stream A(x delay", 3)
        assert await one.format() is None

    drive(tmp_path, session)
