// The HTML of an e-mail in a frame without scripts, forms, links and images, whatever it holds.
//
// The page's policy lets no text become markup inside the page, and holds inside the frame, too, where it refuses styles
// that stand in markup. So the text is read as a document apart, in which nothing runs or loads, its styles under another
// name; its elements move into the frame, and get their styles there, as the policy allows. The frame runs no scripts,
// which is why the page may reach into it.
import { html, useEffect, useRef } from "../lib.js";

const DROPPED = "title, script, style, link, meta, base, iframe, frame, frameset, object, embed, template, noscript, svg, math, audio, video";
const ADDRESSES = ["href", "src", "srcset", "background", "action", "formaction", "poster", "ping", "data"];
// Comments, in which styles for some programs stand, and style elements; both end with the text at the latest.
const SHEETS = /<!--[^]*?(?:-->|$)|<style\b[^<>]*>([^]*?)(?:<\/style\s*>|$)/gi;
const TAGS = /<[a-z](?:"[^"]*"|'[^']*'|[^"'<>])*>/gi;
const HEAD = /^<(base|meta|link)\b/i;
const HELD = /([\s"'/])(style|on\w+)(?=\s*=)/gi; // attributes of which the policy complains, also in a document apart
const STYLE = "data-held-style";
const FOREIGN = /url\s*\([^)]*\)|@import[^;]*;?/gi; // would call other hosts
const PAPER = "margin: 0; padding: 8px; background: white; color: black; font-family: sans-serif;";

/** `content`: HTML; `title`: what the frame is, for those who listen. */
export function Mail({ content, title }) {
  const frame = useRef(null);
  useEffect(() => {
    let current = true;
    const show = async () => {
      const sheets = [];
      const source = await parsed(held(content, sheets));
      if (current) fill(frame.current, source, sheets);
    };
    show();
    return () => { current = false; };
  }, [content]);
  return html`<iframe class="mail" ref=${frame} sandbox="allow-same-origin" title=${title}></iframe>`;
}

/** The text without style sheets, which go into `sheets`, and with its styles under another name. */
function held(content, sheets) {
  const rest = content.replace(SHEETS, (_, sheet) => {
    if (sheet) sheets.push(sheet.replace(FOREIGN, ""));
    return "";
  });
  return rest.replace(TAGS, (tag) => (HEAD.test(tag) ? "" : tag.replace(HELD, "$1data-held-$2")));
}

/** A document apart: in it nothing runs, and nothing is loaded. */
function parsed(content) {
  return new Promise((resolve) => {
    const address = URL.createObjectURL(new Blob([content], { type: "text/html;charset=utf-8" }));
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.addEventListener("loadend", () => {
      URL.revokeObjectURL(address);
      resolve(request.response);
    });
    request.send();
  });
}

function fill(frame, source, sheets) {
  const target = frame.contentDocument;
  for (const element of source.querySelectorAll(DROPPED)) element.remove();
  const styles = [...source.body.querySelectorAll("*")].map((element) => [element, stripped(element)]);
  const paper = PAPER + stripped(source.body);
  target.body.replaceChildren(...source.body.childNodes); // they move: `styles` names what is in the frame now
  for (const [element, style] of styles) element.style.cssText = style;
  target.body.style.cssText = paper;
  target.adoptedStyleSheets = sheets.map((text) => {
    const sheet = new frame.contentWindow.CSSStyleSheet();
    sheet.replaceSync(text);
    return sheet;
  });
}

/** Take away what acts, leads elsewhere or is styled; gives the style. */
function stripped(element) {
  const style = element.getAttribute(STYLE) ?? "";
  for (const { name } of [...element.attributes]) {
    if (name === "style" || name.startsWith("on") || name.startsWith("data-held-") || ADDRESSES.includes(name)) {
      element.removeAttribute(name);
    }
  }
  return style.replace(FOREIGN, "none");
}
