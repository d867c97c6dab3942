// Plays in real time over a socket (doors/study/realtime.py): paints frames, tells keys and times.

const KEYS = { ArrowUp: "ahead", KeyW: "ahead", ArrowDown: "back", KeyS: "back",
               ArrowRight: "right", KeyD: "right", ArrowLeft: "left", KeyA: "left" };

const SILENT = 3000; // ms without an answer, and the line counts as dead

/** Milliseconds that go on over a reload, of now or of an event. */
const clock = (at = performance.now()) => performance.timeOrigin + at;

/** Paint pixels of three bytes each into a canvas, which takes their size. */
export function paint(canvas, pixels, width, height = width) {
  const image = new ImageData(width, height), to = image.data;
  for (let from = 0, at = 0; at < to.length; from += 3, at += 4) {
    to[at] = pixels[from]; to[at + 1] = pixels[from + 1]; to[at + 2] = pixels[from + 2];
    to[at + 3] = 255;
  }
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Unpack what the server has packed with zlib. */
export async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export class RealTime {
  /**
   * @param path Path of the socket, with the prefix.
   * @param canvas Where frames are painted.
   * @param hooks onFrame(state) after a frame was painted; onTold(words) for what is no frame;
   *   onGone(event) once, when the socket has closed or nothing comes any more; onKey(event, down) before a key is told, true to
   *   keep it; pad: buttons with data-key that steer by touch, shown where there are fingers.
   */
  constructor(path, canvas, hooks = {}) {
    this.canvas = canvas;
    this.hooks = hooks;
    this.state = null;
    this.offset = this.roundTrip = null;
    this.clocks = [];
    this.waits = null; // since when the server owes an answer
    this.painting = Promise.resolve();
    const url = new URL(path, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.addEventListener("message", (event) => this.take(event));
    this.socket.addEventListener("open", () => { this.askClock(); this.clock = setInterval(() => this.askClock(), 1000); });
    this.socket.addEventListener("close", (event) => this.gone(event));
    this.listening = new AbortController();
    const listen = { signal: this.listening.signal };
    addEventListener("keydown", (event) => this.key(event, true), listen);
    addEventListener("keyup", (event) => this.key(event, false), listen);
    addEventListener("blur", () => this.send({ hidden: "blur", at: clock() }), listen);
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.send({ hidden: "page", at: clock() }); }, listen);
    if (hooks.pad) this.touch(hooks.pad, listen);
  }

  /** Listen to keys no more; another one may. */
  close() { clearInterval(this.clock); this.hooks = {}; this.listening.abort(); this.socket.close(); }

  gone(event) { const { onGone } = this.hooks; this.close(); onGone?.(event); }

  send(said) { if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(said)); }
  do(what, more = {}) { this.send({ do: what, ...more }); }
  press(name, at) { this.send({ key: name, down: true, at: clock(at) }); }
  release(name, at) { this.send({ key: name, down: false, at: clock(at) }); }

  askClock() {
    if (this.waits !== null && clock() - this.waits > SILENT) { this.gone({}); return; }
    this.waits ??= clock();
    this.send({ clock: clock() });
  }

  key(event, down) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    if (this.hooks.onKey?.(event, down)) { event.preventDefault(); return; }
    const name = KEYS[event.code];
    if (!name) return;
    event.preventDefault();
    // The time of the event is that of the key; by now some milliseconds may have gone.
    if (!event.repeat) (down ? this.press(name, event.timeStamp) : this.release(name, event.timeStamp));
  }

  touch(pad, listen) {
    for (const button of pad.querySelectorAll("button")) {
      button.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        button.setPointerCapture(event.pointerId);
        button.classList.add("down");
        this.press(button.dataset.key, event.timeStamp);
      }, listen);
      for (const end of ["pointerup", "pointercancel"])
        button.addEventListener(end, (event) => {
          button.classList.remove("down");
          this.release(button.dataset.key, event.timeStamp);
        }, listen);
      button.addEventListener("contextmenu", (event) => event.preventDefault(), listen);
    }
    pad.hidden = !matchMedia("(any-pointer: coarse)").matches;
  }

  take(event) {
    const received = clock();
    this.waits = null;
    if (typeof event.data === "string") {
      const said = JSON.parse(event.data);
      if ("clock" in said) this.takeClock(said, received);
      else this.hooks.onTold?.(said);
      return;
    }
    const length = new DataView(event.data).getUint32(0, true);
    const state = JSON.parse(new TextDecoder().decode(new Uint8Array(event.data, 4, length)));
    const data = new Uint8Array(event.data, 4 + length);
    // One after another, also where one takes longer to unpack than the next.
    this.painting = this.painting.then(async () => {
      await this.show(state, await unpack(data), received);
    });
  }

  takeClock(said, now) {
    this.clocks.push({ trip: now - said.clock, offset: said.server - (now + said.clock) / 2 });
    if (this.clocks.length > 10) this.clocks.shift();
    const best = this.clocks.reduce((a, b) => (b.trip < a.trip ? b : a));
    this.roundTrip = best.trip;
    this.offset = best.offset;
  }

  async show(state, pixels, received) {
    this.state = state;
    const hidden = document.hidden;
    if (!hidden) await new Promise(requestAnimationFrame);
    paint(this.canvas, pixels, state.resolution);
    this.hooks.onFrame?.(state);
    // What comes after the next task comes after the paint.
    let painted = null;
    if (!hidden) {
      await new Promise((done) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { port1.close(); done(); }; port2.postMessage(0); });
      painted = clock();
    }
    this.send({ seen: state.number, received, painted, offset: this.offset, round_trip: this.roundTrip });
  }
}
