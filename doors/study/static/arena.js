import { RealTime } from "../realtime.js";

const $ = (id) => document.getElementById(id);
const ENDS = { goal: "A goal ended the episode.", death: "You died.", time_limit: "Time is up.",
               fault: "The simulator failed." };
const PAUSED = "Paused. Press an arrow to go on.";
let running = false;

function note(text) { $("note").hidden = !text; $("note").textContent = text; }

function show(state) {
  $("title").textContent = state.title;
  $("episode").textContent = `episode ${state.episode + 1}`;
  $("health").value = state.health;
  $("healthNumber").textContent = state.health.toFixed(0);
  $("return").textContent = state.return.toFixed(3);
  $("reward").textContent = (state.reward > 0 ? "+" : "") + state.reward.toFixed(3);
  $("speed").textContent = `${state.speed.toFixed(1)} m/s`;
  $("left").textContent = state.seconds_left === null ? "no limit" : `${state.seconds_left.toFixed(1)} s`;
  if (state.ended_by !== null) {
    running = false;
    note(`${ENDS[state.ended_by]}\n${state.passed ? "Passed" : "Not passed"}, reward ${state.return.toFixed(3)}.\nRestart goes on.`);
  } else if (!running) {
    note(state.step === 0 ? "Press an arrow to start." : PAUSED);
  }
}

function start() {
  if (running || game.state === null || game.state.ended_by !== null) return;
  running = true;
  note("");
  game.do("start");
}

function restart() { running = false; game.do("restart"); }
function pause() { if (running) { running = false; game.do("pause"); note(PAUSED); } }

const game = new RealTime(document.querySelector(".stage").dataset.socket, $("camera"), {
  pad: $("pad"),
  onFrame: show,
  onTold: (said) => { if (said.failed) note(`It failed: ${said.failed}`); },
  onGone: (event) => note(event.reason || "The connection has ended. Load the page again to play on."),
  onKey(event, down) {
    if (!down || game.state === null) return false;
    if (event.code === "KeyR" && !event.repeat) { restart(); return true; }
    if (event.code === "KeyP") { pause(); return true; }
    if (/^(Arrow|Key[WASD]|Space)/.test(event.code)) start();
    return event.code === "Space";
  },
});
$("pad").addEventListener("pointerdown", start);
$("pause").addEventListener("click", pause);
$("restart").addEventListener("click", restart);
