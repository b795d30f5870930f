// What all parts of the page share: the stretch of time in view, the moment and block pointed at,
// the moment whose live tensors are listed, and the filter.

const FEWEST_MOMENTS = 4;

function makeView(page) {
  const { length, blocks } = page;
  const height = Math.max(blocks.height, 1);
  const listeners = { range: [], point: [], listed: [], filter: [] };
  const waiting = new Set();
  let frame = 0;

  function tell(what) {
    waiting.add(what);
    frame = frame || requestAnimationFrame(tellNow);
  }

  function tellNow() {
    frame = 0;
    const now = [...waiting];
    waiting.clear();
    for (const what of now) for (const listener of listeners[what]) listener(view);
  }

  const view = {
    from: 0,
    to: length,
    bottom: 0,
    top: height,
    moment: -1,
    block: -1, // pointed at; -1 for nothing
    listed: page.peakMoment,
    matches: null, // by block, or null where nothing is filtered

    on(what, listener) {
      listeners[what].push(listener);
    },
    tellNow,
    get whole() {
      return this.from <= 0 && this.to >= length && this.bottom <= 0 && this.top >= height;
    },

    show(from, to, bottom = this.bottom, top = this.top) {
      const width = Math.min(length, Math.max(Math.min(FEWEST_MOMENTS, length), to - from));
      const middle = (from + to) / 2;
      this.from = Math.max(0, Math.min(length - width, middle - width / 2));
      this.to = this.from + width;
      // A thousandth of a thousandth of the height still tells a few bytes of a GiB apart.
      const upper = Math.min(top, height);
      const tall = Math.min(height, Math.max(height * 1e-6, upper - bottom));
      const centre = (bottom + upper) / 2;
      this.bottom = Math.max(0, Math.min(height - tall, centre - tall / 2));
      this.top = this.bottom + tall;
      tell("range");
    },

    // A factor below 1 comes closer. The moment (or height) given stays where it is.
    zoom(factor, moment = (this.from + this.to) / 2) {
      this.show(moment - (moment - this.from) * factor, moment + (this.to - moment) * factor);
    },
    zoomUpwards(factor, at) {
      this.show(
        this.from,
        this.to,
        at - (at - this.bottom) * factor,
        at + (this.top - at) * factor,
      );
    },

    reset() {
      this.show(0, length, 0, height);
    },

    point(moment, block) {
      const inside = moment >= 0 && moment < length ? moment : -1;
      if (inside === this.moment && block === this.block) return;
      this.moment = inside;
      this.block = block;
      tell("point");
    },

    list(moment) {
      this.listed = moment;
      tell("listed");
    },

    filter(matches) {
      this.matches = matches;
      tell("filter");
    },
  };
  return view;
}

// The blocks alive at a moment, from below.
function aliveAt(blocks, moment) {
  const alive = [];
  for (let index = 0; index < blocks.count; index += 1) {
    if (blocks.birth[index] <= moment && moment < blocks.death[index]) alive.push(index);
  }
  return alive.sort((one, other) => blocks.offset[one] - blocks.offset[other]);
}
