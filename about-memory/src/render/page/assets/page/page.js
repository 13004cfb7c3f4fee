// The page: what is chosen, what is shown of it, and where the two meet.
"use strict";

/** @returns {any} an element of the page, which is there */
const $ = id => document.getElementById(id);

const manifest = JSON.parse($("manifest").textContent);
/** @type {any} */
const service = manifest.isServed ? new Served() : new Embedded(manifest);
const data = new Data(service);
const folds = new Folds("about-memory folds");
const panel = $("panel");
const outline = new Outline(element("div", { className: "outline" }), folds, describeLine);
const treemap = new Treemap(element("div", { className: "areas" }), describeLine);
const table = new Table({ folds, describe, choose });
const flame = new Flame({ describe, choose });
const graph = new Graph();
const header = new Header(choose);

let chosen = readAddress();
/** The findings of the moment that is shown: null if it has none, undefined while they are being read. */
let findings;
let drawing = 0;
/** What the colours of a graph can stand for in the view that is shown. */
let palette = ["crate"];
/** The timer that waits for the end of typing. */
let typing = null;
/** The blocks of the text of the view that is shown. */
let textBlocks = null;

function choose(change) {
  // Whoever types and then clicks means both.
  const typed = typing === null ? {} : Object.fromEntries(TYPED.map(id => [id, $(id).value]));
  clearTimeout(typing);
  typing = null;
  chosen = changed({ ...chosen, ...typed }, change);
  history.replaceState(null, "", addressOf(chosen));
  return draw();
}

const momentOf = id => data.moments.find(moment => String(moment.id) === id);
const present = () => momentOf(chosen.moment) ?? data.moments.at(-1);

/** Draws what is chosen; a later choice overtakes an earlier one that is still being fetched. */
async function draw() {
  const number = ++drawing;
  panel.setAttribute("aria-busy", "true");
  document.body.dataset.view = chosen.view;
  const slow = setTimeout(() => {
    if (number === drawing) {
      // The tab that was chosen is marked before its data are here.
      drawControls();
      panel.replaceChildren(hint("Reading…"));
    }
  }, 400);
  try {
    const needs = chosen.view in SHEETS || PIECES.includes(chosen.view);
    const reading = readFindings(number);
    findings = needs ? await reading : settledFindings();
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
  clearTimeout(slow);
  if (number === drawing) {
    await drawHeader();
    // The head may take more room now than when the table was laid out.
    if (table.grid.isConnected) {
      table.fit();
      table.draw(false);
    }
    $("detail").hidden = panel.querySelector(".grid, .flames, .outline, .areas") === null;
    panel.removeAttribute("aria-busy");
    document.body.dataset.drawn = String(number);
    performance.mark("drawn");
  }
}

/** Names what is shown: two moments, a recording, or a moment. */
async function drawHeader() {
  if (chosen.view === "recording" && service.recordings.length > 0) {
    const recording = await data.get(`recordings/${chosen.rec || 0}`).catch(() => null);
    return recording ? header.showRecording(recording.summary, service.recordings[Number(chosen.rec)]?.name) : undefined;
  }
  const isDiff = chosen.view === "difference" && data.moments.length > 1;
  const [before, after] = isDiff ? pair() : [momentOf(chosen.base) ?? null, present()];
  header.show(after, after === present() ? findings : settled.get(after?.id) ?? null, bytesOf(), before);
}

const settled = new Map();
const settledFindings = () => (present()?.sheets.length > 0 ? settled.get(present().id) : null);

/** Reads the findings of the moment; the head of the page shows them when they are there. */
async function readFindings(number) {
  const moment = present();
  if (!moment || moment.sheets.length === 0) {
    return null;
  }
  if (!settled.has(moment.id)) {
    const found = await data.get(`moments/${moment.id}/findings`);
    settled.set(moment.id, found);
    if (number === drawing && findings === undefined) {
      findings = found;
      drawHeader();
      drawControls();
    }
  }
  return settled.get(moment.id);
}

/** Fetches what the view needs, and answers what puts it on the page. */
async function prepare() {
  if (!present() && chosen.view !== "recording") {
    const words = service.sources.length > 0 ? "Nothing has been measured yet: press Measure." : "There is nothing to show: open a memory report.";
    return () => panel.replaceChildren(hint(words));
  }
  if (chosen.view in SHEETS) {
    const sheet = findings?.[chosen.view];
    const parts = sheet ? SHEETS[chosen.view](sheet, chosen.find) : [hint(findings?.notes?.join(" ") || VIEWS[chosen.view].missing)];
    return () => panel.replaceChildren(element("div", { className: "sheet" }, ...parts));
  }
  if (PIECES.includes(chosen.view) && !findings?.pieces?.includes(chosen.view) ||
      chosen.view === "heap" && !present().sheets.includes("heap")) {
    return () => panel.replaceChildren(hint(VIEWS[chosen.view].missing));
  }
  const shown = await PREPARE[chosen.view]();
  palette = shown.colours ?? [];
  return () => {
    textBlocks = shown.text ?? (shown.page ? () => blocksOf(shown.page) : null);
    panel.dataset.layout = chosen.as || "table";
    if (shown.elements) {
      put(...shown.elements);
      shown.after?.();
    } else {
      showItems(shown);
    }
  };
}

function settings() {
  return {
    pattern: chosen.filter, isRegex: chosen.regex === "1", isVerbose: chosen.verbose === "1", isDiff: false, bytes: textUnits(),
  };
}

/** The units of what is shown. */
function bytesOf() {
  return chosen.as === "text" ? textUnits() : chosen.units || (chosen.verbose === "1" ? "bytes" : "kib");
}

/** The units of the text, which are those of the command line. */
function textUnits() {
  return chosen.units || (chosen.verbose === "1" ? "bytes" : "mb");
}

/** The two moments that are compared: those chosen, or else the last two. */
function pair() {
  const last = data.moments;
  const second = momentOf(chosen.second) ?? last.at(-1);
  const first = momentOf(chosen.first) ?? last[Math.max(0, last.indexOf(second) - 1)];
  return [first, second];
}

/** Says what a line of a text or an area is. */
function describeLine(line) {
  describe(line ? { ...line, id: line.id, path: line.path, whole: undefined, size: undefined } : null);
}

function tell(trouble) {
  $("trouble").textContent = trouble;
  $("trouble").hidden = trouble === "";
}

/** The text of the view, as the command line prints it. */
function textOfView() {
  const blocks = textBlocks?.() ?? [];
  return blocks.flatMap(block => rowsOf(block, textUnits(), folds).map(textOf)).map(line => `${line}\n`).join("");
}

function listen() {
  $("moment").addEventListener("change", event => choose({ moment: event.target.value }));
  $("first").addEventListener("change", event => choose({ first: event.target.value, second: "" }));
  $("second").addEventListener("change", event => choose({ first: String(pair()[0].id), second: event.target.value }));
  const option = ([value, text], index) => element("option", { value: index ? value : "" }, text);
  $("by").replaceChildren(...Object.entries(ORDERS).map(option));
  $("what").replaceChildren(...Object.entries(RANGES).map(option));
  for (const id of SELECTS) {
    $(id).addEventListener("change", event => choose({ [id]: event.target.value, at: "", ...(id === "rec" ? { from: "", to: "" } : {}) }));
  }
  for (const id of ["regex", "verbose", "invert"]) {
    $(id).addEventListener("change", event => choose({ [id]: event.target.checked ? "1" : "" }));
  }
  for (const id of TYPED) {
    $(id).addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => choose({}), 150);
    });
  }
  $("only").addEventListener("click", () => choose({ only: "" }));
  $("settings").addEventListener("submit", event => event.preventDefault());
  $("copy").addEventListener("click", () => navigator.clipboard.writeText(textOfView()).then(
    () => ($("acted").textContent = "Copied."), fault => tell(fault.message)));
  $("views").addEventListener("keydown", event => {
    const buttons = [...$("views").children];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) {
      buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length].click();
    }
  });
  document.addEventListener("copy", event => {
    const text = copiedText();
    if (text !== null) {
      event.clipboardData?.setData("text/plain", text);
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
    resizing = setTimeout(draw, 150);
  });
}

/** What a selection copies: of the text, what it covers; of a table, all of the text if the whole page is selected. */
function copiedText() {
  const selection = getSelection();
  if (outline.host.isConnected) {
    return outline.selectedText(selection);
  }
  return selection && isAll(selection) && textBlocks ? textOfView() : null;
}

/** Returns whether a selection begins before the panel and ends behind it. Firefox selects in parts, without what cannot be selected. */
function isAll(/** @type {Selection} */ selection) {
  if (selection.isCollapsed || selection.rangeCount === 0) {
    return false;
  }
  const [first, last] = [selection.getRangeAt(0), selection.getRangeAt(selection.rangeCount - 1)];
  let end = /** @type {Element} */ (panel);
  while (end.lastElementChild) {
    end = end.lastElementChild;
  }
  return first.comparePoint(panel, 0) >= 0 && !panel.contains(first.startContainer) && last.comparePoint(end, 0) <= 0;
}

listen();
listenToActions();
listenToFiles();
service.update().then(() => {
  const isRecordingAlone = data.moments.length === 0 && service.recordings.length > 0 && service.sources.length === 0;
  const first = manifest.first ?? (isRecordingAlone ? { view: "recording" } : present()?.hasReports === false ? { view: "heap" } : null);
  // An address that ends in "#" chooses what is shown at first, the reports.
  return first && !location.href.includes("#") ? choose(first) : draw();
}, fault => tell(fault.message));
