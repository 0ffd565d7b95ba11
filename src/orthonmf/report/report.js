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

const frames = JSON.parse(byId("frames").textContent);
if (frames) animate(frames);
