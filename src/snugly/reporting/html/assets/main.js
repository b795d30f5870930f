// Puts the page together, and the keyboard.

const page = readPage();
theme.start();
const view = makeView(page);
showVerdict(page);
showGauge(page);
let table = null;
showLegend(page, (kind) => table.setFilter(`kind:${kind}`));
showWaste(page);
showWords(page);
table = makeTable(page, view);
let blockChart = null;
let linePlot = null;
if (page.timed) {
  linePlot = makeLine(page, view);
  blockChart = makeBlocks(page, view);
  startReadout();
  startKeys();
  describeCharts();
  byId("small-words").hidden = !page.smallCurve;
} else {
  const none = element(
    "p",
    "empty",
    "There is no timeline to draw: it is not known when each tensor is born and freed.",
  );
  for (const part of [...byId("time").children].slice(1)) part.remove();
  byId("time").querySelector(".tools").remove();
  byId("time").append(none);
}
makeSamples(page);
startShortcuts();

// One line under the heading: the moment pointed at, else what the lines are.
function startReadout() {
  const readout = byId("readout");
  const key = (className, words) => {
    const part = element("span", "key");
    if (className !== null) part.append(element("span", `stroke ${className}`));
    part.append(...words);
    return part;
  };
  const eventAt = momentEvents(page);
  const show = () => {
    const parts = [];
    const { moment } = view;
    if (moment < 0) {
      parts.push(key("", [element("span", "", "bytes asked for")]));
      if (page.chunkCurve) parts.push(key("chunks", [element("span", "", "chunks in use")]));
      if (page.budget)
        parts.push(
          key("budget", [
            element(
              "span",
              "clip",
              `budget of ${formatBytes(page.budget.bytes)}: ${page.budget.description} (${page.budget.provenance})`,
            ),
          ]),
        );
      if (page.low !== null)
        parts.push(
          key("area", [
            element("span", "", `where the peak is expected, ${formatRange(page.low, page.high)}`),
          ]),
        );
    } else {
      parts.push(
        key(null, [
          document.createTextNode("moment "),
          element("b", "", `${formatCount(moment)}`),
          document.createTextNode(
            ` of ${formatCount(page.length)}${moment === page.peakMoment ? ", the peak" : ""}`,
          ),
        ]),
      );
      parts.push(
        key("", [
          element("b", "", formatBytes(page.requestedCurve[moment])),
          document.createTextNode(" asked for"),
        ]),
      );
      if (page.chunkCurve)
        parts.push(
          key("chunks", [
            element("b", "", formatBytes(page.chunkCurve[moment])),
            document.createTextNode(" in chunks"),
          ]),
        );
      const [word, block] = eventAt(moment);
      if (block >= 0)
        parts.push(
          key(null, [
            element("span", "", word),
            element(
              "span",
              "clip",
              `${page.blocks.layers[page.blocks.layer[block]] || lastPart(page.blocks.operations[page.blocks.operation[block]])}, ${formatBytes(page.blocks.bytes[block])}`,
            ),
          ]),
        );
    }
    readout.replaceChildren(...parts);
  };
  view.on("point", show);
  show();
}

// The largest block born at a moment, else the largest freed there.
function momentEvents({ blocks, length }) {
  const born = new Int32Array(length + 1).fill(-1);
  const freed = new Int32Array(length + 1).fill(-1);
  const note = (table, moment, block) => {
    if (table[moment] < 0 || blocks.bytes[block] > blocks.bytes[table[moment]])
      table[moment] = block;
  };
  for (let block = 0; block < blocks.count; block += 1) {
    if (blocks.birth[block] > 0) note(born, blocks.birth[block], block);
    if (blocks.death[block] < length) note(freed, blocks.death[block], block);
  }
  return (moment) => (born[moment] >= 0 ? ["allocates", born[moment]] : ["frees", freed[moment]]);
}

function describeCharts() {
  const moment = formatCount(page.peakMoment);
  byId("line").setAttribute(
    "aria-label",
    `Bytes asked for over ${formatCount(page.length)} moments; most, ${formatBytes(page.requested)}, at moment ${moment}. Arrow keys move along.`,
  );
  byId("blocks").setAttribute(
    "aria-label",
    `${formatCount(page.blocks.count)} blocks by lifetime and size. Left and right move along, up and down from block to block.`,
  );
}

function startKeys() {
  const { blocks } = page;
  for (const chart of [byId("line"), byId("blocks")]) {
    const withBlocks = chart.id === "blocks";
    const go = (moment) => {
      const to = Math.max(0, Math.min(page.length - 1, moment));
      const width = view.to - view.from;
      if (to < view.from || to >= view.to) view.show(to - width / 2, to + width / 2);
      const still =
        view.block >= 0 && blocks.birth[view.block] <= to && to < blocks.death[view.block];
      const block = !withBlocks ? -1 : still ? view.block : largestAt(to);
      view.point(to, block);
      say(sayable(to, block));
    };
    const climb = (by) => {
      if (!withBlocks) return;
      const moment = view.moment < 0 ? page.peakMoment : view.moment;
      const alive = aliveAt(blocks, moment);
      if (!alive.length) return;
      const now = alive.indexOf(view.block);
      const block =
        now < 0 ? largestAt(moment) : alive[Math.max(0, Math.min(alive.length - 1, now + by))];
      view.point(moment, block);
      say(sayable(moment, block));
    };
    chart.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const at = view.moment < 0 ? page.peakMoment : view.moment;
      const step = Math.max(1, Math.round((view.to - view.from) / 240)) * (event.shiftKey ? 10 : 1);
      const keys = {
        ArrowLeft: () => go(at - step),
        ArrowRight: () => go(at + step),
        ArrowUp: () => climb(1),
        ArrowDown: () => climb(-1),
        Home: () => go(0),
        End: () => go(page.length - 1),
        p: () => go(page.peakMoment),
        Enter: () => view.list(at),
        "+": () => view.zoom(0.5, at + 0.5),
        "=": () => view.zoom(0.5, at + 0.5),
        "-": () => view.zoom(2, at + 0.5),
      };
      const act = keys[event.key] || keys[event.key.toLowerCase()];
      if (!act) return;
      event.preventDefault();
      act();
    });
    chart.addEventListener("focus", () => {
      if (view.moment < 0 && chart.matches(":focus-visible")) go(page.peakMoment);
    });
    chart.addEventListener("blur", () => view.point(-1, -1));
  }
}

function largestAt(moment) {
  let largest = -1;
  const { blocks } = page;
  for (let block = 0; block < blocks.count; block += 1) {
    const alive = blocks.birth[block] <= moment && moment < blocks.death[block];
    if (alive && (largest < 0 || blocks.bytes[block] > blocks.bytes[largest])) largest = block;
  }
  return largest;
}

function sayable(moment, block) {
  const there = `moment ${formatCount(moment)}, ${formatBytes(page.requestedCurve[moment])} asked for`;
  if (block < 0) return there;
  const kind = page.blocks.kinds[page.blocks.kind[block]];
  const facts = factsOf(page, block).map(([name, value]) => `${name} ${value}`);
  return `${there}; ${kind} of ${formatBytes(page.blocks.bytes[block])}, ${facts.join(", ")}`;
}

function startShortcuts() {
  const filter = byId("filter");
  const reset = byId("reset");
  if (page.timed) {
    reset.addEventListener("click", () => view.reset());
    byId("closer").addEventListener("click", () => view.zoom(0.5));
    // A sixteenth of the time around the peak, all of the height.
    byId("near").addEventListener("click", () => {
      const half = page.length / 32;
      view.show(page.peakMoment + 0.5 - half, page.peakMoment + 0.5 + half, 0, Infinity);
    });
    byId("farther").addEventListener("click", () => view.zoom(2));
    view.on("range", () => {
      reset.disabled = view.whole;
    });
  }
  addEventListener("keydown", (event) => {
    const writing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      filter.focus();
      filter.select();
    } else if (event.key === "Escape") {
      if (filter.value && writing) {
        table.clearFilter();
        event.preventDefault();
        return;
      }
      if (writing) filter.blur();
      view.point(-1, -1);
      view.reset();
    }
  });
}

// For scripts that look at the page from outside, such as its tests.
window.snugly = {
  page,
  view,
  line: linePlot,
  placeOf: (block) => blockChart.placeOf(block),
  formatBytes,
  formatRange,
};
requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("snugly-drawn")));
