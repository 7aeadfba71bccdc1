// An SMS centre made with the public package: it listens on a free port of 127.0.0.1 and prints it, then a line of JSON
// for each message, as the package reads it. A recipient that ends in 90NN is answered with the status NN (decimal).
// After "bye" it unbinds; "ping" is replied to. With --quick it prints nothing but its port, and reports nothing.
import smpp from "smpp";

const quick = process.argv.includes("--quick");
let taken = 0xa0;

const server = smpp.createServer((session) => {
  session.on("error", () => session.close());
  session.on("bind_transceiver", (pdu) => {
    const known = pdu.system_id === "recado" && pdu.password === "pass-9f2";
    session.send(pdu.response({ command_status: known ? 0 : smpp.ESME_RINVPASWD, system_id: "smsc" }));
  });
  session.on("enquire_link", (pdu) => session.send(pdu.response()));
  session.on("unbind", (pdu) => session.send(pdu.response(), () => session.close()));
  session.on("unbind_resp", () => session.close());
  session.on("submit_sm", (pdu) => {
    if (quick) {
      session.send(pdu.response({ message_id: String(taken++) }));
      return;
    }
    const text = pdu.short_message.message;
    const header = pdu.short_message.udh ? Buffer.concat(pdu.short_message.udh).toString("hex") : "";
    console.log(JSON.stringify({
      from: pdu.source_addr,
      to: pdu.destination_addr,
      coding: pdu.data_coding,
      header,
      text,
      receipt: pdu.registered_delivery,
    }));
    const refused = /90(\d\d)$/.exec(pdu.destination_addr);
    if (refused) {
      session.send(pdu.response({ command_status: Number(refused[1]) }));
      return;
    }
    const id = taken++;
    session.send(pdu.response({ message_id: id.toString(16).toUpperCase() }));
    const back = { source_addr: pdu.destination_addr, destination_addr: pdu.source_addr };
    if (pdu.registered_delivery) {
      const said = `id:${String(id).padStart(10, "0")} sub:001 dlvrd:001 stat:DELIVRD err:000 text:`;
      session.deliver_sm({
        ...back,
        esm_class: 4,
        short_message: said,
        receipted_message_id: String(id),
        message_state: 2,
      });
    }
    if (text === "ping") session.deliver_sm({ ...back, short_message: { message: "Olá 😀" }, data_coding: 8 });
    if (text === "bye") session.unbind();
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
