"""The language server, with the capabilities of several editors.

pytest-lsp parses every message with the types of the protocol, and fails if the server sends what the client does not
support. TYMPAN is the path of the command.
"""

import os
from pathlib import Path

import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client

import pytest

TEXT = """---
name: support
descripton: Answers a customer
inputs:
  - name: orders
    kind: array
    items: {kind: object, properties: {total: {kind: float}}}
  - {name: tone, kind: string, trusted: true, example: calm}
---
system:
Be {{ tone }}.

user:
🎈 {% for order in orders %}{{ order.total }}{% endfor %} {{ tiket }}
"""


def make_client():
    """Return a client that lets the server register capabilities, as editors do."""
    client = make_test_lsp_client()

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params):
        return None

    return client


@pytest_lsp.fixture(
    params=["visual_studio_code", "neovim", "emacs"],
    config=ClientServerConfig(server_command=[os.environ["TYMPAN"], "lsp"], client_factory=make_client),
)
async def client(lsp_client: LanguageClient, request, tmp_path: Path):
    """A client that is connected to a server."""
    folder = types.WorkspaceFolder(uri=tmp_path.as_uri(), name="workspace")
    params = types.InitializeParams(
        capabilities=client_capabilities(request.param),
        workspace_folders=[folder],
        root_uri=tmp_path.as_uri(),
    )
    lsp_client.result = await lsp_client.initialize_session(params)
    lsp_client.workspace_path = tmp_path
    yield
    await lsp_client.shutdown_session()


def open_document(client, name="support.prompty", text=TEXT):
    """Open a document and return its identifier."""
    uri = (client.workspace_path / name).as_uri()
    item = types.TextDocumentItem(uri=uri, language_id="prompty", version=1, text=text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    return types.TextDocumentIdentifier(uri=uri)


async def diagnostics_of(client, document):
    """Wait for the diagnostics of a document."""
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return client.diagnostics[document.uri]


def position(client, text, needle, after=0):
    """Return the position of a needle, in the encoding of the session."""
    at = text.index(needle) + after
    line = text.count("\n", 0, at)
    before = text[:at].rsplit("\n", 1)[-1]
    encoding = client.result.capabilities.position_encoding
    if encoding == types.PositionEncodingKind.Utf8:
        return types.Position(line, len(before.encode()))
    return types.Position(line, len(before.encode("utf-16-le")) // 2)


async def test_diagnostics(client: LanguageClient):
    """Diagnostics have codes and follow the text."""
    document = open_document(client)
    found = await diagnostics_of(client, document)
    assert {one.code for one in found} >= {"TY101", "TY018"}
    assert all(one.source == "tympan" for one in found)
    tiket = next(one for one in found if one.code == "TY101")
    assert tiket.range.start == position(client, TEXT, "tiket")
    change = types.TextDocumentContentChangeWholeDocument(text="user:\nHi\n")
    versioned = types.VersionedTextDocumentIdentifier(uri=document.uri, version=2)
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(text_document=versioned, content_changes=[change])
    )
    assert not await diagnostics_of(client, document)


async def test_code_actions(client: LanguageClient):
    """Findings with a fix have a quick fix, and `source.fixAll` applies all safe ones, as edits of whole lines."""
    document = open_document(client)
    found = await diagnostics_of(client, document)
    at = position(client, TEXT, "descripton", 3)
    params = types.CodeActionParams(
        text_document=document,
        range=types.Range(at, at),
        context=types.CodeActionContext(diagnostics=list(found)),
    )
    actions = await client.text_document_code_action_async(params)
    titles = [action.title for action in actions]
    assert "Replace `descripton` with `description`" in titles
    params.context.only = [types.CodeActionKind.SourceFixAll]
    actions = await client.text_document_code_action_async(params)
    assert [edit.new_text for edit in actions[0].edit.changes[document.uri]] == ["description: Answers a customer\n"]


async def test_hover_and_completion(client: LanguageClient):
    """Hover and completion know the declared inputs."""
    document = open_document(client)
    params = types.HoverParams(document, position(client, TEXT, "tone }}", 2))
    hover = await client.text_document_hover_async(params)
    assert "**input** `tone`: string" in hover.contents.value
    params = types.CompletionParams(document, position(client, TEXT, "order.total", 6))
    completion = await client.text_document_completion_async(params)
    assert [item.label for item in completion.items] == ["total"]


async def test_navigation(client: LanguageClient):
    """Definitions, references and renames."""
    document = open_document(client)
    at = position(client, TEXT, "order.total", 2)
    found = await client.text_document_definition_async(types.DefinitionParams(document, at))
    assert found[0].range.start == position(client, TEXT, "order in")
    context = types.ReferenceContext(include_declaration=True)
    params = types.ReferenceParams(context, document, position(client, TEXT, "tone }}"))
    found = await client.text_document_references_async(params)
    assert len(found) == 2
    params = types.RenameParams(document, position(client, TEXT, "tone }}"), "mood")
    edit = await client.text_document_rename_async(params)
    assert len(edit.changes[document.uri]) == 2


async def test_document(client: LanguageClient):
    """Symbols, tokens, hints and lenses."""
    document = open_document(client)
    symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert [symbol.name for symbol in symbols] == ["orders", "tone", "system", "user"]
    tokens = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document))
    assert len(tokens.data) % 5 == 0 and tokens.data
    everything = types.Range(types.Position(0, 0), types.Position(99, 0))
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(document, everything))
    assert [hint.label.startswith("≈ ") for hint in hints] == [True, True]
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(document))
    assert [lens.command.command for lens in lenses] == ["tympan.render"]


async def test_render(client: LanguageClient):
    """The command renders with the examples."""
    document = open_document(client, text="---\ninputs:\n  name: {kind: string, example: Ada}\n---\nuser:\nHi {{ name }}")
    params = types.ExecuteCommandParams("tympan.render", [document.uri])
    answer = await client.workspace_execute_command_async(params)
    assert answer["text"] == "user:\nHi Ada"


TESTS = """cases:
  - name: answers
    inputs: {tone: calm}
    expect:
      - no_origin: {input: tone, in: user}
"""


async def test_test_files(client: LanguageClient):
    """Tests know the prompt, whose text is not saved."""
    prompt = open_document(client)
    await diagnostics_of(client, prompt)
    document = open_document(client, name="support.test.yaml", text=TESTS)
    found = await diagnostics_of(client, document)
    assert [one.code for one in found] == ["TY505"]
    hover = await client.text_document_hover_async(types.HoverParams(document, position(client, TESTS, "no_origin", 2)))
    assert hover.contents.value.startswith("**no_origin**")
    completion = await client.text_document_completion_async(
        types.CompletionParams(document, position(client, TESTS, "tone, in"))
    )
    assert {item.label for item in completion.items} >= {"orders", "tone"}
    declared = await client.text_document_definition_async(
        types.DefinitionParams(document, position(client, TESTS, "tone: calm", 2))
    )
    assert [one.uri for one in declared] == [prompt.uri]
    edit = await client.text_document_rename_async(
        types.RenameParams(document, position(client, TESTS, "tone: calm", 2), "mood")
    )
    assert {uri: len(edits) for uri, edits in edit.changes.items()} == {prompt.uri: 2, document.uri: 2}
    symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert [symbol.name for symbol in symbols] == ["answers"]
    # Tests run only in workspaces that the user trusts.
    assert not await client.text_document_code_lens_async(types.CodeLensParams(document))


async def test_closed_documents(client: LanguageClient):
    """A request about a document that is not open is an error."""
    document = types.TextDocumentIdentifier(uri="file:///nowhere.prompty")
    with pytest.raises(Exception, match="is not open"):
        await client.text_document_hover_async(types.HoverParams(document, types.Position(0, 0)))
