// What holds for whom, and where it was written; and what a reload would say of a file that is only pasted.

import { get, post } from "./api.js";
import { $, el, rows } from "./dom.js";

const WAIT_MS = 200;
const state = { frame: null, found: null, timer: 0 };

export function enter(frame) {
  const isNew = state.frame === null;
  state.frame = frame;
  if (isNew) setUp();
  ask();
}

export function leave() { clearTimeout(state.timer); }

function setUp() {
  const { choices } = state.frame;
  $("policy-tenant").replaceChildren(...choices.tenants.map(({ name }) => new Option(name, name)));
  tasks();
  $("policy-tenant").addEventListener("change", () => { tasks(); ask(); });
  $("policy-task").addEventListener("change", ask);
  $("policy-model").addEventListener("input", () => { clearTimeout(state.timer); state.timer = setTimeout(ask, WAIT_MS); });
  $("policy-find").addEventListener("input", show);
  $("policy-own").addEventListener("change", show);
  $("policy-form").addEventListener("submit", (event) => event.preventDefault());
  $("check-form").addEventListener("submit", (event) => { event.preventDefault(); check(); });
}

function tasks() {
  const tenant = state.frame.choices.tenants.find(({ name }) => name === $("policy-tenant").value);
  $("policy-task").replaceChildren(...tenant.tasks.map((name) => new Option(name, name, name === tenant.default_task, name === tenant.default_task)));
}

async function ask() {
  try {
    state.found = await get("policy", { tenant: $("policy-tenant").value, task: $("policy-task").value, model: $("policy-model").value.trim() });
  } catch (error) {
    if (state.frame.refused(error)) return;
    state.found = null;
    $("policy-words").textContent = error.message;
    rows($("policy-values"), []);
    return;
  }
  show();
}

// What stands between backticks is code.
const marked = (text) => text.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));

function show() {
  const { found } = state;
  if (!found) return;
  const wanted = $("policy-find").value.trim().toLowerCase();
  const values = found.values.filter((each) => !($("policy-own").checked && each.built_in)
    && (!wanted || `${each.key} ${each.value} ${each.source}`.toLowerCase().includes(wanted)))
    .sort((one, other) => one.built_in - other.built_in);
  $("policy-words").textContent = `${found.mode === "shadow" ? "Shadow: computed and reported, nothing changed. " : ""}Task ${found.task}; version ${found.version}; files: ${found.files.join(", ") || "none, the built-in default"}. ${values.length} of ${found.values.length} values.`;
  rows($("policy-values"), values.map((each) => [
    el("code", {}, each.key),
    { child: each.built_in ? each.value : el("strong", {}, each.value) },
    { child: each.source, class: each.built_in ? "source dim" : "source" },
    { child: el("span", {}, ...marked(each.summary)), class: "dim small" },
  ]));
}

async function check() {
  try {
    verdict(await post("check", $("pasted").value, { type: "text/plain" }));
  } catch (error) {
    if (!state.frame.refused(error)) $("verdict").replaceChildren(el("p", { class: "error" }, error.message));
  }
}

function verdict(told) {
  if (!told.ok) {
    $("verdict").replaceChildren(
      el("p", { class: "error" }, `${told.problems.length} ${told.problems.length === 1 ? "mistake" : "mistakes"}; a reload would change nothing.`),
      el("ul", { class: "problems" }, ...told.problems.map((each) => el("li", {},
        el("code", {}, `${each.file}:${each.line}${each.path ? ` ${each.path}` : ""}`), ` ${each.message}`))));
    return;
  }
  const who = told.tenant ?? "everybody";
  const effect = told.changes_count === null ? "It has too many tasks and patterns of models to tell here what it would change."
    : told.changes_count ? `It would change ${told.changes_count} values:` : "It would change nothing.";
  const head = el("p", { class: "good" }, `Valid, for ${who}. ${effect}`);
  const list = told.changes.map((each) => el("li", {}, el("code", { class: "dim" }, `${each.tenant}/${each.task}${each.model ? `/${each.model}` : ""} `),
    each.key ? `${each.key}: ${each.old} → ${each.new}` : each.new === null ? "task removed" : "task added"));
  $("verdict").replaceChildren(head, el("ul", { class: "changes" }, ...list));
}
