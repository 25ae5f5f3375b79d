/* All runs of the page side by side, their curves on one scale of bytes and one of time. */
class Ranks {
  constructor() {
    this.list = make("div", { class: "ranks" }, ...apps.map((app) => this.card(app)));
    this.element = make("section", { class: "all" }, make("h2", {}, "Processes on one scale"), this.list,
      table(["process", "memory of", "#peak", "#at the end", "#time"], apps.map(({ run, selection, state, number }) => [
        apps[number].title(), state.group, bytesText(selection.peak.most),
        bytesText(selection.count ? selection.total[selection.count - 1] : 0), timeText(run.names.duration)]),
      (row) => this.go(apps[row])));
    this.selections = apps.map((app) => app.selection); // those that the page began with
    new ResizeObserver(() => this.draw()).observe(this.list);
  }

  card(app) {
    const canvas = make("canvas", { tabindex: 0, role: "img" });
    canvas.onclick = () => this.go(app);
    canvas.onkeydown = (event) => {
      if (event.key === "Enter") this.go(app);
    };
    return make("figure", {}, canvas, make("figcaption", {}, `${app.title()}: ${app.run.names.state}`));
  }

  go(app) {
    app.element.scrollIntoView();
    app.curve.canvas.focus();
  }

  draw() {
    const most = Math.max(...this.selections.map((selection) => selection.peak.most), 1);
    const longest = Math.max(...apps.map((app) => app.run.duration));
    apps.forEach((app, number) => {
      const selection = this.selections[number], canvas = this.list.children[number].firstChild;
      const { context, width, height } = begin(canvas, 90);
      context.fillStyle = fillOf(context, 0);
      let first = 0;
      for (let x = 0; x < width; x++) {
        const last = selection.until(((x + 1) / width) * longest), before = first ? selection.total[first - 1] : 0;
        const bytes = last > first ? Math.max(selection.pyramid.query(first, last).most, before) : before;
        if ((x / width) * longest <= app.run.duration) context.fillRect(x, height - (bytes / most) * (height - 4), 1, (bytes / most) * (height - 4));
        first = last;
      }
      canvas.setAttribute("aria-label", `${app.title()}, ${app.state.group}: at most ${bytesText(selection.peak.most)}. Enter shows it.`);
    });
  }
}
