// The one studio of the page.

import { readConfig } from "../lib/config";
import { Studio } from "./studio.svelte";

export const studio = new Studio(readConfig());
