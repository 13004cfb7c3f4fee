// Where the page's data come from: out of the page itself, out of files that were opened, or from the program that serves it.
"use strict";

class Embedded {
  constructor(manifest) {
    this.isServed = false;
    this.moments = manifest.moments.map((moment, id) => ({ ...moment, id }));
    this.recordings = manifest.recordings ?? [];
    this.sources = [];
  }

  async update() {}

  async get(name) {
    const holder = holderOf(name);
    if (!holder) {
      throw new Error("This page does not have that: it holds what was chosen when it was written.");
    }
    const bytes = bytesOfBase64(holder.textContent ?? "");
    return JSON.parse(await unzip(new Blob([bytes])));
  }

  has(name) {
    return holderOf(name) !== null;
  }

  async post() {
    throw new Error("This page is a file: it cannot ask a program. `about-memory page serve` can.");
  }
}

function holderOf(/** @type {string} */ name) {
  return document.querySelector(`script[data-name="${CSS.escape(name)}"]`);
}

function bytesOfBase64(/** @type {string} */ text) {
  if ("fromBase64" in Uint8Array) {
    return /** @type {any} */ (Uint8Array).fromBase64(text);
  }
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at++) {
    bytes[at] = letters.charCodeAt(at);
  }
  return bytes;
}

/** The text of a file, gzipped or not. */
async function unzip(/** @type {Blob} */ file) {
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const isZipped = head[0] === 0x1f && head[1] === 0x8b;
  const stream = isZipped ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
  return new Response(stream).text();
}

class Served {
  constructor() {
    this.isServed = true;
    this.moments = [];
    this.recordings = [];
    this.sources = [];
  }

  async update() {
    const { moments, sources, recordings } = await this.get("moments");
    Object.assign(this, { moments, sources, recordings });
  }

  async get(name) {
    return (await this.ask(name, "GET")).json();
  }

  async post(action, source) {
    return (await this.ask(`${action}/${source}`, "POST")).json();
  }

  async ask(name, method) {
    let answer;
    try {
      answer = await fetch(`/${name}`, { method, cache: "no-store" });
    } catch {
      throw new Error("about-memory does not answer any more: start it again, and open the address that it prints.");
    }
    if (!answer.ok) {
      throw new Error(await answer.text());
    }
    return answer;
  }

  has() {
    return true;
  }
}

/** The data, with what was read last kept at hand, and the files that were opened on the page. */
class Data {
  constructor(origin) {
    this.origin = origin;
    this.known = new Map();
    this.opened = [];
  }

  get moments() {
    return [...this.origin.moments, ...this.opened];
  }

  has(name) {
    const compared = name.match(/^differences\/([^/]+)\/([^/]+)$/);
    return this.origin.has(name) || Boolean(compared && compared[1] !== compared[2] &&
      [compared[1], compared[2]].some(id => id.startsWith("file")));
  }

  async get(name) {
    if (!this.known.has(name)) {
      if (this.known.size >= 16) {
        this.known.delete(this.known.keys().next().value);
      }
      const found = this.read(name);
      this.known.set(name, found);
      found.catch(() => this.known.delete(name));
    }
    return this.known.get(name);
  }

  async read(name) {
    const own = name.match(/^moments\/(file\d+)\/reports$/);
    if (own) {
      return this.opened.find(({ id }) => id === own[1]).report;
    }
    const compared = name.match(/^differences\/([^/]+)\/([^/]+)$/);
    // Of others, the command line's own difference is there, or it refuses to make one.
    if (compared?.slice(1).some(id => id.startsWith("file"))) {
      const [first, second] = await Promise.all(compared.slice(1).map(id => this.get(`moments/${id}/reports`)));
      return differenceOf(first, second);
    }
    return this.origin.get(name);
  }

  /** Opens a memory report, and returns its id. */
  async open(/** @type {File} */ file) {
    let report;
    try {
      report = JSON.parse(await unzip(file));
    } catch {
      throw new Error(`${file.name}: this is no memory report: it is no JSON, gzipped or not.`);
    }
    if (!Array.isArray(report?.reports)) {
      const isDump = report && ("blockList" in report || "invocation" in report);
      throw new Error(isDump
        ? `${file.name}: this is a dump of the heap. Its functions can be looked up by \`about-memory page build\` alone.`
        : `${file.name}: this is no memory report: it has no list of reports.`);
    }
    const own = report.memreport ?? {};
    const writer = own.process ? own.process.name + (own.process.pid === undefined ? "" : ` (pid ${own.process.pid})`) : undefined;
    const id = `file${this.opened.length}`;
    const opened = { ...report, writer, reporters: own.reporters ?? [] };
    this.opened.push({
      id, name: file.name, place: file.name, taken: own.timeMs ?? file.lastModified, notes: [], sheets: [], report: opened,
      figures: figuresOf(opened), isOpened: true,
    });
    return id;
  }
}

/** The sums of a report's first process. */
function figuresOf(report) {
  const [process] = growForest(report, () => true);
  const flat = name => process?.flats[name]?.amount ?? null;
  const explicit = process?.trees.explicit;
  return {
    "resident": flat("resident"), "heap-allocated": flat("heap-allocated"), "explicit": explicit?.amount ?? null,
    "heap-unclassified": explicit?.kids.get("heap-unclassified")?.amount ?? null,
  };
}
