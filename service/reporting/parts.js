(() => {
  const data = (id) => document.getElementById(id);
  const known = new Map();
  async function unpacked(id) {
    const bytes = Uint8Array.from(atob(data(id).textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }
  function arenas(chunk) {
    if (!known.has(chunk)) known.set(chunk, unpacked(`arenas-${chunk}`));
    return known.get(chunk);
  }
  function made(tag, text, of = {}) {
    const element = Object.assign(document.createElement(tag), of);
    element.append(...[text].flat());
    return element;
  }
  function drawn(map) {
    if (!map) return "–";
    const fold = document.createElement("details");
    const summary = made("summary", []);
    summary.innerHTML = map; // made by the same program as the page
    fold.append(summary);
    return fold;
  }
  function cell(label, text, of) {
    const element = made("td", text, of);
    if (label) element.dataset.l = label;
    return element;
  }
  async function show(part) {
    const { together, session } = data("episodes").dataset;
    const rows = await unpacked(part.dataset.rows);
    const chunks = [...new Set(rows.map((row) => Math.floor(row[2] / together)))];
    await Promise.all(chunks.map(arenas));
    const table = data("heads").content.cloneNode(true);
    const strip = made("div", [], { className: "strip", role: "img" });
    strip.ariaLabel = part.firstElementChild.textContent;
    for (const [number, attempt, place, why, predicted, outcome, mark, ended] of rows) {
      const [name, paradigm, demands, map] = (await arenas(Math.floor(place / together)))[place % together];
      const told = [made("b", name)];
      for (const words of [paradigm, demands]) if (words) told.push(made("span", words, { className: "means" }));
      const sign = made("span", mark, { className: "mark", ariaHidden: "true" });
      const command = `animalcat episode replay ${session} ${number}-${attempt}`;
      table.querySelector("tbody").append(made("tr", [
        cell("episode", attempt ? `${number} (attempt ${attempt + 1})` : `${number}`, { className: "n" }),
        cell("", drawn(map)),
        cell("", told),
        cell("chosen", why, { className: "why" }),
        cell("predicted", predicted || "–", { className: "n" }),
        cell("outcome", [
          made("span", [sign, ` ${outcome}`], { className: outcome }),
          made("span", ended, { className: "means" }),
        ]),
        cell("", made("code", command)),
      ]));
      strip.append(made("i", mark, { className: outcome, title: `episode ${number}: ${name}, ${outcome}` }));
    }
    part.replaceChildren(part.firstElementChild, strip, table);
  }
  for (const part of document.querySelectorAll("details.part"))
    part.addEventListener("toggle", () => show(part), { once: true });
})();
