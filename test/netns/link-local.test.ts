/** Clients with link-local addresses, on several links: each is answered by its own. */
import { createSocket } from "node:dgram";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { openDatagrams } from "#net/udp/datagram-listener.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { openBatchedDatagrams } from "#platform/datagrams.ts";
import { isChild, runAsChild } from "../support/as-child.ts";
import { link, openNetns, skipNetns } from "../support/netns.ts";
import { until } from "../support/until.ts";

/** In namespaces of the test. */
const PORTS = { batches: 5301, "one at a time": 5302 };
const DEVICE = "up0";

/** Two listeners that send back what they receive. */
async function listen(): Promise<void> {
  for (const [way, port] of Object.entries(PORTS)) {
    const sockets = new DatagramSockets(() => (way === "batches" ? openBatchedDatagrams() : null));
    const at = { ip: "::" as Ip, port };
    const { socket } = await openDatagrams({ at, reusePort: false, configure() {} }, sockets);
    socket.receive((payload, from) => socket.send(payload, from));
  }
}

async function ask(): Promise<void> {
  for (const [way, port] of Object.entries(PORTS)) {
    const socket = createSocket("udp6");
    let received = 0;
    socket.on("message", () => received++).on("error", () => {}); // there is no listener yet
    await until(`an answer in ${way}`, () => {
      socket.send("?", port, `fe80::1%${DEVICE}`);
      return received > 0;
    });
    socket.close();
  }
}

if (!(await isChild({ listen, ask }))) {
  const skip = skipNetns("link-local clients");
  test("a link-local client is answered by the link that it has asked by", { skip }, async () => {
    await using router = await openNetns("links");
    await using one = await openNetns("one");
    await using other = await openNetns("other");
    for (const [at, client] of [one, other].entries())
      await link(
        { netns: router, device: `down${at}`, addresses: ["fe80::1/64"] },
        { netns: client, device: DEVICE, addresses: [`fe80::${at + 2}/64`] },
      );
    router.start(
      process.execPath,
      "--disable-warning=ExperimentalWarning",
      fileURLToPath(import.meta.url),
      "listen",
    );
    for (const client of [one, other]) await runAsChild(import.meta.url, "ask", { prefix: client.prefix });
  });
}
