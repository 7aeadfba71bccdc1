// Apple's push service, as far as Node's own HTTP/2 goes. Its key and certificate are the files that are named; it prints its
// port, then each request as a line. The token of a device says what becomes of it; after "goaway" a session takes nothing more.
import { readFileSync } from "node:fs";
import http2 from "node:http2";

const [key, cert] = process.argv.slice(2).map((file) => readFileSync(file));
const server = http2.createSecureServer({ key, cert, settings: { maxConcurrentStreams: 40 } });
const say = (told) => console.log(JSON.stringify(told));
const REASONS = { 400: "BadTopic", 403: "InvalidProviderToken", 410: "Unregistered", 413: "PayloadTooLarge", 503: "ServiceUnavailable" };
server.on("stream", (stream, headers) => {
  let body = "";
  stream.on("data", (chunk) => (body += chunk));
  stream.on("end", () => {
    const token = headers[":path"].split("/").pop();
    const [, status] = /^s(\d{3})/.exec(token) ?? [null, "200"];
    say({ headers, body: JSON.parse(body) });
    if (token.startsWith("reset")) return stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    if (token.startsWith("refuse")) return stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    if (token.startsWith("goaway")) stream.session.close();
    const more = status === "503" ? { "retry-after": "9" } : {};
    setImmediate(() => {
      stream.respond({ ":status": Number(status), "apns-id": "1", ...more });
      stream.end(status === "200" ? "" : JSON.stringify({ reason: REASONS[status] ?? "Other" }));
    });
  });
  stream.on("error", () => {});
});
server.on("sessionError", () => {});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
