/** Devices by hardware address: which policies a session has, before and after an address changes hands. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Neighbours } from "#core/neighbours.ts";
import type { Ip } from "#core/session.ts";
import { cidr, governed, policy, settings, TurnedClock } from "../../test/support/governed-ledger.ts";
import { MemoryStore } from "./store.ts";

const [PHONE, TABLET] = ["02:00:5e:00:53:01", "02:00:5e:00:53:02"];
const [OLD, NEW, ROUTED] = ["192.0.2.20", "192.0.2.77", "198.51.100.9"];

class Known implements Neighbours {
  readonly macs = new Map<string, string>([[OLD, PHONE]]);
  #on: ((changed: ReadonlySet<Ip>) => void) | null = null;
  macOf(ip: Ip): string | null {
    return this.macs.get(ip) ?? null;
  }
  addressesOf(mac: string): readonly Ip[] {
    return [...this.macs].filter(([, each]) => each === mac).map(([ip]) => ip as Ip);
  }
  watch(on: (changed: ReadonlySet<Ip>) => void): Disposable {
    this.#on = on;
    return { [Symbol.dispose]: () => void (this.#on = null) };
  }
  get watched(): boolean {
    return this.#on !== null;
  }
  give(ip: string, mac: string): void {
    this.macs.set(ip, mac);
    this.#on?.(new Set([ip as Ip]));
  }
}

const device = (id: string, mac: string | null, ...networks: readonly string[]) => ({
  ...policy({ id }),
  mac,
  sourceCidrs: networks.map(cidr),
});
const DEVICES = [
  device("phone", PHONE, "192.0.2.20/32", "198.51.100.0/24"),
  device("tablet", TABLET),
  device("lan", null, "192.0.2.0/24"),
];

async function world(deviceIdentity: "address" | "neighbour") {
  const neighbours = new Known();
  const core = governed(new TurnedClock(), new MemoryStore(), () => 0, neighbours);
  await core.apply(settings({ deviceIdentity, devices: DEVICES }));
  const used = () =>
    Object.fromEntries(
      core.governance
        .status()
        .policies.map(({ id, counters: { upload, connections } }) => [id, [upload, connections]]),
    );
  const use = (ip: string) => core.session({ ip }).reserve("upload", 10);
  return { core, neighbours, used, use };
}

test("the hardware address decides where it is known, networks where it is not", async () => {
  const { neighbours, used, use, core } = await world("neighbour");
  use(OLD);
  assert.deepEqual(used(), { lan: [10, 1], phone: [10, 1], tablet: [0, 0] });
  neighbours.give(NEW, PHONE);
  use(NEW);
  assert.deepEqual(used(), { lan: [20, 2], phone: [20, 2], tablet: [0, 0] });
  neighbours.macs.set(OLD, TABLET);
  use(OLD);
  assert.deepEqual(used(), { lan: [30, 3], phone: [20, 2], tablet: [10, 1] });
  use(ROUTED);
  assert.deepEqual(used(), { lan: [30, 3], phone: [30, 3], tablet: [10, 1] });
  assert.deepEqual(core.governance.status().policies.find(({ id }) => id === "phone")?.device?.addresses, [
    NEW,
  ]);
  assert.deepEqual(
    core.governance
      .statusOf(NEW)
      .map(({ id }) => id)
      .toSorted(),
    ["lan", "phone"],
  );
});

test("a live session is bound anew when its address changes hands, and counts once for each device", async () => {
  const { core, neighbours, used } = await world("neighbour");
  const meter = core.session({ ip: OLD });
  meter.reserve("upload", 10);
  neighbours.give(OLD, TABLET);
  meter.reserve("upload", 7);
  assert.deepEqual(used(), { lan: [17, 1], phone: [10, 1], tablet: [7, 1] });
  neighbours.give(OLD, TABLET);
  neighbours.give(NEW, PHONE);
  assert.deepEqual(used(), { lan: [17, 1], phone: [10, 1], tablet: [7, 1] });
});

test("device-identity: address neither asks nor follows, and the end of traffic control ends following", async () => {
  const { core, neighbours, used, use } = await world("address");
  neighbours.macs.set(OLD, TABLET);
  use(OLD);
  assert.deepEqual([neighbours.watched, used()], [false, { lan: [10, 1], phone: [10, 1], tablet: [0, 0] }]);
  await core.apply(settings({ deviceIdentity: "neighbour", devices: DEVICES }));
  assert.equal(neighbours.watched, true);
  await core.apply(null);
  assert.equal(neighbours.watched, false);
});
