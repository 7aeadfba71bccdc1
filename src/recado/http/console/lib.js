// What views are written with: markup as tagged templates, without a build step. Texts in `${…}` become text nodes,
// never markup, whoever wrote them.
import { h } from "./vendor/preact/preact.mjs";
import htm from "./vendor/htm/htm.mjs";

export { Component, Fragment, render } from "./vendor/preact/preact.mjs";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact/hooks.mjs";

export const html = htm.bind(h);
