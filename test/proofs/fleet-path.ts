/** What a fleet costs the data path: the CPU time of the program for the same bytes and connections, with and without one. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Outbound } from "#core/outbound.ts";
import type { FleetDatabase } from "../support/fleet.ts";
import { startNode } from "../support/fleet-nodes.ts";
import { cpuSecondsOf } from "../support/cpu-seconds.ts";
import { ManagedCore } from "../support/managed-core.ts";
import { openTcpOrigin, type Origin } from "../support/origin.ts";
import { FOREVER, ofVless } from "../support/user-traffic.ts";

export interface PathFindings {
  readonly rounds: number;
  readonly bytesPerRound: number;
  readonly connectionsPerRound: number;
  readonly bytes: Work;
  readonly connections: Work;
  /** CPU seconds in a second in which the user moves next to nothing. */
  readonly background: Sides;
}

/** CPU seconds of all rounds. */
interface Work extends Sides {
  /** In which the fleet's node did it: long, on a busy machine. */
  readonly fleetWallSeconds: number;
}

interface Sides {
  readonly alone: number;
  readonly fleet: number;
}

interface Side {
  readonly pid: number;
  readonly outbound: Outbound;
}

const CARRIER = ofVless("edge", "", { network: "tcp", udp: true });
const BYTES = 256 * 1024 * 1024;
const CONNECTIONS = 400;
const TRICKLE_MS = 20_000;
const BLOCK = Buffer.alloc(1024 * 1024, 1);

export async function provePath(database: FleetDatabase, rounds: number): Promise<PathFindings> {
  const settings = (await database.fresh())("fra-1");
  await using origin = await openTcpOrigin((socket) => {
    socket.once("data", (head: Buffer) => {
      let left = Number(head.toString());
      const send = (): void => {
        while (left > 0) {
          const piece = BLOCK.subarray(0, left);
          left -= piece.length;
          if (!socket.write(piece)) return void socket.once("drain", send);
        }
        socket.end();
      };
      send();
    });
  });
  await using stack = new AsyncDisposableStack();
  const open = async (side: ManagedCore): Promise<Side> => {
    const user = await side.create("edge", "alice");
    const outbound = stack.use(await CARRIER.open(await side.core.port("edge"), user));
    return { pid: side.core.pid, outbound };
  };
  await using node = await startNode(settings);
  const fleet = await open(node.core); // at once: a connection that is kept alive ends after some seconds
  await using core = await ManagedCore.start();
  const sides: Readonly<Record<keyof Sides, Side>> = { fleet, alone: await open(core) };
  const bytes = { alone: 0, fleet: 0, fleetWallSeconds: 0 };
  const connections = { alone: 0, fleet: 0, fleetWallSeconds: 0 };
  for (let round = -1; round < rounds; round++)
    for (const name of round % 2 === 0 ? (["alone", "fleet"] as const) : (["fleet", "alone"] as const)) {
      const { outbound, pid } = sides[name];
      const cpu = (): number => cpuSecondsOf(pid);
      const began = cpu();
      const beganMs = performance.now();
      await fetchBytes(outbound, origin, BYTES);
      const between = cpu();
      const betweenMs = performance.now();
      for (let at = 0; at < CONNECTIONS; at++) await fetchBytes(outbound, origin, 1);
      if (round < 0) continue; // the code is not compiled yet
      bytes[name] += between - began;
      connections[name] += cpu() - between;
      if (name === "alone") continue;
      bytes.fleetWallSeconds += (betweenMs - beganMs) / 1000;
      connections.fleetWallSeconds += (performance.now() - betweenMs) / 1000;
    }
  const background = { alone: await trickle(sides.alone, origin), fleet: await trickle(sides.fleet, origin) };
  return { rounds, bytesPerRound: BYTES, connectionsPerRound: CONNECTIONS, bytes, connections, background };
}

/** CPU seconds in a second. */
async function trickle({ pid, outbound }: Side, origin: Origin): Promise<number> {
  const [began, beganMs] = [cpuSecondsOf(pid), performance.now()];
  while (performance.now() - beganMs < TRICKLE_MS) {
    await fetchBytes(outbound, origin, 1);
    await sleep(500);
  }
  return (cpuSecondsOf(pid) - began) / ((performance.now() - beganMs) / 1000);
}

/** Without what a node does anyway in the time that it took: as on a machine that has nothing else to do. */
export function ratioOf({ alone, fleet, fleetWallSeconds }: Work, background: Sides): number {
  return alone / (fleet - Math.max(0, background.fleet - background.alone) * fleetWallSeconds);
}

export function shownPath(found: PathFindings): string {
  const { rounds, bytesPerRound, connectionsPerRound, bytes, connections, background } = found;
  const text = (work: Work) =>
    `${work.alone.toFixed(2)} s alone, ${work.fleet.toFixed(2)} s in a fleet (in ${work.fleetWallSeconds.toFixed(0)} s), ` +
    `ratio without the background ${ratioOf(work, background).toFixed(3)}`;
  const share = (value: number) => `${(value * 100).toFixed(2)} %`;
  return (
    `CPU of ${rounds} times ${bytesPerRound / 2 ** 20} MiB: ${text(bytes)}; ` +
    `of ${rounds} times ${connectionsPerRound} connections: ${text(connections)}; ` +
    `background: ${share(background.alone)} of a core alone, ${share(background.fleet)} in a fleet`
  );
}

async function fetchBytes(outbound: Outbound, origin: Origin, bytes: number): Promise<void> {
  const stream = await outbound.connect(origin.destination, { signal: FOREVER, metadata: null });
  let got = 0;
  stream.on("data", (chunk: Buffer) => (got += chunk.length));
  stream.write(String(bytes));
  await once(stream, "end");
  stream.destroy();
  if (got !== bytes) throw new Error(`${got} of ${bytes} bytes`);
}
