/* Who had which addresses over time. */

const BLOCKS_HEIGHT = 420;
const BLOCKS_LISTED = 100;
const STRETCH_BITS = 8, STRETCH = 1 << STRETCH_BITS; // lifetimes of which the latest end is kept
const FEW = 16; // pixels up to which a loop is faster than a call
const PAINT = 7; // the bits of a cell that say its colour
const DRAWN = 65536; // lifetimes up to which a redraw draws each
const CELLS = 8388608; // of the widest level of the pyramid: 32 MiB

/* Lifetimes as rectangles: time to the right, addresses downward, what was never in use left out. Many lie in a pyramid of maps,
 * so a redraw costs as much as its pixels, however many there are. */
class BlockMap {
  constructor(app) {
    this.app = app;
    this.canvas = make("canvas", { tabindex: 0, role: "img", class: "blocks" });
    this.status = make("div", { class: "status", role: "status" });
    this.element = make("div", {}, this.canvas, this.status);
    this.prepared = [];
    this.canvas.onpointermove = (event) => this.tell(event);
    const timeAt = (event) => app.curve.timeAt(fraction(this.canvas, event)[0]);
    this.canvas.onclick = (event) => app.set({ time: timeAt(event), range: null });
    this.canvas.ondblclick = () => app.zoom(0);
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      app.zoom(Math.exp(event.deltaY / 300), timeAt(event));
    }, { passive: false });
    this.canvas.onkeydown = (event) => app.curve.key(event);
  }

  /* Rows for addresses: once for a selection. */
  prepare(subject) {
    const { run, selection, paint } = this.subject = subject;
    if (this.prepared.length && this.prepared.every((one, i) => one === subject.is[i])) return;
    this.prepared = subject.is;
    this.lives = selection.steps.filter((step) => !run.ends[step] && run.life[step] < run.single).map((step) => run.life[step]);
    const regions = regionsOf(run, this.lives), starts = new Float64Array(regions.length), { length } = this.lives;
    this.used = 0;
    regions.forEach((region, i) => {
      starts[i] = region.from;
      region.offset = this.used;
      this.used += region.to - region.from;
    });
    for (const name of ["offsets", "begins", "ends", "sizes"]) this[name] = new Float64Array(length);
    this.numbers = new Uint8Array(length);
    const paints = run.places.map((_, place) => paint(place));
    for (let i = 0; i < length; i++) {
      const life = this.lives[i], address = run.address[life], region = regions[countUpTo(starts, address) - 1];
      this.offsets[i] = region.offset + address - region.from;
      this.begins[i] = run.time[run.begin[life]];
      this.ends[i] = run.stepTime(run.end[life]);
      this.sizes[i] = run.size[life];
      this.numbers[i] = paints[run.place[life]];
    }
    this.latest = new Float64Array(Math.ceil(this.lives.length / STRETCH));
    this.ends.forEach((end, i) => {
      const stretch = Math.floor(i / STRETCH);
      if (end > this.latest[stretch]) this.latest[stretch] = end;
    });
  }

  /* Rows of pixels of each lifetime: they change with the canvas and its scale, not with what is shown of the time. */
  prepareRows(wide, high) {
    const key = [wide, high, this.height, ...this.prepared];
    if (this.rows && this.rows.every((one, i) => one === key[i])) return;
    this.rows = key;
    this.rowsHigh = high;
    const scale = high / Math.max(this.height, 1), { offsets, sizes } = this;
    this.tops = new Uint16Array(offsets.length);
    this.bottoms = new Uint16Array(offsets.length);
    for (let i = 0; i < offsets.length; i++) {
      const top = Math.min(Math.floor(offsets[i] * scale), high - 1);
      this.tops[i] = top;
      this.bottoms[i] = Math.min(Math.max(Math.floor((offsets[i] + sizes[i]) * scale), top + 1), high);
    }
    this.prepareLevels(wide);
  }

  /* `height`: bytes that are as high as the canvas, `pixels`. */
  draw(height, pixels) {
    this.height = height;
    const { app, subject } = this, { from, to } = app.state;
    const { context, width } = begin(this.canvas, pixels), key = [from, to, this.canvas.width, pixels, height, app.theme(), ...subject.is];
    if (!this.key || key.some((value, i) => value !== this.key[i])) this.last = this.picture(context);
    this.key = key;
    context.putImageData(this.last, this.margin(), 0);
    this.drawScale(context, width, pixels);
    context.fillStyle = style("--fore");
    if (subject.time >= from && subject.time <= to) context.fillRect(app.curve.xAt(subject.time), 0, 1, pixels);
    this.canvas.setAttribute("aria-label", `Block map: ${countOf(this.lives.length, "lifetime")} from ${axis.text(from)} to ` +
      `${axis.text(to)}; addresses downward. Keys as on the curve.`);
  }

  /* Pixels left of the picture, which lies below the curve. */
  margin() {
    return Math.round(MARGIN * (window.devicePixelRatio || 1));
  }

  /* How much of what was ever in use lies above. */
  drawScale(context, width, height) {
    const step = bytesStep(this.height);
    context.textAlign = "right";
    for (let at = 0; at <= this.height; at += step) {
      const y = Math.round((at / Math.max(this.height, 1)) * height);
      context.fillStyle = style("--grid");
      context.fillRect(MARGIN, y, width - MARGIN, 1);
      context.fillStyle = style("--dim");
      context.fillText(roundText(at), MARGIN - 6, Math.min(Math.max(y, 8), height - 8));
    }
    context.textAlign = "left";
  }

  /* The lifetimes as they are shown, each of one pixel at least. */
  picture(context) {
    const { height: high } = this.canvas, wide = Math.max(this.canvas.width - this.margin(), 1);
    const kept = this.image && this.image.width === wide && this.image.height === high;
    const picture = this.image = kept ? this.image : context.createImageData(wide, high);
    this.prepareRows(wide, high);
    this.shown = this.cellsOf(wide);
    const pixels = new Uint32Array(picture.data.buffer), { shown } = this, tiles = pixelTiles();
    for (let y = 0, at = 0; y < high; y++) {
      const row = (y % TILE) * TILE;
      for (let x = 0, column = 0; x < wide; x++, at++) {
        pixels[at] = shown[at] ? tiles[(shown[at] & PAINT) * TILE * TILE + row + column] : 0;
        if (++column === TILE) column = 0;
      }
    }
    return picture;
  }

  /* What each pixel shows: from the level of the pyramid that is a little finer than the pixels; where none is, there are few
   * lifetimes, and they are drawn. */
  cellsOf(wide) {
    const { from, to } = this.app.state, { duration } = this.subject.run;
    const level = this.levels.find((one) => one.wide * (to - from) >= wide * duration);
    return level ? this.sample(level, from, to, wide) : this.topmost(from, to, wide);
  }

  /* A pixel is less than two cells wide, so it touches three at most. */
  sample(level, from, to, wide) {
    const { cells: source, wide: width } = level, high = this.rowsHigh, cells = new Int32Array(wide * high);
    const scale = width / this.subject.run.duration, pixel = (to - from) / wide;
    const first = Int32Array.from(cells.subarray(0, wide), (_, x) => Math.min(Math.floor((from + x * pixel) * scale), width - 1));
    const last = first.map((one, x) => Math.min(Math.max(Math.ceil((from + (x + 1) * pixel) * scale) - 1, one), width - 1));
    const middle = first.map((one, x) => (one + last[x]) >> 1);
    const there = Math.min(Math.max(Math.ceil((this.subject.run.duration - from) / pixel), 0), wide); // the run may end before
    for (let y = 0; y < high; y++) {
      const row = y * width;
      for (let x = 0, at = y * wide; x < there; x++, at++) {
        const one = source[row + first[x]], two = source[row + middle[x]], three = source[row + last[x]], most = one > two ? one : two;
        cells[at] = most > three ? most : three;
      }
    }
    return cells;
  }

  /* The map of the whole run at a few widths, each half as wide as the next. */
  prepareLevels(wide) {
    this.levels = [];
    if (this.lives.length <= DRAWN) return;
    const least = 2 ** Math.ceil(Math.log2(wide));
    let most = least;
    while (this.lives.length / (most / least) > DRAWN && most * 2 * this.rowsHigh <= CELLS) most *= 2;
    let level = { wide: most, cells: this.topmost(0, this.subject.run.duration, most) };
    this.levels.unshift(level);
    while (level.wide > least) this.levels.unshift(level = this.halve(level));
  }

  halve({ wide, cells }) {
    const half = new Int32Array(cells.length / 2);
    for (let i = 0; i < half.length; i++) half[i] = Math.max(cells[2 * i], cells[2 * i + 1]);
    return { wide: wide / 2, cells: half };
  }

  /* For each pixel the lifetime that began last of those it touches, as its number plus one, times eight, plus the number of its
   * colour; 0: none. Lifetimes are in the order of their beginnings; it goes from the latest to the earliest and sets a pixel once.
   * Left of `edges` a row is empty: there most are, for what has an address at a time began before what has it next. Elsewhere
   * `next` leads across what is set, so a million lifetimes that share a row cost one look each. Stretches of lifetimes that ended
   * before are passed over. */
  topmost(from, to, wide) {
    const { begins, ends, tops, bottoms, latest, numbers } = this, high = this.rowsHigh, scale = wide / (to - from);
    const cells = new Int32Array(wide * high), next = new Uint16Array(cells.length), edges = new Int32Array(high).fill(wide);
    for (let i = countUpTo(begins, to) - 1; i >= 0; i--) {
      if (latest[i >> STRETCH_BITS] < from) {
        i &= -STRETCH;
        continue;
      }
      if (ends[i] < from) continue;
      const left = Math.max(Math.floor((begins[i] - from) * scale), 0);
      const right = Math.min(Math.max(Math.ceil((ends[i] - from) * scale), left + 1), wide);
      const value = (i + 1) * (PAINT + 1) + numbers[i];
      for (let y = tops[i], start = y * wide; y < bottoms[i]; y++, start += wide) {
        let x = left;
        if (x < edges[y]) {
          x = Math.min(right, edges[y]);
          edges[y] = left;
          if (x - left > FEW) cells.fill(value, start + left, start + x);
          else for (let at = start + left; at < start + x; at++) cells[at] = value;
        }
        while (x < right) {
          const at = start + x;
          x = cells[at] ? Math.max(next[at], x + 1) : x + 1;
          if (!cells[at]) cells[at] = value;
          if (next[at] < right) next[at] = right;
        }
      }
    }
    return cells;
  }

  /* Whose pixel it is. */
  lifeAt(x, y) {
    const { width: wide, height: high } = this.image;
    const cell = x >= 0 && x < wide && y >= 0 && y < high ? this.shown[y * wide + x] : 0;
    return cell ? this.lives[Math.floor(cell / (PAINT + 1)) - 1] : undefined;
  }

  tell(event) {
    const [x, y, width] = fraction(this.canvas, event);
    const ratio = this.canvas.width / width, { run } = this.subject;
    const life = this.lifeAt(Math.floor(x * ratio) - this.margin(), Math.floor(y * ratio));
    this.status.textContent = life === undefined ? "free" : `${hex(run.address[life])}: ${bytesText(run.size[life])}, ` +
      `${axis.text(run.time[run.begin[life]])} to ${run.end[life] === WHOLE ? "the end" : axis.text(run.stepTime(run.end[life]))}, ` +
      run.places[run.place[life]].text;
  }

  /* The largest by size and time of what is shown, as a table. */
  table() {
    const { state } = this.app, { run } = this.subject;
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
    return table(["#address", "#size", "#begin", "#end", "place"], largest.slice(0, BLOCKS_LISTED).map(([, life]) => [hex(run.address[life]),
      bytesText(run.size[life]), axis.text(run.time[run.begin[life]]), run.end[life] === WHOLE ? "alive" : axis.text(run.stepTime(run.end[life])),
      run.places[run.place[life]].text]));
  }
}

/* The map of the run; below it that of the base, on the same scales of time and of bytes. */
class BlocksView {
  constructor(app) {
    this.app = app;
    this.now = new BlockMap(app);
    this.before = new BlockMap(app);
    this.list = make("div");
    this.title = make("h3");
    this.base = make("div", {}, this.title, this.before.element);
    this.element = make("div", {}, this.now.element, this.base, this.list);
  }

  inputs() {
    const { stacked, state } = this.app;
    return [stacked, state.from, state.to, state.time, ...this.app.baseInputs(), innerWidth, this.app.theme()];
  }

  draw() {
    const { app, now, before } = this, base = app.base(), pixels = base ? BLOCKS_HEIGHT * 0.6 : BLOCKS_HEIGHT;
    this.base.hidden = !base;
    now.prepare(app.subject());
    if (base) before.prepare(app.baseSubject());
    const height = Math.max(now.used, base ? before.used : 0, 1);
    now.draw(height, pixels);
    if (base) {
      this.title.textContent = `Before: ${base.title()}`;
      before.draw(height, pixels);
    }
    clearTimeout(this.later); /* the tables wait until nobody zooms */
    this.later = setTimeout(() => this.drawList(base), 150);
  }

  drawList(base) {
    const { now, before } = this, { state } = this.app;
    const words = (map) => `argest by size and time from ${axis.text(state.from)} to ${axis.text(state.to)}, of ${countText(map.lives.length)}`;
    const parts = [make("p", { class: "sum" }, `L${words(now)}`), now.table()];
    if (base) {
      parts.splice(1, 0, make("p", { class: "sum" }, `Compared with ${base.title()}: ${now.lives.length >= before.lives.length ? "+" : ""}` +
        `${countText(now.lives.length - before.lives.length)} lifetimes, ${grownText(now.used - before.used)} of addresses in use`));
      parts.push(make("p", { class: "sum" }, `Before: l${words(before)}`), before.table());
    }
    this.list.replaceChildren(...parts);
  }
}
