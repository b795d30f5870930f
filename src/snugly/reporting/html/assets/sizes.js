// Bytes and counts as Snugly writes them everywhere: binary units, one decimal, none where exact.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// As Python rounds: halves to the even digit. Dividing by powers of two is exact.
function oneDecimal(value) {
  const tenths = value * 10;
  const below = Math.floor(tenths);
  const rest = tenths - below;
  const up = rest > 0.5 || (rest === 0.5 && below % 2 === 1);
  return (below + (up ? 1 : 0)) / 10;
}

function formatBytes(bytes) {
  const size = Math.abs(bytes);
  let power = 0;
  while (power < UNITS.length - 1 && oneDecimal(size / 1024 ** power) >= 1024) power += 1;
  const value = size / 1024 ** power;
  const text = Number.isInteger(value) ? String(value) : oneDecimal(value).toFixed(1);
  return `${bytes < 0 ? "-" : ""}${text} ${UNITS[power]}`;
}

function formatRange(low, high) {
  const power = Math.max(0, UNITS.indexOf(formatBytes(high).split(" ")[1]));
  const text = (bytes) => {
    const value = bytes / 1024 ** power;
    return Number.isInteger(value) ? String(value) : oneDecimal(value).toFixed(1);
  };
  return `${text(low)}–${text(high)} ${UNITS[power]}`;
}

function formatCount(number) {
  return number.toLocaleString("en-US");
}

function formatShare(part, whole) {
  if (!whole) return "";
  const percent = (100 * part) / whole;
  return percent >= 0.95
    ? `${Math.round(percent)} %`
    : percent > 0.05
      ? `${percent.toFixed(1)} %`
      : "< 0.1 %";
}

// An element with text in it. Names out of programs reach the page through here or textContent.
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const byId = (id) => document.getElementById(id);
