import { mount } from "svelte";

import { loadEngine } from "#engine";
import App from "./App.svelte";
import "./app.css";
import { studio } from "./state/current";
import { theme } from "./state/theme.svelte";

theme.apply();
const target = document.getElementById("app");
if (target !== null) mount(App, { target });
void studio.start(loadEngine);
