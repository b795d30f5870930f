// Light and dark, and the colours that canvases need. They are read from the style sheet once.

const theme = {
  listeners: [],
  colours: {},

  read() {
    const style = getComputedStyle(document.documentElement);
    const names = [
      "card",
      "ink",
      "soft",
      "faint",
      "edge",
      "grid",
      "focus",
      "line",
      "chunks",
      "range",
      "budget",
      "peak",
      "small",
      "accent",
      "mono",
      "sans",
    ];
    for (const name of names) this.colours[name] = style.getPropertyValue(`--${name}`).trim();
    this.colours.kind = {};
    for (const kind of KINDS) {
      this.colours.kind[kind] = style.getPropertyValue(`--kind-${kind}`).trim();
    }
    this.colours.onKind = {};
    for (const [kind, colour] of Object.entries(this.colours.kind)) {
      this.colours.onKind[kind] = luminance(colour) > 0.179 ? "#0d1117" : "#ffffff";
    }
  },

  // What a kind is filled with on a canvas. Grey is hard to tell from some colours for some
  // people, so what is not known has dots as well.
  kind(name) {
    const kind = knownKind(name);
    return kind === "unknown" ? this.dots() : this.colours.kind[kind];
  },

  dots() {
    const tile = document.createElement("canvas");
    tile.width = 5;
    tile.height = 5;
    const ctx = tile.getContext("2d");
    ctx.fillStyle = this.colours.kind.unknown;
    ctx.fillRect(0, 0, 5, 5);
    ctx.fillStyle = this.colours.card;
    ctx.fillRect(2, 2, 1.4, 1.4);
    return ctx.createPattern(tile, "repeat");
  },

  set(name, keep) {
    document.documentElement.dataset.theme = name;
    if (keep) {
      try {
        localStorage.setItem("snugly-theme", name);
      } catch {
        /* not to be had in some frames */
      }
    }
    this.show();
  },

  show() {
    const dark = document.documentElement.dataset.theme === "dark";
    const button = byId("theme");
    button.textContent = dark ? "light" : "dark";
    button.setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
    this.read();
    for (const listener of this.listeners) listener();
  },

  start() {
    byId("theme").addEventListener("click", () => {
      this.set(document.documentElement.dataset.theme === "dark" ? "light" : "dark", true);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
      this.set(event.matches ? "dark" : "light", false);
    });
    // Paper is light.
    let before = null;
    addEventListener("beforeprint", () => {
      before = document.documentElement.dataset.theme;
      this.set("light", false);
    });
    addEventListener("afterprint", () => this.set(before, false));
    this.show();
  },
};

// Relative luminance as WCAG 2 defines it; black or white, whichever can be read on a colour.
function luminance(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
