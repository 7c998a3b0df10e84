// A file that was opened: its text, the text that is saved, and the values of its inputs.

import type { FileKind, Sample } from "../lib/types";
import type { Fields } from "../lib/values";

export class Buffer {
  readonly path: string;
  readonly kind: FileKind;
  text = $state.raw("");
  saved = $state.raw("");
  /** The hash of the saved file, which a save replaces. Null if the file does not exist yet. */
  hash = $state<string | null>(null);
  /** What another program made of the file while this text was not saved. */
  outside = $state.raw<{ text: string | null; hash: string | null } | null>(null);
  /** Texts of the files that the prompt refers to. */
  files = $state.raw<Record<string, string>>({});
  samples = $state.raw<Sample[]>([]);
  fields = $state.raw<Fields>({});
  variant = $state<string | null>(null);
  isDirty = $derived(this.text !== this.saved);
  /** Counts replacements of the text from outside of the editor, which the editor then shows. */
  generation = $state(0);

  constructor(path: string, kind: FileKind, text: string, hash: string | null) {
    this.path = path;
    this.kind = kind;
    this.text = text;
    this.saved = text;
    this.hash = hash;
  }

  /** Replaces the text in a way that the editor shows. */
  replace(text: string) {
    this.text = text;
    this.generation += 1;
  }

  /** Takes over a version of the file from outside. */
  reload(text: string, hash: string | null) {
    this.saved = text;
    this.hash = hash;
    this.outside = null;
    this.replace(text);
  }
}
