// What the public package sns-validator thinks of envelopes. On standard input: {envelopes, certificate}, the PEM that
// stands at every address; it prints for each envelope null, or why it is refused.
import https from "node:https";
import { Readable } from "node:stream";
import MessageValidator from "sns-validator";

let input = "";
for await (const chunk of process.stdin) input += chunk;
const { envelopes, certificate } = JSON.parse(input);
https.get = (address, answered) => {
  answered(Object.assign(Readable.from([Buffer.from(certificate)]), { statusCode: 200 }));
  return { on() {} };
};
const validator = new MessageValidator();
const found = envelopes.map((envelope) => new Promise((done) => {
  validator.validate(envelope, (error) => done(error ? error.message : null));
}));
console.log(JSON.stringify(await Promise.all(found)));
