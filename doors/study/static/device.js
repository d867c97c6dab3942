// Looks at the window, the screen's rate and the keys, and fills in the form that says so.
const words = JSON.parse(document.querySelector("main").dataset.words);
const state = document.getElementById("state");
const form = document.getElementById("device");
const touch = document.getElementById("touch");
const wanted = state.dataset.input;
let input = "";

const hz = await new Promise((done) => {
  const times = [];
  const look = (now) => {
    times.push(now);
    if (times.length < 31) requestAnimationFrame(look);
    else done(30000 / (times[30] - times[0]));
  };
  requestAnimationFrame(look);
  setTimeout(() => done(0), 3000); // a window that is hidden paints nothing
});

function show() {
  const small = innerWidth < state.dataset.width || innerHeight < state.dataset.height;
  const hands = wanted === "touch" || (wanted === "any" && matchMedia("(pointer: coarse)").matches);
  touch.hidden = small || !hands || input !== "";
  const ask = hands ? words.device_touch : words.device_keyboard;
  state.textContent = small ? words.device_small : input === "" ? ask : words.device_ready;
  form.querySelector("button").hidden = small || input === "";
  const facts = { width: innerWidth, height: innerHeight, pixel_ratio: devicePixelRatio, refresh_hz: hz,
                  input, browser: navigator.userAgent };
  for (const [name, value] of Object.entries(facts)) form.elements[name].value = value;
}

addEventListener("resize", show);
addEventListener("keydown", (event) => {
  if (wanted === "touch" || event.key !== "ArrowUp") return;
  event.preventDefault();
  input = "keys";
  show();
});
touch.addEventListener("pointerdown", () => {
  input = "touch";
  show();
});
show();
