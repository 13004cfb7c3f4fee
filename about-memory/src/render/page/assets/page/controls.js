// The tabs and the settings of the view that is shown, and what is said of the item that is pointed at.
"use strict";

/** The lists that one thing is chosen from. */
const SELECTS = ["units", "by", "count", "then", "cut", "what", "rec", "base", "colour"];

/** The views whose data are a piece of a moment's findings. */
const PIECES = ["census", "types", "retained"];

/** The views that there are data for; the one that is chosen in any case. */
function tabs() {
  const sheets = present()?.sheets ?? [];
  const pieces = findings?.pieces ?? [];
  // A dump that lies beside no report has its heap alone.
  const reported = data.moments.filter(({ hasReports }) => hasReports !== false).length;
  const isThere = view => ({
    trees: reported > 0 || service.recordings.length === 0 && data.moments.length === 0, difference: reported > 1, time: reported > 1, recording: service.recordings.length > 0,
    dark: sheets.includes("dark"), heap: sheets.includes("heap"), coverage: sheets.includes("coverage"),
    resident: sheets.includes("resident"), census: sheets.includes("heap"), types: pieces.includes("types"),
    retained: pieces.includes("retained"),
  })[view] || view === chosen.view;
  return Object.keys(VIEWS).filter(isThere);
}

function drawControls() {
  const focused = document.activeElement?.id;
  putButtons($("views"), tabs().map(viewButton));
  for (const tab of $("views").children) {
    const isChosen = tab.id === `view-${chosen.view}`;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
  }
  if (focused?.startsWith("view-")) {
    $(`view-${chosen.view}`)?.focus();
  }
  $(`view-${chosen.view}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  panel.setAttribute("aria-labelledby", `view-${chosen.view}`);
  drawLayouts();
  drawSelects();
  showSettings();
  for (const id of TYPED) {
    if (document.activeElement !== $(id)) {
      $(id).value = chosen[id];
    }
  }
  $("filter").setAttribute("aria-invalid", String(chosen.regex === "1" && regexOf(chosen.filter) === null));
  for (const id of ["regex", "verbose", "invert"]) {
    $(id).checked = chosen[id] === "1";
  }
  for (const id of SELECTS) {
    $(id).value = chosen[id];
  }
  $("only").hidden = chosen.only === "";
  $("only").textContent = `Only ${chosen.only.replace(":", " ")} ×`;
  $("only").setAttribute("aria-label", `Only ${chosen.only.replace(":", " ")}: show all again`);
  $("cut").options[0].textContent = `below ${["flame", "icicle"].includes(chosen.as) ? "0.1%" : "1%"}`;
  $("cut").options[1].hidden = ["flame", "icicle"].includes(chosen.as);
  $("units").options[0].textContent = chosen.as === "text" ? "as about:memory" : "KiB, MiB, GiB";
  drawNotes(chosen.view === "recording" ? [] : [...(present()?.notes ?? []), ...(findings?.notes ?? [])]);
  drawActions();
  describe(null);
}

/** Shows the settings that mean something to the view and its layout. */
function showSettings() {
  const { view } = chosen;
  const layout = VIEWS[view].layouts.includes(chosen.as) ? chosen.as : "";
  const isReports = view === "trees" || view === "difference";
  const hasHeap = present()?.sheets.includes("heap");
  const isFlame = layout === "flame" || layout === "icicle";
  const isOfItems = VIEWS[view].layouts.length > 0 && !["text", "treemap"].includes(layout) && (!isReports || isFlame);
  const isShown = {
    "for-difference": view === "difference" && data.moments.length > 1,
    "for-recording": view === "recording" && service.recordings.length > 0,
    "for-reports": isReports,
    "for-heap": (view === "heap" && hasHeap) || (view === "recording" && service.recordings.length > 0),
    "for-census": view === "census" && findings?.pieces?.includes("census"),
    "for-find": view === "dark" || view === "heap" ? hasHeap && (view === "dark" || isOfItems) : isOfItems,
    "for-flame": isFlame && view !== "trees",
    "for-base": ["heap", ...PIECES].includes(view) && $("base").options.length > 1,
    "for-units": view !== "dark" && view !== "coverage" && view !== "resident" && !(view === "heap" && layout === "text"),
  };
  for (const label of /** @type {NodeListOf<HTMLElement>} */ ($("settings").querySelectorAll("label[class]"))) {
    label.hidden = !isShown[label.className];
  }
  $("moment").parentElement.hidden = view === "difference" || view === "recording" || data.moments.length < 2;
  $("copy").hidden = !isReports && view !== "heap";
}

function drawLayouts() {
  const { layouts } = VIEWS[chosen.view];
  $("layouts").hidden = layouts.length < 2;
  const current = layouts.includes(chosen.as) ? chosen.as : "";
  putButtons($("layouts"), layouts.map(layout =>
    button(LAYOUTS[layout], () => choose({ as: layout, at: "" }), { id: `as-${layout || "table"}` })));
  for (const made of $("layouts").querySelectorAll("button")) {
    made.setAttribute("aria-pressed", String(made.id === `as-${current || "table"}`));
  }
}

/** Puts buttons into their holder, unless the same ones are there: a button that is being clicked stays. */
function putButtons(/** @type {HTMLElement} */ holder, /** @type {HTMLElement[]} */ buttons) {
  const idsOf = (/** @type {Iterable<Element>} */ made) => [...made].map(({ id }) => id).join();
  const known = holder.querySelectorAll("button");
  if (idsOf(known) !== idsOf(buttons)) {
    known.forEach(made => made.remove());
    holder.append(...buttons);
  }
}

function viewButton(view) {
  const made = button(VIEWS[view].title, () => choose({ view }).then(() => $(`view-${view}`)?.focus()),
    { role: "tab", id: `view-${view}` });
  made.setAttribute("aria-controls", "panel");
  return made;
}

function drawSelects() {
  const option = moment => element("option", { value: String(moment.id) }, nameOf(moment));
  const [first, second] = data.moments.length > 1 ? pair() : [];
  for (const [id, moment] of [["moment", present()], ["first", first], ["second", second]]) {
    $(id).replaceChildren(...data.moments.map(option));
    $(id).value = moment ? String(moment.id) : "";
  }
  for (const option of $("second").options) {
    option.disabled = !data.has(`differences/${first?.id}/${option.value}`);
  }
  const sheet = ["heap", ...PIECES].includes(chosen.view) ? "heap" : "";
  const others = data.moments.filter(moment => moment !== present() && moment.sheets.includes(sheet));
  $("base").replaceChildren(element("option", { value: "" }, "nothing"), ...others.map(option));
  $("rec").replaceChildren(...service.recordings.map(({ name }, id) => element("option", { value: id === 0 ? "" : String(id) }, name)));
  drawAxes();
  const words = { state: "reported or not", change: "change", crate: "crate", name: "name" };
  $("colour").replaceChildren(...palette.map((word, place) => element("option", { value: place === 0 ? "" : word }, words[word])));
}

/** Fills the lists of what the census counts by: the axes on which the moment has answers. */
function drawAxes() {
  const option = (axis, isDefault) => element("option", { value: isDefault ? "" : axis }, AXES[axis][0]);
  $("count").replaceChildren(...axes.map(axis => option(axis, axis === firstAxis())));
  $("then").replaceChildren(element("option", { value: "" }, "nothing"),
    ...axes.filter(axis => axis !== (chosen.count || firstAxis())).map(axis => option(axis, false)));
}

/** A file's name, with its folder where another has the same; a program's, with the time. */
function nameOf(moment) {
  if (moment.source !== undefined && moment.source !== null) {
    return `${moment.name}, ${timeText(moment.taken)}`;
  }
  const isTaken = data.moments.some(other => other !== moment && other.name === moment.name);
  return isTaken ? moment.place : moment.name;
}

function drawNotes(notes) {
  $("notes").hidden = notes.length === 0;
  $("notes").querySelector("summary").textContent = `${notes.length} ${notes.length === 1 ? "note" : "notes"} on this collection`;
  $("notes").querySelector("ul").replaceChildren(...notes.map(note => element("li", {}, note)));
}

/** Says what an item is, and where more about it is to be seen. */
function describe(item) {
  const isTree = VIEWS[chosen.view].layouts.length > 0;
  $("detail").hidden = !isTree;
  const name = item?.path ?? item?.name ?? (item ? item.id.slice(item.id.indexOf(":") + 1) : "");
  $("description").textContent = item
    ? [name, item.size === undefined || item.kids === undefined || !("whole" in item) ? "" : itemText(item), item.description].filter(Boolean).join(" — ")
    : innerWidth > 600 ? "Arrow keys move, Enter goes into an item, Backspace out again; point at one to read what it is."
      : "Touch a row to read what it is.";
  $("links").replaceChildren(...(item ? linksOf(item, chosen.view, view => tabs().includes(view), findings) : []).map(([text, change]) => button(text, () => choose(change), { className: "link" })));
}
