/* Addresses: what lies where at the cursor, and who had which addresses over time. */

/* Regions of addresses that were in use: those of segments (memory from CUDA) or, for other groups,
 * of the group's own allocations. Gaps above 32 MiB separate regions. */
const GAP = 33554432;

function regionsOf(run, lives) {
  const sorted = lives.slice().sort((a, b) => run.address[a] - run.address[b]);
  const regions = [];
  for (const life of sorted) {
    const from = run.address[life], to = from + run.size[life];
    const last = regions[regions.length - 1];
    if (last && from <= last.to) {
      last.to = Math.max(last.to, to);
    } else {
      regions.push({ from, to });
    }
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
    return [this.app.selection, this.app.state.time, innerWidth, this.app.theme()];
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
        context.fillStyle = fillOf(context, numberOf(run.places[run.place[life]].text));
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
      `${countText(this.segments.length)} segments${rest}; ${bytesText(sum("free"))} free in holes`),
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

const BLOCKS_HEIGHT = 420;
const BLOCKS_LISTED = 100;
const STRETCH = 256; // lifetimes of which the latest end is kept
const WIDE = 24; // pixels from which on copying a row is faster

/* Lifetimes as rectangles: time to the right, addresses downward, what was never in use left out. Each
 * is set into the picture itself, so a million cost as much as their pixels. */
class BlocksView {
  constructor(app) {
    this.app = app;
    this.canvas = make("canvas", { tabindex: 0, role: "img", class: "blocks" });
    this.status = make("div", { class: "status", role: "status" });
    this.list = make("div");
    this.element = make("div", {}, this.canvas, this.status, this.list);
    this.canvas.onpointermove = (event) => this.tell(event);
    this.canvas.onclick = (event) => {
      const [x, , width] = fraction(this.canvas, event);
      const { state } = app;
      app.set({ time: state.from + (x / width) * (state.to - state.from), range: null });
    };
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const [x, , width] = fraction(this.canvas, event);
      app.zoom(Math.exp(event.deltaY / 300), app.state.from + (x / width) * (app.state.to - app.state.from));
    }, { passive: false });
    this.canvas.onkeydown = (event) => app.curve.key(event);
  }

  inputs() {
    const { selection, state } = this.app;
    return [selection, state.from, state.to, state.time, innerWidth, this.app.theme()];
  }

  /* Rows for addresses: once for a selection. */
  prepare() {
    const { selection, run } = this.app;
    if (this.prepared === selection) return;
    this.prepared = selection;
    this.lives = Uint32Array.from(selection.steps.filter((step) => !run.ends[step] && run.life[step] < run.single), (step) => run.life[step]);
    const regions = regionsOf(run, this.lives);
    let offset = 0;
    for (const region of regions) {
      region.offset = offset;
      offset += region.to - region.from;
    }
    this.height = offset;
    this.offsets = new Float64Array(this.lives.length);
    this.lives.forEach((life, i) => {
      const region = regions[Math.max(upper(regions, run.address[life]) - 1, 0)];
      this.offsets[i] = region.offset + run.address[life] - region.from;
    });
    this.begins = Float64Array.from(this.lives, (life) => run.time[run.begin[life]]);
    this.ends = Float64Array.from(this.lives, (life) => run.stepTime(run.end[life]));
    this.sizes = Float64Array.from(this.lives, (life) => run.size[life]);
    const paints = run.places.map((place) => numberOf(place.text));
    this.numbers = Uint8Array.from(this.lives, (life) => paints[run.place[life]]);
    this.latest = new Float64Array(Math.ceil(this.lives.length / STRETCH));
    this.ends.forEach((end, i) => {
      const stretch = Math.floor(i / STRETCH);
      if (end > this.latest[stretch]) this.latest[stretch] = end;
    });
    this.rowsHigh = 0;
  }

  /* Rows of pixels of each lifetime: they change with the canvas alone, not with what is shown of the time. */
  prepareRows(high) {
    if (this.rowsHigh === high) return;
    this.rowsHigh = high;
    const scale = high / Math.max(this.height, 1), { offsets, sizes } = this;
    this.tops = new Uint16Array(offsets.length);
    this.bottoms = new Uint16Array(offsets.length);
    for (let i = 0; i < offsets.length; i++) {
      const top = Math.min(Math.floor(offsets[i] * scale), high - 1);
      this.tops[i] = top;
      this.bottoms[i] = Math.min(Math.max(Math.floor((offsets[i] + sizes[i]) * scale), top + 1), high);
    }
  }

  draw() {
    this.prepare();
    const { app } = this, { state } = app;
    const { context, width, height } = begin(this.canvas, BLOCKS_HEIGHT);
    const [selection, from, to] = this.inputs(), key = [selection, from, to, this.canvas.width];
    if (!this.key || key.some((value, i) => value !== this.key[i])) this.last = this.picture(context);
    this.key = key;
    context.putImageData(this.last, 0, 0);
    context.fillStyle = style("--fore");
    context.fillRect(((state.time - state.from) / (state.to - state.from)) * width, 0, 1, height);
    this.canvas.setAttribute("aria-label", `Block map: ${countText(this.lives.length)} lifetimes from ${timeText(state.from)} to ` +
      `${timeText(state.to)}; addresses downward. Keys as on the curve.`);
    clearTimeout(this.later); /* the table waits until nobody zooms */
    this.later = setTimeout(() => this.drawList(), 150);
  }

  /* Sets each lifetime's pixels, one at least: those that began last are on top. Lifetimes are in the order of their
   * beginnings, and stretches of them that ended before are passed over. */
  picture(context) {
    const { state } = this.app, { width: wide, height: high } = this.canvas;
    const kept = this.image && this.image.width === wide && this.image.height === high;
    const picture = this.image = kept ? this.image : context.createImageData(wide, high);
    const pixels = new Uint32Array(picture.data.buffer);
    if (kept) pixels.fill(0);
    this.prepareRows(high);
    const { begins, ends, tops, bottoms, numbers, latest } = this, { from, to } = state;
    const scale = wide / (to - from), tiles = pixelTiles(), rows = new Map(), last = this.countUntil(to);
    const rowOf = (number, y) => {
      const key = number * TILE + y % TILE;
      if (!rows.has(key)) rows.set(key, Uint32Array.from({ length: wide }, (_, x) => tiles[key * TILE + x % TILE]));
      return rows.get(key);
    };
    for (let i = 0; i < last; i++) {
      if (i % STRETCH === 0 && latest[i / STRETCH] < from) {
        i += STRETCH - 1;
        continue;
      }
      if (ends[i] < from) continue;
      const left = Math.max(Math.floor((begins[i] - from) * scale), 0);
      const right = Math.min(Math.max(Math.ceil((ends[i] - from) * scale), left + 1), wide);
      for (let y = tops[i]; y < bottoms[i]; y++) {
        if (right - left > WIDE) {
          pixels.set(rowOf(numbers[i], y).subarray(left, right), y * wide + left);
          continue;
        }
        const row = (numbers[i] * TILE + y % TILE) * TILE, start = y * wide;
        for (let x = left; x < right; x++) pixels[start + x] = tiles[row + x % TILE];
      }
    }
    return picture;
  }

  /* How many lifetimes began until a time. */
  countUntil(time) {
    let low = 0, high = this.begins.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.begins[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /* Whose pixel it is: the topmost, as it was drawn. */
  lifeAt(x, y) {
    const { begins, ends, tops, bottoms } = this, { from, to } = this.app.state, wide = this.canvas.width;
    const scale = wide / (to - from);
    for (let i = this.countUntil(to) - 1; i >= 0; i--) {
      if (ends[i] < from || y < tops[i] || y >= bottoms[i]) continue;
      const left = Math.max(Math.floor((begins[i] - from) * scale), 0);
      if (x >= left && x < Math.max(Math.ceil((ends[i] - from) * scale), left + 1)) return this.lives[i];
    }
    return undefined;
  }

  tell(event) {
    const [x, y, width] = fraction(this.canvas, event);
    const ratio = this.canvas.width / width, { run } = this.app;
    const life = this.lifeAt(Math.floor(x * ratio), Math.floor(y * ratio));
    this.status.textContent = life === undefined ? "free" : `${hex(run.address[life])}: ${bytesText(run.size[life])}, ` +
      `${timeText(run.time[run.begin[life]])} to ${run.end[life] === WHOLE ? "the end" : timeText(run.stepTime(run.end[life]))}, ` +
      run.places[run.place[life]].text;
  }

  drawList() {
    const { app } = this, { run, state } = app;
    const span = (life) => Math.max(Math.min(run.stepTime(run.end[life]), state.to) - Math.max(run.time[run.begin[life]], state.from), 0);
    const largest = [];
    let least = 0;
    for (const life of this.lives) {
      const weight = span(life) * run.size[life];
      if (weight <= least) continue;
      largest.push([weight, life]);
      if (largest.length >= 2 * BLOCKS_LISTED) {
        largest.sort((a, b) => b[0] - a[0]).length = BLOCKS_LISTED;
        least = largest[BLOCKS_LISTED - 1][0];
      }
    }
    largest.sort((a, b) => b[0] - a[0]);
    const rows = largest.slice(0, BLOCKS_LISTED).map(([, life]) => [hex(run.address[life]), bytesText(run.size[life]),
      timeText(run.time[run.begin[life]]), run.end[life] === WHOLE ? "alive" : timeText(run.stepTime(run.end[life])),
      run.places[run.place[life]].text]);
    this.list.replaceChildren(make("p", { class: "sum" }, `Largest by size and time, of ${countText(this.lives.length)}`),
      table(["#address", "#size", "#begin", "#end", "place"], rows));
  }
}
