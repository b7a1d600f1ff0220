// Elements and numbers for people. No markup is ever made from text: everything from outside is a text node.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value) => (value === null || value === undefined ? "–" : whole.format(value));
export const brief = (value) => (Math.abs(value) < 10000 ? whole.format(Math.round(value)) : short.format(value));

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  let amount = Math.abs(value);
  while (amount >= 1000 && at < units.length - 1) { amount /= 1000; at += 1; }
  const digits = at === 0 || amount >= 100 ? 0 : 1;
  return `${value < 0 ? "−" : ""}${amount.toFixed(digits)} ${units[at]}`;
}

export const ms = (value) => (value === null || value === undefined ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`);
export const size = (pair) => (pair ? `${pair[0]} × ${pair[1]}` : "–");
export const share = (part, all) => (all > 0 ? `${Math.round((100 * part) / all)} %` : "–");

export function less(was, is) {
  if (!was || is === was) return "unchanged";
  const percent = Math.round((100 * Math.abs(was - is)) / was);
  return is < was ? `−${percent} %` : `+${percent} %`;
}

export function fact(name, value, sub = null, kind = null) {
  return el("div", {}, el("dt", {}, name), el("dd", { class: kind }, value, sub === null ? null : el("span", { class: "sub" }, sub)));
}

// Replaces a table's rows; cells are text or nodes, labels are for narrow screens.
export function rows(table, list) {
  const labels = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  table.tBodies[0].replaceChildren(...list.map((cells) => el("tr", {}, ...cells.map((cell, at) => {
    const given = cell instanceof Node || typeof cell === "string" ? { child: cell } : cell;
    const attributes = at === 0 ? { scope: "row" } : { "data-label": labels[at], class: given.class ?? null };
    return el(at === 0 ? "th" : "td", attributes, given.child);
  }))));
}

export function meter(ratio, label) {
  const part = Math.max(0, Math.min(1, ratio));
  return el("span", { class: "meter", role: "img", "aria-label": label },
    svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { width: 100 * part, height: 10 })));
}
