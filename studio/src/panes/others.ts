// The panes and dialogs that the first view does not need, in one file that is loaded after it.

import HelpDialog from "../components/HelpDialog.svelte";
import MergeDialog from "../components/MergeDialog.svelte";
import CasesPane from "./CasesPane.svelte";
import DiffPane from "./DiffPane.svelte";
import ReachPane from "./ReachPane.svelte";
import Records from "./Records.svelte";
import RequestPane from "./RequestPane.svelte";
import RunPane from "./RunPane.svelte";
import TestsPane from "./TestsPane.svelte";
import TokensPane from "./TokensPane.svelte";

export { CasesPane, HelpDialog, MergeDialog, Records, TestsPane };

export const panes = { reach: ReachPane, request: RequestPane, tokens: TokensPane, diff: DiffPane, run: RunPane };
