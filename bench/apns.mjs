// A push service over HTTP/2 that takes everything. Its key and certificate are the files that are named; it prints its port.
import { readFileSync } from "node:fs";
import http2 from "node:http2";

const [key, cert] = process.argv.slice(2).map((file) => readFileSync(file));
const server = http2.createSecureServer({ key, cert, settings: { maxConcurrentStreams: 1000 } });
server.on("stream", (stream) => {
  stream.on("end", () => stream.respond({ ":status": 200 }, { endStream: true }));
  stream.on("error", () => {});
  stream.resume();
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
