// The operators' stream (C34.1), kept by id, while some view shows it; and when it is stale.
//
// The stream tells of the first 1,000 items of a kind. Of more numbers, the whole list is read now and then, and what
// the stream told meanwhile goes before it.
import { get, stream } from "./api.js";
import { useEffect } from "./lib.js";
import { session } from "./session.js";
import { Store, useStore } from "./store.js";

const KEYS = { numbers: "numberId", actors: "path", webhooks: "subscriptionId" };
const STREAMED = 1_000; // items of a kind
const LISTED_EVERY = 15_000; // ms
const QUIET_FOR = 20_000; // ms without a sign of life, after which one connects anew: the heartbeat comes every 15 s
const DRAWN_FOR = 900; // ms: a second, and what a tick may come early
const LEFT_FOR = 3_000; // ms without a view, after which the stream ends
const REMEMBERED = 600; // looks at the sums, for charts

const PROBLEMS_FOR_GOOD = [401, 403];

class Live {
  /**
   * What is shown; `set` tells the views, at most once a frame. {numbers, actors, webhooks: Map, sums, history}; each
   * item has `at`, the moment in ms at which it was told.
   */
  shown = new Store(nothing());
  /** {state: "starting", "live", "stale" or "refused", since: ms, error}. */
  state = new Store({ state: "starting", since: Date.now(), error: null });
  #viewers = 0;
  #abort = null;
  #connection = null;
  #leaving = null;
  #drawing = null;
  #drawn = 0;
  #heard = 0;
  #told = null; // ids of numbers that the stream told while the whole list is read

  enter() {
    this.#viewers += 1;
    clearTimeout(this.#leaving);
    if (this.#abort === null) this.#start();
    return () => {
      this.#viewers -= 1;
      if (this.#viewers === 0) this.#leaving = setTimeout(() => this.stop(), LEFT_FOR);
    };
  }

  /** Forget everything: nobody looks any more, or another environment is looked at. */
  stop() {
    this.#abort?.abort();
    this.#abort = null;
    this.shown.set(nothing());
    if (this.#viewers && session.value) this.#start();
  }

  #start() {
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    this.#heard = Date.now();
    this.state.set({ state: "starting", since: Date.now(), error: null });
    const clock = setInterval(() => this.#look(), 1_000);
    signal.addEventListener("abort", () => clearInterval(clock));
    this.#follow(signal);
    this.#list(signal);
  }

  async #follow(signal) {
    let [lastId, failures] = [undefined, 0];
    while (!signal.aborted) {
      let wait = 1; // seconds: the stream ends now and then, and one comes back
      this.#connection = new AbortController();
      try {
        lastId = await stream("/v2/ops/stream", {
          lastId,
          signal: AbortSignal.any([signal, this.#connection.signal]),
          onBytes: () => {
            if (signal.aborted) return;
            failures = 0;
            this.#heard = Date.now();
            this.#say("live");
          },
          onEvent: (kind, news) => signal.aborted || this.#take(kind, news),
        });
      } catch (error) {
        if (signal.aborted) return;
        if (PROBLEMS_FOR_GOOD.includes(error.status)) return this.#say("refused", error);
        failures += 1;
        wait = error.retryAfter || Math.min(30, 2 ** failures);
        this.#say("stale", error);
      }
      await pause(1_000 * wait, signal);
    }
  }

  #take(kind, { items, gone, whole }) {
    const shown = this.shown.value;
    if (kind === "throughput") {
      shown.sums = items[0] ?? shown.sums;
      return this.#draw();
    }
    const key = KEYS[kind];
    if (!key) return;
    const large = kind === "numbers" && shown.sums?.numbers > STREAMED;
    if (whole && !large) shown[kind] = new Map();
    const at = Date.now();
    for (const item of items) {
      item.at = at;
      shown[kind].set(item[key], item);
      if (kind === "numbers") this.#told?.add(item[key]);
    }
    if (!large) for (const id of gone) shown[kind].delete(id);
    this.#draw();
  }

  /** Of more numbers than the stream tells of: all of them. */
  async #list(signal) {
    while (!signal.aborted) {
      await pause(this.shown.value.sums ? LISTED_EVERY : 300, signal);
      if (document.hidden || !(this.shown.value.sums?.numbers > STREAMED)) continue;
      this.#told = new Set();
      const at = Date.now();
      try {
        const { items } = await get("/v2/ops/numbers", {}, { signal });
        const before = this.shown.value.numbers;
        for (const item of items) item.at = at;
        const numbers = new Map(items.map((item) => [item.numberId, item]));
        for (const id of this.#told) if (before.has(id)) numbers.set(id, before.get(id));
        this.shown.value.numbers = numbers;
        this.#draw();
      } catch {
        // the next round may succeed; that the stream is stale is told of by itself
      }
      this.#told = null;
    }
  }

  /** Once a second: what the sums were, for charts; and whether there was a sign of life. */
  #look() {
    const { sums, history } = this.shown.value;
    const now = Date.now();
    const fresh = this.state.value.state === "live";
    history.push([now / 1000, fresh && sums ? sums.sentLastSecond : null, fresh && sums ? sums.due : null]);
    if (history.length > REMEMBERED) history.shift();
    if (this.state.value.state !== "stale" && now - this.#heard > QUIET_FOR) {
      this.#say("stale");
      this.#connection?.abort(); // it may be dead without a word, as after a machine slept
    }
    if (now - this.#drawn > DRAWN_FOR) this.#draw(); // else the news have drawn it
  }

  #say(state, error = null) {
    const before = this.state.value;
    if (before.state !== state || before.error?.code !== error?.code) {
      this.state.set({ state, since: state === "stale" ? this.#heard : Date.now(), error });
    }
  }

  #draw() {
    this.#drawing ??= requestAnimationFrame(() => {
      this.#drawing = null;
      this.#drawn = Date.now();
      this.shown.set(this.shown.value);
    });
  }
}

const live = new Live();
let token = current();
session.watch(() => {
  if (current() === token) return;
  token = current();
  live.stop();
});

/** What the stream shows, in a component; the stream runs while one is there. */
export function useLive() {
  useEffect(() => live.enter(), []);
  return { ...useStore(live.shown), ...useStore(live.state) };
}

function current() {
  return session.value?.tokens[session.value.env];
}

function nothing() {
  return { numbers: new Map(), actors: new Map(), webhooks: new Map(), sums: null, history: [] };
}

function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
    function end() {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    }
  });
}
