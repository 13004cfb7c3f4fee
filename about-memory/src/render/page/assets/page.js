// The page: what is chosen, what is shown of it, and where the two meet.
"use strict";

const $ = id => document.getElementById(id);

const manifest = JSON.parse($("manifest").textContent);
const origin = manifest.isServed ? new Served() : new Embedded(manifest);
const data = new Data(origin);
const folds = new Folds("about-memory folds");
const panel = $("panel");
const outline = new Outline(element("div", { className: "outline" }), folds, describe);
const heapOutline = new Outline(element("div", { className: "outline" }), folds, describe);
const treemap = new Treemap(element("div", { className: "areas" }), describe);

const VIEWS = { trees: "Trees", treemap: "Treemap", difference: "Difference", time: "Over time" };
const HINT = "Point at a line, or go to it by the arrow keys, to read what it measures.";
const TREEMAP_HINT = "Point at an area to read what it measures; click it, or press Enter on it, to go into it.";
const DEFAULTS = { view: "trees", moment: "", first: "", second: "", filter: "", regex: "", verbose: "", units: "",
  by: "", within: "", cut: "" };

/** What is chosen. It stands in the address, so that it outlives a reload and can be kept as a bookmark. */
let chosen = readAddress();
let findings = {};
let drawing = 0;
/** The timer that waits for the end of typing, and the text that it waits with. */
let typing = null;

function readAddress() {
  return { ...DEFAULTS, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
}

function choose(change) {
  // Whoever types and then clicks means both.
  const typed = typing === null ? {} : { filter: $("filter").value, within: $("within").value };
  clearTimeout(typing);
  typing = null;
  chosen = { ...chosen, ...typed, ...change };
  const different = Object.entries(chosen).filter(([key, value]) => value !== DEFAULTS[key]);
  history.replaceState(null, "", `#${new URLSearchParams(different)}`);
  return draw();
}

const momentOf = id => origin.moments.find(moment => String(moment.id) === id);
const present = () => momentOf(chosen.moment) ?? origin.moments.at(-1);

/** Draws what is chosen; a later choice overtakes an earlier one that is still being fetched. */
async function draw() {
  const number = ++drawing;
  panel.setAttribute("aria-busy", "true");
  try {
    const sheets = present()?.sheets ?? [];
    findings = chosen.view in SHEETS && sheets.length > 0 ? await data.get(`moments/${present().id}/findings`)
      : Object.fromEntries(sheets.map(view => [view, true]));
    const show = await prepare();
    if (number === drawing) {
      drawControls();
      tell("");
      show();
    }
  } catch (fault) {
    if (number === drawing) {
      drawControls();
      panel.replaceChildren();
      tell(fault.message);
    }
  }
  if (number === drawing) {
    panel.removeAttribute("aria-busy");
    document.body.dataset.drawn = number;
  }
}

/** Fetches what the view needs, and answers what puts it on the page. */
async function prepare() {
  if (!present()) {
    return () => panel.replaceChildren(element("p", { className: "hint" },
      origin.sources.length > 0 ? "Nothing has been measured yet: press Measure." : "There is nothing to show."));
  }
  if (chosen.view === "time") {
    const host = element("div", { className: "sheet" });
    return () => {
      panel.replaceChildren(host);
      drawChart(host, momentsOfOne(), bytesOf());
    };
  }
  if (chosen.view === "heap" && findings.heap) {
    const by = (chosen.by || Object.keys(ORDERS)[0]).split(",");
    const blocks = heapBlocks(findings.heap, { by, cut: Number(chosen.cut || 1), within: chosen.within });
    return () => {
      panel.replaceChildren(heapOutline.host);
      heapOutline.show(blocks, bytesOf());
    };
  }
  if (chosen.view in SHEETS) {
    const { draw, missing } = SHEETS[chosen.view];
    const sheet = findings[chosen.view];
    const parts = sheet ? draw(sheet) : [element("p", {}, findings.notes?.join(" ") || missing)];
    return () => panel.replaceChildren(element("div", { className: "sheet" }, ...parts));
  }
  const isDiff = chosen.view === "difference";
  if (isDiff && origin.moments.length < 2) {
    return () => panel.replaceChildren(element("p", { className: "hint" }, "A difference needs two moments."));
  }
  const name = isDiff ? `differences/${pair().map(({ id }) => id).join("/")}` : `moments/${present().id}/reports`;
  const page = buildPage(await data.get(name), { ...settings(), isDiff });
  if (chosen.view === "treemap") {
    return () => {
      panel.replaceChildren(treemap.host);
      treemap.show(page, bytesOf());
    };
  }
  return () => {
    panel.replaceChildren(outline.host);
    outline.host.classList.toggle("difference", isDiff);
    outline.show(blocksOf(page), bytesOf());
  };
}

function settings() {
  return {
    pattern: chosen.filter, isRegex: chosen.regex === "1", isVerbose: chosen.verbose === "1", isDiff: false, bytes: bytesOf(),
  };
}

function bytesOf() {
  return chosen.units || (chosen.verbose === "1" ? "bytes" : "mb");
}

/** The two moments that are compared: those chosen, or else the last two. */
function pair() {
  const last = origin.moments;
  const second = momentOf(chosen.second) ?? last.at(-1);
  const first = momentOf(chosen.first) ?? last[Math.max(0, last.indexOf(second) - 1)];
  return [first, second];
}

/** The moments of the program that is chosen; of files, all. */
function momentsOfOne() {
  const source = present().source;
  return origin.moments.filter(moment => moment.source === source);
}

function drawControls() {
  const ofSheets = Object.keys(SHEETS).filter(key => key in findings || key === chosen.view);
  const views = { ...VIEWS, ...Object.fromEntries(ofSheets.map(key => [key, SHEETS[key].title])) };
  $("views").replaceChildren(...Object.entries(views).map(([view, title]) => viewButton(view, title)));
  panel.setAttribute("aria-labelledby", `view-${chosen.view}`);
  const isTreeLike = ["trees", "treemap", "difference"].includes(chosen.view);
  for (const label of document.querySelectorAll("#settings > label")) {
    const { classList } = label;
    label.hidden = classList.contains("pair") ? chosen.view !== "difference"
      : classList.contains("heap") || chosen.view === "heap" ? !classList.contains("heap") || chosen.view !== "heap"
      : !isTreeLike && !label.contains($("units"));
  }
  document.querySelector(".moment").hidden = ["difference", "time"].includes(chosen.view);
  describe(null);
  $("description").hidden = !isTreeLike && chosen.view !== "heap";
  $("copy").hidden = !["trees", "difference", "heap"].includes(chosen.view);
  $("settings").hidden = !isTreeLike && !["time", "heap"].includes(chosen.view);
  fillSelects();
  for (const id of ["filter", "within"]) {
    if (document.activeElement !== $(id)) {
      $(id).value = chosen[id];
    }
  }
  $("filter").setAttribute("aria-invalid", chosen.regex === "1" && regexOf(chosen.filter) === null);
  $("regex").checked = chosen.regex === "1";
  $("verbose").checked = chosen.verbose === "1";
  for (const id of ["units", "by", "cut"]) {
    $(id).value = chosen[id];
  }
  drawNotes(present()?.notes ?? []);
}

function viewButton(view, title) {
  const isChosen = view === chosen.view;
  const button = element("button", { type: "button", role: "tab", id: `view-${view}`, tabIndex: isChosen ? 0 : -1 }, title);
  button.setAttribute("aria-selected", isChosen);
  button.setAttribute("aria-controls", "panel");
  button.addEventListener("click", () => choose({ view }).then(() => $(`view-${view}`)?.focus()));
  return button;
}

function fillSelects() {
  const option = moment => element("option", { value: String(moment.id) }, nameOf(moment));
  const [first, second] = origin.moments.length > 1 ? pair() : [];
  for (const [id, moment] of [["moment", present()], ["first", first], ["second", second]]) {
    $(id).replaceChildren(...origin.moments.map(option));
    $(id).value = moment ? String(moment.id) : "";
  }
  for (const option of $("second").options) {
    option.disabled = !origin.has(`differences/${first?.id}/${option.value}`);
  }
  const source = $("source").value;
  $("source").replaceChildren(...origin.sources.map(({ id, name }) => element("option", { value: String(id) }, name)));
  $("source").value = origin.sources.some(({ id }) => String(id) === source) ? source : String(origin.sources[0]?.id ?? "");
  $("actions").hidden = origin.sources.length === 0;
  $("source").parentElement.hidden = origin.sources.length < 2;
}

/** A file's name, with its folder where another has the same; a program's, with the time. */
function nameOf(moment) {
  if (moment.source !== undefined && moment.source !== null) {
    return `${moment.name}, ${whenOf(moment)}`;
  }
  const isTaken = origin.moments.some(other => other !== moment && other.name === moment.name);
  return isTaken ? moment.place : moment.name;
}

function drawNotes(notes) {
  $("notes").hidden = notes.length === 0;
  $("notes").querySelector("summary").textContent = `${notes.length} ${notes.length === 1 ? "note" : "notes"} on this collection`;
  $("notes").querySelector("ul").replaceChildren(...notes.map(note => element("li", {}, note)));
}

function describe(line) {
  $("description").textContent = line
    ? [line.id.slice(line.id.indexOf(":") + 1), line.description].filter(Boolean).join(" — ")
    : chosen.view === "treemap" ? TREEMAP_HINT : HINT;
}

function tell(trouble) {
  $("trouble").textContent = trouble;
  $("trouble").hidden = trouble === "";
}

let isActing = false;
let clock;

/** Measures again and again, without the dumps of DMD, which are big; a program that takes long is not asked twice at once. */
function measureEvery(seconds) {
  clearInterval(clock);
  if (seconds > 0) {
    clock = setInterval(() => isActing || act("measure-briefly"), seconds * 1000);
  }
}

/** Asks the server to do something to a program; what comes of it is a new moment. */
async function act(action) {
  isActing = true;
  const buttons = $("actions").querySelectorAll("button");
  buttons.forEach(button => (button.disabled = true));
  try {
    const { moment } = await origin.post(action, $("source").value);
    await origin.update();
    const first = chosen.view === "difference" ? String(present()?.id ?? "") : chosen.first;
    await choose({ moment: "", first: chosen.first && first, second: "" });
    return moment;
  } catch (fault) {
    tell(fault.message);
    return null;
  } finally {
    isActing = false;
    buttons.forEach(button => (button.disabled = false));
  }
}

async function measureAndSave() {
  const moment = await act("measure");
  if (moment !== null) {
    element("a", { href: `/moments/${moment}/file`, download: "" }).click();
  }
}

const shownOutline = () => [outline, heapOutline].find(({ host }) => host.isConnected);

function listen() {
  $("moment").addEventListener("change", event => choose({ moment: event.target.value }));
  $("first").addEventListener("change", event => choose({ first: event.target.value, second: "" }));
  $("second").addEventListener("change", event => choose({ first: String(pair()[0].id), second: event.target.value }));
  $("by").replaceChildren(...Object.entries(ORDERS).map(([by, title], index) => element("option", { value: index ? by : "" }, title)));
  for (const id of ["units", "by", "cut"]) {
    $(id).addEventListener("change", event => choose({ [id]: event.target.value }));
  }
  for (const id of ["regex", "verbose"]) {
    $(id).addEventListener("change", event => choose({ [id]: event.target.checked ? "1" : "" }));
  }
  for (const id of ["filter", "within"]) {
    $(id).addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => choose({}), 150);
    });
  }
  $("settings").addEventListener("submit", event => event.preventDefault());
  $("measure").addEventListener("click", () => act("measure"));
  $("minimize").addEventListener("click", () => act("minimize"));
  $("every").addEventListener("change", event => measureEvery(Number(event.target.value)));
  $("measure-and-save").addEventListener("click", measureAndSave);
  $("copy").addEventListener("click", () => navigator.clipboard.writeText(shownOutline().text()).catch(fault => tell(fault.message)));
  $("views").addEventListener("keydown", event => {
    const buttons = [...$("views").children];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length].click();
    }
  });
  document.addEventListener("copy", event => {
    const text = shownOutline()?.selectedText(getSelection()) ?? null;
    if (text !== null) {
      event.clipboardData.setData("text/plain", text);
      event.preventDefault();
    }
  });
  addEventListener("hashchange", () => {
    chosen = readAddress();
    draw();
  });
  let resizing;
  addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => ["treemap", "time"].includes(chosen.view) && draw(), 150);
  });
}

listen();
origin.update().then(draw, fault => tell(fault.message));
