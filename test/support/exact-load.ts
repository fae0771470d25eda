/** Clients and an origin that count each byte they exchange, beside clients that only make a handshake. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { messageOf } from "#core/errors.ts";
import { openTcpOrigin, type Origin } from "./origin.ts";
import { clientHello } from "./hostile-tls-clients.ts";

export interface ExactSums {
  /** Connections that the origin has got. */
  readonly sessions: number;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

export interface ExactOrigin extends Origin {
  readonly sums: ExactSums;
  /** Connections that did not begin as a client of the load begins, or were cut, a line each. */
  readonly complaints: readonly string[];
}

// What a client begins with: how much it is to be sent and how much it sends behind this, in ten digits each.
const HEAD_BYTES = 20;
const BLOCK = randomBytes(256 * 1024);

export async function openExactOrigin(): Promise<ExactOrigin> {
  const sums = { sessions: 0, uploadBytes: 0, downloadBytes: 0 };
  const complaints: string[] = [];
  const origin = await openTcpOrigin((socket) => {
    sums.sessions++;
    let head = "";
    const complain = (what: string): void => {
      if (complaints.length < 20)
        complaints.push(`${what} behind ${socket.bytesRead} bytes, "${head}" first`);
    };
    socket.on("error", ({ message }) => complain(message));
    socket.once("end", () => {
      if (!/^\d{20}$/.test(head)) complain("no such head");
      else if (socket.bytesRead !== HEAD_BYTES + Number(head.slice(10)))
        complain(`an end before ${HEAD_BYTES + Number(head.slice(10))} bytes`);
    });
    socket.on("data", (chunk: Buffer) => {
      sums.uploadBytes += chunk.length;
      if (head.length === HEAD_BYTES) return;
      head = (head + chunk.toString("latin1")).slice(0, HEAD_BYTES);
      if (head.length < HEAD_BYTES) return;
      const downloadBytes = Number(head.slice(0, 10));
      sums.downloadBytes += downloadBytes;
      socket.end(BLOCK.subarray(0, downloadBytes));
    });
  });
  return { ...origin, sums, complaints };
}

/** The ports of one program. */
export interface Doors {
  /** Leads to the origin. */
  readonly tunnel: number;
  /** HTTP proxies; the second one in TLS. */
  readonly plain: number;
  readonly secure: number;
}

export type Random = (below: number) => number;

/** Sends and receives so much and ends as it should; throws where anything is missing, and says how it ended and when. */
async function converse(stream: Socket, says: string, bytes: { up: number; down: number }): Promise<void> {
  const begunAtMs = performance.now();
  const seen: string[] = [];
  let got = 0;
  const see = (what: string): void => {
    seen.push(`${what} after ${Math.round(performance.now() - begunAtMs)} ms and ${got} bytes`);
  };
  stream.once("connect", () => see(`connected from ${stream.localPort}`));
  for (const stage of ["secureConnect", "finish", "end"]) stream.once(stage, () => see(stage));
  stream.on("error", ({ message }: Error) => see(message));
  stream.once("data", () => see("the first bytes"));
  stream.on("data", (chunk: Buffer) => (got += chunk.length));
  const closed = new Promise((resolve) => void stream.once("close", resolve));
  const head = [bytes.down, bytes.up].map((count) => String(count).padStart(10, "0")).join("");
  stream.end(Buffer.concat([Buffer.from(says + head), BLOCK.subarray(0, bytes.up)]));
  await closed;
  const answer = says === "" ? 0 : "HTTP/1.1 200 Connection established\r\n\r\n".length;
  const due = bytes.down + answer;
  if (stream.errored === null && got === due) return;
  see("closed");
  throw new Error(`${got} bytes of ${due} have come for ${bytes.up}: ${seen.join(", ")}`);
}

export class ExactLoad {
  /** Sessions that were had in full. */
  sessions = 0;
  unknownClients = 0;
  readonly #doors: Doors;
  readonly #origin: ExactOrigin;
  readonly #random: Random;
  #goesOn = true;

  constructor(doors: Doors, origin: ExactOrigin, random: Random) {
    this.#doors = doors;
    this.#origin = origin;
    this.#random = random;
  }

  /** Until `stop`; throws the first fault of any of them. */
  async run({
    plain,
    secure,
    unknownClients,
  }: {
    plain: number;
    secure: number;
    unknownClients: number;
  }): Promise<void> {
    const hello = await clientHello();
    const queues = [
      ...Array.from({ length: plain }, (_, at) => this.#lane(at % 2 === 0 ? "tunnel" : "plain")),
      ...Array.from({ length: secure }, () => this.#lane("secure")),
      ...Array.from({ length: unknownClients }, () => this.#strange(hello)),
    ];
    await Promise.all(queues);
  }

  stop(): void {
    this.#goesOn = false;
  }

  async #lane(door: keyof Doors): Promise<void> {
    const { port } = this.#origin;
    const request = `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`;
    try {
      while (this.#goesOn) {
        const options = { port: this.#doors[door], host: "127.0.0.1", allowHalfOpen: true };
        const stream =
          door === "secure" ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options);
        const bytes = { up: this.#size(), down: this.#size() };
        await converse(stream, door === "tunnel" ? "" : request, bytes).catch((error: unknown) => {
          const received = ["", ...this.#origin.complaints].join("; the origin: ");
          throw new Error(`${door}: ${messageOf(error)}${received}`, { cause: error });
        });
        this.sessions++;
      }
    } finally {
      this.stop();
    }
  }

  /** Mostly little; what is more than 64 KiB goes over to a worker behind TLS. */
  #size(): number {
    return this.#random(this.#random(8) === 0 ? BLOCK.length : 3_000);
  }

  /** Connects, says a part of a hello or all of it or nonsense, and is gone in one way or the other. */
  async #strange(hello: Buffer): Promise<void> {
    while (this.#goesOn) {
      const socket = connect(this.#doors.secure, "127.0.0.1").on("error", () => {});
      const closed = once(socket, "close");
      const said =
        this.#random(4) === 0 ? BLOCK.subarray(0, 100) : hello.subarray(0, this.#random(hello.length * 2));
      socket.write(said);
      if (this.#random(2) === 0) await Promise.race([once(socket, "data"), closed, delay(this.#random(20))]);
      if (this.#random(2) === 0) socket.destroy();
      else socket.resetAndDestroy();
      await closed;
      this.unknownClients++;
    }
  }
}
