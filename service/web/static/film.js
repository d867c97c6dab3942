// A recorded episode: where it is in steps (a fraction while it runs), and what is asked for.
import { paint, unpack } from "./realtime.js";

const $ = (id) => document.getElementById(id);
const film = document.querySelector(".film");
const ENDS = { goal: "A goal ended the episode.", death: "It died.", time_limit: "Time was up.",
               fault: "The simulator failed." };
let state = null, at = 0, asking = false, running = false, last = 0;

async function fetchFrame(step, about = "") {
  const answer = await fetch(`${film.dataset.frames}/${step}${about}`);
  if (!answer.ok) throw new Error((await answer.json()).error);
  const data = await answer.arrayBuffer(), length = new DataView(data).getUint32(0, true);
  state = { ...state, ...JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length))) };
  const pixels = await unpack(new Uint8Array(data, 4 + length)), side = state.resolution;
  paint($("camera"), pixels, side);
  paint($("map"), pixels.subarray(3 * side * side), state.map);
  draw();
}

const end = () => (state.over ? state.drawn - 1 : state.last);

function draw() {
  $("time").max = end();
  $("time").value = Math.round(at);
  $("time").setAttribute("aria-valuetext", `step ${state.step} of ${end()}`);
  $("drawn").style.width = state.over ? "0" : `${100 * state.drawn / (state.last + 1)}%`;
  $("clock").textContent = `${state.seconds.toFixed(1)} of ${(end() * state.period).toFixed(1)} s`;
  $("step").textContent = `step ${state.step} of ${end()}`;
  $("health").textContent = state.health.toFixed(0);
  $("return").textContent = state.return.toFixed(3);
  $("reward").textContent = (state.reward > 0 ? "+" : "") + state.reward.toFixed(3);
  $("speed").textContent = `${state.speed.toFixed(1)} m/s`;
  $("action").textContent = state.action || "–";
  $("remark").textContent = state.note && `The agent remarks: ${state.note}`;
  $("play").textContent = running ? "❚❚" : "▶";
  $("play").setAttribute("aria-label", running ? "pause" : "play");
  $("note").textContent = state.failed || (state.ended_by !== null && !running ? ENDS[state.ended_by] : "");
}

async function ask() {
  if (asking) return;
  asking = true;
  try {
    for (let wanted = -1; wanted !== Math.round(at);) {
      wanted = Math.round(at);
      await fetchFrame(wanted);
      at = Math.min(at, end());
      if (state.step < wanted) {  // not drawn yet
        wanted = -1;
        await new Promise((done) => setTimeout(done, 100));
      }
    }
  } catch (error) {
    running = false;
    $("note").textContent = `No answer: ${error.message}`;
  }
  asking = false;
}

function go(step) { at = Math.max(0, Math.min(end(), step)); history.replaceState(null, "", `#${Math.round(at)}`); ask(); }

function toggle() {
  running = !running;
  if (running && Math.round(at) >= end()) at = 0;
  last = performance.now();
  ask();
  draw();
}

function tick(now) {
  if (running) {
    // What is not drawn yet cannot be shown: time stands still there.
    const next = at + (now - last) / 1000 / state.period * Number($("rate").value);
    at = Math.min(next, end(), state.over ? Infinity : state.drawn);
    if (at >= end() && state.over) running = false;
    if (Math.round(at) !== state.step || !running) ask();
  }
  last = now;
  requestAnimationFrame(tick);
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || state === null || event.target.tagName === "SELECT") return;
  const stride = event.shiftKey ? Math.round(1 / state.period) : 1, rate = $("rate");
  if (event.code === "Space" && event.target.tagName === "BUTTON") return;  // it is clicked
  if (event.code === "Space") toggle();
  else if (event.code === "ArrowRight") go(Math.round(at) + stride);
  else if (event.code === "ArrowLeft") go(Math.round(at) - stride);
  else if (event.code === "Home") go(0);
  else if (event.code === "End") go(end());
  else if (event.key === "+") rate.selectedIndex = Math.min(rate.options.length - 1, rate.selectedIndex + 1);
  else if (event.key === "-") rate.selectedIndex = Math.max(0, rate.selectedIndex - 1);
  else return;
  event.preventDefault();
}

async function begin() {
  $("note").textContent = "The episode is drawn anew, which takes a moment.";
  try {
    await fetchFrame(0, "?about");
  } catch (error) {
    $("note").textContent = error.message;
    return;
  }
  $("who").textContent = `${state.who}.`;
  $("asked").textContent = state.asked_for && `${state.asked_for}.`;
  $("outcome").textContent = `It ended: ${state.outcome}.`;
  $("labels").textContent = state.labels.join("; ");
  for (const [step, reward] of state.marks) {
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const x = 1000 * step / Math.max(1, state.last);
    mark.setAttribute("d", reward > 0 ? `M${x - 4} 5L${x} 0L${x + 4} 5z` : `M${x - 4} 5L${x} 10L${x + 4} 5z`);
    mark.setAttribute("class", reward > 0 ? "good" : "bad");
    $("marks").append(mark);
  }
  $("time").addEventListener("input", (event) => go(Number(event.target.value)));
  $("play").addEventListener("click", toggle);
  addEventListener("keydown", key);
  requestAnimationFrame(tick);
  const step = Number.parseInt(location.hash.slice(1), 10);
  if (step > 0) go(step); else toggle();
}

begin();
if (film.dataset.why) {
  const answer = await fetch(film.dataset.why);
  if (answer.ok) $("why").innerHTML = await answer.text();  // a fragment of our own templates
}
