// What every page does: keys in lists, and lists that renew themselves while they are seen.

const RENEW = 4000;
let chosen = -1;

const rows = () => [...document.querySelectorAll("table.rows tbody tr")].filter((row) => row.querySelector("a"));

function choose(at) {
  const all = rows();
  if (!all.length) return;
  chosen = Math.max(0, Math.min(all.length - 1, at));
  all.forEach((row, k) => row.toggleAttribute("aria-current", k === chosen));
  all[chosen].scrollIntoView({ block: "nearest" });
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, .stage, .film")) return;
  if (event.key === "j") choose(chosen + 1);
  else if (event.key === "k") choose(chosen - 1);
  else if (event.key === "Enter" && chosen >= 0 && event.target === document.body) rows()[chosen]?.querySelector("a").click();
  else if (event.key === "x" && chosen >= 0) rows()[chosen]?.querySelector("input[type=checkbox]")?.click();
  else if (event.key === "n") document.querySelector("a[rel=next]")?.click();
  else if (event.key === "/") document.querySelector("[data-filter]")?.focus();
  else return;
  event.preventDefault();
});

async function renew() {
  const old = document.querySelector("[data-refresh]");
  if (!old || document.hidden || old.contains(document.activeElement) || old.querySelector("details[open]")) return;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const text = await answer.text();
  if (old.dataset.refresh === "until") {
    if (!text.includes('data-refresh="until"')) location.reload();  // what was waited for is there
    return;
  }
  const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-refresh]");
  if (!fresh || fresh.innerHTML === old.innerHTML) return;
  const marked = new Set([...old.querySelectorAll("input:checked")].map((box) => box.value));
  for (const box of fresh.querySelectorAll("input[type=checkbox]")) box.checked = marked.has(box.value);
  old.replaceWith(document.adoptNode(fresh));
  if (chosen >= 0) choose(chosen);
}
if (document.querySelector("[data-refresh]")) setInterval(() => renew().catch(() => {}), RENEW);
