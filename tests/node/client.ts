// A client in the types that openapi-typescript makes of the served document, with its defaults. It is compiled, never
// run: a request gives only required fields, and an optional field of an answer is absent, never null.

import type { components, operations } from "./recado";

type Message = components["schemas"]["Message"];
type Answer<Operation extends { responses: object }, Status extends keyof Operation["responses"]> =
  Operation["responses"][Status] extends { content: { "application/json": infer Body } } ? Body : never;
type Refused<Operation extends { responses: object }, Status extends keyof Operation["responses"]> =
  Operation["responses"][Status] extends { content: { "application/problem+json": infer Problem } } ? Problem : never;
type Query<Operation extends { parameters: { query?: unknown } }> = NonNullable<Operation["parameters"]["query"]>;

const base = "http://127.0.0.1:8080";
const headers = { Authorization: "Bearer …", "Content-Type": "application/json" };

export async function send(numberId: string, to: string): Promise<string> {
  const message: components["schemas"]["CreateMessage"] = {
    numberId,
    to,
    type: "text",
    payload: { text: { body: "good morning" } },
  };
  const key: operations["createMessage"]["parameters"]["header"] = { "Idempotency-Key": "order A-1" };
  const answer = await fetch(`${base}/messages`, {
    method: "POST",
    headers: { ...headers, ...key },
    body: JSON.stringify(message),
  });
  if (!answer.ok) {
    const problem = (await answer.json()) as components["schemas"]["Problem"];
    throw new Error([problem.code, ...(problem.errors ?? []).map((error) => error.path)].join(" "));
  }
  const created = (await answer.json()) as Answer<operations["createMessage"], 201>;
  const warned: string[] = (created.warnings ?? []).map((warning) => warning.detail);
  return [created.id, ...warned].join("\n");
}

export async function* failures(): AsyncGenerator<string> {
  const query: Query<operations["listMessages"]> = { status: "failed" };
  let cursor: string | undefined;
  do {
    const asked = new URLSearchParams({ status: query.status ?? "", ...(cursor === undefined ? {} : { cursor }) });
    const answer = await fetch(`${base}/messages?${asked}`, { headers });
    const page = (await answer.json()) as Answer<operations["listMessages"], 200>;
    yield* page.items.map(told);
    cursor = page.nextCursor; // absent on the last page: null would not fit
  } while (cursor !== undefined);
}

function told(message: Message): string {
  const error: string | undefined = message.lastError;
  const at: Date | undefined = message.failedAt === undefined ? undefined : new Date(message.failedAt);
  return `${message.id} ${at?.toISOString() ?? "?"} ${error ?? "unknown"}`;
}

// What the contract types as nullable is null, and always there.
export function quiet(organization: components["schemas"]["OrganizationOut"]): string | null {
  return organization.quietHours === null ? null : organization.quietHours.start;
}

// The codes of a refusal are those of its operation: a client can look at each of them.
export function taken(problem: Refused<operations["createContact"], 409>): "phone" | "externalId" | "other" {
  return problem.code === "PHONE_TAKEN" ? "phone" : problem.code === "EXTERNAL_ID_TAKEN" ? "externalId" : "other";
}

// These must not compile: `@ts-expect-error` fails where there is no error to expect.
// @ts-expect-error a message has a type
export const nothing: components["schemas"]["CreateMessage"] = {};
// @ts-expect-error an optional field of an answer is never null
export const absent: Message["lastError"] = null;
// @ts-expect-error no message is refused for the name of a list
export const foreign: Refused<operations["createMessage"], 422>["code"] = "LIST_NAME_TAKEN";
