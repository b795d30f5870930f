// The parts of the page that are words and bars: verdict, what the peak is made of, waste, notes.

function showVerdict(page) {
  const { headline } = page;
  document.title = `${headline.label}: ${page.program} – Snugly`;
  byId("program").textContent = page.program;
  byId("program").title = page.program;
  byId("verdict").dataset.tone = headline.tone;
  byId("label").textContent = headline.label;
  byId("sentence").append(...unbroken(headline.sentence));
  byId("where").textContent = headline.where ? `the peak is in the ${headline.where}` : "";
  for (const mark of document.querySelectorAll("[data-mark]")) mark.textContent = page.source;
}

// Text in which no line ends between a number and its unit.
function unbroken(text) {
  const parts = text.split(/(\d[\d.–-]* (?:[KMGTPE]i)?B\b)/);
  return parts.map((part, index) =>
    index % 2 ? element("span", "unbroken", part) : document.createTextNode(part),
  );
}

// A budget far above everything would make all else too small to see; then it is only said.
function budgetInView(page) {
  const most = Math.max(page.peak, page.high || 0);
  return page.budget && page.budget.bytes <= 2.5 * most ? page.budget.bytes : null;
}

function showGauge(page) {
  const gauge = byId("gauge");
  const budget = budgetInView(page);
  const whole = 1.04 * Math.max(page.peak, page.requested, page.high || 0, budget || 0, 1);
  const share = (bytes) => `${(100 * bytes) / whole}%`;
  const bar = element("div", "bar");
  let at = 0;
  const add = (className, bytes) => {
    const part = element("div", `part ${className}`);
    part.style.left = share(at);
    part.style.width = share(bytes);
    bar.append(part);
    at += bytes;
  };
  for (const [kind, bytes] of page.parts) add(kindClass(kind), bytes);
  if (page.waste.rounding) add("hatched", page.waste.rounding);
  gauge.append(bar);
  if (page.low !== null) {
    const range = element("div", "range");
    range.style.left = share(page.low);
    range.style.width = share(page.high - page.low);
    gauge.append(range);
  }
  const stick = (className, bytes, text, side) => {
    const line = element("div", `stick ${className}`);
    line.style.left = share(bytes);
    const tag = element("div", `tag ${className}`, text);
    placeTag(tag, bytes / whole, side);
    gauge.append(line, tag);
  };
  // Two words above the bar: each on the side of its line where the other is not.
  const side = (bytes, other) => (other === null ? bytes < whole / 2 : bytes > other);
  stick("peak", page.peak, `peak ${formatBytes(page.peak)}`, side(page.peak, budget));
  if (budget !== null)
    stick("budget", budget, `budget ${formatBytes(budget)}`, side(budget, page.peak));
  const words = [];
  if (page.low !== null) words.push(`expected within ${formatRange(page.low, page.high)}`);
  if (page.budget && budget === null)
    words.push(`budget of ${formatBytes(page.budget.bytes)} far to the right`);
  gauge.classList.toggle("bare", !words.length);
  if (!words.length) return;
  const tag = element("div", "tag spread", words.join(" · "));
  const right = page.low === null ? 0.6 : page.high / whole;
  placeTag(tag, right, false);
  gauge.append(tag);
}

// Text that begins (or ends) at a share of the width, kept inside it.
function placeTag(tag, share, after) {
  const begins = after ? share < 0.8 : share < 0.2;
  const side = begins ? "left" : "right";
  const room = `calc(100% - ${Math.ceil(0.6 * tag.textContent.length)}em)`; // about its own width
  tag.style[side] = `max(0px, min(${100 * (begins ? share : 1 - share)}%, ${room}))`;
  tag.style[begins ? "paddingLeft" : "paddingRight"] = "7px";
}

function showLegend(page, filterBy) {
  const list = byId("legend");
  for (const [kind, bytes] of page.parts) {
    const item = element("li");
    const button = element("button");
    button.type = "button";
    button.dataset.kind = kind;
    button.setAttribute("aria-pressed", "false");
    button.title = `Show only ${pluralOf(kind)}`;
    button.append(
      element("span", `swatch ${kindClass(kind)}`),
      element("span", "", pluralOf(kind)),
      element("span", "number", formatBytes(bytes)),
      element("span", "share", formatShare(bytes, page.peak)),
    );
    button.addEventListener("click", () => filterBy(kind));
    item.append(button);
    list.append(item);
  }
  const { rounding } = page.waste;
  if (!rounding) return;
  const item = element("li");
  const row = element("div");
  row.title = "What the allocator gives beyond what is asked for";
  row.append(
    element("span", "swatch hatched"),
    element("span", "", "rounding"),
    element("span", "number", formatBytes(rounding)),
    element("span", "share", formatShare(rounding, page.peak)),
  );
  item.append(row);
  list.append(item);
}

function showWaste(page) {
  const list = byId("waste-list");
  const { rounding, gaps, mark, why } = page.waste;
  const add = (bytes, name, words) => {
    list.append(element("dt", "number", formatBytes(bytes)));
    const description = element("dd");
    description.append(element("b", "", name), document.createTextNode(` ${words}`));
    list.append(description);
  };
  add(
    page.requested,
    "asked for",
    `by the program, at the moment when that is most (${page.source})`,
  );
  if (rounding !== null) {
    add(
      rounding,
      "rounding",
      `the allocator gives whole chunks and does not split every one that is too large (${mark})`,
    );
    const unseen = page.peak - page.requested - rounding;
    if (unseen > page.peak / 1000) {
      add(
        unseen,
        "elsewhere",
        "in use at the allocator's own peak, which was at another moment or outside the windows seen in full (measured)",
      );
    }
  }
  add(page.peak, "peak", `what the allocator has in use at most (${page.source})`);
  if (gaps !== null) {
    add(
      gaps,
      "gaps",
      "free, but enclosed between blocks in use: larger blocks do not fit there. From a replay of this timeline by a fresh allocator (predicted)",
    );
  }
  for (const text of why) byId("waste-why").append(element("p", "", text));
}

function showWords(page) {
  const list = (id, texts) => byId(id).append(...texts.map((text) => element("li", "", text)));
  byId("advice").hidden = !page.suggestions.length;
  list("suggestions", page.suggestions);
  list("notes", page.notes);
  for (const [name, value] of page.facts) {
    byId("facts").append(element("dt", "", name), element("dd", "", value));
  }
}
