/* Bytes over time: the total of each pixel is the most there was in it, so no peak vanishes. */

const MARGIN = 64; // left of the curve, for the scale
const BAND = 16; // pixels: a row of ranges
const BAND_ROWS = 3;

class Curve {
  constructor(app) {
    this.app = app;
    this.canvas = make("canvas", { tabindex: 0, role: "img", class: "curve" });
    this.status = make("div", { class: "status", role: "status" });
    this.legend = make("ul", { class: "legend" });
    this.twin = make("details", {}, make("summary", {}, "The curve as a table"));
    this.twin.ontoggle = () => this.drawTwin();
    this.element = make("div", {}, this.canvas, this.status, this.legend, this.twin);
    this.listen();
  }

  get span() {
    const { state } = this.app;
    return [state.from, state.to];
  }

  timeAt(x) {
    const [from, to] = this.span;
    const share = (x - MARGIN) / Math.max(this.canvas.clientWidth - MARGIN, 1);
    return from + Math.min(Math.max(share, 0), 1) * (to - from);
  }

  xAt(time) {
    const [from, to] = this.span;
    return MARGIN + ((time - from) / (to - from)) * (this.canvas.clientWidth - MARGIN);
  }

  listen() {
    const { canvas, app } = this;
    let start = null;
    canvas.onpointerdown = (event) => {
      canvas.setPointerCapture(event.pointerId);
      start = fraction(canvas, event)[0];
    };
    canvas.onpointermove = (event) => {
      const [x] = fraction(canvas, event);
      if (start !== null && Math.abs(x - start) > 4) {
        const times = [this.timeAt(start), this.timeAt(x)];
        app.set({ range: [Math.min(...times), Math.max(...times)] });
      } else {
        this.tell(this.timeAt(x));
      }
    };
    canvas.onpointerup = (event) => {
      const [x] = fraction(canvas, event);
      if (start !== null && Math.abs(x - start) <= 4) app.set({ time: this.timeAt(x), range: null });
      start = null;
    };
    canvas.ondblclick = () => app.zoom(0);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) app.pan(event.deltaX / canvas.clientWidth);
      else app.zoom(Math.exp(event.deltaY / 300), this.timeAt(fraction(canvas, event)[0]));
    }, { passive: false });
    canvas.onkeydown = (event) => this.key(event);
  }

  key(event) {
    const { app } = this;
    const { state } = app;
    const pixel = (state.to - state.from) / Math.max(this.canvas.clientWidth - MARGIN, 1);
    const move = (time) => app.set({ time: Math.min(Math.max(time, 0), app.run.duration), range: null });
    const actions = {
      ArrowLeft: () => move(state.time - pixel * (event.shiftKey ? 20 : 1)),
      ArrowRight: () => move(state.time + pixel * (event.shiftKey ? 20 : 1)),
      ",": () => move(app.neighbour(-1)),
      ".": () => move(app.neighbour(1)),
      Home: () => move(state.from),
      End: () => move(state.to),
      p: () => move(app.selection.peakTime(state.from, state.to)),
      "+": () => app.zoom(0.5, state.time),
      "=": () => app.zoom(0.5, state.time),
      "-": () => app.zoom(2, state.time),
      0: () => app.zoom(0),
      PageUp: () => app.pan(-0.5),
      PageDown: () => app.pan(0.5),
      "[": () => app.set({ range: [state.time, state.range ? Math.max(state.range[1], state.time) : state.to] }),
      "]": () => app.set({ range: [state.range ? Math.min(state.range[0], state.time) : state.from, state.time] }),
      Escape: () => app.set({ range: null }),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  /* What is known of a time, in words. */
  tell(time) {
    const { app } = this;
    const mark = app.markAt(time, (app.state.to - app.state.from) / 100);
    const around = app.around() ? ` in ${bytesText(app.around().totalAt(time))} of ${app.aroundGroup}` : "";
    this.status.textContent = `${axis.text(time)}: ${bytesText(app.selection.totalAt(time))}${around}` +
      `${app.state.range ? `; range ${axis.text(app.state.range[0])} to ${axis.text(app.state.range[1])}` : ""}${mark}`;
  }

  draw() {
    const { app } = this;
    const { context, width, height } = begin(this.canvas, 280);
    const bottom = height - 22, capacity = app.capacity();
    const columns = this.columns(width - MARGIN);
    const before = this.baseColumns(width - MARGIN);
    const shown = Math.max(...columns.map((column) => column.most), ...before, 1);
    const top = capacity && shown > capacity / 2 ? Math.max(capacity, shown) * 1.04 : shown * 1.06;
    const strip = this.bands().depth * BAND;
    const y = (bytes) => bottom - (bytes / top) * (bottom - 6 - strip);
    this.drawBands(context, width, bottom);
    this.drawSeries(context, columns, y, bottom);
    this.drawBase(context, before, y);
    this.drawScale(context, width, y, bottom, top);
    this.drawLines(context, width, y, bottom, capacity, top);
    this.canvas.setAttribute("aria-label", `${app.state.group}: bytes from ${axis.text(app.state.from)} to ` +
      `${axis.text(app.state.to)}, at most ${bytesText(shown)}. Arrow keys move the cursor, plus and minus zoom.`);
    this.drawLegend();
    this.tell(app.state.time);
    this.drawTwin();
  }

  /* For each pixel the least and the most, and how many steps there were until the most. */
  columns(count) {
    const { selection } = this.app;
    const [from, to] = this.span;
    const columns = [];
    let first = selection.until(from);
    for (let x = 0; x < count; x++) {
      const last = selection.until(from + ((x + 1) / count) * (to - from));
      const before = first ? selection.total[first - 1] : 0;
      const column = { least: before, most: before, until: first };
      if (last > first) {
        const { least, most, at } = selection.pyramid.query(first, last);
        column.least = Math.min(before, least);
        if (most > before) {
          column.most = most;
          column.until = at + 1;
        }
      }
      columns.push(column);
      first = last;
    }
    return columns;
  }

  /* The most of each pixel of the run that this one is compared with, from its start. */
  baseColumns(count) {
    if (!this.app.base()) return [];
    const selection = this.app.selectBase(), [from, to] = this.span;
    let first = selection.until(from);
    return Array.from({ length: count }, (_, x) => {
      const last = selection.until(from + ((x + 1) / count) * (to - from));
      const before = first ? selection.total[first - 1] : 0;
      const most = last > first ? Math.max(selection.pyramid.query(first, last).most, before) : before;
      first = last;
      return most;
    });
  }

  drawBase(context, columns, y) {
    context.beginPath();
    columns.forEach((most, x) => context.lineTo(MARGIN + x, y(most)));
    context.setLineDash([4, 2]);
    context.lineWidth = 2;
    context.strokeStyle = style("--fore");
    context.stroke();
    context.setLineDash([]);
  }

  drawSeries(context, columns, y, bottom) {
    const { stacked } = this.app;
    const lower = new Float64Array(columns.length);
    const values = [];
    let known = -1, sums = null;
    for (const column of columns) {
      if (column.until !== known) sums = stacked.at(known = column.until);
      values.push(sums);
    }
    for (let series = 0; series < stacked.names.length; series++) {
      context.beginPath();
      context.moveTo(MARGIN, y(lower[0]));
      for (let x = 0; x < columns.length; x++) {
        context.lineTo(MARGIN + x, y(lower[x]));
        context.lineTo(MARGIN + x + 1, y(lower[x]));
      }
      for (let x = columns.length - 1; x >= 0; x--) {
        lower[x] += values[x][series];
        context.lineTo(MARGIN + x + 1, y(lower[x]));
        context.lineTo(MARGIN + x, y(lower[x]));
      }
      context.closePath();
      context.fillStyle = fillOf(context, this.app.seriesPaint(series));
      context.fill();
    }
    /* Where the total falls and rises within a pixel. */
    context.fillStyle = "rgb(0 0 0 / 30%)";
    columns.forEach((column, x) => {
      if (column.most > column.least) context.fillRect(MARGIN + x, y(column.most), 1, Math.max(y(column.least) - y(column.most), 1));
    });
    context.fillStyle = style("--line");
    context.fillRect(MARGIN, bottom, columns.length, 1);
  }

  /* Round sizes and times, with faint lines. */
  drawScale(context, width, y, bottom, top) {
    const [from, to] = this.span, bytes = bytesStep(top), time = axis.step((to - from) / Math.max(Math.floor((width - MARGIN) / 110), 4));
    context.textAlign = "right";
    for (let i = 0; i * bytes <= top; i++) {
      context.fillStyle = style("--grid");
      context.fillRect(MARGIN, Math.round(y(i * bytes)), width - MARGIN, 1);
      context.fillStyle = style("--dim");
      context.fillText(roundText(i * bytes), MARGIN - 6, Math.max(y(i * bytes), 8));
    }
    context.textAlign = "center";
    for (let at = Math.ceil(from / time) * time; at <= to; at += time) {
      const x = this.xAt(at);
      context.fillStyle = style("--grid");
      context.fillRect(Math.round(x), 0, 1, bottom + 3);
      context.fillStyle = style("--dim");
      if (x < width - 20) context.fillText(axis.mark(at, time, to), x, bottom + 12);
    }
    context.textAlign = "left";
  }

  /* Ranges of the program, each in a row below the one that is around it. */
  bands() {
    const { run } = this.app;
    if (this.rows) return this.rows;
    const ranges = run.names.marks.filter((mark) => mark.length > 2).sort((a, b) => a[0] - b[0] || b[2] - a[2]);
    const around = [], list = [];
    for (const [from, name, to] of ranges) {
      while (around.length && around[around.length - 1] <= from) around.pop();
      list.push({ from, to, name, row: around.length });
      around.push(to);
    }
    return this.rows = { list, depth: Math.min(list.reduce((most, band) => Math.max(most, band.row + 1), 0), BAND_ROWS) };
  }

  /* Faint over the whole height, which the curve covers; the name in a row at the top. Where several begin in one pixel, the
   * first is drawn. */
  drawBands(context, width, bottom) {
    const { list, depth } = this.bands(), [from, to] = this.span, drawn = new Array(depth).fill(-1);
    for (const band of list) {
      if (band.row >= depth || band.to < from || band.from > to) continue;
      const left = Math.max(this.xAt(band.from), MARGIN), right = Math.min(Math.max(this.xAt(band.to), left + 1), width);
      if (right <= drawn[band.row] + 1) continue;
      drawn[band.row] = right;
      const colour = cssColour(numberOf(band.name)), top = band.row * BAND;
      context.globalAlpha = 0.09;
      context.fillStyle = colour;
      context.fillRect(left, top, right - left, bottom - top);
      context.globalAlpha = 0.35;
      context.fillRect(left, top, right - left, BAND - 2);
      context.globalAlpha = 1;
      context.fillStyle = style("--line");
      context.fillRect(left, top, 1, bottom - top);
      context.fillStyle = style("--fore");
      label(context, band.name, left + 4, top + BAND / 2 - 1, right - left - 6);
    }
  }

  drawLines(context, width, y, bottom, capacity, top) {
    const { app } = this;
    const vertical = (time, colour, dash, text, below) => {
      const x = this.xAt(time);
      if (x < MARGIN || x > width) return;
      context.setLineDash(dash);
      context.strokeStyle = context.fillStyle = colour;
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, bottom);
      context.stroke();
      if (!text) return;
      if (colour === style("--line")) context.fillStyle = style("--dim"); // lines of marks are faint, their names are read
      context.textAlign = x > width - 130 ? "right" : "left";
      tag(context, text, x + (x > width - 130 ? -4 : 4), below ? bottom - 10 : this.bands().depth * BAND + 8, 260);
      context.textAlign = "left";
    };
    context.lineWidth = 1;
    let free = 0;
    for (const [time, name, end] of app.run.names.marks) {
      const x = this.xAt(time);
      if (end !== undefined || x < free || x > width) continue;
      vertical(time, style("--line"), [2, 3], name);
      free = x + 60;
    }
    let told = -Infinity; /* labels that would cover each other are left out */
    for (const [time, size, device, purpose] of app.run.names.refusals) {
      if (app.device() !== null && device !== app.device()) continue;
      const isApart = Math.abs(this.xAt(time) - told) > 130;
      vertical(time, style("--bad"), [6, 3], isApart ? `refused: ${purpose ?? bytesText(size)}` : "", true);
      if (isApart) told = this.xAt(time);
    }
    if (capacity && capacity <= top) {
      context.setLineDash([8, 4]);
      context.strokeStyle = context.fillStyle = style("--bad");
      context.beginPath();
      context.moveTo(MARGIN, y(capacity));
      context.lineTo(width, y(capacity));
      context.stroke();
      tag(context, `the device has ${bytesText(capacity)}`, MARGIN + 6, y(capacity) + 11, 300);
    }
    if (app.state.range) {
      const [left, right] = app.state.range.map((time) => this.xAt(time));
      context.fillStyle = "rgb(128 128 128 / 25%)";
      context.fillRect(left, 0, Math.max(right - left, 1), bottom);
    }
    this.drawPeak(context, width, y);
    context.globalAlpha = 0.6;
    vertical(app.state.time, style("--fore"), [1, 1], "");
    context.globalAlpha = 1;
    context.setLineDash([]);
  }

  /* The peak of what is shown may be as narrow as a pixel. */
  drawPeak(context, width, y) {
    const { selection, state } = this.app;
    const count = selection.peakSteps(state.from, state.to), x = this.xAt(selection.peakTime(state.from, state.to));
    const bytes = count ? selection.total[count - 1] : 0;
    context.fillStyle = style("--fore");
    context.beginPath();
    context.arc(x, y(bytes), 3.5, 0, 2 * Math.PI);
    context.fill();
    const text = `peak ${bytesText(bytes)}`;
    context.textAlign = x > width - 130 ? "right" : "left";
    tag(context, text, x + (x > width - 130 ? -8 : 8), Math.max(y(bytes), 8));
    context.textAlign = "left";
  }

  /* Each series with its bytes at the cursor; its items are made anew only for other series. */
  drawLegend() {
    const { app } = this, { stacked } = app;
    const sums = stacked.at(app.selection.until(app.state.time));
    if (this.legendOf !== stacked) {
      this.legendOf = stacked;
      this.legend.replaceChildren(...stacked.names.map((name, series) => make("li", {}, this.swatch(series), document.createTextNode(""))));
    }
    stacked.names.forEach((name, series) => {
      const text = this.legend.children[series].lastChild, wanted = `${name}: ${bytesText(sums[series])}`;
      if (text.data !== wanted) text.data = wanted;
    });
  }

  swatch(series) {
    const canvas = make("canvas", { "aria-hidden": "true", width: 18, height: 12 }), context = canvas.getContext("2d");
    context.fillStyle = fillOf(context, this.app.seriesPaint(series));
    context.fillRect(0, 0, 18, 12);
    return canvas;
  }

  drawTwin() {
    if (!this.twin.open) return;
    const parts = this.columns(24), [from, to] = this.span;
    const rows = parts.map((part, i) => [axis.text(from + (i / 24) * (to - from)), bytesText(part.least), bytesText(part.most)]);
    this.twin.replaceChildren(this.twin.firstChild, table(["#from", "#least", "#most"], rows));
  }
}
