// Returns the luminance of the page's background, and the least contrast of any text on it.
const luminance = colour => {
  const [red, green, blue] = colour.match(/[\d.]+/g).slice(0, 3).map(part => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour !== "rgba(0, 0, 0, 0)") {
      return colour;
    }
  }
  return "rgb(255, 255, 255)";
};
let [least, of] = [Infinity, ""];
// The lines of a tree are a drawing, not text.
for (const element of document.querySelectorAll("h1, label, button:not(:disabled), .row, .row span:not(.indent), footer, .sheet :is(p, h2, th, td, caption)")) {
  if (!element.checkVisibility() || element.textContent.trim() === "") {
    continue;
  }
  const [text, ground] = [luminance(getComputedStyle(element).color), luminance(behind(element))];
  const contrast = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
  if (contrast < least) {
    [least, of] = [contrast, element.className || element.tagName];
  }
}
return { ground: luminance(behind(document.body)), least, of };
