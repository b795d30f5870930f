// Before anything is painted: light or dark, as chosen here before, else as the system has it.
(() => {
  "use strict";
  let kept = null;
  try {
    kept = localStorage.getItem("snugly-theme");
  } catch {
    /* not to be had in some frames */
  }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const chosen = kept === "dark" || kept === "light" ? kept : dark ? "dark" : "light";
  document.documentElement.dataset.theme = chosen;
})();
