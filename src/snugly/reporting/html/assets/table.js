// What is live at a moment: sorted by any column, filtered by words. Only rows in sight exist.

const ROW = 30; // pixels; the style sheet says the same
const SPARE = 8; // rows above and below those in sight
const PRINTED = 60;

function columnsOf(page) {
  const { blocks } = page;
  const columns = [
    {
      name: "size",
      title: "size",
      className: "right w-size",
      key: blocks.bytesRank,
      down: true,
      text: (block) => formatBytes(blocks.bytes[block]),
    },
    {
      name: "kind",
      title: "kind",
      className: "w-kind",
      key: blocks.kind,
      text: (block) => blocks.kinds[blocks.kind[block]],
    },
    {
      name: "layer",
      title: "layer",
      className: "name w-layer",
      key: blocks.layer,
      text: (block) => blocks.layers[blocks.layer[block]],
    },
    {
      name: "op",
      title: "op",
      className: "name",
      key: blocks.operation,
      text: (block) => blocks.operations[blocks.operation[block]],
    },
    {
      name: "line",
      title: "line",
      className: "name w-line",
      key: blocks.line,
      text: (block) => blocks.lines[blocks.line[block]],
    },
  ];
  if (blocks.chunk) {
    columns.push({
      name: "chunk",
      title: "chunk",
      className: "right w-chunk",
      key: blocks.chunkRank,
      down: true,
      text: (block) => (blocks.chunk[block] ? formatBytes(blocks.chunk[block]) : ""),
    });
  }
  if (page.timed) {
    columns.push(
      {
        name: "born",
        title: "born",
        className: "right w-moment",
        key: blocks.birth,
        text: (block) => formatCount(blocks.birth[block]),
      },
      {
        name: "freed",
        title: "freed",
        className: "right w-moment",
        key: blocks.death,
        text: (block) =>
          blocks.death[block] >= page.length ? "stays" : formatCount(blocks.death[block]),
      },
    );
  }
  return columns;
}

// Which blocks a filter keeps; null if it keeps all. Each name is looked at once, however often
// it occurs: the tables of names are much shorter than the blocks.
function matchesOf(blocks, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  blocks.lowered =
    blocks.lowered ||
    Object.fromEntries(
      ["kinds", "layers", "operations", "lines"].map((table) => [
        table,
        blocks[table].map((name) => name.toLowerCase()),
      ]),
    );
  const tables = new Map([
    ["kind", ["kinds", "kind"]],
    ["layer", ["layers", "layer"]],
    ["op", ["operations", "operation"]],
    ["line", ["lines", "line"]],
  ]);
  const kept = new Uint8Array(blocks.count).fill(1);
  for (const word of words) {
    const cut = word.indexOf(":");
    const one = tables.get(word.slice(0, Math.max(cut, 0)));
    const sought = one ? word.slice(cut + 1) : word;
    const found = new Uint8Array(blocks.count);
    for (const [table, column] of one ? [one] : tables.values()) {
      const hits = Uint8Array.from(blocks.lowered[table], (name) => name.includes(sought));
      const index = blocks[column];
      for (let block = 0; block < blocks.count; block += 1) found[block] |= hits[index[block]];
    }
    for (let block = 0; block < blocks.count; block += 1) kept[block] &= found[block];
  }
  return kept;
}

// Rows by a column of whole numbers; equal ones keep their order. A number and a position in one
// key let the engine sort numbers, ten times as fast as with a function that compares.
const POSITIONS = 2 ** 20; // more than a page has blocks
function sortedBy(rows, key, down) {
  let most = 0;
  if (down) for (const block of rows) most = Math.max(most, key[block]);
  const keys = Float64Array.from(
    rows,
    (block, at) => (down ? most - key[block] : key[block]) * POSITIONS + at,
  );
  return Uint32Array.from(keys.sort(), (value) => rows[value % POSITIONS]);
}

function makeTable(page, view) {
  const { blocks } = page;
  const columns = columnsOf(page);
  const scroll = byId("scroll");
  const body = byId("rows");
  const table = byId("table");
  let sorted = { column: columns[0], down: true };
  let live = new Uint32Array(0);
  let rows = new Uint32Array(0);
  let active = -1; // the row chosen with the keyboard or a click
  let printing = false;
  let shownFrom = -1;

  for (const column of columns) {
    const head = element("th", column.className.replace("name", "").trim());
    head.scope = "col";
    head.setAttribute("aria-sort", "none");
    const button = element("button", "", column.title);
    button.type = "button";
    button.addEventListener("click", () => {
      const again = sorted.column === column;
      sorted = { column, down: again ? !sorted.down : Boolean(column.down) };
      arrange();
    });
    head.append(button);
    column.head = head;
    byId("columns").append(head);
  }

  function gather() {
    const found = [];
    for (let block = 0; block < blocks.count; block += 1) {
      if (!page.timed || (blocks.birth[block] <= view.listed && view.listed < blocks.death[block]))
        found.push(block);
    }
    live = sortedBy(Uint32Array.from(found), blocks.bytesRank, true);
    const atPeak = !page.timed || view.listed === page.peakMoment;
    const title = byId("live-title");
    title.textContent = atPeak
      ? "Live at the peak "
      : `Live at moment ${formatCount(view.listed)} `;
    title.append(element("span", "mark", page.source));
    byId("to-peak").hidden = atPeak;
    arrange();
  }

  function arrange() {
    const { column, down } = sorted;
    const kept = view.matches ? live.filter((block) => view.matches[block]) : live;
    rows = sortedBy(kept, column.key, down); // equal ones largest first
    for (const each of columns)
      each.head.setAttribute(
        "aria-sort",
        each !== column ? "none" : down ? "descending" : "ascending",
      );
    active = -1;
    scroll.scrollTop = 0;
    let bytes = 0;
    for (const block of rows) bytes += blocks.bytes[block];
    const all = rows.length === live.length;
    byId("count").textContent = all
      ? `${formatCount(rows.length)} tensors, ${formatBytes(bytes)}`
      : `${formatCount(rows.length)} of ${formatCount(live.length)} tensors, ${formatBytes(bytes)}`;
    byId("empty").hidden = rows.length > 0;
    scroll.hidden = rows.length === 0;
    table.setAttribute("aria-rowcount", rows.length + 1);
    shownFrom = -1;
    draw();
  }

  function draw() {
    const sight = printing ? PRINTED : Math.ceil((scroll.clientHeight || 460) / ROW) + 2 * SPARE;
    const from = printing ? 0 : Math.max(0, Math.floor(scroll.scrollTop / ROW) - SPARE);
    // Rows are made anew only when those that exist no longer fill the sight.
    if (from === shownFrom) return;
    shownFrom = from;
    const to = Math.min(rows.length, from + sight);
    const made = [spacer(from)];
    for (let row = from; row < to; row += 1) made.push(makeRow(row));
    made.push(spacer(printing ? 0 : rows.length - to));
    body.replaceChildren(...made);
  }

  function spacer(count) {
    const row = element("tr", "space");
    row.setAttribute("aria-hidden", "true");
    const cell = element("td");
    cell.colSpan = columns.length;
    cell.style.height = `${count * ROW}px`;
    row.hidden = count === 0;
    row.append(cell);
    return row;
  }

  function makeRow(row) {
    const block = rows[row];
    const made = element("tr");
    made.id = `row-${row}`;
    made.dataset.row = row;
    made.dataset.block = block;
    made.setAttribute("aria-rowindex", row + 2);
    made.setAttribute("aria-selected", row === active);
    for (const column of columns) {
      const text = column.text(block);
      const cell = element("td", column.className.replace(/w-\w+/, "").trim());
      if (column.name === "kind")
        cell.append(element("span", `swatch ${kindClass(text)}`), document.createTextNode(text));
      else if (column.name === "op") cell.append(pathOf(text));
      else cell.textContent = text;
      if (text.length > 14) cell.title = text;
      made.append(cell);
    }
    return made;
  }

  function choose(row) {
    active = Math.max(0, Math.min(rows.length - 1, row));
    if (active * ROW < scroll.scrollTop) scroll.scrollTop = active * ROW;
    const below = (active + 2) * ROW + 8 - scroll.clientHeight;
    if (below > scroll.scrollTop) scroll.scrollTop = below;
    shownFrom = -1;
    draw();
    scroll.setAttribute("aria-activedescendant", `row-${active}`);
    view.point(page.timed ? view.listed : -1, rows[active]);
    say(
      `row ${active + 1}: ${columns.map((column) => `${column.title} ${column.text(rows[active]) || "not known"}`).join(", ")}`,
    );
  }

  let frame = 0;
  scroll.addEventListener(
    "scroll",
    () => {
      frame =
        frame ||
        requestAnimationFrame(() => {
          frame = 0;
          drawIfNeeded();
        });
    },
    { passive: true },
  );
  function drawIfNeeded() {
    const first = Math.floor(scroll.scrollTop / ROW);
    const last = first + Math.ceil(scroll.clientHeight / ROW);
    const made = Math.ceil((scroll.clientHeight || 460) / ROW) + 2 * SPARE;
    if (shownFrom < 0 || first < shownFrom || last > Math.min(rows.length, shownFrom + made))
      draw();
  }
  scroll.addEventListener("keydown", (event) => {
    if (event.target !== scroll || !rows.length) return;
    const page_ = Math.max(1, Math.floor(scroll.clientHeight / ROW) - 2);
    const moves = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page_,
      PageUp: active - page_,
      Home: 0,
      End: rows.length - 1,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    choose(moves[event.key]);
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-row]");
    if (row) choose(Number(row.dataset.row));
  });
  scroll.addEventListener("blur", () => view.point(-1, -1));

  const filter = byId("filter");
  const legend = [...document.querySelectorAll("#legend button")];
  const apply = () => {
    view.filter(matchesOf(blocks, filter.value));
    for (const button of legend)
      button.setAttribute("aria-pressed", filter.value.trim() === `kind:${button.dataset.kind}`);
  };
  filter.addEventListener("input", apply);
  byId("to-peak").addEventListener("click", () => {
    view.list(page.peakMoment);
    scroll.focus();
  });
  view.on("filter", arrange);
  view.on("listed", gather);
  new ResizeObserver(drawIfNeeded).observe(scroll);
  addEventListener("beforeprint", () => {
    printing = true;
    shownFrom = -1;
    draw();
  });
  addEventListener("afterprint", () => {
    printing = false;
    shownFrom = -1;
    draw();
  });
  gather();
  return {
    setFilter(text) {
      filter.value = filter.value.trim() === text ? "" : text;
      apply();
    },
    clearFilter() {
      filter.value = "";
      apply();
    },
  };
}

// A name with slashes: where there is no room for all of it, its last part stays.
function pathOf(name) {
  const last = lastPart(name);
  const path = element("span", "path");
  path.append(
    element("span", "folder", name.slice(0, name.length - last.length)),
    element("span", "", last),
  );
  return path;
}

// For those who hear the page: said once movement stops, so that not every step is read out.
let sayLater = 0;
function say(text) {
  clearTimeout(sayLater);
  sayLater = setTimeout(() => {
    byId("said").textContent = text;
  }, 150);
}
