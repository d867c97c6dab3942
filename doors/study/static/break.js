// Counts a break down; going on is the participant's own decision.
const words = JSON.parse(document.querySelector("main").dataset.words);
const left = document.getElementById("left");
const end = Date.now() + left.dataset.seconds * 1000;
function show() {
  const seconds = Math.max(0, Math.ceil((end - Date.now()) / 1000));
  left.textContent = seconds > 0 ? `${seconds} ${words.seconds}` : "";
  if (seconds > 0) setTimeout(show, 250);
}
show();
