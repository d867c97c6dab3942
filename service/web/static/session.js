// A session while it is watched: one stream of events, whose parts are shown as they come.

const $ = (id) => document.getElementById(id);
const page = document.querySelector(".session");
const WORDS = { S: "passed", F: "failed", v: "void", x: "fault", i: "invalid", ".": "being played" };
let course = [], path = [];

function showState(said) {
  if (said.course) course = said.course;
  for (const point of said.point ?? []) {
    if (course.length && course.at(-1)[0] === point[0]) course.pop();
    course.push(point);
  }
  const fresh = new DOMParser().parseFromString(said.html, "text/html").body;  // our own template
  fresh.querySelectorAll(".course").forEach((picture, k) => { picture.innerHTML = drawn(k); });
  for (const part of [...fresh.children])
    if (part.outerHTML !== $(part.id).outerHTML) $(part.id).replaceWith(part);
  if ($("steer")) {
    $("steer").hidden = said.over;
    $("pause").hidden = said.paused;
    $("resume").hidden = !said.paused;
    $("judge").hidden = !said.unjudged;
  }
  if ($("more")) $("more").hidden = !said.over;
  $("strip").replaceChildren(...said.outcomes.map(([number, attempt, letter]) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.className = `mark ${letter}`;
    link.href = `${page.dataset.at}/episodes/${number}-${attempt}`;
    link.title = link.ariaLabel = `episode ${number}: ${WORDS[letter]}`;
    link.append(letter);
    item.append(link);
    return item;
  }));
  if (!said.playing && said.over) $("views").hidden = true;
  if (!said.playing) $("view").textContent = said.over ? "The session is over." : "No episode is being played.";
}

/** The course of a capability: its estimate, and the band of its interval, with the ends of both axes. */
function drawn(k) {
  const points = course.filter((point) => point[k + 1]).map((point) => [point[0], ...point[k + 1]]);
  if (points.length < 2) return "";
  const low = Math.min(...points.map((point) => point[1])), high = Math.max(...points.map((point) => point[2]));
  const first = points[0][0], last = points.at(-1)[0];
  const place = ([n], value) => `${(300 * (n - first) / (last - first || 1)).toFixed(1)} ${(62 - 60 * (value - low) / (high - low || 1)).toFixed(1)}`;
  const line = (which, some = points) => some.map((point) => place(point, point[which])).join("L");
  const known = points.filter((point) => point[3] !== null);
  return `<span>${high}</span><span>${low}</span><svg viewBox="0 0 300 64" preserveAspectRatio="none"><path class="band" d="M${line(2)}L${line(1, [...points].reverse())}z"></path><path class="mean" d="${known.length ? `M${line(3, known)}` : ""}"></path></svg><p><span>${first}</span><span>${last} episodes</span></p>`;
}

function showView(said) {
  if (said.from === 0) path = [];
  path.length = said.from;
  path.push(...said.path);
  const points = [];
  for (let k = 0; k < path.length; k += 2) points.push(`${path[k]},${40 - path[k + 1]}`);
  $("path").setAttribute("points", points.join(" "));
  if ("things" in said) $("things").innerHTML = said.things;  // numbers and colours alone
  const [x, z, yaw] = said.agent ?? [path.at(-2), path.at(-1), null];
  $("agent").toggleAttribute("hidden", x === undefined);
  if (x !== undefined) $("agent").setAttribute("transform", `translate(${x} ${40 - z}) rotate(${yaw ?? 0})`);
  $("agent").lastElementChild.toggleAttribute("hidden", yaw === null);
  if (said.picture) {
    $("picture").src = said.picture;
    $("own").textContent = said.own ? "what the agent sees" : "as a camera would see it; the agent has rays alone";
  }
  $("picture").parentElement.hidden = !$("picture").src;
  $("views").hidden = false;
  const numbers = said.step === undefined ? "" : `, step ${said.step}, health ${said.health}, return ${said.return}`;
  $("view").textContent = `Episode ${said.number}${said.attempt ? `-${said.attempt}` : ""}, ${said.instance}${numbers}`;
}

const events = new EventSource(`${page.dataset.at}/events`);
events.addEventListener("state", (event) => showState(JSON.parse(event.data)));
events.addEventListener("view", (event) => showView(JSON.parse(event.data)));
events.addEventListener("failed", (event) => { $("link").textContent = JSON.parse(event.data).words; });
events.addEventListener("open", () => { $("link").textContent = ""; });
events.addEventListener("error", () => { $("link").textContent = events.readyState === EventSource.CLOSED ? "no longer live: load the page again" : "the connection is lost, and sought again"; });
// Nothing is worked out for a page that nobody sees for good.
addEventListener("pagehide", () => events.close());
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
