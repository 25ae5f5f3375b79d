/* Bytes by stack: the widest first, callers above. Clicking a frame makes it the root. */

const ROW = 18;
const DEPTH = 200; // rows that are drawn

function grow(node, frame) {
  let child = node.children.get(frame);
  if (!child) node.children.set(frame, child = { frame, bytes: 0, count: 0, children: new Map(), parent: node });
  return child;
}

/* A tree of [frames from its root, bytes, count]. */
function treeOf(paths) {
  const root = { frame: WHOLE, bytes: 0, count: 0, children: new Map(), parent: null };
  for (const [frames, bytes, count] of paths) {
    let node = root;
    node.bytes += bytes;
    node.count += count;
    for (const frame of frames) {
      node = grow(node, frame);
      node.bytes += bytes;
      node.count += count;
    }
  }
  return root;
}

/* What a node of another run's tree has that has the same texts on its way from the root; 0: nothing. */
function sameIn(other, otherRun, node, run) {
  if (!node.parent) return other.bytes;
  const path = [];
  for (let one = node; one.parent; one = one.parent) path.unshift(run.frames[one.frame].text);
  let nodes = [other];
  for (const text of path)
    nodes = nodes.flatMap((one) => [...one.children.values()].filter((child) => otherRun.frames[child.frame].text === text));
  return nodes.reduce((sum, one) => sum + one.bytes, 0);
}

const widestFirst = (node) => [...node.children.values()].filter((child) => child.bytes > 0).sort((a, b) => b.bytes - a.bytes);

class Flame {
  /* `name`: what its root is called; `choose`: what the key x and a double click do with a frame. */
  constructor(app, name, choose) {
    this.app = app;
    this.name = name;
    this.choose = choose;
    this.canvas = make("canvas", { tabindex: 0, role: "img", class: "flame" });
    this.status = make("div", { class: "status", role: "status" });
    this.element = make("div", {}, this.canvas, this.status);
    this.boxes = [];
    this.listen();
  }

  /* `base`: the tree of the run that this one is compared with; null. */
  show(tree, base = null) {
    this.tree = this.root = this.focus = tree;
    this.base = base;
    this.draw();
  }

  listen() {
    const { canvas } = this;
    canvas.onclick = (event) => {
      const box = this.boxAt(event);
      if (box) this.open(box.node);
    };
    canvas.ondblclick = (event) => {
      const box = this.boxAt(event);
      if (box && box.node.frame !== WHOLE) this.choose(box.node.frame);
    };
    canvas.onpointermove = (event) => {
      const box = this.boxAt(event);
      if (box) this.tell(box.node);
    };
    canvas.onkeydown = (event) => {
      const siblings = this.focus.parent ? widestFirst(this.focus.parent) : [this.focus];
      const at = siblings.indexOf(this.focus);
      const actions = {
        ArrowDown: () => widestFirst(this.focus)[0],
        ArrowUp: () => this.focus === this.root ? null : this.focus.parent,
        ArrowRight: () => siblings[at + 1],
        ArrowLeft: () => siblings[at - 1],
      };
      if (event.key === "Enter") this.open(this.focus);
      else if (event.key === "Escape" || event.key === "Backspace") this.open(this.root.parent || this.tree);
      else if (event.key === "x" && this.focus.frame !== WHOLE) this.choose(this.focus.frame);
      else if (actions[event.key]) {
        this.focus = actions[event.key]() || this.focus;
        this.draw();
      } else return;
      event.preventDefault();
    };
  }

  open(node) {
    this.root = this.focus = node;
    this.draw();
  }

  boxAt(event) {
    const [x, y] = fraction(this.canvas, event);
    return this.boxes.find((box) => y >= box.y && y < box.y + ROW && x >= box.x && x < box.x + box.width);
  }

  textOf(node) {
    return node.frame === WHOLE ? this.name() : this.app.run.frames[node.frame].text;
  }

  tell(node) {
    const share = this.tree.bytes ? ((node.bytes / this.tree.bytes) * 100).toFixed(1) : "0";
    this.status.textContent = `${this.textOf(node)}: ${bytesText(node.bytes)}, ${share} %, ${countText(node.count)} allocations${this.before(node)}`;
  }

  before(node) {
    return this.base ? `; ${bytesText(sameIn(this.base, this.app.base().run, node, this.app.run))} before` : "";
  }

  /* What grew is orange, what shrank blue, the more the stronger; without a base each text has its colour. */
  colour(node, text) {
    if (!this.base) return `rgb(${COLOURS[numberOf(text)].join(" ")} / 55%)`;
    const before = sameIn(this.base, this.app.base().run, node, this.app.run);
    const share = (node.bytes - before) / Math.max(node.bytes, before, 1);
    return `rgb(${COLOURS[share > 0 ? 5 : 0].join(" ")} / ${Math.round(10 + 65 * Math.abs(share))}%)`;
  }

  layout(width) {
    this.boxes = [];
    const place = (node, x, size, row) => {
      this.boxes.push({ node, x, y: row * ROW, width: size });
      if (row >= DEPTH) return;
      for (const child of widestFirst(node)) {
        const part = (child.bytes / Math.max(node.bytes, 1)) * size;
        if (part < 1) break;
        place(child, x, part, row + 1);
        x += part;
      }
    };
    const above = [];
    for (let node = this.root.parent; node; node = node.parent) above.unshift(node);
    above.forEach((node, row) => this.boxes.push({ node, x: 0, y: row * ROW, width, above: true }));
    place(this.root, 0, width, above.length);
  }

  draw() {
    this.layout(Math.max(this.canvas.clientWidth, 50));
    const rows = Math.max(...this.boxes.map((box) => box.y)) / ROW + 1;
    const { context } = begin(this.canvas, Math.min(rows, DEPTH) * ROW + 2);
    for (const box of this.boxes) {
      const text = this.textOf(box.node);
      context.fillStyle = box.node.frame === WHOLE || box.above ? style("--line") : this.colour(box.node, text);
      context.fillRect(box.x, box.y, Math.max(box.width - 0.5, 0.5), ROW - 1);
      context.fillStyle = style("--fore");
      if (box.width > 24) label(context, text, box.x + 4, box.y + ROW / 2, box.width - 6);
      if (box.node === this.focus) {
        context.strokeStyle = style("--focus");
        context.lineWidth = 2;
        context.strokeRect(box.x + 1, box.y + 1, Math.max(box.width - 2, 1), ROW - 3);
      }
    }
    this.canvas.setAttribute("aria-label", `Flame graph, ${this.textOf(this.root)}, ${bytesText(this.root.bytes)}. ` +
      "Arrow keys move, Enter opens a frame, x shows its callers and what it calls, Escape goes back.");
    this.tell(this.focus);
  }
}

/* Frames from the outermost, bytes and count of each place. */
function pathsOf(run, sums) {
  const paths = [];
  run.places.forEach((place, i) => {
    if (sums.bytes[i]) paths.push([run.stacks[place.stack].slice().reverse(), sums.bytes[i], sums.counts[i]]);
  });
  return paths;
}

class FlameView {
  constructor(app) {
    this.app = app;
    this.flame = new Flame(app, () => `${app.state.group}, ${app.state.metric}`, (frame) => app.set({ frame, tab: "sandwich" }));
    this.element = make("div", {}, this.flame.element);
  }

  draw() {
    const { app } = this, base = app.base();
    this.flame.show(treeOf(pathsOf(app.run, app.owners())), base && treeOf(pathsOf(base.run, app.baseOwners())));
  }
}

/* One function: who calls it, what it calls; and all of them as a table. */
class SandwichView {
  constructor(app) {
    this.app = app;
    const choose = (frame) => app.set({ frame });
    const name = () => app.state.frame === WHOLE ? "all" : app.run.frames[app.state.frame].text;
    this.callers = new Flame(app, name, choose);
    this.callees = new Flame(app, name, choose);
    this.list = make("div");
    this.flames = make("div", {}, make("h3", {}, "Callers, the nearest on top"), this.callers.element,
      make("h3", {}, "What it calls"), this.callees.element);
    this.element = make("div", {}, this.flames, this.list);
  }

  draw() {
    const { app } = this, { frame } = app.state, base = app.base();
    const paths = pathsOf(app.run, app.owners()), before = base && pathsOf(base.run, app.baseOwners());
    this.flames.hidden = frame === WHOLE;
    if (frame !== WHOLE) {
      const { text } = app.run.frames[frame], now = halves(paths, app.run, text), then = base ? halves(before, base.run, text) : [null, null];
      this.callers.show(now[0], then[0]);
      this.callees.show(now[1], then[1]);
    }
    this.drawList(totals(paths, app.run), base && totals(before, base.run));
  }

  drawList(now, before) {
    const { app } = this, none = { total: 0, own: 0, frame: WHOLE };
    const all = [...new Set([...now.keys(), ...before ? before.keys() : []])].map((text) => {
      const here = now.get(text) || none;
      return { text, ...here, grown: before ? here.total - (before.get(text) || none).total : 0 };
    });
    all.sort((a, b) => before ? Math.abs(b.grown) - Math.abs(a.grown) || b.total - a.total : b.total - a.total);
    const shown = all.slice(0, FUNCTIONS_SHOWN);
    const rows = shown.map(({ text, total, own, grown }) => [...before ? [grownText(grown)] : [], bytesText(total), bytesText(own), text]);
    const against = before ? `, compared with ${app.base().title()}` : "";
    this.list.replaceChildren(make("h3", {}, "Functions"), make("p", { class: "sum" }, `${app.what()}${against}: ` +
      `${countOf(all.length, "function")}${all.length > shown.length ? `, ${countText(shown.length)} listed` : ""}`),
    table([...before ? ["#more than before"] : [], "#with what it calls", "#itself", "function"], rows, (row) => {
      if (shown[row].frame !== WHOLE) app.set({ frame: shown[row].frame });
    }));
  }
}

const FUNCTIONS_SHOWN = 200;

/* The trees above and below a function, of the paths that lead through it: callers from the nearest, and what it calls. */
function halves(paths, run, text) {
  const callers = [], callees = [];
  for (const [frames, ...sums] of paths) {
    const is = (frame) => run.frames[frame].text === text, first = frames.findIndex(is);
    if (first < 0) continue;
    callers.push([frames.slice(0, frames.findLastIndex(is)).reverse(), ...sums]);
    callees.push([frames.slice(first + 1), ...sums]);
  }
  return [treeOf(callers), treeOf(callees)];
}

/* Bytes of each function with and without what it calls, by its text, and a frame of it. */
function totals(paths, run) {
  const found = new Map();
  const of = (frame) => {
    const text = frame === WHOLE ? "(no stack)" : run.frames[frame].text;
    if (!found.has(text)) found.set(text, { total: 0, own: 0, frame });
    return found.get(text);
  };
  for (const [frames, bytes] of paths) {
    for (const one of new Set(frames.length ? frames.map(of) : [of(WHOLE)])) one.total += bytes;
    of(frames.length ? frames[frames.length - 1] : WHOLE).own += bytes;
  }
  return found;
}

/* Who owns it, the most first. */
const OWNERS_SHOWN = 100;

class OwnersView {
  constructor(app) {
    this.app = app;
    this.element = make("div");
  }

  draw() {
    const { app } = this, base = app.base();
    const owners = this.ownersOf(app.run, app.owners());
    if (base) this.compare(owners, this.ownersOf(base.run, app.baseOwners()));
    owners.sort((a, b) => base ? Math.abs(b.grown) - Math.abs(a.grown) || b.bytes - a.bytes : b.bytes - a.bytes);
    const all = owners.reduce((sum, owner) => sum + owner.bytes, 0);
    const rows = owners.slice(0, OWNERS_SHOWN).map(({ run, place, bytes, count, grown }) => [
      ...base ? [grownText(grown)] : [], bytesText(bytes),
      `${all ? ((bytes / all) * 100).toFixed(1) : 0} %`, countText(count), this.where(run, place),
      [place.api, place.library].filter(Boolean).join(", ")]);
    const rest = owners.length > OWNERS_SHOWN ? `; ${countText(owners.length - OWNERS_SHOWN)} smaller ones are not listed` : "";
    const against = base ? `, compared with ${base.title()}` : "";
    this.element.replaceChildren(
      make("p", { class: "sum" }, `${app.what()}${against}: ${bytesText(all)} of ${countOf(owners.length, "place")}${rest}`),
      table([...base ? ["#more than before"] : [], "#bytes", "#share", "#count", "place", "allocated by, for"], rows));
  }

  ownersOf(run, sums) {
    return run.places.map((place, i) => ({ run, place, bytes: sums.bytes[i], count: sums.counts[i], grown: 0 }))
      .filter((owner) => owner.count || owner.bytes);
  }

  /* Places are the same if they read the same. What the base alone has is added, with nothing now. */
  compare(owners, before) {
    const keyOf = ({ run, place }) => [place.text, place.api, ...run.stacks[place.stack].map((frame) => run.frames[frame].name)].join("\n");
    const known = new Map();
    for (const owner of owners) {
      owner.grown = owner.bytes;
      if (!known.has(keyOf(owner))) known.set(keyOf(owner), owner);
    }
    for (const owner of before) {
      const now = known.get(keyOf(owner));
      if (now) now.grown -= owner.bytes;
      else owners.push({ ...owner, bytes: 0, count: 0, grown: -owner.bytes });
    }
  }

  where(run, place) {
    const frames = run.stacks[place.stack];
    if (!frames.length) return place.text;
    const list = make("ol");
    const details = make("details", {}, make("summary", {}, place.operation ? `${place.text}, ${place.operation}` : place.text), list, make("small", {}, `site ${place.site}`));
    details.ontoggle = () => {
      if (!list.firstChild)
        list.append(...frames.slice(0, 64).map((frame) => make("li", {}, run.frames[frame].name, make("small", {},
          run.frames[frame].file ? ` ${run.frames[frame].file}:${run.frames[frame].line}` : ""))));
    };
    return details;
  }
}
