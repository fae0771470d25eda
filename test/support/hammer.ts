/** `node hammer.ts <host> …`: new TCP connections and datagrams of new sockets all the time; each line of input is answered with how many there were, `last` begins lasting ones, too. */
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { createInterface } from "node:readline";

const EVERY_MS = 40;
const GIVEN_UP_MS = 1_000;
const hosts = process.argv.slice(2);
let begun = 0;

/** One that lasts: a packet of it that passes the proxy by is seen as well. */
function lasting(host: string): void {
  const tcp = connect(7, host);
  const talk = setInterval(() => void tcp.write("still here"), EVERY_MS);
  tcp.on("error", () => {}); // the program in between has ended it
  tcp.resume().on("close", () => {
    clearInterval(talk);
    setTimeout(lasting, EVERY_MS, host);
  });
}

setInterval(() => {
  for (const host of hosts) {
    begun++;
    const tcp = connect({ host, port: 7, timeout: GIVEN_UP_MS });
    const end = (): void => void tcp.destroy();
    tcp.on("connect", end).on("error", end).on("timeout", end);
    const udp = createSocket(host.includes(":") ? "udp6" : "udp4").on("error", () => {}); // refused for a moment
    udp.send("new", 7, host, () => udp.close());
  }
}, EVERY_MS);
for await (const line of createInterface(process.stdin)) {
  if (line === "last") for (const host of hosts) lasting(host);
  console.log(`begun ${begun}`);
}
process.exit();
