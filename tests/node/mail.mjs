// A mail server made with the public package smtp-server: it listens on a free port of 127.0.0.1 and prints it, then a
// line of JSON for each message, as the public package mailparser reads it. With --quick it prints nothing but its port.
// Its certificate is the one that comes with the package, for which nobody vouches.
import { simpleParser } from "mailparser";
import { SMTPServer } from "smtp-server";

const quick = process.argv.includes("--quick");

const server = new SMTPServer({
  authOptional: true,
  size: 4 * 1024 * 1024,
  onData(stream, session, done) {
    if (quick) {
      stream.on("data", () => {});
      stream.on("end", () => done());
      return;
    }
    const chunks = [];
    stream.on("data", (chunk) => chunks.push(chunk));
    stream.on("end", async () => {
      const parsed = await simpleParser(Buffer.concat(chunks), { skipHtmlToText: true, skipTextToHtml: true });
      const header = (name) => parsed.headerLines.filter((line) => line.key === name).map((line) => line.line);
      console.log(JSON.stringify({
        sender: session.envelope.mailFrom.address,
        recipients: session.envelope.rcptTo.map((to) => to.address),
        from: parsed.from.value,
        to: parsed.to.value,
        subject: parsed.subject ?? "",
        id: parsed.messageId,
        date: parsed.date,
        text: parsed.text ?? null,
        html: parsed.html || null,
        names: parsed.headerLines.map((line) => line.key),
        unsubscribe: header("list-unsubscribe"),
        feedback: header("feedback-id"),
      }));
      done();
    });
  },
});
server.on("error", () => {});
server.listen(0, "127.0.0.1", () => console.log(server.server.address().port));
