/** The program with traffic control, an origin that counts what it sees, and clients that know how much they moved. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { openRawClient } from "./raw-client.ts";
import { openTcpOrigin, type Origin } from "./origin.ts";
import { startCore, type StartOptions, type Core } from "./start-core.ts";
import { freePorts } from "./free-ports.ts";

export interface CountingOrigin extends Origin {
  /** Payload bytes that came in, and that were handed to the kernel. */
  readonly seen: { upload: number; download: number };
}

const BLOCK = Buffer.alloc(64 * 1024, "traffic");

/** Reads a line `<download bytes>`, then everything up to the end; sends that many bytes, and ends. */
export async function openCountingOrigin(): Promise<CountingOrigin> {
  const seen = { upload: 0, download: 0 };
  const origin = await openTcpOrigin((socket) => {
    let head = "";
    socket.on("data", (chunk: Buffer) => {
      seen.upload += chunk.length;
      if (head.endsWith("\n")) return;
      const line = chunk.toString("latin1");
      const end = line.indexOf("\n");
      head += end < 0 ? line : line.slice(0, end + 1);
      if (end >= 0) sendAll(socket, Number(head), seen);
    });
  });
  return Object.assign(origin, { seen });
}

function sendAll(socket: Socket, size: number, seen: { download: number }): void {
  let left = size;
  const more = (): void => {
    while (left > 0) {
      const piece = BLOCK.subarray(0, Math.min(left, BLOCK.length));
      left -= piece.length;
      seen.download += piece.length;
      if (!socket.write(piece)) return void socket.once("drain", more);
    }
    socket.end();
  };
  more();
}

export interface GovernedCore extends AsyncDisposable {
  readonly core: Core;
  readonly mixed: number;
  readonly controller: number;
  readonly origin: CountingOrigin;
  configText(block: string): string;
  /** Opens a tunnel to the origin and asks for so many bytes; the caller reads, writes and closes. */
  open(downloadBytes: number): Promise<Socket>;
  /** Moves so many bytes both ways; resolves when both sides have ended. Answers with what arrived here. */
  transfer(uploadBytes: number, downloadBytes: number): Promise<number>;
  call<T = Record<string, never>>(method: string, path: string, body?: unknown): Promise<Answer<T>>;
}

export interface Answer<T> {
  readonly status: number;
  readonly body: T;
  readonly text: string;
}

const HEAD_BYTES = 16;

/** `block`: the value of `traffic-control`, indented by two blanks. A group `Proxy` holds DIRECT; one rule names it. */
export async function startGoverned(block: string, options: StartOptions = {}): Promise<GovernedCore> {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const origin = await openCountingOrigin();
  const configText = (inner: string): string => `
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
log-level: info
proxy-groups:
  - { name: Proxy, type: select, proxies: [DIRECT] }
rules:
  - IP-CIDR,127.0.0.0/8,Proxy
  - MATCH,DIRECT
traffic-control:
${inner}
`;
  const core = await startCore(configText(block), options);
  const open = async (downloadBytes: number): Promise<Socket> => {
    const client = await openRawClient(mixed);
    client.send(`CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    await client.until("\r\n\r\n");
    client.socket.removeAllListeners("data");
    client.socket.write(`${downloadBytes}\n`.padStart(HEAD_BYTES, "0"));
    return client.socket;
  };
  return {
    core,
    mixed,
    controller,
    origin,
    configText,
    open,
    async transfer(uploadBytes, downloadBytes) {
      const socket = await open(downloadBytes);
      let arrived = 0;
      socket.on("data", (chunk: Buffer) => (arrived += chunk.length));
      const ended = once(socket, "end");
      for (let left = uploadBytes - HEAD_BYTES; left > 0; left -= BLOCK.length)
        if (!socket.write(BLOCK.subarray(0, Math.min(left, BLOCK.length)))) await once(socket, "drain");
      socket.end();
      await ended;
      if (!socket.closed) await once(socket, "close");
      return arrived;
    },
    async call<T>(method: string, path: string, body?: unknown) {
      const answer = await fetch(`http://127.0.0.1:${controller}/api/svc/${path}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
      return { status: answer.status, text, body: (isJson ? JSON.parse(text) : {}) as T };
    },
    async [Symbol.asyncDispose]() {
      await core[Symbol.asyncDispose]();
      await origin[Symbol.asyncDispose]();
    },
  };
}

export interface PolicyStatus {
  readonly policy: { readonly id: string; readonly kind: string };
  readonly counters: Record<"upload_bytes" | "download_bytes" | "connections" | "exceeded_events", number>;
  readonly rolling: Record<"upload_bytes" | "download_bytes", number>;
  readonly over_quota: boolean;
  readonly generation: number;
  readonly active_connections: number;
}

export interface Status {
  readonly enabled: boolean;
  readonly revision: number;
  readonly last_checkpoint: number;
  readonly store_bytes: number;
  readonly policies: readonly PolicyStatus[];
}

export async function statusOf(governed: GovernedCore, id: string): Promise<PolicyStatus> {
  const { body } = await governed.call<Status>("GET", "traffic-control/status");
  const found = body.policies.find(({ policy }) => policy.id === id);
  if (found === undefined) throw new Error(`no policy ${id} in ${JSON.stringify(body)}`);
  return found;
}
