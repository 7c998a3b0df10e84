// The extension for Visual Studio Code. It starts `tympan lsp`, and executes the commands of its code lenses.

import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";

/** The files that the server answers about. It leaves those alone that are not prompts. */
const DOCUMENTS = [
  { scheme: "file", language: "prompty" },
  { scheme: "untitled", language: "prompty" },
  // Test files and definitions.
  { scheme: "file", pattern: "**/*.{yaml,yml,json,toml,md}" },
];

/** A client that leaves it to `start` to report that the server does not start. */
class Client extends LanguageClient {
  private isStarting = false;

  override async start(): Promise<void> {
    this.isStarting = true;
    await super.start().finally(() => (this.isStarting = false));
  }

  override error(message: string, data?: unknown, showNotification?: boolean | "force"): void {
    super.error(message, data, this.isStarting ? false : showNotification);
  }
}

let client: Client | undefined;
let rendered: RenderedPrompts;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  rendered = new RenderedPrompts();
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(RenderedPrompts.scheme, rendered),
    vscode.commands.registerCommand("tympan.run", run),
    vscode.commands.registerCommand("tympan.test", test),
    vscode.commands.registerCommand("tympan.restart", restart),
    // A trusted workspace has more code lenses.
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("tympan.path")) void restart();
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

function command(): string {
  return vscode.workspace.getConfiguration("tympan").get("path", "tympan");
}

async function start(): Promise<void> {
  const server: ServerOptions = { command: command(), args: ["lsp"] };
  const options: LanguageClientOptions = {
    documentSelector: DOCUMENTS,
    initializationOptions: { trusted: vscode.workspace.isTrusted },
    // The client registers the command `tympan.render` for the server, and this shows the answer.
    middleware: { executeCommand: (name, args, next) => (name === "tympan.render" ? render(args) : next(name, args)) },
  };
  client = new Client("tympan", "Tympan", server, options);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const choice = await vscode.window.showErrorMessage(
      `Tympan: cannot start "${command()} lsp". Install the command, or set its path. (${String(error)})`,
      "Open Settings",
    );
    if (choice) await vscode.commands.executeCommand("workbench.action.openSettings", "tympan.path");
  }
}

async function restart(): Promise<void> {
  await client?.stop().catch(() => undefined);
  client = undefined;
  await start();
}

/** Returns the document of a code lens, or the one in the editor. */
function target(uri?: string): vscode.Uri | undefined {
  return uri === undefined ? vscode.window.activeTextEditor?.document.uri : vscode.Uri.parse(uri);
}

async function render(args: unknown[]): Promise<void> {
  const document = target(args[0] as string | undefined);
  if (!document || !client) return;
  try {
    const params = { command: "tympan.render", arguments: [document.toString()] };
    const answer = await client.sendRequest<{ text: string }>("workspace/executeCommand", params);
    const shown = await vscode.workspace.openTextDocument(rendered.set(document, answer.text));
    await vscode.window.showTextDocument(shown, {
      viewColumn: vscode.ViewColumn.Beside,
      preview: true,
      preserveFocus: true,
    });
  } catch (error) {
    void vscode.window.showErrorMessage(`Tympan: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Runs a prompt in a terminal, with its examples. */
async function run(uri?: string): Promise<void> {
  const document = target(uri);
  if (!document || !vscode.workspace.isTrusted) return;
  await vscode.workspace.textDocuments.find((open) => open.uri.toString() === document.toString())?.save();
  await execute(document, "run", ["run", document.fsPath, "--sample"]);
}

/** Runs the tests in a document, or one of its cases, in a terminal. Cases are selected by the beginning of their names. */
async function test(uri?: string, name?: string): Promise<void> {
  const document = target(uri);
  if (!document || !vscode.workspace.isTrusted) return;
  // The prompt may have changes as well.
  await vscode.workspace.saveAll();
  const selection = name === undefined ? [] : ["-k", `::${name}`];
  await execute(document, "test", ["test", document.fsPath, ...selection]);
}

/** Executes the command in a terminal. The arguments are not interpreted by a shell. */
async function execute(document: vscode.Uri, name: string, args: string[]): Promise<void> {
  const folder = vscode.workspace.getWorkspaceFolder(document) ?? vscode.TaskScope.Workspace;
  const execution = new vscode.ProcessExecution(command(), args);
  await vscode.tasks.executeTask(new vscode.Task({ type: "tympan" }, folder, name, "tympan", execution));
}

/** The texts of rendered prompts, as read-only documents. */
class RenderedPrompts implements vscode.TextDocumentContentProvider {
  static readonly scheme = "tympan-rendered";
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  /** Stores the text of a prompt, and returns its address. */
  set(prompt: vscode.Uri, text: string): vscode.Uri {
    const uri = prompt.with({ scheme: RenderedPrompts.scheme, path: `${prompt.path}.txt` });
    this.texts.set(uri.toString(), text);
    this.changed.fire(uri);
    return uri;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }
}
