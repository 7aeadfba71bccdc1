// A value that several parts of the page show: whoever uses it is drawn again when it changes.
import { useEffect, useState } from "./lib.js";

export class Store {
  #watchers = new Set();

  constructor(value) {
    this.value = value;
  }

  set(value) {
    this.value = value;
    for (const watch of [...this.#watchers]) watch(value);
  }

  /** Call `watch` at each change; returns what ends that. */
  watch(watch) {
    this.#watchers.add(watch);
    return () => this.#watchers.delete(watch);
  }
}

/** The value of `store`, in a component. */
export function useStore(store) {
  const [, redraw] = useState(0);
  const drawn = store.value;
  useEffect(() => {
    const again = () => redraw((times) => times + 1);
    if (store.value !== drawn) again(); // it changed before this effect ran
    return store.watch(again);
  }, [store]);
  return drawn;
}
