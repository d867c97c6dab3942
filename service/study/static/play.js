// Shows frames as they come, says which keys are down, and measures both on its own clock.
const main = document.querySelector("main");
const words = JSON.parse(main.dataset.words);
const at = (id) => document.getElementById(id);
const canvas = at("view"), over = at("over"), say = at("say"), go = at("go"), pad = at("pad");
const draw = canvas.getContext("2d", { alpha: false });
const MOVES = { ArrowUp: [1, 0], KeyW: [1, 0], ArrowDown: [2, 0], KeyS: [2, 0],
  ArrowRight: [0, 1], KeyD: [0, 1], ArrowLeft: [0, 2], KeyA: [0, 2] };
const LATE_MS = 35, HEAD = 24, BEAT_MS = 200;

let socket = null, playing = false, tries = 0, leaving = false;
let offset = null, bestTrip = Infinity; // server's clock minus ours, by the quickest answer
let keyNumber = 0, action = 0;
const down = new Map(); // what is pressed -> [move, turn], the latest last
let run = null; // what was measured of the trial
let waiting = null, drawing = false; // the latest frame that is not painted yet

function fresh() {
  return { frames: 0, dropped: 0, late: 0, arrivals: [], paints: [], gaps: [], delays: [],
    pressed: new Map(), known: 0, firstKey: null, keys: 0, blurs: 0, blurMs: 0, blurred: null,
    begun: null, painted: null, full: document.fullscreenElement !== null, used: new Set(),
    total: 0 };
}

function p95(list) {
  const sorted = Float64Array.from(list).sort();
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(0.95 * sorted.length))] : 0;
}

function timing() {
  const input = run.used.size === 2 ? "both" : run.used.size ? [...run.used][0] : "none";
  const blurred = run.blurred === null ? 0 : performance.now() - run.blurred;
  return { frames: run.frames, dropped: run.dropped, late: run.late,
    interval_ms: run.gaps.length ? run.total / run.gaps.length : 0, interval_p95_ms: p95(run.gaps),
    arrival_p95_ms: p95(run.arrivals), paint_p95_ms: p95(run.paints),
    decision_p95_ms: p95(run.delays), first_key_ms: run.firstKey, keys: run.keys,
    blurs: run.blurs, blur_ms: run.blurMs + blurred, full_screen: run.full, input };
}

const send = (message) => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
};

function tellKeys() {
  let move = 0, turn = 0;
  for (const [m, t] of down.values()) {
    if (m) move = m;
    if (t) turn = t;
  }
  const next = 3 * move + turn;
  if (next !== action) {
    action = next;
    keyNumber += 1;
    if (run && playing) run.pressed.set(keyNumber, performance.now());
  }
  send({ t: "keys", a: action, n: keyNumber });
}

function press(name, what, by) {
  if (!playing || down.has(name)) return;
  down.set(name, what);
  run.keys += 1;
  run.used.add(by);
  run.firstKey ??= run.begun === null ? 0 : performance.now() - run.begun;
  tellKeys();
}

function release(name) {
  if (down.delete(name)) tellKeys();
}

function releaseAll() {
  down.clear();
  tellKeys();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (!playing && !go.hidden && (event.code === "Space" || event.code === "Enter")) {
    event.preventDefault();
    begin();
    return;
  }
  if (!(event.code in MOVES)) return;
  if (playing) event.preventDefault();
  if (!event.repeat) press(event.code, MOVES[event.code], "keys");
});
addEventListener("keyup", (event) => release(event.code));
for (const button of pad.querySelectorAll("button")) {
  const what = [Number(button.dataset.move ?? 0), Number(button.dataset.turn ?? 0)];
  button.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    button.setPointerCapture(event.pointerId);
    button.classList.add("down");
    press(`${what}`, what, "touch");
  });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"])
    button.addEventListener(end, () => {
      button.classList.remove("down");
      release(`${what}`);
    });
  button.addEventListener("contextmenu", (event) => event.preventDefault());
}
pad.hidden = !matchMedia("(any-pointer: coarse)").matches;

function blur() {
  releaseAll();
  if (run && playing && run.blurred === null) {
    run.blurs += 1;
    run.blurred = performance.now();
  }
}
function focus() {
  if (run && run.blurred !== null && !document.hidden) {
    run.blurMs += performance.now() - run.blurred;
    run.blurred = null;
  }
}
addEventListener("blur", blur);
addEventListener("focus", focus);
document.addEventListener("visibilitychange", () => (document.hidden ? blur() : focus()));
document.addEventListener("fullscreenchange", () => {
  if (run && !document.fullscreenElement) run.full = false;
});
const full = () => at("stage").requestFullscreen?.().catch(() => {});
at("full").addEventListener("click", full);

function begin() {
  go.hidden = true;
  if (at("stage").dataset.full === "1" && !document.fullscreenElement) full();
  canvas.focus({ preventScroll: true });
  send({ t: "ready" });
}
go.addEventListener("click", begin);

function stars(count) {
  const place = at("stars");
  if (place) place.textContent = "\u2605".repeat(Math.min(count, 200));
}
if (at("stars")) stars(Number(at("stars").dataset.count));

// A frame is painted at the next refresh of the screen; of two that wait only the later one is.
async function paint() {
  drawing = true;
  while (waiting) {
    const frame = waiting;
    waiting = null;
    const picture = await createImageBitmap(new Blob([new Uint8Array(frame.data, HEAD)]));
    await new Promise((done) => requestAnimationFrame(done));
    if (canvas.width !== picture.width) {
      canvas.width = picture.width;
      canvas.height = picture.height;
    }
    draw.drawImage(picture, 0, 0);
    picture.close();
    const now = performance.now();
    if (at("health")) at("health").value = frame.health;
    if (at("reward")) at("reward").textContent = frame.total.toFixed(1);
    if (!run || frame.run !== run) continue;
    run.begun ??= now;
    const lag = offset === null ? 0 : Math.max(0, now + offset - frame.time);
    run.paints.push(lag);
    if (lag > LATE_MS) run.late += 1;
    if (run.painted !== null) {
      run.gaps.push(now - run.painted);
      run.total += now - run.painted;
    }
    run.painted = now;
    if (frame.key > run.known) {
      const pressed = run.pressed.get(frame.key);
      if (pressed !== undefined) run.delays.push(now - pressed);
      run.known = frame.key;
    }
  }
  drawing = false;
}

let total = 0;
function frameCame(data) {
  const view = new DataView(data);
  const time = view.getFloat64(4, true), key = view.getUint32(12, true);
  total += view.getFloat32(20, true);
  if (run) {
    run.frames += 1;
    if (offset !== null) run.arrivals.push(Math.max(0, performance.now() + offset - time));
    if (waiting) run.dropped += 1;
  }
  waiting = { data, time, key, run, total, health: view.getFloat32(16, true) };
  if (!drawing) paint();
}

function told(message) {
  switch (message.t) {
    case "pong": {
      const now = performance.now(), trip = now - message.c;
      if (trip < bestTrip) {
        bestTrip = trip;
        offset = message.s - (message.c + now) / 2;
      }
      break;
    }
    case "wait":
      say.textContent = words.session_wait;
      go.hidden = true;
      over.hidden = false;
      break;
    case "next":
      if (message.practice && message.first) say.textContent = words.practice_about;
      else if (say.textContent === words.session_wait) say.textContent = "";
      go.textContent = message.first ? words.begin : words.trial_next;
      go.hidden = false;
      over.hidden = false;
      go.focus();
      break;
    case "open":
      if (!message.resumed || !run) run = fresh();
      if (!message.resumed) total = 0;
      playing = true;
      over.hidden = true;
      canvas.focus({ preventScroll: true });
      break;
    case "stop":
      playing = false;
      setTimeout(() => send({ t: "timing", of: timing(), last: true }), 60); // the last frame first
      down.clear();
      break;
    case "over":
      say.textContent = message.passed === true ? words.passed
        : message.passed === false ? words.not_passed : words.trial_over;
      at("round").textContent = message.rounds + 1;
      stars(message.rounds);
      go.hidden = true;
      over.hidden = false;
      break;
    case "trouble":
      playing = false;
      say.textContent = words.session_trouble;
      go.hidden = true;
      over.hidden = false;
      break;
    case "gone":
      leaving = true;
      playing = false;
      say.textContent = words.gone;
      over.hidden = false;
      setTimeout(() => location.reload(), 1500);
      break;
    case "elsewhere":
      leaving = true;
      playing = false;
      say.textContent = words.elsewhere;
      go.textContent = words.take_over;
      go.hidden = false;
      go.onclick = () => location.reload();
      over.hidden = false;
      break;
    case "page":
      leaving = true;
      location.reload();
  }
}

function connect() {
  const place = new URL(`${main.dataset.base}/play`, location.href);
  place.protocol = place.protocol.replace("http", "ws");
  socket = new WebSocket(place);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    tries = 0;
    bestTrip = Infinity;
    for (let k = 0; k < 5; k += 1) setTimeout(() => send({ t: "ping", c: performance.now() }), 100 * k);
    send({ t: "keys", a: action, n: keyNumber });
  };
  socket.onmessage = (event) => {
    if (typeof event.data === "string") told(JSON.parse(event.data));
    else frameCame(event.data);
  };
  socket.onclose = () => {
    if (leaving) return;
    say.textContent = words.reconnecting;
    go.hidden = true;
    over.hidden = false;
    tries += 1;
    setTimeout(connect, Math.min(250 * tries, 3000));
  };
}

let beats = 0;
setInterval(() => {
  send({ t: "keys", a: action, n: keyNumber });
  beats += 1;
  if (beats % 5 === 0 && playing && run) send({ t: "timing", of: timing() });
  if (beats % 25 === 0) send({ t: "ping", c: performance.now() });
}, BEAT_MS);
connect();
