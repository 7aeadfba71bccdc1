// Where one is: the address after `#`, such as `#/numbers/num_…?tab=errors`.
import { Store } from "./store.js";

export const place = new Store(read());

addEventListener("hashchange", () => place.set(read()));

/** The address of a place, for links: `href("/messages", {contactId})`. */
export function href(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

export function go(path, query) {
  location.hash = href(path, query);
}

/** The parameters of `path` in the pattern `/numbers/:id`; null where it is another one. */
export function match(pattern, path) {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  if (wanted.length !== given.length) return null;
  const params = {};
  for (const [index, part] of wanted.entries()) {
    if (part.startsWith(":")) params[part.slice(1)] = given[index];
    else if (part !== given[index]) return null;
  }
  return params;
}

function read() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  try {
    return { path: path.split("/").map(decodeURIComponent).join("/") || "/", query: Object.fromEntries(new URLSearchParams(query)) };
  } catch {
    return { path: "/", query: {} };
  }
}
