// Parts of the editor that are not needed for the first view: they are loaded after it.

import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import type { Extension } from "@codemirror/state";
import { keymap } from "@codemirror/view";

export const extras: Extension = [
  closeBrackets(),
  autocompletion({ icons: false }),
  highlightSelectionMatches({ minSelectionLength: 2 }),
  search({ top: true }),
  keymap.of([{ key: "Tab", run: acceptCompletion }, ...closeBracketsKeymap, ...searchKeymap, ...completionKeymap]),
];
