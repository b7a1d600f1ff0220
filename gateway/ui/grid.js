// A picture with the grid an engine lays over it. The server says how many patches; here they are only drawn.

import { el, svg } from "./dom.js";

const MOST_LINES = 400;

function lines(columns, rows, step) {
  const parts = [];
  for (let x = step; x < columns; x += step) parts.push(`M${x} 0V${rows}`);
  for (let y = step; y < rows; y += step) parts.push(`M0 ${y}H${columns}`);
  return parts.join("");
}

function path(d, kind, width) {
  return svg("path", { d, class: kind, "stroke-width": width, "vector-effect": "non-scaling-stroke" });
}

// What one square of the drawn grid is, in words.
export function words(row) {
  if (!row?.grid) return "";
  const [, down, across] = row.grid;
  const said = [`${across} × ${down} patches`];
  if (row.patches_a_token > 1) said.push(`${row.patches_a_token} × ${row.patches_a_token} of them a token (white lines)`);
  if (row.patches_a_tile > 0) said.push("cut into tiles (orange lines)");
  return said.join(", ");
}

function overlay(grid, row) {
  const [, down, across] = grid;
  const merge = Math.max(1, row.patches_a_token || 1);
  const token = Math.max(across, down) / merge > MOST_LINES ? merge * 4 : merge;
  const drawing = svg("svg", { viewBox: `0 0 ${across} ${down}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  if (merge > 1 && across <= 120) drawing.append(path(lines(across, down, 1), "grid-fine", 0.5));
  const tokens = lines(across, down, token);
  drawing.append(path(tokens, "grid-edge", 1.3), path(tokens, "grid-line", 0.7));
  const tile = row.patches_a_tile;
  if (tile > 0 && (across > tile || down > tile)) drawing.append(path(lines(across, down, tile), "grid-tile", 2));
  return drawing;
}

// Draws into `frame`: the picture (or words where the browser cannot show it), and the grid over it.
export function draw(frame, { source, width, height, alt, grid, row, visible }) {
  frame.style.aspectRatio = `${width} / ${height}`;
  frame.style.width = `min(100%, calc(60vh * ${width / height}))`;
  const picture = el("img", { src: source, alt, draggable: "false" });
  picture.addEventListener("error", () => {
    picture.replaceWith(el("p", { class: "no-preview" }, "Browsers cannot show this format."));
  });
  frame.replaceChildren(picture);
  if (visible && grid) frame.append(overlay(grid, row));
}
