/** `node failing-successor.ts STEP`: takes over from a weir up to a step and is killed there, or is one that cannot: other-protocol, older, newer, nonsense, silent, late. */
import { closeSync, existsSync } from "node:fs";
import { join } from "node:path";
import { openHandover } from "#platform/handover.ts";
import { FORMATS } from "#upgrade/formats.ts";
import { PROTOCOL, type Formats } from "#upgrade/messages.ts";
import { LINK_VARIABLE } from "#upgrade/link-variable.ts";
import { Peer } from "#upgrade/peer.ts";
import { until } from "./until.ts";

const WITHIN_MS = 300_000;
const [step = "", , home = ""] = process.argv.slice(2);
/** With `late` it says that it is ready for the stores once this is there. */
const goOn = join(home, "go-on");
const fd = Number((process.env[LINK_VARIABLE] ?? "").split(" ")[0]);
const handover = openHandover();
if (handover === null || !Number.isInteger(fd)) throw new Error("it is started by a weir");
const { link } = handover.adopt(fd);
const die = (at: string): void => {
  if (step === at) process.kill(process.pid, "SIGKILL");
};

die("start");
if (step === "nonsense") {
  link.send(Buffer.from("{}"));
  await link.ended;
  process.exit(0);
}
const peer = new Peer(link, () => true);
peer.say({
  kind: "hello",
  protocol: step === "other-protocol" ? PROTOCOL + 1 : PROTOCOL,
  version: step,
  formats: formatsOf(step),
});
die("hello");
const { sockets } = await peer.hear("begin", WITHIN_MS);
for (let left = sockets; left > 0; left--) closeSync((await peer.hear("socket", WITHIN_MS)).fd);
die("sockets");
if (step === "late") await until("it may go on", () => existsSync(goOn), { withinMs: WITHIN_MS });
peer.say({ kind: "checked" });
die("checked");
await peer.hear("stores", WITHIN_MS);
die("stores");
if (step === "silent") {
  await link.ended;
  process.exit(0);
}
peer.say({ kind: "ready" });
die("ready");
for (let kind = ""; kind !== "go";) kind = (await peer.next(WITHIN_MS)).message.kind; // behind what is remembered of TUNs
die("go");

function formatsOf(kind: string): Formats {
  const [first, ...rest] = Object.entries(FORMATS);
  if (first === undefined) return FORMATS;
  const [store, { schema, parts }] = first;
  const changed = kind === "older" ? parts.slice(1) : kind === "newer" ? [...parts, "invented"] : parts;
  return { ...Object.fromEntries(rest), [store]: { schema, parts: changed } };
}
