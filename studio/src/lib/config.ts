// What the page was built or served for.

export type Mode = "studio" | "export" | "playground";

export interface Config {
  mode: Mode;
  title?: string;
  read_only?: boolean;
}

export function readConfig(): Config {
  const text = document.getElementById("tympan-config")?.textContent ?? "{}";
  try {
    const config = JSON.parse(text) as Partial<Config>;
    const mode = config.mode === "studio" || config.mode === "export" ? config.mode : "playground";
    return { ...config, mode };
  } catch {
    return { mode: "playground" };
  }
}
