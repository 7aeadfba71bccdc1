// Reading from the API inside views: what is there, what failed, and since when it is shown.
import { useEffect, useRef, useState } from "./lib.js";
import { get } from "./api.js";

const NOTHING = { data: null, error: null, loading: true, at: null };
const NO_PAGES = { items: [], last: null, error: null, loading: false };

/**
 * Read with `read(signal)` at first, when `deps` change, and every `every` seconds while the page is looked at. `every`
 * may be a function that gives the seconds, or nothing when there is no more to come.
 * Gives {data, error, loading, at, reload}. What was read stays while a later reading fails: `error` says so, and `at`
 * is the moment at which it was asked for.
 */
export function useLoad(read, deps, { every } = {}) {
  const [state, setState] = useState(NOTHING);
  const again = useRef(null);
  useEffect(() => {
    const abort = new AbortController();
    let timer;
    let latest = 0;
    setState(NOTHING);
    const load = async () => {
      clearTimeout(timer);
      const mine = (latest += 1);
      const passed = () => abort.signal.aborted || mine !== latest; // a later reading says what is there
      setState((before) => ({ ...before, loading: true }));
      const at = new Date().toISOString();
      try {
        const data = await read(abort.signal);
        if (!passed()) setState({ data, error: null, loading: false, at });
      } catch (error) {
        if (!passed()) setState((before) => ({ ...before, error, loading: false }));
      }
      if (passed()) return;
      const next = typeof every === "function" ? every() : every;
      if (next) timer = setTimeout(() => (document.hidden ? wait() : load()), 1000 * next);
    };
    const wait = () => document.addEventListener("visibilitychange", load, { once: true, signal: abort.signal });
    again.current = load;
    load();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, deps);
  return { ...state, reload: () => again.current() };
}

/** One record, or a list without pages: `useGet("/v2/wallet")`. */
export function useGet(path, query, options) {
  return useLoad((signal) => get(path, query, { signal }), [path, JSON.stringify(query ?? {})], options);
}

/**
 * A list with pages (C5): those that were read so far, one after another. Gives {items, total, warnings, error, loading,
 * more, reload}; `more` reads the next page, by cursor or by skip as the list has it, and is null after the last one.
 */
export function usePages(path, query = {}, limit = 50) {
  const [pages, setPages] = useState(NO_PAGES);
  const first = useLoad((signal) => get(path, { ...query, limit }, { signal }), [path, JSON.stringify(query), limit]);
  const shown = useRef(null);
  useEffect(() => {
    shown.current = first.data;
    setPages(NO_PAGES);
  }, [first.data]);
  const items = first.data ? [...first.data.items, ...pages.items] : null;
  const next = first.data && following(first.data, pages.last ?? first.data, items.length, limit);
  const more = async () => {
    const beginning = first.data;
    const set = (change) => shown.current === beginning && setPages(change); // else it is of another list
    set((before) => ({ ...before, error: null, loading: true }));
    try {
      const page = await get(path, { ...query, limit, ...next });
      set((before) => ({ items: [...before.items, ...page.items], last: page, error: null, loading: false }));
    } catch (error) {
      set((before) => ({ ...before, error, loading: false }));
    }
  };
  return {
    items,
    total: first.data?.total,
    totalEstimated: first.data?.totalEstimated ?? false,
    warnings: first.data?.warnings ?? [],
    error: first.error ?? pages.error,
    loading: first.loading || pages.loading,
    at: first.at,
    more: next ? more : null,
    reload: first.reload,
  };
}

/** How the page after `last` is asked for, when `read` items were read; null when there is none. */
function following(first, last, read, limit) {
  if (first.nextCursor) return last.nextCursor ? { cursor: last.nextCursor } : null;
  const { items, total, totalEstimated } = last;
  return items.length === limit && (read < total || totalEstimated) ? { skip: read } : null;
}
