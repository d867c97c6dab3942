// A participant's rounds: what is said between frames, the buttons for touch, and full screen.
import { RealTime } from "../realtime.js";

const main = document.querySelector("main");
const words = JSON.parse(main.dataset.words);
const at = (id) => document.getElementById(id);
const canvas = at("view"), over = at("over"), say = at("say"), go = at("go");
const stage = at("stage");
let game = null, playing = false, leaving = false, tries = 0;

function show(text, button = "") {
  say.textContent = text;
  go.textContent = button;
  go.hidden = !button;
  over.hidden = false;
  if (button) go.focus({ preventScroll: true });
}

function stars(count) {
  const place = at("stars");
  if (place) place.textContent = "\u2605".repeat(Math.min(count, 200));
}

function leave(text, button) {
  playing = false;
  leaving = true;
  show(text, button);
}

async function begin() {
  go.hidden = true;
  if (leaving) location.reload();
  if (stage.dataset.full === "1" && !document.fullscreenElement)
    await stage.requestFullscreen?.().catch(() => {});
  game.do("ready", { full: document.fullscreenElement !== null });
}

const told = {
  wait: () => show(words.session_wait),
  next: (said) => {
    at("round").textContent = said.number;
    const first = said.first && said.practice ? words.practice_about : said.first ? "" : say.textContent;
    show(first === words.session_wait ? "" : first, said.first ? words.begin : words.trial_next);
  },
  open: () => {
    playing = true;
    over.hidden = true;
    canvas.focus({ preventScroll: true });
  },
  over: (said) => {
    playing = false;
    stars(said.rounds);
    show({ true: words.passed, false: words.not_passed }[said.passed] ?? words.trial_over);
  },
  trouble: () => {
    playing = false;
    show(words.session_trouble);
  },
  gone: () => leave(words.gone, words.go_on),
  elsewhere: () => leave(words.elsewhere, words.take_over),
  page: () => {
    leaving = true;
    location.reload();
  },
};

function connect() {
  game?.close();
  game = new RealTime(`${main.dataset.base}/play`, canvas, {
    pad: at("pad"),
    onTold: (said) => told[said.t]?.(said),
    onFrame: (state) => {
      tries = 0;
      if (at("health")) at("health").value = state.health;
      if (at("reward")) at("reward").textContent = (Math.round(10 * state.reward) / 10 || 0).toFixed(1);
    },
    onKey: (event, down) => {
      if (playing || go.hidden || !["Space", "Enter"].includes(event.code)) return false;
      if (event.target.closest?.("a, button")) return false; // it does what it says
      if (down && !event.repeat) begin();
      return true;
    },
    onGone: () => {
      playing = false;
      if (leaving) return;
      show(words.reconnecting);
      tries += 1;
      setTimeout(connect, Math.min(250 * tries, 3000));
    },
  });
}

go.addEventListener("click", begin);
at("full").addEventListener("click", () => stage.requestFullscreen?.().catch(() => {}));
document.addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement) game.do("small");
});
if (at("stars")) stars(Number(at("stars").dataset.count));
connect();
