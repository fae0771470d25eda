/** A core under limits between clients that never have enough and origins that give and take without end. */
import { on, once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Direction } from "#core/meter.ts";
import { freePorts } from "../../test/support/free-ports.ts";
import { startCore, type Core } from "../../test/support/start-core.ts";
import { endOf, forkServer } from "../relay-subjects.ts";
import { tunnel } from "./tunnel.ts";

export interface FlowKind {
  readonly direction: Direction;
  /** Where the client comes from and where it wants to go, inside 127.0.0.0/8. */
  readonly source: string;
  readonly target: string;
  readonly onBytes: (bytes: number) => void;
}

export interface LimitedCore extends AsyncDisposable {
  readonly core: Core;
  readonly controller: number;
  readonly mixed: number;
  open(kind: FlowKind): Promise<void>;
  /** Ends it; what its sockets were given. Null where that was nothing, or the core was killed. */
  end(): Promise<Written | null>;
}

/** Bytes. */
export interface Written {
  /** In the fullest 100 ms. */
  readonly most: number;
  readonly total: number;
  /** After the cap of `probe`. */
  readonly capped: { readonly first50Ms: number; readonly nextSecond: number } | null;
}

/**
 * `probe`: environment of write-probe.mjs. `block`: the value of `traffic-control`; targets 127.0.0.<n> are
 * decided by the rule of that address.
 */
export async function startLimited(
  block: string,
  probe: NodeJS.ProcessEnv = {},
  relay: "auto" | "portable" = "auto",
): Promise<LimitedCore> {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
  const written = join(folder, "writes.json");
  const arrivals = new Map<string, (bytes: number) => void>();
  const origin = createServer({ noDelay: true }, (socket) => take(socket, arrivals));
  origin.listen({ port: 0, host: "0.0.0.0", backlog: 1024 });
  await once(origin, "listening");
  const { port: takerPort } = origin.address() as AddressInfo;
  const { child: giver, port: giverPort } = await forkServer("./governance/giver.ts");
  giver.setMaxListeners(0); // one for each flow that opens
  const core = await startCore(
    `relay: ${relay}\nmixed-port: ${mixed}\nexternal-controller: 127.0.0.1:${controller}\nlog-level: info\nrules:\n` +
      `  - IP-CIDR,127.0.0.5/32,DIRECT\n  - MATCH,DIRECT\ntraffic-control:\n${block}\n`,
    {
      env: {
        NODE_OPTIONS: `--import=${new URL("write-probe.mjs", import.meta.url).pathname}`,
        WEIR_PROBE_FILE: written,
        ...probe,
      },
    },
  );
  const sockets: Socket[] = [];
  let names = 0;
  return {
    core,
    controller,
    mixed,
    async open({ direction, source, target, onBytes }) {
      const name = `${direction} ${++names}`;
      const port = direction === "download" ? giverPort : takerPort;
      const way = { proxyPort: mixed, source, target: `${target}:${port}` };
      if (direction === "download") {
        const socket = await tunnel(way, onBytes);
        sockets.push(socket);
        socket.write(`${name}\n`);
        return;
      }
      arrivals.set(name, onBytes);
      giver.send({ way, name });
      for await (const [opened] of on(giver, "message", { close: ["exit"] })) if (opened === name) return;
      throw new Error("the giver ended");
    },
    async end() {
      await core.stop("SIGTERM");
      try {
        return JSON.parse(readFileSync(written, "utf8")) as Written;
      } catch {
        return null; // not written: no socket of the runtime was given anything
      }
    },
    async [Symbol.asyncDispose]() {
      await core[Symbol.asyncDispose]();
      for (const socket of sockets) socket.destroy();
      origin.close();
      await endOf(giver);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function take(socket: Socket, arrivals: ReadonlyMap<string, (bytes: number) => void>): void {
  socket.on("error", () => {}); // the end of a measurement
  socket.once("data", (first: Buffer) => {
    const end = first.indexOf(10);
    const onBytes = arrivals.get(first.toString("latin1", 0, end));
    if (onBytes === undefined) return void socket.destroy();
    if (first.length > end + 1) onBytes(first.length - end - 1);
    socket.on("data", (chunk: Buffer) => onBytes(chunk.length));
  });
}
