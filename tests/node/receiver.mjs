// A webhook receiver as a user of the public package writes one: it listens on a free port of 127.0.0.1 and prints it,
// then a line of JSON for each request. The secret is read from the file that is named as the first argument.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts).toString("utf8");
  let accepted = true;
  try {
    new Webhook(readFileSync(process.argv[2], "utf8")).verify(body, request.headers);
  } catch (error) {
    accepted = false;
  }
  console.log(JSON.stringify({ accepted, headers: request.headers, body }));
  response.writeHead(accepted ? 204 : 400).end();
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
