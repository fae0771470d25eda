/**
 * Runs in the router's namespace, as `netns-deciding.ts <redir|tproxy> <port> <mark>`: two workers that decide what the kernel
 * brings there, by DIRECT. What they ask for is reset. For each line of input it prints what the main thread has been told;
 * `join` makes open connections known to it before, `kill` ends the workers.
 */
import { createInterface } from "node:readline";
import type { WorkerConnection } from "#core/accepted.ts";
import type { DecidedConnection } from "#dataplane/decision-source.ts";
import { ANY_V6, familyOf, ipFromBytes } from "#net/address/ip.ts";
import { makeTransparent, openOriginalDestinations } from "#platform/transparent.ts";
import { DecidingEngine } from "./deciding-engine.ts";
import { until } from "./until.ts";
import { WorkerKiller } from "./worker-killer.ts";

const [by = "", port = "", mark = ""] = process.argv.slice(2);
const ask = openOriginalDestinations();
const redirected = {
  handshake: "redirected",
  originalOf: (fd: number, client: WorkerConnection["source"]["ip"]) => {
    const found = ask(fd, familyOf(client));
    return found && { ip: ipFromBytes(found.address), port: found.port };
  },
} as const;
const transparent = { configure: (fd: number) => makeTransparent(fd) };
const where = { ip: ANY_V6, port: Number(port), owner: "test", ...(by === "tproxy" && transparent) };

using killer = new WorkerKiller();
const handshake = by === "tproxy" ? ({ handshake: "transparent" } as const) : redirected;
await using engine = await DecidingEngine.openAt(2, handshake, where);
/** Of those that were asked for: how many have come from a socket that a worker had opened for a client. */
let own = 0;
engine.answer = (client) => {
  const dial = engine.find(client.source, client.original ?? client.local);
  if (dial?.metadata?.source.ip !== undefined && dial.descriptor >= 0 && dial.isDirect) own++;
  client.reset();
};
engine.captures = true;
engine.routingMark = Number(mark);
await until("the version before", () => engine.version > 0);
engine.change([{ is: "always" }]);
await until("workers have this one", () => engine.dropped.length > 0);

function shown({ metadata, ip, dialled }: DecidedConnection): string {
  const { source, destination, inbound } = metadata;
  const { local, type } = inbound;
  const ends = [source.ip, destination.host, destination.ip, destination.port, ip, dialled.ip, dialled.port];
  return [type, ...ends, local.ip, local.port].join();
}

console.log("ready");
for await (const line of createInterface(process.stdin)) {
  if (line === "join") engine.join();
  if (line === "kill") await killer.kill("relay");
  const { asked, served, joined, ended, deaths } = engine;
  const told = {
    asked: asked.map(({ source }) => source.ip),
    own,
    served: served.map(shown),
    joined: joined.map(shown),
  };
  console.log(JSON.stringify({ ...told, ended, deaths }));
}
process.exit(0);
