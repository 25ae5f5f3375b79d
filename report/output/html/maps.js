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
class AddressMap {
  constructor() {
    this.canvas = make("canvas", { tabindex: 0, role: "img", class: "addresses" });
    this.status = make("div", { class: "status", role: "status" });
    this.element = make("div", {}, this.canvas, this.status);
    this.canvas.onpointermove = (event) => {
      const [x, y] = fraction(this.canvas, event);
      this.tell(Math.floor(y / SEGMENT_ROW), x);
    };
    this.row = 0;
    this.canvas.onkeydown = (event) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      this.row = Math.min(Math.max(this.row + (event.key === "ArrowDown" ? 1 : -1), 0), Math.max(this.shown.length - 1, 0));
      this.draw(this.longest);
      this.tell(this.row, -1);
    };
  }

  /* Segments of the group at the cursor, each with what lies in it. */
  find(subject) {
    this.subject = subject;
    const { run, selection, time, around } = subject;
    const lives = aliveOf(selection, selection.until(time)).sort((a, b) => run.address[a] - run.address[b]);
    const bases = around ? aliveOf(around, around.until(time)) : lives;
    const segments = (around ? regionsOf(run, bases) : joinNear(regionsOf(run, bases))).map(({ from, to }) => ({ from, to, lives: [] }));
    for (const life of lives) {
      const segment = segments[upper(segments, run.address[life]) - 1];
      if (segment && run.address[life] < segment.to) segment.lives.push(life);
    }
    for (const segment of segments) this.measure(segment);
    this.segments = around ? segments.sort((a, b) => b.free - a.free) : segments;
    this.shown = this.segments.slice(0, SEGMENTS_DRAWN);
    const sum = (of) => segments.reduce((all, segment) => all + of(segment), 0);
    this.sums = { size: sum((segment) => segment.to - segment.from), free: sum((segment) => segment.free) };
    return Math.max(...this.shown.map((segment) => segment.to - segment.from), 1);
  }

  measure(segment) {
    const { run } = this.subject;
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

  /* `longest`: bytes that are as wide as the canvas. */
  draw(longest) {
    const { run, paint } = this.subject;
    this.longest = longest;
    const { context, width } = begin(this.canvas, Math.max(this.shown.length, 1) * SEGMENT_ROW);
    this.shown.forEach((segment, row) => {
      const scale = width / longest, y = row * SEGMENT_ROW;
      segment.scale = scale;
      context.fillStyle = style("--line");
      context.fillRect(0, y + 1, (segment.to - segment.from) * scale, SEGMENT_ROW - 2);
      for (const life of segment.lives) {
        context.fillStyle = fillOf(context, paint(run.place[life]));
        context.fillRect((run.address[life] - segment.from) * scale, y + 1, Math.max(run.size[life] * scale, 0.7), SEGMENT_ROW - 2);
      }
      if (row === this.row) {
        context.strokeStyle = style("--focus");
        context.strokeRect(0.5, y + 0.5, Math.max((segment.to - segment.from) * scale - 1, 1), SEGMENT_ROW - 1);
      }
    });
    this.canvas.setAttribute("aria-label", `Address map: ${countOf(this.segments.length, "segment")}. Arrow keys choose one.`);
  }

  pin(segment) {
    const { run } = this.subject;
    const largest = segment.lives.reduce((most, life) => most === WHOLE || run.size[life] > run.size[most] ? life : most, WHOLE);
    return largest === WHOLE ? "empty" : run.places[run.place[largest]].text;
  }

  tell(row, x) {
    const { run } = this.subject, segment = this.shown[row];
    if (!segment) return;
    const address = segment.from + x / segment.scale;
    const life = segment.lives.find((one) => run.address[one] <= address && address < run.address[one] + run.size[one]);
    this.status.textContent = x >= 0 && life !== undefined
      ? `${hex(run.address[life])}: ${bytesText(run.size[life])} of ${run.places[run.place[life]].text}`
      : `${hex(segment.from)}: ${bytesText(segment.to - segment.from)}, ${bytesText(segment.free)} free, largest hole ` +
        `${bytesText(segment.largest)}, held by ${this.pin(segment)}`;
  }

  /* All of it in words, and as a table. */
  words() {
    const rest = this.segments.length > SEGMENTS_DRAWN ? `, ${countText(SEGMENTS_DRAWN)} shown` : "";
    return `${bytesText(this.sums.size)} in ${countOf(this.segments.length, "segment")}${rest}; ${bytesText(this.sums.free)} free in holes`;
  }

  table() {
    return table(["#address", "#size", "#free", "#largest hole", "#allocations", "held by (largest)"], this.shown.map((segment) => [
      hex(segment.from), bytesText(segment.to - segment.from), bytesText(segment.free), bytesText(segment.largest),
      countText(segment.lives.length), this.pin(segment)]));
  }
}

/* The map at the cursor; below it that of the base at its own cursor, on one scale. */
class AddressView {
  constructor(app) {
    this.app = app;
    this.now = new AddressMap();
    this.before = new AddressMap();
    this.list = make("div");
    this.title = make("h3");
    this.base = make("div", {}, this.title, this.before.element);
    this.element = make("div", {}, this.now.element, this.base, this.list);
  }

  inputs() {
    return [this.app.stacked, this.app.state.time, ...this.app.baseInputs(), innerWidth, this.app.theme()];
  }

  draw() {
    const { app, now, before } = this, base = app.base();
    this.base.hidden = !base;
    const longest = Math.max(now.find(app.subject()), base ? before.find(app.baseSubject()) : 1);
    now.draw(longest);
    const parts = [make("p", { class: "sum" }, `At ${axis.text(app.state.time)}: ${now.words()}`), now.table()];
    if (base) {
      this.title.textContent = `Before: ${base.title()} at ${axis.text(base.state.time)}`;
      before.draw(longest);
      const grown = (name) => grownText(now.sums[name] - before.sums[name]);
      parts.splice(1, 0, make("p", { class: "sum" }, `Compared with ${base.title()}: ${grown("size")} in segments, ${grown("free")} free in holes`));
      parts.push(make("p", { class: "sum" }, `Before, at ${axis.text(base.state.time)}: ${before.words()}`), before.table());
    }
    this.list.replaceChildren(...parts);
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
