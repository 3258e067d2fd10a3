"use strict";
// A figure opens in a window over the page; without this script the same links lead to the figure's own page.
// Interactive figures need plotly.min.js. Git keeps neither that nor provenance.js, and both are written together: without them, as in a
// clone that was never run, links lead to the images.
if (window.provenance) {
  for (const link of document.querySelectorAll("a[data-page]")) link.href = link.dataset.page;
}
const dialog = document.querySelector("dialog");
const links = [...document.querySelectorAll("a.picture")];
let shown = -1;

// places of the pictures that the filter leaves on the page
function visible() {
  return links.map((_, at) => at).filter((at) => links[at].offsetParent !== null);
}

function show(at) {
  const card = links[at].closest(".card");
  const page = links[at].getAttribute("href");
  shown = at;
  dialog.querySelector("h2").textContent = card.querySelector("h3").textContent;
  dialog.querySelector("p").textContent = card.querySelector("h3 + p").textContent;
  dialog.querySelector("a").href = page;
  const image = links[at].querySelector("img");  // twice as fine as the figure is large
  dialog.style.setProperty("--wide", `${Math.max(640, (image?.getAttribute("width") ?? 2400) / 2 + 60)}px`);
  dialog.style.setProperty("--high", `${(image?.getAttribute("height") ?? 1600) / 2 + 190}px`);
  const old = dialog.querySelector("iframe");
  const frame = document.createElement("iframe");  // a new one, so that the browser's Back leads away from this page, not through the figures
  frame.title = card.querySelector("h3").textContent;
  frame.src = page;
  old.replaceWith(frame);
  if (!dialog.open) dialog.showModal();
}

function step(by) {
  const all = visible();
  show(all[(all.indexOf(shown) + by + all.length) % all.length]);
}

links.forEach((link, at) => link.addEventListener("click", (event) => {
  if (event.metaKey || event.ctrlKey || event.shiftKey || !link.getAttribute("href").endsWith(".html")) return;
  event.preventDefault();
  show(at);
}));
dialog.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.name === "close") dialog.close();
  if (event.target.name === "back") step(-1);
  if (event.target.name === "on") step(1);
});
dialog.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});
dialog.addEventListener("close", () => {
  dialog.querySelector("iframe").removeAttribute("src");
  links[shown].focus();
});

// provenance.js, which git does not keep, tells what made the figures on this machine.
function words(tag, text, kind = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = kind;
  return element;
}

function told(list, facts) {
  for (const [name, text] of facts) list.append(words("dt", name), words("dd", text));
}

if (window.provenance) {
  const { here, notebooks, figures } = window.provenance;
  document.getElementById("here").textContent = here;
  for (const [name, run] of Object.entries(notebooks)) {
    const head = document.querySelector(`[data-notebook="${CSS.escape(name)}"]`);
    if (!head) continue;
    const facts = head.querySelector(".facts");
    facts.append(" ", words("span", run.said, run.good ? "state" : "state bad"));
    if (run.error) facts.after(words("pre", run.error, "error"));
  }
  for (const [name, facts] of Object.entries(figures)) {
    const list = document.querySelector(`[data-figure="${CSS.escape(name)}"] dl`);
    if (!list) continue;
    list.querySelectorAll(".unknown").forEach((element) => element.remove());
    told(list, facts);
  }
}
