// The admin port as the page sees it: JSON answers, typed failures, one stream. The token stays in this tab.

const KEY = "vlm-gateway admin token";

export class Failure extends Error {
  constructor(status, told) {
    super(told?.message ?? `The gateway answered ${status}.`);
    this.status = status;
    this.code = told?.code ?? "unknown";
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

function headers(more = {}) {
  const found = token.get();
  return found ? { Authorization: `Bearer ${found}`, ...more } : more;
}

async function answered(response) {
  if (response.ok) return response;
  let told = null;
  try { told = (await response.json()).error; } catch { /* no JSON: the status says enough */ }
  throw new Failure(response.status, told);
}

export async function get(path, query = {}) {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  const response = await fetch(`api/${path}?${words}`, { headers: headers() });
  return (await answered(response)).json();
}

export async function post(path, body, { query = null, type = "application/json", signal = null } = {}) {
  const address = query === null ? `api/${path}` : `api/${path}?${query}`;
  const response = await fetch(address, { method: "POST", body, headers: headers({ "Content-Type": type }), signal });
  return (await answered(response)).json();
}

// Calls `take` with every event until `signal` aborts or the stream ends.
export async function stream(path, take, signal) {
  const response = await answered(await fetch(`api/${path}`, { headers: headers(), signal }));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value;
    const events = waiting.split("\n\n");
    waiting = events.pop();
    for (const event of events) if (event.startsWith("data: ")) take(JSON.parse(event.slice(6)));
  }
}
