// One picture, seen by several models: what is sent to the gateway, and how its answer is shown. Every number is its.

import { post } from "./api.js";
import { steps } from "./chart.js";
import { $, brief, bytes, count, el, fact, less, ms, rows, size } from "./dom.js";
import * as grid from "./grid.js";
import { SAMPLES, make } from "./samples.js";
import * as snippets from "./snippets.js";

const PROMPT = "Describe this picture.";
const SCALES = [2, 4, 6, 8, 11, 14, 18, 22, 27, 32, 38, 44, 50, 57, 64, 72, 80, 90, 100];
const WAIT_MS = 60;
const BUSY_MS = 1000;
// Reasons as the gateway names them, in words.
const REASONS = {
  conforming: "fits as it is", engine_cap: "the engine would shrink it", policy_cap: "the policy's cap", too_small: "smaller than one grid unit",
  cap_unreachable: "no size meets the cap", preserved: "sizes are preserved", adaptive: "what it shows needs no more", bucket: "the nearest bucket",
  detail: "the detail asked for", max_side: "the longest side allowed", token_budget: "the token budget", shared_budget: "the shared budget",
};

const state = { frame: null, models: [], file: null, address: null, answer: null, curve: null, asked: 0, timer: 0, busy: null };

const words = (reason) => REASONS[reason] ?? reason;
const first = () => state.answer?.rows[0] ?? null;

export function enter(frame) {
  const isNew = state.frame === null;
  state.frame = frame;
  if (isNew) setUp();
}

export function leave() { /* what is shown stays for whoever comes back */ }

function setUp() {
  const { choices } = state.frame;
  state.models = [choices.served[0] ?? choices.known[0]];
  $("tenant").replaceChildren(...choices.tenants.map(({ name }) => new Option(name, name)));
  $("detail").replaceChildren(new Option("not said", ""), ...choices.details.map((name) => new Option(name, name)));
  $("samples").replaceChildren(...SAMPLES.map((sample) => el("button", { type: "button", onclick: async () => take(await make(sample)) }, sample.name)));
  tasks();
  chips();
  $("tenant").addEventListener("change", () => { tasks(); look(); });
  for (const id of ["task", "detail"]) $(id).addEventListener("change", look);
  $("file").addEventListener("change", () => { if ($("file").files[0]) take($("file").files[0]); });
  $("add-model").addEventListener("click", addModel);
  $("model").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); addModel(); } });
  $("scale").addEventListener("input", () => { sized(); clearTimeout(state.timer); state.timer = setTimeout(slide, WAIT_MS); });
  $("show-grid").addEventListener("change", pictures);
  $("copy-curl").addEventListener("click", () => copy(snippets.curl, "curl"));
  $("copy-python").addEventListener("click", () => copy(snippets.python, "Python"));
  const box = document.documentElement;
  box.addEventListener("dragover", (event) => { event.preventDefault(); $("drop").classList.add("over"); });
  box.addEventListener("dragleave", () => $("drop").classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    $("drop").classList.remove("over");
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
  addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files][0];
    if (file && !$("playground").hidden) take(file);
  });
}

function tasks() {
  const tenant = state.frame.choices.tenants.find(({ name }) => name === $("tenant").value);
  $("task").replaceChildren(new Option(`${tenant.default_task} (default)`, ""), ...tenant.tasks.map((name) => new Option(name, name)));
}

function chips() {
  $("models").replaceChildren(...state.models.map((name, index) => el("li", {},
    el("span", { class: "name", title: name }, name),
    index === 0 ? null : el("button", { type: "button", "aria-label": `Deliver to ${name}`, title: "Deliver to this one", onclick: () => reorder(index) }, "↑"),
    state.models.length === 1 ? null : el("button", { type: "button", "aria-label": `Remove ${name}`, title: "Remove", onclick: () => remove(index) }, "×"))));
}

function reorder(index) { state.models.unshift(...state.models.splice(index, 1)); chips(); look(); }
function remove(index) { state.models.splice(index, 1); chips(); look(); }

function addModel() {
  const name = $("model").value.trim();
  if (!name || state.models.includes(name)) return;
  if (state.models.length >= state.frame.choices.models_limit) return problem(`At most ${state.frame.choices.models_limit} models side by side.`);
  state.models.push(name);
  $("model").value = "";
  chips();
  look();
}

function take(file) {
  state.file = file;
  if (state.address) URL.revokeObjectURL(state.address);
  state.address = URL.createObjectURL(file);
  $("picture-name").textContent = `${file.name || "pasted picture"}, ${bytes(file.size)}`;
  look();
}

function problem(text) {
  $("problem").hidden = !text;
  $("problem").textContent = text ?? "";
}

function query() {
  const asked = new URLSearchParams(state.models.map((name) => ["model", name]));
  for (const id of ["tenant", "task", "detail"]) if ($(id).value) asked.set(id, $(id).value);
  return asked;
}

async function look() {
  if (!state.file) return;
  state.busy?.abort();
  const busy = state.busy = new AbortController();
  $("result").setAttribute("aria-busy", "true");
  try {
    const limit = state.frame.choices.picture_limit_bytes;
    if (state.file.size > limit) throw new Error(`The page takes pictures up to ${bytes(limit)}.`);
    const answer = await post("picture", state.file, { query: query(), type: state.file.type || "application/octet-stream", signal: busy.signal });
    if (busy !== state.busy) return;
    state.answer = answer;
    problem(answer.rows.every((row) => row.error) ? answer.rows[0].message : null);
    $("scale").value = 100;
    show();
    curve();
  } catch (error) {
    if (error.code === "busy" && busy === state.busy) {
      setTimeout(() => { if (busy === state.busy) look(); }, BUSY_MS);
      return;
    }
    if (error.name !== "AbortError" && !state.frame.refused(error)) problem(error.message);
  } finally {
    if (busy === state.busy) $("result").setAttribute("aria-busy", "false");
  }
}

function show() {
  const priced = state.answer.rows.some((row) => !row.error);
  $("empty").hidden = true;
  $("shown").hidden = !priced;
  $("scale").disabled = !priced;
  for (const id of ["copy-curl", "copy-python"]) $(id).disabled = !priced;
  if (!priced) return;
  facts(first());
  table(state.answer.rows);
  pictures();
  explained();
  sized();
}

function facts(row) {
  if (row.error) return $("facts").replaceChildren(fact("Refused", row.error, row.message, "text bad"));
  const delivered = state.answer.delivered;
  const isScaled = Number($("scale").value) < 100;
  const why = row.why ?? {};
  const rule = why.key ? `${why.key} = ${typeof why.value === "number" ? count(why.value) : JSON.stringify(why.value)}, from ${why.source}` : "no rule shrank it";
  $("facts").replaceChildren(
    fact("Image tokens", count(row.tokens), row.tokens === row.tokens_original ? "unchanged" : `was ${count(row.tokens_original)}, ${less(row.tokens_original, row.tokens)}`),
    fact("KV cache", bytes(row.kv_bytes), row.prompt_tokens ? `${count(row.prompt_tokens)} positions of the prompt` : "not known"),
    fact("Prefill", ms(row.prefill_ms), row.is_calibrated ? "on its backend" : "rough, on one H100"),
    fact("Encoder", ms(row.encode_ms), row.patches ? `${count(row.patches)} patches` : "not known"),
    fact("Bytes", isScaled ? "–" : bytes(delivered ? delivered.bytes : row.bytes), isScaled ? "known at full size" : delivered ? `was ${bytes(row.bytes)}, ${less(row.bytes, delivered.bytes)}` : "sent as they came"),
    fact("Rule", words(why.reason ?? "as its vendor says"), rule, "text"));
}

function table(list) {
  rows($("compared"), list.map((row) => {
    const name = el("span", {}, row.model, el("span", { class: "dim small" }, row.closed ? " closed API" : row.served ? "" : " not served here"));
    if (row.error) return [name, ...Array(8).fill("–"), { child: el("span", { class: "bad" }, row.message) }];
    const [, down, across] = row.grid ?? [];
    const why = el("span", { title: row.note }, words(row.why?.reason ?? "as its vendor says"), row.why?.key ? el("span", { class: "dim small" }, ` ${row.why.key}`) : null,
      row.note ? el("span", { class: "dim small" }, ` · ${row.note}`) : null);
    return [name, size(row.target), across ? `${across} × ${down}` : "–", el("strong", { class: "tokens" }, count(row.tokens)), count(row.tokens_original),
      count(row.position_advance), bytes(row.kv_bytes), ms(row.prefill_ms), ms(row.encode_ms), why];
  }));
}

function pictures() {
  const row = first();
  if (!row || row.error || !state.answer.rows) return;
  const visible = $("show-grid").checked;
  const [width, height] = row.original;
  const [across, down] = row.target;
  const { delivered } = state.answer;
  const many = row.pictures > 1 ? `, the first of ${row.pictures}` : "";
  $("original-facts").textContent = `${size(row.original)} · ${row.format} · ${bytes(row.bytes)} · ${count(row.tokens_original)} tokens${many}`;
  $("delivered-facts").textContent = `${size(row.target)} · ${delivered ? `${delivered.format} · ${bytes(delivered.bytes)}` : "as it came"} · ${count(row.tokens)} tokens`;
  grid.draw($("original"), { source: state.address, width, height, alt: "The picture as it came", grid: row.grid_original, row, visible });
  grid.draw($("delivered"), { source: delivered?.data_url ?? state.address, width: across, height: down, alt: "The picture as it is delivered", grid: row.grid, row, visible });
  $("grid-words").textContent = grid.words(row);
}

function explained() {
  const told = state.answer.explained;
  const said = [];
  if (told.refused) said.push(`refused: ${told.refused.code} (${told.refused.status}) ${told.refused.message}`);
  for (const finding of told.findings ?? []) said.push(`finding: ${finding}`);
  if (told.policy) said.push(`policy: tenant ${told.policy.tenant}, task ${told.policy.task} (${told.policy.task_reason}), ${told.policy.mode}`);
  if (told.decision) said.push(`backend: ${told.decision.backend ?? "none"} (${told.decision.reason}), ${told.decision.known_images} of its images known there`, ...told.decision.trail.map((line) => `  ${line}`));
  if (told.estimate) said.push(`prompt: ${count(told.estimate.prompt_tokens)} tokens, of them ${count(told.estimate.image_tokens)} of images; ${count(told.estimate.output_tokens)} reserved for the answer`);
  if (told.budget?.limit_kv_tokens) said.push(`budget: ${count(told.budget.kv_tokens)} of ${count(told.budget.left_kv_tokens)} tokens left`);
  $("explained").replaceChildren(el("pre", { class: "plain" }, said.join("\n")));
}

function scaled(percent) {
  const [width, height] = first().original;
  return [Math.max(1, Math.round((width * percent) / 100)), Math.max(1, Math.round((height * percent) / 100))];
}

function sized() {
  const row = first();
  $("scale-size").textContent = row?.original ? `${size(scaled(Number($("scale").value)))} (${$("scale").value} %)` : "";
  if (state.curve) steps($("curve"), SCALES, state.curve, Number($("scale").value));
}

function priced(sizes) {
  const body = { sizes, models: state.models, tenant: $("tenant").value, task: $("task").value, detail: $("detail").value };
  return post("sizes", JSON.stringify(body));
}

async function curve() {
  if (!first()?.original) return;
  state.curve = null;
  try {
    const answer = await priced(SCALES.map(scaled));
    state.curve = state.models.map((_, index) => answer.sizes.map((list) => list[index]?.tokens ?? null));
    sized();
  } catch (error) { state.frame.refused(error); }
}

// The slider's answer: the counts of a picture of that size. Only the last one asked for is shown.
async function slide() {
  const percent = Number($("scale").value);
  const asked = state.asked += 1;
  if (percent === 100) { show(); return; }
  try {
    const answer = await priced([scaled(percent)]);
    if (asked !== state.asked) return;
    const list = answer.sizes[0];
    facts({ ...list[0], bytes: first().bytes });
    table(list);
    redraw(list[0]);
  } catch (error) { if (!state.frame.refused(error)) problem(error.message); }
}

function redraw(row) {
  if (row.error || !row.grid) return;
  const visible = $("show-grid").checked;
  const [width, height] = row.original;
  const [across, down] = row.target;
  grid.draw($("original"), { source: state.address, width, height, alt: "The picture at the chosen size", grid: row.grid_original, row, visible });
  grid.draw($("delivered"), { source: state.answer.delivered?.data_url ?? state.address, width: across, height: down, alt: "The picture as it would be delivered", grid: row.grid, row, visible });
  $("original-facts").textContent = `${size(row.original)} · ${count(row.tokens_original)} tokens`;
  $("delivered-facts").textContent = `${size(row.target)} · ${count(row.tokens)} tokens`;
  $("grid-words").textContent = grid.words(row);
}

async function copy(write, name) {
  const request = { model: state.models[0], task: $("task").value, detail: $("detail").value, file: state.file.name || "picture.png", type: state.file.type || "image/jpeg", prompt: PROMPT };
  const text = write(state.frame.choices, request);
  try {
    await navigator.clipboard.writeText(text);
    $("copied").textContent = `Copied as ${name}, ${brief(text.length)} characters.`;
  } catch {
    $("copied").replaceChildren("The browser keeps its clipboard; here it is:", el("textarea", { readonly: true, rows: 8, "aria-label": `Request as ${name}` }, text));
  }
}
