// Light or dark as Airflow shows it (the page sits in its frame), otherwise as the system asks.

function airflowTheme() {
  try {
    if (window.parent !== window) {
      const root = window.parent.document.documentElement;
      if (root.classList.contains("dark") || root.dataset.theme === "dark") return "dark";
      if (root.classList.contains("light") || root.dataset.theme === "light") return "light";
    }
    const chosen = localStorage.getItem("theme");
    return chosen === "dark" || chosen === "light" ? chosen : null;
  } catch {
    return null; // a frame of another origin, or storage that is off
  }
}

export function followTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    document.documentElement.dataset.theme = airflowTheme() ?? (system.matches ? "dark" : "light");
  };
  apply();
  system.addEventListener("change", apply);
  window.addEventListener("storage", apply);
  try {
    if (window.parent !== window) {
      new MutationObserver(apply).observe(window.parent.document.documentElement, {
        attributes: true, attributeFilter: ["class", "data-theme"],
      });
    }
  } catch {
    // not readable: the storage event and the system's choice remain
  }
}
