// The page's data: JSON in columns, unpacked into typed arrays; and what is derived from them.

function summed(differences, Kind) {
  const values = new Kind(differences.length);
  let value = 0;
  for (let index = 0; index < differences.length; index += 1) {
    value += differences[index];
    values[index] = value;
  }
  return values;
}

// Names that begin as the one before them do: how much is shared, then the rest.
function unfolded(coded) {
  const names = new Array(coded.length / 2);
  let before = "";
  for (let index = 0; index < names.length; index += 1) {
    before = before.slice(0, coded[2 * index]) + coded[2 * index + 1];
    names[index] = before;
  }
  return names;
}

function unpackBlocks(packed, length) {
  const count = packed.kind.length;
  const birth = summed(packed.birth, Int32Array);
  const death = new Int32Array(count);
  const bytes = new Float64Array(count);
  const chunk = packed.chunk && new Float64Array(count);
  for (let index = 0; index < count; index += 1) {
    death[index] = packed.life[index] ? birth[index] + packed.life[index] : length;
    bytes[index] = packed.sizes[packed.bytes[index]];
    if (chunk) chunk[index] = packed.sizes[packed.chunk[index]];
  }
  return {
    count,
    birth,
    death,
    bytes,
    chunk,
    residents: packed.residents,
    firstSmall: packed.residents + packed.larges,
    residentTop: packed.residentTop,
    bandTop: packed.bandTop,
    height: packed.height,
    // Sizes are listed from the smallest, so that an index says how large a block is among others.
    bytesRank: Int32Array.from(packed.bytes),
    chunkRank: packed.chunk && Int32Array.from(packed.chunk),
    offset: summed(packed.offset, Float64Array),
    kind: Uint8Array.from(packed.kind),
    operation: Int32Array.from(packed.operation),
    layer: Int32Array.from(packed.layer),
    line: Int32Array.from(packed.line),
    kinds: packed.kinds,
    operations: unfolded(packed.operations),
    layers: unfolded(packed.layers),
    lines: unfolded(packed.lines),
  };
}

// Bytes alive at each moment; one value more than moments, so that the last has a width.
function curveOf(blocks, sizes, length, first = 0) {
  const curve = new Float64Array(length + 1);
  for (let index = first; index < blocks.count; index += 1) {
    curve[blocks.birth[index]] += sizes[index];
    if (blocks.death[index] < length) curve[blocks.death[index]] -= sizes[index];
  }
  for (let moment = 1; moment < length; moment += 1) curve[moment] += curve[moment - 1];
  if (length) curve[length] = curve[length - 1];
  return curve;
}

function readPage() {
  const page = JSON.parse(byId("data").textContent);
  const { length } = page;
  const blocks = unpackBlocks(page.blocks, length);
  page.blocks = blocks;
  page.timed = length > 0 && blocks.count > 0;
  if (!page.timed) return page;
  page.requestedCurve = curveOf(blocks, blocks.bytes, length);
  if (page.leftOut) {
    const { step, most } = page.leftOut;
    // The highest of each stretch stands for all of it, but never for more than the peak.
    for (let moment = 0; moment <= length; moment += 1) {
      const rest = most[Math.min(most.length - 1, Math.floor(moment / step))];
      page.requestedCurve[moment] = Math.min(page.requested, page.requestedCurve[moment] + rest);
    }
  }
  const chunksKnown = blocks.chunk && !page.leftOut && blocks.chunk.every((size) => size > 0);
  page.chunkCurve = chunksKnown ? curveOf(blocks, blocks.chunk, length) : null;
  page.smallCurve =
    blocks.firstSmall < blocks.count
      ? curveOf(blocks, blocks.bytes, length, blocks.firstSmall)
      : null;
  return page;
}

const PLURALS = {
  weight: "weights",
  gradient: "gradients",
  activation: "activations",
  input: "inputs",
  output: "outputs",
};
const pluralOf = (kind) => PLURALS[kind] || kind;

// A kind of another version is drawn as one that is not known.
const KINDS = new Set([
  "activation",
  "gradient",
  "weight",
  "optimizer",
  "workspace",
  "input",
  "output",
  "unknown",
]);
const knownKind = (kind) => (KINDS.has(kind) ? kind : "unknown");
const kindClass = (kind) => `kind-${knownKind(kind)}`;

const lastPart = (name) => name.slice(name.lastIndexOf("/", name.length - 2) + 1);
