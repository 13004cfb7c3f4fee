// The head of the page: which program, process and time it shows, its sums, and what to do first.
"use strict";

/**
 * A tile: a sum with its name, and where a click leads.
 * @typedef {{ name: string, value: number | null, why: string, note: string, change: Record<string, string>, kind: string }} Tile
 */

/** @returns {Tile[]} the tiles of a moment; `found` are its findings, null where there are none, undefined before they are here. */
function tilesOf(moment, found, before) {
  const { figures } = moment;
  const sinceOf = key => before && typeof before.figures?.[key] === "number" && typeof figures?.[key] === "number"
    ? `${figures[key] > before.figures[key] ? "+" : ""}${sizeText(figures[key] - before.figures[key])}` : "";
  const classes = new Map((found?.dark?.classes ?? []).map(({ class: name, all }) => [name, all]));
  const isScan = found?.leaked !== undefined;
  const none = found === undefined ? "is being read…" : found?.dark ? `not known in mode ${found.mode ?? "live"}` : "needs a dump: run with DMD=1";
  const share = value => value !== null && heap > 0
    ? value === 0 ? "none of the heap" : `${formatShare(value, heap).replace(/^0(?=\d\.)/, "")} of the heap` : "";
  // A dump of another mode than DMD=1 has not asked the reporters.
  const isMatched = found?.dark && !classes.has("live") && !classes.has("cumulative");
  const sum = name => (isMatched ? classes.get(name)?.bytes ?? 0 : null);
  const isDump = moment.hasReports === false;
  const unreported = figures?.["heap-unclassified"] ?? (isDump && isMatched ? found.dark.heapUnclassified : null);
  const heap = figures?.["heap-allocated"] ?? (isDump ? found?.dark?.heap.bytes : null) ?? null;
  const tile = (name, value, fields) => ({ name, value, why: "not reported", note: "", kind: "", ...fields });
  return [
    tile("Resident", figures?.resident ?? null, { note: sinceOf("resident"), change: { view: moment.sheets.includes("resident") ? "resident" : "trees" } }),
    tile("Heap", heap, { note: sinceOf("heap-allocated"), change: { view: moment.sheets.includes("heap") ? "heap" : "trees" } }),
    tile("Unreported", unreported, { kind: "dark", note: sinceOf("heap-unclassified") || share(unreported), why: "not known", change: { view: found?.dark ? "dark" : "trees" } }),
    tile("Reported twice", sum("twice-reported"), { kind: "twice", why: none, note: share(sum("twice-reported")), change: { view: "dark", find: "" } }),
    tile("Leaked", isScan ? found.leaked : null, {
      kind: "leaked", why: found === undefined || !found?.dark ? none : "needs DMD=--mode=scan",
      note: isScan && found.unknown > 0 ? `and up to ${sizeText(found.unknown)} held by stacks, libraries or nothing` : "", change: { view: isScan ? "types" : "dark" },
    }),
  ];
}

/** The most useful suggestion: that for the biggest place. */
function firstSuggestion(found) {
  const places = (found?.dark?.classes ?? []).filter(({ class: name }) => name === "unreported" || name === "twice-reported")
    .flatMap(({ places }) => places).filter(({ remedy }) => remedy);
  const wrongs = (found?.dark?.wrong ?? []).filter(({ remedy }) => remedy).map(wrong => ({ ...wrong, bytes: wrong.claimed }));
  const [best] = [...places, ...wrongs].sort((a, b) => b.bytes - a.bytes);
  return best ?? null;
}

/** A moment's program and process, and the rest of what is known of it. */
function titleOf(moment) {
  const name = moment.writer || moment.process || moment.name;
  const [, program, pid] = name.match(/^(.*?)(?: \(pid (\d+)\))?$/) ?? [null, name, undefined];
  return { program, pid };
}

/** A local time with seconds, and the day if it is another. */
function timeText(/** @type {number | null | undefined} */ taken) {
  if (taken === null || taken === undefined) {
    return "";
  }
  const time = new Date(taken);
  const isToday = time.toDateString() === new Date().toDateString();
  const day = `${time.getFullYear()}-${String(time.getMonth() + 1).padStart(2, "0")}-${String(time.getDate()).padStart(2, "0")} `;
  return (isToday ? "" : day) + time.toLocaleTimeString("en-GB");
}

class Header {
  constructor(choose) {
    this.choose = choose;
    this.title = $("title");
    this.tiles = $("tiles");
    this.suggestion = $("suggestion");
  }

  /** Names a recording, of which there are no sums here. */
  showRecording(summary, name) {
    const facts = [`pid ${summary.pid}`, timeText(summary.startedMs), seconds(summary.length),
      summary.sampleBytes ? `one sample per ${sizeText(summary.sampleBytes)}` : "every block", name];
    this.entitle(String(summary.program ?? name).split("/").pop(), facts);
    this.tiles.hidden = this.suggestion.hidden = true;
  }

  entitle(program, facts) {
    this.title.replaceChildren(element("strong", {}, program),
      ...facts.filter(Boolean).map(fact => element("span", { className: "fact" }, fact)));
    document.title = `${program} - about:memory`;
  }

  /** Names a moment with its sums; of a difference also how these have changed since `before`. */
  show(moment, found, bytes, before = null) {
    if (!moment) {
      this.title.replaceChildren();
      this.tiles.hidden = this.suggestion.hidden = true;
      return;
    }
    const { program, pid } = titleOf(moment);
    const since = before && titleOf(before);
    const facts = [pid && `pid ${pid}`, timeText(moment.taken), found?.mode && `DMD ${found.mode}`, moment.isOpened && "opened here",
      before && `since ${since.program}${since.pid ? ` (pid ${since.pid})` : ""}, ${timeText(before.taken)}`];
    this.entitle(program, facts);
    const unit = bytes === "bytes" ? "bytes" : "kib";
    this.tiles.hidden = false;
    this.tiles.replaceChildren(...tilesOf(moment, found, before).map(tile => {
      const made = button("", () => this.choose(tile.change), { className: `tile ${tile.kind}` });
      const value = tile.value === null ? "–" : formatAmount(tile.value, Unit.bytes, unit);
      made.append(element("span", { className: "label" }, tile.name), element("span", { className: "number" }, value),
        element("span", { className: "note", title: tile.value === null ? tile.why : tile.note }, tile.value === null ? tile.why : tile.note));
      return made;
    }));
    const best = firstSuggestion(found);
    this.suggestion.hidden = best === null;
    if (best) {
      const more = button("Show the place", () => this.choose({ view: "dark", find: best.own ?? best.reporter ?? "" }));
      this.suggestion.replaceChildren(element("strong", {}, "Do first: "), best.remedy, " ",
        element("span", { className: "fact" }, formatAmount(best.bytes, Unit.bytes, unit)), " ", more);
    }
  }
}
