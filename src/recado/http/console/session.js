// Who is signed in, and in which environment. Kept for this tab only: closing it forgets the tokens.
import { Store } from "./store.js";

const KEPT = "recado.session";

/** null, or {tokens: {live, test}, account, scopes, expiresAt, env, organization: {name, timeZone}}. */
export const session = new Store(read());

/** Why the last session ended, for the page where one signs in: "", "expired" or "signedOut". */
export const ended = new Store("");

export function begin(opened) {
  ended.set("");
  keep({ ...opened, env: "test", organization: null });
}

export function change(parts) {
  if (session.value) keep({ ...session.value, ...parts });
}

export function end(why) {
  ended.set(why);
  keep(null);
}

/** The zone in which times are shown (C24.1). */
export function timeZone() {
  return session.value?.organization?.timeZone ?? "America/Sao_Paulo";
}

/**
 * Whether the session may do what needs `scope`, as far as its sign-in told: what was allowed since is refused here until
 * one signs in again, and what was taken away is refused by the API. No `scope`: everybody may.
 */
export function holds(scope) {
  return !scope || (session.value?.scopes?.includes(scope) ?? true);
}

function keep(value) {
  if (value === null) sessionStorage.removeItem(KEPT);
  else sessionStorage.setItem(KEPT, JSON.stringify(value));
  session.set(value);
}

function read() {
  try {
    const found = JSON.parse(sessionStorage.getItem(KEPT));
    return found?.tokens?.live && found.tokens.test ? found : null;
  } catch {
    return null;
  }
}
