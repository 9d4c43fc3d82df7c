"use strict";
// Sends the token with every request, puts the server's answers in place, and moves the slider.
const main = document.getElementById("main");
const told = document.getElementById("told");
const place = new URLSearchParams(location.hash.slice(1));
const token = place.get("token") || "";
let latest = 0;
const SILENT = "<p class=\"error\">The app does not answer; is it still running?</p>";

function ask(url, options = {}) {
  const headers = { ...options.headers, "X-Pfunnel-Token": token };
  return fetch(url, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
}

function fill(target, html) {
  const part = new DOMParser().parseFromString(html, "text/html").body;
  target.replaceChildren(...part.childNodes);
}

// The place in the address: a reload finds the same desk. The token stays in the fragment, which no server sees.
function remember() {
  const desk = main.querySelector("[data-desk]");
  if (!desk) return;
  place.set("desk", desk.dataset.desk);
  place.set("screen", desk.dataset.screen);
  history.replaceState(null, "", "#" + place);
}

async function swap(url, options, target = main) {
  const mine = ++latest;
  main.setAttribute("aria-busy", "true");
  try {
    const answer = await ask(url, options);
    const html = await answer.text();
    if (mine !== latest) return answer.ok;
    told.replaceChildren();
    fill(answer.ok ? target : told, html);
    if (answer.ok && target === main) settle();
    return answer.ok;
  } catch {
    fill(told, SILENT);
    return false;
  } finally {
    main.removeAttribute("aria-busy");
  }
}

function settle() {
  remember();
  const head = main.querySelector("h1");
  if (head) {
    document.title = head.textContent + " – privacyfunnel";
    head.focus();
  }
  const work = main.querySelector("[data-follow]");
  if (work) follow(work);
}

// One answer tells some lines, then it is asked again: a browser has few connections for a server.
async function follow(work) {
  const text = work.querySelector("#work-text");
  const bar = work.querySelector("#work-bar");
  while (work.isConnected) {
    const answer = await ask(work.dataset.follow).catch(() => null);
    if (!answer || !answer.ok) return fill(told, answer ? await answer.text() : SILENT);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read().catch(() => ({ done: true }));
      if (done || !work.isConnected) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines.filter(Boolean)) {
        const step = JSON.parse(line);
        if (step.end && work.dataset.ended) return ended(work, text, bar);
        if (step.end) return work.isConnected && swap(step.end);
        text.textContent = [step.text, step.time].filter(Boolean).join(" · ");
        if (step.total) bar.max = step.total, bar.value = Math.min(step.done, step.total);
        else bar.removeAttribute("value");
      }
    }
    reader.cancel().catch(() => null);
  }
}

// Nothing is swapped by itself where somebody may be filling in a form.
function ended(work, text, bar) {
  text.textContent = work.dataset.ended;
  bar.remove();
  for (const button of work.querySelectorAll("button")) button.hidden = !button.hidden;
}

function post(form, more = {}) {
  const values = form ? Object.fromEntries(new FormData(form)) : {};
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...values, ...more }) };
}

let sliding = false;
async function slide(slider) {
  if (sliding) return;
  sliding = true;
  const at = slider.value;
  const stop = document.getElementById("stop");
  if (await swap(slider.dataset.slide, post(null, { at }), stop)) {
    const here = stop.querySelector(".place").dataset;
    const mark = document.getElementById("here");
    mark.setAttribute("cx", here.x);
    mark.setAttribute("cy", here.y);
    slider.setAttribute("aria-valuetext", here.text);
  }
  sliding = false;
  if (slider.isConnected && slider.value !== at) slide(slider);
}

document.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  if (form.dataset.post) return swap(form.dataset.post, post(form));
  const file = form.elements.file.files[0];
  if (!file) return;
  if (file.size > Number(form.dataset.most)) {
    const said = document.createElement("p");
    said.className = "error";
    said.textContent = form.dataset.large;
    return told.replaceChildren(said);
  }
  const ending = (/\.[a-z]+$/i.exec(file.name) || [""])[0];
  swap(form.dataset.upload, { method: "POST", headers: { "X-Pfunnel-Ending": ending }, body: file });
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.get) swap(button.dataset.get);
  if (button.dataset.post) swap(button.dataset.post, post(null));
  // Roles that were changed are kept before the next screen.
  if (button.dataset.save && (await swap(button.form.dataset.post, post(button.form)))) swap(button.dataset.save);
});

document.addEventListener("input", (event) => {
  if (event.target.dataset.slide) slide(event.target);
});

async function begin() {
  const kept = place.get("desk") && `/desk/${encodeURIComponent(place.get("desk"))}/${place.get("screen") || "look"}`;
  if (kept && (await swap(kept))) return;
  place.delete("desk");
  swap("/start");
}
begin();
