// Memory over program order, as a line: uPlot draws it, we mark budget, range and peak.

const GUTTER = 76; // room for the sizes at the left of both charts
const NARROW_GUTTER = 60;
const RIGHT = 14;

const gutter = (width) => (width < 560 ? NARROW_GUTTER : GUTTER);

// Ticks at powers of two, and at moments that are round numbers.
const BINARY_STEPS = Array.from({ length: 60 }, (_, power) => 2 ** power);
const ROUND_STEPS = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat();

function sizeAxis(size) {
  return {
    size,
    gap: 6,
    incrs: BINARY_STEPS,
    space: 44,
    font: `12px ${theme.colours.sans}`,
    stroke: () => theme.colours.soft,
    grid: { stroke: () => theme.colours.grid, width: 1 },
    ticks: { show: false },
    values: (_, splits) => splits.map((value) => (value ? formatBytes(value) : "0")),
  };
}

function plainAxis(values, incrs) {
  return {
    size: 30,
    gap: 5,
    space: 70,
    font: `12px ${theme.colours.sans}`,
    incrs,
    stroke: () => theme.colours.soft,
    grid: { stroke: () => theme.colours.grid, width: 1 },
    ticks: { show: false },
    values,
  };
}

// Steps where each moment has room; where many share a pixel, a line that keeps the extremes.
function paths() {
  const stepped = uPlot.paths.stepped({ align: 1 });
  const linear = uPlot.paths.linear();
  return (plot, series, first, last) => {
    const crowded = last - first > 3 * plot.bbox.width;
    return (crowded ? linear : stepped)(plot, series, first, last);
  };
}

function makeLine(page, view) {
  const host = byId("line");
  const moments = Float64Array.from({ length: page.length + 1 }, (_, moment) => moment);
  const curves = [page.requestedCurve, page.chunkCurve].filter(Boolean);
  const budget = budgetInView(page);
  const top = 1.08 * Math.max(page.peak, page.requested, page.high || 0, budget || 0, 1);
  const series = [
    {
      label: "asked for",
      stroke: () => theme.colours.line,
      width: 1.6,
      fill: () => `${theme.colours.accent}14`,
      paths: paths(),
      points: { show: false },
    },
    {
      label: "chunks",
      stroke: () => theme.colours.chunks,
      width: 1.4,
      paths: paths(),
      points: { show: false },
    },
  ].slice(0, curves.length);

  function layers(plot) {
    if (page.low === null) return;
    const { ctx, bbox } = plot;
    const high = plot.valToPos(page.high, "y", true);
    const low = plot.valToPos(page.low, "y", true);
    ctx.save();
    ctx.fillStyle = `${theme.colours.range}26`;
    ctx.fillRect(bbox.left, high, bbox.width, low - high);
    ctx.restore();
  }

  // Lines across, with their words above them, at the end of the line where they disturb least.
  function across(plot, bytes, colour, dash, text, right) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    const y = plot.valToPos(bytes, "y", true);
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash(dash.map((part) => part * ratio));
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.textAlign = right ? "right" : "left";
    write(
      ctx,
      text,
      right ? bbox.left + bbox.width - 6 * ratio : bbox.left + 6 * ratio,
      y - 5 * ratio,
      colour,
    );
  }

  function write(ctx, text, x, y, colour) {
    ctx.font = `600 ${12 * devicePixelRatio}px ${theme.colours.sans}`;
    ctx.lineJoin = "round";
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.strokeStyle = theme.colours.card;
    ctx.strokeText(text, x, y);
    ctx.fillStyle = colour;
    ctx.fillText(text, x, y);
  }

  function marks(plot) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, 0, bbox.width, bbox.top + bbox.height);
    ctx.clip();
    const x = plot.valToPos(page.peakMoment + 0.5, "x", true);
    const y = plot.valToPos(page.requested, "y", true);
    const peakOnLeft = x < bbox.left + bbox.width / 2;
    if (budget !== null)
      across(
        plot,
        budget,
        theme.colours.budget,
        [7, 4],
        `budget ${formatBytes(budget)} (${page.budget.provenance})`,
        peakOnLeft,
      );
    across(
      plot,
      page.peak,
      theme.colours.soft,
      [2, 3],
      `peak ${formatBytes(page.peak)} (${page.source})`,
      peakOnLeft,
    );
    ctx.strokeStyle = theme.colours.peak;
    ctx.lineWidth = ratio;
    ctx.globalAlpha = 0.55;
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.colours.peak;
    ctx.strokeStyle = theme.colours.card;
    ctx.lineWidth = 2 * ratio;
    ctx.beginPath();
    ctx.arc(x, y, 5 * ratio, 0, 7);
    ctx.fill();
    ctx.stroke();
    ctx.textAlign = peakOnLeft ? "left" : "right";
    write(
      ctx,
      `${formatBytes(page.requested)} asked for`,
      x + (peakOnLeft ? 9 : -9) * ratio,
      y + 4 * ratio,
      theme.colours.peak,
    );
    ctx.restore();
  }

  const plot = new uPlot(
    {
      width: Math.max(host.clientWidth, 120),
      height: host.clientHeight,
      padding: [10, RIGHT, 0, 0],
      scales: { x: { time: false }, y: { range: [0, top] } },
      series: [{}, ...series],
      axes: [
        plainAxis(
          (_, splits) => splits.map((value) => (Number.isInteger(value) ? formatCount(value) : "")),
          ROUND_STEPS,
        ),
        sizeAxis(() => gutter(host.clientWidth)),
      ],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        bind: {
          dblclick: () => () => {
            view.reset();
            return null;
          },
        },
      },
      hooks: {
        drawClear: [layers],
        draw: [marks],
        setSelect: [
          (self) => {
            const { left, width } = self.select;
            if (width > 3) view.show(self.posToVal(left, "x"), self.posToVal(left + width, "x"));
            self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    },
    [moments, ...curves],
    host,
  );

  const over = plot.over;
  let own = false; // the pointer is here, so that uPlot moves its cursor itself
  over.addEventListener("mouseenter", () => {
    own = true;
  });
  over.addEventListener("mousemove", (event) => {
    view.point(Math.floor(plot.posToVal(event.offsetX, "x")), -1);
  });
  over.addEventListener("mouseleave", () => {
    own = false;
    view.point(-1, -1);
  });
  let pressed = 0;
  over.addEventListener("mousedown", (event) => {
    pressed = event.clientX;
  });
  over.addEventListener("click", (event) => {
    if (Math.abs(event.clientX - pressed) < 4 && view.moment >= 0) view.list(view.moment);
  });
  wheelZooms(over, view, (event) => plot.posToVal(event.offsetX, "x"), null);

  view.on("range", () => plot.setScale("x", { min: view.from, max: view.to }));
  view.on("point", () => {
    if (own) return;
    const left = view.moment < 0 ? -10 : plot.valToPos(view.moment + 0.5, "x");
    plot.setCursor({ left, top: left < 0 ? -10 : 10 }, false);
  });
  theme.listeners.push(() => plot.redraw(false));
  new ResizeObserver(() => {
    plot.setSize({ width: Math.max(host.clientWidth, 120), height: host.clientHeight });
  }).observe(host);
  return plot;
}

// The wheel zooms where it points; with Shift upwards; sideways it moves along. At the widest view
// it scrolls the page, as everywhere.
function wheelZooms(target, view, momentAt, heightAt) {
  target.addEventListener(
    "wheel",
    (event) => {
      if (event.ctrlKey || event.metaKey) return;
      const turned = (event.deltaY || event.deltaX) * (event.deltaMode === 1 ? 18 : 1);
      const factor = Math.exp(Math.max(-0.7, Math.min(0.7, turned * 0.0022)));
      const before = [view.from, view.to, view.bottom, view.top].join();
      if (event.shiftKey && heightAt) view.zoomUpwards(factor, heightAt(event));
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = ((view.to - view.from) * event.deltaX) / Math.max(target.clientWidth, 1);
        view.show(view.from + by, view.to + by);
      } else view.zoom(factor, momentAt(event));
      if (before !== [view.from, view.to, view.bottom, view.top].join()) event.preventDefault();
    },
    { passive: false },
  );
}
