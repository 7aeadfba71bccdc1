// The reference: the document of this very server as groups, a search, and a page for each operation with its samples.
// Text becomes text nodes only, never markup.

const METHODS = ["get", "put", "post", "delete", "patch"];

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null));
  return made;
}

// Of Markdown, what the document uses: paragraphs, lists, code.
function prose(text) {
  const spans = (line) =>
    line.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part.replaceAll("**", "")));
  return (text ?? "").split(/\n\n+/).filter(Boolean).map((block) => {
    const lines = block.split("\n");
    return lines.every((line) => line.startsWith("- "))
      ? element("ul", {}, lines.map((line) => element("li", {}, spans(line.slice(2)))))
      : element("p", {}, spans(lines.join(" ")));
  });
}

function resolved(api, value) {
  while (value?.$ref) value = value.$ref.split("/").slice(1).reduce((place, name) => place[name], api);
  return value;
}

function named(schema) {
  return schema.$ref?.split("/").pop();
}

// What a schema is, in a line: `text`, `list of Message`, `one of …`.
function kind(api, schema) {
  if (named(schema)) {
    const found = resolved(api, schema);
    return found.enum ? `one of ${found.enum.map((value) => JSON.stringify(value)).join(", ")}` : named(schema);
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return `one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`;
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return options.map((option) => kind(api, option)).join(" or ");
  if (schema.type === "array") return `list of ${kind(api, schema.items ?? {})}`;
  const type = [schema.type ?? "any"].flat().join(" or ");
  return schema.format ? `${type} (${schema.format})` : type;
}

function limits(schema) {
  const words = {
    minLength: "at least %s characters", maxLength: "at most %s characters", minimum: "from %s", maximum: "to %s",
    minItems: "at least %s items", maxItems: "at most %s items", pattern: "of the form %s",
  };
  return Object.entries(words)
    .filter(([name]) => schema[name] !== undefined)
    .map(([name, word]) => word.replace("%s", () => schema[name]))
    .join(", ");
}

// The objects that a value of the schema is made of; each is opened when somebody asks for it.
function parts(api, schema) {
  const found = resolved(api, schema);
  if (found.properties) return [schema];
  return [found.items, ...(found.anyOf ?? found.oneOf ?? found.allOf ?? [])].filter(Boolean).flatMap((part) => parts(api, part));
}

function later(summary, make) {
  const folded = element("details", {}, element("summary", {}, summary));
  folded.addEventListener("toggle", () => folded.children.length === 1 && folded.append(...[make()].flat(Infinity)));
  return folded;
}

function member(api, name, schema, required, place) {
  const description = schema.description ?? resolved(api, schema).description;
  const facts = [kind(api, schema), required ? "required" : undefined, place, limits(schema)].filter(Boolean).join(", ");
  return [
    element("dt", {}, element("code", {}, name), " ", element("span", { class: "quiet" }, facts)),
    element("dd", {}, prose(description), parts(api, schema).map((part) => later(named(part) ?? "Members", () => members(api, part)))),
  ];
}

function members(api, schema) {
  const { properties = {}, required = [] } = resolved(api, schema);
  return element("dl", {}, Object.entries(properties).map(([name, field]) => member(api, name, field, required.includes(name))));
}

function shape(api, schema) {
  const found = parts(api, schema);
  return found.length === 1 ? members(api, found[0]) : found.map((part) => later(named(part) ?? "Members", () => members(api, part)));
}

function code(text, label) {
  const copied = element("span", { class: "quiet", role: "status" });
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    copied.textContent = " Copied.";
  };
  return [
    element("pre", { tabindex: "0", role: "region", "aria-label": label }, element("code", {}, text)),
    navigator.clipboard ? element("p", {}, element("button", { type: "button", onclick: copy }, "Copy"), copied) : undefined,
  ];
}

const shown = (value) => JSON.stringify(value, null, 2);

// One of several texts: `choices` are label and text.
function choice(heading, choices) {
  const place = element("div", {});
  const select = element("select", { "aria-label": heading }, choices.map(([label], at) => element("option", { value: at }, label)));
  const choose = () => {
    const [label, text] = choices[select.value];
    place.replaceChildren(...code(text, `${heading}: ${label}`).filter(Boolean));
  };
  select.addEventListener("change", choose);
  choose();
  return [element("h2", {}, heading, " ", select), place];
}

function contents(api, response) {
  return Object.entries(resolved(api, response ?? {}).content ?? {});
}

function examplesOf(api, status, response) {
  return contents(api, response).flatMap(([, content]) => [
    ...(content.example === undefined ? [] : [[status, shown(content.example)]]),
    ...Object.entries(content.examples ?? {}).map(([name, example]) => [`${status} ${name}`, shown(resolved(api, example).value)]),
  ]);
}

function operationPage(api, { method, path, operation }) {
  const responses = Object.entries(operation.responses);
  const answers = responses.flatMap(([status, response]) => examplesOf(api, status, response));
  const requests = [
    ...(operation["x-codeSamples"] ?? []).map(({ label, source }) => [label, source]),
    ...examplesOf(api, "Body alone", operation.requestBody),
  ];
  return [
    element("h1", {}, operation.summary),
    element("p", { class: "address" }, element("span", { class: `method ${method}` }, method.toUpperCase()), " ", element("code", {}, path)),
    element("div", { class: "operation" },
      element("div", {},
        prose(operation.description),
        operation.parameters && [
          element("h2", {}, "Parameters"),
          element("dl", {}, operation.parameters.map((parameter) => resolved(api, parameter)).map(({ name, in: place, schema, required, description }) =>
            member(api, name, { ...schema, description }, required, `in the ${place}`))),
        ],
        contents(api, operation.requestBody).map(([type, { schema }]) => [
          element("h2", {}, "Body ", element("span", { class: "quiet" }, type)), shape(api, schema),
        ]),
        element("h2", {}, "Answers"),
        responses.map(([status, response]) => {
          const found = resolved(api, response);
          const types = contents(api, response);
          return later(`${status} ${found.description.split("\n")[0]}`, () => [
            ...prose(found.description.split("\n").slice(1).join("\n")),
            ...types.filter(() => status < "400").flatMap(([type, { schema }]) => [element("p", { class: "quiet" }, type), shape(api, schema)]),
          ]);
        })),
      element("div", { class: "samples" },
        requests.length > 0 ? choice("Request", requests) : undefined,
        answers.length > 0 ? choice("Answer", answers) : undefined)),
  ];
}

function groupPage(api, group) {
  return [
    element("h1", {}, group.name),
    ...prose(group.description),
    element("ul", {}, group.operations.map((each) => element("li", {}, link(each)))),
  ];
}

function firstPage(api, groups) {
  return [
    element("h1", {}, `${api.info.title} ${api.info.version}`),
    ...prose(api.info.description),
    element("ul", {},
      element("li", {}, element("a", { href: "/v2/openapi.json" }, "The OpenAPI document"), ", for generators of clients"),
      element("li", {}, element("a", { href: "/docs/try" }, "Try it"), ": send calls from a page"),
      element("li", {}, element("a", { href: "/problems" }, "Problems"), ": what each code means, and what to do")),
    element("h2", {}, "Groups"),
    element("dl", {}, groups.map((group) => [
      element("dt", {}, element("a", { href: group.href }, group.name)), element("dd", {}, prose(group.description.split("\n\n")[0])),
    ])),
  ];
}

function link(entry) {
  return element("a", { href: entry.href },
    element("span", { class: `method ${entry.method}` }, entry.method.toUpperCase()), " ", element("span", {}, entry.operation.summary));
}

function groupsOf(api) {
  const entries = [
    ...Object.entries(api.paths).flatMap(([path, methods]) => METHODS.filter((method) => methods[method]).map((method) => [path, method, methods[method]])),
    ...Object.entries(api.webhooks ?? {}).map(([event, { post }]) => [event, "event", { ...post, summary: event }]),
  ].map(([path, method, operation]) => ({
    path, method, operation, href: `#/${encodeURIComponent(method === "event" ? path : operation.operationId)}`,
    words: [method, path, operation.operationId, operation.summary, operation.description, ...operation.tags].join(" ").toLowerCase(),
  }));
  return api.tags.map(({ name, description }) => ({
    name, description, href: `#/tag/${encodeURIComponent(name)}`,
    operations: entries.filter(({ operation }) => operation.tags.includes(name)),
  }));
}

function start(api) {
  const groups = groupsOf(api);
  const main = document.querySelector("main");
  const pages = new Map(groups.flatMap((group) => [
    [group.href, () => groupPage(api, group)],
    ...group.operations.map((entry) => [entry.href, () => operationPage(api, entry)]),
  ]));
  const listed = groups.map((group) => {
    const items = group.operations.map((entry) => ({ entry, row: element("li", {}, link(entry)) }));
    const section = element("section", {},
      element("h2", {}, element("a", { href: group.href }, group.name)), element("ul", {}, items.map(({ row }) => row)));
    return { section, items };
  });
  document.querySelector("#groups").append(...listed.map(({ section }) => section));

  const search = document.querySelector("#search");
  const narrow = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { section, items } of listed) {
      let some = false;
      for (const { entry, row } of items) {
        row.hidden = !words.every((word) => entry.words.includes(word));
        some ||= !row.hidden;
        count += row.hidden ? 0 : 1;
      }
      section.hidden = !some;
    }
    document.querySelector("#found").textContent = words.length ? `${count} found` : "";
  };
  search.addEventListener("input", narrow);

  const show = (focus) => {
    const page = pages.get(location.hash) ?? (() => firstPage(api, groups));
    main.replaceChildren(...page());
    for (const each of document.querySelectorAll("nav a")) {
      if (each.hash === location.hash && location.hash !== "") each.setAttribute("aria-current", "page");
      else each.removeAttribute("aria-current");
    }
    document.title = `${main.querySelector("h1").textContent} – Recado`;
    if (focus) {
      scrollTo(0, 0);
      main.focus();
    }
  };
  addEventListener("hashchange", () => location.hash !== "#interface" && show(true));
  show(false);
}

const answer = await fetch("/v2/openapi.json");
if (answer.ok) start(await answer.json());
else document.querySelector("main").textContent = "The document cannot be read now: load the page again.";
