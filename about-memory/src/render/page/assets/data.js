// Where the page's data come from: out of the page itself, or from the program that serves it.
"use strict";

class Embedded {
  constructor(manifest) {
    this.isServed = false;
    this.moments = manifest.moments.map((moment, id) => ({ ...moment, id }));
    this.sources = [];
  }

  async update() {}

  async get(name) {
    const holder = document.querySelector(`script[data-name="${CSS.escape(name)}"]`);
    if (!holder) {
      throw new Error("This page does not have that: it holds what was chosen when it was written.");
    }
    const bytes = Uint8Array.from(atob(holder.textContent), letter => letter.charCodeAt(0));
    const unzipped = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(unzipped).json();
  }

  has(name) {
    return document.querySelector(`script[data-name="${CSS.escape(name)}"]`) !== null;
  }
}

class Served {
  constructor() {
    this.isServed = true;
    this.moments = [];
    this.sources = [];
  }

  async update() {
    const { moments, sources } = await this.get("moments");
    Object.assign(this, { moments, sources });
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

/** The data, with what was read last kept at hand. */
class Data {
  constructor(origin) {
    this.origin = origin;
    this.known = new Map();
  }

  async get(name) {
    if (!this.known.has(name)) {
      if (this.known.size >= 6) {
        this.known.delete(this.known.keys().next().value);
      }
      this.known.set(name, await this.origin.get(name));
    }
    return this.known.get(name);
  }
}
