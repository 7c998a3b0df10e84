// Light or dark: as the system says, unless the user chose.

export type Theme = "system" | "light" | "dark";

const KEY = "tympan-theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

class ThemeState {
  value = $state<Theme>(stored());

  apply() {
    if (this.value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = this.value;
  }

  next() {
    this.value = this.value === "system" ? "light" : this.value === "light" ? "dark" : "system";
    this.apply();
    try {
      localStorage.setItem(KEY, this.value);
    } catch {
      // Without storage, the choice lasts until the page is closed.
    }
  }
}

export const theme = new ThemeState();
