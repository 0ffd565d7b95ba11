// What moves in the report. Without this script all pictures and tables are there, at rest.
"use strict";

const byId = (id) => document.getElementById(id);

// -- tables: a button in every heading that can be sorted by ------------------------------------------------------------------

function sortBy(heading) {
  const row = heading.parentElement;
  const column = [...row.children].indexOf(heading);
  const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const body = heading.closest("table").tBodies[0];
  const key = (line) => line.cells[column].dataset.value ?? line.cells[column].textContent;
  const compare = (a, b) => (isNaN(key(a)) || isNaN(key(b)) ? key(a).localeCompare(key(b)) : key(a) - key(b));
  for (const other of row.querySelectorAll("[data-sort]")) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
}

for (const heading of document.querySelectorAll("th[data-sort]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  button.addEventListener("click", () => sortBy(heading));
  heading.setAttribute("aria-sort", "none");
  heading.append(button);
}

// -- tables: a field that searches, a button that saves --------------------------------------------------------------------------

const cellText = (cell) => cell.dataset.value ?? cell.textContent.trim();

// A field with a comma, a quote or a new line stands in quotes; one that a spreadsheet would compute gets an apostrophe in front.
function csvField(text) {
  const safe = /^[=+@\t\r-]/.test(text) && isNaN(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(table) {
  const kept = [...table.tHead.rows[0].cells].map((head) => head.querySelector(".unseen") === null);
  const rows = [table.tHead.rows[0], ...table.tBodies[0].rows].filter((row) => !row.hidden);
  return rows.map((row) => [...row.cells].filter((_, i) => kept[i]).map((cell) => csvField(cellText(cell))).join(",") + "\r\n").join("");
}

function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function search(table, text, told) {
  const wanted = text.trim().toLocaleLowerCase();
  const rows = [...table.tBodies[0].rows];
  for (const row of rows) row.hidden = !row.textContent.toLocaleLowerCase().includes(wanted);
  told.textContent = wanted ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
}

for (const table of document.querySelectorAll("table")) {
  const caption = table.caption.textContent;
  const told = document.createElement("output");
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Search";
  field.setAttribute("aria-label", `Search: ${caption}`);
  field.addEventListener("input", () => search(table, field.value, told));
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Download CSV";
  button.setAttribute("aria-label", `Download CSV: ${caption}`);
  button.addEventListener("click", () => save(`${table.caption.id}.csv`, csvOf(table)));
  const tools = document.createElement("div");
  tools.className = "tools";
  tools.append(field, button, told);
  table.closest(".scroll").before(tools);
}

// -- the items: one component alone, one item by name or by pointing ------------------------------------------------------------

function explore(items) {
  const picture = byId("items-plane");
  const paths = [...picture.querySelectorAll(".items")];
  const dots = paths.flatMap((path) => [...path.getAttribute("d").matchAll(/M(\S+) (\S+)h0/g)].map(([, x, y]) => [Number(x), Number(y)]));
  const ring = byId("ring");
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const words = (i) =>
    [items.name?.[i], `component ${items.component[i]}`, items.margin && `margin ${items.margin[i]}`].filter(Boolean).join(", ");

  function mark(i) {
    ring.setAttribute("visibility", i < 0 ? "hidden" : "visible");
    if (i < 0) return;
    ring.setAttribute("cx", dots[i][0]);
    ring.setAttribute("cy", dots[i][1]);
  }

  function nearest(event) {
    const box = picture.getBoundingClientRect();
    const scale = picture.viewBox.baseVal.width / box.width;
    const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    let [best, least] = [-1, (14 * scale) ** 2];
    dots.forEach(([a, b], i) => {
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    });
    return best;
  }

  function point(event) {
    const i = nearest(event);
    mark(i);
    tip.hidden = i < 0;
    if (i < 0) return;
    tip.textContent = words(i);
    tip.style.top = `${event.pageY + 14}px`;
    tip.style.left = `${Math.max(4, Math.min(event.pageX + 12, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
  }

  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerdown", point);
  picture.addEventListener("pointerleave", () => {
    mark(-1);
    tip.hidden = true;
  });

  const find = byId("find");
  if (find) {
    const names = items.name.map((name) => name.toLocaleLowerCase());
    find.addEventListener("input", () => {
      const wanted = find.value.trim().toLocaleLowerCase();
      const exact = names.indexOf(wanted);
      const i = wanted ? (exact >= 0 ? exact : names.findIndex((name) => name.includes(wanted))) : -1;
      mark(i);
      byId("found").textContent = i < 0 ? (wanted ? "none is shown with that name" : "") : words(i);
    });
    find.closest(".controls").hidden = false;
  }

  const lines = [...picture.closest("figure").querySelectorAll(".legend li")];
  const buttons = lines.map((line) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.append(...line.childNodes);
    line.append(button);
    return button;
  });
  lines.forEach((line, j) =>
    buttons[j].addEventListener("click", () => {
      const alone = buttons[j].getAttribute("aria-pressed") !== "true";
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(alone && i === j)));
      picture.toggleAttribute("data-only", alone);
      for (const drawn of picture.querySelectorAll("[data-component]"))
        drawn.classList.toggle("only", drawn.dataset.component === line.dataset.component);
    }),
  );
}

// -- the annealing: a slider over the temperatures ----------------------------------------------------------------------------

function animate(frames) {
  const slider = byId("temperature");
  const play = byId("play");
  const dots = document.querySelectorAll("#plane .dot");
  const trails = document.querySelectorAll("#plane .trail");
  const last = frames.counts.length - 1;
  let timer = 0;

  function show(i) {
    dots.forEach((dot, j) => {
      const [x, y] = frames.points[j][i];
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", y);
      dot.setAttribute("r", frames.radius[j][i]);
    });
    trails.forEach((trail, j) => trail.setAttribute("points", frames.points[j].slice(0, i + 1).join(" ")));
    byId("cursor").setAttribute("transform", `translate(${frames.x[i] - frames.x[frames.first]} 0)`);
    byId("at-beta").textContent = frames.betas[i];
    byId("at-count").textContent = frames.counts[i];
    byId("at-energy").textContent = frames.energies[i];
    byId("at-distortion").textContent = frames.distortions[i];
    slider.setAttribute("aria-valuetext", frames.captions[i]);
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  }

  function step() {
    slider.value = Number(slider.value) + 1;
    show(Number(slider.value));
    if (Number(slider.value) === last) stop();
  }

  function start() {
    if (Number(slider.value) === last) slider.value = 0;
    show(Number(slider.value));
    timer = setInterval(step, Math.max(80, 6000 / last));
    play.textContent = "Pause";
  }

  slider.addEventListener("input", () => {
    stop();
    show(Number(slider.value));
  });
  play.addEventListener("click", () => (timer ? stop() : start()));
  slider.closest(".controls").hidden = false;
  show(Number(slider.value));
}

const data = JSON.parse(byId("data-of-pictures").textContent);
if (data.items) explore(data.items);
if (data.annealing) animate(data.annealing);
