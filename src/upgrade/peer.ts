/** The other process of an upgrade: messages one after the other, and its end. */
import { closeSync } from "node:fs";
import { messageOf } from "#core/errors.ts";
import type { Credentials, Packet, PacketLink } from "#platform/handover.ts";
import { decodeMessage, encodeMessage, type Message, type MessageOf } from "./messages.ts";

/** The other process is gone, hangs or says what it may not say. */
export class PeerError extends Error {
  override readonly name = "PeerError";
}

interface Heard {
  readonly message: Message;
  /** -1: none came with it. */
  readonly fd: number;
}

/** What came and was not asked for yet: the other side waits at each step, counters and events are few. */
const MOST_HEARD = 4096;

export class Peer implements Disposable {
  readonly #link: PacketLink;
  readonly #accepts: (sender: Credentials | null) => boolean;
  readonly #heard: Heard[] = [];
  readonly #diverted = new Map<Message["kind"], (message: Message) => void>();
  #wake: () => void = () => {};
  #fault: string | null = null;

  /** `accepts`: is this the process that is meant? */
  constructor(link: PacketLink, accepts: (sender: Credentials | null) => boolean) {
    this.#link = link;
    this.#accepts = accepts;
    link.receive((packet) => this.#take(packet));
    void link.ended.then(() => this.#fail("it has ended"));
  }

  get isOpen(): boolean {
    return this.#fault === null;
  }

  /** Settles when the other process is gone, or was given up. */
  get ended(): Promise<void> {
    return this.#link.ended;
  }

  say(message: Message, fd: number | null = null): void {
    this.#link.send(encodeMessage(message), fd);
  }

  /** Messages of this kind are not waited for: they go there as they come. */
  divert<Kind extends Message["kind"]>(kind: Kind, on: (message: MessageOf<Kind>) => void): void {
    this.#diverted.set(kind, (message) => on(message as MessageOf<Kind>));
  }

  /** Rejects with `PeerError` where something else comes, or nothing within `ms`. */
  async hear<Kind extends Message["kind"]>(
    kind: Kind,
    ms: number,
  ): Promise<MessageOf<Kind> & { fd: number }> {
    const { message, fd } = await this.next(ms);
    if (message.kind === kind) return { ...(message as MessageOf<Kind>), fd };
    if (fd >= 0) closeSync(fd);
    if (message.kind === "failed") throw new PeerError(message.reason);
    throw new PeerError(`it said ${message.kind} in place of ${kind}`);
  }

  /** Rejects with `PeerError`. */
  async next(ms: number): Promise<Heard> {
    const untilMs = performance.now() + ms;
    for (;;) {
      const heard = this.#heard.shift();
      if (heard !== undefined) return heard;
      if (this.#fault !== null) throw new PeerError(this.#fault);
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) throw new PeerError(`it has said nothing for ${Math.round(ms / 1000)} s`);
      await this.#woken(leftMs);
    }
  }

  [Symbol.dispose](): void {
    this.#fault ??= "it was given up";
    this.#link[Symbol.dispose]();
    for (const { fd } of this.#heard.splice(0)) if (fd >= 0) closeSync(fd);
  }

  #woken(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#wake = resolve;
    return promise.finally(() => clearTimeout(timer));
  }

  #take({ bytes, descriptors, sender }: Packet): void {
    const [fd = -1, ...more] = descriptors;
    for (const extra of more) closeSync(extra);
    try {
      if (!this.#accepts(sender)) throw new Error(`it comes from process ${sender?.pid ?? "?"}`);
      const message = decodeMessage(bytes);
      const on = fd < 0 ? this.#diverted.get(message.kind) : undefined;
      if (on !== undefined) return on(message);
      if (this.#heard.length >= MOST_HEARD) throw new Error("it says too much");
      this.#heard.push({ message, fd });
      this.#wake();
    } catch (error) {
      if (fd >= 0) closeSync(fd);
      this.#fail(`what it says is not to be taken: ${messageOf(error)}`);
      this.#link[Symbol.dispose]();
    }
  }

  #fail(why: string): void {
    this.#fault ??= why;
    this.#wake();
  }
}
