// What was found at a moment, as sheets: the unreported places with what to do, how the heap is covered, what is resident and why.
"use strict";

const NO_DUMP = "No dump of DMD lies beside this report: run the program with DMD=1.";
const NO_SCAN = "This needs a scan of the heap: run the program with DMD=--mode=scan.";

/** What makes the elements of a member of a moment's findings. */
const SHEETS = { dark: darkSheet, coverage: coverageSheet, resident: residentSheet };

const bytesText = bytes => `${plain.format(bytes)} bytes`;
const blocksText = blocks => `${plain.format(blocks)} ${blocks === 1 ? "block" : "blocks"}`;
const percentText = (part, whole) => `${fixed.format(whole === 0 ? 0 : (100 * part) / whole)}%`;

/** The classes of a dump in the order in which they matter, with what people read. */
const CLASSES = {
  "unreported": "Unreported: no reporter covers these blocks",
  "twice-reported": "Reported twice",
  "live": "Live blocks",
  "cumulative": "All blocks that were made",
  "once-reported": "Reported once, as it should be",
};

const WRONG = {
  "non-heap": "no block of the heap", "interior": "the middle of a block", "partial": "another size than the block's",
  "freed since": "a block that was given back since",
};

function darkSheet({ heap, untracked, heapUnclassified, classes: allClasses, wrong: allWrong }, find = "") {
  const isFound = place => find === "" || JSON.stringify(place).toLowerCase().includes(JSON.stringify(find).slice(1, -1).toLowerCase());
  const classes = allClasses.map(found => ({ ...found, places: found.places.filter(isFound) }))
    .filter(({ places }) => find === "" || places.length > 0);
  const wrong = allWrong.filter(isFound);
  const byName = new Map(classes.map(found => [found.class, found]));
  const parts = Object.entries(CLASSES).flatMap(([name, heading]) =>
    byName.has(name) ? classParts(byName.get(name), heading, heap.bytes) : []);
  const wrongs = wrong.map(report => element("li", {},
    element("p", { className: "what" }, element("code", {}, report.reporter), ` reports ${WRONG[report.is] ?? report.is}: ` +
      `${bytesText(report.claimed)} claimed, ${bytesText(report.usable)} there` +
      (report.reports > 1 ? `, ${plain.format(report.reports)} times` : "")),
    ...remedyOf(report), ...stackOf(report.frames)));
  const wrongPart = wrongs.length === 0 ? []
    : [element("h2", {}, "Wrong reports"), element("ol", { className: "places" }, ...wrongs)];
  // The last class is that of blocks with which nothing is the matter.
  const last = byName.has("once-reported") ? parts.splice(-1) : [];
  return [element("p", { className: "verdict" },
    `The heap has ${bytesText(heap.bytes)} in ${blocksText(heap.blocks)}; ${bytesText(heapUnclassified)} are unclassified.`),
    ...untrackedPart(untracked, heap), ...parts, ...wrongPart, ...last];
}

/** The blocks from before tracking began or while it was off, of which only the sum is there. */
function untrackedPart({ bytes, blocks }, heap) {
  return blocks === 0 ? [] : [element("p", {}, `${bytesText(bytes)} in ${blocksText(blocks)}, ${percentText(bytes, heap.bytes)} of ` +
    "the heap, are from before tracking began or while it was off: nothing else was recorded of them.")];
}

function classParts({ class: name, all, places }, heading, heap) {
  const share = percentText(all.bytes, heap);
  const sum = element("p", {}, `${bytesText(all.bytes)} in ${blocksText(all.blocks)}, ${share} of the heap`);
  const list = element("ol", { className: "places" }, ...places.map(place => placeItem(place, heap)));
  return name === "once-reported" ? [element("details", {}, element("summary", {}, heading), sum, list)]
    : [element("h2", {}, heading), sum, list];
}

function placeItem(place, heap) {
  const what = [place.type, place.own].filter(Boolean).join(", ") || place.frames[0] || "no stack is known";
  const made = linksOfPlace(place, view => tabs().includes(view)).flatMap(([text, change]) =>
    [button(text, () => choose(change), { className: "link" }), " "]);
  const links = made.length > 0 ? [element("p", {}, ...made)] : [];
  return element("li", {},
    element("p", { className: "what" },
      element("strong", {}, bytesText(place.bytes)), ` in ${blocksText(place.blocks)}, ` +
      `${percentText(place.bytes, heap)} of the heap: `, element("code", {}, what)),
    ...(place.reporters?.length > 0 ? [element("p", {}, `Reported by ${place.reporters.join(", ")}`)] : []),
    ...remedyOf(place), ...links, ...stackOf(place.frames));
}

/** The function of a frame: without its place in a file. */
function functionOf(frame) {
  return frame.replace(/ \([^()]*\)$/, "");
}

function remedyOf({ remedy }) {
  return remedy ? [element("p", { className: "remedy" }, `→ ${remedy}`)] : [];
}

function stackOf(frames) {
  return frames?.length > 0
    ? [element("details", {}, element("summary", {}, `Stack of ${frames.length} ${frames.length === 1 ? "frame" : "frames"}`),
      element("ol", { className: "frames" }, ...frames.map(frame => element("li", {}, frame))))]
    : [];
}

function coverageSheet(coverage) {
  const { heap, once, dark, twice, untracked } = coverage;
  const bar = element("div", { className: "bar", role: "img",
    "aria-label": `once ${percentText(once.bytes, heap.bytes)}, unreported ${percentText(dark.bytes, heap.bytes)}, twice ` +
      percentText(twice.bytes, heap.bytes) });
  for (const [name, { bytes }] of [["once", once], ["dark", dark], ["twice", twice], ["untracked", untracked]]) {
    const part = element("span", { className: name, title: `${name === "dark" ? "unreported" : name}: ${bytesText(bytes)}` });
    part.style.flexGrow = bytes;
    bar.append(part);
  }
  const whole = coverage.isSampled ? "heap by estimate" : "heap-allocated";
  const sums = element("p", {}, `${whole} ${plain.format(heap.bytes)} = once ${plain.format(once.bytes)} + unreported ` +
    `${plain.format(dark.bytes)} + twice or more ${plain.format(twice.bytes)}` +
    (untracked.blocks > 0 ? ` + untracked ${plain.format(untracked.bytes)}` : ""));
  const tables = [["Crate", coverage.crates], ["Type", coverage.types], ["Reported by", coverage.reporters]]
    .map(([name, groups]) => groupsTable(name, groups, untracked));
  const skipped = coverage.skipped.map(field =>
    element("li", {}, element("code", {}, `${field.type}.${field.field}`), ` (${field.file}:${field.line}): ${field.reason ?? ""}`));
  const remedies = coverage.remedies.map(({ remedy, bytes }) => element("li", {}, `${bytesText(bytes)}: ${remedy}`));
  return [
    element("p", { className: "verdict" },
      `${fixed.format(coverage.score)}% of ${bytesText(heap.bytes)} are reported exactly once.`),
    bar, element("ul", { className: "legend" }, element("li", { className: "once" }, "once"),
      element("li", { className: "dark" }, "unreported"), element("li", { className: "twice" }, "twice")), sums, ...untrackedPart(untracked, heap),
    ...(remedies.length > 0 ? [element("h2", {}, "What would help most"), element("ol", {}, ...remedies)] : []),
    ...tables,
    element("h2", {}, `Fields: ${coverage.measured.length} measured, ${coverage.skipped.length} skipped`),
    element("ul", {}, ...skipped),
  ];
}

/** The most lines of a table; what is smaller is added up in one more. */
const GROUPS = 25;

function groupsTable(name, groups, untracked) {
  const all = groups.reduce((sum, group) => sum + group.all.bytes, untracked.bytes);
  const row = (name, { bytes, dark, twice }) => element("tr", {},
    element("th", { scope: "row" }, name),
    ...[plain.format(bytes), percentText(bytes, all), percentText(bytes - dark - twice, bytes), plain.format(dark),
      plain.format(twice)].map(text => element("td", {}, text)));
  const sums = list => list.reduce((sum, group) => ({
    bytes: sum.bytes + group.all.bytes, dark: sum.dark + group.dark.bytes, twice: sum.twice + group.twice.bytes,
  }), { bytes: 0, dark: 0, twice: 0 });
  const rest = groups.slice(GROUPS);
  return wide(`Coverage by ${name.toLowerCase()}`, element("table", {},
    element("thead", {}, element("tr", {},
      ...[name, "Bytes", "Share", "Once", "Unreported", "Twice"].map(head => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...groups.slice(0, GROUPS).map(group => row(group.name, sums([group]))),
      ...(rest.length > 0 ? [row(`and ${rest.length} more`, sums(rest))] : []),
      ...(untracked.blocks > 0 ? [untrackedRow(untracked, all)] : []))));
}

/** What may be wider than the page, with a name: it is scrolled by keys too. */
function wide(name, ...parts) {
  return element("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": name }, ...parts);
}

function untrackedRow({ bytes }, all) {
  return element("tr", {}, element("th", { scope: "row" }, UNTRACKED),
    ...[plain.format(bytes), percentText(bytes, all), "", "", ""].map(text => element("td", {}, text)));
}

/** What a fragment of resident memory consists of; another element is left out with all that is in it. */
const OF_FRAGMENTS = new Set(["SECTION", "H2", "P", "STRONG", "TABLE", "CAPTION", "THEAD", "TBODY", "TFOOT", "TR", "TH", "TD", "UL", "LI"]);

/** The sheet comes as HTML; of that, these elements are made anew, with their class, their scope and the text in them. */
function residentSheet(fragment) {
  const copy = node => {
    if (node.nodeType === Node.TEXT_NODE) {
      return [node.data];
    }
    if (!OF_FRAGMENTS.has(node.nodeName)) {
      return [];
    }
    const said = ["class", "scope"].filter(name => node.hasAttribute(name)).map(name => [name, node.getAttribute(name)]);
    return [element(node.nodeName, Object.fromEntries(said), ...[...node.childNodes].flatMap(copy))];
  };
  return [wide("Resident memory", ...[...new DOMParser().parseFromString(fragment, "text/html").body.childNodes].flatMap(copy))];
}
