// The console: signing in, and around each view the frame with the menu, the environment and the language.
import { Component, html, render, useEffect, useLayoutEffect, useState } from "./lib.js";
import { get, post, remove } from "./api.js";
import { change, begin, end, ended, holds, session } from "./session.js";
import { LANGUAGES, language, locale, speak, t } from "./texts.js";
import { href, match, place } from "./router.js";
import { useStore } from "./store.js";
import { Form } from "./parts/form.js";
import { Page } from "./parts/page.js";
import { Failure } from "./parts/states.js";
import { FIRST, VIEWS } from "./views.js";

function App() {
  const spoken = useStore(language);
  const who = useStore(session);
  useLayoutEffect(() => { document.documentElement.lang = locale(); }, [spoken]);
  return who ? html`<${Frame} key=${`${spoken} ${who.env}`} who=${who} />` : html`<${SignIn} key=${spoken} />`;
}

function SignIn() {
  const why = useStore(ended);
  const [joined, setJoined] = useState(false);
  return html`
    <div class="signin">
      <header class="top"><strong class="mark">Recado</strong><${Languages} /></header>
      <main>
        <${Page} title=${t("signin.title")}>
          ${why && html`<p class="notice warn" role="status">${t(`signin.${why}`)}</p>`}
          <${Form} label=${t("signin.title")} submit=${t("signin.submit")} fields=${[
            { name: "email", label: t("signin.email"), type: "email", required: true, autocomplete: "username" },
            { name: "password", label: t("signin.password"), type: "password", required: true,
              autocomplete: "current-password" },
          ]} run=${(values) => post("/v2/sessions", values)} done=${begin} />
          <details>
            <summary>${t("signin.invited")}</summary>
            ${joined
              ? html`<p class="notice good" role="status">${t("signin.joined")}</p>`
              : html`<${Form} label=${t("signin.invited")} submit=${t("signin.join")} fields=${[
                  { name: "token", label: t("signin.token"), required: true, autocomplete: "off" },
                  { name: "password", label: t("signin.newPassword"), type: "password", required: true, minlength: 12,
                    hint: t("signin.passwordHint"), autocomplete: "new-password" },
                ]} run=${(values) => post("/v2/accounts/accept-invite", values)} done=${() => setJoined(true)} />`}
          </details>
          <p class="quiet">${t("signin.help")}</p>
        <//>
      </main>
    </div>
  `;
}

function Frame({ who }) {
  const at = useStore(place);
  const [open, setOpen] = useState(false);
  const path = at.path === "/" ? FIRST : at.path;
  const found = VIEWS.map((view) => [view, match(view.path, path)]).find(([, params]) => params);
  useEffect(() => setOpen(false), [at]);
  useEffect(() => {
    const abort = new AbortController();
    get("/v2/organization", {}, { signal: abort.signal })
      .then(({ name, timeZone }) => change({ organization: { name, timeZone } }), () => {});
    return () => abort.abort();
  }, []);
  return html`
    <a class="skip" href="#content" onClick=${toContent}>${t("frame.skip")}</a>
    <header class=${`top ${who.env}`}>
      <button type="button" class="menu" aria-expanded=${open ? "true" : "false"} aria-controls="menu"
        onClick=${() => setOpen(!open)}>${t("frame.menu")}</button>
      <strong class="mark">Recado</strong>
      <span class="organization">${who.organization?.name}</span>
      <${Environment} env=${who.env} />
      <${Languages} />
      <span class="account">${who.account.name}</span>
      <button type="button" onClick=${signOut}>${t("frame.signOut")}</button>
    </header>
    <div class="body">
      <${Menu} open=${open} path=${path} />
      <main id="content" tabindex="-1">
        <${Boundary} key=${JSON.stringify(at)}>
          ${found
            ? html`<${found[0].render} params=${found[1]} query=${at.query} />`
            : html`<${Page} title=${t("frame.nowhere")}><p>${t("frame.nowhereHelp")}</p><//>`}
        <//>
      </main>
    </div>
  `;
}

/** In which environment one looks and acts; always there to see. */
function Environment({ env }) {
  return html`
    <fieldset class="switch">
      <legend>${t("frame.environment")}</legend>
      ${["test", "live"].map((each) => html`
        <label class=${each}><input type="radio" name="env" value=${each} checked=${each === env}
          onChange=${() => change({ env: each })} /><span>${t(`env.${each}`)}</span></label>
      `)}
    </fieldset>
  `;
}

function Languages() {
  return html`
    <select aria-label=${t("frame.language")} onChange=${(event) => speak(event.target.value)}>
      ${LANGUAGES.map(([name, called, lang]) => html`
        <option value=${name} lang=${lang} selected=${name === language.value}>${called}</option>`)}
    </select>
  `;
}

function Menu({ open, path }) {
  const shown = VIEWS.filter((view) => view.menu && holds(view.scope));
  const groups = [...new Set(shown.map((view) => view.group))];
  return html`
    <nav id="menu" class=${open ? "open" : ""} aria-label=${t("frame.menu")}>
      ${groups.map((group) => html`
        <p class="group" id=${group}>${t(group)}</p>
        <ul aria-labelledby=${group}>${shown.filter((view) => view.group === group).map((view) => html`
          <li><a href=${href(view.path)} aria-current=${within(view.path, path) ? "page" : undefined}>
            ${t(view.title)}</a></li>`)}</ul>
      `)}
    </nav>
  `;
}

/** A fault of a view leaves the frame standing. */
class Boundary extends Component {
  static getDerivedStateFromError(error) {
    return { error };
  }

  render({ children }, { error }) {
    return error
      ? html`<${Page} title=${t("error.page")}><${Failure} error=${error} retry=${() => this.setState({ error: null })} /><//>`
      : children;
  }
}

/** The session ends here even where the server cannot be told. */
function signOut() {
  remove("/v2/sessions/current").catch(() => {});
  end("signedOut");
}

function toContent(event) {
  event.preventDefault(); // the address after # is the place
  document.getElementById("content").focus();
}

function within(path, current) {
  return current === path || current.startsWith(`${path}/`);
}

render(html`<${App} />`, document.getElementById("console"));
