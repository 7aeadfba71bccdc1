// What the public package mailauth thinks of the signature of a message. On standard input: {message (base64), record},
// the TXT record that stands at every name; it prints the results, one object for each signature.
import { dkimVerify } from "mailauth/lib/dkim/verify.js";

let input = "";
for await (const chunk of process.stdin) input += chunk;
const { message, record } = JSON.parse(input);
const found = await dkimVerify(Buffer.from(message, "base64"), { resolver: async () => [[record]] });
console.log(JSON.stringify(found.results.map((each) => ({
  result: each.status.result,
  comment: each.status.comment ?? null,
  domain: each.signingDomain,
  selector: each.selector,
  algorithm: each.algo,
  aligned: each.status.aligned ?? null,
}))));
