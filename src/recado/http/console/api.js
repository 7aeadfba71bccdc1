// The one client of the API. Every call carries the token of the environment that is switched to.
import { end, session } from "./session.js";

/** A refusal (C4.1), or with status 0 a server that cannot be reached. `errors`: [{path, code, message}]. */
export class ApiError extends Error {
  constructor(status, problem, retryAfter = 0) {
    super(problem.detail ?? problem.title ?? "");
    this.status = status;
    this.code = problem.code ?? "";
    this.errors = problem.errors ?? [];
    this.meta = problem.meta ?? {};
    this.requestId = problem.requestId ?? "";
    this.retryAfter = retryAfter; // seconds
  }
}

/** `query`: names to values; undefined, null and "" are left out, a list is given several times. */
export const get = (path, query, options) => ask("GET", path, { query, ...options });
export const post = (path, body, options) => ask("POST", path, { body, ...options });
export const put = (path, body, options) => ask("PUT", path, { body, ...options });
export const patch = (path, body, options) => ask("PATCH", path, { body, ...options });
export const remove = (path, options) => ask("DELETE", path, options);

/** A file of at most 105,000,000 bytes (C8.2.4), and the name that the answer gives it. */
export async function file(path, query) {
  const answer = await send("GET", path, { query });
  const name = answer.headers.get("Content-Disposition")?.match(/filename\*=UTF-8''([^;]+)/)?.[1];
  try {
    return { content: await answer.blob(), name: name && decodeURIComponent(name) };
  } catch {
    throw new ApiError(0, { code: "UNREACHABLE" }); // it broke off
  }
}

/** A part of a path that a person gave. */
export const part = (text) => encodeURIComponent(text);

/** A new `Idempotency-Key`: the same one for every try of one action (C6.2). */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Read server-sent events until the connection ends or `signal` aborts it. `EventSource` cannot show a credential.
 * `onEvent(name, data)` gets each event, `onBytes()` every sign of life. Returns the last id, to go on from.
 */
export async function stream(path, { lastId, signal, onEvent, onBytes }) {
  const headers = lastId ? { "Last-Event-ID": lastId } : {};
  const answer = await send("GET", path, { headers, signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let id = lastId;
  let [rest, name, data] = ["", "message", []];
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch {
      return id;
    }
    if (piece.done) return id;
    onBytes();
    if (!piece.value.includes("\n")) {
      rest += piece.value; // in the middle of a long line, which is looked through once
      continue;
    }
    const lines = (rest + piece.value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) onEvent(name, JSON.parse(data.join("\n")));
        [name, data] = ["message", []];
      } else if (line.startsWith("data: ")) data.push(line.slice(6));
      else if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("id: ")) id = line.slice(4);
    }
  }
}

async function ask(method, path, options = {}) {
  const answer = await send(method, path, options);
  if (answer.status === 204) return null;
  return answer.json();
}

async function send(method, path, { query, body, headers = {}, key, signal } = {}) {
  const sent = { Accept: "application/json, text/event-stream", ...headers };
  const who = session.value;
  if (who) sent.Authorization = `Bearer ${who.tokens[who.env]}`;
  if (key) sent["Idempotency-Key"] = key;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path + search(query), {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { code: "UNREACHABLE" });
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
  if (answer.status === 401 && who && session.value?.tokens === who.tokens) end("expired");
  throw new ApiError(answer.status, problem, retryAfter);
}

function search(query) {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  const given = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
