// Memory over time: lines, stacked areas, marks, and points that can be chosen.
"use strict";

const MARGIN = { left: 78, right: 14, top: 22, bottom: 26 };

/**
 * @typedef {object} GraphData
 * @property {string} name
 * @property {number[]} times of the points
 * @property {{ name: string, amounts: (number | null)[] }[]} series
 * @property {{ name: string, times: number[], amounts: number[] }[]} [areas] one upon the other
 * @property {{ time: number, text: string }[]} [marks]
 * @property {[number, number]} [range] the chosen range
 * @property {(time: number) => string} timeText
 * @property {number} perSecond the units of time in a second
 * @property {(amount: number) => string} amountText
 * @property {(from: number, to: number) => void} [onRange]
 * @property {{ name: string, isChosen: boolean, choose: () => void }[]} [choices] one for each point
 */

class Graph {
  constructor() {
    this.host = element("div", { className: "graph" });
    this.tip = element("div", { className: "tip", hidden: true });
    this.width = this.height = this.first = this.last = 0;
    this.x = this.y = (/** @type {number} */ amount) => amount;
    /** The names of lines that are not shown. */
    this.hidden = new Set();
  }

  toggle(name) {
    if (!this.hidden.delete(name)) {
      this.hidden.add(name);
    }
    this.draw();
    [...this.host.querySelectorAll(".toggle")].find(toggle => toggle.textContent === name)?.focus();
  }

  /** @param {GraphData} data */
  show(data) {
    if (this.data?.name !== data.name) {
      this.hidden = dwarfing(data.series);
    }
    this.data = data;
    this.draw();
  }

  draw() {
    const { data } = this;
    const width = Math.max(300, this.host.clientWidth || 300);
    const height = Math.max(170, Math.min(260, Math.round(width / 4)));
    const [first, last] = [data.times[0] ?? 0, data.times[data.times.length - 1] ?? 1];
    const areas = data.areas ?? [];
    const stacked = stack(areas);
    const isShown = ({ name }) => !this.hidden.has(name);
    const greatest = greatestOf([...data.series.filter(isShown).map(({ amounts }) => amounts), ...stacked.map(({ tops }) => tops)]);
    const steps = ticks(greatest, 4, true);
    const most = steps[steps.length - 1];
    const x = time => MARGIN.left + (last === first ? 0.5 : (time - first) / (last - first)) * (width - MARGIN.left - MARGIN.right);
    const y = amount => height - MARGIN.bottom - (Math.max(0, amount) / most) * (height - MARGIN.top - MARGIN.bottom);
    Object.assign(this, { width, height, first, last, x, y });
    const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": data.name });
    for (const amount of steps) {
      drawing.append(
        svg("line", { class: "rule", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(amount), y2: y(amount) }),
        svg("text", { class: "axis", x: MARGIN.left - 6, y: y(amount) + 4, "text-anchor": "end" }, data.amountText(amount).replace(".00 ", " ")));
    }
    stacked.forEach(({ times, bottoms, tops }, number) => {
      const upper = times.map((time, index) => `${x(time)},${y(tops[index])}`);
      const lower = times.map((time, index) => `${x(time)},${y(bottoms[index])}`).reverse();
      drawing.append(svg("polygon", { class: `area area${number % 10}`, points: [...upper, ...lower].join(" ") }));
    });
    if (data.range) {
      const [from, to] = data.range.map(x);
      drawing.append(svg("rect", { class: "range", x: from, width: Math.max(1, to - from), y: MARGIN.top, height: height - MARGIN.top - MARGIN.bottom }));
    }
    data.series.forEach(({ name, amounts }, number) => {
      if (this.hidden.has(name)) {
        return;
      }
      const known = amounts.flatMap((amount, index) => (amount === null || amount === undefined ? [] : [`${x(data.times[index])},${y(amount)}`]));
      drawing.append(svg("polyline", { class: `line series${number}`, points: known.join(" ") }));
    });
    this.drawMarks(drawing);
    this.drawTimes(drawing);
    this.cursor = svg("line", { class: "cursor", y1: MARGIN.top, y2: height - MARGIN.bottom, visibility: "hidden" });
    drawing.append(this.cursor);
    this.drawChoices(drawing);
    this.listen(drawing);
    const toggles = data.series.map(({ name }, number) => {
      const made = button("", () => this.toggle(name), { className: "toggle", "aria-pressed": !this.hidden.has(name) });
      made.append(swatch(`series${number}`), name);
      return element("li", {}, made);
    });
    const legend = element("ul", { className: "legend" }, ...toggles,
      ...areas.map(({ name }, number) => element("li", {}, swatch(`area${number % 10}`), name)));
    this.host.replaceChildren(drawing, legend, this.tip);
  }

  drawMarks(drawing) {
    let free = -Infinity;
    for (const { time, text } of this.data.marks ?? []) {
      const at = this.x(time);
      drawing.append(svg("line", { class: "mark", x1: at, x2: at, y1: MARGIN.top - 4, y2: this.height - MARGIN.bottom },
        svg("title", {}, `${this.data.timeText(time)}: ${text}`)));
      // Marks that lie close together have one text; the others are read by pointing at them.
      const label = text.length > 24 ? `${text.slice(0, 23)}…` : text;
      const long = label.length * 6.4;
      const isLeft = at + long > this.width;
      if ((isLeft ? at - long : at) > free) {
        drawing.append(svg("text", { class: "axis", x: at, y: 12, "text-anchor": isLeft ? "end" : "start" }, label));
        free = (isLeft ? at : at + long) + 8;
      }
    }
  }

  drawTimes(drawing) {
    const { first, last, width, height } = this;
    const steps = timeTicks(first, last, Math.max(4, Math.floor((width - MARGIN.left) / 110)), this.data.perSecond);
    for (const time of steps) {
      const at = this.x(time);
      const anchor = at < MARGIN.left + 30 ? "start" : at > width - 40 ? "end" : "middle";
      drawing.append(svg("text", { class: "axis", x: at, y: height - 8, "text-anchor": anchor }, this.data.timeText(time)));
    }
  }

  drawChoices(drawing) {
    this.data.choices?.forEach(({ name, isChosen, choose }, index) => {
      const amount = this.data.series.filter(({ name }) => !this.hidden.has(name)).map(({ amounts }) => amounts[index]).find(amount => amount !== null && amount !== undefined) ?? 0;
      const point = svg("circle", { class: `dot${isChosen ? " chosen" : ""}`, cx: this.x(this.data.times[index]), cy: this.y(amount),
        r: isChosen ? 7 : 5, tabindex: 0, role: "button", "aria-label": name, "aria-pressed": isChosen }, svg("title", {}, name));
      point.addEventListener("click", choose);
      point.addEventListener("keydown", event => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          choose();
        }
      });
      drawing.append(point);
    });
  }

  listen(drawing) {
    const { data } = this;
    const timeAt = event => {
      const { left, width } = drawing.getBoundingClientRect();
      const at = ((event.clientX - left) / width) * this.width;
      const share = (at - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right);
      return this.first + Math.max(0, Math.min(1, share)) * (this.last - this.first);
    };
    let start = null;
    drawing.addEventListener("pointermove", event => {
      this.point(timeAt(event), event);
    });
    drawing.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      this.cursor.setAttribute("visibility", "hidden");
    });
    if (data.onRange) {
      drawing.classList.add("ranged");
      drawing.addEventListener("pointerdown", event => {
        start = timeAt(event);
        drawing.setPointerCapture(event.pointerId);
      });
      drawing.addEventListener("pointerup", event => {
        if (start !== null) {
          const [from, to] = [Math.min(start, timeAt(event)), Math.max(start, timeAt(event))];
          start = null;
          // A click without a way chooses one moment.
          const isClick = (to - from) * (this.width / Math.max(1, this.last - this.first)) < 4;
          data.onRange?.(isClick ? this.first : from, to);
        }
      });
    }
  }

  point(time, event) {
    const { data } = this;
    if (data.times.length === 0) {
      return;
    }
    const index = nearest(data.times, time);
    const at = this.x(data.times[index]);
    this.cursor.setAttribute("x1", String(at));
    this.cursor.setAttribute("x2", String(at));
    this.cursor.setAttribute("visibility", "visible");
    const lines = data.series.filter(({ amounts }) => amounts[index] !== null && amounts[index] !== undefined)
      .map(({ name, amounts }) => element("div", {}, `${name}: ${data.amountText(/** @type {number} */ (amounts[index]))}`));
    this.tip.replaceChildren(element("strong", {}, data.timeText(data.times[index])), ...lines);
    this.tip.hidden = false;
    const room = this.host.getBoundingClientRect();
    this.tip.style.left = `${Math.max(0, Math.min(event.clientX - room.left + 14, room.width - 220))}px`;
    this.tip.style.top = `${event.clientY - room.top + 14}px`;
  }
}

/** The name of the line that is so high that the others would be flat beside it, if there is one. */
function dwarfing(series) {
  const heights = series.map(({ amounts }) => greatestOf([amounts]));
  const highest = heights.indexOf(Math.max(...heights));
  const others = Math.max(...heights.filter((_, index) => index !== highest));
  return new Set(series.length > 1 && heights[highest] > 4 * others ? [series[highest].name] : []);
}

/** The greatest of lists of amounts, and at least 1. */
function greatestOf(lists) {
  let greatest = 1;
  for (const list of lists) {
    for (const amount of list) {
      greatest = Math.max(greatest, amount ?? 0);
    }
  }
  return greatest;
}

/** Round times from `first` to `last`, at most `count` of them. */
function timeTicks(first, last, count, perSecond) {
  if (last <= first) {
    return [first];
  }
  const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  const least = perSecond === 1 ? 1 : 0;
  const step = (steps.find(step => step >= least && (last - first) / (step * perSecond) <= count) ?? (last - first) / perSecond) * perSecond;
  const made = [];
  for (let time = Math.ceil(first / step) * step; time <= last; time += step) {
    made.push(time);
  }
  return made;
}

function swatch(name) {
  return element("span", { className: `swatch ${name}`, "aria-hidden": "true" });
}

/** Areas one upon the other. */
function stack(areas) {
  let below = areas[0]?.amounts.map(() => 0) ?? [];
  return areas.map(({ times, amounts }) => {
    const bottoms = below;
    const tops = amounts.map((amount, index) => bottoms[index] + Math.max(0, amount));
    below = tops;
    return { times, bottoms, tops };
  });
}

/** The place of the value that is nearest, in a list that grows. */
function nearest(values, wanted) {
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low > 0 && wanted - values[low - 1] < values[low] - wanted ? low - 1 : low;
}
