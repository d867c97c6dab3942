// A session while it is watched: one stream of events, whose parts are shown as they come.

const $ = (id) => document.getElementById(id);
const page = document.querySelector(".session");
const SVG = "http://www.w3.org/2000/svg";
const WORDS = { S: "passed", F: "failed", v: "void", x: "fault", i: "invalid", ".": "being played" };
let state = null, course = [], path = [];

/** Make an element; children are texts or elements, and texts stay texts. */
function make(tag, attributes = {}, ...children) {
  const made = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function say(id, text) { $(id).textContent = text; $(id).hidden = !text; }

const episodePath = (one) => `${page.dataset.at}/episodes/${one.number}-${one.attempt}`;
const named = (one) => (one.attempt ? `${one.number}-${one.attempt}` : `${one.number}`);
const share = (value) => `${Math.round(100 * value)} %`;

function showState(said) {
  if (said.course) course = said.course;
  for (const point of said.point ?? []) {
    if (course.length && course.at(-1)[0] === point[0]) course.pop();
    course.push(point);
  }
  state = said;
  $("state").textContent = said.state;
  $("state").classList.toggle("on", said.state === "running");
  $("paused").hidden = !said.paused || said.over;
  $("done").max = said.most || 1;
  $("done").value = said.episodes;
  const practised = said.practised ? `, after ${said.practised} to practise` : "";
  const most = said.over ? "" : ` of at most ${said.most}`;
  $("count").textContent = `${said.episodes}${most} episodes, ${said.successes} passed${practised}`;
  say("alarm", said.misfit && `Alarm: the layout does not describe this agent ${said.misfit}. What is known below holds only as far as the layout does.`);
  say("waits", said.waits_for && `It waits for ${said.waits_for}.`);
  say("reason", said.over && said.reason ? `It ended: ${said.reason}.` : "");
  if ($("steer")) {
    $("steer").hidden = said.over;
    $("pause").hidden = said.paused;
    $("resume").hidden = !said.paused;
    $("judge").hidden = !said.unjudged.length;
  }
  showCapabilities(said.capabilities);
  $("strip").replaceChildren(...said.outcomes.map(([number, attempt, letter]) =>
    make("li", {}, make("a", { class: `mark ${letter}`, href: episodePath({ number, attempt }), title: `episode ${number}: ${WORDS[letter]}`, "aria-label": `episode ${number}: ${WORDS[letter]}` }, letter))));
  $("recent").replaceChildren(...said.recent.map(showEpisode));
  const playing = said.playing.at(-1);
  $("why").textContent = playing ? why(playing) : "";
  if (!playing && said.over) $("views").hidden = true;
  if (!playing) $("view").textContent = said.over ? "The session is over." : "No episode is being played.";
}

function why(one) {
  if (one.practice) return "It is practice, and does not count.";
  return `It is expected to pass with ${share(one.predicted)}. Chosen since: ${one.because}.`;
}

function showEpisode(one) {
  const outcome = `${one.outcome}${one.practice ? " (practice)" : ""}`;
  return make("tr", {},
    make("td", { class: "n" }, make("a", { href: episodePath(one) }, named(one))),
    make("td", {}, make("b", { class: `mark ${one.letter}` }, one.letter), ` ${outcome}`),
    make("td", {}, one.instance),
    make("td", { class: "n", "data-l": "expected" }, one.practice ? "" : share(one.predicted)),
    make("td", { class: "n", "data-l": "return" }, one.return.toFixed(3)),
    make("td", { class: "n", "data-l": "decisions" }, `${one.steps}`),
    make("td", { class: "small" }, one.because, ...(one.cause ? [" ", make("span", { class: "bad" }, one.cause)] : [])));
}

function showCapabilities(all) {
  if (!all.length) return;
  const rows = all.map((c, k) => make("section", { class: "capability" },
    make("div", { class: "named" }, make("b", {}, c.name), make("span", { class: "small soft" }, c.status ?? "")),
    make("div", { class: "value numbers" }, make("b", {}, c.value), make("span", { class: "small soft" }, c.interval && `90 %: ${c.interval}`)),
    draw(k, c),
    ...(c.episodes_needed ? [make("span", { class: "small soft" }, `about ${c.episodes_needed} episodes more`)] : []),
    ...(c.limit ? [make("p", { class: "small soft limit" }, `Its target ${c.limit}.`)] : [])));
  $("capabilities").replaceChildren(...rows);
}

/** The course of a capability: its mean, and a band of about 90 %. */
function draw(k, capability) {
  const points = course.filter((point) => point[k + 1]).map((point) => [point[0], ...point[k + 1]]);
  const picture = make("svg:svg", { viewBox: "0 0 300 64", preserveAspectRatio: "none", class: "course", role: "img", "aria-label": `${capability.name} so far: ${capability.value}, ${capability.interval}` });
  if (points.length < 2) return picture;
  const low = Math.min(...points.map(([, mean, sd]) => mean - 1.645 * sd)), high = Math.max(...points.map(([, mean, sd]) => mean + 1.645 * sd));
  const first = points[0][0], last = Math.max(points.at(-1)[0], first + 1);
  const x = (n) => (300 * (n - first) / (last - first)).toFixed(1), y = (value) => (62 - 60 * (value - low) / (high - low || 1)).toFixed(1);
  const upper = points.map(([n, mean, sd]) => `${x(n)} ${y(mean + 1.645 * sd)}`), lower = points.map(([n, mean, sd]) => `${x(n)} ${y(mean - 1.645 * sd)}`).reverse();
  picture.append(
    make("svg:path", { class: "band", d: `M${[...upper, ...lower].join("L")}z` }),
    make("svg:path", { class: "mean", d: `M${points.map(([n, mean]) => `${x(n)} ${y(mean)}`).join("L")}` }));
  return picture;
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
  $("view").textContent = `Episode ${named(said)}, ${said.instance}${numbers}`;
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
