/* Addresses: what lies where at the cursor, and who had which addresses over time. */

/* Regions of addresses that were in use: those of segments (memory from CUDA) or, for other groups,
 * of the group's own allocations. Gaps above 32 MiB separate regions. */
const GAP = 33554432;

function regionsOf(run, lives) {
  const begins = Float64Array.from(lives, (life) => run.address[life]).sort();
  const ends = Float64Array.from(lives, (life) => run.address[life] + run.size[life]).sort();
  const regions = [];
  for (let first = 0, i = 0; i < begins.length; i++) {
    /* Where the next begins above the end of as many as have begun, nothing lies between. */
    if (i + 1 < begins.length && begins[i + 1] <= ends[i]) continue;
    regions.push({ from: begins[first], to: ends[i] });
    first = i + 1;
  }
  return regions;
}

/* Joins what lies close together. */
function joinNear(regions) {
  const joined = [];
  for (const { from, to } of regions) {
    const last = joined[joined.length - 1];
    if (last && from - last.to <= GAP) last.to = to;
    else joined.push({ from, to });
  }
  return joined;
}

/* The lives of a selection that are alive after so many steps. */
function aliveOf(selection, count) {
  const { run, steps } = selection;
  const alive = new Set();
  for (let i = 0; i < count; i++) {
    const step = steps[i];
    if (run.life[step] >= run.single) continue; // merged ones have no address
    if (run.ends[step]) alive.delete(run.life[step]);
    else alive.add(run.life[step]);
  }
  return [...alive];
}

const hex = (address) => `0x${address.toString(16)}`;

const SEGMENTS_DRAWN = 120;
const SEGMENT_ROW = 16;

/* Each segment is a bar as long as its size, with what lies in it; holes are hatched. */
class AddressView {
  constructor(app) {
    this.app = app;
    this.canvas = make("canvas", { tabindex: 0, role: "img", class: "addresses" });
    this.status = make("div", { class: "status", role: "status" });
    this.list = make("div");
    this.element = make("div", {}, this.canvas, this.status, this.list);
    this.canvas.onpointermove = (event) => {
      const [x, y] = fraction(this.canvas, event);
      this.tell(Math.floor(y / SEGMENT_ROW), x);
    };
    this.row = 0;
    this.canvas.onkeydown = (event) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      this.row = Math.min(Math.max(this.row + (event.key === "ArrowDown" ? 1 : -1), 0), Math.max(this.segments.length - 1, 0));
      this.draw();
      this.tell(this.row, -1);
    };
  }

  inputs() {
    return [this.app.stacked, this.app.state.time, innerWidth, this.app.theme()];
  }

  /* Segments of the group at the cursor, each with what lies in it. */
  find() {
    const { app } = this, { run, selection, state } = app;
    const lives = aliveOf(selection, selection.until(state.time)).sort((a, b) => run.address[a] - run.address[b]);
    const around = app.around();
    const bases = around ? aliveOf(around, around.until(state.time)) : lives;
    const segments = (around ? regionsOf(run, bases) : joinNear(regionsOf(run, bases))).map(({ from, to }) => ({ from, to, lives: [] }));
    for (const life of lives) {
      const segment = segments[upper(segments, run.address[life]) - 1];
      if (segment && run.address[life] < segment.to) segment.lives.push(life);
    }
    for (const segment of segments) this.measure(segment);
    return around ? segments.sort((a, b) => b.free - a.free) : segments;
  }

  measure(segment) {
    const { run } = this.app;
    let at = segment.from;
    segment.free = segment.largest = 0;
    const hole = (to) => {
      segment.free += Math.max(to - at, 0);
      segment.largest = Math.max(segment.largest, to - at);
    };
    for (const life of segment.lives) {
      hole(run.address[life]);
      at = Math.max(at, run.address[life] + run.size[life]);
    }
    hole(segment.to);
  }

  draw() {
    const { run } = this.app;
    this.segments = this.find();
    const shown = this.segments.slice(0, SEGMENTS_DRAWN);
    const longest = Math.max(...shown.map((segment) => segment.to - segment.from), 1);
    const { context, width } = begin(this.canvas, Math.max(shown.length, 1) * SEGMENT_ROW);
    shown.forEach((segment, row) => {
      const scale = width / longest, y = row * SEGMENT_ROW;
      segment.scale = scale;
      context.fillStyle = style("--line");
      context.fillRect(0, y + 1, (segment.to - segment.from) * scale, SEGMENT_ROW - 2);
      for (const life of segment.lives) {
        context.fillStyle = fillOf(context, this.app.paintOf(run.place[life]));
        context.fillRect((run.address[life] - segment.from) * scale, y + 1, Math.max(run.size[life] * scale, 0.7), SEGMENT_ROW - 2);
      }
      if (row === this.row) {
        context.strokeStyle = style("--focus");
        context.strokeRect(0.5, y + 0.5, Math.max((segment.to - segment.from) * scale - 1, 1), SEGMENT_ROW - 1);
      }
    });
    this.canvas.setAttribute("aria-label", `Address map: ${this.segments.length} segments. Arrow keys choose one.`);
    this.drawList();
  }

  pin(segment) {
    const { run } = this.app;
    const largest = segment.lives.reduce((most, life) => most === WHOLE || run.size[life] > run.size[most] ? life : most, WHOLE);
    return largest === WHOLE ? "empty" : run.places[run.place[largest]].text;
  }

  tell(row, x) {
    const { run } = this.app, segment = this.segments[row];
    if (!segment) return;
    const address = segment.from + x / segment.scale;
    const life = segment.lives.find((one) => run.address[one] <= address && address < run.address[one] + run.size[one]);
    this.status.textContent = x >= 0 && life !== undefined
      ? `${hex(run.address[life])}: ${bytesText(run.size[life])} of ${run.places[run.place[life]].text}`
      : `${hex(segment.from)}: ${bytesText(segment.to - segment.from)}, ${bytesText(segment.free)} free, largest hole ` +
        `${bytesText(segment.largest)}, held by ${this.pin(segment)}`;
  }

  drawList() {
    const sum = (key) => this.segments.reduce((all, segment) => all + segment[key], 0);
    const size = this.segments.reduce((all, segment) => all + segment.to - segment.from, 0);
    const rows = this.segments.slice(0, SEGMENTS_DRAWN).map((segment) => [hex(segment.from), bytesText(segment.to - segment.from),
      bytesText(segment.free), bytesText(segment.largest), countText(segment.lives.length), this.pin(segment)]);
    const rest = this.segments.length > SEGMENTS_DRAWN ? `, ${countText(SEGMENTS_DRAWN)} shown` : "";
    this.list.replaceChildren(make("p", { class: "sum" }, `At ${timeText(this.app.state.time)}: ${bytesText(size)} in ` +
      `${countOf(this.segments.length, "segment")}${rest}; ${bytesText(sum("free"))} free in holes`),
    table(["#address", "#size", "#free", "#largest hole", "#allocations", "held by (largest)"], rows));
  }
}

/* How many segments begin at or below an address. */
function upper(segments, address) {
  let low = 0, high = segments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (segments[middle].from <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}
