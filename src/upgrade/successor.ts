/** The new process as the old one knows it, once it serves: it gets what is still counted here. */
import type { ChildProcess } from "node:child_process";
import type { ForwardedSums } from "#governance/ledger.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Host } from "#host/host.ts";
import { MOST_PACKET_BYTES } from "#platform/handover.ts";
import { lastOf } from "#lib/at.ts";
import type { MessageOf } from "./messages.ts";
import type { Peer } from "./peer.ts";

/** How often counters go over while connections end here. */
const REPORT_MS = 1_000;
/** The new process writes what it was told before it answers. */
const ANSWER_MS = 120_000;
/** Of a message, for what is listed in it; the rest is small. */
const LIST_BYTES = MOST_PACKET_BYTES / 2;

type Counts = Pick<MessageOf<"counts">, "users" | "policies">;
type UserRow = Counts["users"][number];

/** What is counted here from the moment on at which the stores were let go of. */
export class Outbox {
  readonly #sums: ForwardedSums[] = [];
  readonly #sent = new Map<string, string>();

  readonly forward = (sums: ForwardedSums): void => void this.#sums.push(sums);

  takeSums(): readonly ForwardedSums[] {
    return this.#sums.splice(0);
  }

  /** What the new process has not been told, in parts that fit messages; none: there is nothing. */
  take({ users }: Pick<Host, "users">): readonly Counts[] {
    const parts: { users: UserRow[]; policies: ForwardedSums[] }[] = [];
    let room = 0;
    const roomFor = (item: unknown) => {
      const bytes = Buffer.byteLength(JSON.stringify(item)) + 1;
      if (bytes > room) {
        parts.push({ users: [], policies: [] });
        room = LIST_BYTES;
      }
      room -= bytes;
      return lastOf(parts);
    };
    for (const { listener, id, uploadBytes, downloadBytes } of users.moved()) {
      const key = `${listener}\0${id}`;
      const said = `${uploadBytes} ${downloadBytes}`;
      if (this.#sent.get(key) === said) continue;
      this.#sent.set(key, said);
      const row: UserRow = [listener, id, uploadBytes, downloadBytes];
      roomFor(row).users.push(row);
    }
    for (const sums of this.takeSums()) roomFor(sums).policies.push(sums);
    return parts.map(({ users: rows, policies }) => ({
      users: rows,
      policies: policies.map((sums) => ({
        ...sums,
        policies: [...sums.policies],
        counted: [...sums.counted],
      })),
    }));
  }
}

export class Successor implements AsyncDisposable {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #peer: Peer;
  readonly #host: Host;
  readonly #log: Log;
  readonly #outbox: Outbox;
  #seq = 0;
  /** Reports one after the other. */
  #queue: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;

  constructor(child: ChildProcess, peer: Peer, { host, outbox }: { host: Host; outbox: Outbox }) {
    this.pid = child.pid ?? 0;
    this.#child = child;
    this.#peer = peer;
    this.#host = host;
    this.#log = host.log;
    this.#outbox = outbox;
  }

  /** Settles when it has died. */
  get ended(): Promise<void> {
    return this.#peer.ended;
  }

  /** Nothing is listened by here any more: it may say that it is the program. Counters go over from now on. */
  begin(): void {
    this.#host.journal.forward({
      event: (draft, mark) =>
        this.#tell({ kind: "event", draft, mark: mark === null ? null : [mark[0], mark[1]] }),
      audit: (draft) => this.#tell({ kind: "audit", draft }),
    });
    this.#peer.say({ kind: "left" });
    this.#timer = setInterval(() => this.#reportSoon(), REPORT_MS).unref();
    this.#child.unref();
    void this.#peer.ended.then(() => this.#stop());
  }

  /** The last counters are with it, on its medium, when this resolves; or the log says that they are lost. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    this.#host.ledger.settle(0);
    await this.#queue;
    await this.#report(true);
    this.#peer[Symbol.dispose]();
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #reportSoon(): void {
    this.#queue = this.#queue.then(() => this.#report(false));
  }

  /** Never rejects. */
  async #report(isLast: boolean): Promise<void> {
    const host = this.#host;
    host.ledger.settle(0);
    const parts = this.#outbox.take(host);
    const { uploadTotalBytes, downloadTotalBytes } = host.live;
    const all = parts.length === 0 ? [{ users: [], policies: [] }] : parts;
    try {
      for (const [at, part] of all.entries()) {
        const seq = ++this.#seq;
        this.#peer.say({
          kind: "counts",
          seq,
          ...part,
          totals: [uploadTotalBytes, downloadTotalBytes],
          isLast: isLast && at === all.length - 1,
        });
        const { barred } = await this.#peer.hear("taken", ANSWER_MS);
        this.#host.users.bar(part.users, barred); // a process before this one asks here, too
        this.#close(barred);
      }
    } catch (error) {
      this.#stop();
      this.#log.error(
        `the new process ${this.pid} does not take counters: ${messageOf(error)}; what was counted since is lost`,
      );
    }
  }

  /** Users who may not connect there lose what they have open here. */
  #close(barred: readonly (readonly [listener: string, id: string])[]): void {
    if (barred.length === 0) return;
    const keys = new Set(barred.map(([listener, id]) => `${listener}\0${id}`));
    this.#host.live.closeAll(({ metadata: { inbound } }) =>
      keys.has(`${inbound.name}\0${inbound.userId ?? ""}`),
    );
  }

  /** Never throws: who reports goes on. */
  #tell(said: MessageOf<"event"> | MessageOf<"audit">): void {
    try {
      this.#peer.say(said);
    } catch (error) {
      this.#log.error(`an event or audit entry does not reach process ${this.pid}: ${messageOf(error)}`);
    }
  }
}
