import { fileURLToPath } from "node:url";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

// The mode `mock` replaces the engine by a small stand-in, for work on the page without WebAssembly. It is never
// part of the assets.
export default defineConfig(({ mode }) => {
  const isMock = mode === "mock";
  return {
    base: "./",
    plugins: [svelte()],
    resolve: {
      alias: { "#engine": path(isMock ? "./test/mock/engine.ts" : "./src/engine.ts") },
    },
    build: {
      outDir: path(isMock ? "./dist-mock" : "../crates/tympan-studio/assets"),
      emptyOutDir: true,
      assetsDir: "assets",
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      modulePreload: { polyfill: false },
      target: "es2022",
      chunkSizeWarningLimit: 1000,
    },
  };
});
