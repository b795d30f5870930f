// What was read off at intervals over the whole run, in seconds.

const SAMPLE_COLOURS = ["ink", "chunks", "budget"];
const DASHES = [[], [8, 4], [2, 3]];

function makeSamples(page) {
  const { samples } = page;
  if (!samples || !samples.lines.length) return;
  byId("run").hidden = false;
  const { rest } = samples;
  if (rest) {
    byId("rest").append(
      element("b", "", formatBytes(rest.outside)),
      document.createTextNode(
        ` lay outside the allocator when that was fullest: of ${formatBytes(rest.whole)} that ${rest.of} had, ${formatBytes(rest.in_use)} were in its use. The rest is Python, libraries, contexts, and memory held for later (measured).`,
      ),
    );
  }
  const legend = byId("run-legend");
  const colour = (index) => theme.colours[SAMPLE_COLOURS[index % SAMPLE_COLOURS.length]];
  const strokes = samples.lines.map((line, index) => {
    const item = element("li");
    const most = Math.max(...line.values.filter((value) => value !== null));
    const stroke = element("span", `stroke dash-${index}`);
    item.append(stroke, element("span", "", `${line.name}, at most ${formatBytes(most)}`));
    legend.append(item);
    return stroke;
  });
  const paint = () =>
    strokes.forEach((stroke, index) => {
      stroke.style.borderTopColor = colour(index);
    });
  paint();
  const host = byId("samples");
  host.setAttribute(
    "aria-label",
    `Lines over ${samples.seconds[samples.seconds.length - 1]} seconds: ${legend.textContent}`,
  );
  const plot = new uPlot(
    {
      width: Math.max(host.clientWidth, 120),
      height: host.clientHeight,
      padding: [10, RIGHT, 0, 0],
      scales: { x: { time: false }, y: { range: (_, __, most) => [0, 1.08 * Math.max(most, 1)] } },
      series: [
        {},
        ...samples.lines.map((line, index) => ({
          label: line.name,
          stroke: () => colour(index),
          width: 1.8,
          dash: DASHES[index % DASHES.length],
          spanGaps: false,
          points: { show: samples.seconds.length < 3 },
        })),
      ],
      axes: [
        plainAxis((_, splits) => splits.map((value) => `${Number(value.toFixed(6))} s`)),
        sizeAxis(() => gutter(host.clientWidth)),
      ],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false } },
      hooks: {
        // Where every allocation was seen.
        drawClear: [
          (self) => {
            const { ctx, bbox } = self;
            ctx.save();
            ctx.fillStyle = `${theme.colours.range}1c`;
            for (const [begin, end] of samples.windows) {
              const left = Math.max(bbox.left, self.valToPos(begin, "x", true));
              const right = Math.min(bbox.left + bbox.width, self.valToPos(end, "x", true));
              if (right > left)
                ctx.fillRect(left, bbox.top, Math.max(right - left, 1), bbox.height);
            }
            ctx.restore();
          },
        ],
      },
    },
    [samples.seconds, ...samples.lines.map((line) => line.values)],
    host,
  );
  theme.listeners.push(() => {
    paint();
    plot.redraw(false);
  });
  new ResizeObserver(() =>
    plot.setSize({ width: Math.max(host.clientWidth, 120), height: host.clientHeight }),
  ).observe(host);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape")
      plot.setScale("x", {
        min: samples.seconds[0],
        max: samples.seconds[samples.seconds.length - 1],
      });
  });
  if (samples.windows.length) {
    const item = element("li");
    const area = element("span", "swatch");
    area.style.background = "color-mix(in srgb, var(--range) 22%, transparent)";
    item.append(area, element("span", "", "every allocation seen"));
    legend.append(item);
  }
}
