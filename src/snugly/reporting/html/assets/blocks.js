// The blocks' chart: what is under the pointer, the tip beside it, dragging, the wheel.

const NEAR = 3; // pixels by which the pointer may miss a thin block

function makeBlocks(page, view) {
  const host = byId("blocks");
  const [base, over] = host.querySelectorAll("canvas");
  const { blocks } = page;
  const box = { left: GUTTER, top: 4, width: 100, height: 100 };
  let ratio = 1;
  let drag = null; // where a drag began and where it is now
  let bounds = null;

  const momentAt = (x) => view.from + ((x - box.left) / box.width) * (view.to - view.from);
  const bytesAt = (y) =>
    view.bottom + ((box.top + box.height - y) / box.height) * (view.top - view.bottom);
  const xOf = (moment) => box.left + ((moment - view.from) / (view.to - view.from)) * box.width;
  const yOf = (bytes) =>
    box.top + box.height - ((bytes - view.bottom) / (view.top - view.bottom)) * box.height;

  function resize() {
    ratio = Math.min(devicePixelRatio || 1, 3);
    box.left = gutter(host.clientWidth);
    box.width = Math.max(40, host.clientWidth - box.left - RIGHT);
    box.height = Math.max(40, host.clientHeight - 8);
    for (const canvas of [base, over]) {
      canvas.width = Math.round(host.clientWidth * ratio);
      canvas.height = Math.round(host.clientHeight * ratio);
    }
    draw();
  }

  function draw() {
    drawStack(base.getContext("2d"), page, view, box, ratio);
    drawOver();
  }

  function drawOver() {
    const ctx = over.getContext("2d");
    const { colours } = theme;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, host.clientWidth, host.clientHeight);
    ctx.beginPath();
    ctx.rect(box.left, box.top - 2, box.width, box.height + 4);
    ctx.save();
    ctx.clip();
    if (view.moment >= 0) {
      const at = Math.round(xOf(view.moment + 0.5)) + 0.5;
      ctx.strokeStyle = colours.soft;
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(at, box.top);
      ctx.lineTo(at, box.top + box.height);
      ctx.stroke();
    }
    if (view.block >= 0) {
      const place = placeOf(view.block);
      ctx.lineWidth = 4;
      ctx.strokeStyle = colours.card;
      ctx.strokeRect(place.left, place.top, place.width, place.height);
      ctx.lineWidth = 2;
      ctx.strokeStyle = colours.ink;
      ctx.strokeRect(place.left, place.top, place.width, place.height);
    }
    if (drag && drag.moved) {
      const zone = zoneOf(drag);
      ctx.fillStyle = `${colours.focus}33`;
      ctx.fillRect(zone.left, zone.top, zone.right - zone.left, zone.bottom - zone.top);
      ctx.strokeStyle = colours.focus;
      ctx.lineWidth = 1;
      ctx.strokeRect(zone.left, zone.top, zone.right - zone.left, zone.bottom - zone.top);
    }
    ctx.restore();
  }

  // Where a block is on the chart, in pixels; at least two wide and high, so that it can be seen.
  function placeOf(block) {
    const left = Math.max(xOf(blocks.birth[block]), box.left);
    const right = Math.min(xOf(blocks.death[block]), box.left + box.width);
    const top = yOf(blocks.offset[block] + blocks.bytes[block]);
    const bottom = yOf(blocks.offset[block]);
    return { left, top, width: Math.max(2, right - left), height: Math.max(2, bottom - top) };
  }

  const drawnAlone = (block) =>
    toldApart(
      blocks,
      block,
      box.width / (view.to - view.from),
      box.height / (view.top - view.bottom),
    );

  // The block at a point: the one there, else the nearest within a few pixels.
  function blockAt(x, y) {
    const moment = momentAt(x);
    const bytes = bytesAt(y);
    const missX = (NEAR / box.width) * (view.to - view.from);
    const missY = (NEAR / box.height) * (view.top - view.bottom);
    let nearest = -1;
    let distance = 1;
    for (let index = 0; index < blocks.count; index += 1) {
      const aside = Math.max(blocks.birth[index] - moment, moment - blocks.death[index], 0) / missX;
      if (aside >= distance) continue;
      const bottom = blocks.offset[index];
      const above = Math.max(bottom - bytes, bytes - bottom - blocks.bytes[index], 0) / missY;
      const off = Math.max(aside, above);
      if (off >= distance) continue;
      if (off === 0 && blocks.birth[index] <= moment && moment < blocks.death[index]) return index;
      distance = Math.max(off, 1e-9);
      nearest = index;
    }
    return nearest;
  }

  const zoneOf = ({ x, y, nowX, nowY }) => {
    const upwards = Math.abs(nowY - y) > 28;
    return {
      upwards,
      left: Math.min(x, nowX),
      right: Math.max(x, nowX),
      top: upwards ? Math.min(y, nowY) : box.top,
      bottom: upwards ? Math.max(y, nowY) : box.top + box.height,
    };
  };

  over.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    drag = {
      x: event.offsetX,
      y: event.offsetY,
      nowX: event.offsetX,
      nowY: event.offsetY,
      moved: false,
    };
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    bounds = over.getBoundingClientRect();
    if (drag) {
      drag.nowX = Math.max(box.left, Math.min(box.left + box.width, event.offsetX));
      drag.nowY = Math.max(box.top, Math.min(box.top + box.height, event.offsetY));
      drag.moved =
        drag.moved || Math.abs(drag.nowX - drag.x) > 4 || Math.abs(drag.nowY - drag.y) > 28;
      if (drag.moved) {
        view.point(-1, -1);
        drawOver();
        return;
      }
    }
    if (event.offsetX < box.left || event.offsetX > box.left + box.width) view.point(-1, -1);
    else view.point(Math.floor(momentAt(event.offsetX)), blockAt(event.offsetX, event.offsetY));
    tip.at = [event.clientX, event.clientY];
  });
  over.addEventListener("pointerup", (event) => {
    const ended = drag;
    drag = null;
    if (ended && ended.moved) {
      const zone = zoneOf(ended);
      const wide = zone.right - zone.left > 4;
      view.show(
        wide ? momentAt(zone.left) : view.from,
        wide ? momentAt(zone.right) : view.to,
        zone.upwards ? bytesAt(zone.bottom) : view.bottom,
        zone.upwards ? bytesAt(zone.top) : view.top,
      );
    } else if (event.detail < 2 && view.moment >= 0) view.list(view.moment);
    drawOver();
  });
  over.addEventListener("pointercancel", () => {
    drag = null;
    drawOver();
  });
  over.addEventListener("pointerleave", () => {
    if (!drag) view.point(-1, -1);
  });
  over.addEventListener("dblclick", () => view.reset());
  wheelZooms(
    over,
    view,
    (event) => momentAt(event.offsetX),
    (event) => bytesAt(event.offsetY),
  );

  const tip = makeTip(page, view, drawnAlone, (block) => {
    bounds = over.getBoundingClientRect();
    const place = placeOf(block);
    const x = view.moment >= 0 ? xOf(view.moment + 0.5) : place.left;
    return [bounds.left + x, bounds.top + Math.max(box.top, place.top + place.height / 2)];
  });

  view.on("range", draw);
  view.on("filter", draw);
  view.on("point", () => {
    drawOver();
    tip.show();
  });
  theme.listeners.push(draw);
  new ResizeObserver(resize).observe(host);
  resize();
  return { placeOf, draw };
}

// What a block is and where it comes from, beside the pointer.
function makeTip(page, view, drawnAlone, placeOnScreen) {
  const { blocks } = page;
  const box = byId("tip");
  const tip = {
    at: null, // where the pointer is; null when the keyboard points

    show() {
      if (view.block < 0) {
        box.hidden = true;
        return;
      }
      box.replaceChildren(
        ...(drawnAlone(view.block) || !tip.at
          ? describe(page, view.block)
          : describeSmall(page, view.moment)),
      );
      box.hidden = false;
      const [x, y] = tip.at || placeOnScreen(view.block);
      const { width, height } = box.getBoundingClientRect();
      const left = x + 16 + width > innerWidth - 8 ? Math.max(8, x - 16 - width) : x + 16;
      const top = Math.max(8, Math.min(innerHeight - height - 8, y + 14));
      box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    },
  };
  addEventListener(
    "keydown",
    () => {
      tip.at = null;
    },
    true,
  );
  addEventListener(
    "scroll",
    () => {
      box.hidden = true;
    },
    { passive: true },
  );
  return tip;
}

function lifetimeOf(page, block) {
  const { birth, death } = page.blocks;
  const stays = death[block] >= page.length;
  const count = formatCount(death[block] - birth[block]);
  if (stays && birth[block] === 0) return "the whole time: there before and after";
  const from =
    birth[block] === 0 ? "from the beginning" : `from moment ${formatCount(birth[block])}`;
  const to = stays ? "to the end" : `to ${formatCount(death[block])}`;
  return `${from} ${to} (${count} moments)`;
}

function factsOf(page, block) {
  const { blocks } = page;
  const layer = blocks.layers[blocks.layer[block]];
  const line = blocks.lines[blocks.line[block]];
  const chunk = blocks.chunk && blocks.chunk[block];
  return [
    ["op", blocks.operations[blocks.operation[block]] || "not known", "code"],
    ["layer", layer || "not known", layer ? "code" : ""],
    ["line", line || "not known", line ? "code" : ""],
    ["chunk", chunk ? `${formatBytes(chunk)} (${page.source})` : "", ""],
    ["alive", page.timed ? lifetimeOf(page, block) : "", ""],
  ].filter(([, value]) => value);
}

function describe(page, block) {
  const { blocks } = page;
  const kind = blocks.kinds[blocks.kind[block]];
  const lead = element("div", "lead");
  lead.append(
    element("span", `swatch ${kindClass(kind)}`),
    element("span", "", `${formatBytes(blocks.bytes[block])} ${kind}`),
    element("span", "mark", page.source),
  );
  const list = element("dl");
  for (const [name, value, className] of factsOf(page, block)) {
    list.append(element("dt", "", name), element("dd", className, value));
  }
  return [lead, list];
}

function describeSmall(page, moment) {
  const { blocks } = page;
  let count = 0;
  let bytes = 0;
  for (let index = blocks.firstSmall; index < blocks.count; index += 1) {
    if (blocks.birth[index] <= moment && moment < blocks.death[index]) {
      count += 1;
      bytes += blocks.bytes[index];
    }
  }
  const lead = element("div", "lead", `${formatCount(count)} small blocks, ${formatBytes(bytes)}`);
  return [lead, element("p", "", "Zoom in to tell them apart; Shift and the wheel zoom upwards.")];
}
