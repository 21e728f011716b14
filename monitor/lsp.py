"""The language server: mistakes as you type, premise sets on hover, the one layout.

Everything it says comes from the parts that the commands use: `check`, `explain` and `fmt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from monitor.programs import Checked, check_text
from resolution import printer, syntax
from resolution.errors import Diagnostic, Lines, ProgramErrors, WhilstError
from resolution.premises import premise_sets
from resolution.program import Program, Query, compile_program
from resolution.terms import Atom, Time, Var

SHOWN = 10  # premise sets in a hover: it is a glance, `whilst explain` shows all

_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
}


def server() -> LanguageServer:
    made = LanguageServer("whilst", version("whilst"))

    @made.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @made.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    @made.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def tell(
        params: types.DidOpenTextDocumentParams
        | types.DidChangeTextDocumentParams
        | types.DidSaveTextDocumentParams,
    ) -> None:
        document = made.workspace.get_text_document(params.text_document.uri)
        made.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                document.uri, diagnostics(document), version=document.version
            )
        )

    @made.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = made.workspace.get_text_document(params.text_document.uri)
        return hover_at(document, params.position)

    @made.feature(types.TEXT_DOCUMENT_FORMATTING)
    def format(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        return formatted(made.workspace.get_text_document(params.text_document.uri))

    return made


def diagnostics(document: TextDocument) -> list[types.Diagnostic]:
    """All mistakes; those in a CSV file are told where the program names it."""
    checked = _checked(document)
    places = _Places(document)
    found = []
    for diagnostic, source in checked.found:
        here = source is checked.tree.source
        span = diagnostic.span if here else _where_named(checked.tree, Path(source.name))
        message = diagnostic.message if here else f"{source.name}: {diagnostic.message}"
        found.append(
            types.Diagnostic(
                places.range(span),
                _told(message, diagnostic),
                _SEVERITY[diagnostic.severity],
                source="whilst",
            )
        )
    return found


def hover_at(document: TextDocument, position: types.Position) -> types.Hover | None:
    places = _Places(document)
    offset = places.offset(position)
    checked = _checked(document)
    for atom, span in _named(checked.tree):
        if span.start <= offset < span.end:
            text = _about(checked, atom)
            content = types.MarkupContent(types.MarkupKind.Markdown, text)
            return types.Hover(content, places.range(span)) if text else None
    return None


def formatted(document: TextDocument) -> list[types.TextEdit] | None:
    """One edit of the whole text, none if nothing changes; nothing is touched in broken text."""
    try:
        text = printer.format(document.source)
    except ProgramErrors:
        return None
    if text == document.source:
        return []
    whole = syntax.Span(0, len(document.source))
    return [types.TextEdit(_Places(document).range(whole), text)]


# --- what a predicate is -------------------------------------------------------------------------


def _about(checked: Checked, named: syntax.Atom | str) -> str:
    name = named if isinstance(named, str) else named.predicate
    if any(d.severity == "error" for d, _ in checked.found):
        return "Premise sets are shown when the program has no mistake."
    program = compile_program(checked.tree, checked.rigid)
    if name in program.streams:
        return _stream(program, name)
    if name in program.rigid:
        return f"**{name}**: rigid, {len(program.rigid[name]):,} facts"
    query = next((q for q in program.queries if q.name == name), None)
    return _derived(program, query or Query(_general(checked.tree, name)))


def _stream(program: Program, name: str) -> str:
    fields = ", ".join(f.name + (f": {f.type}" if f.type else "") for f in program.streams[name])
    bounds = {
        f"{name}({', '.join('_' if v is None else str(v) for v in pattern)})": bound
        for pattern, bound in program.delays.bounds[name].items()
    }
    told = "\n".join(f"- `{pattern}`: {bound}" for pattern, bound in bounds.items())
    return f"**{name}**({fields}): a stream. Delay, in time points:\n\n{told}"


def _derived(program: Program, query: Query) -> str:
    try:
        sets = premise_sets(program, query)
    except WhilstError as error:
        return str(error)
    many = "1 premise set" if len(sets) == 1 else f"{len(sets):,} premise sets"
    more = f"\n… and {len(sets) - SHOWN:,} more" if len(sets) > SHOWN else ""
    shown = "\n".join(map(str, sets[:SHOWN]))
    return f"**{query.atom}**: {many}\n\n```whilst\n{shown}{more}\n```"


def _general(tree: syntax.Tree, name: str) -> Atom:
    """The predicate with its arguments open, called as in the head of its first rule."""
    head = next(s.head for s in tree.statements if isinstance(s, syntax.Rule)
                and s.head.predicate == name)  # fmt: skip
    taken: set[str] = set()
    names: list[str] = []
    for number, term in enumerate(head.terms, start=1):
        wanted = term.name if isinstance(term, syntax.Variable) else f"X{number}"
        names.append(wanted if wanted not in taken else f"{wanted}_{number}")
        taken.add(names[-1])
    *objects, _ = names
    time = "T" if "T" not in objects else "T_0"
    return Atom(name, tuple(map(Var, objects)), Time(Var(time), 0))


def _named(tree: syntax.Tree) -> Iterator[tuple[syntax.Atom | str, syntax.Span]]:
    """Every place where a predicate is named."""
    for statement in tree.statements:
        match statement:
            case syntax.Stream() | syntax.Rigid():
                yield statement.name, statement.name_span
            case syntax.Delay():
                yield statement.pattern, statement.pattern.name_span
            case syntax.Query():
                yield statement.atom, statement.atom.name_span
            case syntax.Rule():
                for atom in (statement.head, *statement.body):
                    if isinstance(atom, syntax.Atom):
                        yield atom, atom.name_span


# --- places --------------------------------------------------------------------------------------


class _Places:
    """Offsets into the text, and the lines and columns that the editor counts."""

    def __init__(self, document: TextDocument) -> None:
        self._text = document.source
        self._lines = Lines(self._text)
        self._codec = document.position_codec

    def range(self, span: syntax.Span) -> types.Range:
        return types.Range(self._position(span.start), self._position(span.end))

    def _position(self, offset: int) -> types.Position:
        line, column = self._lines.place(offset)
        before = self._text[offset - column + 1 : offset]
        return types.Position(line - 1, self._codec.client_num_units(before))

    def offset(self, position: types.Position) -> int:
        start, end = self._lines.bounds(position.line + 1)
        for offset in range(start, end):
            if self._codec.client_num_units(self._text[start : offset + 1]) > position.character:
                return offset
        return end


def _checked(document: TextDocument) -> Checked:
    return check_text(document.source, Path(to_fs_path(document.uri) or document.uri))


def _told(message: str, diagnostic: Diagnostic) -> str:
    return f"{message}\nhint: {diagnostic.hint}" if diagnostic.hint else message


def _where_named(tree: syntax.Tree, file: Path) -> syntax.Span:
    for statement in tree.statements:
        named = statement.source if isinstance(statement, syntax.Rigid) else None
        if named is not None and Path(named).name == file.name:
            return statement.span
    return syntax.NOWHERE
