// Reading from the API inside views: what is there, what failed, and since when it is shown.
import { useEffect, useRef, useState } from "./lib.js";
import { get } from "./api.js";

const NOTHING = { data: null, error: null, loading: true, at: null };

/**
 * Read with `read(signal)` at first, when `deps` change, and every `every` seconds while the page is looked at.
 * Gives {data, error, loading, at, reload}. What was read stays while a later reading fails: `error` says so, and `at`
 * is the moment at which it was asked for.
 */
export function useLoad(read, deps, { every } = {}) {
  const [state, setState] = useState(NOTHING);
  const again = useRef(null);
  useEffect(() => {
    const abort = new AbortController();
    let timer;
    setState(NOTHING);
    const load = async () => {
      clearTimeout(timer);
      setState((before) => ({ ...before, loading: true }));
      const at = new Date().toISOString();
      try {
        const data = await read(abort.signal);
        if (!abort.signal.aborted) setState({ data, error: null, loading: false, at });
      } catch (error) {
        if (!abort.signal.aborted) setState((before) => ({ ...before, error, loading: false }));
      }
      if (every && !abort.signal.aborted) timer = setTimeout(() => (document.hidden ? wait() : load()), 1000 * every);
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
 * A list with pages (C5): those that were read so far, one after another. Gives {items, total, error, loading, more,
 * reload}; `more` reads the next page, and is null after the last one.
 */
export function usePages(path, query = {}, limit = 50) {
  const [pages, setPages] = useState({ items: [], next: null, error: null, loading: false });
  const first = useLoad((signal) => get(path, { ...query, limit }, { signal }), [path, JSON.stringify(query), limit]);
  const shown = useRef(null);
  useEffect(() => {
    shown.current = first.data;
    setPages({ items: [], next: null, error: null, loading: false });
  }, [first.data]);
  const next = pages.next ?? first.data?.nextCursor;
  const more = async () => {
    const beginning = first.data;
    const set = (change) => shown.current === beginning && setPages(change); // else it is of another list
    set((before) => ({ ...before, error: null, loading: true }));
    try {
      const page = await get(path, { ...query, limit, cursor: next });
      set((before) => ({
        items: [...before.items, ...page.items], next: page.nextCursor ?? "", error: null, loading: false,
      }));
    } catch (error) {
      set((before) => ({ ...before, error, loading: false }));
    }
  };
  return {
    items: first.data ? [...first.data.items, ...pages.items] : null,
    total: first.data?.total,
    totalEstimated: first.data?.totalEstimated ?? false,
    error: first.error ?? pages.error,
    loading: first.loading || pages.loading,
    at: first.at,
    more: next ? more : null,
    reload: first.reload,
  };
}
