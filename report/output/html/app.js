/* One run's views and their state, which is in the address of the page: a link shows the same view. */

const TABS = { owners: OwnersView, flame: FlameView, sandwich: SandwichView, addresses: AddressView, blocks: BlocksView };
const TAB_NAMES = { owners: "Owners", flame: "Flame graph", sandwich: "Functions", addresses: "Address map", blocks: "Block map" };
const METRICS = { live: "live at the cursor", peak: "at the peak", leaked: "never freed", allocated: "allocated", temporary: "temporary" };
const STACKS = { total: "the total", category: "category", library: "library", place: "place" };

/* May throw: what users type need not be an expression. */
const expression = (text) => text ? new RegExp(text, "i") : null;

class App {
  constructor(run, element, number) {
    this.run = run;
    this.number = number;
    this.views = {};
    this.arounds = new Map();
    this.state = { group: this.largestGroup(), stack: "place", metric: "live", tab: "owners", filter: "", from: 0, to: run.duration,
      time: 0, range: null, frame: WHOLE, base: "" };
    this.build(element);
    this.reselect();
    this.state.time = this.selection.peakTime(0, run.duration);
    this.readAddress();
    this.refresh(true);
    new ResizeObserver(() => this.schedule()).observe(this.curve.canvas);
  }

  /* Where the most memory was. Blocks are what people of PyTorch look for, if there are any. */
  largestGroup() {
    const { run } = this;
    const sums = run.groups.map((group) => [group.startsWith("blocks") ? 1 : 0, run.select(group, null).peak.most, group]);
    sums.sort((a, b) => b[0] - a[0] || b[1] - a[1]);
    return sums[0][2];
  }

  /* ---- what is asked of it ---- */

  device() {
    const found = /device (\d+)$/.exec(this.state.group);
    return found ? Number(found[1]) : null;
  }

  capacity() {
    const device = this.run.names.devices.find(([id]) => id === this.device());
    return device ? device[1] : 0;
  }

  /* What a run has in the group in whose memory this one's lies. */
  around(run = this.run) {
    if (!this.state.group.startsWith("blocks on ")) return null;
    this.aroundGroup = this.state.group.slice("blocks on ".length);
    const known = this.arounds.get(run);
    if (known && known.group === this.aroundGroup) return known.selection;
    const selection = run.select(this.aroundGroup, null);
    this.arounds.set(run, { group: this.aroundGroup, selection });
    return selection;
  }

  owners() {
    const { metric, time, range, from, to } = this.state;
    return this.selection.owners(metric, time, ...(range || [from, to]));
  }

  /* What a view depends on that shows owners: only if it changes, the view is drawn again. */
  inputs() {
    const { metric, time, range, from, to, frame } = this.state;
    const span = metric === "live" ? [time] : range || [from, to];
    return [this.selection, metric, ...span, frame, this.state.base, this.base() && this.base().state.time, innerWidth, this.theme()];
  }

  theme() {
    return style("--back");
  }

  /* ---- the run that this one is compared with ---- */

  base() {
    return this.state.base === "" ? null : apps[Number(this.state.base)] || null;
  }

  /* What the base has of the same group, filter and metric: over its whole run, at its own cursor. */
  baseOwners() {
    const base = this.base();
    return this.selectBase().owners(this.state.metric, base.state.time, 0, base.run.duration);
  }

  selectBase() {
    const { group, filter } = this.state, base = this.base(), key = [base.number, group, filter].join("\n");
    if (this.baseKey !== key) {
      this.baseKey = key;
      this.baseSelection = base.run.select(group, this.filterInput.validity.valid ? expression(filter) : null);
    }
    return this.baseSelection;
  }

  /* What the maps draw: a run, which of it, when. `is`: what changes if anything does that takes long to prepare. */
  subject() {
    const { run, selection, stacked } = this;
    return { run, selection, time: this.state.time, around: this.around(), is: [stacked], paint: (place) => this.paintOf(place) };
  }

  /* The same of the base, in the colours of this one. */
  baseSubject() {
    const base = this.base(), { run } = base, selection = this.selectBase(), { stacked } = this;
    const paint = (place) => stacked.names.length > 1 ? stacked.seriesOf(run.places[place]) : numberOf(run.places[place].text);
    return { run, selection, time: base.state.time, around: this.around(run), is: [selection, stacked], paint };
  }

  /* Its changes draw the maps anew. */
  baseInputs() {
    return this.base() ? [this.selectBase(), this.base().state.time] : [null, 0];
  }

  /* What owners() is of, in words. */
  what() {
    const { metric, time, range, from, to } = this.state;
    const [first, last] = range || [from, to];
    const when = metric === "live" ? `at ${axis.text(time)}` : first === 0 && last === this.run.duration
      ? "in the whole run" : `from ${axis.text(first)} to ${axis.text(last)}`;
    return `${this.state.group}, ${metric}, ${when}`;
  }

  markAt(time, near) {
    const mark = this.run.names.marks.find(([at]) => Math.abs(at - time) < near);
    return mark ? `; mark ${mark[1]}` : "";
  }

  /* Time of the step before or after the cursor. */
  neighbour(direction) {
    const at = this.selection.until(this.state.time) - 1 + direction;
    return this.selection.time[Math.min(Math.max(at, 0), this.selection.count - 1)] || 0;
  }

  seriesPaint(series) {
    return this.stacked.names.length > 1 ? series : 0;
  }

  /* The maps have the colours of the curve, if it has several. */
  paintOf(place) {
    return this.stacked.names.length > 1 ? this.stacked.series[place] : numberOf(this.run.places[place].text);
  }

  /* ---- changes ---- */

  set(change) {
    const before = { ...this.state };
    Object.assign(this.state, change);
    const changed = (...names) => names.some((name) => before[name] !== this.state[name]);
    if (changed("group", "filter", "stack")) this.reselect();
    for (const app of apps) if (app === this || app.base() === this) app.schedule();
  }

  /* By a factor around a time; 0: all of the run. */
  zoom(factor, around) {
    const { from, to } = this.state, { duration } = this.run;
    if (factor === 0) {
      this.set({ from: 0, to: duration });
      return;
    }
    const span = Math.min(Math.max((to - from) * factor, axis.least), duration);
    const start = Math.min(Math.max(around - ((around - from) / (to - from)) * span, 0), duration - span);
    this.set({ from: start, to: start + span });
  }

  pan(share) {
    const { from, to } = this.state;
    const start = Math.min(Math.max(from + share * (to - from), 0), this.run.duration - (to - from));
    this.set({ from: start, to: start + to - from });
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.refresh();
    });
  }

  reselect() {
    let filter = null;
    try {
      filter = expression(this.state.filter);
      this.filterInput.setCustomValidity("");
    } catch (error) {
      this.filterInput.setCustomValidity(error.message);
      return;
    }
    this.selection = this.run.select(this.state.group, filter);
    this.stacked = new Stacked(this.selection, this.state.stack);
  }

  refresh(keepsAddress) {
    const begun = performance.now();
    styles.clear();
    this.showControls();
    this.curve.draw();
    const view = this.views[this.state.tab] ||= new TABS[this.state.tab](this);
    if (this.panel.firstChild !== view.element) this.panel.replaceChildren(view.element);
    const inputs = view.inputs ? view.inputs() : this.inputs();
    if (!view.drawn || view.drawn.some((value, i) => value !== inputs[i])) view.draw();
    view.drawn = inputs;
    if (!keepsAddress) this.writeAddress();
    performance.measure("gpumem-redraw", { start: begun });
  }

  /* ---- controls ---- */

  build(element) {
    const select = (name, text, choices) => {
      const control = make("select", { name }, ...Object.entries(choices).map(([value, shown]) => make("option", { value }, shown)));
      control.onchange = () => this.set({ [name]: control.value });
      return make("label", {}, `${text} `, control);
    };
    this.curve = new Curve(this);
    this.filterInput = make("input", { type: "search", name: "filter", placeholder: "regular expression", spellcheck: false });
    this.filterInput.oninput = () => this.set({ filter: this.filterInput.value });
    this.tabs = make("div", { class: "bar", role: "tablist" }, ...Object.keys(TABS).map((tab) => {
      const button = make("button", { type: "button", role: "tab", "data-tab": tab }, TAB_NAMES[tab]);
      button.onclick = () => this.set({ tab });
      return button;
    }));
    this.panel = make("div", { role: "tabpanel" });
    this.bar = make("div", { class: "bar" },
      select("group", "Memory of", Object.fromEntries(this.run.groups.map((group) => [group, group]))),
      select("stack", "stacked by", STACKS), select("metric", "bytes", METRICS),
      this.axisControl(), make("label", {}, "only ", this.filterInput), this.compare = make("span"),
      make("button", { type: "button", onclick: () => this.zoom(0) }, "Whole run"),
      make("button", { type: "button", onclick: toggleTheme }, "Dark or light"),
      make("button", { type: "button", onclick: showHelp }, "Keys"));
    this.element = element;
    element.replaceChildren(this.bar, this.curve.element, this.tabs, this.panel);
  }

  /* The page is made anew on another axis. */
  axisControl() {
    const control = make("select", { name: "axis" }, ...Object.keys(AXES).map((name) => make("option", { value: name }, name)));
    control.value = Object.keys(AXES).find((name) => AXES[name] === axis);
    control.onchange = () => {
      location.hash = new URLSearchParams({ axis: control.value });
      location.reload();
    };
    return make("label", {}, "by ", control);
  }

  /* Once all runs of the page are there. */
  offerBases() {
    const others = Object.fromEntries(apps.filter((app) => app !== this).map((app) => [app.number, app.title()]));
    const control = make("select", { name: "base" }, make("option", { value: "" }, "nothing"),
      ...Object.entries(others).map(([value, shown]) => make("option", { value }, shown)));
    control.onchange = () => this.set({ base: control.value });
    this.compare.replaceChildren(make("label", {}, "compared with ", control));
    const wanted = readHash(this.number).get("base") ?? this.element.closest("article").dataset.base;
    if (wanted in others) this.state.base = wanted;
    this.schedule();
  }

  title() {
    const { rank, pid } = this.run.names;
    return rank < 0 ? `process ${pid}, number ${this.number + 1}` : `rank ${rank}`;
  }

  showControls() {
    for (const control of this.bar.querySelectorAll("select:not([name=axis]), input"))
      if (document.activeElement !== control || control.tagName === "SELECT") control.value = this.state[control.name];
    for (const button of this.tabs.children) button.setAttribute("aria-selected", String(button.dataset.tab === this.state.tab));
  }

  /* ---- the address ---- */

  readAddress() {
    const values = readHash(this.number), { state, run } = this;
    const number = (name, least, most) => {
      const value = Number(values.get(name));
      return values.has(name) && Number.isFinite(value) ? Math.min(Math.max(value, least), most) : null;
    };
    const one = (name, choices) => choices.includes(values.get(name)) ? values.get(name) : state[name];
    Object.assign(state, { group: one("group", run.groups), stack: one("stack", Object.keys(STACKS)),
      metric: one("metric", Object.keys(METRICS)), tab: one("tab", Object.keys(TABS)), filter: values.get("filter") || "" });
    state.time = number("time", 0, run.duration) ?? state.time;
    state.from = number("from", 0, run.duration) ?? state.from;
    state.to = number("to", 0, run.duration) ?? state.to;
    if (state.to <= state.from) Object.assign(state, { from: 0, to: run.duration });
    const first = number("first", 0, run.duration), last = number("last", 0, run.duration);
    state.range = first !== null && last !== null && last >= first ? [first, last] : null;
    state.frame = Math.floor(number("frame", WHOLE, run.frames.length - 1) ?? WHOLE);
    this.filterInput.value = state.filter;
    this.reselect();
  }

  writeAddress() {
    const { group, stack, metric, tab, filter, time, from, to, range, frame, base } = this.state;
    const values = { group, stack, metric, tab, time: Math.round(time) };
    if (filter) values.filter = filter;
    if (from !== 0 || to !== this.run.duration) Object.assign(values, { from: Math.round(from), to: Math.round(to) });
    if (range) Object.assign(values, { first: Math.round(range[0]), last: Math.round(range[1]) });
    if (frame !== WHOLE) values.frame = frame;
    if (base) values.base = base;
    writeHash(this.number, values);
  }
}

/* ---- the page -------------------------------------------------------------------------------- */

/* The parts of the fragment: those of run n have names that end with n, but for the first run. */
function readHash(number) {
  const suffix = number ? `.${number}` : "";
  const found = new Map();
  for (const [name, value] of new URLSearchParams(location.hash.slice(1)))
    if (name.endsWith(suffix) && (suffix || !name.includes("."))) found.set(name.slice(0, name.length - suffix.length), value);
  return found;
}

function writeHash(number, values) {
  const suffix = number ? `.${number}` : "";
  const all = addressNow();
  for (const name of [...all.keys()])
    if (name !== "theme" && name !== "axis" && name.endsWith(suffix) && (suffix || !name.includes("."))) all.delete(name);
  for (const [name, value] of Object.entries(values)) all.set(name + suffix, value);
  setAddress(all);
}

/* Browsers take an address some hundred times in half a minute, then refuse: while one zooms, it waits. */
const ADDRESS_PAUSE = 300; // ms
let wanted = null, written = -Infinity;

const addressNow = () => wanted || new URLSearchParams(location.hash.slice(1));

function setAddress(all) {
  const waits = wanted !== null, rest = written + ADDRESS_PAUSE - performance.now();
  wanted = all;
  document.documentElement.dataset.address = "waits";
  if (rest <= 0) writeAddress();
  else if (!waits) setTimeout(writeAddress, rest);
}

function writeAddress() {
  if (wanted) history.replaceState(null, "", `#${wanted}`);
  wanted = null;
  written = performance.now();
  document.documentElement.dataset.address = "written";
}

const apps = [];

function setTheme(theme) {
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
}

function toggleTheme() {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  setTheme(isDark ? "light" : "dark");
  const all = addressNow();
  all.set("theme", document.documentElement.dataset.theme);
  setAddress(all);
  apps.forEach((app) => app.schedule());
}

const KEYS = [["1 to 5", "owners, flame graph, functions, address map, block map"], ["/", "filter"], ["?", "this help"],
  ["m", "next metric: live, peak, leaked, allocated, temporary"], ["g", "next group of memory"],
  ["arrows", "move the cursor, with Shift twenty pixels; in the flame graph from frame to frame"], [", .", "the event before, after"],
  ["+ - 0", "zoom in, out, whole run"], ["Page Up, Page Down", "half a view back, on"], ["p", "to the peak of what is shown"],
  ["[ ]", "range from, to the cursor; Escape ends it"], ["Enter, Escape, x", "in the flame graph: open a frame, back, its callers"]];

let help = null;

function showHelp() {
  if (!help) {
    help = make("dialog", {}, make("h2", {}, "Keys"), make("table", {}, ...KEYS.map(([key, text]) =>
      make("tr", {}, make("td", {}, make("kbd", {}, key)), make("td", {}, text)))),
    make("p", {}, "The mouse: click sets the cursor, drag a range, the wheel zooms, a double click shows the whole run."),
    make("form", { method: "dialog" }, make("button", {}, "Close")));
    document.body.append(help);
  }
  help.showModal();
}

function next(choices, now) {
  return choices[(choices.indexOf(now) + 1) % choices.length];
}

/* Keys that work wherever the focus is, but in a field: for the run that has it, else the first. */
document.addEventListener("keydown", (event) => {
  const app = apps.find((one) => one.element.contains(document.activeElement)) || apps[0];
  if (!app || event.ctrlKey || event.metaKey || event.altKey || (help && help.open)) return;
  if (document.activeElement.matches("input, select")) {
    if (event.key === "Escape") document.activeElement.blur();
    return;
  }
  const tab = Object.keys(TABS)[Number(event.key) - 1];
  if (tab && event.key !== "0") app.set({ tab });
  else if (event.key === "/") app.filterInput.focus();
  else if (event.key === "?") showHelp();
  else if (event.key === "m") app.set({ metric: next(Object.keys(METRICS), app.state.metric) });
  else if (event.key === "g") app.set({ group: next(app.run.groups, app.state.group) });
  else return;
  event.preventDefault();
});

async function start() {
  setTheme(readHash(0).get("theme"));
  const articles = [...document.querySelectorAll("article.run")].filter((article) => article.querySelector("script.names"));
  const names = articles.map((article) => JSON.parse(article.querySelector("script.names").textContent));
  axis = AXES[readHash(0).get("axis")] ?? (names.every((one) => one.simulated) ? AXES.calls : AXES.time);
  for (const [number, article] of articles.entries()) {
    const events = article.querySelector("script.events");
    const run = new Run(names[number], await unpack(events));
    events.remove();
    apps.push(new App(run, article.querySelector(".explorer"), apps.length));
  }
  if (apps.length > 1) {
    apps.forEach((app) => app.offerBases());
    apps[0].element.closest("article").before(new Ranks().element);
  }
  performance.measure("gpumem-load", { start: 0 });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apps.forEach((app) => app.schedule()));
  document.documentElement.dataset.ready = "";
}

start();
