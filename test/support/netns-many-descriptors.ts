/**
 * `node netns-many-descriptors.ts <count>`: with so many descriptors open, more than `select` can name, nftables is used as
 * a capture does. Prints what was found.
 */
import { once } from "node:events";
import { openSync, readdirSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { Nftables } from "#platform/nftables.ts";

const TABLE = "inet weir_test";
const count = Number(process.argv[2]);
for (let at = 0; at < count; at++) openSync("/dev/null", "r");

const server = createServer({ allowHalfOpen: false });
await once(server.listen(0, "127.0.0.1"), "listening");
const { port } = server.address() as AddressInfo;
const accepted = once(server, "connection");
const before = connect(port, "127.0.0.1");
await accepted; // it is open when the thread takes descriptors of its own

const nftables = new Nftables();
await using first = await nftables.open("test");
const elements = Array.from({ length: 2_000 }, (_, at) => `10.0.${at >> 8}.${at & 255}`).join(", ");
await first.run(
  `table ${TABLE} { flags owner; set many { type ipv4_addr; elements = { ${elements} }; }; chain c { type nat hook output priority -150; }; }`,
);
console.log(`a table: ${(await first.run("list tables")).trim()}`);

const opened = (): number => readdirSync("/proc/self/fd").length;
const some = opened();
for (let round = 0; round < 200; round++) {
  await using session = await nftables.open("test");
  await session.run("list tables");
}
console.log(`${opened() - some} descriptors more after 200 sessions`);

const ended = once(before.resume(), "close");
for (const socket of await accepted) (socket as typeof before).destroy();
await Promise.race([ended, new Promise((late) => setTimeout(late, 5_000))]);
console.log(before.closed ? "a socket is closed where it is closed" : "a socket is kept open");
process.exit(0);
