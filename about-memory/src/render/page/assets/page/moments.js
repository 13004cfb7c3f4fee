// Moments and recordings over time: the graph, what can be chosen on it, and what it was made of.
"use strict";

const SERIES = ["resident", "heap-allocated", "explicit", "heap-unclassified"];
/** The most moments of which the trees are read for the areas of the graph. */
const MOST_AREAS = 40;

/** The moments of the program that is chosen; of files, all. */
function momentsOfOne() {
  const { source } = present();
  return data.moments.filter(moment => moment.source === source);
}

async function prepareTime() {
  const moments = momentsOfOne();
  const times = timesOf(moments);
  const areas = moments.length > 1 && moments.length <= MOST_AREAS ? await areasOfMoments(moments, times) : [];
  const data = {
    name: "Memory from moment to moment; the table below has the numbers", times,
    series: SERIES.map(name => ({ name, amounts: moments.map(({ figures }) => figures?.[name] ?? null) })),
    areas, timeText: time => (times[0] > 1e6 ? fineTimeText(time, times[times.length - 1] - times[0]) : `moment ${time + 1}`), perSecond: times[0] > 1e6 ? 1000 : 1,
    amountText: amount => formatAmount(amount, Unit.bytes, bytesOf() === "bytes" ? "bytes" : "kib"),
    choices: moments.map(moment => ({
      name: `Moment ${nameOf(moment)}`, isChosen: moment === present(), choose: () => choose({ moment: String(moment.id) }),
    })),
  };
  return { elements: [graph.host, figuresTable(moments)], after: () => graph.show(data) };
}

/** A local time; with tenths or thousandths of a second where the moments lie close together. */
function fineTimeText(/** @type {number} */ time, /** @type {number} */ span) {
  const digits = span >= 10_000 ? 0 : span >= 2_000 ? 1 : 3;
  return timeText(time) + (digits === 0 ? "" : (Math.floor(time % 1000) / 1000).toFixed(3).slice(1, 2 + digits));
}

/** When moments were taken; of those that do not say so, or at one time, the numbers. */
function timesOf(moments) {
  const isInTime = moments.every(({ taken }, index) => taken && (index === 0 || taken > moments[index - 1].taken));
  return moments.map(({ taken }, index) => (isInTime ? taken : index));
}

/** The biggest parts of `explicit` at each moment. */
async function areasOfMoments(moments, times) {
  const parts = await Promise.all(moments.map(async ({ id }) => {
    const [process] = growForest(await data.get(`moments/${id}/reports`), () => true);
    const kids = process?.trees.explicit?.kids.values() ?? [];
    return new Map([...kids].map(kid => [kid.shown.split("/")[0], Math.max(0, kid.amount ?? 0)]));
  }));
  const greatest = new Map();
  for (const part of parts) {
    for (const [name, amount] of part) {
      greatest.set(name, Math.max(amount, greatest.get(name) ?? 0));
    }
  }
  const names = [...greatest].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([name]) => name);
  return names.map(name => ({ name, times, amounts: parts.map(part => part.get(name) ?? 0) }));
}

function figuresTable(moments) {
  const cell = (amount, before) => element("td", {}, amount === null || amount === undefined ? "–" : formatAmount(amount, Unit.bytes, bytesOf()),
    ...(before !== null && before !== undefined && amount !== null && amount !== undefined && amount !== before
      ? [" ", element("span", { className: amount > before ? "grown" : "shrunk" }, changeText(amount - before, Unit.bytes))] : []));
  return wide("Sums of each moment", element("table", {},
    element("thead", {}, element("tr", {}, ...["Moment", "Time", ...SERIES].map(name => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...moments.map((moment, index) => element("tr", { className: moment === present() ? "chosen" : "" },
      element("th", { scope: "row" }, button(nameOf(moment), () => choose({ view: "trees", moment: String(moment.id) }), { className: "link" })),
      element("td", {}, timeText(moment.taken)),
      ...SERIES.map(name => cell(moment.figures?.[name], moments[index - 1]?.figures?.[name])))))));
}

const seconds = time => `${Number((time / 1e6).toFixed(time < 1e7 ? 3 : 1))} s`;

/** The range that is chosen, in numbers of intervals. */
function rangeOf(recording) {
  const last = recording.ends.length - 1;
  const to = chosen.to === "" ? last : intervalAt(recording, Number(chosen.to));
  const from = chosen.from === "" ? -1 : intervalAt(recording, Number(chosen.from));
  return { from: Math.min(from, to), to };
}

async function prepareRecording() {
  if (service.recordings.length === 0) {
    return { elements: [hint("There is no recording here: make one by `about-memory record`, and name it when the page is built or served.")] };
  }
  const recording = await data.get(`recordings/${chosen.rec || 0}`);
  const { from, to } = rangeOf(recording);
  const { summary, points, ends } = recording;
  const what = chosen.what;
  const heap = heapOfRange(recording, { from, to, what });
  const by = (chosen.by || Object.keys(ORDERS)[0]).split(",").filter(axis => !["state", "reporter"].includes(axis));
  const root = breakDown(heap, { by, cut: cutOf(), within: chosen.within, isInverted: chosen.invert === "1" });
  const isDiff = what === "growth";
  const edge = time => (time < 0 ? 0 : ends[time]);
  const say = what === "peak" ? `at the peak, ${summary.peak ? seconds(summary.peak.time) : "which is not known"}`
    : what === "" ? `at ${seconds(edge(to))}` : `from ${seconds(edge(from))} to ${seconds(edge(to))}`;
  const areas = areasOf(recording, 6, row => areaNameOf(recording, row)).map(area => ({ ...area, times: ends }));
  const marks = [...recording.marks, ...(summary.peak ? [{ time: summary.peak.time, text: "peak" }] : [])].sort((a, b) => a.time - b.time);
  const shown = {
    name: "Memory over the time of the recording", times: ends,
    series: [{ name: "live", amounts: liveOf(areas, recording) }, { name: "resident", amounts: atEnds(recording, points.resident) }], areas,
    marks, range: /** @type {[number, number]} */ ([edge(from), edge(to)]), timeText: seconds, perSecond: 1e6, amountText: amount => sizeText(amount),
    onRange: (start, end) => choose({ from: start <= ends[0] ? "" : String(Math.round(start)), to: String(Math.round(end)) }),
  };
  const sum = isDiff ? changeText(root.bytes - root.before, Unit.bytes) : formatAmount(root.bytes, Unit.bytes, bytesOf());
  return {
    above: [graph.host, sliders(recording, from, to), element("p", { className: "verdict" },
      `${sum} ${RANGES[what]}, ${say}${heap.isEstimate ? ", estimated from a sample" : ""}.`),
      ...(summary.incomplete ? [element("p", { className: "warning" }, summary.incomplete)] : [])],
    items: itemsOfHeap(root, isDiff), name: "Recorded blocks", colours: isDiff ? ["change", "crate"] : ["crate"],
    columns: columnsOf(["name", "size", "share", ...(isDiff ? ["change"] : []), "blocks"]), after: () => graph.show(shown),
  };
}

/** What is live at the end of each interval: of a sample the exact sums, which are measured now and then. */
function liveOf(areas, recording) {
  return recording.summary.sampleBytes === null
    ? recording.ends.map((_, at) => areas.reduce((sum, { amounts }) => sum + amounts[at], 0)) : atEnds(recording, recording.points.live);
}

/** The last amount that was measured before the end of each interval. */
function atEnds({ ends, points: { time } }, amounts) {
  let at = 0;
  return ends.map(end => {
    while (at + 1 < time.length && time[at + 1] <= end) {
      at += 1;
    }
    return amounts[at] ?? null;
  });
}

/** The innermost function of a stack that has a crate of its own. */
function areaNameOf(recording, row) {
  const frames = framesOf(recording, recording.rows.stack[row]);
  const name = recording.calls.functions[frames[0]] ?? "";
  return shorterNames(name)[1] ?? shorterNames(name)[0] ?? name;
}

/** Two sliders for the range, for those who do not draw it. */
function sliders(recording, from, to) {
  const last = recording.ends.length - 1;
  const slider = (label, value, least, choice) => {
    const made = element("input", { type: "range", min: String(least), max: String(last), value: String(value) });
    const time = number => (number < 0 ? 0 : recording.ends[number]);
    made.setAttribute("aria-valuetext", seconds(time(value)));
    made.addEventListener("change", () => choose(choice(Number(made.value), time(Number(made.value)))));
    return element("label", { className: "slider" }, `${label} `, made, ` ${seconds(time(value))}`);
  };
  const whole = button("Whole recording", () => choose({ from: "", to: "" }), { disabled: from < 0 && to === last });
  return element("div", { className: "sliders" },
    slider("From", from, -1, (number, time) => ({ from: number < 0 ? "" : String(time) })),
    slider("to", to, 0, (number, time) => ({ to: number === last ? "" : String(time) })), whole);
}
