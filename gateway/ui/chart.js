// Small charts: an area over time, and steps of tokens over resolution.

import { brief, svg } from "./dom.js";

export function area(box, values, { kind = "", label }) {
  const most = Math.max(1, ...values);
  const width = 600, height = 84, top = 14;
  const at = (value, index) => [
    (index * width) / Math.max(1, values.length - 1),
    height - 2 - ((height - top - 2) * Math.max(0, value)) / most,
  ];
  const points = values.map(at).map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  const line = points.length > 1 ? `M${points.join("L")}` : "";
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  if (line) {
    drawing.append(
      svg("path", { d: `${line}L${width} ${height}L0 ${height}Z`, class: `area${kind}` }),
      svg("path", { d: line, class: `stroke${kind}`, "vector-effect": "non-scaling-stroke" }),
    );
  }
  box.replaceChildren(drawing);
}

// `series` holds one list of tokens for each model, over the same scales.
export function steps(box, scales, series, here) {
  const most = Math.max(1, ...series.flat().filter((value) => value !== null));
  const width = 300, height = 74, top = 12, foot = 4;
  const x = (scale) => (scale * width) / 100;
  const y = (value) => height - foot - ((height - top - foot) * value) / most;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Tokens by resolution, up to ${brief(most)}` });
  series.forEach((list, index) => {
    const points = list.map((value, at) => (value === null ? null : `${x(scales[at]).toFixed(1)} ${y(value).toFixed(1)}`)).filter(Boolean);
    if (points.length > 1) drawing.append(svg("path", { d: `M${points.join("L")}`, class: `stroke line-${index}`, "vector-effect": "non-scaling-stroke" }));
  });
  drawing.append(
    svg("line", { x1: x(here), x2: x(here), y1: 0, y2: height, class: "mark", "vector-effect": "non-scaling-stroke", "stroke-dasharray": "3 3" }),
    svg("text", { x: 2, y: 10, class: "axis" }, `${brief(most)} tokens`),
  );
  box.replaceChildren(drawing);
}
