// The frame of the page: which part is shown, who is let in, light or dark.

import { get, token } from "./api.js";
import { $ } from "./dom.js";
import * as live from "./live.js";
import * as playground from "./playground.js";
import * as policies from "./policies.js";

const PAGES = { playground, live, policies };
const THEME = "vlm-gateway theme";
let choices = null;
let shown = null;

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function dress(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  $("theme").setAttribute("aria-pressed", String(isDark()));
}

export function say(text, kind = "") {
  $("state").textContent = text;
  $("state").className = `pill ${kind}`;
}

function show(name) {
  if (shown === name) return;
  if (shown && PAGES[shown]) PAGES[shown].leave();
  shown = name;
  for (const id of ["login", ...Object.keys(PAGES)]) $(id).hidden = id !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (PAGES[name]) {
    document.title = `${name[0].toUpperCase()}${name.slice(1)} · vlm-gateway`;
    PAGES[name].enter({ choices, say, refused });
  } else {
    $("token").focus();
  }
}

function route() {
  if (choices === null) return;
  const name = location.hash.slice(1);
  if (name === "main") return;
  show(name in PAGES ? name : "playground");
}

// What every part does with a failure: a token that holds no longer leads to the door.
function refused(error) {
  if (error.status !== 401) return false;
  choices = null;
  token.forget();
  $("leave").hidden = true;
  say("locked");
  show("login");
  return true;
}

async function open() {
  try {
    if (!(await get("door")).open) {
      $("login-error").textContent = token.get() ? "This is not the admin token." : "";
      refused({ status: 401 });
      return;
    }
    choices = await get("choices");
  } catch (error) {
    if (!refused(error)) say("not reachable", "bad");
    return;
  }
  $("leave").hidden = token.get() === null;
  const names = [...new Set([...choices.served, ...choices.known])];
  $("model-names").replaceChildren(...names.map((name) => new Option(name, name)));
  say("connected", "good");
  route();
}

$("theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  localStorage.setItem(THEME, theme);
  dress(theme);
});
$("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  $("login-error").textContent = "";
  token.set($("token").value);
  $("token").value = "";
  open();
});
$("leave").addEventListener("click", () => refused({ status: 401 }));
addEventListener("hashchange", route);
dress(localStorage.getItem(THEME));
open();
