// What is open of trees, remembered for as long as the tab lives.
"use strict";

/** What is open, by the ids of lines: kept for as long as the tab lives, over every update. */
class Folds {
  constructor(key) {
    this.key = key;
    try {
      this.known = new Map(JSON.parse(sessionStorage.getItem(key) ?? "[]"));
    } catch {
      // A page without storage, or what is stored is not ours: nothing is remembered.
      this.known = new Map();
    }
  }

  get(id) {
    // Ids are long where trees are deep, and mostly nothing is remembered.
    return this.known.size === 0 ? undefined : this.known.get(id);
  }

  has(id) {
    return this.known.size > 0 && this.known.has(id);
  }

  set(id, isOpen) {
    this.known.set(id, isOpen);
    this.save();
  }

  delete(id) {
    this.known.delete(id);
    this.save();
  }

  save() {
    try {
      sessionStorage.setItem(this.key, JSON.stringify([...this.known]));
    } catch {
      // Then it is remembered until the page is left.
    }
  }
}
