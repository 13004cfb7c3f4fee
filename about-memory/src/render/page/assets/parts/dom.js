// Makes elements. Text is inserted as text only.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} name
 * @param {Record<string, any>} [properties] properties of the element, or else attributes
 * @param {...(Node | string)} kids
 * @returns {any} an element, of which the callers know the kind
 */
function element(name, properties = {}, ...kids) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) {
      continue;
    }
    if (key in made) {
      made[key] = value;
    } else {
      made.setAttribute(key, value);
    }
  }
  made.append(...kids);
  return made;
}

/**
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string)} kids
 * @returns {any}
 */
function svg(name, attributes = {}, ...kids) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, String(value));
  }
  made.append(...kids);
  return made;
}

/**
 * @param {string} text
 * @param {() => void} act
 * @param {Record<string, any>} [properties]
 */
function button(text, act, properties = {}) {
  const made = element("button", { type: "button", ...properties }, text);
  made.addEventListener("click", act);
  return made;
}

/** Changes the text of an element that has only text. */
function setText(/** @type {Element} */ holder, /** @type {string} */ words) {
  const known = holder.firstChild;
  if (known instanceof Text && holder.lastChild === known) {
    known.data = words;
  } else {
    holder.textContent = words;
  }
}
