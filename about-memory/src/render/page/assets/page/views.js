// The views: what each needs of the data, how it is laid out, and what the table's columns are.
"use strict";

const LAYOUTS = { "": "Table", flame: "Flame graph", icicle: "Icicle", treemap: "Treemap", text: "Text" };

/** The views in the order of their tabs: the layouts that each has, and what is said where its data are missing. */
const VIEWS = {
  trees: { title: "Reports", layouts: ["", "flame", "icicle", "treemap", "text"] },
  difference: { title: "Difference", layouts: ["", "text"] },
  dark: { title: "Unreported", layouts: [], missing: NO_DUMP },
  heap: { title: "Heap", layouts: ["", "flame", "icicle", "text"], missing: NO_DUMP },
  census: { title: "Census", layouts: ["", "icicle"], missing: NO_DUMP },
  types: { title: "Owners", layouts: ["", "flame", "icicle"], missing: NO_SCAN },
  retained: { title: "Retained", layouts: ["", "flame", "icicle"], missing: NO_SCAN },
  coverage: { title: "Coverage", layouts: [], missing: NO_DUMP },
  resident: { title: "Resident memory", layouts: [], missing: "This report does not say how much memory is resident." },
  time: { title: "Over time", layouts: [] },
  recording: { title: "Recording", layouts: ["", "flame", "icicle"] },
};

const columnsFor = {
  name: { key: "name", title: "Name", text: item => item.name },
  size: { key: "size", title: "Size", text: item => (!item.hasSize ? "" : item.isSizeUnknown ? "not known" : formatAmount(item.size, item.unit, bytesOf())) },
  own: { key: "own", title: "Itself", text: item => (item.own === undefined ? "" : formatAmount(item.own, item.unit, bytesOf())) },
  share: { key: "share", title: "Share", text: item => (item.hasSize && item.whole > 0 ? shareText(item.size, item.whole) : "") },
  blocks: { key: "blocks", title: "Blocks", text: item => (item.blocks === undefined ? "" : plain.format(item.blocks)) },
  change: { key: "change", title: "Change", text: item => (item.hasSize && item.before !== undefined ? changeText(changeOf(item), item.unit) : "") },
  description: { key: "description", title: "Description", isText: true, text: item => item.description },
};

const columnsOf = names => names.map(name => columnsFor[name]);

/** A share with a digit behind the point; Firefox's two digits are for its own text. */
function shareText(part, whole) {
  const share = (100 * part) / whole;
  return share >= 99.95 && share <= 100 ? "100%" : share === 0 ? "0%" : Math.abs(share) < 0.05 ? "<0.1%" : `${share.toFixed(1)}%`;
}

/** A difference with its sign. */
function changeText(amount, unit) {
  return (amount > 0 ? "+" : "") + formatAmount(amount, unit, bytesOf());
}

/** What is read of an item besides its name. */
function itemText(item) {
  const parts = [item.hasSize ? columnsFor.size.text(item) : "", columnsFor.share.text(item),
    item.blocks === undefined ? "" : blocksText(item.blocks), item.before === undefined ? "" : columnsFor.change.text(item)];
  return parts.filter(Boolean).join(", ");
}

/** What a view shows: its items and its table's columns, or elements. */
const PREPARE = {
  async trees() {
    const page = buildPage(await data.get(`moments/${present().id}/reports`), settings());
    return {
      page, items: itemsOfReports(page, false), columns: columnsOf(["name", "size", "share", "description"]), name: "Reports", colours: ["name"],
    };
  },

  async difference() {
    if (data.moments.length < 2) {
      return { elements: [hint("A difference needs two moments: open another file, or measure again.")] };
    }
    const [first, second] = pair().map(({ id }) => id);
    const [page, before, after] = await Promise.all([`differences/${first}/${second}`, `moments/${first}/reports`,
      `moments/${second}/reports`].map(name => data.get(name)));
    const built = buildPage(page, { ...settings(), isDiff: true });
    const items = itemsOfReports(built, true);
    addSizes(items, before, after);
    return { page: built, items, columns: columnsOf(["name", "change", "size", "description"]), name: "Difference" };
  },

  async heap() {
    const heap = await heapOf();
    const by = (chosen.by || Object.keys(ORDERS)[0]).split(",");
    const wishes = { by, cut: cutOf(), within: chosen.within, only: chosen.only, isInverted: chosen.invert === "1" };
    const isDiff = Boolean(heap.rows.before);
    const columns = columnsOf(["name", "size", "share", ...(isDiff ? ["change"] : []), "blocks"]);
    const text = () => heapBlocks(heap, wishes);
    return { items: itemsOfHeap(breakDown(heap, wishes), isDiff), columns, name: "Heap", text, colours: isDiff ? ["change", "crate"] : hasStates(heap.rows.state) ? ["state", "crate"] : ["crate"] };
  },

  async census() {
    const censusOf = id => data.get(`moments/${id}/census`);
    const read = async id => itemsOfCensus(await censusOf(id), countedBy(), chosen.only);
    const census = await censusOf(present().id);
    axes = axesOf(census);
    const states = census.rows.state?.map(id => census.texts[id]);
    const shown = await withBase(await read(present().id), read, "Census");
    return { ...shown, columns: shown.columns.filter(({ key }) => !["own", "description"].includes(key)), colours: [...(chosen.base ? ["change"] : hasStates(states) ? ["state"] : []), "crate"] };
  },

  async types() {
    const read = id => data.get(`moments/${id}/types`).then(itemsOfTypes);
    return withBase(await read(present().id), read, "Owners");
  },

  async retained() {
    const read = id => data.get(`moments/${id}/retained`).then(itemsOfRetained);
    return withBase(await read(present().id), read, "Retained");
  },

  async time() {
    return prepareTime();
  },

  async recording() {
    return prepareRecording();
  },
};

/** The axes on which the census that was shown last has answers. */
let axes = ["type"];

/** Returns whether blocks have a state: whether they were compared with what is reported. */
function hasStates(/** @type {string[] | undefined} */ states) {
  return (states ?? []).some(state => !["live", "cumulative", "other"].includes(state));
}

/** What the census counts by unless something else is chosen. */
const firstAxis = () => (axes.includes("type") ? "type" : axes[0] ?? "type");

/** The axes that the census counts by. */
function countedBy() {
  const first = chosen.count || firstAxis();
  return [first, ...(chosen.then && chosen.then !== first ? [chosen.then] : [])];
}

/** Items with those of the moment that is compared, if one is chosen. */
async function withBase(items, read, name) {
  const base = momentOf(chosen.base);
  const compared = base ? compareItems(await read(base.id), items) : items;
  return { items: compared, name, colours: base ? ["change", "crate"] : ["crate"],
    columns: columnsOf(["name", "size", "share", ...(base ? ["change"] : []), "own", "blocks", "description"]) };
}

/** The share of the heap, in percent, below which nodes are one: a graph has room for smaller ones. */
function cutOf() {
  return Number(chosen.cut || (["flame", "icicle"].includes(chosen.as) ? 0.1 : 1));
}

/** The heap of the moment that is shown; with that of the moment it is compared with. */
async function heapOf() {
  const heap = await data.get(`moments/${present().id}/heap`);
  const base = momentOf(chosen.base);
  return base ? mergeHeaps(await data.get(`moments/${base.id}/heap`), heap) : heap;
}

/** Gives the items of a difference the sizes of both moments. */
function addSizes(items, before, after) {
  const sizesOf = moment => {
    const sizes = new Map();
    for (const process of growForest(moment, () => true)) {
      const todo = [...Object.values(process.trees), ...Object.values(process.flats)].map(node => [node, ""]);
      while (todo.length > 0) {
        const [node, above] = todo.pop();
        const path = above + node.shown;
        sizes.set(path, (sizes.get(path) ?? 0) + (node.amount ?? 0));
        for (const kid of node.kids.values()) {
          todo.push([kid, `${path}/`]);
        }
      }
    }
    return sizes;
  };
  const now = sizesOf(after);
  for (const item of allItems(items)) {
    const change = -(item.before ?? 0);
    // Something that is shown as a chain may have branches in one of the files.
    // Of names that were made alike, such as those of threads, only the change is known.
    item.isSizeUnknown = !now.has(item.path) && !item.notes.includes("gone");
    item.size = now.get(item.path) ?? 0;
    item.before = item.size - change;
    item.whole = 0;
  }
  // What stands for several is as big as they are together.
  for (const item of [...allItems(items)].reverse().filter(({ kind }) => kind === "other")) {
    item.isSizeUnknown = item.kids.some(kid => kid.isSizeUnknown);
    const change = changeOf(item);
    item.size = item.kids.reduce((sum, kid) => sum + kid.size, 0);
    item.before = item.size - change;
  }
}

function hint(text) {
  return element("p", { className: "hint" }, text);
}

/** Puts elements on the page; what had the focus keeps it, if it is among them. */
function put(...parts) {
  const focused = document.activeElement;
  panel.replaceChildren(...parts);
  if (focused instanceof HTMLElement && focused !== document.activeElement && panel.contains(focused)) {
    focused.focus({ preventScroll: true });
  }
}

/** Shows what was prepared in the layout that is chosen. `after` draws what stands above, which takes room. */
function showItems({ page, items, columns, name, text, colours = ["crate"], above = [], after = () => {} }) {
  const layout = VIEWS[chosen.view].layouts.includes(chosen.as) ? chosen.as : "";
  if (layout === "text") {
    put(outline.host);
    outline.host.classList.toggle("difference", chosen.view === "difference");
    outline.show(text ? text() : blocksOf(page), bytesOf());
    return;
  }
  if (layout === "treemap") {
    put(treemap.host);
    treemap.show(page, bytesOf());
    return;
  }
  const found = findItems(items, layout === "" ? chosen.find : "");
  if (found.length === 0) {
    put(...above, hint(emptyText()));
    after();
    return;
  }
  const way = wayOf(chosen.at);
  table.host.dataset.units = bytesOf();
  const sums = chosen.find === "" ? [] : [hint(foundText(items, chosen.find))];
  if (layout === "") {
    put(...above, ...sums, table.host);
    after();
    table.show(sortItems(found, chosen.sort), { columns, name, sort: chosen.sort, way, view: chosen.view });
    return;
  }
  const drawn = chosen.view === "trees" ? bytesTrees(items) : items;
  const colour = colours.includes(chosen.colour) ? chosen.colour : colours[0];
  put(...above, ...sums, flame.host);
  after();
  flame.show(drawn, { name, isUpwards: layout === "flame", colour, find: chosen.find, way, text: itemText });
}

/** What is said where there is nothing to show. */
function emptyText() {
  return chosen.find ? `Nothing here has “${chosen.find}” in its name.`
    : chosen.filter ? `No path has “${chosen.filter}” in it.`
    : chosen.only ? `There is nothing of ${chosen.only.replace(":", " ")}: show all again by the button above.`
    : { difference: "Nothing has changed.", trees: noReportsText() }[chosen.view] ?? "There are no blocks.";
}

/** What is said of a moment without reports. */
function noReportsText() {
  return present()?.hasReports === false ? "This is a dump without its report: its blocks are under Heap." : "This report has no measurements.";
}

/** Of reports, the trees of bytes: `explicit` alone, of each process. */
function bytesTrees(items) {
  return items.flatMap(item => (item.kind === "process" ? [{ ...item, size: item.kids[0]?.size ?? 0, kids: bytesTrees(item.kids) }]
    : item.name === "explicit" || item.name.startsWith("explicit/") ? [item] : []));
}

function foundText(items, text) {
  const { sum, count } = sumOfFound(items, text);
  const whole = items[0]?.whole ?? 0;
  return `${plain.format(count)} found: ${formatAmount(sum, Unit.bytes, bytesOf())}${whole > 0 ? `, ${shareText(sum, whole)}` : ""}`;
}
