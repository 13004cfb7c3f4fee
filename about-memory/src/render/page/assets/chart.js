// How the sums of a program went from moment to moment: lines, and the same as a table.
"use strict";

const SERIES = ["resident", "heap-allocated", "explicit", "heap-unclassified"];
const MARGIN = { left: 92, right: 16, top: 12, bottom: 28 };

function drawChart(host, moments, bytes) {
  const points = moments.map(({ figures }) => figures ?? {});
  const width = Math.max(320, host.clientWidth);
  const height = 320;
  const greatest = Math.max(1, ...points.flatMap(point => SERIES.map(name => point[name] ?? 0)));
  const x = index => MARGIN.left + (moments.length < 2 ? 0.5 : index / (moments.length - 1)) *
    (width - MARGIN.left - MARGIN.right);
  const y = amount => height - MARGIN.bottom - (Math.max(0, amount) / greatest) * (height - MARGIN.top - MARGIN.bottom);
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": "Memory from moment to moment; the table below has the numbers" });
  for (let tick = 0; tick <= 4; tick++) {
    const amount = (greatest * tick) / 4;
    drawing.append(
      svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(amount), y2: y(amount) }),
      svg("text", { class: "axis", x: MARGIN.left - 6, y: y(amount) + 4, "text-anchor": "end" },
        formatAmount(amount, Unit.bytes, bytes === "bytes" ? "bytes" : "auto")));
  }
  SERIES.forEach((name, number) => {
    const known = points.flatMap((point, index) => (point[name] == null ? [] : [[x(index), y(point[name])]]));
    drawing.append(svg("polyline", { class: `line series${number}`, points: known.map(point => point.join()).join(" ") }),
      ...known.map(([cx, cy]) => svg("circle", { class: `dot series${number}`, cx, cy, r: 3.5 })));
  });
  drawing.append(
    svg("text", { class: "axis", x: MARGIN.left, y: height - 8 }, whenOf(moments[0])),
    svg("text", { class: "axis", x: width - MARGIN.right, y: height - 8, "text-anchor": "end" }, whenOf(moments.at(-1))));
  const legend = element("ul", { className: "legend" },
    ...SERIES.map((name, number) => element("li", { className: `series${number}` }, name)));
  host.replaceChildren(drawing, legend, figuresTable(moments, points, bytes));
}

function figuresTable(moments, points, bytes) {
  const cell = amount => element("td", {}, amount == null ? "–" : formatAmount(amount, Unit.bytes, bytes));
  return element("table", {},
    element("thead", {}, element("tr", {}, ...["Moment", "Time", ...SERIES].map(name => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...moments.map((moment, index) => element("tr", {},
      element("th", { scope: "row" }, nameOf(moment)), element("td", {}, whenOf(moment)),
      ...SERIES.map(name => cell(points[index][name]))))));
}

function whenOf(moment) {
  return moment?.taken == null ? "" : new Date(moment.taken).toLocaleTimeString();
}
