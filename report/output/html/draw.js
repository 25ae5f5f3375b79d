/* Texts of numbers, colours with patterns, and canvases. */

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const sign = bytes < 0 ? "-" : "";
  let value = Math.abs(bytes), unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${sign}${value.toFixed(digits)} ${units[unit]}`;
}

function timeText(ns) {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toPrecision(3)} us`;
  if (ns < 1e9) return `${(ns / 1e6).toPrecision(4)} ms`;
  if (ns < 120e9) return `${(ns / 1e9).toPrecision(5)} s`;
  return `${Math.floor(ns / 60e9)} min ${((ns % 60e9) / 1e9).toFixed(1)} s`;
}

/* A difference. */
const grownText = (bytes) => `${bytes > 0 ? "+" : ""}${bytesText(bytes)}`;

/* A size without zeros behind its point, for a scale. */
function roundText(bytes) {
  const [value, unit] = bytesText(bytes).split(" ");
  return `${Number(value)} ${unit}`;
}

/* The distance of the marks of a scale: a power of two bytes, at most six of them below `top`. */
const bytesStep = (top) => 2 ** Math.max(Math.ceil(Math.log2(top / 6)), 0);

const SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400]; // what people count in

/* The least round time that is not below `least`. */
function timeStep(least) {
  const found = SECONDS.find((seconds) => seconds * 1e9 >= least);
  if (least > 1e9) return found ? found * 1e9 : Math.ceil(least / 864e11) * 864e11;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].find((factor) => factor * power >= least) * power;
}

/* A mark of a scale of times: as many digits as `step` needs. */
function markText(ns, step, last) {
  if (last >= 120e9) {
    const minutes = Math.floor(ns / 60e9), seconds = (ns - minutes * 60e9) / 1e9, digits = step < 1e9 ? Math.ceil(9 - Math.log10(step)) : 0;
    return step >= 60e9 ? `${minutes} min` : `${minutes} min ${seconds.toFixed(digits)} s`;
  }
  const [unit, name] = last >= 1e9 ? [1e9, "s"] : last >= 1e6 ? [1e6, "ms"] : last >= 1e3 ? [1e3, "us"] : [1, "ns"];
  return `${(ns / unit).toFixed(Math.max(Math.ceil(Math.log10(unit / step) - 1e-9), 0))} ${name}`;
}

/* What lies to the right: time, or, where times mean nothing, one allocation or free after the other. All runs of a page have
 * the same. */
const AXES = {
  time: { text: timeText, step: timeStep, mark: markText, least: 100 },
  calls: {
    text: (call) => `call ${countText(Math.round(call))}`,
    step: (least) => Math.max(timeStep(Math.min(least, 1e9)), 1),
    mark: (call) => countText(Math.round(call)),
    least: 8,
  },
};
let axis = AXES.time;

const countText = (count) => count.toLocaleString("en");
const countOf = (count, what) => `${countText(count)} ${what}${count === 1 ? "" : "s"}`;

/* Told apart with any eyes (Okabe and Ito), and by their patterns. */
const COLOURS = [[0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0],
  [240, 228, 66], [140, 140, 140]];
const PATTERNS = [
  () => false,
  (x, y) => (x + y) % 8 < 2,
  (x, y) => x % 6 < 2 && y % 6 < 2,
  (x, y) => y % 6 < 1,
  (x, y) => x % 6 < 1,
  (x, y) => (x - y + TILE) % 8 < 2,
  (x, y) => x % 8 < 1 || y % 8 < 1,
  (x, y) => (x + y) % 4 < 1,
];

const paint = (number) => ({ colour: COLOURS[number % COLOURS.length], pattern: PATTERNS[number % PATTERNS.length] });
const cssColour = (number) => `rgb(${paint(number).colour.join(" ")})`;

const TILE = 24; // pixels: the patterns repeat

/* All colours with their patterns, as pixels of a picture. */
let pixels = null;

function pixelTiles() {
  if (pixels) return pixels;
  pixels = new Uint32Array(COLOURS.length * TILE * TILE);
  COLOURS.forEach(([red, green, blue], number) => {
    for (let y = 0; y < TILE; y++)
      for (let x = 0; x < TILE; x++) {
        const dim = PATTERNS[number](x, y) ? 0.55 : 1;
        pixels[(number * TILE + y) * TILE + x] = 0xff000000 | (blue * dim) << 16 | (green * dim) << 8 | (red * dim);
      }
  });
  return pixels;
}

const tiles = new Map();

/* A fill for a canvas: the colour with its pattern. */
function fillOf(context, number) {
  const key = number % COLOURS.length;
  if (!tiles.has(key)) {
    const tile = new OffscreenCanvas(TILE, TILE), drawing = tile.getContext("2d");
    const { pattern } = paint(key);
    drawing.fillStyle = cssColour(key);
    drawing.fillRect(0, 0, TILE, TILE);
    drawing.fillStyle = "rgb(0 0 0 / 45%)";
    for (let y = 0; y < TILE; y++)
      for (let x = 0; x < TILE; x++) if (pattern(x, y)) drawing.fillRect(x, y, 1, 1);
    tiles.set(key, tile);
  }
  return context.createPattern(tiles.get(key), "repeat");
}

/* The same text has the same colour in every flame graph. */
function numberOf(text) {
  let hash = 7;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) | 0;
  return (hash >>> 0) % (COLOURS.length - 1);
}

/* Colours of the theme, asked once for each redraw: the browser may work out the page's styles for an answer. */
const styles = new Map();

function style(name) {
  if (!styles.has(name)) styles.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return styles.get(name);
}

/* An element with attributes, or properties and listeners for what is no text, and children. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "string" || typeof value === "number") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/* Sizes a canvas to its place and its pixels; returns its context, in units of CSS pixels. */
function begin(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(canvas.clientWidth, 50);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  return { context, width, height };
}

/* Text that fits, or nothing. */
function label(context, text, x, y, width) {
  const most = Math.floor(width / 6.2);
  if (most < 3) return;
  context.fillText(text.length > most ? `${text.slice(0, most - 1)}…` : text, x, y);
}

/* The same on what is drawn already: with an edge in the colour of the canvas. */
function tag(context, text, x, y, width = Infinity) {
  const most = Math.floor(width / 6.2);
  if (most < 3) return;
  const shown = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  context.setLineDash([]);
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = style("--panel");
  context.strokeText(shown, x, y);
  context.lineWidth = 1;
  context.fillText(shown, x, y);
}

const fraction = (canvas, event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top, box.width, box.height];
};

/* A table, rows of cells; numbers are right-aligned. `onRow` makes rows that can be chosen. */
function table(head, rows, onRow) {
  const cell = (tag, value, isNumber) => make(tag, isNumber ? { class: "n" } : {}, value);
  const isNumber = (column) => head[column].startsWith("#");
  const body = rows.map((row, number) => {
    const line = make("tr", {}, ...row.map((value, column) => cell("td", value, isNumber(column))));
    if (onRow) {
      line.tabIndex = 0;
      line.onclick = () => onRow(number);
      line.onkeydown = (event) => {
        if (event.key === "Enter") onRow(number);
      };
    }
    return line;
  });
  return make("div", { class: "scroll list", tabindex: 0 }, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((text, column) => cell("th", text.replace(/^#/, ""), isNumber(column))))),
    make("tbody", {}, ...body)));
}
