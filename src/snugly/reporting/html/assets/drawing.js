// Draws the blocks. What is too small to be seen at the present zoom is one grey area.

// Pixels, and pixels by pixels: smaller blocks are not told apart. More than 50,000 specks would
// take longer to draw than a frame may.
const THIN = 0.75;
const NARROW = 0.5;
const SPECK = 8;
const PALE = 0.14; // what a filter leaves out

function drawStack(ctx, page, view, box, ratio) {
  const { blocks } = page;
  const { colours } = theme;
  const scaleX = box.width / (view.to - view.from);
  const scaleY = box.height / (view.top - view.bottom);
  const x = (moment) => box.left + (moment - view.from) * scaleX;
  const y = (bytes) => box.top + box.height - (bytes - view.bottom) * scaleY;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, box.left + box.width + RIGHT, box.top + box.height + 4);
  drawGrid(ctx, view, box, y);
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, box.top, box.width, box.height);
  ctx.clip();
  if (page.smallCurve) drawSmall(ctx, page, view, box, x, y);
  const labels = [];
  drawResident(ctx, page, view, box, y, scaleY, labels);
  drawPassing(ctx, page, view, box, { x, y, scaleX, scaleY }, labels);
  ctx.globalAlpha = 1;
  drawLabels(ctx, blocks, labels);
  const peak = x(page.peakMoment + 0.5);
  ctx.strokeStyle = colours.peak;
  ctx.globalAlpha = 0.55;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(peak, box.top);
  ctx.lineTo(peak, box.top + box.height);
  ctx.stroke();
  ctx.restore();
}

function drawGrid(ctx, view, box, y) {
  const { colours } = theme;
  const span = view.top - view.bottom;
  const step = BINARY_STEPS.find((size) => (size / span) * box.height >= 40) || span;
  ctx.font = `12px ${colours.sans}`;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  ctx.strokeStyle = colours.grid;
  ctx.lineWidth = 1;
  for (let bytes = Math.ceil(view.bottom / step) * step; bytes <= view.top; bytes += step) {
    const at = Math.round(y(bytes)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(box.left, at);
    ctx.lineTo(box.left + box.width, at);
    ctx.stroke();
    ctx.fillStyle = colours.soft;
    ctx.fillText(bytes ? formatBytes(bytes) : "0", box.left - 8, Math.max(box.top + 7, at));
  }
}

// The bytes of small blocks at each moment, as one area: the highest moment of each pixel.
function drawSmall(ctx, page, view, box, x, y) {
  const { blocks, smallCurve } = page;
  const base = y(blocks.residentTop);
  ctx.fillStyle = theme.colours.small;
  ctx.beginPath();
  ctx.moveTo(box.left, base);
  const perPixel = (view.to - view.from) / box.width;
  for (let pixel = 0; pixel < box.width; pixel += 1) {
    const first = Math.max(0, Math.floor(view.from + pixel * perPixel));
    const last = Math.max(first + 1, Math.floor(view.from + (pixel + 1) * perPixel));
    let most = 0;
    for (let moment = first; moment < last && moment < smallCurve.length; moment += 1) {
      if (smallCurve[moment] > most) most = smallCurve[moment];
    }
    const at = y(blocks.residentTop + most);
    ctx.lineTo(box.left + pixel, at);
    ctx.lineTo(box.left + pixel + 1, at);
  }
  ctx.lineTo(box.left + box.width, base);
  ctx.fill();
}

// What stays for the whole time: bars across. Those too thin to see are joined by kind.
function drawResident(ctx, page, view, box, y, scaleY, labels) {
  const { blocks } = page;
  const alpha = (block) => (!view.matches || view.matches[block] ? 1 : PALE);
  let index = 0;
  while (index < blocks.residents) {
    const first = index;
    const kind = blocks.kind[first];
    const strength = alpha(first);
    let bytes = blocks.bytes[first];
    index += 1;
    const thin = (block) => blocks.bytes[block] * scaleY < THIN;
    if (thin(first)) {
      while (
        index < blocks.residents &&
        blocks.kind[index] === kind &&
        thin(index) &&
        alpha(index) === strength
      ) {
        bytes += blocks.bytes[index];
        index += 1;
      }
    }
    const bottom = y(blocks.offset[first]);
    const top = y(blocks.offset[first] + bytes);
    if (top > box.top + box.height || bottom < box.top) continue;
    const height = bottom - top;
    ctx.globalAlpha = strength;
    ctx.fillStyle = theme.kind(blocks.kinds[kind]);
    ctx.fillRect(box.left, top, box.width, height > 3 ? height - 1 : height);
    if (strength === 1 && height >= 14 && index === first + 1)
      labels.push([first, box.left, top, box.width, height]);
  }
}

// Whether a block is drawn by itself at this zoom. Large ones are: they are not many.
function toldApart(blocks, block, scaleX, scaleY) {
  if (block < blocks.firstSmall) return true;
  const width = (blocks.death[block] - blocks.birth[block]) * scaleX;
  const height = blocks.bytes[block] * scaleY;
  return height >= THIN && width >= NARROW && width * height >= SPECK;
}

function drawPassing(ctx, page, view, box, scale, labels) {
  const { blocks } = page;
  const { birth, death, offset, bytes, kind } = blocks;
  const { from, to, bottom, top, matches } = view;
  for (let shade = 0; shade < blocks.kinds.length; shade += 1) {
    ctx.fillStyle = theme.kind(blocks.kinds[shade]);
    for (let index = blocks.residents; index < blocks.count; index += 1) {
      if (kind[index] !== shade || birth[index] >= to || death[index] <= from) continue;
      if (offset[index] >= top || offset[index] + bytes[index] <= bottom) continue;
      let height = bytes[index] * scale.scaleY;
      const left = Math.max(scale.x(birth[index]), box.left - 2);
      let width = Math.min(scale.x(death[index]), box.left + box.width + 2) - left;
      if (!toldApart(blocks, index, scale.scaleX, scale.scaleY)) continue;
      const meant = !matches || matches[index];
      ctx.globalAlpha = meant ? 1 : PALE;
      const upper = scale.y(offset[index] + bytes[index]);
      if (meant && height >= 14 && width >= 40) labels.push([index, left, upper, width, height]);
      height = height > 3 ? height - 1 : Math.max(height, 0.5);
      width = width > 3 ? width - 1 : Math.max(width, 0.6);
      ctx.fillRect(left, upper, width, height);
    }
  }
}

const MOST_LABELS = 300;

function drawLabels(ctx, blocks, labels) {
  labels.sort((one, other) => other[3] * other[4] - one[3] * one[4]);
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  for (const [block, left, top, width, height] of labels.slice(0, MOST_LABELS)) {
    const kind = blocks.kinds[blocks.kind[block]];
    const name =
      blocks.layers[blocks.layer[block]] || lastPart(blocks.operations[blocks.operation[block]]);
    ctx.fillStyle = theme.colours.onKind[knownKind(kind)];
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width - 3, height);
    ctx.clip();
    ctx.font = `600 11px ${theme.colours.sans}`;
    const tall = height >= 30;
    const line = tall ? top + 14 : top + height / 2 + 3.5;
    const text = name.slice(0, Math.ceil(width / 4));
    ctx.fillText(text, left + 6, line);
    const end = left + 6 + ctx.measureText(text).width;
    ctx.font = `11px ${theme.colours.sans}`;
    if (tall) ctx.fillText(formatBytes(blocks.bytes[block]), left + 6, top + 28);
    else if (end + 70 < left + width) ctx.fillText(formatBytes(blocks.bytes[block]), end + 8, line);
    ctx.restore();
  }
}
