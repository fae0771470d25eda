/** What a fleet costs the data path: the CPU time of the program for the same bytes and connections, with and without one. */
import { once } from "node:events";
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
  /** CPU seconds of all rounds. */
  readonly bytes: Sides;
  readonly connections: Sides;
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
  const bytes = { alone: 0, fleet: 0 };
  const connections = { alone: 0, fleet: 0 };
  for (let round = -1; round < rounds; round++)
    for (const name of round % 2 === 0 ? (["alone", "fleet"] as const) : (["fleet", "alone"] as const)) {
      const { outbound, pid } = sides[name];
      const cpu = (): number => cpuSecondsOf(pid);
      const began = cpu();
      await fetchBytes(outbound, origin, BYTES);
      const between = cpu();
      for (let at = 0; at < CONNECTIONS; at++) await fetchBytes(outbound, origin, 1);
      if (round < 0) continue; // the code is not compiled yet
      bytes[name] += between - began;
      connections[name] += cpu() - between;
    }
  return { rounds, bytesPerRound: BYTES, connectionsPerRound: CONNECTIONS, bytes, connections };
}

export function shownPath(found: PathFindings): string {
  const { rounds, bytesPerRound, connectionsPerRound, bytes, connections } = found;
  const text = ({ alone, fleet }: Sides) =>
    `${alone.toFixed(2)} s alone, ${fleet.toFixed(2)} s in a fleet, ratio ${(alone / fleet).toFixed(3)}`;
  return (
    `CPU of ${rounds} times ${bytesPerRound / 2 ** 20} MiB: ${text(bytes)}; ` +
    `of ${rounds} times ${connectionsPerRound} connections: ${text(connections)}`
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
