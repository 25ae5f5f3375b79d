/* The data of a run: columns of events, and what follows from them. Places are named by numbers. */

const CHANGE = 0xfffffffe, LAST_CHANGE = 0xffffffff; // codes of steps
const WHOLE = -1; // instead of a number of a step: none

async function unpack(element) {
  const text = element.textContent;
  let bytes;
  if (Uint8Array.fromBase64) {
    bytes = Uint8Array.fromBase64(text);
  } else {
    const binary = atob(text);
    bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* Numbers of 32 bits, of which all lowest bytes come first. */
function readColumns(bytes) {
  let at = 0;
  return (count) => {
    const column = new Uint32Array(count);
    for (let shift = 0; shift < 32; shift += 8)
      for (let i = 0; i < count; i++) column[i] |= bytes[at++] << shift;
    return column;
  };
}

/* Two columns as one of numbers that are exact below 2^53. */
function join(low, high) {
  const joined = new Float64Array(low.length);
  for (let i = 0; i < low.length; i++) joined[i] = high[i] * 4294967296 + low[i];
  return joined;
}

/* Such numbers with a sign. */
function joinSigned(low, high) {
  const joined = new Float64Array(low.length);
  for (let i = 0; i < low.length; i++) joined[i] = (high[i] | 0) * 4294967296 + low[i];
  return joined;
}

/* One array behind another. */
function append(first, second) {
  const both = new first.constructor(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

/* How many of some sorted values are at most `most`. */
function countUpTo(values, most) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* In a large run some allocations are merged: changes stand in for them, as lives that never end, whose
 * size has a sign and which count for `weight`. Lives below `single` are single allocations. */
class Run {
  constructor(names, bytes) {
    const column = readColumns(bytes);
    this.names = names;
    this.single = names.lives;
    this.size = join(column(names.lives), column(names.lives));
    this.address = join(column(names.lives), column(names.lives));
    this.place = column(names.lives);
    this.readSteps(column);
    this.readChanges(column, names.changes);
    this.readNames();
  }

  readChanges(column, count) {
    const places = column(count), read = () => [joinSigned(column(count), column(count)), Float64Array.from(column(count), (one) => one | 0)];
    const [bytes, counts] = read();
    this.merged = { allocated: read(), temporary: read(), leaked: read() };
    this.size = append(this.size, bytes);
    this.place = append(this.place, places);
    this.weight = append(new Float64Array(this.single).fill(1), counts);
  }

  readSteps(column) {
    const { lives, steps, changes } = this.names;
    const time = join(column(steps), column(steps));
    const codes = column(steps);
    this.life = new Uint32Array(steps);
    this.ends = new Uint8Array(steps);
    this.begin = new Int32Array(lives + changes);
    this.end = new Int32Array(lives + changes).fill(WHOLE);
    this.settled = changes ? new Uint8Array(steps) : null; // totals are exact behind these steps alone
    let begun = 0, change = lives;
    for (let i = 0; i < steps; i++) {
      if (i) time[i] += time[i - 1];
      if (codes[i] === 0) {
        this.life[i] = begun;
        this.begin[begun++] = i;
      } else if (codes[i] >= CHANGE) {
        this.life[i] = change;
        this.begin[change++] = i;
        this.settled[i] = codes[i] === LAST_CHANGE ? 1 : 0;
      } else {
        const life = begun - codes[i];
        this.life[i] = life;
        this.ends[i] = 1;
        this.end[life] = i;
      }
    }
    this.clock = time;
    this.time = time;
    this.duration = Math.max(this.names.duration, steps ? time[steps - 1] : 0, 1);
    if (axis === AXES.calls) this.countCalls();
  }

  /* Puts all that has a time where it stands among the steps. */
  countCalls() {
    const at = (time) => countUpTo(this.clock, time);
    const { marks, refusals } = this.names;
    for (const mark of marks) {
      mark[0] = at(mark[0]);
      if (mark.length > 2) mark[2] = at(mark[2]);
    }
    for (const refusal of refusals) refusal[0] = at(refusal[0]);
    this.time = Float64Array.from(this.clock, (_, step) => step + 1);
    this.duration = this.clock.length + 1;
  }

  readNames() {
    const { frames, stacks, places } = this.names;
    this.frames = frames.map(([name, file, line, framework]) => ({ name, file, line, framework,
      text: file ? `${name} (${file.slice(file.lastIndexOf("/") + 1)}${line ? ":" + line : ""})` : name }));
    this.stacks = stacks;
    this.places = places.map(([stack, telling, api, library, pool, kind, group, device, isBlock, site, operation]) => ({
      stack, api, library, pool, kind, group, device, isBlock, site, operation,
      text: telling < 0 ? api || "(no stack)" : this.frames[telling].text,
      search: [...stacks[stack].map((frame) => `${this.frames[frame].name} ${this.frames[frame].file || ""}`),
        api, library, kind, site, operation].join("\n"),
    }));
    this.groups = [...new Set(this.places.map((place) => place.group))];
  }

  /* Which places the user wants to see: of the group, and matching the expression. */
  select(group, filter) {
    const wanted = new Uint8Array(this.places.length);
    this.places.forEach((place, i) => {
      wanted[i] = place.group === group && (!filter || filter.test(place.search)) ? 1 : 0;
    });
    return new Selection(this, wanted);
  }

  stepTime(step) {
    return step === WHOLE ? this.duration : this.time[step];
  }
}

/* The steps of some places, and the bytes alive after each. */
class Selection {
  constructor(run, wanted) {
    this.run = run;
    this.wanted = wanted;
    const { life, place, ends, size, time, settled } = run;
    let count = 0;
    for (let i = 0; i < life.length; i++) count += wanted[place[life[i]]];
    this.count = count;
    this.steps = new Uint32Array(count);
    this.time = new Float64Array(count);
    this.total = new Float64Array(count);
    this.exact = settled ? new Uint32Array(count + 1) : null; // how many steps lead to an exact total
    let at = 0, total = 0, exact = 0;
    for (let i = 0; i < life.length; i++) {
      if (wanted[place[life[i]]]) {
        total += ends[i] ? -size[life[i]] : size[life[i]];
        this.steps[at] = i;
        this.time[at] = time[i];
        if (settled) this.exact[at + 1] = exact;
        this.total[at++] = settled ? exact && this.total[exact - 1] : total;
      }
      if (settled && settled[i] && at) {
        this.total[at - 1] = total;
        this.exact[at] = exact = at;
      }
    }
    this.pyramid = new Pyramid(this.total);
    this.peak = count ? this.pyramid.query(0, count) : { least: 0, most: 0, at: WHOLE };
  }

  /* How many steps there were until a time, it included. */
  until(time) {
    return countUpTo(this.time, time);
  }

  totalAt(time) {
    const count = this.until(time);
    return count ? this.total[count - 1] : 0;
  }

  /* How many steps there were until the highest total between two times. Several steps may have one
   * time, so a time does not tell. */
  peakSteps(from, to) {
    const first = this.until(from), last = this.until(to);
    if (last <= first) return first;
    const peak = this.pyramid.query(first, last);
    return first && this.total[first - 1] >= peak.most ? first : peak.at + 1;
  }

  /* Its time. */
  peakTime(from, to) {
    const count = this.peakSteps(from, to);
    return count ? Math.max(this.time[count - 1], from) : from;
  }

  /* The last number of steps, of those up to `count`, after which totals are exact. */
  snap(count) {
    return this.exact ? this.exact[count] : count;
  }

  /* Bytes and counts by place: of what lived after so many steps. */
  live(until) {
    const sums = this.sums(), count = this.snap(until);
    const { life, place, ends, size, weight } = this.run;
    for (let i = 0; i < count; i++) {
      const step = this.steps[i], one = life[step], sign = ends[step] ? -1 : 1;
      sums.bytes[place[one]] += sign * size[one];
      sums.counts[place[one]] += sign * weight[one];
    }
    return sums;
  }

  /* Of all that began between two times, if `keep` wants it; of merged ones what they have of it. */
  begun(from, to, metric, keep) {
    const sums = this.sums(), [bytes, counts] = this.run.merged[metric];
    const { life, place, ends, size, single } = this.run;
    for (let i = this.until(from - 1), last = this.until(to); i < last; i++) {
      const step = this.steps[i], one = life[step];
      if (one >= single) {
        sums.bytes[place[one]] += bytes[one - single];
        sums.counts[place[one]] += counts[one - single];
        continue;
      }
      if (ends[step] || !keep(one)) continue;
      sums.bytes[place[one]] += size[one];
      sums.counts[place[one]]++;
    }
    return sums;
  }

  sums() {
    return { bytes: new Float64Array(this.run.places.length), counts: new Float64Array(this.run.places.length) };
  }

  /* Who owns it, in the terms of a metric, at `time` or between two times. */
  owners(metric, time, from, to) {
    const { run } = this;
    switch (metric) {
      case "peak": return this.live(this.peakSteps(from, to));
      case "leaked": return this.begun(from, to, metric, (one) => run.end[one] === WHOLE);
      case "allocated": return this.begun(from, to, metric, () => true);
      case "temporary": {
        const limit = run.names.duration / 100;
        return this.begun(from, to, metric, (one) => run.end[one] !== WHOLE &&
          run.clock[run.end[one]] - run.clock[run.begin[one]] < limit);
      }
      default: return this.live(this.until(time));
    }
  }
}

/* Least and most of any stretch of values: level n has those of 16^n values each. */
class Pyramid {
  constructor(values) {
    this.levels = [{ least: values, most: values, at: null }];
    for (let below = this.levels[0]; below.most.length > 16; below = this.levels[this.levels.length - 1])
      this.levels.push(Pyramid.above(below));
  }

  static above(below) {
    const count = Math.ceil(below.most.length / 16);
    const level = { least: new Float64Array(count), most: new Float64Array(count), at: new Uint32Array(count) };
    for (let i = 0; i < count; i++) {
      let least = Infinity, most = -Infinity, at = 0;
      for (let j = i * 16; j < Math.min(below.most.length, i * 16 + 16); j++) {
        if (below.least[j] < least) least = below.least[j];
        if (below.most[j] > most) {
          most = below.most[j];
          at = below.at ? below.at[j] : j;
        }
      }
      level.least[i] = least;
      level.most[i] = most;
      level.at[i] = at;
    }
    return level;
  }

  /* Of values [from, to): least, most, and the number of the first that has the most. */
  query(from, to) {
    let least = Infinity, most = -Infinity, at = from;
    const take = (level, i) => {
      if (level.least[i] < least) least = level.least[i];
      if (level.most[i] > most || (level.most[i] === most && (level.at ? level.at[i] : i) < at)) {
        most = level.most[i];
        at = level.at ? level.at[i] : i;
      }
    };
    for (let n = 0; from < to; n++) {
      const level = this.levels[n];
      if (n === this.levels.length - 1) {
        while (from < to) take(level, from++);
        break;
      }
      while (from < to && from % 16) take(level, from++);
      while (from < to && to % 16) take(level, --to);
      from /= 16;
      to /= 16;
    }
    return { least, most, at };
  }
}

/* A selection split into a few series by what places have in common. */
const SERIES = 8;
const STRIDE = 32; // steps between two sums that are kept

class Stacked {
  constructor(selection, by) {
    this.selection = selection;
    const { run } = selection;
    const name = { total: () => "all", place: (place) => place.text,
      category: (place) => place.isBlock ? "blocks" : place.kind,
      library: (place) => place.library || "unknown" }[by];
    const held = selection.count ? selection.live(selection.peak.at + 1).bytes : [];
    const sizes = new Map();
    run.places.forEach((place, i) => {
      if (selection.wanted[i]) sizes.set(name(place), (sizes.get(name(place)) || 0) + held[i]);
    });
    const ranked = [...sizes].sort((a, b) => b[1] - a[1]).map(([key]) => key);
    this.nameOf = name;
    this.ranked = new Map(ranked.map((key, i) => [key, Math.min(i, SERIES - 1)]));
    this.names = ranked.length > SERIES ? [...ranked.slice(0, SERIES - 1), `${ranked.length - SERIES + 1} others`] : ranked;
    this.series = new Uint8Array(run.places.length);
    run.places.forEach((place, i) => {
      if (selection.wanted[i]) this.series[i] = this.seriesOf(place);
    });
    this.keepSums();
  }

  /* Which series a place belongs to, that may be another run's. */
  seriesOf(place) {
    return this.ranked.get(this.nameOf(place)) ?? SERIES - 1;
  }

  keepSums() {
    const { selection, names } = this;
    const width = names.length;
    this.kept = new Float64Array((Math.floor(selection.count / STRIDE) + 1) * width);
    if (width < 2) return;
    const now = new Float64Array(width);
    for (let i = 0; i < selection.count; i++) {
      if (i % STRIDE === 0) this.kept.set(now, (i / STRIDE) * width);
      this.apply(now, i);
    }
    if (selection.count % STRIDE === 0) this.kept.set(now, (selection.count / STRIDE) * width);
  }

  apply(sums, i) {
    const { run, steps } = this.selection;
    const step = steps[i], one = run.life[step];
    sums[this.series[run.place[one]]] += run.ends[step] ? -run.size[one] : run.size[one];
  }

  /* Bytes of each series after so many steps. */
  at(until) {
    const width = this.names.length, count = this.selection.snap(until);
    if (width < 2) return [count ? this.selection.total[count - 1] : 0];
    const row = Math.floor(count / STRIDE);
    const sums = this.kept.slice(row * width, row * width + width);
    for (let i = row * STRIDE; i < count; i++) this.apply(sums, i);
    return sums;
  }
}
