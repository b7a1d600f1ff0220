// The gateway as it works: one look a second, drawn whole. Paused, the last look stays to be read.

import { stream } from "./api.js";
import { area } from "./chart.js";
import { $, brief, bytes, count, el, fact, meter, ms, rows, share, svg } from "./dom.js";

const SECONDS = 120;
const KEPT = 60;
const AGAIN_MS = 2000;
const COLOURS = ["#5b8def", "#2f9e6e", "#d9822b", "#9a5bd0", "#c2497a", "#3aa6b9", "#8a93a3"];

const state = { frame: null, leaving: null, paused: false, decisions: [], ready: false };

export function enter(frame) {
  state.frame = frame;
  if (!state.ready) {
    state.ready = true;
    $("pause").addEventListener("click", () => {
      state.paused = !state.paused;
      $("pause").setAttribute("aria-pressed", String(state.paused));
      $("pause").textContent = state.paused ? "Go on" : "Pause";
    });
  }
  state.leaving = new AbortController();
  watch(state.leaving.signal);
}

export function leave() {
  state.leaving?.abort();
  state.frame.say("connected", "good");
}

async function watch(signal) {
  while (!signal.aborted) {
    state.decisions = [];
    try {
      await stream("live", take, signal);
    } catch (error) {
      if (signal.aborted || state.frame.refused(error)) return;
      state.frame.say(error.code === "busy" ? "too many watch" : "not reachable", "bad");
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function take(look) {
  state.decisions = [...look.decisions.reverse(), ...state.decisions].slice(0, KEPT);
  state.frame.say(look.draining ? "draining" : "live", look.draining ? "bad" : "good");
  if (state.paused) return;
  facts(look);
  charts(look);
  backends(look.backends);
  tenants(look.tenants);
  decisions();
}

// Seconds without a request are not told; they are zeros here. The second that runs now is left out.
function series(look, column) {
  const told = new Map(look.seconds.map((row) => [row[0], row[column]]));
  const now = Math.floor(Date.now() / 1000);
  return Array.from({ length: SECONDS }, (_, index) => told.get(now - SECONDS + index) ?? 0);
}

const recent = (values) => values.slice(-5).reduce((sum, value) => sum + value, 0) / 5;

function facts(look) {
  const { sums, pool, caches } = look;
  const saved = sums.image_tokens_asked - sums.image_tokens_sent;
  const bad = sums.failed + sums.shed + sums.rejected;
  $("live-facts").replaceChildren(
    fact("Requests per second", recent(series(look, 1)).toFixed(1), `${brief(sums.requests)} in all, ${brief(bad)} not served`),
    fact("Image tokens saved", brief(saved), `${share(saved, sums.image_tokens_asked)} of ${brief(sums.image_tokens_asked)}`),
    fact("Bytes saved", bytes(sums.image_bytes_in - sums.image_bytes_out), `${brief(sums.images)} images`),
    fact("In flight", count(look.inflight), look.inflight ? `oldest ${look.oldest_s.toFixed(1)} s` : `${look.waiting_for_budget} wait for budget`),
    fact("Image workers", `${pool.busy} / ${pool.workers}`, `${pool.queued} queued, ${pool.restarts} restarted, ${bytes(pool.memory_bytes)}`),
    fact("Prepared images kept", bytes(caches.prepared_bytes), `${count(caches.prepared_entries)} prepared, ${count(caches.known_images)} known`));
  $("live-words").textContent = `version ${look.version}${look.reload_ok ? "" : ", the last reload failed"}${look.store_degraded ? ", the shared store is away" : ""}`;
}

function charts(look) {
  const requests = series(look, 1), tokens = series(look, 3);
  area($("chart-requests"), requests, { label: `Requests per second over two minutes, at most ${Math.max(...requests)}` });
  area($("chart-tokens"), tokens, { kind: "-2", label: `Image tokens saved per second over two minutes, at most ${Math.max(...tokens)}` });
}

function condition(backend) {
  if (!backend.healthy) return ["down", "bad"];
  if (backend.breaker && backend.breaker !== "closed") return [`breaker ${backend.breaker.replace("_", " ")}`, "warn"];
  if (backend.draining) return ["draining", "warn"];
  if (backend.resting) return ["resting", "warn"];
  return backend.ramp < 1 ? [`starting, ${Math.round(backend.ramp * 100)} %`, "warn"] : ["up", "good"];
}

function backends(list) {
  rows($("backends"), list.map((backend) => {
    const [word, kind] = condition(backend);
    const sums = backend.sums ?? { requests: 0, images: 0, images_known: 0, prompt_tokens: 0, cached_tokens: 0 };
    const kv = backend.kv_ratio;
    const used = kv === null ? "–" : el("span", {}, meter(kv, `${Math.round(kv * 100)} percent`), `${Math.round(kv * 100)} %`);
    return [
      el("span", {}, backend.name, el("span", { class: "dim small" }, ` ${backend.engine}${backend.version ? ` ${backend.version}` : ""}${backend.role === "full" ? "" : ` ${backend.role}`}`)),
      el("span", { class: kind }, word),
      count(backend.inflight),
      `${backend.running ?? "–"} / ${backend.waiting ?? "–"}`,
      used,
      el("span", {}, meter(sums.images ? sums.images_known / sums.images : 0, `${sums.images_known} of ${sums.images}`), `${brief(sums.images_known)} of ${brief(sums.images)}`),
      el("span", {}, meter(sums.prompt_tokens ? sums.cached_tokens / sums.prompt_tokens : 0, share(sums.cached_tokens, sums.prompt_tokens)), share(sums.cached_tokens, sums.prompt_tokens)),
      brief(sums.requests),
    ];
  }));
}

function tenants(list) {
  rows($("tenants"), list.map((tenant) => {
    const limit = tenant.limit_tokens;
    return [tenant.name, count(tenant.reserved_tokens), limit === null ? "none" : count(limit),
      limit === null ? "–" : el("span", {}, meter(tenant.reserved_tokens / limit, share(tenant.reserved_tokens, limit)), share(tenant.reserved_tokens, limit))];
  }));
}

function decisions() {
  const list = $("decisions");
  const known = new Map([...list.children].map((item) => [item.dataset.number, item]));
  list.replaceChildren(...state.decisions.map((told) => known.get(String(told.number)) ?? decision(told)));
}

function tokensOf(told) {
  if (!told.images) return "text";
  const was = told.images.tokens_original, is = told.estimate?.image ?? was;
  return was === is ? `${brief(is)} tok` : `${brief(was)} → ${brief(is)}`;
}

function decision(told) {
  const time = new Date(told.time * 1000).toTimeString().slice(0, 8);
  const kind = told.outcome === "ok" ? "good" : told.outcome === "client_gone" ? "warn" : "bad";
  return el("li", { "data-number": told.number }, el("details", {},
    el("summary", {},
      el("span", { class: "dim" }, time),
      el("span", { class: kind }, String(told.status ?? "–")),
      el("span", {}, `${told.tenant ?? "–"}${told.task ? ` / ${told.task}` : ""}`),
      el("span", {}, told.backend ? `${told.backend} ` : told.code ?? told.dialect, told.decision ? el("span", { class: "dim" }, told.decision) : null),
      el("span", { class: "end" }, tokensOf(told)),
      el("span", { class: "end dim" }, ms(told.total_ms))),
    stages(told.stages_ms),
    el("pre", {}, trail(told))));
}

function stages(times) {
  const list = Object.entries(times ?? {});
  const all = list.reduce((sum, [, time]) => sum + time, 0) || 1;
  let at = 0;
  return el("div", { class: "stages", role: "img", "aria-label": list.map(([name, time]) => `${name} ${time.toFixed(1)} ms`).join(", ") },
    svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none" }, ...list.map(([, time], index) => {
      const part = svg("rect", { x: at, width: (100 * time) / all, height: 10, fill: COLOURS[index % COLOURS.length] });
      at += (100 * time) / all;
      return part;
    })));
}

function trail(told) {
  const said = [`request ${told.request_id}`, `model ${told.model ?? "–"}, ${told.dialect}${told.stream ? ", streamed" : ""}${told.shadow ? ", shadow" : ""}`,
    `stages ${Object.entries(told.stages_ms ?? {}).map(([name, time]) => `${name} ${time.toFixed(1)}`).join(" · ")} ms`];
  if (told.task_reason) said.push(`task: ${told.task_reason}`);
  if (told.images) said.push(`images: ${bytes(told.images.bytes_in)} → ${bytes(told.images.bytes_out)}; ${Object.keys(told.images.changes).join(", ") || "untouched"}`);
  if (told.image_ids) said.push(`ids: ${told.image_ids.sent} sent, ${told.image_ids.alone} of them without bytes`);
  if (told.code) said.push(`${told.code}${told.rule ? ` by ${told.rule}` : ""}${told.detail ? `: ${told.detail}` : ""}`);
  if (told.trail.length) said.push("decision:", ...told.trail.map((line) => `  ${line}`));
  return said.join("\n");
}
